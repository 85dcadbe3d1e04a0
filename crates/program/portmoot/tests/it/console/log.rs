//! Pages of the console about the audit log and calls.

use std::fs;

use serde_json::json;

use super::browser::Browser;
use super::{Stage, card};
use crate::support::until;

/// Calls of ann that are in the log.
fn read_some(stage: &Stage, count: usize) {
    for at in 0..count {
        let read = json!({ "arguments": { "path": format!("/srv/{at}") } });
        let path = "/api/v1/tools/files_read_file/call";
        assert_eq!(stage.ask("ann", "POST", path, &read).status, 200);
    }
    until("they are on disk", || {
        let path = "/api/v1/audit?kinds=mcp/request:*&limit=500";
        let found = stage.ask("ann", "GET", path, &json!(null)).json();
        (found["entries"].as_array()?.len() >= count).then_some(())
    });
}

#[test]
fn the_audit_log_is_read_filtered_paged_and_checked() {
    let stage = Stage::new();
    read_some(&stage, 60);
    let browser = stage.browser("ann");
    browser.go(&stage.page("/audit"));
    browser.reads("nav [aria-current=page]", "Audit");
    assert_eq!(browser.count("[data-testid=entry]"), 50);
    // The newest rows follow the log.
    stage.propose("remove_file", &json!({ "path": "/srv/a" }));
    browser.reads(
        "[data-testid=entry]:first-child",
        "mcp/proposal:tools/call:remove_file",
    );
    browser.click("[data-testid=older]");
    browser.wait("the next page", || browser.address().contains("after="));
    browser.sees("[data-testid=entry]");
    assert!(browser.count("[data-testid=entry]") < 50);
    calls_come_by_themselves(&stage, &browser);
    browser.go(&stage.page("/audit"));
    browser.click("summary");
    browser.fill("[data-testid=participant]", "scout");
    browser.fill("[data-testid=kinds]", "mcp/proposal:*\u{e007}");
    browser.reads(
        "footer code",
        "portmoot audit query 'mcp/proposal:*' --participant scout --last 50",
    );
    // One that waits, and one that was made and has ended.
    assert_eq!(browser.count("[data-testid=entry]"), 3);
    browser.click("[data-testid=verify]");
    browser.reads("[data-testid=report]", "The chain is intact");
    let log = stage
        .home
        .path()
        .join("data/audit/00000000000000000001.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(
        &log,
        text.replacen("/call:files_read_file", "/call:files_load_file", 1),
    )
    .unwrap();
    browser.click("[data-testid=verify]");
    browser.reads("[data-testid=report]", "The chain is NOT intact");
    browser.reads("[data-testid=report] li", "was changed");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// The newest calls come to the page of calls, and what happens to a call to its own.
fn calls_come_by_themselves(stage: &Stage, browser: &Browser) {
    browser.go(&stage.page("/calls"));
    browser.sees("[data-testid=call]");
    let id = stage.propose("write_file", &json!({ "path": "/srv/live" }));
    browser.reads("[data-testid=call]:first-child", "write_file");
    browser.click("[data-testid=call]:first-child a");
    browser.reads("h1", "A call");
    let digest = stage.proposal(&id)["digest"].clone();
    let approve = format!("/api/v1/proposals/{id}/approve");
    let approval = json!({ "digest": digest });
    assert_eq!(stage.ask("bo", "POST", &approve, &approval).status, 200);
    browser.reads("[data-testid=step]:last-child", "completed");
}

#[test]
fn a_call_has_one_page_from_its_begin_to_its_end() {
    let stage = Stage::new();
    let id = stage.propose("write_file", &json!({ "path": "/srv/a" }));
    read_some(&stage, 1);
    let browser = Browser::without_scripts();
    let link = stage.link("ann");
    let (page, code) = link.split_once('#').unwrap();
    browser.go(page);
    browser.fill("#code", code);
    browser.click("button.main");
    browser.sees(&card(&id));
    browser.go(&stage.page("/calls?tool=files_write_file"));
    browser.reads("[data-testid=call]", "held");
    let digest = stage.proposal(&id)["digest"].clone();
    let path = format!("/api/v1/proposals/{id}/approve");
    assert_eq!(
        stage
            .ask("bo", "POST", &path, &json!({ "digest": digest }))
            .status,
        200
    );
    until("it has run", || {
        browser.go(&stage.page("/calls?outcome=completed"));
        browser.text("[data-testid=call]").map(drop)
    });
    assert_eq!(browser.count("[data-testid=call]"), 1);
    browser.reads("[data-testid=call]", "bo");
    browser.click("[data-testid=call] a");
    browser.reads("h1", "A call");
    for (at, words) in [
        "the call waits",
        "the proposal of scout",
        "by bo",
        "completed",
    ]
    .iter()
    .enumerate()
    {
        browser.reads(&format!("[data-testid=step]:nth-child({})", at + 1), words);
    }
    assert_eq!(browser.count("[data-testid=step]"), 4);
    browser.click("[data-testid=step] a");
    browser.reads("[data-testid=verdict]", "decided by bo");
    browser.go(&stage.page("/calls"));
    browser.reads("[data-testid=call]", "files_read_file");
    browser.click("[data-testid=call] a");
    browser.reads("main", "no answers of servers");
}

#[test]
fn without_the_right_or_a_log_the_pages_say_what_to_do() {
    let stage = Stage::with("[audit]\nenabled = false\n");
    let browser = stage.browser("bo");
    let base = browser.address();
    for path in ["/audit", "/calls"] {
        browser.go(&format!("{base}{path}"));
        browser.reads("[data-testid=refused]", "portmoot/audit");
    }
    let browser = stage.browser("ann");
    for path in ["/audit", "/calls"] {
        browser.go(&stage.page(path));
        browser.reads("[data-testid=refused]", "keeps no audit log");
        browser.reads("[data-testid=refused]", "[audit] enabled = true");
    }
}
