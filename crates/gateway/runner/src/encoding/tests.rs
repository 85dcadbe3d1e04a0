//! Contents that are read back, and those that are not.

use std::sync::Arc;

use bytes::Bytes;
use cluster::{
    CommonEntry, HeardNode, Heartbeat, HomeClaim, HomeLeft, HomeMessage, HomeRecord, JournalHead,
    KeptEpoch, KeptMember, KeptState, NodeId, NodeLife, Shard, ShardSubject, Slot, StoredMessage,
};

use super::*;
use crate::line::ShardLine;

fn head(number: u64) -> JournalHead {
    JournalHead {
        epoch: number + 1,
        number,
        sum: [3; 8],
        begun: [4; 8],
    }
}

fn node(name: &str) -> NodeId {
    NodeId {
        name: name.into(),
        incarnation: NodeLife {
            directory: u64::MAX,
            life: 2,
        },
    }
}

fn topic() -> Shard {
    shard_of("a.topic").expect("a name")
}

fn beat() -> Heartbeat {
    Heartbeat {
        node: node("ü"),
        slot: Some(Slot(1_023)),
        beat: 1,
        up_ms: 2,
        wall_ms: 3,
        config: 4,
        revision: head(5),
        has_met_home: true,
        lost: Some(6),
        homes: vec![HomeClaim {
            shard: topic(),
            epoch: 7,
            head: head(8),
            follows: head(9),
            accepted: 10,
            stopped: true,
        }],
        left: vec![HomeLeft {
            shard: Shard::Common,
            epoch: 11,
            next: Some("b".into()),
        }],
        heads: vec![(topic(), vec![head(12), head(13)]), (Shard::Common, vec![])],
        hears: vec![HeardNode {
            node: node("b"),
            beat: 14,
            age_ms: 15,
        }],
        draining: false,
    }
}

fn records() -> Vec<HomeRecord<ShardLine>> {
    let name: Arc<str> = "a".into();
    let account = Arc::clone(&name);
    let entries = vec![
        CommonEntry::Line(ShardLine(Bytes::from_static(b"\0line"))),
        CommonEntry::NodeJoined {
            name: name.clone(),
            slot: Slot(3),
        },
        CommonEntry::NodeLeft { name: name.clone() },
        CommonEntry::Renewing {
            account: account.clone(),
        },
        CommonEntry::Renewed { account },
    ];
    let (by, next) = (node("a"), Some(name));
    vec![
        HomeRecord::Begun {
            node: node("b"),
            follows: head(1),
        },
        HomeRecord::Lines(entries),
        HomeRecord::Lines(Vec::new()),
        HomeRecord::Fenced { by, next },
        HomeRecord::Lost { known: head(2) },
        HomeRecord::Accepted,
    ]
}

/// The records of a snapshot.
fn snapshot() -> Vec<HomeRecord<ShardLine>> {
    let member = |name: &str, slot: u16| KeptMember {
        name: name.into(),
        slot: Slot(slot),
    };
    let kept = KeptState {
        epochs: vec![KeptEpoch {
            epoch: 1,
            follows: head(2),
            sum: [5; 8],
        }],
        accepted: 3,
        members: vec![member("a", 4), member("b", 5)],
        left: vec![member("c", 6)],
        before: vec![member("a", 4)],
        changed: 7,
        entries: 8,
    };
    let used = CommonEntry::Used {
        account: "a".into(),
        flight: 9,
        is_open: true,
    };
    vec![
        HomeRecord::Kept(Box::new(kept)),
        HomeRecord::Lines(vec![used]),
    ]
}

fn value<T: std::fmt::Debug>(content: Content<T>) -> T {
    match content {
        Content::Read(value) => value,
        other => panic!("{other:?}"),
    }
}

/// Checks that a content is read whole or not at all, and that a later format is known as one.
fn is_read_whole<T: std::fmt::Debug>(content: Vec<u8>, read: impl Fn(&Bytes) -> Content<T>) -> T {
    let whole = Bytes::from(content.clone());
    for length in 0..whole.len() {
        let part = read(&whole.slice(..length));
        assert!(matches!(part, Content::Damaged), "{length} bytes");
    }
    let other = |format: u8| read(&[&[format], &content[1..]].concat().into());
    assert!(matches!(other(FORMAT + 1), Content::Later));
    assert!(matches!(other(0), Content::Damaged));
    value(read(&whole))
}

/// A content with a byte more.
fn longer(content: &[u8]) -> Bytes {
    [content, &[0]].concat().into()
}

#[test]
fn heartbeats_are_read_back_whole_or_not() {
    let back = is_read_whole(write_beat(&beat()), read_beat);
    assert_eq!(format!("{back:?}"), format!("{:?}", beat()));
    let with_tail = value(read_beat(&longer(&write_beat(&beat()))));
    assert_eq!(
        format!("{with_tail:?}"),
        format!("{:?}", beat()),
        "a later version says more"
    );
}

fn message(record: HomeRecord<ShardLine>) -> HomeMessage<ShardLine> {
    HomeMessage {
        number: 9,
        sum: [1; 8],
        begun: [2; 8],
        record,
    }
}

