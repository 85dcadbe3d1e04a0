//! Take-overs: by whom, on what evidence, and when they are given up.

use super::{Cluster, Effect, Text, node, topic};
use crate::{
    ALONE_MS, CUT_OFF_MS, HEARTBEAT_MS, HomeEffect, HomeEvent, HomeRecord, Homes, HomesConfig,
    LOG_RETRY_MS, SILENCE_MS, Shard, StepDownCause, TICK_MS,
};
use model::TopicName;

/// A cluster whose topic's home has fallen silent, and whose successor waits for its reading.
struct Taken {
    cluster: Cluster,
    former: usize,
    next: usize,
}

fn taken() -> Taken {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let former = cluster.home(&topic());
    let epochs = cluster.epochs();
    cluster.isolate(former, true);
    cluster.holds.push(topic());
    while cluster.epochs() == epochs {
        cluster.pass(TICK_MS);
    }
    let next = cluster.held[0].0;
    Taken {
        cluster,
        former,
        next,
    }
}

fn is_home(of: usize) -> impl Fn(usize, &Effect) -> bool {
    move |at, effect| {
        at == of && matches!(effect, HomeEffect::BecomeHome { shard, .. } if *shard == topic())
    }
}

#[test]
fn a_reading_that_takes_long_is_no_loss_and_its_first_answer_counts() {
    let Taken {
        mut cluster, next, ..
    } = taken();
    let epochs = cluster.epochs();
    cluster.seen.clear();
    cluster.pass(SILENCE_MS + 3 * LOG_RETRY_MS);
    assert_eq!(cluster.epochs(), epochs, "it begins no other epoch");
    cluster.release();
    assert!(cluster.was_seen(is_home(next)));
    assert!(!cluster.was_seen(|_, effect| matches!(effect, HomeEffect::StopTopic { .. })));
}

#[test]
fn a_home_whose_reading_took_long_does_not_end_at_once() {
    let Taken {
        mut cluster, next, ..
    } = taken();
    cluster.cut.fill(true);
    cluster.pass(ALONE_MS + LOG_RETRY_MS);
    cluster.seen.clear();
    cluster.release();
    assert!(cluster.was_seen(is_home(next)));
    cluster.pass(ALONE_MS);
    let ends = |at: usize, effect: &Effect| {
        at == next && matches!(effect, HomeEffect::StepDown { shard, .. } if *shard == topic())
    };
    assert!(!cluster.was_seen(ends), "the log says that it is the home");
}

#[test]
fn a_node_that_drains_or_is_replaced_takes_nothing_over() {
    for replaced in [false, true] {
        let Taken {
            mut cluster,
            next,
            former,
        } = taken();
        if replaced {
            let mut config = HomesConfig::new(cluster.nodes[next].node().clone(), Vec::new());
            config.node.incarnation.life += 1;
            let mut later: Homes<Text> = Homes::new(config);
            for effect in later.step(cluster.time(next), HomeEvent::Tick) {
                if let HomeEffect::Publish(beat) = effect {
                    cluster.step(next, HomeEvent::Beat(beat));
                }
            }
        } else {
            cluster.step(next, HomeEvent::Drain);
        }
        cluster.release();
        let moved = |at: usize, effect: &Effect| {
            let why = matches!(
                effect,
                HomeEffect::StepDown {
                    why: StepDownCause::Moved { .. },
                    ..
                }
            );
            at == next && why
        };
        assert_eq!(cluster.was_seen(is_home(next)), !replaced);
        assert_eq!(
            cluster.was_seen(moved),
            !replaced,
            "it hands over what it began"
        );
        cluster.seen.clear();
        cluster.holds.clear();
        cluster.pass(2 * SILENCE_MS);
        assert!(!cluster.was_seen(is_home(next)), "nor later");
        let third = 3 - next - former;
        assert!(cluster.was_seen(is_home(third)) || replaced);
    }
}

/// A cluster, and its node that was the topic's home: it begins anew, and hears no other.
fn back_alone(had: bool) -> (Cluster, usize) {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let former = cluster.home(&topic());
    cluster.isolate(former, true);
    cluster.pass(2 * SILENCE_MS);
    let name = cluster.nodes[former].node().name.clone();
    let topics = vec![TopicName::new("main").unwrap()];
    let mut config = HomesConfig::new(node(&name, 2), topics);
    config.former_homes = had.then(topic).into_iter().collect();
    cluster.nodes[former] = Homes::new(config);
    cluster.away[former] = false;
    (cluster, former)
}

#[test]
fn a_node_that_is_back_in_a_minority_takes_nothing() {
    for had in [false, true] {
        let (mut cluster, former) = back_alone(had);
        let epochs = cluster.epochs();
        cluster.pass(CUT_OFF_MS);
        assert_eq!(cluster.epochs(), epochs, "{had}");
        let role = cluster.nodes[former].home_of(&topic());
        assert!(role.is_none(), "{had}: {role:?}");
    }
}

#[test]
fn a_fence_behind_a_replica_that_lags_is_not_tried_without_a_pause() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let former = cluster.store(&topic(), 1);
    cluster.isolate(former, true);
    cluster.stale = 1;
    let (shard, line) = (Shard::Common, Text("line"));
    for at in 0..3 {
        let (shard, line) = (shard.clone(), line.clone());
        cluster.step(
            at,
            HomeEvent::Store {
                shard,
                ticket: 2,
                line,
            },
        );
    }
    let last = |cluster: &Cluster| cluster.stream.last().unwrap().subject.shard.clone();
    // The topic's last message is the one that looks lack.
    let at = cluster
        .stream
        .iter()
        .rposition(|one| one.subject.shard == topic())
        .unwrap();
    let one = cluster.stream.remove(at);
    let sequence = cluster.stream.last().unwrap().sequence + 1;
    cluster
        .stream
        .push(crate::StoredMessage { sequence, ..one });
    assert_eq!(last(&cluster), topic());
    cluster.seen.clear();
    cluster.pass(SILENCE_MS + HEARTBEAT_MS + 1_000);
    let fences = cluster.count(|_, effect| {
        let HomeEffect::Append {
            subject, message, ..
        } = effect
        else {
            return false;
        };
        subject.shard == topic() && matches!(message.record, HomeRecord::Fenced { .. })
    });
    assert!((2..=20).contains(&fences), "{fences}");
}

#[test]
fn a_home_that_no_majority_hears_leaves_room_for_a_fence() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    let home = cluster.home(&topic());
    cluster.cut[home] = true;
    cluster.pass(ALONE_MS + TICK_MS);
    let stored = |cluster: &Cluster| {
        cluster.count(|at, effect| at == home && matches!(effect, HomeEffect::Stored { .. }))
    };
    for ticket in 0..20 {
        let (shard, line) = (topic(), Text("line"));
        cluster.step(
            home,
            HomeEvent::Store {
                shard,
                ticket,
                line,
            },
        );
    }
    assert!(stored(&cluster) <= 1, "the others wait for the next tick");
    cluster.pass(2 * TICK_MS);
    assert_eq!(stored(&cluster), 20);
}

#[test]
fn a_home_whose_epoch_is_lost_sends_nothing_more() {
    let mut cluster = Cluster::grown(&["a", "b", "c"]);
    cluster.store(&topic(), 1);
    cluster.store(&topic(), 2);
    cluster.stream.pop();
    cluster.store(&topic(), 3);
    cluster.seen.clear();
    cluster.pass(5 * LOG_RETRY_MS);
    let appends = cluster.count(|_, effect| {
        matches!(effect, HomeEffect::Append { subject, .. } if subject.shard == topic())
    });
    assert_eq!(appends, 0);
}
