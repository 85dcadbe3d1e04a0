//! Commands `serve` and `stdio`.

use crate::cli::{ServeArgs, StdioArgs};
use crate::commands::config::{load, sources};
use crate::config::Sources;
use crate::consent;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::remote::Remote;
use crate::run;
use crate::terminal::ProcessTerminal;

pub(crate) async fn serve(args: ServeArgs, output: Output) -> Result<Exit, Failure> {
    let sources = Sources { listen: args.listen, ..sources(&args.config) };
    let mut loaded = load(&sources, output)?;
    consent::obtain(&mut loaded.config, &mut ProcessTerminal, args.yes, output)?;
    run::serve(loaded, sources, output).await
}

pub(crate) async fn stdio(args: StdioArgs, output: Output) -> Result<Exit, Failure> {
    let gateway = args.gateway;
    if let Some(url) = &gateway.running.url {
        let remote = Remote::new(url, gateway.running.token)?;
        remote.relay(&args.topic, tokio::io::stdin(), tokio::io::stdout()).await?;
        return Ok(Exit::Ok);
    }
    let sources = Sources { keep_nothing: true, ..sources(&gateway.running.config) };
    let mut loaded = load(&sources, output)?;
    consent::obtain(&mut loaded.config, &mut ProcessTerminal, gateway.yes, output)?;
    run::stdio(loaded, &args.topic).await
}
