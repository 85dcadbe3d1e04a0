//! Snapshots and purges: where readers begin, and what is a loss all the same.

use model::TopicName;

use super::chain::{begun, chain, fenced, line};
use super::{Cluster, Effect, Text, node, topic};
use crate::history::{History, Unfit};
use crate::reading::{ReadingStart, TopicReading};
use crate::{
    CommonEntry, EPOCHS_KEPT_MAX, HEARTBEAT_MS, HomeEffect, HomeEvent, HomeRecord, Homes,
    HomesConfig, KeptState, NotStored, PURGE_RETRY_MS, RENEWAL_MS, SILENCE_MS, Shard,
    StoredMessage, TICK_MS,
};

const SNAPSHOT: Text = Text("snapshot");

fn compact(cluster: &mut Cluster, shard: &Shard, ticket: u64) -> usize {
    let at = cluster.home(shard);
    let (shard, lines) = (shard.clone(), vec![SNAPSHOT]);
    cluster.step(
        at,
        HomeEvent::Compact {
            shard,
            ticket,
            lines,
        },
    );
    at
}

fn is_stored(number: u64) -> impl Fn(usize, &Effect) -> bool {
    move |_, effect| matches!(effect, HomeEffect::Stored { ticket, .. } if *ticket == number)
}

fn is_purge(_: usize, effect: &Effect) -> bool {
    matches!(effect, HomeEffect::Purge { .. })
}

fn is_stop(_: usize, effect: &Effect) -> bool {
    matches!(effect, HomeEffect::StopTopic { .. })
}

/// The messages of a shard that are left.
fn left<'c>(cluster: &'c Cluster, shard: &Shard) -> Vec<&'c StoredMessage<Text>> {
    let all = cluster.stream.iter();
    all.filter(|one| one.subject.shard == *shard).collect()
}

/// Has a node begin a new life, without what it had.
fn restart(cluster: &mut Cluster, at: usize) {
    let name = cluster.nodes[at].node().name.clone();
    let life = cluster.nodes[at].node().incarnation.life + 1;
    let topics = vec![TopicName::new("main").unwrap()];
    cluster.nodes[at] = Homes::new(HomesConfig::new(node(&name, life), topics));
}

#[test]
fn a_journal_is_its_snapshot_and_what_follows() {
    for shard in [Shard::Common, topic()] {
        let mut cluster = Cluster::grown(&["a", "b", "c"]);
        for ticket in 0..20 {
            cluster.store(&shard, ticket);
        }
        let home = cluster.home(&shard);
        let uncompacted = cluster.nodes[home].uncompacted();
        assert_eq!(uncompacted > 20, shard == Shard::Common, "{uncompacted}");
        compact(&mut cluster, &shard, 90);
        assert!(cluster.was_seen(is_stored(90)));
        cluster.store(&shard, 91);
        let uncompacted = cluster.nodes[home].uncompacted();
        assert!(uncompacted == 2 || shard != Shard::Common, "{uncompacted}");
        let messages = left(&cluster, &shard);
        assert_eq!(messages.len(), 3, "{messages:?}");
        assert!(matches!(messages[0].message.record, HomeRecord::Kept(_)));
        // It ends without a word, and the others have all.
        restart(&mut cluster, home);
        cluster.seen.clear();
        cluster.pass(2 * SILENCE_MS);
        assert!(!cluster.was_seen(is_stop));
        assert!((0..3).all(|at| cluster.admits(at)));
        let restored = |at: usize, effect: &Effect| match effect {
            HomeEffect::Reset { lines, .. } => at == home && *lines == [SNAPSHOT],
            HomeEffect::BecomeHome { lines, .. } => *lines == [SNAPSHOT, Text("line")],
            _ => false,
        };
        assert!(cluster.was_seen(restored));
        assert_eq!(cluster.nodes[home].members().count(), 3);
    }
}

#[test]
fn a_snapshot_is_refused_while_lines_are_to_be_stored() {
    let mut cluster = Cluster::grown(&["a", "b"]);
    cluster.away.fill(true);
    cluster.store(&topic(), 1);
    compact(&mut cluster, &topic(), 2);
    let busy = |_: usize, effect: &Effect| {
        let why = NotStored::Busy;
        matches!(effect, HomeEffect::NotStored { ticket: 2, why: found, .. } if *found == why)
    };
    assert!(cluster.was_seen(busy));
    cluster.away.fill(false);
    cluster.pass(2 * SILENCE_MS);
    compact(&mut cluster, &topic(), 3);
    assert!(cluster.was_seen(is_stored(3)));
}

