//! Calls of a plain MCP client, held for a reviewer at the full screen, who approves them and
//! allows such calls for a time.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::{Client, Gateway, fixture, until};
use crate::tmux::Pane;
use crate::ws::{people, token};

/// The key of each time, its seconds, and the words for it.
const TIMES: [(&str, u64, &str); 3] = [("1", 900, "15m"), ("2", 3_600, "1h"), ("3", 28_800, "8h")];
/// A tool for each of them, with arguments, and what its result says.
const CALLS: [(&str, &str, &str); 3] = [
    ("a_echo", r#"{"text":"once"}"#, "once"),
    ("a_add", r#"{"a":40,"b":2}"#, "42"),
    ("a_json_schema_2020_12_tool", "{}", ""),
];

/// The grants of a participant, as an operator sees them.
fn grants(gateway: &Gateway, of: &str) -> Vec<Value> {
    let reply = gateway
        .get("/api/v1/participants", Some(&token("boss")))
        .json();
    let found = reply["participants"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["id"] == of)
        .cloned();
    found
        .and_then(|found| found["grants"].as_array().cloned())
        .unwrap_or_default()
}

#[test]
fn a_held_call_of_an_mcp_client_is_approved_and_allowed_for_a_time_at_the_screen() {
    let (home, config) = people(&[
        ("boss", &["mcp/*", "chat", "portmoot/grants"]),
        ("guest", &["mcp/request:*/list", "mcp/proposal:*"]),
    ]);
    let home = home.env("NO_COLOR", "1");
    let gateway = Gateway::start(&home, &(config + &fixture("a", &[])));
    gateway.ready("a");
    let (url, bearer) = (gateway.url(), token("boss"));
    let pane = Pane::start(
        &home,
        (120, 40),
        &["chat", "--url", &url, "--token", &bearer],
    );
    pane.wait_for("inbox: empty");
    let guest = Client::of(&gateway, &token("guest"));
    let ask = |(tool, arguments, _): (&str, &str, &str)| {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        guest.request(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    };
    for (number, ((key, seconds, words), call)) in TIMES.into_iter().zip(CALLS).enumerate() {
        let (tool, arguments, said) = call;
        let held = guest.begin(&ask(call));
        let number = number + 1;
        pane.wait_for(&format!("#{number} waits for a decision"));
        pane.press(&["F2"]);
        pane.wait_until("the card can be decided", |screen| {
            screen.contains(&format!("proposal #{number} by guest at a: tools/call"))
                && screen.contains("a approve  r reject")
        });
        pane.press(&["h"]);
        pane.wait_for("1) 15 minutes  2) 1 hour  3) 8 hours");
        pane.press(&[key]);
        // What is granted is named before anything is decided.
        pane.wait_for("let guest make this call in topic main without asking");
        let capability = format!("mcp/request:tools/call:{tool}");
        pane.wait_for(&capability);
        assert_eq!(
            grants(&gateway, "guest").len(),
            number - 1,
            "nothing is granted yet"
        );
        pane.press(&["y"]);
        let answer = held.next();
        assert!(
            answer["result"]["content"].to_string().contains(said),
            "{tool}: {answer}"
        );
        pane.press(&["Escape"]);
        pane.wait_for(&format!("guest may do this without asking for {words}:"));
        // The grant is there for that time, and for this call alone.
        let granted = grants(&gateway, "guest");
        let of_it: Vec<&Value> = granted
            .iter()
            .filter(|one| one.to_string().contains(&format!("{capability}\"")))
            .collect();
        assert_eq!((granted.len(), of_it.len()), (number, 1), "{granted:?}");
        let expires = of_it[0]["expires"].as_str().unwrap();
        let left = seconds_until(expires);
        assert!(
            (seconds - 120..=seconds).contains(&left),
            "{words}: {expires} is in {left} s"
        );
        // The next call of the tool is not held, with other arguments neither.
        let other: Value = serde_json::from_str(arguments).unwrap();
        let again = guest.ask("tools/call", json!({ "name": tool, "arguments": other }));
        assert!(
            again["result"]["content"].to_string().contains(said),
            "{tool}: {again}"
        );
        let pending = gateway
            .get("/api/v1/proposals", Some(&token("boss")))
            .json();
        assert_eq!(pending["proposals"], json!([]), "{pending}");
    }
    pane.press(&["C-c"]);
    assert_eq!(pane.wait_for_exit(), 0);
    // Another tool still waits for a decision.
    let held = guest.begin(&ask(("a_record", "{}", "")));
    until("it waits", || {
        (!gateway.pending(&home, &token("boss")).is_null()).then_some(())
    });
    assert!(held.so_far().is_empty());
}

/// Seconds from now to a time in RFC 3339, by way of `date`.
fn seconds_until(time: &str) -> u64 {
    let ran = std::process::Command::new("date")
        .args(["-u", "-d", time, "+%s"])
        .output()
        .unwrap();
    let at: u64 = String::from_utf8(ran.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    at.saturating_sub(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs(),
    )
}
