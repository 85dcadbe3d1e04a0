//! Tasks of a supervisor: they keep the shared session open while it is needed, probe kept
//! manifests, and close what is idle.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use model::LinkId;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use wire::mcp::Era;

use super::book::{SessionPlace, Slot};
use super::wanted::Wanted;
use super::{Upstream, close_all};
use crate::lists;
use crate::session::Session;
use crate::session_api::SessionOwner;

/// The interval of the check for idle sessions.
const TIDY: Duration = Duration::from_secs(5);
/// The shortest interval of this check, with a shorter idle limit.
const TIDY_MIN: Duration = Duration::from_millis(10);
/// Wait after a failed attempt that has no back-off.
const RETRY: Duration = Duration::from_millis(100);
/// Wait before a server that is listed from a kept manifest is probed: what clients use first comes
/// first.
const PROBE_AFTER: Duration = Duration::from_secs(2);
/// Attempts of such a probe: the first may find that the server speaks another era now.
const PROBES_MAX: usize = 2;

impl Upstream {
    /// Begins to supervise.
    pub(super) fn spawn_tasks(&self) {
        tokio::spawn(keep(Weak::clone(&self.me)));
        tokio::spawn(tidy(Weak::clone(&self.me)));
    }

    /// Has a caller's session opened again: updates of what it is subscribed to must not wait for
    /// its next call.
    pub(super) fn reopen(&self, slot: &Slot, ended: &Session) {
        if let Some(owner) = ended
            .setup
            .owner
            .clone()
            .filter(|_| slot.interest.len() > 0)
        {
            let place = (ended.era(), ended.key().clone());
            tokio::spawn(restore(Weak::clone(&self.me), place, owner));
        }
    }
}

/// Keeps a shared session open while the upstream exists; of a server that runs on demand while it
/// must run.
async fn keep(upstream: Weak<Upstream>) {
    let mut probes = 0;
    while let Some(strong) = upstream.upgrade() {
        // Before the account is looked at, so that no change is missed.
        let mut changes = strong.account_changes();
        strong.account_changed(None);
        if strong.book.lock().closed {
            return;
        }
        let are_of_callers = strong.has_callers_accounts();
        if are_of_callers || strong.blocked(None).is_some() {
            strong.settle_without_start();
            if !next_account_change(strong, changes).await {
                return;
            }
            // A change of one caller's account says nothing about another's failures.
            if !are_of_callers && let Some(strong) = upstream.upgrade() {
                strong.reset_backoff();
            }
            continue;
        }
        if !strong.must_run() {
            strong.settle_without_start();
            let is_probe = probes < PROBES_MAX && strong.must_probe();
            drop(strong);
            if is_probe {
                probes += 1;
                probe(&upstream).await;
            } else {
                demanded(&upstream).await;
            }
            continue;
        }
        let mut presence = strong
            .environment
            .dial_in
            .as_ref()
            .map(|dial_in| dial_in.presence());
        if let Some(presence) = &mut presence
            && presence.borrow().is_none()
        {
            drop(strong);
            match presence.changed().await {
                Ok(()) => continue,
                Err(_) => return,
            }
        }
        let NextStart { era, remaining } = strong.next_start();
        if let Some(remaining) = remaining {
            drop(strong);
            tokio::select! {
                () = sleep(remaining) => {}
                () = presence_change(&mut presence) => {}
                () = account_change(&mut changes) => {}
            }
            continue;
        }
        let opened = strong.obtain(Wanted::shared(era)).await;
        let is_on_demand = strong.spec.config.is_on_demand();
        drop(strong);
        match opened {
            // Its end is noticed as a demand, if there is one.
            Ok(_) if is_on_demand => {}
            Ok(session) => await_end(&upstream, session, changes).await,
            Err(_) => sleep(RETRY).await,
        }
    }
}

/// The next start of a shared session.
struct NextStart {
    /// Its era; `None` if that is to be detected.
    era: Option<Era>,
    /// The time until then, during a back-off.
    remaining: Option<Duration>,
}

impl Upstream {
    fn next_start(&self) -> NextStart {
        let book = self.book.lock();
        // Unless its eras are to be detected.
        let missing = book.missing_era().filter(|era| book.eras.contains(era));
        NextStart {
            era: missing.or_else(|| book.eras.first().copied()),
            remaining: book.backoff.remaining(Instant::now()),
        }
    }

    /// Has nothing wait for a start of the shared session: there is none for now.
    fn settle_without_start(&self) {
        self.settled.send_replace(true);
        self.log_status();
    }
}

