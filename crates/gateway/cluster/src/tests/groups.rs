//! Groups of lines, and appends that are repeated.

use super::{Cluster, Effect, Text, topic};
use crate::{
    APPEND_OPEN_MS, AppendId, GROUP_BYTES_MAX, GROUP_LINES_MAX, HomeEffect, HomeEvent, HomeRecord,
    LOG_RETRY_MS, NotStored, WAITING_BYTES_MAX, WAITING_LINES_MAX,
};

#[test]
fn an_append_without_an_answer_is_repeated_with_its_id() {
    let mut cluster = Cluster::grown(&["a", "b"]);
    cluster.away.fill(true);
    cluster.seen.clear();
    let home = cluster.store(&topic(), 1);
    cluster.pass(3 * LOG_RETRY_MS);
    let ids = cluster.seen.iter().filter_map(|(at, effect)| match effect {
        HomeEffect::Append { id, subject, .. } if *at == home && subject.shard == topic() => {
            Some(*id)
        }
        _ => None,
    });
    let ids: Vec<AppendId> = ids.collect();
    assert!(
        ids.len() >= 3 && ids.iter().all(|id| *id == ids[0]),
        "{ids:?}"
    );
}

#[test]
fn lines_that_wait_are_bounded_and_go_in_groups() {
    let mut cluster = Cluster::grown(&["a"]);
    cluster.seen.clear();
    cluster.away.fill(true);
    for ticket in 0..=WAITING_LINES_MAX as u64 + 1 {
        cluster.store(&topic(), ticket);
    }
    let busy = |effect: &Effect| {
        let why = NotStored::Busy;
        matches!(effect, HomeEffect::NotStored { why: found, .. } if *found == why)
    };
    let refused = cluster.seen.iter().filter(|(_, effect)| busy(effect));
    assert_eq!(
        refused.count(),
        1,
        "one line is under way, and so many wait"
    );
    cluster.away.fill(false);
    cluster.pass(2 * LOG_RETRY_MS);
    assert_eq!(groups(&cluster).into_iter().max(), Some(GROUP_LINES_MAX));
}

#[test]
fn groups_have_a_bounded_size() {
    const TEXT: &str = match str::from_utf8(&[b'a'; GROUP_BYTES_MAX / 3]) {
        Ok(text) => text,
        Err(_) => "",
    };
    let mut cluster = Cluster::grown(&["a"]);
    cluster.away.fill(true);
    for ticket in 0..6 {
        let line = Text(TEXT);
        let shard = topic();
        cluster.step(
            0,
            HomeEvent::Store {
                shard,
                ticket,
                line,
            },
        );
    }
    cluster.away.fill(false);
    cluster.pass(2 * LOG_RETRY_MS);
    assert_eq!(groups(&cluster), [1, 2, 2, 1]);
}

/// The lines of each group of the topic's journal.
fn groups(cluster: &Cluster) -> Vec<usize> {
    let groups = cluster
        .stream
        .iter()
        .filter_map(|one| match &one.message.record {
            HomeRecord::Lines(entries) if one.subject.shard == topic() => Some(entries.len()),
            _ => None,
        });
    groups.collect()
}

#[test]
fn a_log_that_takes_nothing_is_said_and_asked_later() {
    let mut cluster = Cluster::grown(&["a"]);
    cluster.full = true;
    cluster.seen.clear();
    cluster.store(&topic(), 1);
    let unavailable = |number: u64| {
        move |_: usize, effect: &Effect| {
            let why = NotStored::Unavailable;
            matches!(effect, HomeEffect::NotStored { ticket, why: found, .. } if *ticket == number && *found == why)
        }
    };
    assert!(cluster.was_seen(unavailable(1)));
    let account = "bob".into();
    cluster.step(0, HomeEvent::Renew { account, ticket: 2 });
    cluster.pass(5 * LOG_RETRY_MS);
    let appends = cluster.count(|_, effect| matches!(effect, HomeEffect::Append { .. }));
    assert!((3..8).contains(&appends), "{appends}");
    cluster.full = false;
    cluster.pass(2 * LOG_RETRY_MS);
    assert!(cluster.was_seen(|_, effect| matches!(effect, HomeEffect::Renew { .. })));
    cluster.store(&topic(), 3);
    let stored = |effect: &Effect| matches!(effect, HomeEffect::Stored { ticket: 3, .. });
    assert!(cluster.was_seen(|_, effect| stored(effect)));
}

#[test]
fn an_append_that_may_be_stored_is_asked_again_when_the_log_takes_nothing() {
    let mut cluster = Cluster::grown(&["a"]);
    cluster.away.fill(true);
    cluster.store(&topic(), 1);
    cluster.pass(2 * LOG_RETRY_MS);
    (cluster.full, cluster.away[0]) = (true, false);
    cluster.pass(2 * LOG_RETRY_MS);
    let refused = |_: usize, effect: &Effect| matches!(effect, HomeEffect::NotStored { .. });
    assert!(
        !cluster.was_seen(refused),
        "an earlier try may be stored yet"
    );
    cluster.full = false;
    cluster.pass(2 * LOG_RETRY_MS);
    let stored = |effect: &Effect| matches!(effect, HomeEffect::Stored { ticket: 1, .. });
    assert!(cluster.was_seen(|_, effect| stored(effect)));
}

#[test]
fn lines_behind_an_append_without_an_answer_wait_for_so_long() {
    let mut cluster = Cluster::grown(&["a"]);
    cluster.away.fill(true);
    cluster.seen.clear();
    for ticket in 1..=3 {
        cluster.store(&topic(), ticket);
    }
    let refused = |cluster: &Cluster| {
        cluster.count(|_, effect| {
            let why = NotStored::Unavailable;
            matches!(effect, HomeEffect::NotStored { why: found, .. } if *found == why)
        })
    };
    cluster.pass(APPEND_OPEN_MS - LOG_RETRY_MS);
    assert_eq!(refused(&cluster), 0);
    cluster.pass(2 * LOG_RETRY_MS);
    assert_eq!(refused(&cluster), 2, "the first may be stored");
    cluster.store(&topic(), 4);
    assert_eq!(refused(&cluster), 3);
    cluster.away.fill(false);
    cluster.pass(2 * LOG_RETRY_MS);
    cluster.store(&topic(), 5);
    for number in [1, 5] {
        let stored = |_: usize, effect: &Effect| matches!(effect, HomeEffect::Stored { ticket, .. } if *ticket == number);
        assert!(cluster.was_seen(stored), "{number}");
    }
}

#[test]
fn the_bytes_of_lines_that_wait_are_bounded() {
    const TEXT: &str = match str::from_utf8(&[b'a'; GROUP_BYTES_MAX]) {
        Ok(text) => text,
        Err(_) => "",
    };
    let mut cluster = Cluster::grown(&["a"]);
    cluster.away.fill(true);
    cluster.seen.clear();
    let fit = (WAITING_BYTES_MAX / GROUP_BYTES_MAX) as u64;
    for ticket in 0..2 * fit {
        let (shard, line) = (topic(), Text(TEXT));
        cluster.step(
            0,
            HomeEvent::Store {
                shard,
                ticket,
                line,
            },
        );
    }
    let busy = cluster.count(|_, effect| {
        let why = NotStored::Busy;
        matches!(effect, HomeEffect::NotStored { why: found, .. } if *found == why)
    });
    assert!((fit - 2..=fit).contains(&(busy as u64)), "{busy} of {fit}");
}
