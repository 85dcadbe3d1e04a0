//! A server of 2025-11-25 with scripted tasks. Task ids are equal at all such servers (`task-1`,
//! `task-2`) unless the call names them. The tool `must` can only be called as a task.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::peer::{Peer, answer, small};

const TOOLS: &str = r#"[{"name":"job","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},
    {"name":"must","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},
    {"name":"never","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},
    {"name":"plain","inputSchema":{"type":"object"}},{"name":"finish","inputSchema":{"type":"object"}},
    {"name":"progress","inputSchema":{"type":"object"}},{"name":"question","inputSchema":{"type":"object"}}]"#;

#[derive(Default)]
struct Job {
    status: &'static str,
    token: Value,
    waits: Option<Value>,
    /// Whether it asks as soon as its result is awaited.
    asks: bool,
    /// How it ended: `tool` is an error of the tool, `protocol` one of the protocol.
    how: String,
}

impl Job {
    fn runs(&self) -> bool {
        matches!(self.status, "working" | "input_required")
    }
}

/// The server.
pub(crate) fn server() -> Peer {
    let jobs: Arc<Mutex<BTreeMap<String, Job>>> = Arc::default();
    Peer::stdio(move |message| {
        let mut jobs = jobs.lock().unwrap();
        let lines = send(message, &mut jobs);
        lines
            .into_iter()
            .map(|line| line.replace('\n', " ").into_bytes())
            .collect()
    })
}

fn task(id: &str, job: &Job) -> Value {
    let at = "2026-11-22T05:00:00Z";
    json!({ "taskId": id, "status": job.status, "createdAt": at, "lastUpdatedAt": at, "ttl": 60_000 })
}

fn related(id: &str) -> Value {
    json!({ (super::RELATED): { "taskId": id } })
}

/// A question inside a task.
fn question(id: &str) -> String {
    let schema = json!({ "type": "object", "properties": { "x": { "type": "string" } } });
    let params = json!({ "message": "which?", "requestedSchema": schema, "_meta": related(id) });
    json!({ "jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": params })
        .to_string()
}

/// The answer to `tasks/result`.
fn end(request: &Value, id: &str, how: &str) -> String {
    let content = json!([{ "type": "text", "text": format!("{id} is done") }]);
    match how {
        "protocol" => {
            let error = json!({ "code": -32050, "message": "the job broke" });
            json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }).to_string()
        }
        how => {
            let result =
                json!({ "content": content, "isError": how == "tool", "_meta": related(id) });
            answer(request, &result.to_string())
        }
    }
}

fn send(message: &Value, jobs: &mut BTreeMap<String, Job>) -> Vec<String> {
    let (method, params) = (
        message["method"].as_str().unwrap_or_default(),
        &message["params"],
    );
    let named = params["taskId"].as_str().unwrap_or_default();
    let error = |why: &str| {
        vec![
            json!({ "jsonrpc": "2.0", "id": message["id"], "error": { "code": -32602, "message": why } })
                .to_string(),
        ]
    };
    match method {
        "initialize" => {
            let able = json!({ "tools": {}, "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } } });
            let info = json!({ "name": "jobs", "version": "1" });
            let version = &params["protocolVersion"];
            let greeting =
                json!({ "protocolVersion": version, "capabilities": able, "serverInfo": info });
            vec![answer(message, &greeting.to_string())]
        }
        "tools/call" => call(message, jobs),
        "tasks/get" | "tasks/cancel" | "tasks/result" => {
            let Some(job) = jobs.get_mut(named) else {
                return error("no such task");
            };
            match method {
                "tasks/cancel" if !job.runs() => return error("it is over"),
                "tasks/cancel" => job.status = "cancelled",
                "tasks/result" if job.runs() => {
                    job.waits = Some(message["id"].clone());
                    let asks = std::mem::take(&mut job.asks);
                    return asks.then(|| question(named)).into_iter().collect();
                }
                "tasks/result" => return vec![end(message, named, &job.how)],
                _ => {}
            }
            vec![answer(message, &task(named, job).to_string())]
        }
        // The answer to a question.
        "" => finish("task-1", "", jobs),
        _ => small(message, TOOLS).into_iter().collect(),
    }
}

fn call(message: &Value, jobs: &mut BTreeMap<String, Job>) -> Vec<String> {
    let params = &message["params"];
    let done = answer(message, r#"{"content":[{"type":"text","text":"plain"}]}"#);
    if params["name"] == "never" {
        return Vec::new();
    }
    if params["task"].is_object() {
        let named = params["arguments"]["id"].as_str().map(str::to_owned);
        let id = named.unwrap_or_else(|| format!("task-{}", jobs.len() + 1));
        let token = params["_meta"]["progressToken"].clone();
        let asks = params["arguments"]["asks"] == true;
        let status = if asks { "input_required" } else { "working" };
        let job = Job {
            status,
            token,
            asks,
            ..Job::default()
        };
        let made = json!({ "task": task(&id, &job) });
        jobs.insert(id, job);
        return vec![answer(message, &made.to_string())];
    }
    if params["name"] == "must" {
        let error = json!({ "code": -32601, "message": "this tool runs as a task only" });
        return vec![json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string()];
    }
    let id = params["arguments"]["task"]
        .as_str()
        .unwrap_or("task-1")
        .to_owned();
    let mut said = match params["name"].as_str().unwrap_or_default() {
        "finish" => finish(
            &id,
            params["arguments"]["how"].as_str().unwrap_or_default(),
            jobs,
        ),
        "progress" => {
            let token = jobs.get(&id).map(|job| job.token.clone());
            let params = json!({ "progressToken": token, "progress": 1, "_meta": related(&id) });
            vec![
                json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
                    .to_string(),
            ]
        }
        "question" => {
            if let Some(job) = jobs.get_mut(&id) {
                job.status = "input_required";
            }
            vec![question(&id)]
        }
        _ => Vec::new(),
    };
    said.push(done);
    said
}

/// Ends a task: sends its status, and its result to the open `tasks/result`.
fn finish(id: &str, how: &str, jobs: &mut BTreeMap<String, Job>) -> Vec<String> {
    let Some(job) = jobs.get_mut(id) else {
        return Vec::new();
    };
    (job.status, job.how) = (
        if how.is_empty() {
            "completed"
        } else {
            "failed"
        },
        how.to_owned(),
    );
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/tasks/status", "params": task(id, job) });
    let waits = job
        .waits
        .take()
        .map(|waits| end(&json!({ "id": waits }), id, how));
    [Some(notice.to_string()), waits]
        .into_iter()
        .flatten()
        .collect()
}