/// Waits until a shared session has ended, and has what changes of the account say looked at.
async fn await_end(
    upstream: &Weak<Upstream>,
    session: Arc<Session>,
    mut changes: Option<watch::Receiver<u64>>,
) {
    let mut end = session.ended.subscribe();
    // The wait holds no session: an upstream without users ends its sessions.
    let kept = Arc::downgrade(&session);
    drop(session);
    loop {
        tokio::select! {
            _ = end.wait_for(|ended| *ended) => return,
            () = account_change(&mut changes) => {}
        }
        let (Some(strong), Some(session)) = (upstream.upgrade(), kept.upgrade()) else {
            return;
        };
        // Signed in, perhaps with other scopes: the lists may be others.
        strong.account_changed(None);
        if strong.blocked(None).is_none() {
            // What could not be listed without the new tokens is listed now.
            strong.book.lock().incomplete = None;
            session.mark_stale(lists::ALL);
        }
        strong.log_status();
    }
}

/// Waits until a server that runs on demand may have to run; a bounded time, so that an upstream
/// that has gone is noticed.
async fn demanded(upstream: &Weak<Upstream>) {
    const LOOK: Duration = Duration::from_secs(60);
    let Some(strong) = upstream.upgrade() else {
        return;
    };
    let wake = strong.demand.notified();
    // Its users would keep it, and it is gone when they are.
    let _ = timeout(LOOK, wake).await;
}

/// Asks a server once whether its kept manifest still holds, unless a client uses it first.
async fn probe(upstream: &Weak<Upstream>) {
    sleep(PROBE_AFTER).await;
    let Some(strong) = upstream.upgrade().filter(|strong| strong.must_probe()) else {
        return;
    };
    let era = strong.book.lock().eras.first().copied();
    let probed = strong.obtain(Wanted::probe(era)).await;
    tracing::debug!(
        server = strong.spec.name(),
        is_open = probed.is_ok(),
        "asked whether what is kept of it still holds"
    );
    strong.stop_unneeded();
}

/// Opens a caller's own session again that ended with subscriptions, until one is open or no
/// subscription is left.
async fn restore(upstream: Weak<Upstream>, place: SessionPlace, owner: SessionOwner) {
    loop {
        let Some(strong) = upstream.upgrade() else {
            return;
        };
        let changes = strong.account_changes();
        let remaining = {
            let book = strong.book.lock();
            let slot = book
                .slots
                .get(&place)
                .filter(|slot| slot.open().is_none() && slot.interest.len() > 0);
            let Some(slot) = slot.filter(|_| !book.closed) else {
                return;
            };
            slot.backoff
                .remaining(Instant::now())
                .max(book.backoff.remaining(Instant::now()))
        };
        if strong.blocked(Some(owner.holder())).is_some() {
            if next_account_change(strong, changes).await {
                continue;
            } else {
                return;
            }
        }
        let wanted = Wanted::ahead(&owner.caller(), Some(place.0), true);
        if remaining.is_none() && strong.obtain(wanted).await.is_ok() {
            return;
        }
        drop(strong);
        sleep(remaining.unwrap_or(RETRY)).await;
    }
}

/// Waits until an account at the server has changed; for ever for a server without accounts.
async fn account_change(changes: &mut Option<watch::Receiver<u64>>) {
    if let Some(receiver) = changes
        && receiver.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Waits for a change of the account without a hold on the upstream; false once that is gone.
async fn next_account_change(
    upstream: Arc<Upstream>,
    mut changes: Option<watch::Receiver<u64>>,
) -> bool {
    // Its sender goes with the upstream.
    let mut alive = upstream.settled.subscribe();
    drop(upstream);
    tokio::select! {
        () = account_change(&mut changes) => true,
        _ = alive.wait_for(|_| false) => false,
    }
}

/// Waits until a participant connects or disconnects; for ever for a server that does not dial in.
async fn presence_change(presence: &mut Option<watch::Receiver<Option<LinkId>>>) {
    match presence {
        Some(presence) => drop(presence.changed().await),
        None => std::future::pending().await,
    }
}

/// Closes idle sessions of single callers, and stops a server that runs on demand when no client
/// needs it.
async fn tidy(upstream: Weak<Upstream>) {
    let idle = upstream.upgrade().map(|upstream| {
        let Upstream { spec, .. } = &*upstream;
        let stops = spec.config.is_on_demand().then_some(spec.config.idle_stop);
        (spec.limits.caller_idle, stops.unwrap_or(TIDY))
    });
    let Some((idle, idle_stop)) = idle else {
        return;
    };
    loop {
        sleep(TIDY.min(idle.min(idle_stop).max(TIDY_MIN))).await;
        let Some(upstream) = upstream.upgrade() else {
            return;
        };
        upstream.log_status();
        let mut book = upstream.book.lock();
        if book.closed {
            return;
        }
        let closing = book.take_idle(idle);
        drop(book);
        close_all(closing);
        upstream.stop_unneeded();
    }
}
