//! Words of the console for a person, in its pages as they are sent.

use serde_json::json;

use super::visitor::{Visitor, at, field, text};
use super::{Stage, tools};
use crate::support::{Client, until};
use crate::ws::token;

/// The words of a command that shows something; of one that acts, those that print its help.
fn runnable(command: &str) -> Vec<String> {
    let mut words: Vec<String> = command
        .split_whitespace()
        .map(|word| word.trim_matches('\'').to_owned())
        .collect();
    assert_eq!(words.remove(0), "portmoot", "{command}");
    let acts = ["approve", "call", "like", "grant"];
    if words.iter().any(|word| acts.contains(&word.as_str())) {
        words.push("--help".to_owned());
    }
    words
}

/// The command that a page names at its end.
fn command_of(visitor: &Visitor<'_>, path: &str) -> String {
    let page = visitor.page(path);
    let named = page.split_once("The same at a terminal: ");
    let named = named.unwrap_or_else(|| panic!("{path} names no command"));
    text(named.1.split_once("</code>").unwrap().0)
}

#[test]
fn every_page_names_a_command_that_shows_the_same() {
    let stage = Stage::new();
    let id = stage.propose("write_file", &json!({ "path": "/srv/a" }));
    let visitor = stage.visitor("ann");
    let url = stage.gateway.url();
    let pages = [
        String::new(),
        "/past".to_owned(),
        format!("/p/{id}"),
        format!("/p/{id}?edit=1"),
        format!("/p/{id}/like"),
        "/overview".to_owned(),
        "/topic".to_owned(),
        "/servers".to_owned(),
        "/servers/files".to_owned(),
        "/tools".to_owned(),
        "/tools/files_write_file".to_owned(),
        "/rules".to_owned(),
        "/rules/coverage".to_owned(),
        "/access".to_owned(),
        "/access/scout".to_owned(),
        "/audit?participant=scout&kinds=mcp/*".to_owned(),
        "/audit?verify=1".to_owned(),
        "/calls?participant=scout".to_owned(),
        format!("/calls/{id}"),
    ];
    let by = token("ann");
    for path in pages {
        let command = command_of(&visitor, &path);
        let words = runnable(&command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let gateway: &[&str] = match words.last() {
            Some(&"--help") => &[],
            _ if words.contains(&"audit") => &["--data-dir", "data"],
            _ => &["--url", &url, "--token", &by],
        };
        let run = stage.home.run(&[&words, gateway].concat());
        let said = [run.stdout, run.stderr].concat();
        assert_eq!(run.code, 0, "{path}: {command}: {said}");
    }
}

#[test]
fn an_edit_that_does_not_fit_the_tool_is_refused_and_kept() {
    let stage = Stage::new();
    let id = stage.propose("write_file", &json!({ "path": "/srv/a", "lines": 1 }));
    let visitor = stage.visitor("ann");
    let page = visitor.page(&format!("/p/{id}"));
    let digest = field(&page, "digest");
    let wrong = r#"{"path": "/srv/b", "lines": "three"}"#;
    let form = [("digest", &*digest), ("arguments", wrong)];
    let compared = visitor.post(&format!("/p/{id}/edit"), &form).body;
    assert!(at(&compared, "difference").contains("three"));
    let refused = visitor.post(&format!("/p/{id}/approve"), &form);
    assert_eq!(refused.status, 400, "{refused:?}");
    let why = at(&refused.body, "problem");
    assert!(
        why.contains("do not fit the input schema") && why.contains("lines"),
        "{why}"
    );
    assert!(
        at(&refused.body, "comparison").contains("three"),
        "it is not lost"
    );
    assert_eq!(stage.proposal(&id)["state"], "pending");
    let again = [&form[..], &[("again", "1")]].concat();
    let form_again = visitor.post(&format!("/p/{id}/edit"), &again).body;
    assert!(
        at(&form_again, "arguments").contains("\"three\""),
        "{form_again}"
    );
    let right = [("digest", &*digest), ("arguments", r#"{"path": "/srv/b"}"#)];
    visitor.post(&format!("/p/{id}/edit"), &right);
    let done = visitor.post(&format!("/p/{id}/approve"), &right);
    assert_eq!(done.status, 303, "{done:?}");
    stage.becomes(&id, "completed");
}

#[test]
fn a_call_that_ran_and_failed_at_its_tool_says_so() {
    let stage = Stage::new();
    let mut listed = tools();
    let mut refusing = listed[1].clone();
    refusing["name"] = json!("refuse");
    listed.as_array_mut().unwrap().push(refusing);
    stage.home.write("files", &listed.to_string());
    let restart = "/api/v1/servers/files/restart";
    assert_eq!(stage.ask("ann", "POST", restart, &json!({})).status, 200);
    until("the tool is listed", || {
        let tool = stage.ask("ann", "GET", "/api/v1/tools/files_refuse", &json!(null));
        (tool.status == 200).then_some(())
    });
    let id = stage.propose("refuse", &json!({ "path": "/srv/a" }));
    let visitor = stage.visitor("ann");
    let digest = field(&visitor.page(&format!("/p/{id}")), "digest");
    let form = [("digest", &*digest), ("confirmed", "1")];
    assert_eq!(visitor.post(&format!("/p/{id}/approve"), &form).status, 303);
    stage.becomes(&id, "completed");
    assert_eq!(stage.proposal(&id)["failed"], true);
    let page = visitor.page(&format!("/p/{id}"));
    assert!(at(&page, "state").starts_with("completed: the tool reported an error"));
    assert!(text(&page).contains("Its answer: an error that the tool reports"));
    assert!(text(&visitor.page("/past")).contains("completed: the tool reported an error"));
    let called = [("confirmed", "1"), ("a.path", "/srv/a")];
    let returned = visitor.post("/tools/files_refuse/call", &called).body;
    assert!(
        at(&returned, "returned")
            .trim_start()
            .starts_with("The tool reported an error")
    );
    // The calls of the tools are measured, and those that failed.
    let overview = visitor.page("/overview");
    let by_tool = at(&overview, "tool-latencies");
    assert!(
        by_tool.contains("others"),
        "it has never succeeded: {by_tool}"
    );
    assert!(at(&overview, "map").contains("scout"), "{overview}");
}

#[test]
fn a_card_says_what_is_new_beside_the_nearest_approved_call() {
    let stage = Stage::new();
    let visitor = stage.visitor("ann");
    let write = |path: &str, lines: u32| {
        stage.propose("write_file", &json!({ "path": path, "lines": lines }))
    };
    let first = write("/srv/a", 3);
    assert!(!visitor.page("").contains("data-testid=\"nearest\""));
    let digest = field(&visitor.page(&format!("/p/{first}")), "digest");
    let form = [("digest", &*digest), ("confirmed", "1")];
    assert_eq!(
        visitor.post(&format!("/p/{first}/approve"), &form).status,
        303
    );
    stage.becomes(&first, "completed");
    write("/srv/a", 4);
    let inbox = visitor.page("");
    let words = at(&inbox, "nearest");
    assert!(
        words.starts_with("1 of 2 values is new beside the nearest approved call"),
        "{words}"
    );
    let marked: Vec<&str> = inbox.split("<tr class=\"new\">").skip(1).collect();
    assert_eq!(marked.len(), 1);
    assert!(
        text(marked[0].split("</tr>").next().unwrap()).contains("/lines new"),
        "{inbox}"
    );
    // Another participant's calls are no measure.
    let params = json!({ "arguments": { "path": "/srv/a", "lines": 3 } });
    assert_eq!(
        stage
            .ask("bo", "POST", "/api/v1/tools/files_write_file/call", &params)
            .status,
        200
    );
}

#[test]
fn what_the_client_sends_for_the_transport_is_folded_and_the_waiting_ends() {
    let stage = Stage::with("[server.limits]\nhold = \"3s\"\n");
    let client = Client::of(&stage.gateway, &token("scout"));
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "files_write_file", "arguments": { "path": "/srv/a" },
        "_meta": { "progressToken": "tok-7", "own/key": "mine" } } });
    let answer = client.begin(&call);
    let visitor = stage.visitor("ann");
    until("the caller waits", || {
        let inbox = text(&visitor.page(""));
        inbox.contains("the caller waits").then_some(())
    });
    let inbox = visitor.page("");
    let folded = inbox.split_once("data-testid=\"of-travel\"").unwrap();
    assert!(
        folded.0.contains("own~1key") && !folded.0.contains("tok-7"),
        "{inbox}"
    );
    assert!(folded.1.contains("tok-7"), "nothing is hidden");
    // Ann is in no topic: the console has shown it to her.
    let answered = json!(answer.rest()).to_string();
    assert!(
        answered.contains("ann has seen it and can approve it"),
        "{answered}"
    );
    until("it waits no more", || {
        let inbox = text(&visitor.page(""));
        inbox.contains("its caller may have gone on").then_some(())
    });
}
