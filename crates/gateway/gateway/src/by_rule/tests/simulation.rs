//! Seeded simulation of rules in a running topic: random proposals, grants, revocations, pauses, hours
//! and restarts, and independent, much simpler books that say of each proposal what rules do with it.
//!
//! Topic, rules, journal and server are the real ones; a crash is a topic that never runs what it has
//! decided, and another one on a copy of its journal.

mod books;
mod prng;
mod world;

use std::collections::BTreeMap;

use world::World;

/// Topics in the test, and steps in each; more topics until all has been seen, and at most.
const TOPICS: u64 = 10;
const TOPICS_MAX: u64 = 60;
const STEPS: usize = 70;

/// A simulation in which one of these never happens proves nothing about it.
const SEEN: [&str; 26] = [
    "approved by ann's rule",
    "approved by bob's rule",
    "approved after it was looked up",
    "rejected by a rule",
    "left to people by a rule that asks",
    "left to people: the author's own",
    "left to people: the author is not known",
    "left to people: the author may not, and no other rule steps in",
    "left to people: the author is paused",
    "left to people: the proposer is paused",
    "left to people: no use is left",
    "left to people: over the rate",
    "left to people: over the sum",
    "left to people: not looked up",
    "left to people: suspended, though its author may again",
    "suspended: its author lost the right",
    "suspended: its budget is spent",
    "suspended: its end came",
    "suspended: a name has another bearer",
    "its author left the topic and is judged outside of it",
    "renewed",
    "decided by a person",
    "withdrawn with its proposer",
    "decided when rules came",
    "restarted",
    "crashed between decision and run",
];

/// The number of times that each was seen.
type Tally = BTreeMap<&'static str, usize>;

async fn run(seed: u64, seen: &mut Tally) {
    let mut world = World::new(seed).await;
    for _ in 0..STEPS {
        world.step().await;
    }
    for (name, count) in world.seen() {
        *seen.entry(name).or_default() += count;
    }
}

fn never(seen: &Tally) -> Vec<&'static str> {
    let never = SEEN.into_iter().filter(|name| !seen.contains_key(name));
    never.collect()
}

/// By hand: `FIRST=0 TOPICS=2000 cargo test -p portmoot-gateway --lib by_rule::tests::simulation`.
#[tokio::test]
async fn no_rule_passes_its_budget_its_end_or_the_rights_of_its_author() {
    let number = |name: &str, usual| {
        let set = std::env::var(name).ok();
        set.and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let (first, topics) = (number("FIRST", 0), number("TOPICS", TOPICS));
    let mut seen = Tally::new();
    for seed in first..first + topics.max(TOPICS_MAX) {
        if seed >= first + topics && never(&seen).is_empty() {
            break;
        }
        run(seed, &mut seen).await;
    }
    assert_eq!(never(&seen), [""; 0], "of {seen:#?}");
    let mut other = seen.keys().filter(|name| !SEEN.contains(name));
    assert_eq!(other.next(), None, "seen, and not in the list");
}
