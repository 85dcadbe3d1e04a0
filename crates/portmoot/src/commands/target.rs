//! Which gateway a command talks to: the one that was named, else one that runs here, else one of its own.

use std::time::Duration;

use store::Directory;

use crate::cli::{GatewayArgs, RunningArgs};
use crate::commands::config::{load, sources};
use crate::config::{Loaded, Sources};
use crate::consent;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate::{Remote, Source};
use crate::output::Output;
use crate::run;
use crate::terminal::Console;

/// A gateway to talk to. One of this command's own is given `patience` to start all its servers: nobody would see them
/// come up later.
///
/// # Errors
/// When the URL or the configuration is wrong, consent is missing, or the gateway in this process does not start.
pub(crate) async fn reach(
    args: &GatewayArgs,
    patience: Duration,
    output: Output,
) -> Result<Box<dyn Source>, Failure> {
    if let Some(remote) = named(&args.running)? {
        return Ok(Box::new(remote));
    }
    let sources = sources(&args.running.config);
    let mut loaded = load(&sources, output)?;
    if let Some(remote) = running(&loaded, &args.running)? {
        return Ok(Box::new(remote));
    }
    consent::obtain(&mut loaded.config, &mut Console, args.yes, output)?;
    let quiet = Sources { keep_nothing: true, ..sources };
    loaded.config.data_dir.clone_from(&quiet.data_dir);
    run::in_process(loaded, patience).await
}

/// The gateway behind `--url`.
pub(crate) fn named(args: &RunningArgs) -> Result<Option<Remote>, Failure> {
    args.url.as_ref().map(|url| Remote::new(url, args.token.clone())).transpose()
}

/// The URL of a running gateway: the one that was named, else one that runs here.
///
/// # Errors
/// When the configuration is wrong, or no gateway runs here.
pub(crate) fn address(args: &RunningArgs, output: Output) -> Result<String, Failure> {
    if let Some(url) = &args.url {
        return Ok(url.clone());
    }
    let loaded = load(&sources(&args.config), output)?;
    let owner = loaded.config.data_dir.as_deref().and_then(Directory::owner);
    let listen = owner.and_then(|owner| owner.listen).ok_or_else(|| {
        let failure = Failure::new(Exit::Failed, "gateway_unreachable", "no gateway runs here");
        failure.hint("start one: portmoot serve; or name one: --url http://127.0.0.1:7070")
    })?;
    Ok(format!("http://{}", reachable(&listen)))
}

/// A gateway that runs.
///
/// # Errors
/// As [`address`], and when the URL is wrong.
pub(crate) fn reach_running(args: &RunningArgs, output: Output) -> Result<Remote, Failure> {
    Remote::new(&address(args, output)?, args.token.clone())
}

/// The gateway that owns this configuration's data directory, if one runs and listens.
pub(crate) fn running(loaded: &Loaded, args: &RunningArgs) -> Result<Option<Remote>, Failure> {
    let owner = loaded.config.data_dir.as_deref().and_then(Directory::owner);
    let Some(listen) = owner.and_then(|owner| owner.listen) else { return Ok(None) };
    Remote::new(&format!("http://{}", reachable(&listen)), args.token.clone()).map(Some)
}

/// "Everywhere" is reached on this machine's own address.
fn reachable(listen: &str) -> String {
    let Ok(mut address) = listen.parse::<std::net::SocketAddr>() else { return listen.to_owned() };
    if address.ip().is_unspecified() {
        let loopback: std::net::IpAddr =
            if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
        address.set_ip(loopback);
    }
    address.to_string()
}
