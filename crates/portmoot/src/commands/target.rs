//! Gateway selection for commands: the one of `--url`, else the one that owns the data directory, else one in this process.

use std::path::PathBuf;

use store::Directory;

use crate::address::connectable;
use crate::cli::{GatewayArgs, RunningArgs};
use crate::commands::config::{load, sources};
use crate::config::Loaded;
use crate::consent;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::process::env;
use crate::remote::{Endpoint, Remote};
use crate::run;
use crate::terminal::ProcessTerminal;

/// The gateway for a command.
pub(crate) enum Target {
    /// A running one, by its URL.
    Running(String),
    /// None is running: the configuration for one in this process.
    Own(Box<Loaded>),
}

impl Target {
    /// The gateway of `--url`, else the one that owns the data directory of the configuration. A running gateway needs no
    /// valid configuration of the command.
    ///
    /// # Errors
    /// When no gateway is running and the configuration is not valid.
    pub(crate) fn of(args: &RunningArgs, output: Output) -> Result<Target, Failure> {
        if let Some(url) = &args.url {
            return Ok(Target::Running(url.clone()));
        }
        let sources = sources(&args.config);
        if let Some(url) = owner_url(sources.data_dir(&env)) {
            return Ok(Target::Running(url));
        }
        let loaded = load(&sources, output)?;
        Ok(match owner_url(loaded.config.data_dir.clone()) {
            Some(url) => Target::Running(url),
            None => Target::Own(Box::new(loaded)),
        })
    }
}

/// The URL of the gateway that owns this data directory.
pub(crate) fn owner_url(dir: Option<PathBuf>) -> Option<String> {
    let listen = Directory::owner(&dir?)?.listen?;
    Some(format!("http://{}", connectable(&listen)))
}

/// The endpoint of the selected gateway.
///
/// # Errors
/// When the URL or the configuration is not valid, consent is missing, or the gateway in this process does not start.
pub(crate) fn resolve(args: &GatewayArgs, output: Output) -> Result<Box<dyn Endpoint>, Failure> {
    match Target::of(&args.running, output)? {
        Target::Running(url) => Ok(Box::new(Remote::new(&url, args.running.token.clone())?)),
        Target::Own(mut loaded) => {
            output.message("no gateway is running: the servers are started for this command only");
            consent::obtain(&mut loaded.config, &mut ProcessTerminal, args.yes, output)?;
            run::in_process(*loaded)
        }
    }
}

/// The URL of a running gateway.
///
/// # Errors
/// When the configuration is not valid, or no gateway is running.
pub(crate) fn running_url(args: &RunningArgs, output: Output) -> Result<String, Failure> {
    match Target::of(args, output)? {
        Target::Running(url) => Ok(url),
        Target::Own(_) => {
            let message = "no gateway is running with this data directory";
            Err(Failure::new(Exit::Failed, "gateway_unreachable", message)
                .hint("start one with: portmoot serve; or choose one with --url http://127.0.0.1:7070; what a gateway needs is checked by: portmoot doctor"))
        }
    }
}

/// The endpoint of a running gateway.
///
/// # Errors
/// As [`running_url`], and when the URL is not valid.
pub(crate) fn running_endpoint(args: &RunningArgs, output: Output) -> Result<Remote, Failure> {
    Remote::new(&running_url(args, output)?, args.token.clone())
}
