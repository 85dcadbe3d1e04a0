//! Calls that may only be proposed, of callers whose wire has no word for that.

use model::{LinkId, Outcome, ProposalState, RefusalCode};
use topic::{Cause, Decision, Effect, Effects, Event, ListKind, Manifest, Record, Target, View};

use crate::stage::{ANN, APPROVE, ONE, Stage, caps, delivered, id, items, op, refused, told, tools};

const BOB: LinkId = LinkId(2);

/// Bob may call `one_b` and propose the rest.
fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.upstream(LinkId(100), "portmoot");
    stage.lists("portmoot", View::Shared, tools(&["proxy"]));
    stage.lists("one", View::Shared, Manifest { prompts: items(&["p"]), ..tools(&["a", "b"]) });
    stage.promoting(BOB, "bob", &["mcp/proposal:tools/*", "mcp/request:tools/call:one_b"]);
    stage
}

/// Bob's call 1 of `one_a` waits for proposal 1.
fn held() -> Stage {
    let mut stage = stage();
    stage.call(BOB, 1, "one_a");
    stage.propose(1, "bob", Some(1));
    stage.stored(1);
    stage
}

fn kinds(effects: &Effects) -> Vec<&'static str> {
    effects
        .iter()
        .map(|effect| match effect {
            Effect::Store { what: Record::Decided { state, .. } | Record::Ended { state, .. }, .. } => {
                state.as_str()
            }
            Effect::Settle { .. } => "settle",
            Effect::Refuse { .. } => "refuse",
            Effect::Told { .. } => "told",
            Effect::CancelAt { .. } => "cancel",
            Effect::Ended { .. } | Effect::Left { .. } => "gone",
            Effect::ListChanged { .. } => "list",
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn what_may_only_be_proposed_is_held() {
    let mut stage = stage();
    let hold = Effect::Hold { operation: op(1), from: BOB, to: id("one"), own: Some("a".into()) };
    assert_eq!(stage.call(BOB, 1, "one_a").as_slice(), [hold]);
    delivered(&stage.call(BOB, 2, "one_b"));
    assert_eq!(refused(&stage.call(BOB, 3, "one_unheard")), Cause::Unknown);
    assert_eq!(
        refused(&stage.call(BOB, 3, "proxy")),
        Cause::NotAdmitted,
        "built-ins are judged by what they reach"
    );
    let prompt = Some(Target::Prompt("one_p"));
    assert_eq!(refused(&stage.ask_for(BOB, 3, "prompts/get", prompt)), Cause::NotAdmitted);
    // A capability may be proposed that is no call: nothing waits for that.
    let grants = caps(&["mcp/proposal:*"]);
    stage.step(Event::Regrant { participant: &id("bob"), capabilities: grants });
    assert_eq!(refused(&stage.ask_for(BOB, 4, "completion/complete", prompt)), Cause::NotAdmitted);
    assert!(matches!(&stage.ask_for(BOB, 5, "prompts/get", prompt)[0], Effect::Hold { .. }));
    // Nobody is held whose wire can say a proposal.
    stage.caller(LinkId(3), "cid", &["mcp/proposal:*"]);
    assert_eq!(refused(&stage.call(LinkId(3), 6, "one_a")), Cause::NotAdmitted);
}

#[test]
fn lists_show_what_could_be_done_or_proposed() {
    let mut stage = stage();
    let held = |stage: &Stage, link| -> Vec<(String, bool)> {
        let all = stage.topic.list(link, ListKind::Tools);
        all.into_iter().map(|one| (one.public.to_string(), one.held)).collect()
    };
    assert_eq!(held(&stage, BOB), [("one_a".into(), true), ("one_b".into(), false)]);
    assert!(
        stage.topic.visible(BOB, ListKind::Tools, "one_a")
            && !stage.topic.visible(BOB, ListKind::Tools, "proxy")
    );
    assert!(!stage.topic.visible(BOB, ListKind::Prompts, "one_p"));
    assert_eq!(told(&stage.lists("one", View::Shared, tools(&["a", "b", "c"])), ListKind::Tools), [ANN, BOB]);
    let grants = caps(&["mcp/proposal:tools/*", "mcp/request:tools/call:one_a"]);
    let effects = stage.step(Event::Regrant { participant: &id("bob"), capabilities: grants });
    assert_eq!(told(&effects, ListKind::Tools), [BOB], "what is held and what is not has changed");
}

#[test]
fn an_approved_call_goes_on_as_its_own() {
    let mut stage = held();
    assert_eq!(stage.decide(1, "ann", APPROVE).len(), 1);
    let approved = Effect::Approved { proposal: op(1), by: id("ann") };
    let deliver = Effect::Deliver { operation: op(1), from: BOB, to: id("one"), own: Some("a".into()) };
    assert_eq!(stage.stored(1).as_slice(), [approved, deliver]);
    // What its caller may do is not asked for any more, and a wider grant changes nothing.
    let grants = caps(&["mcp/request:*"]);
    stage.step(Event::Regrant { participant: &id("bob"), capabilities: grants });
    stage.step(Event::Regrant { participant: &id("bob"), capabilities: caps(&[]) });
    let answer = stage.step(Event::Answer { link: ONE, operation: op(1), outcome: Outcome::Ok });
    assert_eq!(kinds(&answer), ["completed", "settle"]);
    assert_eq!(kinds(&stage.stored(1)), ["told"]);
    assert_eq!((stage.topic.operations_len(), stage.topic.proposals_len()), (0, 0));
}

#[test]
fn a_held_call_ends_with_its_proposal() {
    let reject = Decision::Reject { reason: Some("use b instead") };
    let mut stage = held();
    stage.decide(1, "ann", reject);
    let effects = stage.stored(1);
    assert_eq!(kinds(&effects), ["told", "refuse"]);
    match &effects[1] {
        Effect::Refuse { operation, to: BOB, refusal, cause: Cause::Rejected } => {
            assert_eq!(*operation, op(1));
            assert!(refusal.message.ends_with("it was rejected: use b instead"), "{refusal}");
            assert_eq!(refusal.code, RefusalCode::CapabilityViolation);
        }
        other => panic!("{other:?}"),
    }
    let mut stage = held();
    assert_eq!(kinds(&stage.topic.step(1_000, Event::Tick)), ["expired"]);
    assert_eq!(kinds(&stage.stored(1)), ["told", "refuse"]);
    let mut stage = self::stage();
    stage.call(BOB, 1, "one_a");
    stage.propose(1, "bob", Some(1));
    let effects = stage.not_stored(1);
    assert!(matches!(&effects[0], Effect::NotProposed { cause: Cause::LogUnavailable, .. }));
    assert!(matches!(&effects[1], Effect::Refuse { cause: Cause::LogUnavailable, .. }));
}

#[test]
fn a_call_that_is_given_up_withdraws_its_proposal() {
    let bob = &id("bob");
    let check = |event: Event<'_>, expected: &[&str]| {
        let mut stage = held();
        let effects = stage.step(event);
        assert_eq!(kinds(&effects), expected);
        assert_eq!(kinds(&stage.stored(1)), ["told"]);
        assert_eq!((stage.topic.operations_len(), stage.topic.proposals_len()), (0, 0));
    };
    check(Event::Cancel { link: BOB, operation: op(1) }, &["withdrawn", "settle"]);
    check(Event::Expire { operation: op(1) }, &["withdrawn", "refuse"]);
    check(Event::Leave { link: BOB }, &["withdrawn", "gone"]);
    check(Event::Revoke { participant: bob }, &["gone", "withdrawn", "gone"]);
    check(Event::Regrant { participant: bob, capabilities: caps(&[]) }, &["withdrawn", "refuse", "list"]);
    check(Event::Leave { link: ONE }, &["withdrawn", "refuse", "list", "list", "gone"]);
    // Given up while its approval is written down: it never runs.
    let mut stage = held();
    stage.decide(1, "ann", APPROVE);
    assert_eq!(kinds(&stage.step(Event::Cancel { link: BOB, operation: op(1) })), ["settle"]);
    let effects = stage.stored(1);
    assert!(matches!(&effects[0], Effect::RefuseDecision { cause: Cause::Moot, .. }));
    assert!(matches!(&effects[1], Effect::Store { .. }));
    // Given up while it runs: its server stops.
    let mut stage = held();
    stage.decide(1, "ann", APPROVE);
    stage.stored(1);
    let effects = stage.step(Event::Cancel { link: BOB, operation: op(1) });
    assert_eq!(kinds(&effects), ["failed", "cancel", "settle"]);
}

#[test]
fn only_ones_own_held_call_is_proposed_and_only_once() {
    let mut stage = stage();
    assert_eq!(refused(&stage.propose(1, "bob", Some(1))), Cause::Moot, "nothing is held");
    stage.call(BOB, 1, "one_a");
    assert_eq!(refused(&stage.propose(1, "ann", Some(1))), Cause::Moot);
    assert_eq!(stage.propose(1, "bob", Some(1)).len(), 1);
    assert_eq!(refused(&stage.propose(2, "bob", Some(1))), Cause::Moot);
    assert!(stage.step(Event::Answer { link: ONE, operation: op(1), outcome: Outcome::Ok }).is_empty());
    // At the limit the call is refused with its proposal.
    let limits = topic::Limits { proposals_max: 0, ..<_>::default() };
    let mut stage = Stage::with(limits);
    stage.promoting(BOB, "bob", &["mcp/proposal:*"]);
    assert!(matches!(&stage.call(BOB, 1, "a")[0], Effect::Hold { own: None, .. }));
    let effects = stage.propose(1, "bob", Some(1));
    assert!(matches!(&effects[0], Effect::NotProposed { cause: Cause::Limit, .. }));
    assert!(matches!(&effects[1], Effect::Refuse { cause: Cause::Limit, .. }));
}

#[test]
fn a_call_that_was_answered_for_now_leaves_its_proposal() {
    let mut stage = held();
    let release = || Event::Release { operation: op(1) };
    assert_eq!(kinds(&stage.step(release())), ["settle"]);
    assert!(stage.step(release()).is_empty());
    stage.step(Event::Leave { link: BOB });
    stage.decide(1, "ann", APPROVE);
    assert_eq!(stage.stored(1).len(), 1, "nothing is delivered: nothing waits");
    let (upstream, method, context, proposal) = (&id("one"), "tools/call", Some("a"), Some(op(1)));
    let run = Event::Execute { link: LinkId(100), operation: op(9), upstream, method, context, proposal };
    delivered(&stage.step(run));
    let effects = stage.step(Event::Answer { link: ONE, operation: op(9), outcome: Outcome::Error });
    assert_eq!(kinds(&effects), ["failed", "settle"]);
    assert!(matches!(&stage.stored(1)[0], Effect::Told { state: ProposalState::Failed, .. }));
    // Too late: it runs.
    let mut stage = held();
    stage.decide(1, "ann", APPROVE);
    stage.stored(1);
    assert!(stage.step(release()).is_empty());
}
