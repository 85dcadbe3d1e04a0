//! The book of servers' tasks, within its bounds.

use bytes::Bytes;
use model::{Era, LinkId};
use wire::mcp::task;
use wire::rpc::Message;

use super::id::TASK_KEPT_MS_MAX;
use super::*;

fn id(name: &str) -> ParticipantId {
    ParticipantId::new(name).unwrap()
}

fn task(who: &str, own: usize) -> Arc<Relayed> {
    let origin = Origin {
        who: id(who),
        upstream: id("server"),
        birth: 7,
        era: Era::Legacy,
        tool: "job".into(),
        held: false,
        own: own.to_string().into(),
        call: None,
        token: None,
        created_ms: 1000 + own as u64,
    };
    Arc::new(Relayed::new(format!("{who}-{own}"), origin, LinkId(1), None))
}

fn told(task: &Relayed, members: &str) {
    let own = &task.origin.own;
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"taskId":"{own}",{members}}}}}"#);
    let message = Message::read(Bytes::from(text)).unwrap();
    task.saw(&task::glimpse(&message).unwrap(), message.frame());
}

#[test]
fn a_participant_has_as_many_as_it_may_and_no_more() {
    let tasks = Tasks::default();
    assert!(tasks.enter(&task("ada", 0), None) && !tasks.enter(&task("ada", 1), None), "one sweeper");
    for own in 2..PARTICIPANT_TASKS_MAX {
        let place = tasks.reserve(&id("ada"));
        assert!(place.is_some());
        tasks.enter(&task("ada", own), place);
    }
    assert!(tasks.reserve(&id("ada")).is_none() && tasks.reserve(&id("bob")).is_some());
    tasks.enter(&task("ada", 9_000), None);
    assert!(tasks.find(&id("server"), 7, "9000").is_none() && tasks.find(&id("server"), 7, "0").is_some());
    let over = tasks.find(&id("server"), 7, "5").unwrap();
    told(&over, r#""status":"completed""#);
    tasks.enter(&task("ada", 9_001), tasks.reserve(&id("ada")));
    assert!(tasks.find(&id("server"), 7, "5").is_none(), "what is over goes");
    assert!(tasks.find(&id("server"), 7, "9001").is_some());
    assert_eq!(tasks.of(&id("ada")).len(), PARTICIPANT_TASKS_MAX);
    assert!(tasks.of(&id("bob")).is_empty());
}

#[test]
fn calls_that_may_become_tasks_count_as_long_as_they_are_open() {
    let tasks = Tasks::default();
    let mut places: Vec<_> = (0..PARTICIPANT_TASKS_MAX).map(|_| tasks.reserve(&id("ada")).unwrap()).collect();
    assert!(tasks.reserve(&id("ada")).is_none());
    tasks.enter(&task("ada", 1), places.pop());
    assert!(tasks.reserve(&id("ada")).is_none(), "the task has the place of its call");
    drop(places);
    assert!(tasks.reserve(&id("ada")).is_some());
    assert_eq!(tasks.of(&id("ada")).len(), 1);
}

#[test]
fn guests_have_no_more_than_one_participant_together() {
    let tasks = Tasks::default();
    for own in 0..PARTICIPANT_TASKS_MAX {
        let guest = format!("anonymous-{own}");
        tasks.enter(&task(&guest, own), tasks.reserve(&id(&guest)));
        assert_eq!(tasks.of(&id(&guest)).len(), 1);
    }
    assert!(tasks.reserve(&id("anonymous-late")).is_none() && tasks.reserve(&id("ada")).is_some());
}

#[test]
fn a_topic_has_as_many_as_it_may_and_no_more() {
    let tasks = Tasks::default();
    for own in 0..TOPIC_TASKS_MAX {
        tasks.enter(&task(&format!("p{}", own / PARTICIPANT_TASKS_MAX), own), None);
    }
    assert!(tasks.reserve(&id("late")).is_none());
    tasks.enter(&task("late", TOPIC_TASKS_MAX), None);
    assert!(tasks.of(&id("late")).is_empty(), "nobody loses a task to another");
    assert!(tasks.find(&id("server"), 7, "0").is_some());
}

#[test]
fn an_id_that_a_server_gives_again_means_the_new_task() {
    let tasks = Tasks::default();
    tasks.enter(&task("ada", 1), None);
    tasks.enter(&task("bob", 1), None);
    assert_eq!(tasks.find(&id("server"), 7, "1").unwrap().origin.who, id("bob"));
    assert!(tasks.of(&id("ada")).is_empty());
    assert!(tasks.find(&id("server"), 8, "1").is_none() && tasks.find(&id("other"), 7, "1").is_none());
}

#[test]
fn what_was_kept_long_enough_is_forgotten() {
    let tasks = Tasks::default();
    let (short, long) = (task("ada", 1), task("ada", 2));
    told(&short, r#""status":"working","ttl":5000"#);
    told(&long, &format!(r#""status":"working","ttl":{}"#, u64::MAX));
    tasks.enter(&short, None);
    tasks.enter(&long, None);
    assert!(tasks.sweep(6000) && tasks.of(&id("ada")).len() == 2);
    assert!(tasks.sweep(6001) && tasks.of(&id("ada")).len() == 1);
    assert!(tasks.sweep(1001 + TASK_KEPT_MS_MAX));
    assert!(!tasks.sweep(1002 + TASK_KEPT_MS_MAX), "a day, whatever its server says");
    assert!(tasks.enter(&task("ada", 3), None), "a sweeper again");
}

#[test]
fn what_ended_with_its_session_has_failed_unless_it_was_over() {
    let tasks = Tasks::default();
    let (open, over) = (task("ada", 1), task("ada", 2));
    told(&over, r#""status":"completed""#);
    tasks.enter(&open, None);
    tasks.enter(&over, None);
    assert_eq!(tasks.lost(8).len(), 0);
    let lost = tasks.lost(7);
    assert_eq!(lost.iter().map(|task| task.public.as_str()).collect::<Vec<_>>(), ["ada-1"]);
    assert!(tasks.lost(7).is_empty(), "told once");
    let state = |task: &Relayed| task.view(|view| view.status(Era::Legacy).as_str());
    assert_eq!((state(&open), state(&over)), ("failed", "completed"));
}

#[test]
fn a_bounded_number_of_links_hears_of_a_task() {
    let task = task("ada", 1);
    (2..40).for_each(|link| task.heard_by(LinkId(link)));
    assert_eq!(task.links().len(), relayed::TASK_LINKS_MAX);
    task.heard_by(LinkId(30));
    assert_eq!(
        (task.links().len(), task.links().last().copied()),
        (relayed::TASK_LINKS_MAX, Some(LinkId(30)))
    );
}

#[test]
fn what_a_server_tells_of_a_task_is_kept_up_to_a_bound() {
    let task = task("ada", 1);
    let padding = |bytes: usize| format!(r#""status":"working","pad":"{}""#, "x".repeat(bytes));
    let around = r#"{"taskId":"1",}"#.len() + padding(0).len();
    let listed = || String::from_utf8(task.told().unwrap()).unwrap();
    told(&task, &padding(relayed::TASK_TOLD_BYTES_MAX - around));
    assert!(listed().contains("xxx") && listed().contains(r#""taskId":"ada-1""#));
    told(&task, &padding(relayed::TASK_TOLD_BYTES_MAX - around + 1));
    assert!(!listed().contains("xxx") && listed().contains(r#""taskId":"ada-1""#));
    for status in ["working", "input_required", "completed", "failed", "cancelled"] {
        told(&task, &format!(r#""status":"{status}","pad":"{}""#, "x".repeat(relayed::TASK_TOLD_BYTES_MAX)));
        assert!(listed().contains(&format!(r#""status":"{status}""#)), "{}", listed());
    }
}

#[test]
fn a_session_is_let_go_only_by_an_answer_that_tells_the_result() {
    use wire::mcp::task::Status::{Completed, Failed, Working};
    use wire::rpc::Shape::{Error, Result};
    for (era, method, shape, status, expected) in [
        (Era::Legacy, "tasks/result", Result, Working, true),
        (Era::Legacy, "tasks/result", Error, Completed, false),
        (Era::Legacy, "tasks/result", Error, Failed, true),
        (Era::Legacy, "tasks/get", Result, Completed, false),
        (Era::Modern, "tasks/get", Result, Completed, true),
        (Era::Modern, "tasks/get", Result, Working, false),
        (Era::Modern, "tasks/get", Error, Completed, false),
        (Era::Modern, "tasks/cancel", Result, Completed, false),
    ] {
        let told = relayed::tells_result(era, method, shape, status);
        assert_eq!(told, expected, "{era:?} {method} {shape:?} {status:?}");
    }
}
