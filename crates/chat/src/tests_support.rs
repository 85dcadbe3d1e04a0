//! Proposals for tests.

use serde_json::{Value, json};

use crate::api::Proposal;

/// A pending proposal of `scout` for the tool `echo` of `worker`, made at 12:30, with other members in place of these.
pub(crate) fn proposal(id: &str, more: &Value) -> Proposal {
    let mut all = json!({
        "id": id, "topic": "main", "state": "pending", "by": "scout", "to": ["worker"], "method": "tools/call",
        "context": "echo", "envelope": format!("e-{id}"),
        "params": { "name": "echo", "arguments": { "text": "please" } },
        "tool": null, "digest": format!("{id}{id}"), "held": false, "at": "2026-07-28T12:30:00.000Z",
        "expires": "2026-07-28T12:35:00.000Z", "decided_by": null, "edited": null, "reason": null, "answer": null,
    });
    for (name, value) in more.as_object().unwrap() {
        all[name] = value.clone();
    }
    serde_json::from_str(&all.to_string()).unwrap()
}
