//! Start-up of a session: how long its handshake may take, and whether a process that has not
//! answered yet still works.

use std::path::Path;
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use client::processes::{self, Usage};
use platform::{millis, unix_ms};
use tokio::time::timeout;

use crate::fault::Fault;
use crate::session::Session;

/// The longest start-up of a process that still works.
pub(crate) const START_MAX: Duration = Duration::from_secs(600);
/// How long a process is looked at whose patience is over: at most this, and a quarter of the
/// patience.
const LOOK: Duration = Duration::from_secs(2);
/// When a process is looked at that has not answered, long before its patience is over: after this,
/// and at most a quarter of the patience.
const FIRST_LOOK: Duration = Duration::from_secs(4);
/// A process that uses less than this part of the time meanwhile does not work.
const BUSY_PART: u32 = 20;
/// Programs that install a server before they start it as a child of their own.
const INSTALLERS: [&str; 8] = ["npx", "npm", "pnpm", "yarn", "bunx", "uvx", "uv", "pipx"];

/// The activity of a process that has not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// It writes to stderr.
    Writes,
    /// Its package manager has yet to start it.
    Installs,
    /// It uses the processor.
    Computes,
}

/// Observation of a process that has not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// It does nothing: others may start beside it.
    Idles,
    /// Its patience is over, but it still works, so that the wait goes on.
    Works(Work),
}

/// Outcome of a look at a process.
enum Look {
    /// The handshake has ended meanwhile.
    Ended(Result<(), Fault>),
    /// It has not: what the process does, if it does anything, and whether it runs.
    Waits { work: Option<Work>, runs: bool },
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

/// Waits for the end of a handshake: for as long as `patience`, and while the session's process
/// still works for longer, at most [`START_MAX`]. `watch` is called with what is seen of the
/// process, and for how long it has been starting.
pub(crate) async fn bounded(
    session: &Session,
    patience: Duration,
    handshake: impl Future<Output = Result<(), Fault>>,
    mut watch: impl FnMut(Sight, Duration),
) -> Result<(), Fault> {
    let mut handshake = pin!(handshake);
    let began = Instant::now();
    let first = FIRST_LOOK.min(patience / 4);
    if let Ok(done) = timeout(first, &mut handshake).await {
        return done;
    }
    match look(session, handshake.as_mut(), LOOK.min(patience / 8), first).await {
        Look::Ended(done) => return done,
        Look::Waits { work: None, .. } => watch(Sight::Idles, began.elapsed()),
        Look::Waits { .. } => {}
    }
    let mut rest = patience.saturating_sub(began.elapsed());
    loop {
        if let Ok(done) = timeout(rest, &mut handshake).await {
            return done;
        }
        rest = patience;
        let seen = look(
            session,
            handshake.as_mut(),
            LOOK.min(patience / 4),
            patience / 2,
        )
        .await;
        let waited = began.elapsed();
        match seen {
            Look::Ended(done) => return done,
            Look::Waits {
                work: Some(work),
                runs: true,
            } if waited < START_MAX => {
                watch(Sight::Works(work), waited);
            }
            Look::Waits { .. } => return Err(Fault::Timeout),
        }
    }
}

/// Looks at the process of a session for this long. It writes if it has written to stderr within
/// `lately`.
async fn look(
    session: &Session,
    handshake: Pin<&mut impl Future<Output = Result<(), Fault>>>,
    length: Duration,
    lately: Duration,
) -> Look {
    let before = usage(session).await;
    if let Ok(done) = timeout(length, handshake).await {
        return Look::Ended(done);
    }
    let now = usage(session).await;
    let worked = now.processor_time.saturating_sub(before.processor_time);
    let work = if writes(session, lately) {
        Some(Work::Writes)
    } else if is_installing(session, &now) {
        Some(Work::Installs)
    } else {
        (worked >= length / BUSY_PART).then_some(Work::Computes)
    };
    Look::Waits {
        work,
        runs: now.processes > 0,
    }
}

/// The present use of processor and memory by the processes of a session.
async fn usage(session: &Session) -> Usage {
    let Some(root) = session.process() else {
        return Usage::default();
    };
    // It reads the table of all processes.
    let usages = tokio::task::spawn_blocking(move || processes::usage(&[root])).await;
    usages
        .ok()
        .and_then(|mut usages| usages.pop())
        .unwrap_or_default()
}

/// Whether the process of a session has written to stderr in the last time.
fn writes(session: &Session, within: Duration) -> bool {
    let newest = session
        .process()
        .and_then(|root| session.setup.environment.stderr.newest_ms(root.started));
    newest.is_some_and(|at_ms| unix_ms().saturating_sub(at_ms) < millis(within))
}

/// Whether the command is a package manager that has started no server yet.
fn is_installing(session: &Session, usage: &Usage) -> bool {
    let command = session
        .setup
        .spec
        .config
        .transport
        .child()
        .map(|child| Path::new(&child.command));
    let name = command.and_then(|command| command.file_stem()?.to_str());
    usage.processes == 1 && name.is_some_and(|name| INSTALLERS.contains(&name))
}