#[test]
fn a_log_that_takes_no_snapshot_says_so_and_keeps_all() {
    let mut cluster = Cluster::grown(&["a"]);
    cluster.store(&topic(), 1);
    let before = left(&cluster, &topic()).len();
    cluster.full = true;
    compact(&mut cluster, &topic(), 2);
    let unavailable = |_: usize, effect: &Effect| {
        let why = NotStored::Unavailable;
        matches!(effect, HomeEffect::NotStored { ticket: 2, why: found, .. } if *found == why)
    };
    assert!(cluster.was_seen(unavailable));
    cluster.full = false;
    cluster.pass(2 * SILENCE_MS);
    assert_eq!(left(&cluster, &topic()).len(), before);
    assert!(!cluster.was_seen(is_purge));
}

#[test]
fn a_purge_without_an_answer_is_made_again_and_by_each_next_home() {
    let mut cluster = Cluster::grown(&["a", "b"]);
    cluster.purges = false;
    let home = compact(&mut cluster, &topic(), 1);
    assert_eq!(cluster.count(is_purge), 1);
    cluster.pass(PURGE_RETRY_MS + TICK_MS);
    assert_eq!(cluster.count(is_purge), 2);
    cluster.step(home, HomeEvent::Drain);
    cluster.pass(5 * TICK_MS);
    assert_ne!(cluster.home(&topic()), home);
    assert_eq!(cluster.count(is_purge), 3);
    cluster.purges = true;
    cluster.pass(PURGE_RETRY_MS + TICK_MS);
    assert_eq!(cluster.count(is_purge), 4);
    cluster.pass(2 * PURGE_RETRY_MS);
    assert_eq!(cluster.count(is_purge), 4, "it is answered");
}

#[test]
fn a_node_that_missed_messages_which_are_purged_begins_at_the_snapshot() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let behind = (cluster.home(&Shard::Common) + 1) % 3;
    cluster.isolate(behind, true);
    for ticket in 0..5 {
        cluster.store(&Shard::Common, ticket);
    }
    compact(&mut cluster, &Shard::Common, 9);
    cluster.isolate(behind, false);
    cluster.seen.clear();
    cluster.pass(HEARTBEAT_MS);
    let resets = |at: usize, effect: &Effect| matches!(effect, HomeEffect::Reset { lines, .. } if at == behind && *lines == [SNAPSHOT]);
    assert_eq!(cluster.count(resets), 1);
    let applies =
        |at: usize, effect: &Effect| at == behind && matches!(effect, HomeEffect::Apply { .. });
    assert!(!cluster.was_seen(applies), "all at once");
    assert!((0..3).all(|at| cluster.admits(at)));
    let home = cluster.home(&Shard::Common);
    assert_eq!(
        cluster.nodes[behind].revision(),
        cluster.nodes[home].revision()
    );
}

#[test]
fn a_message_that_is_missing_behind_a_snapshot_is_a_loss() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let home = compact(&mut cluster, &topic(), 1);
    cluster.store(&topic(), 2);
    cluster.store(&topic(), 3);
    let gone = left(&cluster, &topic())[2].sequence;
    cluster.stream.retain(|one| one.sequence != gone);
    cluster.isolate(home, true);
    cluster.seen.clear();
    cluster.pass(3 * SILENCE_MS);
    assert!(cluster.was_seen(is_stop));
}

#[test]
fn a_snapshot_that_was_set_back_is_a_loss() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let before = cluster.stream.clone();
    let home = compact(&mut cluster, &topic(), 1);
    cluster.pass(2 * HEARTBEAT_MS);
    cluster.stream = before;
    cluster.isolate(home, true);
    cluster.seen.clear();
    cluster.pass(3 * SILENCE_MS);
    assert!(cluster.was_seen(is_stop));
}

