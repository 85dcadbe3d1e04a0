//! Paging of merged lists: a cursor is valid only for its participant.

use serde_json::{Value, json};

use crate::peer::{Peer, answer, small, tool};
use crate::socket::{Gateway, LEGACY, until};

const TOKENS: [&str; 2] = ["aaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbb"];
/// One more than a page has.
const TOOLS: usize = 1001;

#[test]
fn another_participants_cursor_is_unknown() {
    let tools: Vec<String> = (0..TOOLS)
        .map(|number| tool(&format!("t{number}")))
        .collect();
    let tools = format!("[{}]", tools.join(","));
    let peer = Peer::stdio(move |message| {
        let said = small(message, &tools).unwrap_or_else(|| answer(message, "{}"));
        message
            .get("id")
            .map(|_| said.into_bytes())
            .into_iter()
            .collect()
    });
    let who = |name: &str| {
        format!("[participants.{name}]\ntoken_env = \"T_{name}\"\ncapabilities = [\"mcp/*\"]\n")
    };
    let config = [peer.child("peer", ""), who("a"), who("b")].concat();
    let gateway = Gateway::serve_with(&config, &[("T_a", TOKENS[0]), ("T_b", TOKENS[1])]);
    let bearers = TOKENS.map(|token| format!("Bearer {token}"));
    let headers = bearers
        .each_ref()
        .map(|bearer| [("authorization", bearer.as_str())]);
    let sessions = headers
        .each_ref()
        .map(|headers| gateway.session_as(headers, LEGACY, "{}"));
    // Participant 0 owns the cursor.
    let list = |legacy: bool, at: usize, cursor: Option<&str>| -> Value {
        let params = cursor.map_or_else(String::new, |cursor| {
            format!("\"cursor\":{}", json!(cursor))
        });
        if legacy {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{params}}}}}"#
            );
            sessions[at].post(body).json()
        } else {
            gateway
                .modern_as(&headers[at], "tools/list", None, &params)
                .json()
        }
    };
    until("all are listed", || {
        list(true, 0, None)["result"]["nextCursor"].is_string()
    });
    for legacy in [true, false] {
        let first = list(legacy, 0, None);
        assert_eq!(
            first["result"]["tools"].as_array().unwrap().len(),
            TOOLS - 1,
            "legacy: {legacy}"
        );
        let cursor = first["result"]["nextCursor"].as_str().unwrap();
        let stranger = list(legacy, 1, Some(cursor));
        assert_eq!(stranger["error"]["code"], -32602, "{stranger}");
        assert_eq!(
            stranger,
            list(legacy, 1, Some("nonsense")),
            "nothing tells that it is anybody's"
        );
        for (method, key) in [("resources/list", "resources"), ("prompts/list", "prompts")] {
            let body =
                json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"cursor": cursor}});
            let other = sessions[0].post(body.to_string()).json();
            assert_eq!(
                other["error"]["code"], -32602,
                "of another list: {key}: {other}"
            );
        }
        let rest = list(legacy, 0, Some(cursor));
        assert_eq!(
            rest["result"]["tools"][0]["name"],
            json!(format!("t{}", TOOLS - 1)),
            "{rest}"
        );
        assert!(rest["result"].get("nextCursor").is_none());
        // The other participant has its own cursor for the same position.
        assert!(
            list(
                legacy,
                1,
                list(legacy, 1, None)["result"]["nextCursor"].as_str()
            )["result"]
                .is_object()
        );
    }
}
