//! Tasks at a server where each caller has an account: read, awaited, listed and cancelled by their
//! owner alone.

use serde_json::{Value, json};

use super::{ANN, BOB, Site, text};
use crate::support::{Client, until};
use crate::tasks::{RELATED, about, begin, is_unknown};

/// The ids that `tasks/list` names.
#[track_caller]
fn listed(client: &Client) -> Vec<String> {
    let answer = client.ask("tasks/list", json!({}));
    let tasks = answer["result"]["tasks"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    tasks
        .iter()
        .map(|task| task["taskId"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_task_at_an_account_of_one_participant_is_none_for_the_other() {
    let site = Site::start();
    let (ann, bob) = (site.connected(ANN, "user-a"), site.connected(BOB, "user-b"));
    let (hers, other, his) = (
        begin(&ann, "jira_whoami"),
        begin(&ann, "jira_whoami"),
        begin(&bob, "jira_whoami"),
    );
    let jobs = &site.service.jobs;
    let task = about(&ann, "tasks/get", &hers)["result"].clone();
    assert_eq!(
        (&task["taskId"], &task["status"]),
        (&json!(hers), &json!("working"))
    );
    let waits = ann.begin(&ann.request("tasks/result", json!({ "taskId": hers })));
    until("the server has it", || {
        (jobs.asked("tasks/result") == 1).then_some(())
    });
    // Neither in his own session nor in hers.
    let counts = || ["tasks/get", "tasks/result", "tasks/cancel"].map(|method| jobs.asked(method));
    let before = counts();
    let stolen = Client::resume(&site.gateway, Some(BOB), "/mcp", &ann.session);
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        for id in [&hers, &other] {
            is_unknown(&about(&bob, method, id), &bob);
            assert_eq!(stolen.status(method, json!({ "taskId": id })), 404);
        }
        // Nor by the server's own ids, which neither of them was given.
        for id in ["task-1", "task-2", "task-3"] {
            is_unknown(&about(&bob, method, id), &bob);
            is_unknown(&about(&ann, method, id), &ann);
        }
        is_unknown(&about(&ann, method, &his), &ann);
    }
    assert_eq!(counts(), before, "nothing of it reached the server");
    assert_eq!(listed(&ann), [hers.clone(), other.clone()]);
    assert_eq!(listed(&bob), std::slice::from_ref(&his));
    // Hers go on, and end for her, with her account.
    let cancelled = about(&ann, "tasks/cancel", &other)["result"].clone();
    assert_eq!(
        (&cancelled["taskId"], &cancelled["status"]),
        (&json!(other), &json!("cancelled"))
    );
    jobs.finish();
    let end = waits.next();
    assert_eq!(text(&end["result"]), "user-a with read", "{end}");
    assert_eq!(end["result"]["_meta"][RELATED]["taskId"], json!(hers));
    let result: Value = about(&bob, "tasks/result", &his);
    assert_eq!(text(&result["result"]), "user-b with read", "{result}");
    // A participant that signs in as the other's user has none of the other's tasks.
    site.logout(BOB);
    let bob = site.connected(BOB, "user-a");
    assert_eq!(
        text(&bob.call("jira_whoami", json!({}))),
        "user-a with read"
    );
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        is_unknown(&about(&bob, method, &hers), &bob);
    }
    assert!(!listed(&bob).contains(&hers));
    assert!(jobs.crossed().is_empty(), "{:?}", jobs.crossed());
    assert!(
        site.service.wrong().is_empty(),
        "{:?}",
        site.service.wrong()
    );
}
