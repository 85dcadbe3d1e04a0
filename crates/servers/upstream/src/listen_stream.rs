//! Listen stream of a modern session: one `subscriptions/listen` request that carries the interest
//! of all callers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use wire::{mcp::Era, rpc::MessageKind};

use crate::declared::Handshake;
use crate::session::Session;
use crate::{fault::Fault, interest::Subscription, lists, session::requests::PendingAnswer};

/// Longest wait for the acknowledgement of a new stream before the old one is closed.
const ACKNOWLEDGED: Duration = Duration::from_secs(5);
/// Time that the old stream stays open beside its successor: notifications that are on their way
/// still arrive, some twice.
const OVERLAP: Duration = Duration::from_secs(1);
/// Wait before a lost stream is opened again; doubled with every loss in a row.
const REOPEN: Duration = Duration::from_millis(250);
const REOPEN_MAX: Duration = Duration::from_secs(30);

/// Keeps one listen stream open while the session lives, and replaces it when the interest changes.
pub(crate) async fn keep(session: Weak<Session>, wake: Arc<Notify>) {
    let mut current: Option<PendingAnswer> = None;
    let mut requested = None;
    let mut losses = 0_u32;
    loop {
        let Some(strong) = session.upgrade().filter(|session| session.is_open()) else {
            return;
        };
        let revision = strong.setup.interest.revision();
        if requested != Some(revision) {
            // Before it is opened: a change that comes meanwhile opens the next one.
            requested = Some(revision);
            let next = open(&strong).await;
            strong.covered.send_replace(revision);
            if let Some(old) = std::mem::replace(&mut current, next) {
                tokio::spawn(retire(Weak::clone(&session), old));
            }
        }
        drop(strong);
        let end = async {
            match &mut current {
                Some(stream) => stream.answer().await,
                None => std::future::pending().await,
            }
        };
        let end = tokio::select! {
            () = wake.notified() => {
                losses = 0;
                continue;
            }
            end = end => end,
        };
        current = None;
        // A server that refuses the request gets another one only when the interest changes.
        if matches!(&end, Ok(message) if message.shape() == MessageKind::Error) {
            continue;
        }
        sleep((REOPEN * 2_u32.saturating_pow(losses.min(10))).min(REOPEN_MAX)).await;
        losses += 1;
        requested = None;
        // The server does not repeat notifications that it sent meanwhile.
        if let Some(session) = session.upgrade() {
            session.mark_stale(lists::ALL);
        }
    }
}

/// Cancels an old stream after the overlap.
async fn retire(session: Weak<Session>, old: PendingAnswer) {
    sleep(OVERLAP).await;
    if let Some(session) = session.upgrade() {
        session.cancel_own(old.number);
    }
}

/// Opens a stream and waits, for a bounded time, until the server has acknowledged or refused it.
async fn open(session: &Session) -> Option<PendingAnswer> {
    let interest = &session.setup.interest;
    let filter = filter(&session.handshake()?, &interest.all())?;
    let mut acknowledged = session.acknowledged.subscribe();
    let asked = session.request(
        Era::Modern,
        "subscriptions/listen",
        &[("notifications", &filter)],
        None,
    );
    let mut stream = match asked {
        Ok(stream) => stream,
        Err(
            Fault::Link(_)
            | Fault::Unsent(_)
            | Fault::Ended(_)
            | Fault::Timeout
            | Fault::Answer(_)
            | Fault::Version(_)
            | Fault::Unusable(_)
            | Fault::Itself(_),
        ) => return None,
    };
    let number = stream.number;
    tokio::select! {
        _ = timeout(ACKNOWLEDGED, acknowledged.wait_for(|acknowledged| *acknowledged == number)) => Some(stream),
        refused = stream.is_refused() => (!refused).then_some(stream),
    }
}

/// The filter of a listen request; `None` when it would be empty.
fn filter(handshake: &Handshake, subscriptions: &[Subscription]) -> Option<Vec<u8>> {
    let mut uris = Vec::new();
    let mut tasks = Vec::new();
    for subscription in subscriptions {
        match subscription {
            Subscription::Resource(uri) => uris.push(uri),
            Subscription::Task(id) => tasks.push(id),
        }
    }
    let mut is_empty = true;
    let filter = json::object(|filter| {
        for (capability, key) in [
            ("tools", "toolsListChanged"),
            ("prompts", "promptsListChanged"),
            ("resources", "resourcesListChanged"),
        ] {
            if json::at(&handshake.capabilities, &[capability, "listChanged"]) == Some(b"true") {
                filter.bool(key, true);
            }
        }
        for (key, texts) in [("resourceSubscriptions", uris), ("taskIds", tasks)] {
            if !texts.is_empty() {
                filter.texts(key, texts);
            }
        }
        is_empty = filter.is_empty();
    });
    (!is_empty).then_some(filter)
}
