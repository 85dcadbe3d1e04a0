//! Scopes: they narrow what a participant may do, in lists and calls alike, and may be asked for
//! when needed.

use serde_json::{Value, json};

use super::provider::Provider;
use super::{challenge, initialize, resource};
use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::support::{Gateway, modern, modern_stream, until};
use crate::tasks::{jobs, restarts};
use crate::ws::Socket;

const SCOPES: &str = "[scopes.\"mcp:read\"]\nbaseline = true\ncapabilities = [\"mcp/request:tools/call:a_echo\"]\n\
    [scopes.\"mcp:write\"]\nimplies = [\"mcp:read\"]\ncapabilities = [\"mcp/request:tools/call:*\"]\n";

struct Session<'g> {
    gateway: &'g Gateway,
    id: String,
}

impl Session<'_> {
    fn ask(&self, token: &str, message: &Value) -> Reply {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-session-id", self.id.as_str()),
            ("authorization", bearer.as_str()),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        Connection::open(self.gateway.address()).exchange(
            "POST",
            "/mcp",
            &headers,
            &message.to_string(),
        )
    }

    fn call(&self, token: &str, tool: &str) -> Reply {
        self.call_as(7, token, tool)
    }

    fn call_as(&self, id: usize, token: &str, tool: &str) -> Reply {
        let params = json!({"name": tool, "arguments": {"text": "x"}});
        self.ask(
            token,
            &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}),
        )
    }

    fn tools(&self, token: &str) -> Vec<String> {
        let listed = self
            .ask(
                token,
                &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
            )
            .json();
        let tools = listed["result"]["tools"]
            .as_array()
            .unwrap_or_else(|| panic!("{listed}"));
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn start(provider: &Provider, step_up: bool) -> (Home, Gateway) {
    let home = Home::new();
    let issuer = format!("issuer = \"{}\"\n", provider.issuer());
    let config =
        super::config(provider, SCOPES).replace(&issuer, &format!("{issuer}step_up = {step_up}\n"));
    let gateway = Gateway::start(&home, &config);
    gateway.ready("a");
    (home, gateway)
}

fn token(provider: &Provider, scope: &str) -> String {
    provider.forged(json!({}), json!({"scope": scope}), "a")
}

#[test]
fn scopes_narrow_lists_and_calls_alike_and_never_add() {
    let provider = Provider::start(600);
    let (_home, gateway) = start(&provider, false);
    let (read, write, none) = (
        token(&provider, "mcp:read"),
        token(&provider, "mcp:write openid"),
        token(&provider, "openid *"),
    );
    let opened = initialize(&gateway, "/mcp", Some(&read));
    let session = Session {
        gateway: &gateway,
        id: opened.header("mcp-session-id").unwrap().to_owned(),
    };
    assert_eq!(session.tools(&read), ["a_echo"]);
    assert!(session.call(&read, "a_echo").json()["result"].is_object());
    let (refused, absent) = (
        session.call(&read, "a_add").json(),
        session.call(&read, "a_no_such").json(),
    );
    assert_eq!(
        refused.to_string().replace("a_add", "X"),
        absent.to_string().replace("a_no_such", "X")
    );
    // Another token on the same session.
    let all = session.tools(&write);
    assert!(
        all.len() > 3 && all.contains(&"a_echo".to_owned()),
        "{all:?}"
    );
    assert_eq!(session.tools(&read), ["a_echo"]);
    assert!(session.tools(&none).is_empty());
    assert!(session.call(&none, "a_echo").json()["error"].is_object());
    // A machine's own rights stay the bound.
    let claims = json!({"scope": "mcp:write", "sub": "m", "preferred_username": "m", "groups": ["machines"]});
    let machine = provider.forged(json!({}), claims, "a");
    let opened = initialize(&gateway, "/mcp", Some(&machine));
    let session = Session {
        gateway: &gateway,
        id: opened.header("mcp-session-id").unwrap().to_owned(),
    };
    assert!(
        session
            .tools(&machine)
            .iter()
            .all(|tool| tool.starts_with("a_e"))
    );
    // The API too: the scopes have nothing of the gateway's own acts.
    assert_eq!(
        gateway.get("/api/v1/participants", Some(&write)).status,
        200
    );
    assert_eq!(gateway.get("/api/v1/tokens", Some(&write)).status, 403);
}

#[test]
fn a_call_beyond_the_scope_is_answered_with_the_scope_that_it_needs() {
    let provider = Provider::start(600);
    let (_home, gateway) = start(&provider, true);
    let (read, write) = (token(&provider, "mcp:read"), token(&provider, "mcp:write"));
    let opened = initialize(&gateway, "/mcp", Some(&read));
    let session = Session {
        gateway: &gateway,
        id: opened.header("mcp-session-id").unwrap().to_owned(),
    };
    assert!(
        session.tools(&read).len() > 3,
        "what another token would be good for is listed"
    );
    let reply = session.call(&read, "a_add");
    assert_eq!(reply.status, 403, "{reply:?}");
    assert_eq!(
        challenge(&reply),
        "Bearer error=\"insufficient_scope\", error_description=\"this call needs mcp:write\", \
         resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/gw/mcp\", scope=\"mcp:write\""
    );
    let error = reply.json();
    assert_eq!(
        (&error["id"], &error["error"]["data"]["code"]),
        (&json!(7), &json!("insufficient_scope"))
    );
    assert_eq!(error["error"]["data"]["scope"], "mcp:write");
    let absent = session.call(&read, "a_no_such");
    assert_eq!((absent.status, challenge(&absent)), (200, ""));
    let again = session.call(&write, "a_add");
    assert_eq!(again.status, 200, "on the same session: {again:?}");
    assert_eq!(resource("/mcp"), "https://mcp.example.com/gw/mcp");
}

/// Calls that are at a server at once before it answers any.
const TOGETHER: usize = 16;

#[test]
fn calls_with_two_tokens_in_one_session_are_at_a_server_at_once_each_judged_by_its_own_scopes() {
    let provider = Provider::start(600);
    let home = Home::new();
    let script = home.write("gathers.py", include_str!("../gathers.py"));
    let more = format!(
        "[scopes.left]\ncapabilities = [\"mcp/request:tools/call:g_left\"]\n\
         [scopes.right]\ncapabilities = [\"mcp/request:tools/call:g_right\"]\n\
         [servers.g]\ncommand = \"python3\"\nargs = [{script:?}, \"{TOGETHER}\"]\n"
    );
    let gateway = Gateway::start(&home, &super::config(&provider, &more));
    gateway.ready("g");
    let [left, right] = ["left", "right"].map(|scope| token(&provider, scope));
    let opened = initialize(&gateway, "/mcp", Some(&left));
    let session = &Session {
        gateway: &gateway,
        id: opened.header("mcp-session-id").unwrap().to_owned(),
    };
    std::thread::scope(|scope| {
        let call = |id: usize| {
            let (token, tool) = match id % 2 {
                0 => (&left, "left"),
                _ => (&right, "right"),
            };
            scope.spawn(move || {
                let reply = session.call_as(id, token, &format!("g_{tool}"));
                assert_eq!(reply.status, 200, "{reply:?}");
                let answer = reply.json();
                assert_eq!(answer["id"], id, "{answer}");
                assert_eq!(answer["result"]["content"][0]["text"], tool, "{answer}");
            })
        };
        let mut calls: Vec<_> = (1..TOGETHER).map(call).collect();
        // Meanwhile neither token gains what the other one is good for.
        for (token, tool) in [(&left, "g_right"), (&right, "g_left")] {
            let refused = session.call_as(TOGETHER + 1, token, tool).json();
            assert!(refused["error"].is_object(), "{refused}");
            assert_eq!(session.tools(token).len(), 1);
        }
        assert!(calls.iter().all(|call| !call.is_finished()));
        calls.push(call(TOGETHER));
        calls.into_iter().for_each(|call| call.join().unwrap());
    });
}

/// A modern request of a client that knows tasks.
fn knows_tasks(mut params: Value) -> Value {
    let able = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": able });
    params
}

#[test]
fn a_task_is_unknown_to_a_token_that_is_not_good_for_its_tool() {
    let (provider, home, server) = (Provider::start(600), Home::new(), jobs::server());
    let more = SCOPES.to_owned() + &server.child("j", "j");
    let gateway = Gateway::start(&home, &super::config(&provider, &more));
    gateway.ready("j");
    let (read, write) = (token(&provider, "mcp:read"), token(&provider, "mcp:write"));
    let opened = initialize(&gateway, "/mcp", Some(&write));
    let session = Session {
        gateway: &gateway,
        id: opened.header("mcp-session-id").unwrap().to_owned(),
    };
    let ask = |token: &str, method: &str, params: Value| {
        let message = json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": params});
        session.ask(token, &message).json()
    };
    let ask_modern = |token: &str, method: &str, task: &str| {
        let params = json!({ "taskId": task, "inputResponses": {} });
        modern(&gateway, Some(token), method, knows_tasks(params)).json()
    };
    let begin = || {
        let params = json!({ "name": "j_job", "arguments": {}, "task": { "ttl": 60_000 } });
        let made = ask(&write, "tools/call", params);
        made["result"]["task"]["taskId"]
            .as_str()
            .unwrap_or_else(|| panic!("{made}"))
            .to_owned()
    };
    let (task, other) = (begin(), begin());
    let named = |task: &str| json!({ "taskId": task });
    let listed = |token: &str| {
        let page = ask(token, "tasks/list", json!({}));
        page["result"]["tasks"]
            .as_array()
            .unwrap_or_else(|| panic!("{page}"))
            .len()
    };
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = ask(&read, method, named(&task));
        let unknown = ask(&read, method, named("there-is-no-such-task"));
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
        assert_eq!(refused, unknown, "{method}");
    }
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let refused = ask_modern(&read, method, &task);
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
        assert_eq!(refused, ask_modern(&read, method, "there-is-no-such-task"));
    }
    assert_eq!((listed(&read), listed(&write)), (0, 2));
    let listen = |token: &str| {
        let filter = knows_tasks(json!({ "notifications": { "taskIds": [task] } }));
        let events = modern_stream(&gateway, Some(token), "subscriptions/listen", filter);
        let first = events.next_of("notifications/subscriptions/acknowledged");
        (events, first["params"]["notifications"].clone())
    };
    let (to_read, agreed) = listen(&read);
    assert_eq!(agreed, json!({}));
    let (to_write, agreed) = listen(&write);
    assert_eq!(agreed, json!({ "taskIds": [task] }));
    // What the narrow token tried has changed nothing.
    let now = ask(&write, "tasks/get", named(&task));
    assert_eq!(now["result"]["status"], "working", "{now}");
    assert_eq!(
        ask_modern(&write, "tasks/get", &task)["result"]["status"],
        "working"
    );
    let finish = json!({ "name": "j_finish", "arguments": { "task": "task-1", "how": "" } });
    ask(&write, "tools/call", finish);
    assert_eq!(
        to_write.next_of("notifications/tasks")["params"]["status"],
        "completed"
    );
    let result = ask(&write, "tasks/result", named(&task));
    assert_eq!(
        result["result"]["content"][0]["text"], "task-1 is done",
        "{result}"
    );
    let refused = ask(&read, "tasks/result", named(&task));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let cancelled = ask(&write, "tasks/cancel", named(&other));
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    assert!(
        to_read
            .so_far()
            .iter()
            .all(|one| one["method"] != "notifications/tasks")
    );
}

