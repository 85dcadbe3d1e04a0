//! Simulated plans: a topic of its own with random plans, decisions, rights, pauses, answers, faults of
//! the journal and crashes, and a simple book of each step.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    Capabilities, Digest, LinkId, Method, OperationId, Outcome, ParticipantId, ProposalState,
};
use topic::{
    Brake, Configure, Decision, End, EndedProposal, Join, Joining, Now, PlanPlace, PlanStep,
    ProposePlan, Restore, RunStep, Seating, Terms,
};

use crate::{
    names::{configured, id, parse},
    numbers::{Effect, Event, Numbers, Record, Topic},
    prng::Prng,
    seen::{Tally, name},
    variants,
    world::World,
};

const STEPS: usize = 120;
const SERVERS: [(&str, LinkId); 2] = [("one", LinkId(101)), ("two", LinkId(102))];
const REVIEWERS: [(&str, LinkId); 2] = [("ann", LinkId(1)), ("cid", LinkId(3))];
const PROPOSER: &str = "bob";
/// A participant that decides without being in the topic.
const OUTSIDE: &str = "operator";
/// Grants, each with the servers whose tool it may decide about.
const GRANTS: [(&[&str], &[&str]); 5] = [
    (&["mcp/*"], &["one", "two"]),
    (&["mcp/approve:tools/call:*"], &["one", "two"]),
    (&["mcp/request:tools/call:one_a"], &["one"]),
    (&["mcp/approve:tools/call:two_a"], &["two"]),
    (&["chat"], &[]),
];
const OTHER: Digest = Digest([255; 32]);

/// The last record of a step in the journal.
#[derive(Debug, Clone, PartialEq)]
enum OnDisk {
    Opened,
    Approved,
    Ended(ProposalState, Option<u64>),
}

#[derive(Debug, Clone)]
struct Step {
    server: &'static str,
    /// The step before it.
    before: Option<OperationId>,
    place: PlanPlace,
    approvals: usize,
    on_disk: Option<OnDisk>,
    writing: Option<OnDisk>,
    /// The approvals that are on disk, of a first step that needs several.
    counted: BTreeSet<ParticipantId>,
    counting: Option<ParticipantId>,
    /// The participants on whose approval it runs.
    approved_by: BTreeSet<ParticipantId>,
    is_due: bool,
    approved: u32,
    runs: u32,
    is_over: bool,
}

#[derive(Default)]
struct Plans {
    steps: BTreeMap<OperationId, Step>,
    /// The place in [`GRANTS`] of each participant.
    granted: BTreeMap<&'static str, usize>,
    braked: BTreeSet<&'static str>,
    /// Steps whose turns have come.
    due: Vec<OperationId>,
    /// Steps that the gateway is to carry out, and calls that do.
    to_execute: Vec<OperationId>,
    running: Vec<(OperationId, OperationId)>,
    /// The participant that decides in this step, and the first step that it decides about.
    deciding: Option<(ParticipantId, OperationId)>,
    tally: Tally,
}

impl Plans {
    fn count(&mut self, name: &'static str) {
        *self.tally.entry(name).or_default() += 1;
    }

    fn may_decide(&self, who: &str, server: &str) -> bool {
        let granted = self.granted.get(who).map(|at| GRANTS[*at].1);
        let granted = if who == OUTSIDE {
            Some(GRANTS[0].1)
        } else {
            granted
        };
        !self.braked.contains(who) && granted.is_some_and(|all| all.contains(&server))
    }

    fn has_succeeded(&self, step: OperationId) -> bool {
        let Some(OnDisk::Ended(ProposalState::Completed, answer)) = self.steps[&step].on_disk
        else {
            return false;
        };
        answer.is_some_and(|answer| !answer.is_multiple_of(3))
    }

