//! Durations of calls at servers: `/metrics` has them by method and by type of error.

use serde_json::json;

use crate::support::{Client, Gateway, fixture};
use crate::ws::{people, token};

const NAME: &str = "mcp_client_operation_duration_seconds";

#[test]
fn calls_at_servers_are_measured_by_method_and_by_type_of_error() {
    let all: [(&str, &[&str]); 2] = [("ann", &["mcp/*", "portmoot/servers"]), ("bob", &["mcp/*"])];
    let (home, config) = people(&all);
    let gateway = Gateway::start(&home, &(config + &fixture("tools", &[])));
    gateway.ready("tools");
    let ann = Client::of(&gateway, &token("ann"));
    for text in ["one", "isError"] {
        ann.call("tools_echo", json!({ "text": text }));
    }
    // It runs, and says that it failed.
    assert_eq!(ann.call("tools_add", json!({}))["isError"], true);
    for code in [-32602, 7_777, 7_778] {
        let call = json!({ "name": "tools_fail", "arguments": { "code": code } });
        assert_eq!(ann.ask("tools/call", call)["error"]["code"], code);
    }
    let metrics = gateway.get("/metrics", Some(&token("ann"))).body;
    let labels = "server=\"tools\",mcp_method_name=\"tools/call\"";
    for (error_type, count) in [
        ("", 2),
        (",error_type=\"tool_error\"", 1),
        (",error_type=\"-32602\"", 1),
        (",error_type=\"_OTHER\"", 2),
    ] {
        for line in [
            format!("{NAME}_count{{{labels}{error_type}}} {count}"),
            format!("{NAME}_bucket{{le=\"+Inf\",{labels}{error_type}}} {count}"),
        ] {
            assert!(metrics.lines().any(|one| one == line), "{line}\n{metrics}");
        }
    }
    // Who may not see servers learns nothing of their calls.
    let metrics = gateway.get("/metrics", Some(&token("bob"))).body;
    assert!(!metrics.contains(NAME), "{metrics}");
    gateway.stop().expect(0);
}