#[test]
fn a_task_that_was_forgotten_is_not_taken_up_for_a_token_that_is_not_good_for_its_tool() {
    let (provider, home, server) = (Provider::start(600), Home::new(), restarts::scripted());
    let more = format!("{SCOPES}[servers.m]\nurl = {:?}\n", server.url());
    let gateway = Gateway::start(&home, &super::config(&provider, &more));
    gateway.ready("m");
    let (read, write) = (token(&provider, "mcp:read"), token(&provider, "mcp:write"));
    let opened = initialize(&gateway, "/mcp", Some(&write));
    let session = Session {
        gateway: &gateway,
        id: opened.header("mcp-session-id").unwrap().to_owned(),
    };
    let ask = |token: &str, method: &str, params: Value| {
        let message = json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": params});
        session.ask(token, &message).json()
    };
    let arguments = json!({ "own": "short", "ttl": 1 });
    let call = json!({ "name": "m_job", "arguments": arguments, "task": {} });
    let made = ask(&write, "tools/call", call);
    let task = made["result"]["task"]["taskId"].clone();
    assert!(task.is_string(), "{made}");
    let listed = || ask(&write, "tasks/list", json!({}))["result"]["tasks"].clone();
    until("the task is forgotten", || {
        (listed() == json!([])).then_some(())
    });
    let refused = ask(&read, "tasks/get", json!({ "taskId": task }));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(listed(), json!([]));
    // Its server still knows it.
    let found = ask(&write, "tasks/get", json!({ "taskId": task }));
    assert_eq!(found["result"]["status"], "working", "{found}");
    assert_eq!(listed()[0]["taskId"], task);
}