/// A home whose epoch was purged steps down: it does not take that for a loss.
#[test]
fn a_deposed_home_whose_epoch_is_purged_stops_nothing() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let former = cluster.home(&topic());
    // It still reaches the log, which says that it is the home until it is refused.
    cluster.cut[former] = true;
    let epochs = cluster.epochs();
    cluster.away[former] = true;
    while cluster.epochs() == epochs {
        cluster.pass(TICK_MS);
    }
    cluster.away[former] = false;
    let other = |at: &usize| {
        let home = cluster.nodes[*at].home_of(&topic());
        *at != former && home.is_some_and(|(home, _)| home == cluster.nodes[*at].node())
    };
    if let Some(next) = (0..3).find(other) {
        let (shard, lines) = (topic(), vec![SNAPSHOT]);
        let ticket = 5;
        cluster.step(
            next,
            HomeEvent::Compact {
                shard,
                ticket,
                lines,
            },
        );
    }
    assert!(cluster.was_seen(is_stored(5)));
    cluster.cut[former] = false;
    cluster.pass(SILENCE_MS);
    assert!(!cluster.was_seen(is_stop));
    assert!((0..3).all(|at| cluster.admits(at)));
}

/// Nothing is left of the epoch, as if it were purged: the next take-over tells.
#[test]
fn a_home_whose_whole_epoch_is_lost_steps_down_and_the_loss_is_noticed() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let home = cluster.store(&topic(), 1);
    cluster.pass(2 * HEARTBEAT_MS);
    cluster.stream.retain(|one| one.subject.shard != topic());
    cluster.seen.clear();
    cluster.store(&topic(), 2);
    let steps_down =
        |at: usize, effect: &Effect| at == home && matches!(effect, HomeEffect::StepDown { .. });
    assert!(cluster.was_seen(steps_down) && !cluster.was_seen(is_stored(2)));
    cluster.pass(8 * SILENCE_MS);
    assert!(cluster.was_seen(is_stop));
    let goes_on = |_: usize, effect: &Effect| matches!(effect, HomeEffect::BecomeHome { shard, .. } if *shard == topic());
    assert!(!cluster.was_seen(goes_on));
}

#[test]
fn a_use_of_a_refresh_token_outlives_a_snapshot() {
    let mut cluster = Cluster::grown(&["a", "b"]);
    let former = cluster.home(&Shard::Common);
    let account = "bob".into();
    cluster.step(former, HomeEvent::Renew { account, ticket: 1 });
    compact(&mut cluster, &Shard::Common, 2);
    let used = left(&cluster, &Shard::Common)
        .into_iter()
        .any(|one| match &one.message.record {
            HomeRecord::Lines(entries) => entries
                .iter()
                .any(|entry| matches!(entry, CommonEntry::Used { is_open: true, .. })),
            _ => false,
        });
    assert!(used);
    // Both begin anew: what they know is what the log has.
    (0..2).for_each(|at| restart(&mut cluster, at));
    cluster.pass(4 * SILENCE_MS);
    cluster.seen.clear();
    let next = cluster.home(&Shard::Common);
    let account = "bob".into();
    cluster.step(next, HomeEvent::Renew { account, ticket: 3 });
    let renews = |_: usize, effect: &Effect| matches!(effect, HomeEffect::Renew { .. });
    assert!(!cluster.was_seen(renews), "the first may be under way");
    cluster.pass(2 * RENEWAL_MS);
    assert!(cluster.was_seen(renews));
}

fn kept(entries: u64) -> HomeRecord<Text> {
    HomeRecord::Kept(Box::new(KeptState {
        entries,
        ..KeptState::default()
    }))
}

#[test]
fn a_reader_begins_at_the_latest_snapshot_that_is_whole() {
    let all = chain(vec![
        (1, begun()),
        (1, line("one")),
        (1, kept(2)),
        (1, line("two")),
        (1, line("three")),
        (1, kept(2)),
        (1, line("four")),
        (1, fenced()),
        (2, begun()),
        (2, line("five")),
    ]);
    let at = ReadingStart::Snapshot { at: 2, messages: 3 };
    let new = History::default();
    assert_eq!(ReadingStart::of(&new, &all), at);
    let read = TopicReading::of(0, &all);
    let lines = ["two", "three", "four", "five"].map(Text);
    assert!(!read.is_broken && read.lines == lines, "{:?}", read.lines);
    // A part of what is before is gone.
    let torn: Vec<_> = [0, 2, 3, 4, 5, 6, 7, 8, 9]
        .map(|index: usize| all[index].clone())
        .into();
    assert_eq!(TopicReading::of(0, &torn).lines, lines);
    let mut behind = History::default();
    behind.take(&all[0]).unwrap();
    assert_eq!(ReadingStart::of(&behind, &all[1..]), ReadingStart::First);
    let at = ReadingStart::Snapshot { at: 0, messages: 3 };
    assert_eq!(ReadingStart::of(&behind, &all[2..]), at);
    let cut = ReadingStart::of(&behind, &all[2..4]);
    assert_eq!(cut, ReadingStart::Nowhere, "its end is not there yet");
    assert!(TopicReading::of(0, &all[2..4]).history.head.number == 0);
    // The second one never was whole.
    let abandoned = TopicReading::of(0, &all[5..]);
    assert!(abandoned.is_broken);
    let missing: Vec<_> = [2, 3, 4, 5, 7]
        .map(|index: usize| all[index].clone())
        .into();
    assert!(TopicReading::of(0, &missing).is_broken);
}

