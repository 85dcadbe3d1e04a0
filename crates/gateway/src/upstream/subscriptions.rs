//! What callers want to hear besides answers, told to the server in its era's way and again after every loss.
//!
//! Legacy: `resources/subscribe` once per URI and `logging/setLevel`. Modern: one `subscriptions/listen` stream that
//! carries the union.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use json::quote;
use model::{Era, LinkId, Refusal, RefusalCode};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use wire::rpc::{Id, Message, Shape, result};

use super::fault::Fault;
use super::lists;
use super::session::own::{Pending, member};
use super::session::{Greeting, Session};

/// How long the acknowledgement of a new stream is waited for before the old one is ended.
const ACKNOWLEDGED: Duration = Duration::from_secs(5);
/// How long the old stream is heard beside its successor: what was on its way on it still arrives, some of it twice.
const OVERLAP: Duration = Duration::from_secs(1);
/// The wait before a lost stream is opened again; doubled with every loss in a row.
const REOPEN: Duration = Duration::from_millis(250);
const REOPEN_MAX: Duration = Duration::from_secs(30);

impl Session {
    /// Wants updates of a resource for one link of ours; the server is asked once per URI. Updates go to
    /// [`super::SessionSink::notice`]. The answer is the server's own (a result or an error) or, where it had been asked
    /// before, an empty result with a meaningless id.
    ///
    /// # Errors
    /// A refusal when the server cannot be asked.
    pub async fn subscribe(&self, link: LinkId, uri: &str) -> Result<Message, Refusal> {
        let wants = &self.opening.wants;
        let _turn = wants.turn.lock().await;
        if !wants.is_new(uri) {
            wants.add(link, uri);
            return made_up();
        }
        if wants.len() >= self.opening.spec.bounds.subscriptions_max {
            return Err(Refusal::new(RefusalCode::Overloaded, "too many resources are subscribed to"));
        }
        if self.era() == Era::Modern {
            wants.add(link, uri);
            self.listening.notify_one();
            // Whoever is told that it is subscribed misses nothing that happens from then on.
            let (revision, mut heard) = (wants.revision(), self.heard.subscribe());
            let _ = timeout(ACKNOWLEDGED, heard.wait_for(|heard| *heard >= revision)).await;
            return made_up();
        }
        let answer = self.put("resources/subscribe", "uri", uri).await?;
        if answer.shape() == Shape::Result {
            wants.add(link, uri);
        }
        Ok(answer)
    }

    /// Wants no more updates of a resource.
    pub fn unsubscribe(&self, link: LinkId, uri: &str) {
        if self.opening.wants.remove(link, uri) {
            self.unwanted(uri);
        }
    }

    /// Wants to hear of a task for one link of ours (modern servers); true when the server was told. States go to
    /// [`super::SessionSink::notice`].
    pub async fn watch(&self, link: LinkId, task: &str) -> bool {
        let wants = &self.opening.wants;
        if self.era() == Era::Legacy || wants.len() >= self.opening.spec.bounds.subscriptions_max {
            return false;
        }
        wants.add_task(link, task);
        self.listening.notify_one();
        let (revision, mut heard) = (wants.revision(), self.heard.subscribe());
        timeout(ACKNOWLEDGED, heard.wait_for(|heard| *heard >= revision)).await.is_ok()
    }

    /// Wants to hear no more of it.
    pub fn unwatch(&self, link: LinkId, task: &str) {
        if self.opening.wants.remove_task(link, task) {
            self.listening.notify_one();
        }
    }

    /// Drops everything that a link wanted.
    pub fn forget(&self, link: LinkId) {
        for uri in self.opening.wants.forget(link) {
            self.unwanted(&uri);
        }
        if self.opening.wants.forget_tasks(link) {
            self.listening.notify_one();
        }
    }

    /// Sets the level of log messages of a legacy session (`logging/setLevel`); again after a restart. The answer is
    /// the server's own, or an empty result where the level is set already and in the modern era, which has it in each
    /// request.
    ///
    /// # Errors
    /// A refusal when the server cannot be asked.
    pub async fn set_level(&self, level: &str) -> Result<Message, Refusal> {
        if self.era() == Era::Modern || self.opening.wants.level().as_deref() == Some(level) {
            return made_up();
        }
        let answer = self.put("logging/setLevel", "level", level).await?;
        if answer.shape() == Shape::Result {
            self.opening.wants.set_level(level);
        }
        Ok(answer)
    }

    async fn put(&self, method: &str, key: &str, value: &str) -> Result<Message, Refusal> {
        let raw = quote(value);
        let patience = self.opening.spec.timeout(None);
        let asked = self.ask(Era::Legacy, method, &[(key, raw.as_bytes())], Some(patience));
        let outcome = match asked {
            Ok(mut pending) => pending.answer().await,
            Err(fault) => Err(fault),
        };
        outcome.map_err(|fault| self.refusal(&fault))
    }

