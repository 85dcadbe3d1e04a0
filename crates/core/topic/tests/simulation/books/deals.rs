//! Proposals: the record on disk, the number of runs, and the waiting envelopes of each.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{Capabilities, Digest, OperationId, ParticipantId, ProposalState};
use topic::{AMENDMENTS_MAX, EXPIRY_WARNING_MS, EXTENSION_MS, PROPOSAL_EXTENSIONS_MAX};

use super::{
    Books,
    calls::{Call, Place},
    limits::LIMITS,
};
use crate::{
    numbers::{CountedDecision, ProposalView, Record},
    turn::{Decided, Turn},
};

/// A record as it is compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Written {
    Opened,
    /// An approval after which others must follow. The journal's are in `counted`.
    Counted(Counted),
    /// More time to decide. The journal's are in `extensions`.
    Extended {
        by: ParticipantId,
        ruling: u64,
    },
    /// Another content. The journal's is in `content`.
    Amended {
        content: u64,
        ruling: u64,
    },
    Decided {
        by: ParticipantId,
        state: ProposalState,
        ruling: Option<u64>,
    },
    Ended {
        state: ProposalState,
        answer: Option<u64>,
    },
}

/// An approval of a proposal that needs several.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub(crate) by: ParticipantId,
    pub(crate) ruling: u64,
    /// The capabilities of the participant while it is not in the topic, as far as the topic knows.
    pub(crate) outside: Option<Arc<Capabilities>>,
    /// It came as a request in the room.
    pub(crate) requested: bool,
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        (&self.by, self.ruling) == (&other.by, other.ruling)
    }
}

/// The envelope that fulfils a proposal.
#[derive(Debug, Clone)]
pub(crate) struct Fulfilment {
    pub(crate) envelope: String,
    pub(crate) by: ParticipantId,
    pub(crate) order: u64,
}

/// One proposal, as known outside of the topic. The books keep it after its end and across crashes.
#[derive(Debug, Clone)]
pub(crate) struct Deal {
    pub(crate) by: ParticipantId,
    pub(crate) method: &'static str,
    /// The server's own name or URI.
    pub(crate) own: Option<String>,
    /// The public spelling, of a call that was held.
    pub(crate) public: Option<String>,
    pub(crate) to: Vec<ParticipantId>,
    pub(crate) envelope: String,
    pub(crate) expires_ms: u64,
    pub(crate) expires_wall_ms: u64,
    pub(crate) content: u64,
    pub(crate) held: bool,
    /// The record that the journal has not yet answered.
    pub(crate) writing: Option<Written>,
    /// The record in the journal.
    pub(crate) durable: Vec<Written>,
    /// The number of participants that must approve it, and the approvals in the journal that came
    /// before the decision.
    pub(crate) approvals: usize,
    pub(crate) counted: Vec<Counted>,
    /// Decisions of former bearers of names that were not on disk when these got others.
    pub(crate) void: BTreeSet<u64>,
    /// The number of times that its expiry was moved, and the last decision that did.
    pub(crate) extensions: usize,
    pub(crate) extended: Option<u64>,
    /// The number of times that its proposer replaced its content, and the last decision that did.
    pub(crate) amendments: usize,
    pub(crate) amended: Option<u64>,
    /// The digest of that content.
    pub(crate) version: Digest,
    /// When it is to be warned that it expires.
    pub(crate) warn_ms: Option<u64>,
    pub(crate) proposed: bool,
    pub(crate) approved: u32,
    /// The number of runs on an approval, and by its proposer's own request.
    pub(crate) runs: u32,
    pub(crate) runs_own: u32,
    /// The operation that carries it out.
    pub(crate) runner: Option<OperationId>,
    /// It must end as soon as the journal has answered.
    pub(crate) recalled: bool,
    /// The decision came as a request in the room.
    pub(crate) requested: bool,
    /// The participants that the request names.
    pub(crate) named: Vec<ParticipantId>,
    /// It was approved, and no server has it: a participant in the room answers, in time.
    pub(crate) in_room: bool,
    /// A decision that waits for the opening.
    pub(crate) queued: Option<Decided>,
    pub(crate) fulfilment: Option<Fulfilment>,
    /// The one of the decision that is being written.
    pub(crate) fulfils: Option<Fulfilment>,
    pub(crate) answer: Option<u64>,
    pub(crate) over: Option<ProposalState>,
    /// It ended, and the journal could not write it.
    pub(crate) end_lost: bool,
    /// It was pending before a restart.
    pub(crate) restored: bool,
    /// The topic does not know it any more.
    pub(crate) gone: bool,
}

