//! Servers of both eras: their legacy clients have the legacy side, whatever revisions they list.

use harness::Running;
use serde_json::json;

use crate::home::Home;
use crate::support::{Client, Gateway, fixture, modern};

#[test]
fn a_legacy_client_has_the_legacy_side_of_a_server_that_lists_only_the_modern_revision() {
    let home = Home::new();
    let flags = ["--era", "both", "--lists-modern"];
    let running = Running::fixture(&flags);
    let config = fixture("pipe", &flags) + &format!("[servers.http]\nurl = \"{}\"\n", running.url());
    let gateway = Gateway::start(&home, &config);
    for server in ["pipe", "http"] {
        let version = |record: &serde_json::Value| record["protocolVersion"].clone();
        let asked =
            modern(&gateway, None, "tools/call", json!({ "name": format!("{server}_record") })).json();
        assert_eq!(version(&asked["result"]["structuredContent"]), "2026-07-28");
        let client = Client::open(&gateway, None, "/mcp", json!({ "sampling": {} }));
        assert_eq!(version(&client.record(server)), "2025-11-25", "{server}");
        // It is asked, and gets log messages at its level.
        let call = client.begin_call(&format!("{server}_test_sampling"), json!({ "prompt": "?" }));
        let question = call.next_of("sampling/createMessage");
        let content = json!({ "type": "text", "text": "yes" });
        client.answer(&question, json!({ "role": "assistant", "content": content, "model": "m" }));
        assert_eq!(call.next()["result"]["content"][0]["text"], "LLM response: yes");
        for (level, lines) in [("error", 0), ("info", 3)] {
            client.ask("logging/setLevel", json!({ "level": level }));
            let received = client.begin_call(&format!("{server}_test_tool_with_logging"), json!({})).rest();
            let logged = received.iter().filter(|message| message["method"] == "notifications/message");
            assert_eq!(logged.count(), lines, "{server}, {level}: {received:?}");
        }
    }
}
