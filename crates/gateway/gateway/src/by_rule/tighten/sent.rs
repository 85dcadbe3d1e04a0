//! Envelope that requests something of participants, as rules see it.

use std::slice;

use model::{GATEWAY, KindRef, Method, ParticipantId, REQUEST, method::is_notification};
use rules::{ArgumentsError, RuleSet};
use topic::RequestDestination;
use upstream::curation::Author;
use wire::mcpx::Envelope;
use wire::mcpx::check::{Act, EnvelopeCall, strict};

use super::params::{ParamsAt, kind_of, unreadable};
use crate::curation::completed_params;
use crate::dispatch::Dispatch;
use crate::live::{Server, Topic};

/// A request in the room.
pub(super) struct Sent<'e> {
    pub(super) by: &'e ParticipantId,
    pub(super) to: &'e [&'e str],
    pub(super) method: Method,
    /// The name or URI of its target: the kind need not name it, and then the payload does.
    pub(super) own: Option<String>,
    /// The request of the payload, if kind and payload agree.
    pub(super) call: Option<EnvelopeCall>,
}

impl<'e> Sent<'e> {
    /// Reads an envelope; `None` if it requests nothing.
    pub(super) fn read(
        envelope: &Envelope,
        by: &'e ParticipantId,
        to: &'e [&'e str],
    ) -> Option<Self> {
        let kind = KindRef::parse(envelope.kind()).ok()?;
        let method = kind.method()?;
        if kind.head() != REQUEST || is_notification(method) {
            return None;
        }
        let call = match strict(envelope.kind(), envelope.payload_bytes()) {
            Ok(Act::Request(call)) => Some(call),
            Ok(Act::Proposal(_) | Act::Answer(_) | Act::Other) | Err(_) => None,
        };
        let named = call.as_ref().and_then(EnvelopeCall::target);
        Some(Self {
            by,
            to,
            method: Method::Other(method.into()),
            own: kind.context().or(named).map(str::to_owned),
            call,
        })
    }

    /// Whether it cannot be said what it names.
    pub(super) fn is_of_unknown_target(&self) -> bool {
        self.own.is_none() && self.call.is_none()
    }

    /// Its addressees. Of one without any, participants that are named by rules and may answer it.
    pub(super) fn destinations(&self, topic: &Topic, sets: &[&RuleSet]) -> Vec<RequestDestination> {
        let own = self.own.as_deref();
        if self.to.is_empty() {
            return self.answerers(topic, sets);
        }
        let addressees = self.to.iter().filter(|to| **to != GATEWAY);
        let ids = addressees.filter_map(|to| ParticipantId::new(to).ok());
        ids.map(|to| RequestDestination::in_room(to, own)).collect()
    }

    /// The destinations of rules for its kind. One that names no participant is about any of them,
    /// for which its sender stands here.
    fn answerers(&self, topic: &Topic, sets: &[&RuleSet]) -> Vec<RequestDestination> {
        let own = self.own.as_deref();
        if self.is_of_unknown_target() {
            return vec![RequestDestination::in_room(self.by.clone(), None)];
        }
        let Some(kind) = kind_of(&self.method, own) else {
            return Vec::new();
        };
        let rules = sets.iter().flat_map(|set| set.of_kind(kind));
        let mut named: Vec<ParticipantId> = rules
            .map(|rule| rule.scope.to.clone().unwrap_or_else(|| self.by.clone()))
            .filter(|to| !is_played(topic, to))
            .collect();
        named.sort_unstable();
        named.dedup();
        let in_room = |to| RequestDestination::in_room(to, own);
        named.into_iter().map(in_room).collect()
    }

    /// The params with which it would run at an addressee.
    pub(super) fn params_at(
        &self,
        dispatch: &Dispatch,
        to: &ParticipantId,
    ) -> Result<ParamsAt, ArgumentsError> {
        let Some(call) = &self.call else {
            let differ = "kind and payload differ";
            return Err(ArgumentsError::Syntax(differ.to_owned()));
        };
        let params = call.params();
        let params = params.map(|params| String::from_utf8_lossy(params).into_owned());
        let to = slice::from_ref(to);
        let act = (call.method(), call.target());
        match completed_params(dispatch, to, act, params.as_deref(), Author::Caller) {
            Ok(Some(whole)) => Ok(ParamsAt::Completed(Some(whole))),
            Ok(None) => Ok(ParamsAt::AsWritten(params)),
            Err(refusal) => Err(unreadable(&refusal)),
        }
    }
}

/// Whether the gateway acts for a participant in the room: on what names it, and on nothing that is
/// for all.
fn is_played(topic: &Topic, to: &ParticipantId) -> bool {
    let server = topic.server(to).map(|server| server.handle);
    server.is_some_and(|server| match server {
        Server::Gateway => true,
        Server::Upstream(server) => !server.serves(),
    })
}
