//! The `portmoot` program: command line in, exit code out.
//!
//! `output` does all printing, the crate `config` reads the configuration, `run` starts the
//! gateway.

mod cli;
mod commands;
mod consent;
mod elicitation;
mod process;
mod remote;
mod responder;
mod run;
#[cfg(test)]
mod scripted;

use std::io::IsTerminal;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use ::chat::Zone;
use clap::FromArgMatches;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use crate::cli::{Cli, Command};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::{LOG_TARGET, LogFormat, Output};

/// Time that the end of the program waits for its threads.
const THREADS_END: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == client::guard::ARG)
    {
        return guard();
    }
    program()
}

/// Anything but a guard. A function of its own, so that a guard does not touch the stack that it
/// needs.
#[inline(never)]
fn program() -> ExitCode {
    process::hide_memory();
    let matches = cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let output = Output::new(cli.output.json, cli.output.quiet, cli.output.no_color);
    let format = log_format(&cli);
    log(&cli, format, output);
    // Why the program ends is for people, unless they want each line as JSON.
    let (output, at_end) = match (&cli.command, format) {
        (Command::Serve(_), LogFormat::Text) => (output.to_log(format), output),
        (Command::Serve(_) | Command::Stdio(_), LogFormat::Json) => {
            (output.to_log(format), output.to_log(format))
        }
        _ => (output, output),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let ended = match runtime {
        Ok(runtime) => {
            // Behind a pointer, or the compiler copies every command into each way in which a
            // runtime can drive it.
            let command: Pin<Box<dyn Future<Output = _>>> = Box::pin(commands::run(cli, output));
            let ended = runtime.block_on(command);
            // A read of the input that waits for a client would keep the program until that writes.
            runtime.shutdown_timeout(THREADS_END);
            ended
        }
        Err(error) => Err(Failure::new(
            Exit::Failed,
            "no_runtime",
            format!("cannot start worker threads: {error}"),
        )),
    };
    let exit = ended.unwrap_or_else(|failure| {
        at_end.failure(&failure);
        failure.exit
    });
    exit.into()
}

/// A guard process: it ends child processes of a gateway that was killed.
fn guard() -> ExitCode {
    client::guard::run().unwrap_or_else(|_| Exit::Failed.into())
}

/// The format of the log: JSON with `PORTMOOT_LOG_FORMAT=json`, or with `--json`.
fn log_format(cli: &Cli) -> LogFormat {
    let wants_json = std::env::var("PORTMOOT_LOG_FORMAT")
        .is_ok_and(|format| format.eq_ignore_ascii_case("json"));
    if wants_json || cli.output.json {
        LogFormat::Json
    } else {
        LogFormat::Text
    }
}

/// The time of day in the log at a terminal.
struct TimeOfDay(Zone);

impl FormatTime for TimeOfDay {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        writer.write_str(&self.0.second(platform::unix_ms()))
    }
}

/// Sends logs to stderr. `PORTMOOT_LOG` is a filter such as `gateway=debug,upstream=debug`. `serve`
/// logs the state changes of servers, and of the collector of telemetry, by default. Its own
/// messages follow `--quiet` alone, unless the filter names their target.
fn log(cli: &Cli, format: LogFormat, output: Output) {
    let level = match (cli.output.quiet, cli.output.verbose) {
        (true, _) => "error",
        (false, 0) if matches!(cli.command, Command::Serve(_)) => {
            "warn,portmoot::servers=info,portmoot::telemetry=info"
        }
        // These say themselves why a server of theirs is down, with what it wrote.
        (false, 0)
            if matches!(
                cli.command,
                Command::Tools(_)
                    | Command::Resources(_)
                    | Command::Prompts(_)
                    | Command::Tokens(_)
            ) =>
        {
            "warn,portmoot::servers::down=off"
        }
        (false, 0) => "warn",
        (false, 1) => "info",
        (false, _) => "debug",
    };
    let written = std::env::var("PORTMOOT_LOG").ok();
    let filter = written
        .as_ref()
        .and_then(|written| EnvFilter::try_new(written).ok());
    let mut filter = filter.unwrap_or_else(|| EnvFilter::new(level));
    if !written.is_some_and(|written| written.contains(LOG_TARGET)) {
        let own = if cli.output.quiet {
            LevelFilter::WARN
        } else {
            LevelFilter::INFO
        };
        if let Ok(directive) = format!("{LOG_TARGET}={own}").parse() {
            filter = filter.add_directive(directive);
        }
    }
    let lines = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(filter);
    // Where the terminal was closed, nothing can be said of a line that it does not take.
    let lines = lines.log_internal_errors(false);
    // Setting a subscriber fails only if another one is set, and this is the only place that sets
    // one.
    let _ = match format {
        LogFormat::Json => lines.json().try_init(),
        // For a person who looks on: the time of day, colours, and no names of modules.
        LogFormat::Text if std::io::stderr().is_terminal() => {
            let lines = lines
                .with_timer(TimeOfDay(Zone::local()))
                .with_target(false);
            lines.with_ansi(output.is_colourful(true)).try_init()
        }
        LogFormat::Text => lines.with_ansi(false).try_init(),
    };
}
