//! One simulated topic: its steps, and the comparison with the books after each.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use auth::Participant;
use model::{Capabilities, Form, OperationId, ParticipantId, ProposalState};
use platform::{Mutex, unix_ms};
use rules::{
    AnsweredCall, CallRule, Constant, Pointer, RejectReason, RuleDecision, RuleName, SpentEvent,
    parse_rules,
};
use serde_json::json;
use store::JournalWriter;
use store::recorder::Recorder;
use tempfile::{TempDir, tempdir};
use topic::Joining;
use upstream::Upstream;

use super::books::{
    AUTHORS, BookAnswer, BookProposal, BookRule, BookState, Books, HOUR_MS, NAMES, Standing,
};
use super::prng::Prng;
use crate::brakes::Braking;
use crate::by_rule::decided_by::rule_of;
use crate::by_rule::desk::RuleStanding;
use crate::by_rule::kept::RuleRecord;
use crate::by_rule::tool_facts::{definition_digest, server_digest};
use crate::dispatch::Dispatch;
use crate::envelopes::tests::envelope as envelope_of;
use crate::fixture::{context, settings};
use crate::ledgers::TopicLedgers;
use crate::link::{Link, NoOutlet, plain_client};
use crate::live::{Effect, ProposalView};
use crate::membership::tests::demo;
use crate::offer::Offer;
use crate::proposals::decide::{Choice, Decider};
use crate::proposals::open::definition;

const MINUTE_MS: u64 = 60_000;
/// The longest time that a step takes.
const PATIENCE: Duration = Duration::from_secs(10);
/// Proposals that wait for people at most.
const WAITING_MAX: usize = 8;

/// The address of a topic that runs nothing any more of what is approved: its process is about to be
/// killed.
static DYING: AtomicUsize = AtomicUsize::new(0);
/// The approved proposals that ran, once for each run.
static RUNS: Mutex<Vec<OperationId>> = Mutex::new(Vec::new());

/// Amounts that must have been looked up.
const LOOKED_UP: RangeInclusive<u64> = 91..=92;

/// Capabilities of the participants, as identities give them.
type Granted = Arc<Mutex<HashMap<&'static str, Arc<Capabilities>>>>;

pub(super) struct World {
    dispatch: Arc<Dispatch>,
    /// Topics of before the restarts.
    dead: Vec<Arc<Dispatch>>,
    folder: TempDir,
    bank: Arc<Upstream>,
    granted: Granted,
    links: BTreeMap<&'static str, Arc<Link>>,
    books: Books,
    prng: Prng,
    proposals: BTreeMap<OperationId, BookProposal>,
    /// Lines of rules about the tool.
    digests: String,
    envelopes: u64,
    seed: u64,
}

fn run(dispatch: &Arc<Dispatch>, effect: Effect) {
    if let Effect::Approved { proposal, .. } = &effect {
        if DYING.load(Ordering::SeqCst) == Arc::as_ptr(dispatch).addr() {
            return;
        }
        RUNS.lock().push(proposal.id);
    }
    crate::run::run(dispatch, effect);
}

fn id(name: &str) -> ParticipantId {
    ParticipantId::new(name).unwrap()
}

/// A topic on the journal of a folder, without rules.
fn open(folder: &Path, bank: &Arc<Upstream>, granted: &Granted) -> Arc<Dispatch> {
    let journal = JournalWriter::open(folder).unwrap();
    let known = Arc::clone(granted);
    let dispatch = Dispatch::new(
        settings(),
        context(),
        Recorder::default(),
        Some(TopicLedgers::open(&journal).unwrap()),
        Box::new(move |who| known.lock().get(who.as_str()).cloned()),
        run,
    );
    dispatch.configure(std::slice::from_ref(bank), &[], Offer::default());
    dispatch.restore();
    dispatch
}

