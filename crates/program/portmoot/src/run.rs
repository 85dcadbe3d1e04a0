//! Gateways run by commands: `serve`, `stdio`, and one inside the process of another command.

mod banner;
mod changes;
mod clustered;
mod console;
mod descriptors;
mod program_file;
mod reload;
mod running;
mod served;
mod sign_in;
mod watch;

use std::fs::File;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use api::{ConfigFile, Reload};
pub(crate) use clustered::{cluster_key, nats_config};
use config::Config;
use model::{Refusal, RefusalCode};
use platform::UnusedMemory;
use program_file::this_program;
use reload::{ConfigReader, ReloadedConfig};
use running::Gateway;
use served::Served;
use tokio::io::DuplexStream;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::consent;
use crate::process::env;
use crate::remote::{Endpoint, GatewayConnection, PIPE_BYTES, Serving};
use config::{ConfigSources, Loaded, Secrets};
use terminal::address::url_of;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::{LOG_TARGET, Output};

/// The time between looks at the memory that the process no longer uses.
const MEMORY_LOOK: Duration = Duration::from_secs(5);

/// Runs the gateway until SIGTERM or SIGINT. On SIGHUP, or when a file changes, it reloads the
/// configuration from `sources`, and reads `secrets` anew.
///
/// # Errors
/// When the gateway cannot start.
pub(crate) async fn serve(
    loaded: Loaded,
    sources: ConfigSources,
    secrets: Secrets,
    output: Output,
) -> Result<Exit, Failure> {
    survive_limits()?;
    tokio::spawn(give_back_memory());
    // Before SIGHUP is listened for: this asks whether the process ignores it.
    let terminal = StartTerminal::of_process();
    let mut hangup = listen(SignalKind::hangup())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    // Before the banner: what changes once people see it is a change.
    let watched = loaded.watched();
    let mut files = watch::WatchedFiles::new(watched.clone());
    let (file, mut reloads) = config_file(&loaded, &sources);
    let joined = Served::start(loaded.config.clone(), file, output);
    let mut gateway = tokio::select! {
        joined = joined => joined?,
        _ = terminate.recv() => return Ok(Exit::Ok),
        _ = interrupt.recv() => return Ok(Exit::Ok),
    };
    gateway.reads(&watched, None)?;
    greet(&gateway, &loaded, output).await?;
    let reader = Arc::new(ConfigReader {
        sources,
        secrets,
        agreed: loaded.found,
        output,
    });
    let mut config = loaded.config;
    loop {
        let mut asked = None;
        tokio::select! {
            () = files.changed() => {}
            _ = hangup.recv() => if terminal.is_gone() {
                output.message("the terminal was closed; to go on without one: portmoot start");
                break;
            },
            Some(reload) = reloads.recv() => asked = Some(reload),
            failed = gateway.failed() => return Err(failed),
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
        let reader = Arc::clone(&reader);
        let before = config.clone();
        let is_open = !gateway.requires_token();
        // A file system that does not answer delays the reload, not the end.
        let reading = tokio::task::spawn_blocking(move || reader.reload(&before, is_open));
        let reloaded = tokio::select! {
            reloaded = reading => reloaded,
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        };
        let end = match reloaded {
            Ok(Ok(ReloadedConfig {
                config: after,
                watched,
            })) => {
                announce(&gateway, &watched, None);
                files.watch(watched);
                if after != config {
                    changes::log(&config, &after);
                    gateway.reload(after.clone());
                    config = after;
                }
                Ok(())
            }
            Ok(Err(failure)) => {
                // What the API asked for is undone, and the files say again what they said.
                if asked.is_none() {
                    announce(&gateway, files.paths(), Some(&failure));
                }
                output.failure(&failure);
                output.warn("the reload failed: the gateway keeps its current configuration");
                Err(refused(&failure))
            }
            // It panicked, which has been printed. The caller learns that its wish was dropped.
            Err(_) => continue,
        };
        if let Some(asked) = asked {
            // A caller that has left needs no answer.
            let _ = asked.send(end);
        }
    }
    output.message("stopping");
    gateway.stop().await;
    Ok(Exit::Ok)
}

/// Listens, and prints where, and what comes next.
async fn greet(gateway: &Served, loaded: &Loaded, output: Output) -> Result<(), Failure> {
    let address = gateway.listen().await?;
    consent::show_commands(&loaded.config, output);
    let url = url_of(&address.to_string(), loaded.config.doors.tls.is_some());
    let callers = banner::Callers {
        need_token: gateway.requires_token(),
        issued: gateway.issued(),
        cluster: gateway.cluster(),
    };
    let text = banner::text(loaded, &url, &callers);
    output.banner(&text, &format!("listening on {url}/mcp"));
    if loaded.config.data_dir.is_none() {
        output.warn("nothing is kept after the end, such as tokens, grants, proposals and the audit log: set HOME, or choose a directory with --data-dir DIR");
    }
    Ok(())
}

/// The terminal at which the gateway was started. Its end is a hangup too, and not meant as a wish
/// to reload.
struct StartTerminal {
    is_controlled: bool,
}

impl StartTerminal {
    /// The terminal of this process; none if hangups are ignored (`nohup`).
    fn of_process() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or_default();
        // SIGHUP is signal 1, the lowest bit of the mask.
        let ignores_hangup = ignored & 1 != 0;
        Self {
            is_controlled: !ignores_hangup && Self::opens(),
        }
    }

    /// Whether it was closed.
    fn is_gone(&self) -> bool {
        self.is_controlled && !Self::opens()
    }

    fn opens() -> bool {
        File::open("/dev/tty").is_ok()
    }
}