/// The digest of a proposal whose proposer has put this content in place of the former. Two that wait
/// for the journal at once have two.
pub(crate) fn amended_digest(content: u64) -> Digest {
    let mark = 2 + content % 200;
    Digest([u8::try_from(mark).unwrap(); 32])
}

impl Deal {
    /// Notes that a name has another bearer from now on.
    pub(crate) fn disown(&mut self, by: &ParticipantId) {
        self.counted.retain(|one| one.by != *by);
        if let Some(Written::Counted(one)) = &self.writing
            && one.by == *by
        {
            self.void.insert(one.ruling);
        }
        let queued = self.queued.as_ref().filter(|queued| queued.by == *by);
        self.void.extend(queued.map(|queued| queued.ruling));
    }

    /// The length of its content.
    pub(crate) fn bytes(&self) -> usize {
        let own = bytes_of(self.content);
        match self.writing {
            // Both are there until one is on disk.
            Some(Written::Amended { content, .. }) => own.max(bytes_of(content)),
            _ => own,
        }
    }

    /// The digest of the version that it is now.
    pub(crate) fn digest(&self) -> Digest {
        self.version
    }

    pub(crate) fn is_known(&self) -> bool {
        !self.gone
    }

    /// Whether it is approved, on disk or not yet over.
    pub(crate) fn is_running(&self) -> bool {
        self.approved == 1 && self.over.is_none()
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.is_known()
            && self.over.is_none()
            && self.writing.is_none()
            && self.durable.last() == Some(&Written::Opened)
    }

    pub(crate) fn is_late(&self, now_ms: u64, wall_ms: u64) -> bool {
        self.expires_ms <= now_ms || self.expires_wall_ms <= wall_ms
    }

    /// Whether it may still end without an approval.
    pub(crate) fn may_be_recalled(&self) -> bool {
        let ending = matches!(self.writing, Some(Written::Ended { .. }));
        self.is_known() && self.over.is_none() && self.approved == 0 && !ending
    }
}

/// The length of a content.
pub(crate) fn bytes_of(content: u64) -> usize {
    usize::try_from(content % 8).unwrap()
}

/// When a proposal is to be warned that it expires, unless that has passed.
pub(crate) fn warning(deal: &Deal, now_ms: u64) -> Option<u64> {
    let at_ms = deal.expires_ms.saturating_sub(EXPIRY_WARNING_MS);
    (at_ms > now_ms).then_some(at_ms)
}

impl Books {
    pub(crate) fn deals_open(&self) -> usize {
        self.deals
            .values()
            .filter(|deal| deal.is_known() && deal.over.is_none())
            .count()
    }

    /// The proposal that the topic knows by an envelope.
    pub(crate) fn deal_of(&self, envelope: &str) -> Option<OperationId> {
        let mut found = self
            .deals
            .iter()
            .filter(|(_, deal)| deal.is_known() && deal.envelope == envelope);
        found.next().map(|(id, _)| *id)
    }

    pub(crate) fn recall(&mut self, id: OperationId) {
        let deal = self.deals.get_mut(&id).unwrap();
        deal.recalled |= deal.may_be_recalled();
    }

