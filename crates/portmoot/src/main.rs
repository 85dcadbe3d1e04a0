//! The `portmoot` program: command line in, exit code out.
//!
//! `output` does all printing, `config` reads the configuration, `run` starts the gateway.

mod address;
mod cli;
mod commands;
mod config;
mod consent;
mod elicitation;
mod exit;
mod failure;
mod output;
mod process;
mod remote;
mod responder;
mod run;
mod terminal;
mod timestamp;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::cli::{Cli, Command};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|first| first == client::guard::ARG) {
        return guard();
    }
    let cli = Cli::parse();
    let output = Output::new(cli.output.json, cli.output.quiet, cli.output.no_color);
    log(&cli);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(commands::run(cli, output)),
        Err(error) => {
            Err(Failure::new(Exit::Failed, "no_runtime", format!("cannot start worker threads: {error}")))
        }
    };
    let exit = ended.unwrap_or_else(|failure| {
        output.failure(&failure);
        failure.exit
    });
    exit.into()
}

/// The guard process: it ends the gateway's child processes if the gateway is killed.
fn guard() -> ExitCode {
    if client::guard::run().is_ok() { Exit::Ok.into() } else { Exit::Failed.into() }
}

/// Sends logs to stderr. `PORTMOOT_LOG` is a filter such as `gateway=debug,upstream=debug`. `serve` logs the state changes of
/// servers by default.
fn log(cli: &Cli) {
    let level = match (cli.output.quiet, cli.output.verbose) {
        (true, _) => "error",
        (false, 0) if matches!(cli.command, Command::Serve(_)) => "warn,portmoot::servers=info",
        (false, 0) => "warn",
        (false, 1) => "info",
        (false, _) => "debug",
    };
    let filter = EnvFilter::try_from_env("PORTMOOT_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter);
    // Setting a subscriber fails only if another one is set, and this is the only place that sets one.
    let _ = if cli.output.json { lines.json().try_init() } else { lines.with_ansi(false).try_init() };
}