/// Writes for commands which files the gateway reads, and why it did not take over what they say
/// now.
fn announce(gateway: &Served, paths: &[PathBuf], failed: Option<&Failure>) {
    if let Err(failure) = gateway.reads(paths, failed) {
        tracing::warn!(target: LOG_TARGET, error = failure.message, "commands may not find this gateway");
    }
}

/// The configuration file that the API may change, and its wishes that the gateway reads it again.
/// A file that was found, and not named, may be another person's: what the operator consented to
/// stays.
fn config_file(
    loaded: &Loaded,
    sources: &ConfigSources,
) -> (Option<Arc<ConfigFile>>, mpsc::Receiver<Reload>) {
    if loaded.found.is_none()
        && let Some(path) = sources.edited_file(&env)
    {
        let has_client_files = !sources.mcp_config.is_empty();
        let (file, reloads) = ConfigFile::new(path, has_client_files, env);
        return (Some(Arc::new(file)), reloads);
    }
    // Without a sender: nothing ever comes from it.
    let (_, reloads) = mpsc::channel(1);
    (None, reloads)
}

/// A failed reload as the refusal of who asked for it.
fn refused(failure: &Failure) -> Refusal {
    let problems: Vec<&str> = failure
        .problems
        .iter()
        .map(|problem| problem.message.as_str())
        .collect();
    let why = if problems.is_empty() {
        failure.message.clone()
    } else {
        problems.join("; ")
    };
    Refusal::new(
        RefusalCode::Conflict,
        format!("the gateway does not take it over: {why}"),
    )
    .hint("nothing was changed")
}

/// Serves one client on stdin and stdout with a gateway in this process.
///
/// # Errors
/// When the gateway cannot start or the pipe breaks.
pub(crate) async fn stdio(loaded: Loaded, topic: &str) -> Result<Exit, Failure> {
    survive_limits()?;
    tokio::spawn(give_back_memory());
    let mut terminate = listen(SignalKind::terminate())?;
    let gateway = start(loaded.config)?;
    let mut serving = std::pin::pin!(gateway.stdio(topic, tokio::io::stdin(), tokio::io::stdout()));
    let served = tokio::select! {
        served = &mut serving => served,
        _ = terminate.recv() => tokio::select! {
            served = &mut serving => served,
            () = gateway.drain() => Ok(()),
        },
    };
    gateway.stop().await;
    served.map(|()| Exit::Ok)
}

/// Starts a gateway in this process for one command. It listens on no port.
///
/// # Errors
/// When the gateway cannot start.
pub(crate) fn in_process(loaded: Loaded) -> Result<Box<dyn Endpoint>, Failure> {
    let mut config = loaded.config;
    // The user of the command owns the configuration, and acts as the local user.
    let identity = Arc::make_mut(&mut config.identity);
    identity.participants.clear();
    identity.issuers.clear();
    identity.login = None;
    config.serving.clear();
    config.telemetry = None;
    config.result_limits.clear();
    config.data_dir = None;
    config.cluster = None;
    config.key = None;
    config.cluster = None;
    // A command lists once: it waits for every server that may still start.
    let longest = config
        .servers
        .iter()
        .map(|server| server.timeouts.start)
        .max()
        .unwrap_or_default();
    for topic in &mut identity.topics {
        topic.list_wait = topic.list_wait.max(longest);
    }
    let gateway = start(config)?;
    Ok(Box::new(InProcess {
        gateway: Arc::new(gateway),
    }))
}

struct InProcess {
    gateway: Arc<Gateway>,
}

impl Endpoint for InProcess {
    fn connect(
        &self,
    ) -> Pin<Box<dyn Future<Output = Result<GatewayConnection, Failure>> + Send + '_>> {
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        let gateway = Arc::clone(&self.gateway);
        tokio::spawn(async move { gateway.connection(far).await });
        Box::pin(async move { Ok(Box::new(near) as GatewayConnection) })
    }

    fn serve(&self, topic: &str, pipe: DuplexStream) -> Serving {
        let gateway = Arc::clone(&self.gateway);
        let topic = topic.to_owned();
        let (input, output) = tokio::io::split(pipe);
        Box::pin(async move { gateway.stdio(&topic, input, output).await })
    }

    fn is_own(&self) -> bool {
        true
    }
}

fn start(config: Config) -> Result<Gateway, Failure> {
    Gateway::start(config, this_program(), None)
}

/// Has a full quota be an error of the write, and no end of the program: a limit of the size of
/// files, or of time, that another program of the user sets for this one would end it.
fn survive_limits() -> Result<(), Failure> {
    for number in [rustix::process::Signal::XFSZ, rustix::process::Signal::XCPU] {
        // It stays caught after this.
        drop(listen(SignalKind::from_raw(number.as_raw()))?);
    }
    Ok(())
}

/// Gives back what floods have left, for as long as the process runs.
async fn give_back_memory() {
    let mut unused = UnusedMemory::default();
    loop {
        tokio::time::sleep(MEMORY_LOOK).await;
        // The allocator is locked meanwhile, piece by piece: no worker thread waits for it.
        let looked = tokio::task::spawn_blocking(move || {
            unused.give_back();
            unused
        });
        let Ok(after) = looked.await else { return };
        unused = after;
    }
}

fn listen(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| {
        Failure::new(
            Exit::Failed,
            "no_signals",
            format!("cannot wait for signals: {error}"),
        )
    })
}
