//! Implementations of the commands, one file per command.

mod audit;
mod auth;
mod chat;
mod config;
mod doctor;
mod lists;
mod logs;
mod participants;
mod proposals;
mod proto;
mod rights;
mod serve;
mod servers;
mod shell;
mod status;
mod target;
mod token;
mod tokens;
mod tools;
mod view;

use crate::cli::{Cli, Command};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

/// Runs the given command.
///
/// # Errors
/// Why the command failed.
pub(crate) async fn run(cli: Cli, output: Output) -> Result<Exit, Failure> {
    match cli.command {
        Command::Serve(args) => serve::serve(args, output).await,
        Command::Stdio(args) => serve::stdio(args, output).await,
        Command::Status(gateway) => status::run(&gateway, output).await,
        Command::Servers(command) => servers::run(command, output).await,
        Command::Logs { server, follow, lines, gateway } => {
            logs::run(&server, follow, lines, &gateway, output).await
        }
        Command::Tools(command) => tools::run(command, output).await,
        Command::Resources(command) => lists::resources(command, output).await,
        Command::Prompts(command) => lists::prompts(command, output).await,
        Command::Participants(command) => participants::run(command, output).await,
        Command::Token(command) => token::run(command, output).await,
        Command::Auth(command) => auth::run(command, output).await,
        Command::Chat { topic, gateway } => chat::run(&topic, &gateway, cli.output, output).await,
        Command::Proposals(command) => proposals::run(command, output).await,
        Command::Audit(command) => audit::run(command, output),
        Command::Doctor(args) => doctor::run(&args, output).await,
        Command::Config(command) => config::run(command, output),
        Command::Tokens(args) => tokens::run(args, output).await,
        Command::Proto(command) => proto::run(command, output).await,
        Command::Version => Ok(shell::version(output)),
        Command::Completions { shell } => Ok(shell::completions(shell, output)),
        Command::Man { dir } => shell::man(dir.as_deref(), output),
    }
}
