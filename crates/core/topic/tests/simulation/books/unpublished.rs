//! Envelopes that name a proposal: published once what becomes of it is on disk and they count, and
//! not at all otherwise.

use std::collections::BTreeSet;

use model::{KindRef, LinkId, Narrowing, OperationId, ProposalState};

use super::{Books, deals::Written, envelopes::is_direct_act, room::Message};
use crate::turn::Turn;

/// An envelope that was admitted and waits.
#[derive(Debug, Clone)]
pub(crate) struct Unpublished {
    pub(crate) proposal: OperationId,
    /// It is the proposer's own request; else it fulfils the proposal.
    pub(crate) own: bool,
    /// It is the proposal itself.
    pub(crate) proposes: bool,
    /// It rejects the proposal.
    pub(crate) rejects: bool,
    pub(crate) link: LinkId,
    pub(crate) kind: String,
    pub(crate) token: Option<Narrowing>,
    pub(crate) message: Message,
}

impl Books {
    /// A message that was not published in the step that brought it.
    pub(crate) fn published_late(&mut self, message: u64) -> Message {
        let kept = self
            .unpublished
            .iter()
            .find(|kept| kept.message.message == message);
        let kept = kept.expect("only an envelope is published").message.clone();
        assert!(self.room.late.insert(message), "published twice");
        kept
    }

    /// All that waited for the record of this step is published, if it counts.
    pub(crate) fn finish_unpublished(&mut self, turn: &Turn) {
        let late = std::mem::take(&mut self.room.late);
        let (due, waits): (Vec<_>, Vec<_>) = std::mem::take(&mut self.unpublished)
            .into_iter()
            .partition(|kept| self.is_due(kept, turn));
        let counts = due.iter().filter(|kept| self.counts(kept));
        let counts: BTreeSet<u64> = counts.map(|kept| kept.message.message).collect();
        assert_eq!(late, counts, "{due:?}");
        for kept in &due {
            let published = counts.contains(&kept.message.message);
            self.count(match (published, kept.proposes) {
                (true, true) => "proposal published",
                (true, false) => "published once it counted",
                (false, _) => "not published",
            });
        }
        self.unpublished = waits;
    }

    /// The envelope of an approval after which others must follow is not published: the first that
    /// waits, as the others wait for it.
    pub(crate) fn forget_fulfilment(&mut self, id: OperationId) {
        let is_it = |kept: &Unpublished| {
            kept.proposal == id && !kept.own && !kept.proposes && !kept.rejects
        };
        if let Some(at) = self.unpublished.iter().position(is_it) {
            self.unpublished.remove(at);
            self.count("not published");
        }
    }

    fn is_due(&self, kept: &Unpublished, turn: &Turn) -> bool {
        let deal = &self.deals[&kept.proposal];
        let approved = !kept.own && deal.approved > 0;
        let is_due = kept.proposes || approved || deal.writing.is_none();
        turn.journal.is_some_and(|(id, _)| id == kept.proposal) && is_due
    }

    fn counts(&self, kept: &Unpublished) -> bool {
        let deal = &self.deals[&kept.proposal];
        if kept.proposes {
            return deal.proposed;
        }
        if kept.rejects {
            let last = deal.durable.last();
            return matches!(last, Some(Written::Decided { state, .. }) if *state == ProposalState::Rejected);
        }
        if !kept.own {
            return deal.approved > 0;
        }
        let withdrawn = matches!(
            deal.over,
            Some(ProposalState::Withdrawn | ProposalState::Expired)
        );
        let never = withdrawn && !deal.end_lost || deal.gone && deal.durable.is_empty();
        let to: Vec<&str> = kept.message.to.iter().map(String::as_str).collect();
        let kind = KindRef::parse(&kept.kind).unwrap();
        never
            && self.links.get(&kept.link).is_some_and(|own| {
                let by = &own.participant;
                let token = kept.token.as_ref();
                let waits = self.braked.contains(by) && is_direct_act(kind, &to);
                !waits
                    && (self
                        .granted_with(by, token)
                        .is_some_and(|granted| granted.admits(kind, &to))
                        || self.is_about_own(by, token, &kept.kind, &to))
            })
    }
}
