//! Built-in tool `proxy`: lists, describes and calls everything for callers of both eras
//! (docs/proxy.md).

mod batch;
mod calls;
mod queries;
mod sdk;

use serde_json::{Value, json};

use crate::home::Home;
use crate::support::{Client, Gateway, fixture, modern};
use crate::ws::{people, token};

const FULL: &[&str] = &["mcp/*", "chat", "portmoot/grants"];
const LISTED: &str = "[topics.main]\nbuiltin = [\"proxy\", \"proposals\"]\nhistory = 100\n";

/// A gateway with the fixture as `up` and the tools in a topic; a `boss` that may do everything, a
/// `clerk` that may only add, a `scout` that may only propose and a `guest` that may only chat.
fn stage(more: &str) -> (Home, Gateway) {
    let (home, config) = people(&[
        ("boss", FULL),
        (
            "clerk",
            &[
                "mcp/request:tools/call:up_add",
                "mcp/request:resources/read:test://static-text",
            ],
        ),
        ("scout", &["mcp/proposal:*"]),
        ("guest", &["chat"]),
    ]);
    let limits = "[server.limits]\nhold = \"500ms\"\n";
    let gateway = Gateway::start(
        &home,
        &(config + limits + LISTED + &fixture("up", &[]) + more),
    );
    gateway.ready("up");
    (home, gateway)
}

fn client(gateway: &Gateway, who: &str) -> Client {
    Client::of(gateway, &token(who))
}

/// A participant with a client of either era.
struct Caller<'g> {
    gateway: &'g Gateway,
    who: &'g str,
    legacy: Option<Client>,
}

impl<'g> Caller<'g> {
    /// A legacy and a modern client of a participant.
    fn both(gateway: &'g Gateway, who: &'g str) -> [Self; 2] {
        let legacy = Some(client(gateway, who));
        [
            Self {
                gateway,
                who,
                legacy,
            },
            Self {
                gateway,
                who,
                legacy: None,
            },
        ]
    }

    #[track_caller]
    fn ask(&self, method: &str, params: Value) -> Value {
        match &self.legacy {
            Some(client) => client.ask(method, params),
            None => modern(self.gateway, Some(&token(self.who)), method, params).json(),
        }
    }

    /// The result of a call of `proxy`.
    #[track_caller]
    fn proxy(&self, arguments: Value) -> Value {
        let answer = self.ask(
            "tools/call",
            json!({ "name": "proxy", "arguments": arguments }),
        );
        let result = answer["result"].clone();
        assert!(result["content"].is_array(), "{arguments}: {answer}");
        let kind = if self.legacy.is_some() {
            Value::Null
        } else {
            json!("complete")
        };
        assert_eq!(result["resultType"], kind, "{result}");
        result
    }

    /// The text of a call of `proxy` that fails.
    #[track_caller]
    fn fails(&self, arguments: Value) -> String {
        let result = self.proxy(arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(result["content"].as_array().unwrap().len(), 1, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

/// The arguments of a call of `proxy` for a target.
fn calling(kind: &str, path: &str, args: Value) -> Value {
    json!({ "action": "call", "type": kind, "path": path, "args": args })
}
