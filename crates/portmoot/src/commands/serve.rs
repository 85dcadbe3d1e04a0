//! Commands `serve` and `stdio`.

use crate::cli::{ServeArgs, StdioArgs};
use crate::commands::config::{load, read_secrets, sources};
use crate::commands::target::owner_url;
use crate::consent;
use crate::process::env;
use crate::remote::Remote;
use crate::run;
use config::{Secrets, Sources};
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::prompt::ProcessTerminal;
use tls::ClientTls;

pub(crate) async fn serve(args: ServeArgs, output: Output) -> Result<Exit, Failure> {
    let sources = Sources { listen: args.listen, ..sources(&args.config) };
    let mut loaded = load(&sources, output)?;
    consent::obtain(&loaded, &mut ProcessTerminal, Some(args.yes), output)?;
    consent::show_commands(&loaded, output);
    let secrets = Secrets::default();
    read_secrets(&mut loaded, &secrets, output)?;
    run::serve(loaded, (sources, secrets), output).await
}

pub(crate) async fn stdio(args: StdioArgs, output: Output) -> Result<Exit, Failure> {
    let gateway = args.gateway;
    let sources = Sources { keep_nothing: true, ..sources(&gateway.running.config) };
    let tls = gateway.running.tls()?;
    let running = match gateway.running.url {
        Some(url) => Some((url, tls)),
        None => running(&sources, &tls)?,
    };
    if let Some((url, tls)) = running {
        let remote = Remote::new(&url, gateway.running.token, tls)?;
        output.message(&format!("serving this client with the running gateway at {url}"));
        remote.relay(&args.topic, tokio::io::stdin(), tokio::io::stdout()).await?;
        return Ok(Exit::Ok);
    }
    let mut loaded = load(&sources, output)?;
    consent::obtain(&loaded, &mut ProcessTerminal, Some(gateway.yes), output)?;
    consent::show_commands(&loaded, output);
    read_secrets(&mut loaded, &Secrets::default(), output)?;
    output.message("serving this client with a gateway of its own");
    run::stdio(loaded, &args.topic).await
}

/// The URL of the gateway that owns the data directory, and what to trust and show there. Files that are named without a data directory are for a gateway of
/// their own.
///
/// # Errors
/// As [`owner_url`].
fn running(sources: &Sources, tls: &ClientTls) -> Result<Option<(String, ClientTls)>, Failure> {
    let has_files = sources.config.is_some() || !sources.mcp_config.is_empty();
    let is_joining = sources.data_dir.is_some() || !has_files;
    if is_joining { owner_url(sources.data_dir(&env), tls) } else { Ok(None) }
}
