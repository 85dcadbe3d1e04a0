//! Log messages of servers: each caller gets those that it asked for, whatever other callers of its
//! session and its server's era are.

use harness::Running;
use serde_json::{Value, json};

use crate::home::Home;
use crate::support::{Client, Gateway, fixture, modern_stream};

/// A tool that logs three lines at `info`, one that logs a line at `emergency`.
const TOOLS: [&str; 2] = ["test_tool_with_logging", "test_logging_tool"];

/// How many log messages arrive before the answers of the two tools.
fn counts(mut call: impl FnMut(&str) -> Vec<Value>) -> [usize; 2] {
    TOOLS.map(|tool| {
        let received = call(tool);
        let (last, before) = received.split_last().unwrap();
        assert!(last["result"].is_object(), "{received:?}");
        assert!(
            before
                .iter()
                .all(|message| message["method"] == "notifications/message"),
            "{received:?}"
        );
        before.len()
    })
}

/// The same for a modern caller whose requests want messages from this level on.
fn modern_counts(gateway: &Gateway, server: &str, level: Option<&str>) -> [usize; 2] {
    counts(|tool| {
        let mut params = json!({ "name": format!("{server}_{tool}"), "arguments": {} });
        if let Some(level) = level {
            params["_meta"] = json!({ "io.modelcontextprotocol/logLevel": level });
        }
        modern_stream(gateway, None, "tools/call", params).rest()
    })
}

fn legacy_counts(client: &Client, server: &str) -> [usize; 2] {
    counts(|tool| {
        client
            .begin_call(&format!("{server}_{tool}"), json!({}))
            .rest()
    })
}

/// A gateway with servers of one era, over HTTP and as a child.
fn start(home: &Home, era: &str) -> (Gateway, Running) {
    let running = Running::fixture(&["--era", era]);
    let config = fixture("pipe", &["--era", era])
        + &format!("[servers.http]\nurl = \"{}\"\n", running.url());
    (Gateway::start(home, &config), running)
}

#[test]
fn a_modern_caller_gets_the_messages_of_its_own_request_from_a_legacy_server() {
    let home = Home::new();
    let (gateway, _running) = start(&home, "legacy");
    let (quiet, unset) = (Client::plain(&gateway), Client::plain(&gateway));
    quiet.ask("logging/setLevel", json!({ "level": "emergency" }));
    for server in ["pipe", "http"] {
        // The first to set a level on the session that all share.
        assert_eq!(legacy_counts(&quiet, server), [0, 1], "{server}");
        assert_eq!(
            modern_counts(&gateway, server, None),
            [0, 0],
            "{server}: it asked for none"
        );
        assert_eq!(
            modern_counts(&gateway, server, Some("info")),
            [3, 1],
            "{server}"
        );
        assert_eq!(
            modern_counts(&gateway, server, Some("error")),
            [0, 1],
            "{server}"
        );
        assert_eq!(
            modern_counts(&gateway, server, Some("no level")),
            [0, 0],
            "{server}"
        );
        assert_eq!(
            legacy_counts(&quiet, server),
            [0, 1],
            "{server}: its level stays its own"
        );
        assert_eq!(
            legacy_counts(&unset, server),
            [3, 1],
            "{server}: it loses nothing"
        );
    }
}

#[test]
fn a_legacy_clients_level_is_in_its_requests_to_a_modern_server() {
    let home = Home::new();
    let (gateway, _running) = start(&home, "modern");
    let [unset, set] = [(); 2].map(|()| Client::plain(&gateway));
    for server in ["pipe", "http"] {
        for (level, expected) in [("info", [3, 1]), ("error", [0, 1]), ("debug", [3, 1])] {
            set.ask("logging/setLevel", json!({ "level": level }));
            assert_eq!(legacy_counts(&set, server), expected, "{server}, {level}");
            assert_eq!(
                set.record(server)["meta"]["io.modelcontextprotocol/logLevel"],
                level
            );
        }
        assert_eq!(
            legacy_counts(&unset, server),
            [0, 0],
            "{server}: the level of another client is not its own"
        );
        assert_eq!(
            modern_counts(&gateway, server, Some("info")),
            [3, 1],
            "{server}"
        );
        assert_eq!(modern_counts(&gateway, server, None), [0, 0], "{server}");
    }
}

#[test]
fn a_level_is_kept_by_the_session_that_succeeds_a_lost_one() {
    let home = Home::new();
    let (gateway, _running) = start(&home, "legacy");
    let capable = Client::open(&gateway, None, "/mcp", json!({ "sampling": {} }));
    capable.ask("logging/setLevel", json!({ "level": "error" }));
    let plain = Client::plain(&gateway);
    plain.ask("logging/setLevel", json!({ "level": "debug" }));
    for client in [&capable, &plain] {
        let expected = legacy_counts(client, "pipe");
        client.ask(
            "tools/call",
            json!({ "name": "pipe_crash", "arguments": {} }),
        );
        assert_eq!(legacy_counts(client, "pipe"), expected);
        // Without a call of the client that has set it.
        assert_eq!(modern_counts(&gateway, "pipe", Some("info")), [3, 1]);
    }
}
