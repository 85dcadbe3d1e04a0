//! Commands `start` and `stop`: a gateway in the background, found by its data directory.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use json::visible;
use rustix::process::{Pid, Signal, kill_process};
use store::{Directory, DirectoryOwner};
use terminal::address::url_of;
use tokio::time::sleep;

use crate::cli::{ConfigArgs, ServeArgs};
use crate::commands::config::{data_dir, guest_problem, load, sources};
use crate::consent;
use crate::process::{env, program_name};
use config::ConfigSources;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::Output;
use terminal::prompt::ProcessTerminal;

/// The file in the data directory to which a gateway in the background writes its log.
const LOG_FILE: &str = "gateway.log";
/// Time that a gateway may take until it listens.
const START: Duration = Duration::from_secs(60);
/// Time that a gateway may take until it has ended: its servers end before it.
const END: Duration = Duration::from_secs(120);
/// The interval of looks at the lock of the data directory.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes at the end of the log that are shown if the gateway does not start.
const TAIL_BYTES: u64 = 4 << 10;

pub(crate) async fn start(args: &ServeArgs, output: Output) -> Result<Exit, Failure> {
    if args.tries {
        return Err(Failure::bad_argument(
            "--try is for `portmoot serve`, which removes the directory at its end",
        ));
    }
    // What would end it at once is said here.
    let sources = ConfigSources {
        listen: args.listen.clone(),
        ..sources(&args.config)
    };
    let loaded = load(&sources, output)?;
    consent::obtain(&loaded, &mut ProcessTerminal, Some(args.yes), output)?;
    if let Some(problem) = guest_problem(&loaded) {
        return Err(Failure::configuration(&[problem]));
    }
    let dir = data_dir(
        &loaded,
        "a gateway in the background could not be found again",
    )?;
    if let Some(owner) = Directory::owner(&dir)? {
        return Err(store::StoreError::Locked {
            dir,
            owner: Some(Box::new(owner)),
        }
        .into());
    }
    let (log, at) = open_log(&dir)?;
    let mut child = spawn(args, log)?;
    let spinner = output.spinner("starting the gateway");
    let began = Instant::now();
    let owner = loop {
        let owner = Directory::owner(&dir)?.filter(|owner| owner.listen.is_some());
        if let Some(owner) = owner.filter(|owner| owner.pid == child.id()) {
            break owner;
        }
        let has_ended = child.try_wait().is_ok_and(|ended| ended.is_some());
        if has_ended || began.elapsed() > START {
            let _ = child.kill();
            drop(spinner);
            return Err(not_started(&dir, at));
        }
        sleep(LOOK).await;
    };
    drop(spinner);
    let program = program_name();
    let url = url_of(
        &owner.listen.unwrap_or_default(),
        owner.certificate.is_some(),
    );
    output.message(&format!(
        "the gateway runs at {url}/mcp (process {})\nits log: {}\nto stop it: {program} stop",
        owner.pid,
        visible::line(&dir.join(LOG_FILE).display().to_string())
    ));
    Ok(Exit::Ok)
}

/// The log of a gateway in the background, and where its new lines begin.
fn open_log(dir: &Path) -> Result<(File, u64), Failure> {
    let path = dir.join(LOG_FILE);
    let failed = |error: std::io::Error| {
        Failure::new(
            Exit::Failed,
            "unwritable",
            format!("cannot write {}: {error}", path.display()),
        )
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(failed)?;
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&path)
        .map_err(failed)?;
    let at = log.metadata().map_err(failed)?.len();
    Ok((log, at))
}

/// Starts `serve` with these arguments, in a process group of its own, so that no terminal ends it.
fn spawn(args: &ServeArgs, log: File) -> Result<Child, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(
            Exit::Failed,
            "not_started",
            format!("the gateway cannot be started: {error}"),
        )
    };
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.arg("serve").arg("--yes");
    let paths = |name: &str, path: &PathBuf| [name.into(), path.clone().into_os_string()];
    command.args(
        args.listen
            .iter()
            .flat_map(|listen| ["--listen", listen.as_str()]),
    );
    command.args(
        args.config
            .config
            .iter()
            .flat_map(|path| paths("--config", path)),
    );
    command.args(
        args.config
            .mcp_config
            .iter()
            .flat_map(|path| paths("--mcp-config", path)),
    );
    command.args(
        args.config
            .data_dir
            .iter()
            .flat_map(|path| paths("--data-dir", path)),
    );
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(failed)?)
        .stderr(log)
        .process_group(0);
    command.spawn().map_err(failed)
}

/// Why the gateway has ended, from its log.
fn not_started(dir: &Path, at: u64) -> Failure {
    let path = dir.join(LOG_FILE);
    let mut text = String::new();
    if let Ok(mut log) = File::open(&path) {
        let end = log.metadata().map_or(0, |data| data.len());
        let _ = log.seek(SeekFrom::Start(at.max(end.saturating_sub(TAIL_BYTES))));
        let mut bytes = Vec::new();
        let _ = log.take(TAIL_BYTES).read_to_end(&mut bytes);
        text = visible::lines(&String::from_utf8_lossy(&bytes));
    }
    let message = format!("the gateway did not start:\n{}", text.trim_end());
    Failure::new(Exit::Failed, "not_started", message)
        .hint(format!("its whole log: {}", path.display()))
}

pub(crate) async fn stop(args: &ConfigArgs, output: Output) -> Result<Exit, Failure> {
    let sources = sources(args);
    let Some(dir) = sources.data_dir(&env) else {
        return Err(Failure::new(
            Exit::Usage,
            "no_data_dir",
            "the data directory is not known",
        )
        .hint("name it: --data-dir DIR"));
    };
    let Some(owner) = Directory::owner(&dir)? else {
        let message = format!("no gateway runs with the data directory {}", dir.display());
        return Err(Failure::new(Exit::Failed, "gateway_unreachable", message)
            .hint("one with another directory is stopped with --data-dir DIR"));
    };
    end(&dir, &owner, output).await
}

/// Ends the gateway that owns a data directory, and waits for its end.
async fn end(dir: &Path, owner: &DirectoryOwner, output: Output) -> Result<Exit, Failure> {
    let pid = i32::try_from(owner.pid).ok().and_then(Pid::from_raw);
    let failed = |why: String| Failure::new(Exit::Failed, "not_stopped", why);
    let pid = pid.ok_or_else(|| failed("the process of the gateway is not known".to_owned()))?;
    kill_process(pid, Signal::TERM)
        .map_err(|error| failed(format!("the gateway cannot be stopped: {error}")))?;
    let spinner = output.spinner("stopping the gateway");
    let began = Instant::now();
    while Directory::owner(dir)?.is_some_and(|now| now.pid == owner.pid) {
        if began.elapsed() > END {
            let why = format!("the gateway (process {}) still runs", owner.pid);
            return Err(failed(why).hint(format!("see its log, or end it: kill -9 {}", owner.pid)));
        }
        sleep(LOOK).await;
    }
    drop(spinner);
    output.message(&format!("the gateway (process {}) has ended", owner.pid));
    Ok(Exit::Ok)
}
