//! Sessions that a server lost without a 404: refusals that may say so are checked with a list that
//! the session has had before.
//!
//! Servers say it by other statuses, by errors of their own, in the body of a 200 or on a pipe, as
//! a bridge does whose server was restarted. Words decide nothing here: a session is lost if the
//! server refuses the list in the same way. A call that found it out is sent again where calls are
//! kept ([`crate::config::ServerConfig::may_lose_sessions`]); elsewhere it gets the server's error,
//! and the next one a new session.

use std::sync::Arc;
use std::time::Duration;

use client::LinkError;
use model::{Coding, ListKind};
use wire::mcp::Era;
use wire::rpc::{Message, MessageKind};

use super::Session;
use super::doubts::{Doubted, Refused};
use crate::fault::Fault;

/// Time that a check waits for the server.
const CHECK: Duration = Duration::from_secs(5);

impl Session {
    /// Whether the end of a failed request waits until the session is checked.
    pub(super) fn doubts_failure(self: &Arc<Self>, number: u64, failure: &LinkError) -> bool {
        // Whatever an account is refused is about the account.
        if matches!(failure, LinkError::Unauthorized) && self.setup.environment.accounts.is_some() {
            return false;
        }
        let is_garbled = self
            .pending
            .lock()
            .requests
            .get(&number)
            .is_some_and(|request| request.garbled);
        let Some(refused) = Refused::of_failure(failure, is_garbled) else {
            return false;
        };
        self.doubt(
            Some(Doubted {
                number,
                refused,
                end: Err(failure.clone()),
            }),
            refused,
        )
    }

    /// Whether an answer waits until the session is checked: it is an error that may be about the
    /// session.
    pub(super) fn doubts_answer(self: &Arc<Self>, number: u64, answer: &Message) -> bool {
        if answer.shape() != MessageKind::Error {
            return false;
        }
        let Some(refused) = Refused::of_answer(answer) else {
            return false;
        };
        self.doubt(
            Some(Doubted {
                number,
                refused,
                end: Ok(answer.clone()),
            }),
            refused,
        )
    }

    /// Has the session checked after a refusal of what is no request.
    pub(super) fn doubts_stream(self: &Arc<Self>, failure: &LinkError) {
        if let Some(refused) = Refused::of_failure(failure, false) {
            self.doubt(None, refused);
        }
    }

    fn doubt(self: &Arc<Self>, doubted: Option<Doubted>, refused: Refused) -> bool {
        // That of a participant is as old as its connection, and cannot be lost apart from it.
        let is_participant = self.setup.environment.dial_in.is_some();
        let is_session =
            self.era() == Era::Legacy && self.coding() == Coding::Json && !is_participant;
        if !is_session || !self.doubts.wants_check(refused) {
            return false;
        }
        let Some(list) = self.known_list() else {
            return false;
        };
        let mut pending = self.pending.lock();
        let may_wait = match &doubted {
            None => true,
            // One that was sent twice is not sent again.
            Some(doubted) if self.keeps_calls => pending.is_kept(doubted.number),
            Some(doubted) => pending.is_call(doubted.number),
        };
        if !may_wait || pending.ended.is_some() || pending.awaiting_reopen.is_some() {
            return false;
        }
        match &mut pending.awaiting_check {
            Some(waiting) => waiting.extend(doubted),
            None => {
                pending.awaiting_check = Some(doubted.into_iter().collect());
                let me = Arc::clone(self);
                tokio::spawn(async move { me.check_session(list, refused).await });
            }
        }
        true
    }

    /// A list that the server has answered.
    fn known_list(&self) -> Option<&'static str> {
        let manifest = self.manifest();
        let lists = [
            (ListKind::Tools, "tools/list"),
            (ListKind::Resources, "resources/list"),
            (ListKind::Prompts, "prompts/list"),
        ];
        lists
            .into_iter()
            .find(|(kind, _)| !manifest.list(*kind).items.is_empty())
            .map(|(_, method)| method)
    }

    async fn check_session(self: Arc<Self>, list: &str, refused: Refused) {
        let answer = match self.request_once(Era::Legacy, list, CHECK) {
            Ok(mut asked) => asked.answer().await,
            Err(fault) => Err(fault),
        };
        let again = match &answer {
            Ok(message) => Refused::of_answer(message),
            Err(Fault::Link(failure)) => Refused::of_failure(failure, true),
            Err(_) => None,
        };
        let is_gone = matches!(answer, Err(Fault::Link(LinkError::SessionGone)));
        let is_lost = is_gone || again == Some(refused);
        if !is_lost {
            self.doubts.clear(refused);
        }
        // Under one lock until the reopening has begun: in between another refusal would begin a
        // second check.
        let mut pending = self.pending.lock();
        let waiting = pending.awaiting_check.take().unwrap_or_default();
        if is_lost && pending.ended.is_none() && pending.awaiting_reopen.is_none() {
            pending.awaiting_reopen = Some(Vec::new());
            let me = Arc::clone(&self);
            tokio::spawn(async move { me.reopen().await });
        }
        drop(pending);
        for doubted in waiting {
            let number = doubted.number;
            let is_unread = is_lost && doubted.refused == refused && refused.is_unread();
            if is_unread && self.await_reopen(number, false) {
                continue;
            }
            match doubted.end {
                Ok(answer) => self.settle_answer(number, answer),
                Err(failure) => self.fail(number, failure),
            }
        }
    }
}
