//! Contents that are read back, and those that are not.

use std::sync::Arc;

use bytes::Bytes;
use cluster::{
    CommonEntry, HeardNode, Heartbeat, HomeClaim, HomeLeft, HomeMessage, HomeRecord, JournalHead,
    NodeId, NodeLife, Shard, ShardSubject, Slot, StoredMessage,
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

/// Checks that a content is read whole or not at all.
fn is_read_whole<T>(content: Vec<u8>, read: impl Fn(&Bytes) -> Option<T>) -> T {
    let whole = Bytes::from(content.clone());
    for length in 0..whole.len() {
        assert!(read(&whole.slice(..length)).is_none(), "{length} bytes");
    }
    let longer = [&content[..], &[0]].concat();
    assert!(read(&longer.into()).is_none(), "a byte more");
    let other = [&[FORMAT + 1], content.get(1..).unwrap_or_default()].concat();
    assert!(read(&other.into()).is_none(), "another format");
    read(&whole).expect("it is read")
}

#[test]
fn heartbeats_are_read_back_whole_or_not() {
    let back = is_read_whole(write_beat(&beat()), read_beat);
    assert_eq!(format!("{back:?}"), format!("{:?}", beat()));
}

#[test]
fn messages_are_read_back_whole_or_not() {
    for record in records() {
        let message = HomeMessage {
            number: 9,
            sum: [1; 8],
            begun: [2; 8],
            record,
        };
        assert_eq!(
            is_read_whole(write_message(&message), read_message),
            message
        );
        let subject = ShardSubject {
            shard: topic(),
            epoch: 3,
        };
        let stored = StoredMessage {
            subject,
            sequence: 4,
            message,
        };
        assert_eq!(is_read_whole(write_stored(&stored), read_stored), stored);
    }
}

#[test]
fn a_long_list_of_nothing_takes_no_memory() {
    let mut content = vec![FORMAT];
    content.extend([0; 24]);
    content.push(2);
    content.extend(u32::MAX.to_le_bytes());
    assert!(read_message(&content.into()).is_none());
}