    /// A record is given to the journal.
    fn store(&mut self, id: OperationId, record: &Record) {
        let step = self.steps[&id].clone();
        assert_eq!(step.writing, None, "one thing at a time is written");
        assert!(!step.is_over, "{id} is over");
        let written = match record {
            Record::Opened => {
                assert!(step.place.at == 0 && step.on_disk.is_none());
                OnDisk::Opened
            }
            Record::Counted { by, .. } => {
                self.check_decision(by, &step);
                let others = step.counted.iter().filter(|one| *one != by);
                let counting = others.filter(|one| self.decides_all(one.as_str(), &step));
                assert!(
                    counting.count() + 1 < step.approvals,
                    "{id} has its approvals"
                );
                self.steps.get_mut(&id).unwrap().counting = Some(by.clone());
                OnDisk::Opened
            }
            Record::Extended { by, .. } => {
                self.check_decision(by, &step);
                OnDisk::Opened
            }
            Record::Amended { .. } => panic!("a plan runs as it was proposed"),
            Record::Decided { by, state, .. } => self.decided(id, by, *state),
            Record::Ended { state, answer, .. } => {
                let has_run = matches!(state, ProposalState::Completed | ProposalState::Failed);
                assert_eq!(step.approved == 1, has_run, "{id} {state}");
                assert!(!has_run || step.on_disk == Some(OnDisk::Approved));
                assert!(*state != ProposalState::Expired || step.place.at == 0);
                OnDisk::Ended(*state, *answer)
            }
        };
        self.steps.get_mut(&id).unwrap().writing = Some(written);
    }

    /// A decision about a first step, or the approval of a later one in its turn.
    fn decided(&mut self, id: OperationId, by: &ParticipantId, state: ProposalState) -> OnDisk {
        let step = self.steps[&id].clone();
        assert_eq!(step.on_disk, Some(OnDisk::Opened), "{id} is decided");
        if state != ProposalState::Running {
            let is_first = step.place.at == 0;
            assert!(is_first || state == ProposalState::Withdrawn);
            if state == ProposalState::Rejected {
                self.check_decision(by, &step);
            }
            return OnDisk::Ended(state, None);
        }
        let mut all: BTreeSet<ParticipantId> = step.counted.clone();
        match step.before {
            None => {
                self.check_decision(by, &step);
                all.retain(|one| self.decides_all(one.as_str(), &step));
                all.insert(by.clone());
            }
            Some(before) => {
                assert!(
                    step.is_due && self.has_succeeded(before),
                    "{id} runs too soon"
                );
                all = step.approved_by.clone();
                self.count("a step ran in its turn");
                for one in &all {
                    assert!(self.may_decide(one.as_str(), step.server), "{one} may not");
                }
            }
        }
        assert!(all.contains(by) && all.len() >= step.approvals, "{all:?}");
        for step in step.place.steps.iter() {
            self.steps
                .get_mut(step)
                .unwrap()
                .approved_by
                .clone_from(&all);
        }
        OnDisk::Approved
    }

    fn decides_all(&self, who: &str, step: &Step) -> bool {
        let mut steps = step.place.steps.iter();
        steps.all(|id| self.may_decide(who, self.steps[id].server))
    }

    /// A participant decides about a whole plan, by its first step.
    fn check_decision(&self, by: &ParticipantId, step: &Step) {
        let (decider, about) = self.deciding.as_ref().expect("no participant decides");
        assert_eq!((decider, *about), (by, step.place.plan));
        assert_eq!(step.place.at, 0, "a later step was decided about");
        assert!(by.as_str() != PROPOSER, "it decides about its own");
        assert!(
            self.decides_all(by.as_str(), step),
            "{by} may not decide about each step"
        );
    }

    /// The journal answers.
    fn journal(&mut self, id: OperationId, stored: bool) {
        let step = self.steps.get_mut(&id).unwrap();
        let written = step.writing.take();
        let counting = step.counting.take();
        if !stored {
            return;
        }
        step.counted.extend(counting);
        let opens = step.on_disk.is_none();
        step.on_disk = written;
        for later in step.place.steps.clone().iter().filter(|_| opens) {
            self.steps.get_mut(later).unwrap().on_disk = Some(OnDisk::Opened);
        }
    }

