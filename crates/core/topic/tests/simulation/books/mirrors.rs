//! Mirrors of MCP clients' calls, each with its end.

use std::collections::{BTreeMap, BTreeSet};

use model::{DeliveryMode, OperationId, Outcome};
use topic::{Audience, Mirrored};

use super::{Books, calls::Call};
use crate::{numbers::Numbers, turn::Turn};

#[derive(Debug, Default)]
pub(crate) struct Mirrors {
    /// Calls that this step shows.
    started: BTreeSet<OperationId>,
    /// Ends that this step shows.
    ended: BTreeMap<OperationId, Outcome>,
    /// Calls that were shown and end in this step.
    over: BTreeMap<OperationId, Outcome>,
}

impl Mirrors {
    pub(crate) fn begin(&mut self) {
        (self.started, self.ended, self.over) = <_>::default();
    }
}

impl Books {
    pub(crate) fn is_watched(&self) -> bool {
        self.room
            .listeners
            .values()
            .any(|listener| listener.listener.mode == DeliveryMode::All)
    }

    pub(crate) fn mirrored(&mut self, mirrored: &Mirrored<Numbers>, audience: &Audience) {
        let Mirrored {
            operation,
            from,
            to,
            call,
            end,
            ..
        } = mirrored;
        let except = end.is_none().then_some(to);
        for (link, listener) in &self.room.listeners {
            let must = listener.listener.mode == DeliveryMode::All
                && except != Some(&listener.participant);
            assert_eq!(
                audience.includes(*link, listener.participant.as_str(), listener.listener),
                must,
                "{listener:?}"
            );
        }
        match end {
            None => assert!(
                self.mirrors.started.insert(*operation),
                "{operation} was shown twice"
            ),
            Some((outcome, _)) => {
                let open = &self.calls[operation];
                assert!(open.mirrored, "{operation} was not shown");
                assert_eq!((open.call, &open.by, &open.server), (*call, from, to));
                assert!(
                    self.mirrors.ended.insert(*operation, *outcome).is_none(),
                    "{operation} ended twice"
                );
            }
        }
    }

    /// A call is delivered: if it is an MCP client's own, every watcher sees it.
    pub(crate) fn check_mirror(&mut self, operation: OperationId, proposal: Option<OperationId>) {
        let watched = self.is_watched();
        let open = self.calls.get_mut(&operation).unwrap();
        let by_call = self.links.get(&open.link).is_some_and(|link| link.promotes);
        let shown = by_call && proposal.is_none() && open.server.as_str() != model::GATEWAY;
        assert_eq!(
            self.mirrors.started.remove(&operation),
            shown && watched,
            "{operation}"
        );
        open.mirrored = shown && watched;
    }

    pub(crate) fn end_mirror(&mut self, operation: OperationId, open: &Call, outcome: Outcome) {
        if open.mirrored {
            self.mirrors.over.insert(operation, outcome);
        }
    }

    pub(crate) fn finish_mirrors(&mut self, turn: &Turn) {
        let Mirrors {
            started,
            ended,
            over,
        } = std::mem::take(&mut self.mirrors);
        assert!(started.is_empty(), "shown and not delivered: {started:?}");
        assert!(
            ended
                .iter()
                .all(|(id, outcome)| over.get(id) == Some(outcome)),
            "{ended:?} {over:?}"
        );
        // A listener that joins in this very step has seen none of them, and one that leaves may
        // miss them.
        let joins = turn.joining.as_ref().map(|own| own.link);
        let stays =
            |link| joins != Some(link) && !turn.leaving.iter().any(|(other, _)| *other == link);
        let mut watchers = self
            .room
            .listeners
            .iter()
            .filter(|(_, listener)| listener.listener.mode == DeliveryMode::All);
        if watchers.any(|(link, _)| stays(*link)) {
            assert_eq!(
                ended.len(),
                over.len(),
                "an end was not shown: {ended:?} {over:?}"
            );
        }
        if !ended.is_empty() {
            self.count("end shown");
        }
    }
}
