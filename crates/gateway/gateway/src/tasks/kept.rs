//! Servers' tasks in the journal: those that outlive the gateway.

use model::{ANONYMOUS_PREFIX, Latest};
use serde::{Deserialize, Serialize};
use store::Fold;

/// Tasks in the state at most. Beyond it the participant that has most loses its oldest from lists
/// after a restart.
pub(crate) const TASKS_KEPT: usize = 10_000;

/// A fact about servers' tasks that the gateway needs after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum TaskRecord {
    /// A call became a task of a server that outlives this gateway.
    TaskCreated(CreatedTask),
}

/// A task of a server that outlives this gateway. All else about it is in its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CreatedTask {
    /// Its id as the participant knows it, sealed.
    pub(crate) id: String,
    /// Topic of the call that became the task.
    pub(crate) topic: String,
    /// The participant that made the call.
    pub(crate) by: String,
    /// Time of creation in Unix milliseconds.
    pub(crate) created_ms: u64,
    /// Time from which on no participant can ask for it, in Unix milliseconds.
    pub(crate) until_ms: u64,
}

/// All tasks of the journal, oldest record first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeptTasks {
    created: Latest<CreatedTask>,
}

impl KeptTasks {
    /// Tasks of this topic that outlive the gateway and can still be asked for, oldest first.
    pub(crate) fn of_topic(&self, topic: &str, now_ms: u64) -> impl Iterator<Item = &CreatedTask> {
        self.created
            .iter()
            .filter(move |task| task.topic == topic && now_ms < task.until_ms)
    }
}

impl Fold for KeptTasks {
    const OWNER: &'static str = "tasks";
    type Record = TaskRecord;

    fn apply(&mut self, record: &TaskRecord) {
        let TaskRecord::TaskCreated(task) = record;
        // Older versions wrote down what ends with its guest.
        if task.by.starts_with(ANONYMOUS_PREFIX) {
            return;
        }
        let has_expired = |oldest: &CreatedTask| oldest.until_ms <= task.created_ms;
        while self.created.pop_if(has_expired).is_some() {}
        self.created.push(&task.by, 1, task.clone());
        self.created.shrink(TASKS_KEPT, usize::MAX);
    }

    fn live(&self) -> usize {
        self.created.len()
    }

    fn records(&mut self, now_ms: u64) -> Vec<TaskRecord> {
        self.created.retain(|task| now_ms < task.until_ms);
        self.created
            .iter()
            .cloned()
            .map(TaskRecord::TaskCreated)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(records: &[TaskRecord]) -> KeptTasks {
        let mut kept = KeptTasks::default();
        records.iter().for_each(|record| kept.apply(record));
        kept
    }

    #[test]
    fn the_record_has_its_golden_line_and_rebuilds_the_tasks() {
        let line = r#"{"record":"task_created","id":"t","topic":"main","by":"scout","created_ms":25,"until_ms":26}"#;
        let record: TaskRecord = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
        let mut kept = folded(&[record]);
        let written = kept.records(0);
        assert_eq!((written.len(), kept.live()), (1, 1));
        assert_eq!(folded(&written), kept);
    }

    fn created(by: &str, id: &str, created_ms: u64, until_ms: u64) -> TaskRecord {
        let [id, topic, by] = [id, "main", by].map(str::to_owned);
        TaskRecord::TaskCreated(CreatedTask {
            id,
            topic,
            by,
            created_ms,
            until_ms,
        })
    }

    #[test]
    fn tasks_are_kept_until_they_expire() {
        let one = folded(&[created("ada", "a", 1, 100), created("bob", "b", 2, 50)]);
        let ids = |topic: &str, now_ms| {
            one.of_topic(topic, now_ms)
                .map(|task| &*task.id)
                .collect::<Vec<_>>()
        };
        assert_eq!(ids("main", 49), ["a", "b"]);
        assert_eq!(
            (ids("main", 50), ids("main", 100), ids("other", 1)),
            (vec!["a"], vec![], vec![])
        );
        let later = folded(&[created("ada", "a", 1, 100), created("bob", "b", 100, 200)]);
        assert_eq!((later.of_topic("main", 0).count(), later.live()), (1, 1));
    }

    #[test]
    fn a_compaction_drops_expired_tasks_wherever_they_are() {
        let long = created("ada", "a", 1, 100);
        let short = created("ada", "b", 2, 50);
        let mut kept = folded(&[long.clone(), short.clone()]);
        assert_eq!(kept.records(49), [long.clone(), short]);
        assert_eq!(kept.records(50), [long]);
        assert_eq!(kept.live(), 1);
        assert_eq!(kept.records(100), []);
        assert_eq!(kept, KeptTasks::default());
    }

    #[test]
    fn tasks_of_one_participant_push_out_no_others() {
        let mut known = folded(&[created("other", "first", 1, 100)]);
        for at in 0..TASKS_KEPT + 5 {
            known.apply(&created("greedy", &at.to_string(), 2, 100));
        }
        assert_eq!(known.of_topic("main", 3).count(), TASKS_KEPT);
        assert_eq!(
            known
                .of_topic("main", 3)
                .filter(|task| task.by != "greedy")
                .count(),
            1
        );
        assert_eq!(known.live(), TASKS_KEPT);
    }

    #[test]
    fn tasks_of_guests_are_not_kept() {
        let mut kept = folded(&[
            created("anonymous-1", "guest", 1, 100),
            created("ada", "a", 1, 100),
        ]);
        let ids: Vec<_> = kept.of_topic("main", 2).map(|task| &*task.id).collect();
        assert_eq!(ids, ["a"]);
        assert_eq!(kept.records(2), [created("ada", "a", 1, 100)]);
    }
}
