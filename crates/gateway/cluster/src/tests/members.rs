//! Members that a person takes out, those who wait under load, and a process that only others hear.

use super::{Cluster, Effect, Text};
use crate::{
    Admission, CUT_OFF_MS, CommonEntry, HEARTBEAT_MS, HomeEffect, HomeEvent, HomeRecord, Homes,
    HomesConfig, LOG_RETRY_MS, SILENCE_MS, Shard, TICK_MS,
};

fn remove_others(cluster: &mut Cluster, home: usize) {
    let own = cluster.nodes[home].node().name.clone();
    let names: Vec<_> = cluster.nodes[home].members().cloned().collect();
    for name in names.into_iter().filter(|name| *name != own) {
        cluster.step(home, HomeEvent::Remove { name });
    }
}

#[test]
fn a_person_frees_a_successor_that_the_others_never_heard() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let left = (cluster.home(&Shard::Common) + 1) % 3;
    for at in (0..3).filter(|at| *at != left) {
        cluster.isolate(at, true);
    }
    let is_home = |at: usize, effect: &Effect| {
        at == left
            && matches!(
                effect,
                HomeEffect::BecomeHome {
                    shard: Shard::Common,
                    ..
                }
            )
    };
    cluster.pass(2 * (CUT_OFF_MS + SILENCE_MS));
    assert!(cluster.was_seen(is_home));
    let (shard, line) = (Shard::Common, Text("line"));
    cluster.step(
        left,
        HomeEvent::Store {
            shard,
            ticket: 7,
            line,
        },
    );
    cluster.pass(4 * (CUT_OFF_MS + SILENCE_MS));
    assert!(!cluster.is_confirmed(7), "the others may admit without it");
    remove_others(&mut cluster, left);
    cluster.pass(HEARTBEAT_MS);
    assert!(cluster.is_confirmed(7));
    assert_eq!(cluster.nodes[left].members().count(), 1);
    // One that does run comes again.
    for at in 0..3 {
        cluster.isolate(at, false);
    }
    cluster.pass(SILENCE_MS);
    assert_eq!(cluster.nodes[left].members().count(), 3);
}

#[test]
fn a_heartbeat_from_before_does_not_bring_a_member_back() {
    let mut cluster = Cluster::grown(&["a", "b"]);
    let home = cluster.home(&Shard::Common);
    let late = cluster
        .seen
        .iter()
        .rev()
        .find_map(|(at, effect)| match effect {
            HomeEffect::Publish(beat) if *at != home => Some(beat.clone()),
            _ => None,
        });
    cluster.isolate(1 - home, true);
    remove_others(&mut cluster, home);
    cluster.step(home, HomeEvent::Beat(late.unwrap()));
    cluster.pass(HEARTBEAT_MS);
    assert_eq!(cluster.nodes[home].members().count(), 1);
    cluster.store(&Shard::Common, 7);
    assert!(cluster.is_confirmed(7));
}

#[test]
fn a_node_joins_a_home_that_always_has_an_append_under_way() {
    let mut cluster = Cluster::new(&["a", "b"]);
    cluster.cut[1] = true;
    cluster.away[1] = true;
    cluster.pass(2 * SILENCE_MS);
    cluster.isolate(1, false);
    for ticket in 0..40 {
        // An append has no answer yet at each tick.
        cluster.away[0] = true;
        cluster.store(&Shard::Common, ticket);
        cluster.pass(TICK_MS);
        let mut latest = cluster.seen.iter().rev();
        let append = latest.find_map(|(at, effect)| {
            let is_append = matches!(effect, HomeEffect::Append { .. });
            (*at == 0 && is_append).then(|| effect.clone())
        });
        cluster.away[0] = false;
        cluster.carry(0, append.unwrap());
    }
    assert!(cluster.nodes[0].members().count() == 2);
}

#[test]
fn a_change_waits_for_a_namesake_that_only_another_node_hears() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    cluster.pass(CUT_OFF_MS + SILENCE_MS);
    let home = cluster.home(&Shard::Common);
    let (member, other) = ((home + 1) % 3, (home + 2) % 3);
    let mut config = HomesConfig::new(cluster.nodes[member].node().clone(), Vec::new());
    config.node.incarnation.directory += 1_000;
    let mut namesake: Homes<Text> = Homes::new(config);
    for effect in namesake.step(cluster.time(member), HomeEvent::Tick) {
        if let HomeEffect::Publish(beat) = effect {
            cluster.step(other, HomeEvent::Beat(beat));
        }
    }
    cluster.pass(HEARTBEAT_MS);
    cluster.store(&Shard::Common, 7);
    cluster.pass(CUT_OFF_MS);
    assert!(!cluster.is_confirmed(7));
    cluster.pass(SILENCE_MS + HEARTBEAT_MS);
    assert!(cluster.is_confirmed(7));
}

#[test]
fn a_reading_of_the_common_journal_counts_however_long_it_takes() {
    let mut cluster = Cluster::grown(&["a", "b"]);
    let home = cluster.home(&Shard::Common);
    let late = 1 - home;
    let config = HomesConfig::new(cluster.nodes[late].node().clone(), Vec::new());
    cluster.nodes[late] = Homes::new(config);
    cluster.holds.push(Shard::Common);
    cluster.pass(3 * LOG_RETRY_MS);
    assert!(cluster.held.len() > 1, "it is asked again");
    cluster.release();
    assert_eq!(cluster.nodes[late].members().count(), 2);
}

#[test]
fn a_copy_that_begins_anew_has_no_contact_of_before() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let other = (cluster.home(&Shard::Common) + 1) % 3;
    cluster.store(&Shard::Common, 1);
    cluster.pass(HEARTBEAT_MS);
    assert!(cluster.admits(other));
    cluster.holds.push(Shard::Common);
    cluster.nodes[other].reset(1);
    cluster.pass(HEARTBEAT_MS);
    let (at, event) = cluster.held.remove(0);
    let HomeEvent::Read {
        shard,
        request,
        mut messages,
    } = event
    else {
        panic!("a read");
    };
    // A replica that lags has the journal without the last line.
    let has_line = |record: &HomeRecord<Text>| match record {
        HomeRecord::Lines(entries) => entries.contains(&CommonEntry::Line(Text("line"))),
        _ => false,
    };
    let end = messages
        .iter()
        .position(|one| has_line(&one.message.record));
    messages.truncate(end.unwrap());
    cluster.step(
        at,
        HomeEvent::Read {
            shard,
            request,
            messages,
        },
    );
    assert_eq!(cluster.nodes[other].members().count(), 3);
    let admission = cluster.nodes[other].admission();
    assert!(matches!(admission, Admission::No(_)), "{admission:?}");
}