/// The rules of a topic at its beginning: three that approve, one that rejects, one that asks.
fn first_rules(ends_ms: u64) -> Vec<BookRule> {
    let approving = BookRule {
        id: "r1",
        version: 1,
        author: "ann",
        decision: RuleDecision::Approve,
        proposers: &["scout", "dave"],
        amounts: 1..=60,
        uses: 6,
        an_hour: Some(3),
        sum: Some(100),
        is_looked_up: false,
        expires_ms: ends_ms,
        used: 0,
        is_suspended: false,
        bearers: BTreeMap::new(),
    };
    let wider = BookRule {
        id: "r2",
        author: "bob",
        proposers: &["scout", "ann"],
        amounts: 1..=90,
        uses: 3,
        an_hour: None,
        sum: None,
        expires_ms: ends_ms + HOUR_MS,
        ..approving.clone()
    };
    let looked_up = BookRule {
        id: "r5",
        amounts: LOOKED_UP,
        an_hour: None,
        sum: None,
        is_looked_up: true,
        ..approving.clone()
    };
    let tightening = |id, author, decision, amount| BookRule {
        id,
        author,
        decision,
        proposers: &[],
        amounts: amount..=amount,
        ..approving.clone()
    };
    let rejecting = tightening("r3", "ann", RuleDecision::Reject, 13);
    let asking = tightening("r4", "bob", RuleDecision::Ask, 14);
    vec![approving, wider, looked_up, rejecting, asking]
}

impl World {
    pub(super) async fn new(seed: u64) -> Self {
        // The topics of the world before are gone, and their addresses are taken again.
        DYING.store(0, Ordering::SeqCst);
        let folder = tempdir().unwrap();
        let granted = Granted::default();
        let bank = demo("bank").await;
        let mut world = Self {
            dispatch: open(folder.path(), &bank, &granted),
            dead: Vec::new(),
            folder,
            bank,
            granted,
            links: BTreeMap::new(),
            books: Books::new(unix_ms()),
            prng: Prng(seed),
            proposals: BTreeMap::new(),
            digests: String::new(),
            envelopes: 0,
            seed,
        };
        for name in NAMES {
            world.grants(name, world.books.standings[name]);
        }
        world.digests = world.read_digests();
        world.set_bearers();
        // From here on the journal's time goes before that of the machine.
        world.passes(24 * HOUR_MS);
        world.books.rules = first_rules(world.whole_seconds(3 * HOUR_MS));
        for at in 0..world.books.rules.len() {
            world.books.rules[at].bearers = world.books.bearers_of(&world.books.rules[at]);
        }
        world.put();
        world.check().await;
        world
    }

