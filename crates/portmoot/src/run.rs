//! Where the command line hands over to the gateway. Must not know how a gateway works inside.

mod relay;
mod running;
mod watch;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use gateway::config::Config;
use running::{Gateway, StartError};
use tokio::signal::unix::{SignalKind, signal};

use crate::config::{Loaded, Sources};
use crate::consent;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate::{Source, Stream};
use crate::machine::{called, env};
use crate::output::Output;

pub(crate) use relay::stdio_door;

/// Bytes that may wait in the pipe to a gateway in this process.
const PIPE_BYTES: usize = 64 * 1024;

/// Runs the gateway until it is told to stop. `sources` gives the configuration again for a reload.
///
/// # Errors
/// When it cannot start.
pub(crate) async fn serve(loaded: Loaded, sources: Sources, output: Output) -> Result<Exit, Failure> {
    let mut hangup = signal(SignalKind::hangup()).map_err(|error| no_signals(&error))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| no_signals(&error))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| no_signals(&error))?;
    let gateway = start(loaded.config.clone())?;
    let address = gateway.listen().await.map_err(|error| failed(&error))?;
    output.talk(&welcome(&loaded, &address.to_string(), gateway.requires_token()));
    let mut files = watch::Files::new(loaded.files);
    let mut config = loaded.config;
    loop {
        tokio::select! {
            () = files.changed() => {}
            _ = hangup.recv() => {}
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
        match reload(&sources, &config, output) {
            Ok(after) if after == config => {}
            Ok(after) => {
                output.talk("the configuration has changed: taken over");
                gateway.reload(after.clone());
                config = after;
            }
            Err(failure) => {
                output.failure(&failure);
                output.warn("the configuration stays as it was");
            }
        }
    }
    output.talk("stopping");
    gateway.stop().await;
    Ok(Exit::Ok)
}

/// What a person needs next.
fn welcome(loaded: &Loaded, address: &str, tokens: bool) -> String {
    let called = called();
    let names: Vec<&str> = loaded
        .config
        .servers
        .iter()
        .filter(|server| server.enabled)
        .map(|server| server.name.as_str())
        .collect();
    let servers = match names.as_slice() {
        [] => "none".to_owned(),
        _ if loaded.demo => "demo (nothing is configured)".to_owned(),
        names => names.join(", "),
    };
    let callers = if tokens {
        format!("need a token: {called} token new NAME")
    } else {
        "need no token: loopback only, as the local user".to_owned()
    };
    let next = if loaded.demo {
        format!(
            "{called} tools call demo_echo text=hello\n           {called} serve --mcp-config FILE.json     your own servers, from a client's file"
        )
    } else {
        format!("{called} servers ls")
    };
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "portmoot {version}\n\n  MCP      http://{address}/mcp     or on a pipe: {called} stdio\n  servers  {servers}\n  callers  {callers}\n  next     {next}\n",
    )
}

/// The configuration again, after a file changed or on SIGHUP: all of it or nothing. What would need consent is left
/// disabled unless it was agreed to before.
///
/// # Errors
/// What is wrong with it; the gateway goes on with the one that it has.
fn reload(sources: &Sources, before: &Config, output: Output) -> Result<Config, Failure> {
    let loaded = sources.load(&env).map_err(|problems| Failure::configuration(&problems))?;
    let mut after = loaded.config;
    for name in consent::carry_over(before, &mut after) {
        output.warn(&format!("server `{name}` needs your consent: restart to give it"));
    }
    let started = after.servers.iter().filter(|server| server.enabled && !before.servers.contains(server));
    started.for_each(|server| output.talk(&consent::describe(server)));
    Ok(after)
}

/// Serves one client on stdin and stdout with a gateway of its own.
///
/// # Errors
/// When it cannot start.
pub(crate) async fn stdio(loaded: Loaded, topic: &str, _output: Output) -> Result<Exit, Failure> {
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| no_signals(&error))?;
    let gateway = start(loaded.config)?;
    let served = tokio::select! {
        served = gateway.stdio(topic, tokio::io::stdin(), tokio::io::stdout()) => served,
        _ = terminate.recv() => Ok(()),
    };
    gateway.stop().await;
    served.map_err(|error| Failure::new(Exit::Failed, "pipe", format!("the client's pipe: {error}")))?;
    Ok(Exit::Ok)
}

/// A gateway in this process, on no port, for one command, which waits this long for servers that are starting.
///
/// # Errors
/// When it cannot start.
pub(crate) async fn in_process(loaded: Loaded, patience: Duration) -> Result<Box<dyn Source>, Failure> {
    let mut config = loaded.config;
    // Whoever runs the command owns the configuration: on this pipe it is the local user.
    config.participants.clear();
    config.data_dir = None;
    let gateway = start(config)?;
    gateway.settled(patience).await;
    Ok(Box::new(Inside { gateway: Arc::new(gateway) }))
}

struct Inside {
    gateway: Arc<Gateway>,
}

impl Source for Inside {
    fn connect(&self) -> Pin<Box<dyn Future<Output = Result<Stream, Failure>> + Send + '_>> {
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        let gateway = Arc::clone(&self.gateway);
        tokio::spawn(async move { gateway.connection(far).await });
        Box::pin(async move { Ok(Box::new(near) as Stream) })
    }

    fn authority(&self) -> &str {
        "localhost"
    }

    fn token(&self) -> Option<&str> {
        None
    }
}

fn start(config: Config) -> Result<Gateway, Failure> {
    let exe = std::env::current_exe().ok();
    Gateway::start(config, exe).map_err(|error| failed(&error))
}

fn failed(error: &StartError) -> Failure {
    match error {
        StartError::Store(error) => Failure::new(Exit::Failed, error.code(), error.to_string())
            .hint("another gateway may be using it; name another with --data-dir"),
        StartError::Refused(refusal) => {
            let failure = Failure::new(Exit::Refused, refusal.code.as_str(), refusal.message.clone());
            match &refusal.hint {
                Some(hint) => failure.hint(hint.clone()),
                None => failure,
            }
        }
        StartError::Listen { .. } => Failure::new(Exit::Failed, "cannot_listen", error.to_string())
            .hint("another program may be using the port; choose one with --listen 127.0.0.1:PORT"),
    }
}

fn no_signals(error: &std::io::Error) -> Failure {
    Failure::new(Exit::Failed, "no_signals", format!("signals cannot be waited for: {error}"))
}
