//! Envelopes: admission, audience, and receivers' actions.

use std::collections::BTreeSet;

use model::{KindRef, LinkId, Narrowing, OperationId, ParticipantId, REQUEST};
use topic::{Cause, Tightening};

use super::Books;

/// The upper half of the ids of envelopes to one participant alone.
pub(crate) const DIRECT: u64 = 0xd1;

/// The kinds of requests for a sender's own proposals.
const OWN: [&str; 2] = [
    "mcp/request:tools/call:withdraw_proposal",
    "mcp/request:tools/call:wait_for_proposal",
];

/// An envelope as it is drawn.
pub(crate) struct Envelope {
    pub(crate) link: LinkId,
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) to: Vec<String>,
    pub(crate) correlation: Option<String>,
    pub(crate) token: Option<Narrowing>,
    pub(crate) tightening: Option<Tightening>,
}

/// The expected fate of an envelope, before its receivers act.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fate {
    /// Its link is not in the topic.
    Nothing,
    Withheld(Cause),
    /// It is for the gateway alone.
    Private,
    /// The same, and its sender needs no capability for it: it calls a tool for the sender's own
    /// proposals.
    Own,
    Published,
}

impl Fate {
    /// Whether receivers that the gateway plays act on it.
    pub(crate) fn is_acted_on(self) -> bool {
        matches!(self, Self::Own | Self::Published)
    }
}

/// Envelopes that were acted on, and requests that named participants.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) acted: BTreeSet<(ParticipantId, String)>,
    asked: Vec<(String, ParticipantId, Vec<String>)>,
}

impl Log {
    pub(crate) fn ask(&mut self, id: &str, by: &ParticipantId, to: &[String]) {
        let same =
            |(own, asker, _): &&(String, ParticipantId, Vec<String>)| own == id && asker == by;
        if !to.is_empty() && !self.asked.iter().any(|one| same(&one)) {
            self.asked.push((id.to_owned(), by.clone(), to.to_vec()));
        }
    }

    /// Whether an answer to these addressees is of a participant that was not asked.
    pub(crate) fn intrudes(&self, from: &ParticipantId, request: &str, to: &[String]) -> bool {
        let meant =
            |asker: &ParticipantId| to.is_empty() || to.iter().any(|to| to == asker.as_str());
        let asked = self
            .asked
            .iter()
            .filter(|(id, asker, _)| id == request && meant(asker));
        let named: Vec<bool> = asked
            .map(|(_, _, to)| to.iter().any(|to| to == from.as_str()))
            .collect();
        !named.is_empty() && !named.contains(&true)
    }
}

/// The digest under which an envelope's id is kept once its proposal is over.
pub(crate) fn digest(envelope: &str) -> u128 {
    envelope.bytes().fold(7, |digest: u128, byte| {
        digest.wrapping_mul(257).wrapping_add(u128::from(byte))
    })
}

fn is_direct(correlation: Option<&str>) -> bool {
    let id = correlation.and_then(|text| text.parse::<OperationId>().ok());
    id.is_some_and(|id| (id.0 >> 64) as u64 == DIRECT)
}

/// Whether an envelope decides, or requests something of others.
pub(crate) fn is_direct_act(kind: KindRef<'_>, to: &[&str]) -> bool {
    let method = kind.method().unwrap_or_default();
    let requests = kind.head() == REQUEST && !method.is_empty() && to != ["portmoot"];
    let passes = method.starts_with("notifications/") || method == "resources/unsubscribe";
    kind.head() == "portmoot/reject" || requests && !passes
}

impl Books {
    /// The expected fate of an envelope; takes a token.
    pub(crate) fn fate(&mut self, envelope: &Envelope, now_ms: u64) -> Fate {
        let Some(own) = self.links.get(&envelope.link) else {
            return Fate::Nothing;
        };
        let by = own.participant.clone();
        if !self.take_token(&by, now_ms) {
            return Fate::Withheld(Cause::RateLimited);
        }
        let Ok(kind) = KindRef::parse(&envelope.kind) else {
            return Fate::Withheld(Cause::Malformed);
        };
        if ["system", "presence"]
            .iter()
            .any(|head| envelope.kind.starts_with(head))
        {
            return Fate::Withheld(Cause::Reserved);
        }
        let to: Vec<&str> = envelope.to.iter().map(String::as_str).collect();
        let token = envelope.token.as_ref();
        let granted = self.granted_with(&by, token);
        let braked = self.braked.contains(&by);
        let could_request = |granted: &std::sync::Arc<model::Capabilities>| {
            let request = envelope.kind.replacen("mcp/proposal", REQUEST, 1);
            let request = KindRef::parse(&request);
            kind.head() == "mcp/proposal" && request.is_ok_and(|kind| granted.admits(kind, &to))
        };
        let is_granted = granted
            .is_some_and(|granted| granted.admits(kind, &to) || braked && could_request(&granted));
        if !is_granted && !self.is_about_own(&by, token, &envelope.kind, &to) {
            return Fate::Withheld(Cause::NotAdmitted);
        }
        if braked && is_direct_act(kind, &to) {
            return Fate::Withheld(Cause::Paused);
        }
        if let Some(tightening) = &envelope.tightening {
            let named = envelope.correlation.as_deref();
            let named = named.and_then(|id| self.deal_of(id));
            if named.is_none_or(|id| self.deals[&id].by == by) {
                return Fate::Withheld(match tightening {
                    Tightening::Ask => Cause::RuleAsks,
                    Tightening::Reject { .. } => Cause::RuleRejects,
                });
            }
            self.count("fulfilled what a rule asks for");
        }
        if !is_granted {
            return Fate::Own;
        }
        let answers = envelope.kind.starts_with("mcp/response:")
            || envelope.kind.starts_with("mcp/request:notifications/");
        let private = answers && is_direct(envelope.correlation.as_deref());
        if private {
            Fate::Private
        } else {
            Fate::Published
        }
    }

    /// Whether an envelope calls a tool of the gateway for proposals of its sender's own.
    pub(crate) fn is_about_own(
        &self,
        by: &ParticipantId,
        token: Option<&Narrowing>,
        kind: &str,
        to: &[&str],
    ) -> bool {
        let granted = self.granted_with(by, token);
        granted.is_some_and(|granted| granted.admits_head("mcp/proposal"))
            && to == ["portmoot"]
            && OWN.contains(&kind)
    }

    /// The fate of an envelope, without taking a token.
    pub(crate) fn peek(&mut self, envelope: &Envelope, now_ms: u64) -> Fate {
        let before = self.standing.clone();
        let fate = self.fate(envelope, now_ms);
        self.standing = before;
        fate
    }

    /// The reach of an envelope, besides the rules of MCPx: the gateway alone sends a held call to
    /// a participant that serves.
    pub(crate) fn excepted(&self, envelope: &Envelope) -> Option<ParticipantId> {
        let kind = KindRef::parse(&envelope.kind).ok()?;
        let named = envelope
            .correlation
            .as_deref()
            .filter(|_| kind.head() == REQUEST)?;
        let deal = &self.deals[&self.deal_of(named)?];
        deal.to
            .iter()
            .find(|to| deal.held && self.serves(to))
            .cloned()
    }
}
