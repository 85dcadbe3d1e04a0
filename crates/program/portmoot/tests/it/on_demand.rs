//! Servers on demand: lists start nothing, a process runs where it is used, and ends when it is not
//! needed.

mod life;
mod lists;
mod one_process;
mod starts;

use serde_json::{Value, json};

use crate::support::{Client, Gateway, modern, until};

/// What a client of every kind of question declares.
fn able() -> Value {
    json!({ "roots": { "listChanged": true }, "sampling": {}, "elicitation": {} })
}

/// A legacy client that declares everything, so that it gets sessions of its own.
#[track_caller]
fn asked(gateway: &Gateway) -> Client {
    Client::open(gateway, None, "/mcp", able())
}

/// The result of a request of a modern client that declares everything.
#[track_caller]
fn of_modern(gateway: &Gateway, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": able() });
    let answer = modern(gateway, None, method, params).json();
    assert!(answer["result"].is_object(), "{method}: {answer}");
    answer["result"].clone()
}

/// The names of all tools, page by page.
#[track_caller]
fn tools(client: &Client) -> Vec<String> {
    pages(|params| client.ask("tools/list", params)["result"].clone())
}

/// The names of the tools on all pages of a list.
#[track_caller]
fn pages(ask: impl Fn(Value) -> Value) -> Vec<String> {
    let (mut names, mut params) = (Vec::new(), json!({}));
    loop {
        let page = ask(params);
        let tools = page["tools"].as_array().unwrap_or_else(|| panic!("{page}"));
        names.extend(
            tools
                .iter()
                .map(|tool| tool["name"].as_str().unwrap().to_owned()),
        );
        if page["nextCursor"].is_null() {
            return names;
        }
        params = json!({ "cursor": page["nextCursor"] });
    }
}

/// The names of these servers of which a list of tools has the tool `echo`.
fn echoing<'n>(listed: &[String], names: &'n [String]) -> Vec<&'n String> {
    names
        .iter()
        .filter(|name| listed.contains(&format!("{name}_echo")))
        .collect()
}

/// Waits until the tools of all these servers are listed.
#[track_caller]
fn all_listed(gateway: &Gateway, names: &[String]) {
    let client = Client::plain(gateway);
    until("all servers are listed", || {
        (echoing(&tools(&client), names).len() == names.len()).then_some(())
    });
    assert_eq!(client.delete(), 204);
}
