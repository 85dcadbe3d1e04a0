//! Subscriptions of callers: resource updates, task states, log level.
//!
//! A legacy server gets one `resources/subscribe` per URI and one `logging/setLevel`; a modern
//! server gets the union of all in one listen stream.

use std::time::Duration;

use bytes::Bytes;
use json::quote;
use model::{Answer, Form, LinkId, LogLevel, Outcome, Payload, Refusal, RefusalCode};
use tokio::time::timeout;
use wire::mcp::{Era, relay};

use super::Session;
use crate::interest::Subscription;

/// Longest wait until the listen stream covers a new subscription.
const COVERED: Duration = Duration::from_secs(5);

/// The least verbose level of a shared session on which one was set.
const SHARED_LEVEL: LogLevel = LogLevel::Info;

impl Session {
    /// Subscribes a link on this account to updates of a resource; the server gets one request per
    /// URI. [`super::SessionEvent::Notice`] reports the updates. Returns the server's own answer (a
    /// result or an error), or an empty result where the server has the subscription already.
    ///
    /// # Errors
    /// A refusal when the server cannot be asked, or `subscriptions_max` is reached.
    pub async fn subscribe(
        &self,
        link: LinkId,
        account: &str,
        uri: &str,
    ) -> Result<Answer, Refusal> {
        let interest = &self.setup.interest;
        let place = interest.place(account).ok_or_else(|| {
            let what = format!(
                "you have too many subscriptions at the server `{}`",
                self.upstream()
            );
            Refusal::new(RefusalCode::Overloaded, what).hint("end some of them")
        })?;
        let _turn = interest.turn.lock().await;
        let subscription = Subscription::Resource(uri.to_owned());
        if !interest.is_new(&subscription) {
            interest.add(link, subscription, place);
            return Ok(empty_result());
        }
        if interest.len() >= self.setup.spec.limits.subscriptions_max {
            return Err(Refusal::new(
                RefusalCode::Overloaded,
                "too many resource subscriptions",
            ));
        }
        if self.era() == Era::Modern {
            interest.add(link, subscription, place);
            // A subscribed client misses no update from here on.
            let _ = self.renew_listen_stream().await;
            return Ok(empty_result());
        }
        let answer = self
            .set_at_server("resources/subscribe", "uri", uri)
            .await?;
        if answer.outcome == Outcome::Ok {
            interest.add(link, subscription, place);
        }
        Ok(answer)
    }

    /// Ends a link's subscription.
    pub fn unsubscribe(&self, link: LinkId, subscription: &Subscription) {
        if self.setup.interest.remove(link, subscription) {
            self.unsubscribe_at_server(subscription);
        }
    }

    /// Subscribes a link to the states of a task (modern servers); [`super::SessionEvent::Notice`]
    /// reports them. True when the listen stream covers the task.
    pub async fn watch_task(&self, link: LinkId, account: &str, task: &str) -> bool {
        let interest = &self.setup.interest;
        if self.era() == Era::Legacy || interest.len() >= self.setup.spec.limits.subscriptions_max {
            return false;
        }
        let Some(place) = interest.place(account) else {
            return false;
        };
        interest.add(link, Subscription::Task(task.to_owned()), place);
        self.renew_listen_stream().await
    }

    /// Notes from which level on a link wants log messages: besides what it wanted before, or
    /// `instead`. True if the server must be asked for more or less of them, by
    /// [`Session::pass_level`]. Modern requests carry the level themselves.
    #[must_use]
    pub fn want_level(&self, link: LinkId, level: LogLevel, instead: bool) -> bool {
        let logs = || {
            self.handshake()
                .is_some_and(|known| json::at(&known.capabilities, &["logging"]).is_some())
        };
        if self.era() == Era::Modern || !logs() {
            return false;
        }
        self.setup.interest.want_level(link, level, instead);
        self.due_level().is_some()
    }

    /// The level that the server is to have: the most verbose that is wanted. Callers of a shared
    /// session that have set no level must not lose messages because another one wants few.
    fn due_level(&self) -> Option<LogLevel> {
        let wanted = self.setup.interest.level()?;
        let due = if self.key().is_own() {
            wanted
        } else {
            wanted.min(SHARED_LEVEL)
        };
        (*self.passed_level.lock() != Some(due)).then_some(due)
    }

    /// Tells the server of a legacy session from which level on log messages are wanted
    /// (`logging/setLevel`). The session's successors are asked too.
    pub async fn pass_level(&self) {
        let _turn = self.setup.interest.turn.lock().await;
        let Some(level) = self.due_level() else {
            return;
        };
        // A server that refuses it is not asked again.
        *self.passed_level.lock() = Some(level);
        let refused = match self
            .set_at_server("logging/setLevel", "level", level.into())
            .await
        {
            Ok(answer) => answer.outcome != Outcome::Ok,
            Err(_) => true,
        };
        if refused {
            tracing::warn!(
                server = self.upstream(),
                "the server did not take the log level"
            );
        }
    }

    /// Makes the subscriptions of the previous session again, on a new legacy session.
    pub(crate) async fn restore_interest(&self) {
        *self.passed_level.lock() = None;
        self.pass_level().await;
        for subscription in self.setup.interest.all() {
            if let Subscription::Resource(uri) = subscription
                && let Err(refusal) = self.set_at_server("resources/subscribe", "uri", &uri).await
            {
                tracing::warn!(server = self.upstream(), %refusal, "could not restore a subscription");
            }
        }
    }

    /// Wakes the listen stream and waits until it covers the current interest; false after a
    /// timeout.
    async fn renew_listen_stream(&self) -> bool {
        self.listening.notify_one();
        let revision = self.setup.interest.revision();
        let mut covered = self.covered.subscribe();
        timeout(COVERED, covered.wait_for(|covered| *covered >= revision))
            .await
            .is_ok()
    }

    async fn set_at_server(&self, method: &str, key: &str, value: &str) -> Result<Answer, Refusal> {
        let raw = quote(value);
        let patience = self.setup.spec.timeout(None);
        let asked = self
            .ask(Era::Legacy, method, &[(key, raw.as_bytes())], patience)
            .await;
        let answer = asked.map_err(|fault| self.refusal(&fault))?;
        Ok(relay::decode_answer(&answer, Form::Legacy))
    }

    /// Tells the server that no link has this subscription any more.
    pub(crate) fn unsubscribe_at_server(&self, subscription: &Subscription) {
        match (self.era(), subscription) {
            (Era::Modern, _) => self.listening.notify_one(),
            (Era::Legacy, Subscription::Resource(uri)) => {
                let raw = quote(uri);
                let patience = self.setup.spec.timeout(None);
                // The answer makes no difference.
                let params: [(&str, &[u8]); 1] = [("uri", raw.as_bytes())];
                let _ = self.request(
                    Era::Legacy,
                    "resources/unsubscribe",
                    &params,
                    Some(patience),
                );
            }
            (Era::Legacy, Subscription::Task(_)) => {}
        }
    }
}

fn empty_result() -> Answer {
    Answer {
        outcome: Outcome::Ok,
        payload: Payload::body(Form::Legacy, Bytes::from_static(b"{}")),
    }
}