    fn enter(&mut self, effect: &Effect) {
        self.count(variants::effect(effect));
        self.count(name(effect));
        match effect {
            Effect::Store {
                proposal, record, ..
            } => self.store(*proposal, record),
            Effect::NotProposed { proposal, .. } => {
                for step in self.steps[proposal].place.steps.clone().iter() {
                    self.steps.remove(step);
                }
            }
            Effect::StepDue { proposal } => {
                let step = &self.steps[&proposal.id];
                assert!(self.has_succeeded(step.before.unwrap()) && !step.is_due);
                self.steps.get_mut(&proposal.id).unwrap().is_due = true;
                self.due.push(proposal.id);
            }
            Effect::Approved { proposal, servers } => {
                let step = self.steps.get_mut(&proposal.id).unwrap();
                assert_eq!(step.on_disk, Some(OnDisk::Approved), "not on disk");
                step.approved += 1;
                assert_eq!(step.approved, 1, "{} is approved twice", proposal.id);
                if !servers.is_empty() {
                    self.to_execute.push(proposal.id);
                }
            }
            Effect::Deliver { proposal, .. } => {
                let id = proposal.as_ref().unwrap().id;
                let step = self.steps[&id].clone();
                assert_eq!(step.on_disk, Some(OnDisk::Approved));
                assert!(step.before.is_none_or(|before| self.has_succeeded(before)));
                let step = self.steps.get_mut(&id).unwrap();
                step.runs += 1;
                assert_eq!(step.runs, 1, "{id} runs twice");
            }
            Effect::Concluded { proposal } => {
                let step = self.steps.get_mut(&proposal.id).unwrap();
                assert!(!step.is_over, "{} ends twice", proposal.id);
                step.is_over = true;
                match proposal.state {
                    ProposalState::Completed => self.count("a step succeeded, or not quite"),
                    ProposalState::Withdrawn => self.count("a step never ran"),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// One simulated topic with plans.
struct PlanWorld {
    topic: Topic,
    prng: Prng,
    plans: Plans,
    next: u64,
    now_ms: u64,
    life: u64,
}

/// Runs one topic, and returns what was seen.
pub(crate) fn run(seed: u64) -> Tally {
    let mut world = PlanWorld {
        topic: World::topic(&configured(), 0),
        prng: Prng(seed ^ 0x5afe),
        plans: Plans::default(),
        next: 1_000,
        now_ms: 0,
        life: 0,
    };
    world.open();
    for _ in 0..STEPS {
        world.step();
    }
    world.finish();
    world.plans.tally
}

impl PlanWorld {
    fn live(&mut self, event: Event<'_>) -> Vec<Effect> {
        self.plans.count(variants::event(&event));
        let now = Now {
            steady_ms: self.now_ms,
            wall_ms: self.now_ms,
        };
        let effects = self.topic.step(now, event);
        effects
            .all
            .iter()
            .for_each(|effect| self.plans.enter(effect));
        effects.all.into_vec()
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn fresh(&mut self) -> OperationId {
        OperationId(u128::from(self.number()))
    }

    fn open(&mut self) {
        let names = configured();
        let seat = |server, link: LinkId| (server, link);
        let own = seat(ParticipantId::gateway(), LinkId(100));
        let servers = SERVERS.map(|(name, link)| seat(id(name), link));
        let all: Vec<(ParticipantId, LinkId)> = std::iter::once(own).chain(servers).collect();
        let seats = all.iter().map(|(server, link)| Seating {
            link: *link,
            server,
            handle: link.0,
            capabilities: Arc::new(Capabilities::upstream()),
        });
        let seats = seats.collect();
        self.live(Event::Configure(Configure {
            seats,
            ..Configure::servers(&names)
        }));
        for (name, link) in REVIEWERS.into_iter().chain([(PROPOSER, LinkId(2))]) {
            self.plans.granted.entry(name).or_insert(0);
            let capabilities = parse(GRANTS[self.plans.granted[name]].0);
            let participant = &id(name);
            self.live(Event::Join(Join {
                link,
                handle: link.0,
                participant,
                capabilities,
                rate: None,
                joining: Joining::default(),
            }));
        }
    }

    fn step(&mut self) {
        self.now_ms += self.prng.below(40) as u64;
        match self.prng.below(100) {
            0..10 => self.propose(),
            10..28 => self.decide(),
            28..60 => self.journal(),
            60..72 => self.execute(),
            72..84 => self.answer(),
            84..92 => self.turn(),
            92..95 => self.regrant(),
            95 => self.brake(),
            96 if self.prng.one_in(3) => self.now_ms += 100_000,
            97 if self.prng.one_in(3) => self.crash(),
            _ => drop(self.live(Event::Tick)),
        }
    }

    fn terms(&self, id: OperationId, step: &Step) -> Terms {
        Terms {
            by: crate::names::id(PROPOSER),
            method: Method::Other("tools/call".into()),
            context: Some("a".into()),
            to: [crate::names::id(step.server)].into(),
            envelope: format!("p{id}").into(),
            digest: digest(id),
            expires_ms: self.now_ms + 50_000,
            expires_wall_ms: self.now_ms + 50_000,
            bytes: 1,
            approvals: step.approvals,
            extensions: 0,
            amendments: 0,
            plan: Some(step.place.clone()),
        }
    }

    fn propose(&mut self) {
        let count = 2 + self.prng.below(2);
        let ids: Vec<OperationId> = (0..count).map(|_| self.fresh()).collect();
        let approvals = 1 + self.prng.below(2);
        let mut steps = Vec::new();
        for (at, id) in ids.iter().enumerate() {
            let place = PlanPlace {
                plan: ids[0],
                steps: ids.as_slice().into(),
                at,
            };
            let step = Step {
                server: self.prng.any(&SERVERS).0,
                before: at.checked_sub(1).map(|before| ids[before]),
                place,
                approvals,
                on_disk: None,
                writing: None,
                counted: BTreeSet::new(),
                counting: None,
                approved_by: BTreeSet::new(),
                is_due: false,
                approved: 0,
                runs: 0,
                is_over: false,
            };
            let mut terms = self.terms(*id, &step);
            terms.plan = None;
            self.plans.steps.insert(*id, step);
            steps.push(PlanStep {
                proposal: *id,
                terms,
                content: 1,
                public: None,
            });
        }
        let by = &id(PROPOSER);
        let effects = self.live(Event::ProposePlan(ProposePlan {
            by,
            outside: None,
            narrowing: None,
            steps,
        }));
        assert!(matches!(
            effects.as_slice(),
            [Effect::Store { .. } | Effect::NotProposed { .. }]
        ));
    }

    fn any_step(&mut self, fits: impl Fn(&Step) -> bool) -> Option<OperationId> {
        let steps = self.plans.steps.iter();
        let found: Vec<OperationId> = steps
            .filter(|(_, one)| fits(one))
            .map(|(id, _)| *id)
            .collect();
        self.prng.pick(&found).copied()
    }

    fn decide(&mut self) {
        let is_late = self.prng.one_in(4);
        let open =
            |step: &Step| is_late || step.place.at == 0 && step.approved == 0 && !step.is_over;
        let Some(proposal) = self.any_step(open) else {
            return;
        };
        let by = self
            .prng
            .any(&["ann", "ann", "cid", "cid", OUTSIDE, PROPOSER]);
        let full = Arc::new(Capabilities::full());
        let outside = (by == OUTSIDE).then_some(&full);
        let shown = digest(proposal);
        let current = Some(if self.prng.one_in(12) { OTHER } else { shown });
        let decision = match self.prng.below(12) {
            _ if by == PROPOSER && self.prng.one_in(2) => Decision::Withdraw { reason: None },
            0 => Decision::Reject { reason: None },
            1 => Decision::Extend,
            2 => Decision::Approve {
                shown: OTHER,
                current,
            },
            _ => Decision::Approve { shown, current },
        };
        let plan = self.plans.steps[&proposal].place.plan;
        let by = id(by);
        self.plans.deciding = Some((by.clone(), plan));
        let ruling = self.number();
        let effects = self.live(Event::Decide {
            proposal,
            by: &by,
            outside,
            narrowing: None,
            decision,
            fulfilment: None,
            amended: None,
            ruling,
        });
        let is_written = effects
            .iter()
            .any(|one| matches!(one, Effect::Store { .. }));
        let is_later = self.plans.steps[&proposal].place.at > 0;
        assert!(!is_later || !is_written, "a later step was decided about");
        // One that waits for the journal is judged then.
        if is_written || !effects.is_empty() {
            self.plans.deciding = None;
        } else {
            self.plans.count("a decision about a plan waits");
            self.journals(plan, true);
            self.plans.deciding = None;
        }
    }

    fn journal(&mut self) {
        if let Some(step) = self.any_step(|step| step.writing.is_some()) {
            let stored = !self.prng.one_in(15);
            self.journals(step, stored);
        }
    }

    fn journals(&mut self, proposal: OperationId, stored: bool) {
        self.plans.journal(proposal, stored);
        self.live(Event::Written { proposal, stored });
    }

    fn execute(&mut self) {
        let Some(proposal) = self.prng.pick(&self.plans.to_execute).copied() else {
            return;
        };
        self.executes(proposal);
    }

    fn executes(&mut self, proposal: OperationId) {
        // Sometimes a second time, which must do no harm.
        if !self.prng.one_in(6) {
            self.plans.to_execute.retain(|one| *one != proposal);
        }
        let operation = self.fresh();
        let call = self.number();
        let server = &id(self.plans.steps[&proposal].server);
        let effects = self.live(Event::Execute {
            proposal,
            operation,
            server,
            call,
        });
        if effects
            .iter()
            .any(|one| matches!(one, Effect::Deliver { .. }))
        {
            self.plans.running.push((proposal, operation));
        }
    }

    fn answer(&mut self) {
        if let Some(at) = self.prng.below(4).checked_rem(self.plans.running.len()) {
            self.answers(at);
        }
    }

    fn answers(&mut self, at: usize) {
        let (proposal, operation) = self.plans.running.swap_remove(at);
        let server = self.plans.steps[&proposal].server;
        let link = SERVERS.iter().find(|(name, _)| *name == server).unwrap().1;
        let answer = self.number();
        let end = match self.prng.below(8) {
            0 => End::Failed(Box::new(model::Refusal::new(
                model::RefusalCode::UpstreamFailed,
                "lost",
            ))),
            1 => End::Answered {
                outcome: Outcome::Error,
                answer,
            },
            _ => End::Answered {
                outcome: Outcome::Ok,
                answer,
            },
        };
        self.live(Event::Answer {
            link,
            operation,
            end,
        });
    }

    /// The shell answers that the turn of a step has come.
    fn turn(&mut self) {
        let Some(at) = self.prng.below(4).checked_rem(self.plans.due.len()) else {
            return;
        };
        let proposal = self.plans.due.swap_remove(at);
        let current = (!self.prng.one_in(12)).then(|| digest(proposal));
        let ruling = (!self.prng.one_in(20)).then(|| self.number());
        let effects = self.live(Event::RunStep(RunStep {
            proposal,
            current,
            fulfilment: "f",
            ruling,
        }));
        let record = effects.iter().find_map(|effect| match effect {
            Effect::Store { record, .. } => Some((**record).clone()),
            _ => None,
        });
        let runs = matches!(record, Some(Record::Decided { .. }));
        assert!(!runs || current.is_some() && ruling.is_some());
        if !runs && current.is_some() && ruling.is_some() && record.is_some() {
            self.plans.count("the approval of a plan counts no more");
        }
    }

    fn regrant(&mut self) {
        let who = self.prng.any(&["ann", "cid", "ann", "cid", PROPOSER]);
        let at = self.prng.below(GRANTS.len());
        self.plans.granted.insert(who, at);
        let participant = &id(who);
        self.live(Event::Regrant {
            participant,
            capabilities: parse(GRANTS[at].0),
        });
    }

    fn brake(&mut self) {
        let who = self.prng.any(&["ann", "cid"]);
        let is_braked = !self.plans.braked.remove(who);
        if is_braked {
            self.plans.braked.insert(who);
        }
        let brake = is_braked.then(|| Brake {
            by: id(OUTSIDE),
            reason: None,
            since_ms: 1,
        });
        let participant = &id(who);
        self.live(Event::Brake { participant, brake });
    }

    /// The topic is lost. What the journal has comes back as the gateway brings it back: a plan of
    /// which a participant has decided never goes on.
    fn crash(&mut self) {
        self.plans.count("crashed");
        self.life += 1;
        self.topic = World::topic(&configured(), self.life);
        (self.plans.due, self.plans.to_execute, self.plans.running) = Default::default();
        self.plans.braked.clear();
        for id in self.plans.steps.keys().copied().collect::<Vec<_>>() {
            let arrived = self.prng.one_in(2);
            if self.plans.steps[&id].writing.is_some() {
                self.plans.journal(id, arrived);
            }
        }
        self.plans.steps.retain(|_, step| step.on_disk.is_some());
        self.open();
        for (id, step) in self.plans.steps.clone() {
            self.restore(id, &step);
        }
    }

    fn restore(&mut self, proposal: OperationId, step: &Step) {
        let is_pending = |id: &OperationId| self.plans.steps[id].on_disk == Some(OnDisk::Opened);
        let state = match &step.on_disk {
            Some(OnDisk::Ended(state, answer)) => Some((*state, *answer)),
            Some(OnDisk::Approved) => Some((ProposalState::Failed, None)),
            _ if step.place.steps.iter().all(is_pending) => None,
            _ => Some((ProposalState::Withdrawn, None)),
        };
        self.plans.count(if state.is_some() {
            "a step ended again"
        } else {
            "a step is pending again"
        });
        let kept = self.plans.steps.get_mut(&proposal).unwrap();
        kept.is_over = state.is_some();
        kept.counted.clear();
        kept.is_due = false;
        if let Some((state, answer)) = state {
            kept.on_disk = Some(OnDisk::Ended(state, answer));
        }
        let end = state.map(|(state, answer)| EndedProposal::<Numbers> {
            state,
            reason: None,
            decided: None,
            fulfilment: None,
            answer,
        });
        let terms = self.terms(proposal, step);
        self.live(Event::Restore(Restore {
            proposal,
            terms,
            content: 1,
            held: true,
            public: None,
            approved_by: Vec::new(),
            end,
        }));
    }

    /// At the end every plan is over.
    fn finish(&mut self) {
        for _ in 0..40 {
            self.now_ms += 100_000;
            self.live(Event::Tick);
            while let Some(step) = self.any_step(|step| step.writing.is_some()) {
                self.journals(step, true);
            }
            while !self.plans.due.is_empty() {
                self.turn();
            }
            for proposal in std::mem::take(&mut self.plans.to_execute) {
                self.executes(proposal);
            }
            while !self.plans.running.is_empty() {
                self.answers(0);
            }
        }
        assert_eq!(self.topic.proposals_len(), 0, "a plan is not over");
        let mut steps = self.plans.steps.iter();
        assert!(steps.all(|(_, step)| step.is_over && step.runs <= 1));
        assert_eq!(self.topic.operations_len(), 0);
    }
}

fn digest(step: OperationId) -> Digest {
    Digest([u8::try_from(step.0 % 200).unwrap(); 32])
}
