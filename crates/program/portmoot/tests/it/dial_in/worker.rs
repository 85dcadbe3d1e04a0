//! Participant that serves over a plain socket.

use super::*;

/// A dial-in server whose every envelope the test sends.
pub(super) struct Worker(pub(super) Socket);

impl Worker {
    /// Joins; requests to it stay unanswered.
    pub(super) fn enter(setup: &Started) -> Worker {
        Worker(Socket::enter(
            &setup.gateway,
            "worker",
            "?mode=directed&echo=false",
        ))
    }

    /// Joins and serves these tools.
    pub(super) fn serving(setup: &Started, tools: &[&str]) -> Worker {
        let mut worker = Worker::enter(setup);
        worker.greet(&tools.iter().map(|name| schema(name)).collect::<Vec<_>>());
        setup.wait_for("ready");
        setup.wait_listed(tools);
        worker
    }

    pub(super) fn greet(&mut self, tools: &[Value]) {
        let asked = self.asked("initialize");
        assert_eq!(
            (&asked["from"], &asked["to"]),
            (&json!("portmoot"), &json!(["worker"])),
            "{asked}"
        );
        let info = json!({ "name": "raw", "version": "1" });
        let able = json!({ "tools": { "listChanged": true } });
        self.answer(
            &asked,
            json!({ "protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": info }),
        );
        let notice = self.0.receive_message();
        assert_eq!(
            notice["kind"], "mcp/request:notifications/initialized",
            "{notice}"
        );
        self.list(tools);
    }

    pub(super) fn list(&mut self, tools: &[Value]) {
        let asked = self.asked("tools/list");
        self.answer(&asked, json!({ "tools": tools }));
    }

    /// The next request, which has this method.
    #[track_caller]
    pub(super) fn asked(&mut self, method: &str) -> Value {
        let received = self.0.receive_message();
        assert_eq!(received["payload"]["method"], method, "{received}");
        received
    }

    /// The next request; other envelopes are skipped.
    #[track_caller]
    pub(super) fn next_request(&mut self) -> Value {
        loop {
            let received = self.0.receive_message();
            if received["kind"]
                .as_str()
                .unwrap()
                .starts_with("mcp/request")
            {
                return received;
            }
        }
    }

    pub(super) fn send(&mut self, asked: &Value, kind: &str, payload: &Value) {
        let about = json!({ "correlation_id": asked["id"] });
        let id = format!("{kind} {}", asked["id"]);
        self.0.send(
            kind,
            &id,
            &[asked["from"].as_str().unwrap()],
            about,
            payload,
        );
    }

    pub(super) fn answer(&mut self, asked: &Value, result: Value) {
        let kind = asked["kind"]
            .as_str()
            .unwrap()
            .replace("mcp/request", "mcp/response");
        let payload = json!({ "jsonrpc": "2.0", "id": asked["payload"]["id"], "result": result });
        self.send(asked, &kind, &payload);
    }

    pub(super) fn answer_text(&mut self, asked: &Value, text: &str) {
        self.answer(asked, text_result(text));
    }
}

pub(super) fn text_result(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}
