//! Envelopes to the room, as tests write them.

use model::{Digest, LinkId, Method, Narrowing, Outcome};
use topic::{Requested, Say, Tightening};

use crate::{
    numbers::{Effects, Event, Intent},
    stage::{RULING, SHOWN, Stage, id, op, terms},
};

/// An envelope; its message is its id.
pub(crate) struct Envelope<'a> {
    pub(crate) link: LinkId,
    pub(crate) id: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) to: &'a [&'a str],
    pub(crate) correlation: Option<&'a str>,
    /// The part of its sender's capabilities that the sender's token is good for.
    pub(crate) token: Option<&'a Narrowing>,
    /// What a rule takes of it.
    pub(crate) tightening: Option<Tightening>,
    pub(crate) intent: Intent,
}

impl<'a> Envelope<'a> {
    pub(crate) fn new(link: LinkId, id: &'a str, kind: &'a str, to: &'a [&'a str]) -> Self {
        Self {
            link,
            id,
            kind,
            to,
            correlation: None,
            token: None,
            tightening: None,
            intent: Intent::None,
        }
    }

    /// A request of `a`, with these operations at its addressees.
    pub(crate) fn request(
        link: LinkId,
        id: &'a str,
        to: &'a [&'a str],
        operations: &[u128],
    ) -> Self {
        let calls = operations
            .iter()
            .map(|operation| (op(*operation), *operation))
            .collect();
        let method = Method::Known("tools/call");
        let context = Some("a".into());
        let tag = None;
        let ruling = Some((Some(SHOWN), RULING));
        let requested = Requested {
            method,
            context,
            tag,
            calls,
            ruling,
        };
        Self {
            intent: Intent::Request(requested),
            ..Self::new(link, id, "mcp/request:tools/call:a", to)
        }
    }

    /// An answer to a request of `a`.
    pub(crate) fn answer(
        link: LinkId,
        id: &'a str,
        to: &'a [&'a str],
        correlation: &'a str,
    ) -> Self {
        let intent = Intent::Answer {
            outcome: Outcome::Ok,
            answer: 5,
        };
        Self {
            intent,
            ..Self::new(link, id, "mcp/response:tools/call:a", to).about(correlation)
        }
    }

    pub(crate) fn about(self, correlation: &'a str) -> Self {
        Self {
            correlation: Some(correlation),
            ..self
        }
    }

    /// A rule takes something of it.
    pub(crate) fn tightened(self, by: Tightening) -> Self {
        Self {
            tightening: Some(by),
            ..self
        }
    }

    /// The server now lists another definition than the reviewer saw.
    pub(crate) fn redefined(mut self) -> Self {
        if let Intent::Request(requested) = &mut self.intent {
            requested.ruling = Some((Some(Digest([8; 32])), RULING));
        }
        self
    }
}

/// The digest under which an envelope's id is kept once its proposal is over.
pub(crate) fn digest(envelope: &str) -> u128 {
    envelope.bytes().fold(1, |digest: u128, byte| {
        digest.wrapping_mul(257).wrapping_add(u128::from(byte))
    })
}

impl Stage {
    pub(crate) fn send(&mut self, envelope: Envelope<'_>) -> Effects {
        let Envelope {
            link,
            id,
            kind,
            to,
            correlation,
            token,
            tightening,
            intent,
        } = envelope;
        let about = if kind.starts_with("mcp/proposal") {
            Some(id)
        } else {
            correlation
        };
        let message = id.to_owned();
        let bytes = id.len();
        let proposal_digest = about.map(digest);
        self.step(Event::Say(Say {
            link,
            id,
            kind,
            to,
            correlation,
            proposal_digest,
            narrowing: token,
            tightening,
            message,
            bytes,
            intent,
        }))
    }

    pub(crate) fn say(&mut self, link: LinkId, kind: &str, to: &[&str]) -> Effects {
        self.send(Envelope::new(link, "m", kind, to))
    }

    /// Proposes a call of `a` at `one` by an envelope `p` with the proposal's number.
    pub(crate) fn proposes(&mut self, link: LinkId, by: &str, proposal: u128) -> Effects {
        self.proposes_to(link, by, proposal, &["one"])
    }

    pub(crate) fn proposes_to(
        &mut self,
        link: LinkId,
        by: &str,
        proposal: u128,
        to: &[&str],
    ) -> Effects {
        let by = id(by);
        let named = to.iter().map(|to| id(to)).collect::<Vec<_>>();
        let envelope = format!("p{proposal}");
        let terms = terms(&by, &named, &envelope);
        let intent = Intent::Propose {
            proposal: op(proposal),
            terms: Box::new(terms),
            content: proposal,
        };
        self.send(Envelope {
            intent,
            ..Envelope::new(link, &envelope, "mcp/proposal:tools/call:a", to)
        })
    }
}
