//! Gateway selection for commands: the one of `--url`, else the one that owns the data directory, else one in this process.

use std::time::Duration;

use store::Directory;

use crate::cli::{GatewayArgs, RunningArgs};
use crate::commands::config::{load, sources};
use crate::config::{Loaded, Sources};
use crate::consent;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::remote::{Endpoint, Remote};
use crate::run;
use crate::terminal::ProcessTerminal;

/// The endpoint of the selected gateway. A gateway in this process gets `start_wait` to start all its servers.
///
/// # Errors
/// When the URL or the configuration is not valid, consent is missing, or the gateway in this process does not start.
pub(crate) async fn resolve(
    args: &GatewayArgs,
    start_wait: Duration,
    output: Output,
) -> Result<Box<dyn Endpoint>, Failure> {
    if let Some(remote) = explicit(&args.running)? {
        return Ok(Box::new(remote));
    }
    let sources = sources(&args.running.config);
    let mut loaded = load(&sources, output)?;
    if let Some(remote) = local(&loaded, &args.running)? {
        return Ok(Box::new(remote));
    }
    consent::obtain(&mut loaded.config, &mut ProcessTerminal, args.yes, output)?;
    let quiet = Sources { keep_nothing: true, ..sources };
    loaded.config.data_dir.clone_from(&quiet.data_dir);
    run::in_process(loaded, start_wait).await
}

/// The gateway behind `--url`.
pub(crate) fn explicit(args: &RunningArgs) -> Result<Option<Remote>, Failure> {
    args.url.as_ref().map(|url| Remote::new(url, args.token.clone())).transpose()
}

/// The URL of a running gateway: `--url`, else the gateway that owns the data directory.
///
/// # Errors
/// When the configuration is not valid, or no gateway is running.
pub(crate) fn running_url(args: &RunningArgs, output: Output) -> Result<String, Failure> {
    if let Some(url) = &args.url {
        return Ok(url.clone());
    }
    let loaded = load(&sources(&args.config), output)?;
    let owner = loaded.config.data_dir.as_deref().and_then(Directory::owner);
    let listen = owner.and_then(|owner| owner.listen).ok_or_else(|| {
        let failure = Failure::new(
            Exit::Failed,
            "gateway_unreachable",
            "no gateway is running with this data directory",
        );
        failure.hint("start one with: portmoot serve; or choose one with --url http://127.0.0.1:7070")
    })?;
    Ok(format!("http://{}", connectable(&listen)))
}

/// The endpoint of a running gateway.
///
/// # Errors
/// As [`running_url`], and when the URL is not valid.
pub(crate) fn running_endpoint(args: &RunningArgs, output: Output) -> Result<Remote, Failure> {
    Remote::new(&running_url(args, output)?, args.token.clone())
}

/// The gateway that owns this configuration's data directory, if one is running and listens.
pub(crate) fn local(loaded: &Loaded, args: &RunningArgs) -> Result<Option<Remote>, Failure> {
    let owner = loaded.config.data_dir.as_deref().and_then(Directory::owner);
    let Some(listen) = owner.and_then(|owner| owner.listen) else { return Ok(None) };
    Remote::new(&format!("http://{}", connectable(&listen)), args.token.clone()).map(Some)
}

/// Replaces an unspecified listen address, such as 0.0.0.0, by loopback.
fn connectable(listen: &str) -> String {
    let Ok(mut address) = listen.parse::<std::net::SocketAddr>() else { return listen.to_owned() };
    if address.ip().is_unspecified() {
        let loopback: std::net::IpAddr =
            if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
        address.set_ip(loopback);
    }
    address.to_string()
}
