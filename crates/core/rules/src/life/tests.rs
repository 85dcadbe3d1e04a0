use super::*;
use crate::charge::RuleCharge;
use crate::fixture::approving;
use crate::rule::RuleDecision;
use crate::spent::SpentEvent;

const END_MS: u64 = 1_796_547_600_000;
const NOW_MS: u64 = END_MS - 8 * DAY_MS;

fn rule() -> CallRule {
    approving("r1", "scout", "")
}

fn ann() -> ParticipantId {
    ParticipantId::new("ann").unwrap()
}

fn bo() -> ParticipantId {
    ParticipantId::new("bo").unwrap()
}

fn accepted(rule: &CallRule, shadow: bool) -> LifeEvent {
    LifeEvent::Accepted {
        by: ann(),
        digest: rule.digest(),
        shadow,
        at_ms: NOW_MS,
    }
}

fn around() -> Surrounding {
    Surrounding {
        now_ms: NOW_MS,
        since_ms: NOW_MS,
        definition: Some(Digest([0xAB; 32])),
        server: Some(Digest([0xAB; 32])),
        author_may: true,
        replaced: None,
        traits: ToolTraits {
            harmless: true,
            ..ToolTraits::default()
        },
    }
}

#[test]
fn a_rule_is_accepted_by_its_author_and_by_the_text_that_was_shown() {
    let rule = rule();
    let step = |event: &LifeEvent| RulePhase::Offered.step(&rule, event);
    assert_eq!(step(&accepted(&rule, false)), Ok(RulePhase::Active));
    assert_eq!(step(&accepted(&rule, true)), Ok(RulePhase::Shadow));
    let mut wider = rule.clone();
    wider.uses = Some(6);
    assert_eq!(step(&accepted(&wider, false)), Err(LifeError::OtherText));
    let by_other = LifeEvent::Accepted {
        by: bo(),
        digest: rule.digest(),
        shadow: false,
        at_ms: NOW_MS,
    };
    assert_eq!(step(&by_other), Err(LifeError::NotAuthor(ann())));
    let activated = LifeEvent::Activated { by: ann() };
    assert_eq!(step(&activated), Err(LifeError::Phase("offered")));
    assert_eq!(
        RulePhase::Shadow.step(&rule, &activated),
        Ok(RulePhase::Active)
    );
    assert!(!RulePhase::Shadow.decides() && RulePhase::Active.decides());
}

#[test]
fn events_that_a_crash_brings_twice_change_nothing() {
    let rule = rule();
    let twice = |from: RulePhase, event: LifeEvent| {
        let once = from.step(&rule, &event).unwrap();
        assert_eq!(once.step(&rule, &event), Ok(once.clone()), "{event:?}");
        once
    };
    let active = twice(RulePhase::Offered, accepted(&rule, false));
    let suspended = twice(active, LifeEvent::Suspended(SuspendCause::Dormant));
    let active = twice(suspended, LifeEvent::Resumed { by: ann() });
    let revoked = LifeEvent::Ended(RuleEnd::Revoked(bo()));
    let ended = twice(active, revoked);
    let late = ended.step(&rule, &LifeEvent::Resumed { by: ann() });
    assert_eq!(late, Err(LifeError::Over));
    assert_eq!(
        ended.step(&rule, &accepted(&rule, false)),
        Err(LifeError::Over)
    );
}

#[test]
fn a_grave_cause_needs_a_new_version() {
    let rule = rule();
    for cause in [
        SuspendCause::DefinitionChanged,
        SuspendCause::ServerChanged,
        SuspendCause::Contradicted(OperationId(7)),
        SuspendCause::BudgetSpent,
        SuspendCause::Expired,
        SuspendCause::Destructive,
        SuspendCause::BearerReplaced("ann".into()),
    ] {
        let dormant = RulePhase::Active.step(&rule, &LifeEvent::Suspended(SuspendCause::Dormant));
        // It takes the place of a light cause, and stays.
        let grave = dormant
            .unwrap()
            .step(&rule, &LifeEvent::Suspended(cause.clone()))
            .unwrap();
        let again = grave
            .step(&rule, &LifeEvent::Suspended(SuspendCause::Dormant))
            .unwrap();
        assert_eq!(again, grave);
        let resumed = again.step(&rule, &LifeEvent::Resumed { by: ann() });
        assert_eq!(resumed, Err(LifeError::NeedsRenewal(cause.words())));
    }
    let in_shadow = RulePhase::Shadow.step(&rule, &LifeEvent::Suspended(SuspendCause::Failing));
    let back = in_shadow
        .unwrap()
        .step(&rule, &LifeEvent::Resumed { by: ann() });
    assert_eq!(back, Ok(RulePhase::Shadow));
}

