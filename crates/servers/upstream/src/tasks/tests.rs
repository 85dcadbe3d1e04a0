//! Task tests: lifetimes, ends of sessions, state for `tasks/list`.

use std::sync::{Arc, Weak};

use model::{Form, OperationId, ParticipantId, Payload};
use platform::Mutex;
use wire::mcp::task as wire_task;

use super::task::{Origin, ServerTask, TASK_KEPT_BYTES_MAX, TASK_KEPT_MS_MAX, TaskEvents};

/// What was reported of tasks: whether each was over, and its last moment.
#[derive(Debug, Default)]
struct Reports(Mutex<Vec<(bool, u64)>>);

impl TaskEvents for Reports {
    fn changed(self: Arc<Self>, task: &ServerTask) {
        self.0.lock().push((task.is_over(), task.until_ms()));
    }
}

fn task_with(events: Weak<dyn TaskEvents>) -> ServerTask {
    let origin = Origin {
        server: ParticipantId::new("server").unwrap(),
        instance: 7,
        form: Form::Legacy,
        own: "1".into(),
        call: None,
        progress: None,
        created_ms: 1001,
    };
    ServerTask::new(OperationId(1), "ada-1".to_owned(), origin, None, events)
}

fn task() -> ServerTask {
    task_with(Weak::<Reports>::new())
}

/// Updates a task from a message of its server with these members.
fn update(task: &ServerTask, members: &str) {
    let text = format!(r#"{{"taskId":"{}",{members}}}"#, task.origin.own);
    let payload = Payload::relayed(Form::Legacy, text);
    task.update(&wire_task::report(&payload).unwrap(), &payload.bytes);
}

fn listed(task: &ServerTask) -> String {
    String::from_utf8(task.listed().unwrap()).unwrap()
}

#[test]
fn tasks_last_for_their_ttl_and_at_most_a_day() {
    let short = task();
    let long = task();
    update(&short, r#""status":"working","ttl":5000"#);
    update(&long, &format!(r#""status":"working","ttl":{}"#, u64::MAX));
    assert_eq!(short.until_ms(), 6001);
    assert_eq!(long.until_ms(), 1001 + TASK_KEPT_MS_MAX);
    assert_eq!(task().until_ms(), 1001 + TASK_KEPT_MS_MAX);
}

#[test]
fn ends_and_lifetimes_of_tasks_are_reported_once() {
    let reports = Arc::new(Reports::default());
    let events: Arc<dyn TaskEvents> = Arc::<Reports>::clone(&reports);
    let task = task_with(Arc::downgrade(&events));
    update(&task, r#""status":"working""#);
    update(&task, r#""status":"working","ttl":5000"#);
    update(&task, r#""status":"input_required","ttl":5000"#);
    update(&task, r#""status":"completed","ttl":5000"#);
    update(&task, r#""status":"completed","ttl":5000"#);
    task.dismiss();
    let all = std::mem::take(&mut *reports.0.lock());
    assert_eq!(all, [(false, 6001), (true, 6001), (true, 0)]);
}

#[test]
fn open_tasks_fail_when_their_session_ends() {
    let open = task();
    let ended = task();
    update(&ended, r#""status":"completed""#);
    assert!(open.lose() && !open.lose(), "once");
    assert!(!ended.lose());
    let state =
        |task: &ServerTask| task.lost_view(Form::Legacy, |view| view.status(Form::Legacy).as_str());
    assert_eq!((state(&open), state(&ended)), ("failed", "completed"));
}

#[test]
fn the_text_of_a_task_is_kept_up_to_a_limit() {
    let task = task();
    let padding = |bytes: usize| format!(r#""status":"working","pad":"{}""#, "x".repeat(bytes));
    let around = r#"{"taskId":"1",}"#.len() + padding(0).len();
    update(&task, &padding(TASK_KEPT_BYTES_MAX - around));
    assert!(listed(&task).contains("xxx") && listed(&task).contains(r#""taskId":"ada-1""#));
    update(&task, &padding(TASK_KEPT_BYTES_MAX - around + 1));
    assert!(!listed(&task).contains("xxx") && listed(&task).contains(r#""taskId":"ada-1""#));
    for status in [
        "working",
        "input_required",
        "completed",
        "failed",
        "cancelled",
    ] {
        update(
            &task,
            &format!(
                r#""status":"{status}","pad":"{}""#,
                "x".repeat(TASK_KEPT_BYTES_MAX)
            ),
        );
        assert!(
            listed(&task).contains(&format!(r#""status":"{status}""#)),
            "{}",
            listed(&task)
        );
    }
}