    pub(crate) fn store(&mut self, id: OperationId, content: u64, record: &Record, turn: &Turn) {
        let now_ms = self.now_ms;
        let deal = self
            .deals
            .get(&id)
            .expect("only a proposal is written down")
            .clone();
        assert!(deal.over.is_none() && deal.is_known(), "{id} is over");
        assert_eq!(deal.writing, None, "one thing at a time is written");
        let is_amendment = matches!(record, Record::Amended { .. });
        assert!(is_amendment || content == deal.content, "another content");
        let last = deal.durable.last();
        let written = match record {
            Record::Opened => {
                assert!(turn.proposing == Some(id) && last.is_none());
                self.deals.get_mut(&id).unwrap().warn_ms = warning(&deal, now_ms);
                Written::Opened
            }
            Record::Counted { by, ruling, .. } => {
                assert_eq!(last, Some(&Written::Opened), "it is decided");
                let decided = self.decision(id, turn).expect("no participant decided");
                self.check_decision(id, &deal, (by, ProposalState::Running, *ruling), turn);
                let before = self.counting(&deal, by);
                assert!(before + 1 < deal.approvals, "{id} has all its approvals");
                Written::Counted(Counted {
                    by: by.clone(),
                    ruling: *ruling,
                    outside: decided.outside,
                    requested: decided.requested,
                })
            }
            Record::Extended {
                by,
                expires_wall_ms,
                ruling,
            } => {
                assert_eq!(last, Some(&Written::Opened), "it is decided");
                self.check_decision(id, &deal, (by, ProposalState::Pending, *ruling), turn);
                assert!(
                    deal.extensions < PROPOSAL_EXTENSIONS_MAX,
                    "{id} has had all its time"
                );
                assert_eq!(*expires_wall_ms, deal.expires_wall_ms + EXTENSION_MS);
                Written::Extended {
                    by: by.clone(),
                    ruling: *ruling,
                }
            }
            Record::Amended { by, ruling } => {
                assert_eq!(last, Some(&Written::Opened), "it is decided");
                let decided = self.decision(id, turn).expect("no participant amended");
                assert_eq!(decided.amends, Some(content));
                self.check_decision(id, &deal, (by, ProposalState::Pending, *ruling), turn);
                assert!(deal.amendments < AMENDMENTS_MAX, "{id} has been amended");
                Written::Amended {
                    content,
                    ruling: *ruling,
                }
            }
            Record::Decided {
                by, state, ruling, ..
            } => {
                if *state == ProposalState::Running {
                    let before = self.counting(&deal, by);
                    assert!(before + 1 >= deal.approvals, "{id} needs more approvals");
                    self.count("decided by several");
                }
                assert_eq!(
                    last,
                    Some(&Written::Opened),
                    "only a pending proposal is decided"
                );
                match ruling {
                    Some(ruling) => self.check_decision(id, &deal, (by, *state, *ruling), turn),
                    None => {
                        assert_eq!((by, *state), (&deal.by, ProposalState::Withdrawn));
                        assert!(deal.recalled, "{id} was withdrawn without cause");
                        self.count("recalled");
                    }
                }
                Written::Decided {
                    by: by.clone(),
                    state: *state,
                    ruling: *ruling,
                }
            }
            Record::Ended { state, answer, .. } => {
                self.check_end(id, &deal, (*state, *answer), turn);
                Written::Ended {
                    state: *state,
                    answer: *answer,
                }
            }
        };
        if let Written::Ended {
            state: ProposalState::Expired,
            ..
        } = written
        {
            assert!(
                deal.is_late(now_ms, self.wall_ms) && last == Some(&Written::Opened),
                "{id} expired early"
            );
        }
        let deal = self.deals.get_mut(&id).unwrap();
        let is_decision = match &written {
            Written::Counted(_) | Written::Extended { .. } | Written::Amended { .. } => true,
            Written::Decided { ruling, .. } => ruling.is_some(),
            Written::Opened | Written::Ended { .. } => false,
        };
        // Another one may wait for the approval that is written.
        let is_queued = |own: u64| deal.queued.as_ref().is_some_and(|one| one.ruling == own);
        let ruling = match &written {
            Written::Counted(counted) => Some(counted.ruling),
            Written::Extended { ruling, .. } | Written::Amended { ruling, .. } => Some(*ruling),
            Written::Decided { ruling, .. } => *ruling,
            Written::Opened | Written::Ended { .. } => None,
        };
        if is_decision && ruling.is_some_and(is_queued) {
            deal.queued = None;
        }
        deal.writing = Some(written);
    }

    /// The deal of which this very step has the record.
    fn written(&mut self, id: OperationId, turn: &Turn) -> &mut Deal {
        assert_eq!(
            turn.journal,
            Some((id, true)),
            "{id}: known before it was on disk"
        );
        self.deals.get_mut(&id).unwrap()
    }

    pub(crate) fn proposed(&mut self, view: &ProposalView, turn: &Turn) {
        let deal = self.written(view.id, turn);
        assert_eq!(
            (deal.durable.last(), deal.content),
            (Some(&Written::Opened), view.content)
        );
        assert_eq!(
            (&deal.by, &*deal.envelope, deal.held),
            (&view.by, &*view.envelope, view.held)
        );
        assert!(
            !deal.proposed && !deal.recalled,
            "{} was proposed twice or in vain",
            view.id
        );
        deal.proposed = true;
    }

