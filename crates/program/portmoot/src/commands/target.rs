//! Gateway selection for commands: the one of `--url`, else the one that owns the data directory,
//! else one in this process.

use std::path::PathBuf;

use model::Digest;
use store::{Directory, DirectoryOwner};
use tls::ClientTls;

use crate::cli::{GatewayArgs, RunningArgs};
use crate::commands::config::{load, read_secrets, sources};
use crate::consent;
use crate::process::env;
use crate::remote::{Endpoint, Remote};
use crate::run;
use config::{Loaded, Secrets};
use terminal::address::url_of;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::prompt::ProcessTerminal;

/// The gateway for a command.
pub(crate) enum Target {
    /// A running one.
    Running(Box<Running>),
    /// None is running: the configuration for one in this process.
    Own(Box<Loaded>),
}

/// A running gateway, and how a command authenticates.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) url: String,
    /// The token of the command line, else the operator key of the data directory.
    pub(crate) token: Option<String>,
    /// Authorities that are trusted, and the certificate that is shown, if the URL begins with
    /// `https`.
    pub(crate) tls: ClientTls,
    /// Entry of the gateway in the data directory, if it was found there.
    pub(crate) owner: Option<DirectoryOwner>,
}

impl Running {
    /// The gateway that owns this data directory.
    ///
    /// # Errors
    /// When another user runs it.
    pub(crate) fn of_directory(
        dir: Option<PathBuf>,
        token: Option<&str>,
        tls: &ClientTls,
    ) -> Result<Option<Running>, Failure> {
        let Some(dir) = dir else { return Ok(None) };
        let Some((url, tls)) = owner_url(Some(dir.clone()), tls)? else {
            return Ok(None);
        };
        let token = token
            .map(str::to_owned)
            .or_else(|| store::operator_key(&dir));
        let owner = Directory::owner(&dir)?;
        Ok(Some(Running {
            url,
            token,
            tls,
            owner,
        }))
    }

    /// Its endpoint.
    ///
    /// # Errors
    /// When the URL is not valid.
    pub(crate) fn endpoint(self) -> Result<Remote, Failure> {
        Remote::new(&self.url, self.token, self.tls)
    }
}

impl Target {
    /// The gateway of `--url`, else the one that owns the data directory of the configuration. A
    /// running gateway needs no valid configuration of the command. `yes` is that option of a
    /// command which can do its work without a running gateway.
    ///
    /// # Errors
    /// When no gateway is running and the configuration is not valid; when consent to a found file
    /// is missing that names the data directory, or that the command would use; when another user
    /// runs the gateway.
    pub(crate) fn of(
        args: &RunningArgs,
        yes: Option<bool>,
        output: Output,
    ) -> Result<Target, Failure> {
        let token = args.token.as_deref();
        let tls = args.tls()?;
        if let Some(url) = args.url.clone() {
            let running = Running {
                url,
                token: args.token.clone(),
                tls,
                owner: None,
            };
            return Ok(Target::Running(Box::new(running)));
        }
        let sources = sources(&args.config);
        if let Some(running) = Running::of_directory(sources.data_dir(&env), token, &tls)? {
            return Ok(Target::Running(Box::new(running)));
        }
        let loaded = load(&sources, output)?;
        let names_data_dir = loaded
            .found
            .as_ref()
            .is_some_and(|found| found.names_data_dir);
        if yes.is_some() || (names_data_dir && args.config.data_dir.is_none()) {
            consent::obtain(&loaded, &mut ProcessTerminal, yes, output)?;
        }
        Ok(
            match Running::of_directory(loaded.config.data_dir.clone(), token, &tls)? {
                Some(running) => Target::Running(Box::new(running)),
                None => Target::Own(Box::new(loaded)),
            },
        )
    }
}

/// The URL of the gateway that owns this data directory, and what to trust and show there: that it
/// is trusted follows from the directory, which names its certificate.
///
/// # Errors
/// When the directory may be another user's: its gateway would receive the token of this command.
pub(crate) fn owner_url(
    dir: Option<PathBuf>,
    tls: &ClientTls,
) -> Result<Option<(String, ClientTls)>, Failure> {
    let Some(owner) = dir.map(|dir| Directory::owner(&dir)).transpose()?.flatten() else {
        return Ok(None);
    };
    let certificate = owner.certificate.and_then(|text| text.parse().ok());
    let pinned = certificate.map(|Digest(sha256)| tls.pinning(sha256));
    let url = |listen: String| url_of(&listen, pinned.is_some());
    Ok(owner
        .listen
        .map(url)
        .map(|url| (url, pinned.unwrap_or_else(|| tls.clone()))))
}

/// The endpoint of the selected gateway.
///
/// # Errors
/// When the URL or the configuration is not valid, consent is missing, or the gateway in this
/// process does not start.
pub(crate) fn resolve(args: &GatewayArgs, output: Output) -> Result<Box<dyn Endpoint>, Failure> {
    match Target::of(&args.running, Some(args.yes), output)? {
        Target::Running(running) => Ok(Box::new(running.endpoint()?)),
        // Servers that start anew every few seconds are of no use.
        Target::Own(_) if output.is_watched() => Err(no_gateway()),
        Target::Own(mut loaded) => {
            output.message("no gateway is running: the servers are started for this command only");
            consent::show_secret_commands(&loaded, output);
            consent::show_commands(&loaded.config, output);
            read_secrets(&mut loaded, &Secrets::default(), output)?;
            run::in_process(*loaded)
        }
    }
}

/// A running gateway.
///
/// # Errors
/// When the configuration is not valid, or no gateway is running.
pub(crate) fn running(args: &RunningArgs, output: Output) -> Result<Running, Failure> {
    match Target::of(args, None, output)? {
        Target::Running(running) => Ok(*running),
        Target::Own(_) => Err(no_gateway()),
    }
}

fn no_gateway() -> Failure {
    let message = "no gateway is running with this data directory";
    Failure::new(Exit::Failed, "gateway_unreachable", message)
        .hint("start one with: portmoot serve; or choose one with --url http://127.0.0.1:7070; what a gateway needs is checked by: portmoot doctor")
}

/// The endpoint of a running gateway.
///
/// # Errors
/// As [`running`], and when the URL is not valid.
pub(crate) fn running_endpoint(args: &RunningArgs, output: Output) -> Result<Remote, Failure> {
    running(args, output)?.endpoint()
}
