//! Chains, places that are known, and members.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Text, node, topic};
use crate::history::{History, KnownHeads, Unfit};
use crate::members::Members;
use crate::{
    CommonEntry, HEAD_EPOCHS_MAX, HomeMessage, HomeRecord, JournalHead, SLOT_MAX, ShardSubject,
    Slot, StoredMessage,
};

#[test]
fn slots_are_used_again_last() {
    let mut members = Members::default();
    let name = |text: &str| -> Arc<str> { text.into() };
    assert_eq!(members.free_slot("a"), Some(Slot(1)));
    members.join(&name("a"), Slot(1));
    assert_eq!(members.free_slot("b"), Some(Slot(2)));
    members.join(&name("b"), Slot(2));
    members.leave(&name("a"));
    assert_eq!(members.free_slot("a"), Some(Slot(1)), "its own");
    assert_eq!(members.free_slot("c"), Some(Slot(3)), "that of no other");
    members.join(&name("c"), Slot(SLOT_MAX));
    assert_eq!(
        members.free_slot("d"),
        Some(Slot(1)),
        "the one that is free for the longest time"
    );
    members.join(&name("d"), Slot(1));
    assert_eq!(members.free_slot("e"), None);
}

#[test]
fn votes_leave_no_majority() {
    let all = ["a", "b", "c", "d", "e"];
    for (members, votes, decided) in [
        (1, 0, false),
        (1, 1, true),
        (2, 1, true),
        (3, 1, false),
        (3, 2, true),
        (4, 2, true),
        (5, 2, false),
        (5, 3, true),
    ] {
        let mut of = Members::default();
        for (at, name) in all.iter().take(members).enumerate() {
            of.join(&Arc::from(*name), Slot(at as u16 + 1));
        }
        let voters = &all[..votes];
        assert_eq!(
            !of.leaves_majority(|name| voters.contains(&&**name)),
            decided,
            "{votes} of {members}"
        );
    }
}

/// The messages of these records, one after the other.
pub(super) fn chain(records: Vec<(u64, HomeRecord<Text>)>) -> Vec<StoredMessage<Text>> {
    let mut head = JournalHead::default();
    let mut messages = Vec::new();
    for (epoch, record) in records {
        let subject = ShardSubject {
            shard: topic(),
            epoch,
        };
        let record = match record {
            HomeRecord::Begun { node, .. } => HomeRecord::Begun {
                node,
                follows: head,
            },
            other => other,
        };
        head = head.next(&subject, &record);
        let JournalHead {
            number, sum, begun, ..
        } = head;
        let message = HomeMessage {
            number,
            sum,
            begun,
            record,
        };
        messages.push(StoredMessage {
            subject,
            sequence: number,
            message,
        });
    }
    messages
}

pub(super) fn begun() -> HomeRecord<Text> {
    HomeRecord::Begun {
        node: node("a", 1),
        follows: JournalHead::default(),
    }
}

pub(super) fn line(text: &'static str) -> HomeRecord<Text> {
    HomeRecord::Lines(vec![CommonEntry::Line(Text(text))])
}

pub(super) fn fenced() -> HomeRecord<Text> {
    HomeRecord::Fenced {
        by: node("b", 1),
        next: None,
    }
}

#[test]
fn a_chain_takes_what_follows_and_nothing_else() {
    let good = chain(vec![
        (1, begun()),
        (1, line("one")),
        (1, fenced()),
        (2, begun()),
        (2, line("two")),
    ]);
    let mut history = History::default();
    assert!(good.iter().all(|one| history.take(one).is_ok()));
    assert_eq!(history.head, good[4].head());
    let changed = {
        let mut changed = good.clone();
        changed[1].message.record = line("other");
        changed
    };
    let unfenced = chain(vec![(1, begun()), (1, line("one")), (2, begun())]);
    let after_end = chain(vec![(1, begun()), (1, fenced()), (1, line("late"))]);
    let other = chain(vec![(1, begun()), (1, line("other"))]);
    let moved = vec![good[0].clone(), other[1].clone(), good[2].clone()];
    let without = vec![good[0].clone(), good[2].clone()];
    let twice = vec![good[0].clone(), good[0].clone()];
    let rows = [
        ("changed", changed, Unfit::Broken),
        (
            "a later epoch without an end of the one before",
            unfenced,
            Unfit::Broken,
        ),
        ("behind the end of an epoch", after_end, Unfit::Broken),
        ("of another chain", moved, Unfit::Broken),
        ("one is missing", without, Unfit::Gap),
        ("again", twice, Unfit::Old),
    ];
    for (what, messages, unfit) in rows {
        let mut history = History::default();
        let found = messages.iter().find_map(|one| history.take(one).err());
        assert_eq!(found, Some(unfit), "{what}");
    }
}

#[test]
fn a_place_that_is_not_in_a_journal_contradicts_it() {
    let kept = chain(vec![
        (1, begun()),
        (1, line("one")),
        (1, fenced()),
        (2, begun()),
    ]);
    let lost = chain(vec![
        (1, begun()),
        (1, line("one")),
        (1, line("two")),
        (1, line("three")),
    ]);
    let again = chain(vec![(
        1,
        HomeRecord::Begun {
            node: node("b", 9),
            follows: JournalHead::default(),
        },
    )]);
    let mut history = History::default();
    assert!(kept.iter().all(|one| history.take(one).is_ok()));
    let rows = [
        ("the same place", kept[1].head(), false),
        ("the end of the epoch", kept[2].head(), false),
        ("in place of that end", lost[2].head(), true),
        ("beyond it", lost[3].head(), true),
        ("another epoch under the same number", again[0].head(), true),
    ];
    for (what, head, expected) in rows {
        assert_eq!(history.contradicts(&head), expected, "{what}");
    }
    history.accepted = 2;
    assert!(
        !history.contradicts(&lost[3].head()),
        "a person has accepted it"
    );
}

#[test]
fn the_latest_epochs_are_known() {
    let mut known = KnownHeads::default();
    let head = |epoch: u64, number: u64| JournalHead {
        epoch,
        number,
        ..JournalHead::default()
    };
    assert!(!known.learn(&topic(), &head(0, 0)));
    for epoch in 1..=HEAD_EPOCHS_MAX as u64 + 2 {
        assert!(known.learn(&topic(), &head(epoch, epoch)));
    }
    assert!(!known.learn(&topic(), &head(4, 1)), "a lower one");
    assert!(!known.learn(&topic(), &head(1, 100)), "one that is too old");
    let epochs: BTreeMap<u64, u64> = known
        .of(&topic())
        .map(|head| (head.epoch, head.number))
        .collect();
    assert_eq!(epochs.len(), HEAD_EPOCHS_MAX);
}