    pub(crate) fn not_proposed(
        &mut self,
        id: OperationId,
        by: &ParticipantId,
        (content, held): (u64, bool),
        turn: &Turn,
    ) {
        assert!(turn.proposing == Some(id) || turn.journal == Some((id, false)));
        let deal = self.deals.get_mut(&id).unwrap();
        assert_eq!((&deal.by, deal.content, deal.held), (by, content, held));
        assert!(!deal.gone && deal.durable.is_empty(), "{id} is on disk");
        (deal.gone, deal.recalled) = (true, false);
        if !held {
            let envelope = deal.envelope.clone();
            self.rejected.entry(envelope).or_insert_with(|| by.clone());
        }
    }

    /// A proposer that sends its proposal once more gets the state.
    pub(crate) fn reminded(&mut self, handle: u64, view: &ProposalView, turn: &Turn) {
        assert_eq!(turn.reminds, Some(view.id));
        let deal = &self.deals[&view.id];
        let own = self
            .links
            .values()
            .find(|link| link.handle == handle)
            .expect("its sender is here");
        assert_eq!(
            (&own.participant, &view.by, view.content),
            (&deal.by, &deal.by, deal.content)
        );
        assert!(!deal.durable.is_empty(), "{} is not on disk", view.id);
        if let Some(state) = deal.over {
            assert_eq!(view.state, state);
        }
        assert!(view.state != ProposalState::Rejected || deal.approved == 0);
    }

    /// The participants beside this one whose approvals count at this moment.
    pub(crate) fn counting(&self, deal: &Deal, last: &ParticipantId) -> usize {
        let others = deal.counted.iter().filter(|one| one.by != *last);
        others.filter(|one| self.still_counts(deal, one)).count()
    }

    pub(crate) fn still_counts(&self, deal: &Deal, counted: &Counted) -> bool {
        let inside = self
            .is_here(&counted.by)
            .then(|| self.granted(&counted.by))
            .flatten();
        let granted = inside.or(counted.outside.as_ref());
        !self.braked.contains(&counted.by)
            && granted.is_some_and(|granted| self.could_decide(granted, deal))
    }

    /// An approval counts, is on disk, and others must follow.
    pub(crate) fn counted(&mut self, counted: &CountedDecision, turn: &Turn) {
        let CountedDecision {
            proposal: view,
            by,
            is_amended,
            ruling,
        } = counted;
        let deal = self.written(view.id, turn).clone();
        let last = deal.counted.last().map(|one| (&one.by, one.ruling));
        assert_eq!(last, Some((by, *ruling)));
        assert!(!deal.void.contains(ruling), "it is of a former bearer");
        assert!(!is_amended, "no participant changes arguments here");
        assert_eq!(deal.approved, 0, "{} runs already", view.id);
        let counts = deal
            .counted
            .iter()
            .filter(|one| self.still_counts(&deal, one));
        let by: Vec<_> = counts.map(|one| one.by.clone()).collect();
        assert_eq!(view.approved_by, by);
        self.count("counted");
    }

    /// There is more time to decide, and that is on disk.
    pub(crate) fn extended(
        &mut self,
        view: &ProposalView,
        by: &ParticipantId,
        ruling: u64,
        turn: &Turn,
    ) {
        let deal = self.written(view.id, turn);
        assert_eq!(
            (deal.extended, deal.approved, &deal.over),
            (Some(ruling), 0, &None)
        );
        assert_ne!(*by, deal.by);
        assert_eq!(
            (view.expires_wall_ms, view.extensions),
            (deal.expires_wall_ms, deal.extensions)
        );
    }

    /// Its proposer has replaced the content of a proposal, and that is on disk.
    pub(crate) fn amended(&mut self, view: &ProposalView, ruling: u64, turn: &Turn) {
        let deal = self.written(view.id, turn);
        assert_eq!(
            (deal.amended, deal.approved, &deal.over),
            (Some(ruling), 0, &None)
        );
        assert_eq!(
            (view.content, view.amendments),
            (deal.content, deal.amendments)
        );
        assert!(view.approved_by.is_empty(), "an approval of before counts");
    }