    pub(super) fn seen(&mut self) -> BTreeMap<&'static str, usize> {
        std::mem::take(&mut self.books.seen)
    }

    fn read_digests(&self) -> String {
        let bank = [id("bank")];
        let tool = definition(
            &self.dispatch,
            &id("scout"),
            &bank,
            "tools/call",
            Some("add"),
        );
        let tool = definition_digest(&tool.unwrap()).unwrap();
        let server = server_digest(&self.bank).unwrap();
        format!("definition = \"{tool}\"\nserver = \"{server}\"")
    }

    /// A time from now on, as rules write it.
    fn whole_seconds(&self, after_ms: u64) -> u64 {
        (self.books.now_ms + after_ms) / 1000 * 1000
    }

    pub(super) async fn step(&mut self) {
        let waiting = self.proposals.values();
        let waiting = waiting.filter(|one| one.state == BookState::Waits).count();
        if waiting >= WAITING_MAX {
            self.decide().await;
            self.check().await;
        }
        match self.prng.below(42) {
            0..22 => _ = self.propose().await,
            22..26 => self.regrant(),
            26 => self.replace(),
            27..31 => {
                let minutes = 1 + self.prng.below(40);
                self.passes(minutes * MINUTE_MS);
            }
            31 => self.brake().await,
            32..35 => self.renew(),
            35..37 => self.decide().await,
            37 => self.put(),
            38 => self.restart(),
            39 => self.crash().await,
            _ => self.looks_up(),
        }
        self.check().await;
    }

    fn grants(&mut self, who: &'static str, standing: Standing) {
        self.books.standings.insert(who, standing);
        let mut granted = self.granted.lock();
        match standing.capabilities() {
            Some(capabilities) => {
                let capabilities = Arc::new(Capabilities::parse(capabilities).unwrap());
                granted.insert(who, capabilities);
            }
            None => _ = granted.remove(who),
        }
    }

    /// An author of rules may do something else from now on. Its links, if it has some, are given that
    /// at once, or when the topic asks next.
    fn regrant(&mut self) {
        let who = self.prng.pick(&AUTHORS).unwrap();
        let standing = self.prng.pick(&Standing::ALL).unwrap();
        self.grants(who, standing);
        if self.prng.one_in(2) {
            self.dispatch.refresh(&id(who));
        }
        if self.prng.one_in(3)
            && let Some(link) = self.links.remove(who)
        {
            self.books
                .count("its author left the topic and is judged outside of it");
            self.dispatch.leave(&link);
        }
    }

    /// A name gets another bearer.
    fn replace(&mut self) {
        let who = self.prng.pick(&NAMES).unwrap();
        *self.books.bearers.get_mut(who).unwrap() += 1;
        self.set_bearers();
    }

    fn set_bearers(&self) {
        let bearers = self.books.bearers.iter();
        let all = bearers.map(|(name, number)| ((*name).to_owned(), format!("{name}.{number}")));
        let incarnations = self.dispatch.context.sealer.incarnations();
        incarnations.set(all.collect());
    }

    /// Lets time pass: the journal has an answer of so much later, at which no rule looks.
    fn passes(&mut self, more_ms: u64) {
        self.books.now_ms += more_ms;
        self.takes_answer("scout", "now", Vec::new());
    }

    /// A participant has the answer about an amount, which a rule asks for.
    fn looks_up(&mut self) {
        let by = self.prng.pick(&["scout", "dave"]).unwrap();
        let amount = LOOKED_UP.start() + self.prng.below(2);
        let pointer = Pointer::parse("/of").unwrap();
        let value = Constant::parse(&amount.to_string()).unwrap();
        self.takes_answer(by, "look_up", vec![(pointer, value)]);
        self.books.answers.push(BookAnswer {
            by,
            amount,
            at_ms: self.books.now_ms,
        });
    }

    /// The journal has a call of the bank that was answered now.
    fn takes_answer(&mut self, by: &str, target: &str, values: Vec<(Pointer, Constant)>) {
        self.envelopes += 1;
        let record = RuleRecord::of_spent(
            "main",
            SpentEvent::Answered(AnsweredCall {
                operation: OperationId(self.envelopes.into()),
                proposer: id(by),
                to: id("bank"),
                method: "tools/call".into(),
                target: target.into(),
                values,
                at_ms: self.books.now_ms,
            }),
        );
        let ledgers = self.dispatch.ledgers.as_ref().unwrap();
        ledgers.rules.append(std::slice::from_ref(&record)).unwrap();
        self.dispatch.rules.apply(&record);
    }

    async fn brake(&mut self) {
        let who = self.prng.pick(&["scout", "ann", "bob"]).unwrap();
        let braking = Braking {
            by: id("eve"),
            participant: id(who),
            reason: None,
            address: None,
        };
        if self.books.paused.remove(who) {
            self.dispatch.resume_paused(braking).await.unwrap();
            self.judge_waiting();
        } else if self.books.standings[who] != Standing::Unknown {
            self.dispatch.pause(braking).await.unwrap();
            self.books.paused.insert(who);
        }
    }

    /// A rule comes back as its next version.
    fn renew(&mut self) {
        let places = [0, 0, 1, 1, 2, 3];
        let at = self.prng.pick(&places).unwrap();
        let minutes = 11 + self.prng.below(240);
        let expires_ms = self.whole_seconds(minutes * MINUTE_MS);
        let uses = 1 + u32::try_from(self.prng.below(6)).unwrap();
        let bearers = self.books.bearers_of(&self.books.rules[at]);
        let rule = &mut self.books.rules[at];
        rule.version += 1;
        (rule.used, rule.is_suspended) = (0, false);
        (rule.expires_ms, rule.uses, rule.bearers) = (expires_ms, uses, bearers);
        self.books.count("renewed");
        self.put();
    }

    /// Puts the rules in force, which judge what waits.
    fn put(&mut self) {
        self.dispatch.put_rules_in_force(&self.written());
        self.judge_waiting();
    }

    fn written(&self) -> Vec<CallRule> {
        let texts = self.books.rules.iter();
        let text: String = texts.map(|rule| rule.text(&self.digests)).collect();
        parse_rules(&text).unwrap()
    }

    /// What waits is judged, in the order of ids.
    fn judge_waiting(&mut self) {
        for proposal in self.proposals.values_mut() {
            if proposal.state == BookState::Waits {
                let state = self.books.judge(proposal);
                proposal.state = state;
                if proposal.state != BookState::Waits {
                    self.books.count("decided when rules came");
                }
            }
        }
    }

    /// The link of a participant, which joins if it is not in the topic.
    fn link(&mut self, who: &'static str) -> Option<Arc<Link>> {
        let capabilities = self.granted.lock().get(who).cloned()?;
        let is_here = |link: &&Arc<Link>| {
            self.dispatch
                .with(|topic| topic.participant(link.id).is_some())
        };
        if let Some(link) = self.links.get(who).filter(is_here) {
            return Some(Arc::clone(link));
        }
        let topics = vec![self.dispatch.name().clone()];
        let participant = Participant::new(id(who), Arc::clone(&capabilities), topics);
        let link = Link::new(
            self.dispatch.context.link(),
            Arc::new(participant),
            Form::Legacy,
            plain_client(),
            Arc::new(NoOutlet),
        );
        self.dispatch
            .join(&link, &capabilities, Joining::default())
            .unwrap();
        self.links.insert(who, Arc::clone(&link));
        Some(link)
    }

    /// A participant proposes a call, which the rules judge.
    async fn propose(&mut self) -> Option<OperationId> {
        let all = ["scout", "scout", "scout", "dave", "ann", "bob"];
        let by = self.prng.pick(&all).unwrap();
        let amount = match self.prng.below(10) {
            0 => 13,
            1 => 14,
            2 => LOOKED_UP.start() + self.prng.below(2),
            _ => 1 + self.prng.below(100),
        };
        let link = self.link(by)?;
        self.envelopes += 1;
        let envelope = format!("p{}", self.envelopes);
        let params = json!({ "name": "add", "arguments": { "a": amount, "b": 1 } });
        let said = envelope_of(json!({
            "id": envelope, "from": by, "to": ["bank"], "kind": "mcp/proposal:tools/call:add",
            "payload": { "method": "tools/call", "params": params },
        }));
        self.dispatch.speak(link.opener(), said).unwrap();
        let proposal = self.until("the proposal is on disk", |world| {
            let (id, _) = world.dispatch.with(|topic| {
                let (id, content) = topic.proposed_by(&envelope)?;
                Some((id, Arc::clone(content)))
            })?;
            world.view(id).map(|_| id)
        });
        let proposal = proposal.await;
        let mut own = BookProposal {
            by,
            amount,
            state: BookState::Waits,
        };
        own.state = self.books.judge(&own);
        self.proposals.insert(proposal, own);
        Some(proposal)
    }

    /// A person decides one that waits.
    async fn decide(&mut self) {
        let waiting = self.proposals.iter().filter(|(_, one)| {
            one.state == BookState::Waits && self.books.standings[one.by] != Standing::Unknown
        });
        let waiting: Vec<OperationId> = waiting.map(|(id, _)| *id).collect();
        let Some(proposal) = self.prng.pick(&waiting) else {
            return;
        };
        let digest = self.view(proposal).unwrap().content.opened.digest.parse();
        let choice = if self.prng.one_in(2) {
            Choice::Approve {
                digest: digest.unwrap(),
                arguments: None,
                note: None,
            }
        } else {
            Choice::Reject {
                reason: None,
                code: RejectReason::Context,
            }
        };
        let decider = Decider {
            id: &id("eve"),
            outside: Some(&Arc::new(Capabilities::full())),
            narrowing: None,
            address: None,
            by_person: true,
        };
        let decided = self.dispatch.decide(proposal, decider, choice).await;
        decided.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        self.books.count("decided by a person");
        self.proposals.get_mut(&proposal).unwrap().state = BookState::Over;
    }

    /// Another process on the same journal.
    fn restart(&mut self) {
        self.settle();
        let folder = tempdir().unwrap();
        for file in std::fs::read_dir(self.folder.path()).unwrap() {
            let file = file.unwrap();
            if file.file_type().unwrap().is_file() {
                std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
            }
        }
        self.folder = folder;
        let next = open(self.folder.path(), &self.bank, &self.granted);
        self.dead.push(std::mem::replace(&mut self.dispatch, next));
        self.links.clear();
        self.set_bearers();
        self.books.count("restarted");
        let is_open = |one: &BookState| matches!(one, BookState::Waits | BookState::Lost(_));
        self.proposals.retain(|_, one| is_open(&one.state));
        self.put();
    }

    /// The process is killed after a proposal was judged, and before it runs.
    async fn crash(&mut self) {
        DYING.store(Arc::as_ptr(&self.dispatch).addr(), Ordering::SeqCst);
        if let Some(id) = self.propose().await
            && let BookState::Approved(rule) = self.proposals[&id].state.clone()
        {
            self.until("it is decided", |world| {
                let view = world.view(id)?;
                (view.state == ProposalState::Running).then_some(())
            })
            .await;
            self.proposals.get_mut(&id).unwrap().state = BookState::Lost(rule);
            self.books.count("crashed between decision and run");
        }
        self.restart();
    }

    fn view(&self, id: OperationId) -> Option<ProposalView> {
        self.dispatch.with(|topic| topic.proposal(id))
    }

    /// Waits until the journal has all that was given to it.
    fn settle(&self) {
        let ledgers = self.dispatch.ledgers.as_ref().unwrap();
        ledgers.rules.append(&[]).unwrap();
    }

    async fn until<T>(&self, what: &str, ask: impl Fn(&Self) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            self.settle();
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
            if let Some(found) = ask(self) {
                return found;
            }
            let seed = self.seed;
            assert!(
                begun.elapsed() < PATIENCE,
                "seed {seed}: {what}: {}\n{:#?}",
                self.shown(),
                self.books
            );
        }
    }

    /// The proposals as the topic has them, in words.
    fn shown(&self) -> String {
        let views = self.proposals.keys().filter_map(|id| self.view(*id));
        let each = views.map(|view| {
            let rule = rule_of(&view).map(|by| by.to_string());
            format!("\n{} {:?} {rule:?} {:?}", view.id, view.state, view.reason)
        });
        each.collect()
    }

    /// All is as the books say.
    async fn check(&mut self) {
        for id in self.proposals.keys().copied().collect::<Vec<_>>() {
            let own = self.proposals[&id].clone();
            if own.state == BookState::Waits && self.is_withdrawn(id, own.by) {
                self.books.count("withdrawn with its proposer");
                self.proposals.get_mut(&id).unwrap().state = BookState::Over;
                continue;
            }
            let what = format!("{id} of {own:?}");
            if !self.is_as(id, &own.state) {
                self.until(&what, |world| world.is_as(id, &own.state).then_some(()))
                    .await;
            }
            let runs = RUNS.lock().iter().filter(|one| **one == id).count();
            let is_run = matches!(own.state, BookState::Approved(_));
            let may_run = is_run || own.state == BookState::Over;
            assert!(
                runs <= usize::from(may_run) && runs >= usize::from(is_run),
                "{what}: {runs}"
            );
        }
        self.check_rules();
    }

    /// Whether a proposal is gone with its proposer.
    fn is_withdrawn(&self, id: OperationId, by: &str) -> bool {
        self.books.standings[by] == Standing::Unknown
            && !self.dispatch.with(|topic| topic.is_undecided(id, |_| true))
    }

    fn is_as(&self, id: OperationId, state: &BookState) -> bool {
        let Some(view) = self.view(id) else {
            return *state == BookState::Over;
        };
        let is_by = |name: &String| {
            rule_of(&view).is_some_and(|by| {
                assert_ne!(*by.author, view.by, "{name} decided its author's own");
                by.rule.to_string() == *name
            })
        };
        match state {
            BookState::Waits => view.state == ProposalState::Pending,
            BookState::Approved(rule) => view.state == ProposalState::Completed && is_by(rule),
            BookState::Rejected(rule) => view.state == ProposalState::Rejected && is_by(rule),
            BookState::Lost(rule) => view.state == ProposalState::Failed && is_by(rule),
            BookState::Over => view.state.is_over() && rule_of(&view).is_none(),
        }
    }

    /// Each rule has the uses of the books, also in the journal, and is suspended or not as there.
    fn check_rules(&self) {
        self.settle();
        let ledgers = self.dispatch.ledgers.as_ref().unwrap();
        let kept = ledgers.rules.state(|kept| kept.of_topic("main"));
        let state = self.dispatch.rules.lock();
        for (own, written) in self.books.rules.iter().zip(self.written()) {
            let name: &RuleName = &written.name;
            let what = format!("seed {}: {name} of {:#?}", self.seed, self.books);
            assert_eq!(state.book.spent.uses(name), own.used, "{what}");
            assert_eq!(kept.spent.uses(name), own.used, "in the journal: {what}");
            let is_suspended = match state.standing(&written) {
                RuleStanding::InForce => false,
                RuleStanding::Suspended { .. } => true,
                RuleStanding::Refused(why) => panic!("{why}: {what}"),
            };
            assert_eq!(is_suspended, own.is_suspended, "{what}");
        }
    }
}