#[test]
fn an_author_sees_its_rules_with_a_token_that_is_good_for_what_they_decide() {
    let (provider, home) = (Provider::start(600), Home::new());
    let rule = |id: &str, author: &str| {
        format!(
            "[[rule]]\nid = \"{id}\"\nauthor = \"{author}\"\ndecision = \"reject\"\n\
             kind = \"mcp/request:tools/call:add\"\nto = \"a\"\nproposers = [\"*\"]\n"
        )
    };
    home.write(
        "rules.toml",
        &(rule("r1", "corp:m") + &rule("r2", "corp:n")),
    );
    let topic = "[topics.main]\n";
    let config = super::config(&provider, SCOPES)
        .replace(topic, &format!("{topic}rules = \"rules.toml\"\n"));
    let gateway = Gateway::start(&home, &config);
    gateway.ready("a");
    let seen = |scope: &str| -> Vec<Value> {
        let claims =
            json!({"scope": scope, "sub": "m", "preferred_username": "m", "groups": ["machines"]});
        let token = provider.forged(json!({}), claims, "a");
        let seen = gateway.get("/api/v1/topics/main/rules", Some(&token));
        assert_eq!(seen.status, 200, "{seen:?}");
        let rules = seen.json()["rules"].clone();
        let rules = rules.as_array().unwrap().iter();
        rules.map(|rule| rule["rule"].clone()).collect()
    };
    // It may not call the tool itself: its own rule it sees as its author, and no other one.
    assert_eq!(seen("mcp:write"), ["r1.1"]);
    assert!(seen("mcp:read").is_empty());
    assert!(seen("openid").is_empty());
}

