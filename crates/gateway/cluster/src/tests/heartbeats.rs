//! Heartbeats: what they say of places, and how much at most.

use std::collections::BTreeSet;

use model::TopicName;

use super::node;
use crate::history::KnownHeads;
use crate::{
    HEADS_OF_BEAT_MAX, HEARD_MAX, HomeEffect, HomeEvent, Homes, HomesConfig, JournalHead, NodeTime,
    Shard, TOPICS_MAX,
};

fn shard(number: usize) -> Shard {
    Shard::Topic(TopicName::new(&format!("t{number}")).unwrap())
}

fn head(number: u64) -> JournalHead {
    JournalHead {
        epoch: 1,
        number,
        ..JournalHead::default()
    }
}

#[test]
fn a_heartbeat_says_new_places_and_some_of_the_others_in_turn() {
    let mut known = KnownHeads::default();
    let shards = 3 * HEADS_OF_BEAT_MAX;
    (0..shards).for_each(|number| assert!(known.learn(&shard(number), &head(1))));
    let mut said = BTreeSet::new();
    for _ in 0..4 {
        let heads = known.for_beat();
        assert!(heads.len() <= 2 * HEADS_OF_BEAT_MAX);
        said.extend(heads.into_iter().map(|(shard, _)| shard));
    }
    assert_eq!(said.len(), shards);
    for number in [0, 7, shards - 1] {
        known.learn(&shard(number), &head(2));
        let heads = known.for_beat();
        assert!(heads.contains(&(shard(number), vec![head(2)])), "at once");
    }
}

#[test]
fn a_node_knows_so_many_shards_and_hears_so_many_nodes() {
    let topics =
        (0..2 * TOPICS_MAX).map(|number| TopicName::new(&format!("own-{number}")).unwrap());
    let own = node("a", 1);
    let mut homes: Homes<super::Text> = Homes::new(HomesConfig::new(own, topics.collect()));
    let mut other: Homes<super::Text> = Homes::new(HomesConfig::new(node("bb", 1), Vec::new()));
    let beat = other
        .step(NodeTime::default(), HomeEvent::Tick)
        .into_iter()
        .find_map(|effect| match effect {
            HomeEffect::Publish(beat) => Some(beat),
            _ => None,
        });
    let beat = beat.unwrap();
    for number in 0..2 * HEARD_MAX {
        let mut beat = (*beat).clone();
        beat.node.name = format!("n{number}").into();
        beat.heads = (0..20)
            .map(|at| (shard(20 * number + at), vec![head(1)]))
            .collect();
        homes.step(NodeTime::default(), HomeEvent::Beat(beat.into()));
    }
    assert_eq!(homes.peers.all().count(), HEARD_MAX);
    assert!(homes.shards.len() <= TOPICS_MAX + 1);
    let known: BTreeSet<&Shard> = homes.heads.all().map(|(shard, _)| shard).collect();
    assert_eq!(known.len(), TOPICS_MAX);
    let effects = homes.step(
        NodeTime {
            steady_ms: 1_000,
            wall_ms: 0,
        },
        HomeEvent::Tick,
    );
    let beat = effects.into_iter().find_map(|effect| match effect {
        HomeEffect::Publish(beat) => Some(beat),
        _ => None,
    });
    let beat = beat.unwrap();
    assert_eq!(beat.hears.len(), HEARD_MAX);
    assert!(beat.heads.len() <= 2 * HEADS_OF_BEAT_MAX);
}