#[test]
fn a_snapshot_that_is_appended_once_more_is_not_the_latest() {
    let all = chain(vec![
        (1, begun()),
        (1, kept(1)),
        (1, line("old")),
        (1, kept(1)),
        (1, line("new")),
        (1, line("newer")),
    ]);
    let lines = ["new", "newer"].map(Text);
    for again in [1, 3] {
        let more = [all.clone(), all[again..again + 2].to_vec()].concat();
        let at = ReadingStart::Snapshot { at: 3, messages: 2 };
        assert_eq!(ReadingStart::of(&History::default(), &more), at);
    }
    assert_eq!(TopicReading::of(0, &all).lines, lines);
    let mut behind = History::default();
    behind.take(&all[0]).unwrap();
    let more = [&all[3..], &all[1..3]].concat();
    let at = ReadingStart::Snapshot { at: 0, messages: 2 };
    assert_eq!(ReadingStart::of(&behind, &more), at);
}

#[test]
fn what_does_not_fit_is_no_gap_however_many_snapshots_follow() {
    let other = chain(vec![(1, begun()), (1, line("other"))]);
    let mut history = History::default();
    assert!(other.iter().all(|one| history.take(one).is_ok()));
    let next = chain(vec![
        (1, begun()),
        (1, line("one")),
        (1, line("two")),
        (1, kept(0)),
    ]);
    assert_eq!(ReadingStart::of(&history, &next[2..]), ReadingStart::First);
    assert_eq!(history.take(&next[2]), Err(Unfit::Broken));
}

#[test]
fn a_snapshot_without_one_of_its_messages_is_none() {
    let all = chain(vec![
        (1, begun()),
        (1, kept(2)),
        (1, line("one")),
        (1, line("two")),
        (1, line("three")),
    ]);
    let torn: Vec<_> = [1, 3, 4].map(|index: usize| all[index].clone()).into();
    // A person has accepted it: all is taken as it is, but a snapshot is one all the same.
    let read = TopicReading::of(2, &torn);
    assert_eq!(read.history.snapshot, None);
    assert_eq!(
        TopicReading::of(2, &all).history.snapshot.unwrap().number,
        2
    );
}

#[test]
fn a_beginning_that_comes_too_late_is_passed_over() {
    let mut all = chain(vec![
        (1, begun()),
        (1, fenced()),
        (2, begun()),
        (2, kept(1)),
        (2, line("one")),
    ]);
    let late = all[0].clone();
    all.push(late);
    let read = TopicReading::of(0, &all);
    assert!(!read.is_broken);
    assert_eq!(read.history.head, all[4].head());
}

#[test]
fn a_snapshot_says_the_latest_epochs_and_a_place_of_them_that_is_lost_shows() {
    let mut records = Vec::new();
    let epochs = EPOCHS_KEPT_MAX as u64 + 50;
    for epoch in 1..=epochs {
        records.extend([(epoch, begun()), (epoch, fenced())]);
    }
    records.pop();
    let all = chain(records);
    let mut history = History::default();
    assert!(all.iter().all(|one| history.take(one).is_ok()));
    let kept = history.kept(0);
    assert_eq!(kept.epochs.len(), EPOCHS_KEPT_MAX);
    let next = chain(vec![(1, HomeRecord::Kept(Box::new(kept.clone())))]);
    let read = History::begun_at(&next[0], &kept, 0);
    for (at, one) in all.iter().enumerate().rev().take(2 * EPOCHS_KEPT_MAX) {
        let mut other = one.head();
        assert!(!read.contradicts(&other), "{at}");
        (other.number, other.sum) = (other.number + 1, [9; 8]);
        let is_over = other.epoch < epochs;
        assert_eq!(read.contradicts(&other), is_over, "{at}");
    }
}
