//! Tasks of servers, between equal eras and between different ones: ownership, relayed messages,
//! lifetimes.

mod eras;
mod followed;
pub(crate) mod jobs;
mod legacy;
mod modern;
mod of_proto;
mod questions;
mod real;
pub(crate) mod restarts;

use serde_json::{Value, json};

use crate::home::Home;
use crate::support::{Client, Gateway};

const ADA: &str = "token-of-ada-who-has-tasks";
const BOB: &str = "token-of-bob-who-has-tasks";
/// The key of `_meta` that names the task of a message.
pub(crate) const RELATED: &str = "io.modelcontextprotocol/related-task";

fn setup() -> Home {
    Home::new().env("ADA_TOKEN", ADA).env("BOB_TOKEN", BOB)
}

/// Two participants with full access.
fn people(home: &Home) -> String {
    let data = home.path().join("data").display().to_string();
    let may = "capabilities = [\"mcp/request:*\", \"mcp/response:*\", \"portmoot/servers\"]\n";
    let one = |name: &str| {
        format!(
            "[participants.{name}]\ntoken_env = \"{}_TOKEN\"\n{may}",
            name.to_uppercase()
        )
    };
    format!(
        "[server]\ndata_dir = {data:?}\n{}{}",
        one("ada"),
        one("bob")
    )
}

/// The id of the task of a call.
#[track_caller]
fn id_of(answer: &Value) -> String {
    let result = &answer["result"];
    let id = result["task"]["taskId"]
        .as_str()
        .or_else(|| result["taskId"].as_str());
    id.unwrap_or_else(|| panic!("no task: {answer}")).to_owned()
}

/// Calls a tool as a task (2025-11-25).
#[track_caller]
pub(crate) fn begin(client: &Client, tool: &str) -> String {
    let answer = client.ask(
        "tools/call",
        json!({ "name": tool, "arguments": {}, "task": { "ttl": 60_000 } }),
    );
    id_of(&answer)
}

#[track_caller]
pub(crate) fn about(client: &Client, method: &str, id: &str) -> Value {
    client.ask(method, json!({ "taskId": id }))
}

/// Checks that an answer equals the one for an unknown task.
#[track_caller]
pub(crate) fn is_unknown(answer: &Value, client: &Client) {
    let nothing = about(client, "tasks/get", "there-is-no-such-task");
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(
        (&answer["error"], &answer["result"]),
        (&nothing["error"], &Value::Null)
    );
}

#[track_caller]
fn client(gateway: &Gateway, token: &str) -> Client {
    Client::of(gateway, token)
}