    /// Whether another content of a proposal has room.
    pub(crate) fn has_room_for(&self, deal: &Deal, content: u64) -> bool {
        let open = || {
            let all = self.deals.values();
            all.filter(|one| one.is_known() && one.over.is_none())
        };
        let own = open().filter(|one| one.by == deal.by).map(Deal::bytes);
        let instead = |sum: usize| sum - deal.bytes() + bytes_of(content);
        instead(open().map(Deal::bytes).sum()) <= LIMITS.proposal_bytes_max
            && instead(own.sum()) <= LIMITS.proposal_bytes_per_participant_max
    }

    /// A proposal expires soon, which is said once.
    pub(crate) fn expiring(&mut self, view: &ProposalView) {
        let (now_ms, wall_ms) = (self.now_ms, self.wall_ms);
        let deal = self.deals.get_mut(&view.id).unwrap();
        assert!(deal.is_pending() && !deal.is_late(now_ms, wall_ms));
        let due = deal.warn_ms.take();
        assert!(due.is_some_and(|due_ms| due_ms <= now_ms), "{due:?}");
    }

    pub(crate) fn approved(&mut self, view: &ProposalView, servers: &[ParticipantId], turn: &Turn) {
        let id = view.id;
        let held = self.calls.values().any(|open| {
            open.proposal == Some(id) && matches!(open.place, Place::Held | Place::Parked)
        });
        self.opened += 1;
        let order = self.opened;
        let deal = self.written(id, turn);
        let Some(Written::Decided {
            by,
            state: ProposalState::Running,
            ..
        }) = deal.durable.last()
        else {
            panic!("{id} was not approved: {:?}", deal.durable);
        };
        assert_ne!(*by, deal.by, "a participant approved its own proposal");
        assert_eq!(
            (view.decided_by.as_ref(), view.content),
            (Some(by), deal.content)
        );
        assert!(deal.proposed && !deal.recalled, "{id} was approved in vain");
        deal.fulfilment = deal.fulfils.take();
        if let Some(fulfilment) = &mut deal.fulfilment {
            fulfilment.order = order;
        }
        deal.approved += 1;
        assert_eq!(deal.approved, 1, "{id} was approved twice");
        deal.in_room = !held && servers.is_empty();
        let to = deal.to.clone();
        let was_held = deal.held;
        let requested = deal.requested;
        let runs_at = |id: &&ParticipantId| {
            let names = self.configured.iter().find(|names| names.id == **id);
            names.is_some_and(|names| !names.builtin && (was_held || !names.serves))
        };
        let mine: Vec<ParticipantId> = to.iter().filter(runs_at).cloned().collect();
        assert_eq!(servers, if held || requested { &[][..] } else { &mine });
        self.to_execute
            .extend(servers.iter().map(|server| (id, server.clone())));
    }

    /// A server gets exactly the proposed request, approved, once.
    pub(crate) fn runs(
        &mut self,
        id: OperationId,
        operation: OperationId,
        server: &ParticipantId,
        call: &Call,
    ) {
        let deal = self.deals.get_mut(&id).unwrap();
        assert!(deal.is_running(), "{id} runs unapproved");
        deal.runs += 1;
        assert_eq!((deal.runs, deal.runs_own), (1, 0), "{id} runs twice");
        assert!(
            deal.to.is_empty() || deal.to.contains(server),
            "{id} runs elsewhere"
        );
        assert_eq!(
            (deal.method, &deal.own),
            (call.method, &call.own),
            "{id} runs as something else"
        );
        deal.runner = Some(operation);
        self.count("carried out");
    }

    /// The proposer's own request runs: the proposal is withdrawn or expired, and that is on disk.
    pub(crate) fn runs_own(&mut self, id: OperationId) {
        let deal = self.deals.get_mut(&id).unwrap();
        let never = matches!(
            deal.over,
            Some(ProposalState::Withdrawn | ProposalState::Expired)
        ) && !deal.end_lost;
        // A failed opening makes no proposal.
        assert!(
            never || deal.gone && deal.durable.is_empty(),
            "{id} could run twice: {deal:?}"
        );
        assert_eq!((deal.approved, deal.runs), (0, 0), "{id} runs twice");
        deal.runs_own += 1;
        self.count("carried out by its proposer");
    }

