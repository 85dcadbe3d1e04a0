//! A server of 2025-11-25 with one tool that can be called as a task, and always the same task.

use serde_json::{Value, json};

use crate::peer::{Peer, answer};

const RELATED: &str = "io.modelcontextprotocol/related-task";
const ID: &str = "task-1";

/// The server, over HTTP or on a pipe.
pub(super) fn server(http: bool) -> Peer {
    if http {
        Peer::http(|message| vec![over_http(message).into_bytes()])
    } else {
        Peer::stdio(|message| reply(message).map(String::into_bytes).into_iter().collect())
    }
}

/// One response: 405 to a GET, 202 to a notification.
fn over_http(message: &Value) -> String {
    match (message.is_null(), reply(message)) {
        (true, _) => "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_owned(),
        (false, None) => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
        (false, Some(body)) => {
            let length = body.len();
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            )
        }
    }
}

/// The answer to a request.
fn reply(message: &Value) -> Option<String> {
    message.get("id")?;
    let params = &message["params"];
    let content = json!([{ "type": "text", "text": "computed in 0.1 s" }]);
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": { "tools": {}, "tasks": { "requests": { "tools": { "call": {} } } } },
            "serverInfo": { "name": "jobs", "version": "1" }
        }),
        "tools/list" => json!({ "tools": [
            { "name": "slow_compute", "inputSchema": { "type": "object" }, "execution": { "taskSupport": "optional" } }
        ] }),
        "tools/call" if params["task"].is_object() => json!({ "task": task("working") }),
        "tools/call" => json!({ "content": content }),
        "tasks/get" if params["taskId"] == ID => task("completed"),
        "tasks/result" if params["taskId"] == ID => {
            json!({ "content": content, "_meta": { (RELATED): { "taskId": ID } } })
        }
        "ping" => json!({}),
        _ => {
            let error = json!({ "code": -32601, "message": "Method not found" });
            return Some(
                json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string(),
            );
        }
    };
    Some(answer(message, &result.to_string()))
}

fn task(status: &str) -> Value {
    let at = "2026-11-22T05:00:00Z";
    json!({ "taskId": ID, "status": status, "createdAt": at, "lastUpdatedAt": at, "ttl": 60_000 })
}
