//! Uses of refresh tokens: none of their results is lost, and none is stored after a later one.

use super::{Cluster, Effect, Text, flight_of};
use crate::{
    CommonEntry, HomeEffect, HomeEvent, HomeRecord, LOG_RETRY_MS, RENEWAL_MS, Shard, TICK_MS,
};

const TOKENS: Text = Text("tokens");

fn renew(cluster: &mut Cluster, at: usize, ticket: u64) -> u64 {
    let account = "bob".into();
    cluster.step(at, HomeEvent::Renew { account, ticket });
    flight_of(cluster)
}

fn renewed(cluster: &mut Cluster, at: usize, flight: u64) {
    let account = "bob".into();
    cluster.step(
        at,
        HomeEvent::Renewed {
            account,
            flight,
            line: Some(TOKENS),
        },
    );
}

fn is_given_back(at: usize, number: u64) -> impl Fn(usize, &Effect) -> bool {
    move |seen, effect| {
        let HomeEffect::NotRenewed { flight, line, .. } = effect else {
            return false;
        };
        seen == at && *flight == number && *line == Some(TOKENS)
    }
}

fn is_over(number: u64) -> impl Fn(usize, &Effect) -> bool {
    move |_, effect| matches!(effect, HomeEffect::RenewalOver { flight, known: true, .. } if *flight == number)
}

fn times_stored(cluster: &Cluster) -> usize {
    let tokens =
        |one: &&CommonEntry<Text>| matches!(one, CommonEntry::Line(line) if *line == TOKENS);
    let groups = cluster
        .stream
        .iter()
        .filter_map(|one| match &one.message.record {
            HomeRecord::Lines(entries) => Some(entries),
            _ => None,
        });
    groups.flatten().filter(tokens).count()
}

#[test]
fn a_result_that_comes_when_the_shard_has_moved_goes_to_the_next_home() {
    let mut cluster = Cluster::grown(&["a", "b"]);
    let former = cluster.home(&Shard::Common);
    let flight = renew(&mut cluster, former, 1);
    cluster.step(former, HomeEvent::Drain);
    cluster.pass(TICK_MS);
    renewed(&mut cluster, former, flight);
    assert!(cluster.was_seen(is_given_back(former, flight)));
    assert_eq!(times_stored(&cluster), 0);
    renewed(&mut cluster, 1 - former, flight);
    assert!(cluster.was_seen(is_over(flight)));
    assert_eq!(times_stored(&cluster), 1);
}

#[test]
fn a_result_on_its_way_to_the_log_is_given_back_by_a_home_that_ends() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let former = cluster.home(&Shard::Common);
    let flight = renew(&mut cluster, former, 1);
    cluster.isolate(former, true);
    renewed(&mut cluster, former, flight);
    assert!(!cluster.was_seen(is_given_back(former, flight)));
    cluster.pass(4_000);
    assert!(cluster.was_seen(is_given_back(former, flight)));
}

#[test]
fn a_result_of_a_home_that_hands_over_is_stored_before_the_end_of_its_epoch() {
    let mut cluster = Cluster::grown(&["a", "b"]);
    let home = cluster.home(&Shard::Common);
    let flight = renew(&mut cluster, home, 1);
    cluster.away[home] = true;
    let (shard, line) = (Shard::Common, Text("line"));
    cluster.step(
        home,
        HomeEvent::Store {
            shard,
            ticket: 1,
            line,
        },
    );
    cluster.step(home, HomeEvent::Drain);
    renewed(&mut cluster, home, flight);
    cluster.away[home] = false;
    cluster.pass(2 * LOG_RETRY_MS);
    assert!(cluster.was_seen(is_over(flight)));
    assert_eq!(times_stored(&cluster), 1);
}

#[test]
fn a_result_that_comes_twice_is_stored_once() {
    let mut cluster = Cluster::grown(&["a"]);
    let flight = renew(&mut cluster, 0, 1);
    for times in 1..4 {
        renewed(&mut cluster, 0, flight);
        assert_eq!(cluster.count(is_over(flight)), times, "each is answered");
        assert_eq!(times_stored(&cluster), 1);
    }
}

#[test]
fn a_late_result_is_stored_unless_a_later_use_was_begun() {
    for begins_another in [false, true] {
        let mut cluster = Cluster::grown(&["a", "b"]);
        let former = cluster.home(&Shard::Common);
        let next = 1 - former;
        let flight = renew(&mut cluster, former, 1);
        cluster.step(former, HomeEvent::Drain);
        cluster.pass(RENEWAL_MS + RENEWAL_MS / 8);
        if begins_another {
            assert_ne!(renew(&mut cluster, next, 2), flight);
        }
        renewed(&mut cluster, next, flight);
        assert_eq!(times_stored(&cluster), usize::from(!begins_another));
        let answered = |_: usize, effect: &Effect| {
            let HomeEffect::RenewalOver {
                flight: over,
                known,
                ..
            } = effect
            else {
                return false;
            };
            *over == flight && *known != begins_another
        };
        assert!(cluster.was_seen(answered));
    }
}

#[test]
fn a_late_result_beside_an_intent_that_is_not_durable_yet_is_stored_instead_of_a_request() {
    let mut cluster = Cluster::grown(&["a", "b"]);
    let former = cluster.home(&Shard::Common);
    let next = 1 - former;
    let flight = renew(&mut cluster, former, 1);
    cluster.step(former, HomeEvent::Drain);
    cluster.pass(RENEWAL_MS + RENEWAL_MS / 8);
    cluster.away[next] = true;
    renew(&mut cluster, next, 2);
    renewed(&mut cluster, next, flight);
    cluster.seen.clear();
    cluster.away[next] = false;
    cluster.pass(2 * LOG_RETRY_MS);
    let sent = |_: usize, effect: &Effect| matches!(effect, HomeEffect::Renew { .. });
    assert!(!cluster.was_seen(sent), "its token is used up");
    assert_eq!(times_stored(&cluster), 1);
    let answered = |_: usize, effect: &Effect| matches!(effect, HomeEffect::RenewalOver { tickets, known: true, .. } if tickets == &[2]);
    assert!(cluster.was_seen(answered));
}