#[test]
fn an_offer_ends_by_what_would_have_suspended_its_rule() {
    let rule = rule();
    for cause in [
        SuspendCause::Contradicted(OperationId(7)),
        SuspendCause::DefinitionChanged,
        SuspendCause::ToolQuarantined,
        SuspendCause::OperatorForbids,
    ] {
        let event = LifeEvent::Suspended(cause.clone());
        let ended = RulePhase::Offered.step(&rule, &event).unwrap();
        assert_eq!(ended, RulePhase::Ended(RuleEnd::OfferOutdated(cause)));
        assert_eq!(ended.step(&rule, &event), Ok(ended.clone()));
        let late = ended.step(&rule, &accepted(&rule, false));
        assert_eq!(late, Err(LifeError::Over));
    }
    let unrecorded = LifeEvent::Suspended(SuspendCause::LogUnavailable);
    assert_eq!(
        RulePhase::Offered.step(&rule, &unrecorded),
        Ok(RulePhase::Offered)
    );
}

#[test]
fn a_renewal_does_not_forget_a_rejection() {
    let rule = rule();
    let contradicted = SuspendCause::Contradicted(OperationId(7));
    let mut phase = RulePhase::Active;
    for cause in [
        SuspendCause::BudgetSpent,
        contradicted.clone(),
        SuspendCause::Expired,
    ] {
        phase = phase.step(&rule, &LifeEvent::Suspended(cause)).unwrap();
    }
    let expect = RulePhase::Suspended {
        cause: contradicted,
        was_shadow: false,
    };
    assert_eq!(phase, expect);
}

#[test]
fn an_acceptance_checks_the_term() {
    let rule = rule();
    let accept = |at_ms: u64| {
        let event = LifeEvent::Accepted {
            by: ann(),
            digest: rule.digest(),
            shadow: false,
            at_ms,
        };
        RulePhase::Offered.step(&rule, &event)
    };
    let too_long = LifeError::Term(TermError::TooLong);
    assert_eq!(accept(END_MS - 31 * DAY_MS), Err(too_long));
    assert_eq!(accept(END_MS), Err(LifeError::Term(TermError::TooShort)));
    assert_eq!(accept(NOW_MS), Ok(RulePhase::Active));
}

#[test]
fn a_clock_that_was_set_back_brings_no_rule_back() {
    let rule = rule();
    let mut spent = Spent::default();
    let mut late = charge(&rule, 1);
    late.at_ms = END_MS;
    spent.apply(SpentEvent::Charged(late));
    assert_eq!(
        suspends(&rule, &spent, &around()),
        Some(SuspendCause::Expired)
    );
}

#[test]
fn an_older_version_does_not_get_its_budget_back() {
    let rule = rule();
    let mut next = rule.clone();
    next.name.version += 1;
    let mut spent = Spent::default();
    spent.apply(SpentEvent::Charged(charge(&next, 1)));
    assert_eq!(suspends(&next, &spent, &around()), None);
    assert_eq!(
        suspends(&rule, &spent, &around()),
        Some(SuspendCause::BudgetSpent)
    );
}

fn charge(rule: &CallRule, operation: u128) -> RuleCharge {
    RuleCharge {
        rule: rule.name.clone(),
        operation: OperationId(operation),
        at_ms: NOW_MS,
        is_use: true,
        amounts: Vec::new(),
        values: Vec::new(),
        keep_ms: 0,
    }
}

#[track_caller]
fn check(change: impl Fn(&mut Surrounding), expect: Option<SuspendCause>) {
    let mut around = around();
    change(&mut around);
    assert_eq!(suspends(&rule(), &Spent::default(), &around), expect);
}

