//! Admission of requests, before and after the word about it is carried out.

use std::sync::Arc;
use std::time::Duration;

use cluster::{
    Admission, AppendResult, HomeEffect, HomeEvent, Homes, HomesConfig, NodeId, NodeLife, NodeTime,
    Shard, StoredMessage, TICK_MS,
};

use super::TestClock;
use crate::carrier::latest_beat_alone;
use crate::line::ShardLine;
use crate::shared::{EFFECTS_WAITING_MAX, Shared};

type Log = Vec<StoredMessage<ShardLine>>;

/// The answer of a log that began empty.
fn answer(log: &mut Log, effect: HomeEffect<ShardLine>) -> Option<HomeEvent<ShardLine>> {
    Some(match effect {
        HomeEffect::Look { shard, request } => HomeEvent::Looked {
            shard,
            request,
            last: None,
        },
        HomeEffect::Read { shard, request, .. } => HomeEvent::Read {
            shard,
            request,
            messages: log.clone(),
        },
        HomeEffect::Append {
            subject,
            id,
            message,
            ..
        } => {
            let sequence = log.len() as u64 + 1;
            let shard = subject.shard.clone();
            log.push(StoredMessage {
                subject,
                sequence,
                message,
            });
            HomeEvent::Appended {
                shard,
                id,
                result: AppendResult::Acked { sequence },
            }
        }
        _ => return None,
    })
}

fn shared() -> Shared {
    let incarnation = NodeLife {
        directory: 1,
        life: 1,
    };
    let name = "alone".into();
    let config = HomesConfig::new(NodeId { name, incarnation }, Vec::new());
    Shared::new(Homes::new(config), Arc::new(TestClock::new()))
}

/// Runs until the node is the home.
async fn run(shared: &Shared) {
    let mut log = Log::new();
    for _ in 0..200 {
        shared.step(HomeEvent::Tick);
        let tick = Duration::from_millis(TICK_MS);
        while let Ok(effects) = tokio::time::timeout(tick, shared.effects()).await {
            let answers = effects.into_iter();
            let answers: Vec<_> = answers.filter_map(|one| answer(&mut log, one)).collect();
            answers.into_iter().for_each(|event| shared.step(event));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_admitted_before_the_word_about_it_is_carried_out() {
    let shared = shared();
    run(&shared).await;
    let is_admitted = matches!(shared.view(Homes::admission), Admission::Until(_));
    assert!(is_admitted);
    assert!(
        !shared.admits() && !shared.leads(),
        "it was not carried out"
    );
    shared.admit(shared.view(Homes::admission));
    assert!(shared.admits() && shared.leads());
    shared.end();
    assert!(!shared.admits() && !shared.leads(), "it is over");
}

#[tokio::test(start_paused = true)]
async fn a_home_that_takes_no_step_is_one_until_its_lease_ends_and_no_longer() {
    let shared = shared();
    run(&shared).await;
    shared.admit(Admission::Until(u64::MAX));
    let until_ms = shared.view(|homes| homes.leads_until_ms(&Shard::Common));
    let left = Duration::from_millis(until_ms.unwrap() - shared.now_ms());
    tokio::time::advance(left).await;
    assert!(shared.leads());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(!shared.leads());
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_effects_wait_takes_no_ticks_until_they_are_carried_out() {
    let shared = shared();
    shared.step(HomeEvent::Tick);
    let mut ticket = 0;
    while shared.waiting() < EFFECTS_WAITING_MAX {
        let line = ShardLine("line".into());
        // It is no home: each is refused.
        shared.step(HomeEvent::Store {
            shard: Shard::Common,
            ticket,
            line,
        });
        ticket += 1;
    }
    let before = shared.waiting();
    tokio::time::advance(Duration::from_secs(60)).await;
    shared.step_if_free(HomeEvent::Tick);
    assert_eq!(shared.waiting(), before);
    assert_eq!(shared.effects().await.len(), before);
    shared.step_if_free(HomeEvent::Tick);
    assert!(shared.waiting() > 0);
}

#[test]
fn of_heartbeats_that_wait_the_latest_alone_is_sent() {
    let incarnation = NodeLife {
        directory: 1,
        life: 1,
    };
    let name = "alone".into();
    let config = HomesConfig::new(NodeId { name, incarnation }, Vec::new());
    let mut homes: Homes<ShardLine> = Homes::new(config);
    let mut effects = Vec::new();
    for steady_ms in [0, 1_000, 2_000] {
        let time = NodeTime {
            steady_ms,
            wall_ms: 0,
        };
        effects.extend(homes.step(time, HomeEvent::Tick));
    }
    let beats = |effects: &[HomeEffect<ShardLine>]| -> Vec<u64> {
        let beats = effects.iter().filter_map(|effect| match effect {
            HomeEffect::Publish(beat) => Some(beat.beat),
            _ => None,
        });
        beats.collect()
    };
    let others = effects.len() - beats(&effects).len();
    assert_eq!(beats(&effects), [1, 2, 3]);
    let left = latest_beat_alone(effects);
    assert_eq!(beats(&left), [3]);
    assert_eq!(left.len(), 1 + others);
}