    fn unwanted(&self, uri: &str) {
        match self.era() {
            Era::Modern => self.listening.notify_one(),
            Era::Legacy => {
                let raw = quote(uri);
                let patience = self.opening.spec.timeout(None);
                // Nobody waits for the answer.
                let _ = self.ask(
                    Era::Legacy,
                    "resources/unsubscribe",
                    &[("uri", raw.as_bytes())],
                    Some(patience),
                );
            }
        }
    }

    /// Tells a new legacy session everything that its predecessor was told.
    pub(super) async fn tell_wants(&self) {
        if let Some(level) = self.opening.wants.level()
            && let Err(refusal) = self.put("logging/setLevel", "level", &level).await
        {
            tracing::warn!(server = self.upstream(), %refusal, "the log level could not be set again");
        }
        for uri in self.opening.wants.uris() {
            if let Err(refusal) = self.put("resources/subscribe", "uri", &uri).await {
                tracing::warn!(server = self.upstream(), %refusal, "a subscription could not be made again");
            }
        }
    }
}

fn made_up() -> Result<Message, Refusal> {
    Message::read(result(&Id::number(0), b"{}"))
        .map_err(|_| Refusal::new(RefusalCode::Internal, "an answer could not be written"))
}

/// Keeps one listen stream open on a modern session, with the union of what is wanted.
pub(super) async fn listen(session: Weak<Session>, wake: Arc<Notify>) {
    let mut current: Option<Pending> = None;
    let mut told = None;
    let mut losses = 0_u32;
    loop {
        let Some(strong) = session.upgrade().filter(|session| session.is_open()) else { return };
        let revision = strong.opening.wants.revision();
        if told != Some(revision) {
            told = Some(revision);
            let next = open(&strong).await;
            strong.heard.send_replace(revision);
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
        // A server that says no is asked again only when something else is wanted.
        if matches!(&end, Ok(message) if message.shape() == Shape::Error) {
            continue;
        }
        sleep((REOPEN * 2_u32.saturating_pow(losses.min(10))).min(REOPEN_MAX)).await;
        losses += 1;
        told = None;
        // What changed while nobody listened is not told afterwards.
        if let Some(session) = session.upgrade() {
            session.stale.fetch_or(lists::ALL, Ordering::SeqCst);
            session.upkeep.notify_one();
        }
    }
}

/// Hears an old stream for a little while longer.
async fn retire(session: Weak<Session>, old: Pending) {
    sleep(OVERLAP).await;
    if let Some(session) = session.upgrade() {
        session.take_back(old.number);
    }
}

/// Opens a stream and waits, not for long, until the server has acknowledged or refused it.
async fn open(session: &Session) -> Option<Pending> {
    let wants = &session.opening.wants;
    let filter = filter(&session.greeted()?, &wants.uris(), &wants.tasks())?;
    let mut acknowledged = session.acknowledged.subscribe();
    let asked =
        session.ask(Era::Modern, "subscriptions/listen", &[("notifications", filter.as_bytes())], None);
    let mut stream = match asked {
        Ok(stream) => stream,
        Err(Fault::Link(_) | Fault::Unsent(_) | Fault::Timeout | Fault::Answer(_)) => return None,
    };
    let number = stream.number;
    tokio::select! {
        _ = timeout(ACKNOWLEDGED, acknowledged.wait_for(|acknowledged| *acknowledged == number)) => Some(stream),
        refused = stream.refused() => (!refused).then_some(stream),
    }
}

/// The filter of a listen request; nothing when there is nothing to hear.
fn filter(greeting: &Greeting, uris: &[String], tasks: &[String]) -> Option<String> {
    let mut wanted = Vec::new();
    for (capability, key) in [
        ("tools", "toolsListChanged"),
        ("prompts", "promptsListChanged"),
        ("resources", "resourcesListChanged"),
    ] {
        let told = member(&greeting.capabilities, capability).and_then(|raw| member(&raw, "listChanged"));
        if told.as_deref() == Some(b"true") {
            wanted.push(format!("\"{key}\":true"));
        }
    }
    for (key, texts) in [("resourceSubscriptions", uris), ("taskIds", tasks)] {
        if !texts.is_empty() {
            let texts: Vec<String> = texts.iter().map(|text| quote(text)).collect();
            wanted.push(format!("\"{key}\":[{}]", texts.join(",")));
        }
    }
    (!wanted.is_empty()).then(|| format!("{{{}}}", wanted.join(",")))
}
