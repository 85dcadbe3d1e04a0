//! Implementations of the commands, one file per command.

mod accounts;
mod audit;
mod auth;
mod background;
mod browser;
mod chat;
mod cluster;
mod config;
mod console;
mod doctor;
mod lists;
mod logins;
mod logs;
mod names;
mod notifications;
mod participants;
mod pins;
mod proposals;
mod proto;
mod rights;
mod rules;
mod secret;
mod serve;
mod servers;
mod setup;
mod shell;
mod status;
mod target;
mod token;
mod tokens;
mod tools;
mod view;
mod watch;

use crate::cli::{Cli, Command};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;

/// Runs the given command, again and again if it is watched.
///
/// # Errors
/// Why the command failed.
pub(crate) async fn run(cli: Cli, output: Output) -> Result<Exit, Failure> {
    match watch::interval(&cli.command)? {
        Some(every) => watch::run(cli, every, output, once).await,
        None => once(cli, output).await,
    }
}

async fn once(cli: Cli, output: Output) -> Result<Exit, Failure> {
    match cli.command {
        Command::Init(args) => setup::init(&args, output),
        Command::Add(args) => setup::add(args, output).await,
        Command::Rm(args) => setup::rm(&args, output),
        Command::Secret(command) => secret::run(command, output).await,
        Command::Import(args) => setup::import(&args, output),
        Command::Connect(args) => setup::connect(&args, output),
        Command::Disconnect(args) => setup::disconnect(&args, output),
        Command::Search(args) => setup::search(args, output).await,
        Command::Serve(args) => serve::serve(args, output).await,
        Command::Start(args) => background::start(&args, output).await,
        Command::Stop(args) => background::stop(&args, output).await,
        Command::Stdio(args) => serve::stdio(args, output).await,
        Command::Status { gateway, .. } => status::run(&gateway, output).await,
        Command::Cluster(command) => cluster::run(command, output).await,
        Command::Servers(command) => servers::run(command, output).await,
        Command::Pins(command) => pins::run(command, output).await,
        Command::Logs {
            server,
            follow,
            lines,
            gateway,
        } => logs::run(server.as_deref(), follow, lines, &gateway, output).await,
        Command::Tools(command) => tools::run(command, output).await,
        Command::Resources(command) => lists::resources(command, output).await,
        Command::Prompts(command) => lists::prompts(command, output).await,
        Command::Participants(command) => participants::run(command, output).await,
        Command::Token(command) => token::run(command, output).await,
        Command::Login(command) => logins::login(command, output).await,
        Command::Clients(command) => logins::clients(command, output).await,
        Command::Consents(command) => logins::consents(command, output).await,
        Command::Auth(command) => auth::run(command, output).await,
        Command::Console {
            no_browser,
            gateway,
        } => console::run(no_browser, &gateway, output).await,
        Command::Chat {
            topic,
            lines,
            gateway,
        } => chat::run(&topic, lines, &gateway, cli.output, output).await,
        Command::Proposals(command) => proposals::run(command, output).await,
        Command::Notifications(command) => notifications::run(command, output).await,
        Command::Rules(command) => rules::run(command, output).await,
        Command::Audit(command) => audit::run(command, output).await,
        Command::Doctor(args) => doctor::run(&args, output).await,
        Command::Config(command) => config::run(command, output),
        Command::Tokens(args) => tokens::run(args, output).await,
        Command::Proto(command) => proto::run(command, output).await,
        Command::Version => Ok(shell::version(output)),
        Command::Completions { shell } => Ok(shell::completions(shell, output)),
        Command::Names { kind, gateway } => names::run(kind, &gateway, output).await,
        Command::Man { dir } => shell::man(dir.as_deref(), output),
    }
}