#[test]
fn messages_are_read_back_whole_or_not() {
    for record in records().into_iter().chain(snapshot()) {
        let message = message(record);
        let written = write_message(&message);
        assert_eq!(is_read_whole(written.clone(), read_message), message);
        assert_eq!(read_message(&longer(&written)), Content::Later);
        let subject = ShardSubject {
            shard: topic(),
            epoch: 3,
        };
        let stored = StoredMessage {
            subject,
            sequence: 4,
            message,
        };
        let written = write_stored(&stored);
        assert_eq!(is_read_whole(written.clone(), read_stored), stored);
        assert_eq!(read_stored(&longer(&written)), Content::Later);
    }
}

#[test]
fn records_and_entries_of_a_later_version_are_not_taken_for_absent() {
    let mut record = write_message(&message(HomeRecord::Accepted));
    *record.last_mut().expect("a tag") = 200;
    assert_eq!(read_message(&record.into()), Content::Later);
    let entry = CommonEntry::NodeLeft { name: "".into() };
    let mut entry = write_message(&message(HomeRecord::Lines(vec![entry])));
    let tag = entry.len() - 5;
    assert_eq!(entry.get(tag), Some(&3));
    *entry.get_mut(tag).expect("a tag") = 200;
    assert_eq!(read_message(&entry.into()), Content::Later);
}

#[test]
fn numbers_that_cannot_be_summed_and_long_names_are_refused() {
    let mut late = beat();
    late.wall_ms = cluster::NUMBER_MAX + 1;
    assert!(matches!(
        read_beat(&write_beat(&late).into()),
        Content::Damaged
    ));
    let mut long = beat();
    long.node.name = "n".repeat(NODE_NAME_BYTES_MAX + 1).into();
    assert!(matches!(
        read_beat(&write_beat(&long).into()),
        Content::Damaged
    ));
}

/// Another version reads and writes these bytes: they stay.
#[test]
fn formats_have_the_bytes_that_they_always_had() {
    use data_encoding::HEXLOWER;
    use sha2::{Digest as _, Sha256};
    let sum = |bytes: &[u8]| HEXLOWER.encode(&Sha256::digest(bytes)[..8]);
    let written: Vec<Vec<u8>> = records()
        .into_iter()
        .map(|one| write_message(&message(one)))
        .collect();
    let accepted = "01090000000000000001010101010101010202020202020202".to_owned() + "05";
    assert_eq!(
        written.last().map(|one| HEXLOWER.encode(one)),
        Some(accepted)
    );
    let sums: Vec<String> = written.iter().map(|one| sum(one)).collect();
    assert_eq!(
        sums,
        [
            "b16cdac8c076a652",
            "cece1547394521cd",
            "96806dad9d8b0ebb",
            "0c2800f178fcea29",
            "1594f08e39171205",
            "44d5bd32f124f11f"
        ],
        "{sums:?}"
    );
    assert_eq!(sum(&write_beat(&beat())), "0be6df833e991fef");
    let snapshot = snapshot().into_iter();
    let written: Vec<String> = snapshot
        .map(|one| HEXLOWER.encode(&write_message(&message(one))[25..]))
        .collect();
    let kept = [
        "06",
        "01000000",
        "0100000000000000",
        "0300000000000000020000000000000003030303030303030404040404040404",
        "0505050505050505",
        "0300000000000000",
        "020000000100000061040000000000000001000000620500000000000000",
        "0100000001000000630600000000000000",
        "0100000001000000610400000000000000",
        "0700000000000000",
        "0800000000000000",
    ];
    let used = "0201000000060100000061090000000000000001";
    assert_eq!(written, [kept.concat(), used.to_owned()]);
}

#[test]
fn the_largest_heartbeat_fits_a_message() {
    let name: Arc<str> = "n".repeat(NODE_NAME_BYTES_MAX).into();
    let node = NodeId {
        name: Arc::clone(&name),
        incarnation: node("a").incarnation,
    };
    let shard = |number: usize| shard_of(&format!("{number:064}")).expect("a name");
    let mut large = beat();
    large.node = node.clone();
    large.homes.clear();
    let left = |number: usize| HomeLeft {
        shard: shard(number),
        epoch: 1,
        next: Some(Arc::clone(&name)),
    };
    large.left = (0..=cluster::TOPICS_MAX).map(left).collect();
    let heads = vec![head(1); cluster::HEAD_EPOCHS_MAX];
    let said = 2 * cluster::HEADS_OF_BEAT_MAX;
    large.heads = (0..said)
        .map(|number| (shard(number), heads.clone()))
        .collect();
    let hears = HeardNode {
        node,
        beat: 1,
        age_ms: 1,
    };
    large.hears = vec![hears; cluster::HEARD_MAX];
    let written = write_beat(&large);
    assert!(
        written.len() <= cluster::BEAT_BYTES_MAX,
        "{}",
        written.len()
    );
    const { assert!(cluster::BEAT_BYTES_MAX <= fabric::CONTENT_BYTES_MAX) };
    assert!(matches!(read_beat(&written.into()), Content::Read(_)));
}

#[test]
fn a_long_list_of_nothing_takes_no_memory() {
    let mut content = vec![FORMAT];
    content.extend([0; 24]);
    content.push(2);
    content.extend(u32::MAX.to_le_bytes());
    assert_eq!(read_message(&content.into()), Content::Damaged);
}