/// The capabilities of all scopes of [`proposing`]: looking at proposals and lists.
const LOOKING: &str = "\"mcp/request:tools/list\", \"mcp/request:tools/call:*_proposal*\"";

/// Scopes for one tool that may only be proposed, for another one, and for neither.
fn proposing() -> String {
    let scope =
        |name: &str, more: &str| format!("[scopes.{name}]\ncapabilities = [{more}{LOOKING}]\n");
    scope("add", "\"mcp/proposal:tools/call:a_add\", ")
        + &scope("echo", "\"mcp/proposal:tools/call:a_echo\", ")
        + &scope("looks", "")
}

/// A token, with each wire on which requests name a proposal of its participant.
struct Proposer<'g> {
    gateway: &'g Gateway,
    scope: &'static str,
    token: String,
    room: Socket,
    asked: usize,
}

impl<'g> Proposer<'g> {
    fn enter(gateway: &'g Gateway, scope: &'static str, token: String) -> Self {
        let bearer = format!("Bearer {token}");
        let mut room = Socket::open_with(gateway, "corp:m", "", &bearer);
        room.receive_until(|received| received["kind"] == "system/welcome");
        Self {
            gateway,
            scope,
            token,
            room,
            asked: 0,
        }
    }

    /// An id of an envelope that its participant has not used yet.
    fn next_id(&mut self) -> String {
        self.asked += 1;
        format!("{} {}", self.scope, self.asked)
    }

    /// The ids of the proposals in the list of the built-in tool and of the API.
    fn listed(&self) -> [Vec<Value>; 2] {
        let call = json!({ "name": "list_proposals", "arguments": {} });
        let tool = modern(self.gateway, Some(&self.token), "tools/call", call).json();
        let api = self.gateway.get("/api/v1/proposals", Some(&self.token));
        let ids = |all: &Value| {
            let all = all["proposals"].as_array();
            let all = all.unwrap_or_else(|| panic!("{tool}"));
            all.iter().map(|one| one["id"].clone()).collect()
        };
        [ids(&tool["result"]["structuredContent"]), ids(&api.json())]
    }

    /// The answers to requests by MCP that name a proposal.
    fn by_mcp(&self, id: &str) -> Vec<Value> {
        let ask = |method: &str, params: Value| {
            let mut answer = modern(self.gateway, Some(&self.token), method, params).json();
            answer["id"] = json!(null);
            answer
        };
        let call = |tool: &str, arguments: Value| {
            ask(
                "tools/call",
                json!({ "name": tool, "arguments": arguments }),
            )
        };
        vec![
            call("show_proposal", json!({ "id": id })),
            call("wait_for_proposal", json!({ "id": id, "wait": false })),
            call("withdraw_proposal", json!({ "id": id })),
            ask("tasks/cancel", knows_tasks(json!({ "taskId": id }))),
        ]
    }

