//! Start-up of a session: how long its handshake may take, and whether a process that has not answered yet still works.

use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use client::processes::{self, Usage};
use platform::{millis, unix_ms};
use tokio::time::timeout;

use crate::fault::Fault;
use crate::session::Session;

/// The longest start-up of a process that still works.
pub(crate) const START_MAX: Duration = Duration::from_secs(600);
/// How long a process is looked at whose patience is over: at most this, and a quarter of the patience.
const LOOK: Duration = Duration::from_secs(2);
/// A process that uses less than this part of the time meanwhile does not work.
const BUSY_PART: u32 = 20;
/// Programs that install a server before they start it as a child of their own.
const INSTALLERS: [&str; 8] = ["npx", "npm", "pnpm", "yarn", "bunx", "uvx", "uv", "pipx"];

/// What a process does that has not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// It writes to stderr.
    Writes,
    /// Its package manager has yet to start it.
    Installs,
    /// It uses the processor.
    Computes,
}

impl Work {
    /// Why a server is still starting, in words for callers.
    pub(crate) fn reason(self, waited: Duration) -> String {
        let what = match self {
            Self::Writes => "it still writes to its log",
            Self::Installs => "its package manager still works",
            Self::Computes => "it still works",
        };
        format!("has been starting for {} s: {what}", waited.as_secs())
    }
}

/// Waits for the end of a handshake: for as long as `patience`, and while the session's process still works for longer, at most
/// [`START_MAX`]. `slow` is called each time that the patience is over and the wait goes on.
pub(crate) async fn bounded(
    session: &Session,
    patience: Duration,
    handshake: impl Future<Output = Result<(), Fault>>,
    mut slow: impl FnMut(Work, Duration),
) -> Result<(), Fault> {
    let mut handshake = pin!(handshake);
    let began = Instant::now();
    loop {
        if let Ok(done) = timeout(patience, &mut handshake).await {
            return done;
        }
        let look = LOOK.min(patience / 4);
        let before = usage(session).await;
        if let Ok(done) = timeout(look, &mut handshake).await {
            return done;
        }
        let now = usage(session).await;
        let worked = now.processor_time.saturating_sub(before.processor_time);
        let waited = began.elapsed();
        let work = if writes(session, patience / 2) {
            Some(Work::Writes)
        } else if is_installing(session, &now) {
            Some(Work::Installs)
        } else {
            (worked >= look / BUSY_PART).then_some(Work::Computes)
        };
        match work.filter(|_| waited < START_MAX && now.processes > 0) {
            Some(work) => slow(work, waited),
            None => return Err(Fault::Timeout),
        }
    }
}

/// What the processes of a session take now.
async fn usage(session: &Session) -> Usage {
    let Some(root) = session.process() else { return Usage::default() };
    // It reads the table of all processes.
    let usages = tokio::task::spawn_blocking(move || processes::usage(&[root])).await;
    usages.ok().and_then(|mut usages| usages.pop()).unwrap_or_default()
}

/// Whether the process of a session has written to stderr in the last time.
fn writes(session: &Session, within: Duration) -> bool {
    let newest = session.process().and_then(|root| session.setup.environment.stderr.newest_ms(root.started));
    newest.is_some_and(|at_ms| unix_ms().saturating_sub(at_ms) < millis(within))
}

/// Whether the command is a package manager that has started no server yet.
fn is_installing(session: &Session, usage: &Usage) -> bool {
    let command = session.setup.spec.config.transport.child().map(|child| Path::new(&child.command));
    let name = command.and_then(|command| command.file_stem()?.to_str());
    usage.processes == 1 && name.is_some_and(|name| INSTALLERS.contains(&name))
}
