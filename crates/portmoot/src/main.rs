//! `portmoot`: from the command line to a command, from its end to an exit code.
//!
//! Owns nothing else. All printing is `output`'s, all configuration `config`'s, all that serves `gateway`'s.

mod cli;
mod commands;
mod config;
mod consent;
mod exit;
mod failure;
mod form;
mod gate;
mod interview;
mod machine;
mod moment;
mod output;
mod run;
mod terminal;
mod visible;

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
    let output = Output::new(cli.talk.json, cli.talk.quiet, cli.talk.no_color);
    log(&cli);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(commands::run(cli, output)),
        Err(error) => {
            Err(Failure::new(Exit::Failed, "no_runtime", format!("threads cannot be started: {error}")))
        }
    };
    let exit = ended.unwrap_or_else(|failure| {
        output.failure(&failure);
        failure.exit
    });
    exit.into()
}

/// The small process that ends our children if we cannot.
fn guard() -> ExitCode {
    if client::guard::run().is_ok() { Exit::Ok.into() } else { Exit::Failed.into() }
}

/// Logs go to stderr; `PORTMOOT_LOG` is a filter such as `gateway=debug,upstream=debug`. A gateway that serves says by itself
/// when a server comes up.
fn log(cli: &Cli) {
    let level = match (cli.talk.quiet, cli.talk.verbose) {
        (true, _) => "error",
        (false, 0) if matches!(cli.command, Command::Serve(_)) => "warn,portmoot::servers=info",
        (false, 0) => "warn",
        (false, 1) => "info",
        (false, _) => "debug",
    };
    let filter = EnvFilter::try_from_env("PORTMOOT_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter);
    // Only the first subscriber of a process can be set; there is no other here.
    let _ = if cli.talk.json { lines.json().try_init() } else { lines.with_ansi(false).try_init() };
}
