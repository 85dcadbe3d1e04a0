//! Groups of lines, and appends that are repeated.

use super::{Cluster, Effect, Text, topic};
use crate::{
    AppendId, GROUP_BYTES_MAX, GROUP_LINES_MAX, HomeEffect, HomeEvent, HomeRecord, LOG_RETRY_MS,
    NotStored, WAITING_LINES_MAX,
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
