//! Plans of one route, as scripts: what waits at which minute, and what is sent then.

use std::collections::BTreeSet;

use super::{MINUTE, by, proposal};
use crate::{QuietHours, RouteMoment, RoutePlan, RouteStep, WaitingProposal};

/// A route at its present moment.
struct Stage {
    plan: RoutePlan,
    after_ms: u64,
    quiet: Option<&'static str>,
    places: usize,
    busy: BTreeSet<Box<str>>,
}

impl Stage {
    fn new() -> Self {
        Self {
            plan: RoutePlan::default(),
            after_ms: 0,
            quiet: None,
            places: 8,
            busy: BTreeSet::new(),
        }
    }

    fn step(&mut self, now_ms: u64, waiting: &[WaitingProposal]) -> RouteStep {
        self.plan.step(&RouteMoment {
            now_ms,
            after_ms: self.after_ms,
            quiet: self.quiet.map(|text| QuietHours::parse(text).unwrap()),
            waiting,
            places: self.places,
            busy: &self.busy,
        })
    }

    /// The notifications that are sent, as `event proposers: named/waiting`, and the next look in
    /// minutes.
    fn sent(&mut self, now_ms: u64, waiting: &[WaitingProposal]) -> (Vec<String>, Option<u64>) {
        let step = self.step(now_ms, waiting);
        let words = step.planned.iter().map(|one| {
            let event = one.event.as_str();
            let who: Vec<&str> = one.accounts.iter().map(|who| &**who).collect();
            format!(
                "{event} {}: {}/{}",
                who.join("+"),
                one.about.len(),
                one.waiting
            )
        });
        (words.collect(), step.next_ms.map(|at| at / MINUTE))
    }
}

const NONE: Vec<String> = Vec::new();

#[test]
fn a_proposal_is_notified_of_at_once_and_when_half_of_its_time_is_gone() {
    let mut stage = Stage::new();
    let one = [proposal(1)];
    let first = vec!["proposal.waiting scout: 1/1".to_owned()];
    assert_eq!(stage.sent(0, &one), (first, Some(1)));
    assert_eq!(stage.sent(MINUTE, &one), (NONE, Some(30)));
    let half = vec!["proposal.half_time scout: 1/1".to_owned()];
    assert_eq!(stage.sent(30 * MINUTE, &one), (half, Some(31)));
    assert_eq!(stage.sent(59 * MINUTE, &one), (NONE, None));
    // With more time there is no further reminder, and one that was late is one message.
    let mut late = proposal(2);
    late.opened_ms = 60 * MINUTE;
    late.expires_ms = 120 * MINUTE;
    let two = [proposal(1), late];
    let both = vec!["proposal.waiting scout: 1/2".to_owned()];
    assert_eq!(stage.sent(100 * MINUTE, &two), (both, Some(101)));
    assert_eq!(stage.sent(119 * MINUTE, &two), (NONE, None));
}

#[test]
fn a_proposer_has_one_notification_a_minute_and_takes_none_from_others() {
    let mut stage = Stage::new();
    let flood: Vec<WaitingProposal> = (0..1000).map(proposal).collect();
    let one = vec!["proposal.waiting scout: 1/1".to_owned()];
    assert_eq!(stage.sent(0, &flood[..1]), (one, Some(1)));
    assert_eq!(stage.sent(1, &flood), (NONE, Some(1)));
    let mut all = flood.clone();
    all.push(by("other", proposal(2000)));
    let other = vec!["proposal.waiting other: 1/1".to_owned()];
    assert_eq!(stage.sent(2, &all), (other, Some(1)));
    let rest = vec!["proposal.waiting scout: 999/1000".to_owned()];
    assert_eq!(stage.sent(MINUTE, &flood), (rest, Some(2)));
    // All guests are one proposer.
    let guests: Vec<WaitingProposal> = (3000..3100)
        .map(|id| by(&format!("anonymous-{id}"), proposal(id)))
        .collect();
    let all_guests = vec!["proposal.waiting anonymous-: 100/100".to_owned()];
    assert_eq!(stage.sent(MINUTE, &guests).0, all_guests);
}

