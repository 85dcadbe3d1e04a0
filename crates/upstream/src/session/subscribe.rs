//! Subscriptions of callers: resource updates, task states, log level.
//!
//! A legacy server gets one `resources/subscribe` per URI and one `logging/setLevel`; a modern server gets the union of all in
//! one listen stream.

use std::time::Duration;

use json::quote;
use model::{Era, LinkId, Refusal, RefusalCode};
use tokio::time::timeout;
use wire::rpc::{Id, Message, Shape, result};

use super::Session;

/// Longest wait until the listen stream covers a new subscription.
const COVERED: Duration = Duration::from_secs(5);

impl Session {
    /// Subscribes a link to updates of a resource; the server gets one request per URI. [`super::SessionEvents::notice`]
    /// receives the updates. Returns the server's own answer (a result or an error), or an empty result with a meaningless id
    /// where the server has the subscription already.
    ///
    /// # Errors
    /// A refusal when the server cannot be asked, or `subscriptions_max` is reached.
    pub async fn subscribe(&self, link: LinkId, uri: &str) -> Result<Message, Refusal> {
        let interest = &self.setup.interest;
        let _turn = interest.turn.lock().await;
        if !interest.is_new(uri) {
            interest.add_uri(link, uri);
            return empty_result();
        }
        if interest.len() >= self.setup.spec.bounds.subscriptions_max {
            return Err(Refusal::new(RefusalCode::Overloaded, "too many resource subscriptions"));
        }
        if self.era() == Era::Modern {
            interest.add_uri(link, uri);
            // A subscribed client misses no update from here on.
            let _ = self.renew_listen_stream().await;
            return empty_result();
        }
        let answer = self.set_at_server("resources/subscribe", "uri", uri).await?;
        if answer.shape() == Shape::Result {
            interest.add_uri(link, uri);
        }
        Ok(answer)
    }

    /// Ends a link's subscription to a resource.
    pub fn unsubscribe(&self, link: LinkId, uri: &str) {
        if self.setup.interest.remove_uri(link, uri) {
            self.unsubscribe_at_server(uri);
        }
    }

    /// Subscribes a link to the states of a task (modern servers); [`super::SessionEvents::notice`] receives them. True when
    /// the listen stream covers the task.
    pub async fn watch_task(&self, link: LinkId, task: &str) -> bool {
        let interest = &self.setup.interest;
        if self.era() == Era::Legacy || interest.len() >= self.setup.spec.bounds.subscriptions_max {
            return false;
        }
        interest.add_task(link, task);
        self.renew_listen_stream().await
    }

    /// Ends a link's subscription to a task.
    pub fn unwatch_task(&self, link: LinkId, task: &str) {
        if self.setup.interest.remove_task(link, task) {
            self.listening.notify_one();
        }
    }

    /// Ends all subscriptions of a link.
    pub fn forget(&self, link: LinkId) {
        for uri in self.setup.interest.forget_uris(link) {
            self.unsubscribe_at_server(&uri);
        }
        if self.setup.interest.forget_tasks(link) {
            self.listening.notify_one();
        }
    }

    /// Sets the log level of a legacy session (`logging/setLevel`); it survives restarts. Returns the server's own answer, or
    /// an empty result where the level is set already. Modern requests carry the level themselves.
    ///
    /// # Errors
    /// A refusal when the server cannot be asked.
    pub async fn set_level(&self, level: &str) -> Result<Message, Refusal> {
        if self.era() == Era::Modern || self.setup.interest.level().as_deref() == Some(level) {
            return empty_result();
        }
        let answer = self.set_at_server("logging/setLevel", "level", level).await?;
        if answer.shape() == Shape::Result {
            self.setup.interest.set_level(level);
        }
        Ok(answer)
    }

    /// Makes the subscriptions of the previous session again, on a new legacy session.
    pub(crate) async fn restore_interest(&self) {
        if let Some(level) = self.setup.interest.level()
            && let Err(refusal) = self.set_at_server("logging/setLevel", "level", &level).await
        {
            tracing::warn!(server = self.upstream(), %refusal, "could not restore the log level");
        }
        for uri in self.setup.interest.uris() {
            if let Err(refusal) = self.set_at_server("resources/subscribe", "uri", &uri).await {
                tracing::warn!(server = self.upstream(), %refusal, "could not restore a subscription");
            }
        }
    }

    /// Wakes the listen stream and waits until it covers the current interest; false after a timeout.
    async fn renew_listen_stream(&self) -> bool {
        self.listening.notify_one();
        let (revision, mut covered) = (self.setup.interest.revision(), self.covered.subscribe());
        timeout(COVERED, covered.wait_for(|covered| *covered >= revision)).await.is_ok()
    }

    async fn set_at_server(&self, method: &str, key: &str, value: &str) -> Result<Message, Refusal> {
        let raw = quote(value);
        let patience = self.setup.spec.timeout(None);
        let asked = self.request(Era::Legacy, method, &[(key, raw.as_bytes())], Some(patience));
        let outcome = match asked {
            Ok(mut pending) => pending.answer().await,
            Err(fault) => Err(fault),
        };
        outcome.map_err(|fault| self.refusal(&fault))
    }

    fn unsubscribe_at_server(&self, uri: &str) {
        match self.era() {
            Era::Modern => self.listening.notify_one(),
            Era::Legacy => {
                let raw = quote(uri);
                let patience = self.setup.spec.timeout(None);
                // The answer makes no difference.
                let _ = self.request(
                    Era::Legacy,
                    "resources/unsubscribe",
                    &[("uri", raw.as_bytes())],
                    Some(patience),
                );
            }
        }
    }
}

fn empty_result() -> Result<Message, Refusal> {
    Message::read(result(&Id::number(0), b"{}"))
        .map_err(|_| Refusal::new(RefusalCode::Internal, "an answer could not be written"))
}
