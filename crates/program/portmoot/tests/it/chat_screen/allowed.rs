//! Calls of a plain MCP client, held for a reviewer at the full screen, who approves them and
//! their like for a time.

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

/// The rules of a topic, as a reviewer sees them.
fn rules(gateway: &Gateway) -> Vec<Value> {
    let reply = gateway
        .get("/api/v1/topics/main/rules", Some(&token("boss")))
        .json();
    reply["rules"].as_array().unwrap().clone()
}

#[test]
fn a_held_call_of_an_mcp_client_is_approved_and_its_like_for_a_time_at_the_screen() {
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
        let (_, own) = tool.split_once('_').unwrap();
        // What a rule has decided may be among the numbers, or not.
        pane.wait_for("| 1 wait");
        pane.press(&["F2"]);
        let asked = format!(" by guest at a: tools/call {own}");
        pane.wait_until("the card can be decided", |screen| {
            screen.contains(&asked) && screen.contains("a approve  r reject")
        });
        pane.press(&["h"]);
        pane.wait_for("1) 15 minutes  2) 1 hour  3) 8 hours");
        pane.press(&[key]);
        // All of the rule is said before anything is decided.
        pane.wait_for(", and the like of it until");
        pane.wait_for(&format!("guest may call {own} of a"));
        assert_eq!(rules(&gateway).len(), number - 1, "nothing is in force yet");
        pane.press(&["y"]);
        let answer = held.next();
        assert!(
            answer["result"]["content"].to_string().contains(said),
            "{tool}: {answer}"
        );
        pane.press(&["Escape"]);
        pane.wait_for(&format!("the like is approved for {words}:"));
        // The rule is there for that time, and for this call alone.
        let all = rules(&gateway);
        let expires = all.last().unwrap()["expires"].as_str().unwrap();
        let left = seconds_until(expires);
        assert!(
            (seconds - 120..=seconds + 1).contains(&left),
            "{words}: {expires} is in {left} s"
        );
        assert_eq!((all.len(), &all[number - 1]["used"]), (number, &json!(0)));
        // The next such call needs no person.
        let same: Value = serde_json::from_str(arguments).unwrap();
        let again = guest.ask("tools/call", json!({ "name": tool, "arguments": same }));
        assert!(
            again["result"]["content"].to_string().contains(said),
            "{tool}: {again}"
        );
        assert_eq!(rules(&gateway)[number - 1]["used"], 1);
        until("all of them are over", || {
            let pending = gateway
                .get("/api/v1/proposals", Some(&token("boss")))
                .json();
            (pending["proposals"] == json!([])).then_some(())
        });
    }
    // The rules in force are listed, and one that decides no more is said.
    let said = |line: &str, text: &str| {
        pane.type_text(line);
        pane.press(&["Enter"]);
        pane.wait_for(text);
    };
    said("/rules", "in force, 1 used, 19 left, ends ");
    let first = rules(&gateway)[0]["rule"].as_str().unwrap().to_owned();
    let end = ["rules", "end", &first, "--url", &url, "--token", &bearer];
    home.run(&end).expect(0);
    said("/rules", &format!("* rule {first} decides no more, it is "));
    pane.press(&["C-c"]);
    assert_eq!(pane.wait_for_exit(), 0);
    // Other arguments still wait for a decision.
    let held = guest.begin(&ask(("a_echo", r#"{"text":"twice"}"#, "")));
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
