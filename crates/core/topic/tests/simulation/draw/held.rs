//! Held calls and their proposals.

use std::collections::BTreeSet;

use model::{Digest, Method, OperationId, Outcome, ParticipantId, Refusal, RefusalCode};
use topic::{Cause, EXPIRY_WARNING_MS, End, Terms};

use crate::{
    books::{calls::Place, deals::Deal, limits::LIMITS},
    numbers::{Effect, Event},
    shell::Mailbox,
    turn::{Answering, Turn},
    world::World,
};

/// The digest of a proposed request as reviewers see it.
/// The digest of a proposal that was never amended.
pub(crate) const FIRST: Digest = Digest([1; 32]);
/// The digest of no proposal.
pub(crate) const OTHER: Digest = Digest([255; 32]);

impl World {
    /// The cause for which the topic does not accept one more proposal under this envelope.
    pub(crate) fn unproposable(&self, deal: &Deal) -> Option<Cause> {
        let open = || {
            self.books
                .deals
                .values()
                .filter(|deal| deal.is_known() && deal.over.is_none())
        };
        let own = || open().filter(|known| known.by == deal.by);
        let full = open().count() >= LIMITS.proposals_max
            || own().count() >= LIMITS.proposals_per_participant_max
            || open().map(Deal::bytes).sum::<usize>() + deal.bytes() > LIMITS.proposal_bytes_max
            || own().map(Deal::bytes).sum::<usize>() + deal.bytes()
                > LIMITS.proposal_bytes_per_participant_max;
        let repeated = self.books.deal_of(&deal.envelope).is_some();
        full.then_some(Cause::Limit)
            .or(repeated.then_some(Cause::Repeated))
    }

    /// A new envelope id; sometimes one that has proposed already.
    pub(crate) fn envelope(&mut self) -> String {
        let known: Vec<String> = self
            .books
            .deals
            .values()
            .map(|deal| deal.envelope.clone())
            .collect();
        let again = self
            .prng
            .pick(&known)
            .cloned()
            .filter(|_| self.prng.one_in(6));
        again.unwrap_or_else(|| format!("e{}", self.number()))
    }

    pub(crate) fn expiry(&mut self) -> u64 {
        let long = if self.prng.one_in(4) { 2_000 } else { 40_000 };
        // Some live long enough for a warning.
        let after_ms = if self.beside.one_in(6) {
            EXPIRY_WARNING_MS
        } else {
            0
        };
        self.now_ms + after_ms + self.prng.below(long) as u64
    }

    pub(crate) fn propose_held(&mut self) {
        let waits = self
            .books
            .calls
            .iter()
            .find(|(_, open)| open.place == Place::Held && open.proposal.is_none());
        let Some((held, open)) = waits.map(|(held, open)| (*held, open.clone())) else {
            return;
        };
        self.shell.empty(Mailbox::Call(open.call));
        if self.prng.one_in(10) {
            return self.gives_up(held);
        }
        let stranger = ParticipantId::new("stranger").unwrap();
        let by = if self.prng.one_in(12) {
            stranger
        } else {
            open.by.clone()
        };
        let proposal = self.fresh();
        let envelope = self.envelope();
        let content = self.number();
        let expires_ms = self.expiry();
        let park_ms = self.now_ms + self.prng.below(2_500) as u64;
        let deal = Deal {
            held: true,
            own: open.own.clone(),
            public: open.public.clone(),
            expires_wall_ms: expires_ms + (self.wall_ms() - self.now_ms),
            ..blank(
                by.clone(),
                open.method,
                vec![open.server.clone()],
                &envelope,
                (expires_ms, content),
            )
        };
        let not = if by == open.by {
            self.unproposable(&deal)
        } else {
            Some(Cause::Moot)
        };
        self.books.deals.insert(proposal, deal.clone());
        if not.is_none() {
            self.books.calls.get_mut(&held).unwrap().proposal = Some(proposal);
        }
        let terms = terms(&deal);
        let turn = Turn {
            proposing: Some(proposal),
            ..Turn::default()
        };
        let effects = self.live(
            Event::Propose {
                proposal,
                terms: Box::new(terms),
                content,
                held,
                park_ms,
            },
            turn,
        );
        self.check_proposed(proposal, not, &effects.all);
    }

    pub(crate) fn check_proposed(
        &mut self,
        proposal: OperationId,
        not: Option<Cause>,
        effects: &[Effect],
    ) {
        let cause = effects.iter().find_map(|effect| match effect {
            Effect::NotProposed { cause, .. } => Some(*cause),
            _ => None,
        });
        assert_eq!(cause, not);
        assert_eq!(
            self.books.deals[&proposal].writing.is_some(),
            not.is_none(),
            "it is written down"
        );
    }

    /// The held call cannot be proposed.
    fn gives_up(&mut self, held: OperationId) {
        let refusal = Box::new(Refusal::new(RefusalCode::Malformed, "it cannot be shown"));
        let outcome = Outcome::Ok;
        let answer = self.prng.one_in(2).then(|| self.number());
        let end = answer.map_or(End::Failed(refusal), |answer| End::Answered {
            outcome,
            answer,
        });
        let answering = answer.map(|_| Answering {
            operation: held,
            answer,
            outcome,
        });
        let effects = self.live(
            Event::Unproposable { held, end },
            Turn {
                answering,
                ..Turn::default()
            },
        );
        match effects.all.last() {
            Some(Effect::Settle {
                answer: settled,
                proposal: None,
                ..
            }) => {
                assert_eq!(Some(*settled), answer)
            }
            Some(Effect::Refuse {
                cause: Cause::Failed,
                ..
            }) => assert_eq!(answer, None),
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn terms(deal: &Deal) -> Terms {
    Terms {
        by: deal.by.clone(),
        method: Method::Other(deal.method.into()),
        context: deal.own.as_deref().map(Into::into),
        to: deal.to.clone().into(),
        envelope: deal.envelope.as_str().into(),
        digest: deal.digest(),
        expires_ms: deal.expires_ms,
        expires_wall_ms: deal.expires_wall_ms,
        bytes: deal.bytes(),
        approvals: deal.approvals,
        extensions: deal.extensions,
        amendments: deal.amendments,
        plan: None,
    }
}

pub(crate) fn blank(
    by: ParticipantId,
    method: &'static str,
    to: Vec<ParticipantId>,
    envelope: &str,
    (expires_ms, content): (u64, u64),
) -> Deal {
    let (own, public, writing, durable, runner, queued, fulfilment, fulfils, named) =
        <_>::default();
    let answer = None;
    let over = None;
    let envelope = envelope.to_owned();
    let (held, proposed, recalled, requested, in_room, end_lost, restored, gone) = <_>::default();
    let approved = 0;
    // A third needs two, some need three.
    let approvals = [1, 1, 2, 1, 3, 2][usize::try_from(content % 6).unwrap()];
    let counted = Vec::new();
    let (extensions, extended, warn_ms) = <_>::default();
    let (amendments, amended) = <_>::default();
    let runs = 0;
    let runs_own = 0;
    Deal {
        by,
        method,
        own,
        public,
        to,
        envelope,
        expires_ms,
        expires_wall_ms: 0,
        content,
        held,
        writing,
        durable,
        approvals,
        counted,
        extensions,
        extended,
        amendments,
        amended,
        version: FIRST,
        void: BTreeSet::new(),
        warn_ms,
        proposed,
        approved,
        runs,
        runs_own,
        runner,
        recalled,
        requested,
        named,
        in_room,
        queued,
        fulfilment,
        fulfils,
        answer,
        over,
        end_lost,
        restored,
        gone,
    }
}