#[test]
fn what_surrounds_a_rule_suspends_it_before_its_next_use() {
    check(|_| {}, None);
    check(
        |around| around.definition = Some(Digest([1; 32])),
        Some(SuspendCause::DefinitionChanged),
    );
    check(
        |around| around.server = Some(Digest([1; 32])),
        Some(SuspendCause::ServerChanged),
    );
    check(|around| around.definition = None, None);
    check(
        |around| around.author_may = false,
        Some(SuspendCause::AuthorLostRight),
    );
    check(
        |around| {
            around.replaced = Some("bo".into());
            around.author_may = false;
        },
        Some(SuspendCause::BearerReplaced("bo".into())),
    );
    check(
        |around| around.traits.rules = ToolRules::Never,
        Some(SuspendCause::OperatorForbids),
    );
    check(
        |around| around.traits.harmless = false,
        Some(SuspendCause::Destructive),
    );
    check(
        |around| {
            around.traits.harmless = false;
            around.traits.rules = ToolRules::Allow;
        },
        None,
    );
    check(|around| around.now_ms = END_MS, Some(SuspendCause::Expired));
    check(|around| around.now_ms += DORMANT_MS - 1, None);
    check(
        |around| around.now_ms += DORMANT_MS,
        Some(SuspendCause::Dormant),
    );
}

#[test]
fn a_spent_rule_asks_again() {
    let rule = rule();
    let mut spent = Spent::default();
    let mut around = around();
    for operation in 1..=5 {
        assert_eq!(suspends(&rule, &spent, &around), None);
        spent.apply(SpentEvent::Charged(charge(&rule, operation)));
    }
    assert_eq!(
        suspends(&rule, &spent, &around),
        Some(SuspendCause::BudgetSpent)
    );
    let mut next = rule.clone();
    next.name.version += 1;
    assert_eq!(
        suspends(&next, &spent, &around),
        None,
        "a new version has a new budget"
    );
    around.now_ms = NOW_MS + DORMANT_MS - 1;
    assert_eq!(
        suspends(&next, &spent, &around),
        None,
        "the last use counts"
    );
}

#[test]
fn failed_uses_suspend_a_rule() {
    let rule = rule();
    let mut spent = Spent::default();
    for operation in 1..=3 {
        assert_eq!(suspends(&rule, &spent, &around()), None);
        spent.apply(SpentEvent::Charged(charge(&rule, operation)));
        spent.apply(SpentEvent::Ended {
            operation: OperationId(operation),
            failed: true,
        });
    }
    assert_eq!(
        suspends(&rule, &spent, &around()),
        Some(SuspendCause::Failing)
    );
}

#[test]
fn a_rule_that_tightens_is_never_suspended() {
    let mut rule = rule();
    rule.expires_ms = None;
    let mut around = around();
    around.now_ms += 99 * DORMANT_MS;
    around.definition = Some(Digest([1; 32]));
    around.author_may = false;
    around.replaced = Some("ann".into());
    for decision in [RuleDecision::Reject, RuleDecision::Ask] {
        rule.decision = decision;
        assert_eq!(suspends(&rule, &Spent::default(), &around), None);
    }
}

#[test]
fn causes_have_codes_that_are_read_back() {
    let id = OperationId(7);
    for (cause, code) in [
        (
            SuspendCause::BearerReplaced("acme:ann".into()),
            "bearer_replaced:acme:ann".to_owned(),
        ),
        (
            SuspendCause::DefinitionChanged,
            "definition_changed".to_owned(),
        ),
        (SuspendCause::ServerChanged, "server_changed".to_owned()),
        (SuspendCause::Contradicted(id), format!("contradicted:{id}")),
        (
            SuspendCause::AuthorLostRight,
            "author_lost_right".to_owned(),
        ),
        (SuspendCause::BudgetSpent, "budget_spent".to_owned()),
        (SuspendCause::Expired, "expired".to_owned()),
        (SuspendCause::Dormant, "dormant".to_owned()),
        (SuspendCause::ToolQuarantined, "tool_quarantined".to_owned()),
        (SuspendCause::LogUnavailable, "log_unavailable".to_owned()),
        (SuspendCause::Failing, "failing".to_owned()),
        (SuspendCause::OperatorForbids, "operator_forbids".to_owned()),
        (SuspendCause::Destructive, "destructive".to_owned()),
    ] {
        assert_eq!(cause.to_string(), code);
        assert_eq!(code.parse(), Ok(cause));
    }
    for text in [
        "",
        "its end came",
        "expired:",
        "contradicted",
        "contradicted:x",
        "Expired",
    ] {
        assert_eq!(text.parse::<SuspendCause>(), Err(NoSuspendCause), "{text}");
    }
}
