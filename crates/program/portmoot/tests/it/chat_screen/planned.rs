//! A plan at the full screen: one card with all its steps, and one approval.

use serde_json::json;

use crate::support::{Client, Gateway, fixture, until};
use crate::tmux::Pane;
use crate::ws::{people, token};

#[test]
fn a_plan_is_one_card_with_all_its_steps() {
    let (home, config) = people(&[
        ("boss", &["mcp/*", "chat"]),
        ("guest", &["mcp/request:*/list", "mcp/proposal:*"]),
    ]);
    let home = home.env("NO_COLOR", "1");
    let gateway = Gateway::start(&home, &(config + &fixture("a", &[])));
    gateway.ready("a");
    let (url, bearer) = (gateway.url(), token("boss"));
    let pane = Pane::start(
        &home,
        (120, 60),
        &["chat", "--url", &url, "--token", &bearer],
    );
    pane.wait_for("inbox: empty");
    let guest = Client::of(&gateway, &token("guest"));
    let steps = [
        json!({ "name": "a_echo", "arguments": { "text": "of one" } }),
        json!({ "name": "a_add", "arguments": { "a": 40, "b": 2 } }),
    ];
    let plan = guest.call("propose_plan", json!({ "steps": steps }));
    let last = plan["structuredContent"]["steps"][1]["id"].clone();
    // The later step is no card of its own.
    pane.wait_for("| 1 wait");
    pane.press(&["F2"]);
    pane.wait_until("the card can be decided", |screen| {
        let all = [
            "by guest: a plan of 2 steps",
            "step 1 of 2: echo at a",
            "\"text\": \"of one\"",
            "step 2 of 2: add at a",
            "\"a\": 40",
            "a approve  r reject",
        ];
        all.iter().all(|one| screen.contains(one))
    });
    pane.press(&["a"]);
    pane.wait_for("Approve #1? It may be DESTRUCTIVE");
    pane.press(&["y"]);
    let ended = until("the end of the plan", || {
        let waited = guest.call("wait_for_proposal", json!({ "id": last }));
        let text = waited["content"][0]["text"].as_str().unwrap().to_owned();
        (!text.starts_with("Not done yet")).then_some(text)
    });
    assert!(ended.contains("42"), "{ended}");
    pane.press(&["C-c"]);
    assert_eq!(pane.wait_for_exit(), 0);
}
