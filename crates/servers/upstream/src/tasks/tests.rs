//! Task table tests: limits, lifetimes, ends of sessions, state for `tasks/list`.

use std::sync::Arc;

use model::{Form, LinkId, ParticipantId, Payload};
use wire::mcp::task as wire_task;

use super::places::{PARTICIPANT_TASKS_MAX, TOPIC_TASKS_MAX};
use super::table::Tasks;
use super::task::{Origin, TASK_KEPT_BYTES_MAX, TASK_KEPT_MS_MAX, Task};

fn id(name: &str) -> ParticipantId {
    ParticipantId::new(name).unwrap()
}

fn task(holder: &str, own: usize) -> Arc<Task> {
    let origin = Origin {
        holder: id(holder),
        server: id("server"),
        instance: 7,
        form: Form::Legacy,
        tool: "job".into(),
        held: false,
        own: own.to_string().into(),
        call: None,
        progress: None,
        created_ms: 1000 + own as u64,
    };
    Arc::new(Task::new(
        format!("{holder}-{own}"),
        origin,
        LinkId(1),
        None,
    ))
}

/// Updates a task from a message of its server with these members.
fn update(task: &Task, members: &str) {
    let text = format!(r#"{{"taskId":"{}",{members}}}"#, task.origin.own);
    let payload = Payload::relayed(Form::Legacy, text);
    task.update(&wire_task::report(&payload).unwrap(), &payload.bytes);
}

fn listed(task: &Task) -> String {
    String::from_utf8(task.listed().unwrap()).unwrap()
}

#[test]
fn a_participant_has_a_limited_number_of_tasks() {
    let tasks = Tasks::default();
    assert!(
        tasks.insert(&task("ada", 0), None) && !tasks.insert(&task("ada", 1), None),
        "one sweeper"
    );
    for own in 2..PARTICIPANT_TASKS_MAX {
        let place = tasks.reserve(&id("ada"));
        assert!(place.is_some());
        tasks.insert(&task("ada", own), place);
    }
    assert!(tasks.reserve(&id("ada")).is_none() && tasks.reserve(&id("bob")).is_some());
    tasks.insert(&task("ada", 9_000), None);
    assert!(
        tasks.find(&id("server"), 7, "9000").is_none()
            && tasks.find(&id("server"), 7, "0").is_some()
    );
    let ended = tasks.find(&id("server"), 7, "5").unwrap();
    update(&ended, r#""status":"completed""#);
    tasks.insert(&task("ada", 9_001), tasks.reserve(&id("ada")));
    assert!(
        tasks.find(&id("server"), 7, "5").is_none(),
        "the ended task is dropped"
    );
    assert!(tasks.find(&id("server"), 7, "9001").is_some());
    assert_eq!(tasks.of(&id("ada")).len(), PARTICIPANT_TASKS_MAX);
    assert!(tasks.of(&id("bob")).is_empty());
}

#[test]
fn open_calls_that_may_become_tasks_have_places() {
    let tasks = Tasks::default();
    let mut places: Vec<_> = (0..PARTICIPANT_TASKS_MAX)
        .map(|_| tasks.reserve(&id("ada")).unwrap())
        .collect();
    assert!(tasks.reserve(&id("ada")).is_none());
    tasks.insert(&task("ada", 1), places.pop());
    assert!(
        tasks.reserve(&id("ada")).is_none(),
        "the task has the place of its call"
    );
    drop(places);
    assert!(tasks.reserve(&id("ada")).is_some());
    assert_eq!(tasks.of(&id("ada")).len(), 1);
}

#[test]
fn all_guests_share_the_limit_of_one_participant() {
    let tasks = Tasks::default();
    for own in 0..PARTICIPANT_TASKS_MAX {
        let guest = format!("anonymous-{own}");
        tasks.insert(&task(&guest, own), tasks.reserve(&id(&guest)));
        assert_eq!(tasks.of(&id(&guest)).len(), 1);
    }
    assert!(tasks.reserve(&id("anonymous-late")).is_none() && tasks.reserve(&id("ada")).is_some());
}

#[test]
fn a_topic_has_a_limited_number_of_tasks() {
    let tasks = Tasks::default();
    for own in 0..TOPIC_TASKS_MAX {
        tasks.insert(
            &task(&format!("p{}", own / PARTICIPANT_TASKS_MAX), own),
            None,
        );
    }
    assert!(tasks.reserve(&id("late")).is_none());
    tasks.insert(&task("late", TOPIC_TASKS_MAX), None);
    assert!(
        tasks.of(&id("late")).is_empty(),
        "no participant loses a task to another"
    );
    assert!(tasks.find(&id("server"), 7, "0").is_some());
}

#[test]
fn a_reused_server_id_names_the_new_task() {
    let tasks = Tasks::default();
    tasks.insert(&task("ada", 1), None);
    tasks.insert(&task("bob", 1), None);
    assert_eq!(
        tasks.find(&id("server"), 7, "1").unwrap().origin.holder,
        id("bob")
    );
    assert!(tasks.of(&id("ada")).is_empty());
    assert!(
        tasks.find(&id("server"), 8, "1").is_none() && tasks.find(&id("other"), 7, "1").is_none()
    );
}

#[test]
fn tasks_expire_after_their_ttl_and_at_most_a_day() {
    let tasks = Tasks::default();
    let (short, long) = (task("ada", 1), task("ada", 2));
    update(&short, r#""status":"working","ttl":5000"#);
    update(&long, &format!(r#""status":"working","ttl":{}"#, u64::MAX));
    tasks.insert(&short, None);
    tasks.insert(&long, None);
    assert!(tasks.sweep(6000) && tasks.of(&id("ada")).len() == 2);
    assert!(tasks.sweep(6001) && tasks.of(&id("ada")).len() == 1);
    assert!(tasks.sweep(1001 + TASK_KEPT_MS_MAX));
    assert!(
        !tasks.sweep(1002 + TASK_KEPT_MS_MAX),
        "a day, whatever the server's ttl"
    );
    assert!(tasks.insert(&task("ada", 3), None), "a new sweeper");
}

#[test]
fn open_tasks_fail_when_their_session_ends() {
    let tasks = Tasks::default();
    let (open, ended) = (task("ada", 1), task("ada", 2));
    update(&ended, r#""status":"completed""#);
    tasks.insert(&open, None);
    tasks.insert(&ended, None);
    assert_eq!(tasks.lose(8).len(), 0);
    let lost = tasks.lose(7);
    assert_eq!(
        lost.iter()
            .map(|task| task.public.as_str())
            .collect::<Vec<_>>(),
        ["ada-1"]
    );
    assert!(tasks.lose(7).is_empty(), "reported once");
    let state =
        |task: &Task| task.lost_view(Form::Legacy, |view| view.status(Form::Legacy).as_str());
    assert_eq!((state(&open), state(&ended)), ("failed", "completed"));
}

#[test]
fn the_text_of_a_task_is_kept_up_to_a_limit() {
    let task = task("ada", 1);
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