    /// Calls that this step gives up, and the proposals that end with them.
    pub(crate) fn give_up(&mut self, turn: &Turn) {
        let gone = |operation: &OperationId, open: &Call| {
            let leaves = turn.leaving.iter().any(|(link, _)| *link == open.link) && !open.answered;
            let context = open.public.as_deref();
            let at = open.server.as_str();
            let unentitled = || {
                !self.admits(&open.by, None, open.method, context, at)
                    && !self.proposes(&open.by, None, open.method, context, at)
            };
            let cancelled = turn.cancelling == Some(*operation) || leaves;
            let dismissed = turn.dismissed.contains(&open.server);
            match open.place {
                Place::Held => {
                    cancelled
                        || dismissed
                        || turn.regrants.as_ref() == Some(&open.by) && unentitled()
                }
                Place::Parked => dismissed,
                Place::Waiting { withdraws } => withdraws && cancelled,
                Place::AtServer | Place::Paused | Place::Kept { .. } => false,
            }
        };
        let ended = self
            .calls
            .iter()
            .filter(|(operation, open)| gone(operation, open));
        let ended: Vec<OperationId> = ended.filter_map(|(_, open)| open.proposal).collect();
        let ended = if self.stopping { Vec::new() } else { ended };
        ended
            .into_iter()
            .chain(turn.own)
            .for_each(|id| self.recall(id));
    }

    /// A held call is over: its proposal goes on only while the gateway stops.
    pub(crate) fn check_given_up(&self, open: &Call) {
        let held = matches!(open.place, Place::Held | Place::Parked);
        let Some(deal) = open.proposal.filter(|_| held).map(|id| &self.deals[&id]) else {
            return;
        };
        assert!(
            !deal.may_be_recalled() || deal.recalled || self.stopping,
            "{deal:?} goes on without its call"
        );
    }

    /// The invariants of every proposal after each step.
    pub(crate) fn check_deals(&self) {
        for (id, deal) in self
            .deals
            .iter()
            .filter(|(_, deal)| deal.is_known() && deal.over.is_none())
        {
            let waits = deal.writing.is_some();
            assert!(!deal.recalled || waits, "{id} is still open: {deal:?}");
            assert!(
                deal.approved == 0 || waits || self.will_end(deal),
                "{id} runs for ever: {deal:?}"
            );
            let held = self.calls.values().any(|open| {
                open.proposal == Some(*id) && matches!(open.place, Place::Held | Place::Parked)
            });
            assert!(
                deal.approved == 0 || !held,
                "{id} was approved, and its call was not let go"
            );
            let awaited = deal.in_room && deal.is_running() && deal.runs == 0 && !waits;
            assert!(
                !awaited || self.is_answerable(deal),
                "{id} waits for participants that are gone: {deal:?}"
            );
        }
        for (call, waiting) in &self.waiting {
            let deal = &self.deals[&waiting.proposal];
            assert!(
                deal.over.is_none() && deal.writing.is_some(),
                "call {call} waits for what is over"
            );
        }
    }

    /// Whether a participant that may answer in the room is there.
    pub(crate) fn is_answerable(&self, deal: &Deal) -> bool {
        let named = deal.named.iter().filter(|one| **one != deal.by).collect();
        let asked: Vec<&ParticipantId> = if deal.to.is_empty() {
            named
        } else {
            deal.to.iter().collect()
        };
        let is_here =
            |one: &&ParticipantId| self.links.values().any(|link| link.participant == **one);
        asked.is_empty() || asked.iter().any(is_here)
    }

    /// Whether all participants that would carry it out have left and one may be back in a moment;
    /// a decision without an envelope names none.
    pub(crate) fn are_away(&self, deal: &Deal, named: &[ParticipantId]) -> bool {
        let asked = if deal.to.is_empty() { named } else { &deal.to };
        let mut asked = asked.iter().filter(|one| **one != deal.by);
        let waits = |one: &ParticipantId| {
            self.configured
                .iter()
                .any(|names| names.id == *one && !names.serves)
        };
        let is_here =
            |one: &ParticipantId| self.links.values().any(|link| link.participant == *one);
        let is_recent = |at_ms: u64| self.now_ms - at_ms < LIMITS.away_ms;
        let began = self.began_ms.is_none_or(is_recent);
        let is_away =
            |one: &ParticipantId| began || self.left_ms.get(one).copied().is_some_and(is_recent);
        !asked.clone().any(|one| waits(one) || is_here(one)) && asked.any(is_away)
    }

    /// Whether an operation or deadline will end an approved proposal.
    fn will_end(&self, deal: &Deal) -> bool {
        let runs = deal
            .runner
            .is_some_and(|runner| self.calls.contains_key(&runner));
        // A participant in the room has a deadline to answer.
        runs || deal.runs == 0
    }
}
