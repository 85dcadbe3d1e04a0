//! Pauses beside a disk that does not answer.

use std::sync::mpsc;
use std::time::Duration;

use model::Capabilities;
use store::JournalWriter;
use store::recorder::Recorder;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::brakes::places::BRAKES_ASKED_MAX;
use crate::fixture::{context, settings};
use crate::ledgers::TopicLedgers;

/// A topic with a journal whose disk answers only when it is let.
struct Stage {
    dispatch: Arc<Dispatch>,
    ledgers: TopicLedgers,
    _home: TempDir,
}

impl Stage {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let journal = JournalWriter::open(home.path()).unwrap();
        let ledgers = TopicLedgers::open(&journal).unwrap();
        let capabilities = Arc::<Capabilities>::default();
        let dispatch = Dispatch::new(
            settings(),
            context(),
            Recorder::default(),
            Some(ledgers.clone()),
            Box::new(move |_: &_| Some(Arc::clone(&capabilities))),
            crate::run::run,
        );
        Self {
            dispatch,
            ledgers,
            _home: home,
        }
    }

    /// Hangs the disk until the sender is dropped.
    fn hang(&self) -> mpsc::Sender<()> {
        let (answers, hangs) = mpsc::channel::<()>();
        let (begun, begins) = mpsc::channel();
        let record = BrakeRecord::Resumed {
            topic: "other".to_owned(),
            participant: "none".to_owned(),
            by: "none".to_owned(),
            at_ms: 0,
        };
        // The journal's thread waits for this report.
        self.ledgers.brakes.submit(&[record], move |_| {
            begun.send(()).unwrap();
            _ = hangs.recv();
        });
        begins.recv().unwrap();
        answers
    }

    fn pause(&self, by: &str, who: &str) -> JoinHandle<Result<Brake, Refusal>> {
        let dispatch = Arc::clone(&self.dispatch);
        let braking = braking(by, who);
        tokio::spawn(async move { dispatch.pause(braking).await })
    }

    fn resume(&self, by: &str, who: &str) -> JoinHandle<Result<(), Refusal>> {
        let dispatch = Arc::clone(&self.dispatch);
        let braking = braking(by, who);
        tokio::spawn(async move { dispatch.resume_paused(braking).await })
    }

    fn is_paused(&self, who: &str) -> bool {
        let id = ParticipantId::new(who).unwrap();
        self.dispatch.with(|topic| topic.is_braked(&id))
    }

    /// Whether the journal has a participant as paused.
    fn is_kept(&self, who: &str) -> bool {
        let topic = self.dispatch.name().as_str();
        let has = |kept: &kept::KeptBrakes| kept.of_topic(topic).any(|one| one.participant == who);
        self.ledgers.brakes.state(has)
    }

    /// Waits until all that can go on without the disk has gone on.
    async fn settle(&self) {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }
}

fn braking(by: &str, who: &str) -> Braking {
    Braking {
        by: ParticipantId::new(by).unwrap(),
        participant: ParticipantId::new(who).unwrap(),
        reason: None,
        address: None,
    }
}

async fn end<T>(of: JoinHandle<T>) -> T {
    timeout(Duration::from_secs(10), of).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_pause_is_in_force_before_the_disk_answers_and_holds_up_no_other_one() {
    let stage = Stage::new();
    let hung = stage.hang();
    let pauses = [stage.pause("ann", "scout"), stage.pause("bob", "clerk")];
    stage.settle().await;
    assert!(stage.is_paused("scout") && stage.is_paused("clerk"));
    assert!(pauses.iter().all(|one| !one.is_finished()));
    drop(hung);
    for one in pauses {
        end(one).await.unwrap();
    }
    assert!(stage.is_kept("scout") && stage.is_kept("clerk"));
}

#[tokio::test]
async fn a_resumption_waits_for_the_disk_and_a_pause_meanwhile_outlasts_it() {
    let stage = Stage::new();
    for who in ["scout", "clerk"] {
        end(stage.pause("ann", who)).await.unwrap();
    }
    let hung = stage.hang();
    let resumed = stage.resume("ann", "clerk");
    let superseded = stage.resume("ann", "scout");
    stage.settle().await;
    assert!(stage.is_paused("clerk") && stage.is_paused("scout"));
    let twice = end(stage.resume("bob", "scout")).await.unwrap_err();
    assert_eq!(twice.code, RefusalCode::Conflict, "{twice}");
    let again = stage.pause("bob", "scout");
    stage.settle().await;
    drop(hung);
    end(resumed).await.unwrap();
    let refusal = end(superseded).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::Conflict, "{refusal}");
    end(again).await.unwrap();
    // As after a restart.
    assert!(!stage.is_paused("clerk") && !stage.is_kept("clerk"));
    assert!(stage.is_paused("scout") && stage.is_kept("scout"));
    end(stage.resume("ann", "scout")).await.unwrap();
    assert!(!stage.is_paused("scout") && !stage.is_kept("scout"));
}

#[tokio::test]
async fn a_participant_has_so_many_pauses_that_wait_for_the_disk() {
    let stage = Stage::new();
    let hung = stage.hang();
    let share = BRAKES_ASKED_MAX / 4;
    let begin = |number: usize| stage.pause("ann", &format!("p{number}"));
    let pauses: Vec<_> = (0..share).map(begin).collect();
    stage.settle().await;
    let refusal = end(stage.pause("ann", "late")).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::Overloaded, "{refusal}");
    assert!(!stage.is_paused("late"));
    let of_other = stage.pause("bob", "late");
    stage.settle().await;
    assert!(stage.is_paused("late"));
    drop(hung);
    for one in pauses.into_iter().chain([of_other]) {
        end(one).await.unwrap();
    }
    end(stage.pause("ann", "last")).await.unwrap();
}

#[tokio::test]
async fn guests_are_not_paused() {
    let stage = Stage::new();
    let refusal = end(stage.pause("ann", "anonymous-7")).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::Unsupported, "{refusal}");
    assert!(!stage.is_paused("anonymous-7"));
}