    /// The answers to requests by the API that name a proposal.
    fn by_api(&self, id: &str) -> [Value; 2] {
        let path = format!("/api/v1/proposals/{id}");
        let shown = self.gateway.get(&path, Some(&self.token));
        let bearer = format!("Bearer {}", self.token);
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let path = format!("{path}/withdraw");
        let withdrawn =
            Connection::open(self.gateway.address()).exchange("POST", &path, &headers, "{}");
        [shown, withdrawn].map(|reply| json!([reply.status, reply.json()]))
    }

    /// The answer to a request to the gateway in the room.
    fn in_room(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.next_id();
        self.room.call(&id, &["portmoot"], tool, arguments);
        let answer = self
            .room
            .receive_until(|received| received["correlation_id"] == json!(id));
        let mut payload = answer["payload"].clone();
        payload["id"] = json!(null);
        payload
    }

    /// The built-in tools that the gateway lists in the room.
    fn tools_in_room(&mut self) -> Vec<String> {
        let id = self.next_id();
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {} });
        self.room.send(
            "mcp/request:tools/list",
            &id,
            &["portmoot"],
            json!({}),
            &request,
        );
        let answer = self
            .room
            .receive_until(|received| received["correlation_id"] == json!(id));
        let tools = answer["payload"]["result"]["tools"].as_array();
        let tools = tools.unwrap_or_else(|| panic!("{answer}"));
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[test]
fn a_held_call_is_unknown_on_every_wire_to_a_token_that_is_not_good_for_its_tool() {
    let (provider, home) = (Provider::start(600), Home::new());
    let machines = format!("capabilities = [\"mcp/proposal:*\", {LOOKING}]");
    let config = super::config(&provider, &proposing())
        .replace(
            "[topics.main]\n",
            "[topics.main]\nbuiltin = [\"proposals\", \"room\"]\n",
        )
        .replace(
            "capabilities = [\"mcp/request:tools/call:a_e*\", \"portmoot/servers\"]",
            &machines,
        );
    let gateway = Gateway::start(&home, &config);
    gateway.ready("a");
    let token = |scope: &str| {
        let claims =
            json!({"scope": scope, "sub": "m", "preferred_username": "m", "groups": ["machines"]});
        provider.forged(json!({}), claims, "a")
    };
    let add = Proposer::enter(&gateway, "add", token("add"));
    let call = json!({ "name": "a_add", "arguments": {"a": 1, "b": 2} });
    let held = modern_stream(&gateway, Some(&add.token), "tools/call", call);
    let id = until("the call is held", || add.listed()[1].first().cloned());
    let id = id.as_str().unwrap();
    let none = "00000000000000000000000000000000";
    let of_add = [json!(id)];
    assert!(add.listed().iter().all(|listed| *listed == of_add));
    for (scope, may_propose) in [("echo", true), ("looks", false)] {
        let mut other = Proposer::enter(&gateway, scope, token(scope));
        let listed = other.listed();
        assert!(listed.iter().all(Vec::is_empty), "{scope}: {listed:?}");
        let unknown = |answers: &[Value]| {
            let text = json!(answers).to_string();
            assert!(text.contains("there is no such"), "{scope}: {text}");
            text.replace(none, id)
        };
        assert_eq!(unknown(&other.by_mcp(id)), unknown(&other.by_mcp(none)));
        assert_eq!(unknown(&other.by_api(id)), unknown(&other.by_api(none)));
        if may_propose {
            let withdraw = |other: &mut Proposer<'_>, id: &str| {
                [other.in_room("withdraw_proposal", json!({ "id": id }))]
            };
            let refused = unknown(&withdraw(&mut other, id));
            assert_eq!(refused, unknown(&withdraw(&mut other, none)));
        }
        let shown = other.in_room("show_proposal", json!({ "id": id }));
        assert!(shown.to_string().contains("there is no such"), "{shown}");
        let listed = other.in_room("list_proposals", json!({ "all": true }));
        let listed = &listed["result"]["structuredContent"]["proposals"];
        assert_eq!(*listed, json!([]), "{scope}");
        let tools = other.tools_in_room();
        let withdraws = tools.contains(&"withdraw_proposal".to_owned());
        assert_eq!(withdraws, may_propose, "{scope}: {tools:?}");
    }
    assert!(held.so_far().is_empty(), "it still waits");
    let shown = gateway.get(&format!("/api/v1/proposals/{id}"), Some(&add.token));
    assert_eq!(shown.json()["state"], "pending");
    let withdrawn = add.by_api(id);
    assert_eq!(withdrawn[1][1]["state"], "withdrawn", "{withdrawn:?}");
}
