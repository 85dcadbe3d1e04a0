//! Commands `serve` and `stdio`.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use crate::cli::{ServeArgs, StdioArgs};
use crate::commands::config::{alone, guest_problem, load, read_secrets, sources};
use crate::commands::target::owner_url;
use crate::consent;
use crate::process::env;
use crate::remote::Remote;
use crate::run;
use config::{ConfigSources, Secrets};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::prompt::ProcessTerminal;
use tls::ClientTls;

/// A data directory for one run, which is removed with the value.
struct TrialDirectory(PathBuf);

impl TrialDirectory {
    fn new() -> Result<Self, Failure> {
        let name = format!(
            "portmoot-try-{:016x}",
            u64::from_le_bytes(platform::random())
        );
        let dir = std::env::temp_dir().join(name);
        DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .map_err(|error| {
                Failure::new(
                    Exit::Failed,
                    "unwritable",
                    format!("cannot create {}: {error}", dir.display()),
                )
            })?;
        Ok(Self(dir))
    }
}

impl Drop for TrialDirectory {
    fn drop(&mut self) {
        // Under another name no thread that still writes finds it.
        let ended = self.0.with_extension("ended");
        let dir = if std::fs::rename(&self.0, &ended).is_ok() {
            &ended
        } else {
            &self.0
        };
        let _ = std::fs::remove_dir_all(dir);
    }
}

pub(crate) async fn serve(args: ServeArgs, output: Output) -> Result<Exit, Failure> {
    let trial = args.tries.then(TrialDirectory::new).transpose()?;
    let mut sources = ConfigSources {
        listen: args.listen,
        ..sources(&args.config)
    };
    if let Some(trial) = &trial {
        sources.data_dir = Some(trial.0.clone());
    }
    let mut loaded = load(&sources, output)?;
    consent::obtain(&loaded, &mut ProcessTerminal, Some(args.yes), output)?;
    if let Some(problem) = guest_problem(&loaded) {
        return Err(Failure::configuration(&[problem]));
    }
    consent::show_secret_commands(&loaded, output);
    let secrets = Secrets::default();
    read_secrets(&mut loaded, &secrets, output)?;
    run::serve(loaded, sources, secrets, output).await
}

pub(crate) async fn stdio(args: StdioArgs, output: Output) -> Result<Exit, Failure> {
    let gateway = args.gateway;
    let sources = ConfigSources {
        keep_nothing: true,
        ..sources(&gateway.running.config)
    };
    let tls = gateway.running.tls()?;
    let running = match gateway.running.url {
        Some(url) => Some((url, tls)),
        None => running(&sources, &tls)?,
    };
    if let Some((url, tls)) = running {
        let remote = Remote::new(&url, gateway.running.token, tls)?;
        output.message(&format!(
            "serving this client with the running gateway at {url}"
        ));
        remote
            .relay(&args.topic, tokio::io::stdin(), tokio::io::stdout())
            .await?;
        return Ok(Exit::Ok);
    }
    let mut loaded = load(&sources, output)?;
    alone(
        &loaded,
        "a client on a pipe is served by a node of the cluster",
    )?;
    consent::obtain(&loaded, &mut ProcessTerminal, Some(gateway.yes), output)?;
    consent::show_secret_commands(&loaded, output);
    consent::show_commands(&loaded.config, output);
    read_secrets(&mut loaded, &Secrets::default(), output)?;
    output.message("serving this client with a gateway of its own");
    run::stdio(loaded, &args.topic).await
}

/// The URL of the gateway that owns the data directory, and what to trust and show there. Files
/// that are named without a data directory are for a gateway of their own.
///
/// # Errors
/// As [`owner_url`].
fn running(
    sources: &ConfigSources,
    tls: &ClientTls,
) -> Result<Option<(String, ClientTls)>, Failure> {
    let has_files = sources.config.is_some() || !sources.mcp_config.is_empty();
    let is_joining = sources.data_dir.is_some() || !has_files;
    if is_joining {
        owner_url(sources.data_dir(&env), tls)
    } else {
        Ok(None)
    }
}