#[test]
fn an_escalation_gets_what_still_waits_and_is_not_claimed() {
    let mut stage = Stage::new();
    stage.after_ms = 10 * MINUTE;
    let mut claimed = proposal(2);
    claimed.is_claimed = true;
    let waiting = [proposal(1), claimed];
    assert_eq!(stage.sent(0, &waiting), (NONE, Some(10)));
    let only_one = vec!["proposal.waiting scout: 1/1".to_owned()];
    assert_eq!(stage.sent(10 * MINUTE, &waiting), (only_one, Some(11)));
    // The claim has ended.
    let waiting = [proposal(1), proposal(2)];
    let other = vec!["proposal.waiting scout: 1/2".to_owned()];
    assert_eq!(stage.sent(15 * MINUTE, &waiting), (other, Some(16)));
    // Decided before.
    let mut stage = Stage::new();
    stage.after_ms = 10 * MINUTE;
    assert_eq!(stage.sent(0, &[proposal(1)]), (NONE, Some(10)));
    assert_eq!(stage.sent(10 * MINUTE, &[]), (NONE, None));
}

#[test]
fn quiet_hours_hold_everything_back_and_end_with_one_summary() {
    let mut stage = Stage::new();
    // The first of January 1970, 00:00 to 00:20.
    stage.quiet = Some("23:00-01:20 +01:00");
    let waiting = [proposal(1), proposal(2), by("other", proposal(3))];
    assert_eq!(stage.sent(0, &waiting), (NONE, Some(20)));
    assert_eq!(stage.sent(19 * MINUTE, &waiting[1..]), (NONE, Some(20)));
    let all = vec!["proposal.summary other+scout: 2/2".to_owned()];
    assert_eq!(stage.sent(20 * MINUTE, &waiting[1..]).0, all);
    assert_eq!(stage.sent(22 * MINUTE, &waiting[1..]), (NONE, Some(30)));
    // What was decided meanwhile is not sent, and nothing is nothing.
    let mut stage = Stage::new();
    stage.quiet = Some("00:00-00:20 UTC");
    assert_eq!(stage.sent(0, &waiting), (NONE, Some(20)));
    assert_eq!(stage.sent(20 * MINUTE, &[]), (NONE, None));
    let later = vec!["proposal.waiting scout: 1/1".to_owned()];
    assert_eq!(stage.sent(21 * MINUTE, &waiting[..1]).0, later);
}

#[test]
fn nothing_is_planned_without_a_place_and_what_ends_meanwhile_is_never_sent() {
    let mut stage = Stage::new();
    stage.places = 1;
    let waiting = [proposal(1), by("other", proposal(2))];
    let first = vec!["proposal.waiting scout: 1/1".to_owned()];
    assert_eq!(stage.sent(0, &waiting), (first, Some(1)));
    stage.places = 0;
    stage.busy.insert("scout".into());
    assert_eq!(stage.sent(2 * MINUTE, &waiting), (NONE, Some(30)));
    stage.places = 1;
    let other = vec!["proposal.waiting other: 1/1".to_owned()];
    assert_eq!(stage.sent(3 * MINUTE, &waiting).0, other);
    // A proposer about whom one is under way waits for its end.
    let more = [proposal(1), proposal(9)];
    assert_eq!(stage.sent(4 * MINUTE, &more), (NONE, Some(30)));
    stage.busy.clear();
    let more_words = vec!["proposal.waiting scout: 1/2".to_owned()];
    assert_eq!(stage.sent(5 * MINUTE, &more).0, more_words);
    // What is taken back is due again.
    stage.plan.take_back(&[more[0].id, more[1].id]);
    let again = vec!["proposal.waiting scout: 2/2".to_owned()];
    assert_eq!(stage.sent(7 * MINUTE, &more).0, again);
}

#[test]
fn quiet_hours_have_an_offset_and_go_over_midnight() {
    // Nothing would ever be sent.
    assert!(QuietHours::parse("00:00-24:00 UTC").is_err());
    let at = |hours: u64, minutes: u64| (hours * 60 + minutes) * MINUTE;
    let night = QuietHours::parse("22:00-07:00 +02:00").unwrap();
    for (hour, quiet) in [
        (19, false),
        (20, true),
        (23, true),
        (0, true),
        (4, true),
        (5, false),
    ] {
        assert_eq!(night.has(at(hour, 0)), quiet, "{hour}");
    }
    assert_eq!(night.end_ms(at(20, 0) + 1), at(29, 0));
    assert_eq!(night.end_ms(at(4, 59)), at(5, 0));
    let day = QuietHours::parse("12:00-13:00 UTC").unwrap();
    assert!(day.has(at(12, 0)) && !day.has(at(13, 0)));
    assert!(
        QuietHours::parse("22:00-00:00 UTC")
            .unwrap()
            .has(at(23, 59))
    );
    for text in [
        "22:00-07:00",
        "22:00-22:00 UTC",
        "7-8 UTC",
        "22:00-25:00 UTC",
        "22:00-07:00 CET",
        "",
    ] {
        assert!(QuietHours::parse(text).is_err(), "{text}");
    }
}
