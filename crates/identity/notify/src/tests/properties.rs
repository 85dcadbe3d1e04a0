//! Properties of plans under random proposals, claims, ends and places.

use std::collections::{BTreeMap, BTreeSet};

use model::OperationId;
use proptest::prelude::*;

use super::{MINUTE, by, proposal};
use crate::{
    NOTIFY_GAP_MS, PlannedNotification, QuietHours, RouteMoment, RoutePlan, WaitingProposal,
};

/// Minutes of a run.
const RUN: u64 = 120;
const AFTER: u64 = 10;
/// Quiet from the 30th to the 60th minute.
const QUIET: &str = "00:30-01:00 UTC";

/// The life of one proposal, in minutes.
#[derive(Debug, Clone)]
struct Life {
    by: &'static str,
    opened: u64,
    ends: u64,
    claimed: std::ops::Range<u64>,
}

fn life() -> impl Strategy<Value = Life> {
    let who = prop::sample::select(vec!["scout", "other", "third"]);
    (who, 0..100_u64, 1..60_u64, 0..RUN, 0..20_u64).prop_map(|(by, opened, time, from, long)| {
        Life {
            by,
            opened,
            ends: opened + time,
            claimed: from..from + long,
        }
    })
}

fn at(lives: &[Life], minute: u64) -> Vec<WaitingProposal> {
    let there = lives.iter().enumerate();
    let there = there.filter(|(_, one)| (one.opened..one.ends).contains(&minute));
    let mut waiting: Vec<WaitingProposal> = there
        .map(|(id, one)| WaitingProposal {
            opened_ms: one.opened * MINUTE,
            expires_ms: (one.opened + 60) * MINUTE,
            is_claimed: one.claimed.contains(&minute),
            ..by(one.by, proposal(id as u128))
        })
        .collect();
    waiting.sort_by_key(|one| one.opened_ms);
    waiting
}

/// The notifications of each minute.
fn run(lives: &[Life], after: u64, quiet: bool) -> BTreeMap<u64, Vec<PlannedNotification>> {
    let mut plan = RoutePlan::default();
    let quiet = quiet.then(|| QuietHours::parse(QUIET).unwrap());
    let minutes = (0..RUN).map(|minute| {
        let waiting = at(lives, minute);
        let step = plan.step(&RouteMoment {
            now_ms: minute * MINUTE,
            after_ms: after * MINUTE,
            quiet,
            waiting: &waiting,
            places: 8,
            busy: &BTreeSet::new(),
        });
        (minute, step.planned)
    });
    minutes.collect()
}

proptest! {
    #[test]
    fn each_notification_is_about_what_waits_and_is_the_only_one_of_its_minute(
        lives in prop::collection::vec(life(), 0..30),
        quiet in any::<bool>(),
        after in prop::sample::select(vec![0, AFTER]),
    ) {
        let sent = run(&lives, after, quiet);
        let mut named: BTreeMap<OperationId, usize> = BTreeMap::new();
        let mut last: BTreeMap<Box<str>, u64> = BTreeMap::new();
        for (minute, planned) in &sent {
            let waiting: BTreeSet<OperationId> = at(&lives, *minute)
                .into_iter()
                .filter(|one| after == 0 || !one.is_claimed)
                .filter(|one| one.opened_ms + after * MINUTE <= minute * MINUTE)
                .map(|one| one.id)
                .collect();
            for one in planned {
                prop_assert!(!quiet || !(30..60).contains(minute));
                prop_assert!(!one.about.is_empty() && one.waiting >= one.about.len());
                for id in &one.about {
                    prop_assert!(waiting.contains(id), "{minute}: {id}");
                    *named.entry(*id).or_default() += 1;
                }
                for account in &one.accounts {
                    let before = last.insert(account.clone(), *minute);
                    prop_assert!(before.is_none_or(|before| (minute - before) * MINUTE >= NOTIFY_GAP_MS));
                }
            }
        }
        prop_assert!(named.values().all(|times| *times <= 2));
        // Whatever waits past its time is named, at the latest when the quiet hours are over.
        for (id, life) in lives.iter().enumerate() {
            let calm = |minute: &u64| {
                let is_quiet = quiet && (30..60).contains(minute);
                let is_claimed = after > 0 && life.claimed.contains(minute);
                !is_quiet && !is_claimed
            };
            let mut due = (life.opened + after..life.ends.min(RUN)).filter(calm);
            if due.next().is_some() {
                prop_assert!(named.contains_key(&OperationId(id as u128)), "{life:?}");
            }
        }
    }
}
