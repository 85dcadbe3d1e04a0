//! A name that is revoked and issued again: whatever the former bearer owned, in every store, is
//! out of the next one's reach.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::{ANN, Service, Site, text};
use crate::builtin_proposals::data;
use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::peer::Peer;
use crate::support::{Client, Gateway, fixture, modern, until};
use crate::tasks::{about, begin, is_unknown, jobs};
use crate::ws::Socket;

const ABLE: &str = "io.modelcontextprotocol/clientCapabilities";
const STATEFUL: &str = "new_test_input_required_result_request_state";
/// What its bearers may: to propose everything, to call at three servers, to speak.
const MAY: &[&str] = &[
    "mcp/proposal:*",
    "mcp/request:tools/call:jira_*",
    "mcp/request:tools/call:new_*",
    "mcp/request:tools/call:jobs_*",
    "mcp/request:tasks/*",
    "chat",
];
/// What is granted to the former bearer beyond that.
const GRANTED: &str = "mcp/request:tools/call:ops_add";

/// A store of what participants own. Those of sign-ins are rows of `signin/next_bearer.rs`.
struct Store {
    name: &'static str,
    /// The former bearer, with this client, makes something its own, and reaches it. Returns what
    /// another needs to name it.
    own: fn(&Scene, &Client) -> Value,
    /// The next bearer, with this client, tries for it, and fails.
    is_out_of_reach: fn(&Scene, &Client, &Value),
}

const STORES: &[Store] = &[
    Store {
        name: "accounts at servers",
        own: account,
        is_out_of_reach: no_account,
    },
    Store {
        name: "codes for connect pages",
        own: connect_code,
        is_out_of_reach: no_connect_code,
    },
    Store {
        name: "sessions",
        own: session,
        is_out_of_reach: no_session,
    },
    Store {
        name: "ended proposals",
        own: proposal,
        is_out_of_reach: no_proposal,
    },
    Store {
        name: "messages of the room, and cursors",
        own: messages,
        is_out_of_reach: no_messages,
    },
    Store {
        name: "states of requests at servers",
        own: request_state,
        is_out_of_reach: no_request_state,
    },
    Store {
        name: "tasks",
        own: tasks,
        is_out_of_reach: no_tasks,
    },
    Store {
        name: "grants",
        own: grant,
        is_out_of_reach: no_grant,
    },
];

struct Scene {
    site: Site,
    /// The token of the present bearer of the name.
    token: String,
    _jobs: Peer,
}

impl Scene {
    fn start() -> Scene {
        let (service, home, jobs) = (
            Service::start(),
            Home::new().env("ANN", ANN),
            jobs::server(),
        );
        let key = home.write("key", &"5ea1ed0f".repeat(8));
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        let servers = fixture("ops", &[])
            + &fixture("new", &["--era", "modern"])
            + &jobs.child("jobs", "jobs");
        let config = format!(
            "[server]\nkey_file = {key:?}\n[topics.main]\nhistory = 50\nbuiltin = [\"room\"]\n\
             [participants.ann]\ntoken_env = \"ANN\"\ncapabilities = [\"mcp/*\", \"chat\", \"portmoot/grants\"]\n\
             [servers.jira]\nurl = {:?}\nera = \"legacy\"\n[servers.jira.auth]\naccount = \"caller\"\n{servers}",
            service.url()
        );
        let gateway = Gateway::start(&home, &config);
        let mut scene = Scene {
            site: Site {
                home,
                gateway,
                service,
            },
            token: String::new(),
            _jobs: jobs,
        };
        scene.ready();
        scene.issue();
        scene
    }

    fn ready(&self) {
        ["ops", "new", "jobs"]
            .into_iter()
            .for_each(|server| self.site.gateway.ready(server));
    }

    /// Issues the name anew.
    #[track_caller]
    fn issue(&mut self) {
        let capabilities = MAY.iter().flat_map(|one| ["--capability", *one]);
        let new: Vec<&str> = ["token", "new", "tmp"]
            .into_iter()
            .chain(capabilities)
            .collect();
        self.token = self.site.home.run(&new).expect(0).stdout.trim().to_owned();
    }

    fn client(&self) -> Client {
        Client::of(&self.site.gateway, &self.token)
    }

    fn ann(&self) -> Client {
        Client::of(&self.site.gateway, ANN)
    }

    fn get(&self, token: &str, path: &str) -> Reply {
        let bearer = format!("Bearer {token}");
        Connection::open(self.site.address()).exchange(
            "GET",
            path,
            &[("authorization", bearer.as_str())],
            "",
        )
    }

    /// Whether a participant is listed a proposal.
    #[track_caller]
    fn lists(&self, token: &str, id: &Value) -> bool {
        let all = self.get(token, "/api/v1/proposals?all=true");
        assert_eq!(all.status, 200, "{all:?}");
        all.json()["proposals"]
            .as_array()
            .unwrap()
            .iter()
            .any(|proposal| proposal["id"] == *id)
    }

    /// A call of the tool whose state its server seals, with this much more.
    fn stateful(&self, more: &Value) -> Value {
        let able = json!({ ABLE: { "elicitation": { "form": {} } } });
        let mut params = json!({ "name": STATEFUL, "arguments": {}, "_meta": able });
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap_or_default());
        modern(&self.site.gateway, Some(&self.token), "tools/call", params).json()
    }

    /// What the present bearer of the name may.
    fn capabilities(&self) -> String {
        let all = self.get(ANN, "/api/v1/participants?topic=main").json();
        let all = all["participants"].as_array().unwrap();
        let found = all.iter().find(|one| one["id"] == "tmp");
        found.unwrap_or_else(|| panic!("{all:?}"))["capabilities"].to_string()
    }
}

fn account(scene: &Scene, client: &Client) -> Value {
    let link = scene.site.link(client);
    scene.site.connect(&link, &scene.token, "first-tmp");
    until("the account is used", || {
        client
            .call("jira_whoami", json!({}))
            .to_string()
            .contains("first-tmp")
            .then_some(())
    });
    Value::Null
}

fn no_account(scene: &Scene, next: &Client, _: &Value) {
    // It is asked to connect one of its own.
    scene.site.link(next);
}

fn connect_code(scene: &Scene, _: &Client) -> Value {
    json!(scene.site.code(&scene.token))
}

fn no_connect_code(scene: &Scene, next: &Client, code: &Value) {
    let mut browser = super::Browser::default();
    let page = browser.open(scene.site.address(), &scene.site.link(next));
    let refused = browser.submit(
        scene.site.address(),
        &page,
        &[("code", code.as_str().unwrap())],
    );
    assert!(!refused.body.contains("name=\"decision\""), "{refused:?}");
}

fn session(_: &Scene, client: &Client) -> Value {
    json!(client.session)
}

fn no_session(scene: &Scene, _: &Client, session: &Value) {
    let session = session.as_str().unwrap();
    let stolen = Client::resume(&scene.site.gateway, Some(&scene.token), "/mcp", session);
    assert_eq!(stolen.status("tools/list", json!({})), 404);
}

fn proposal(scene: &Scene, client: &Client) -> Value {
    let held = client.begin_call("ops_echo", json!({ "text": "the first one's argument" }));
    let id = scene.site.gateway.pending(&scene.site.home, ANN)["id"].clone();
    let (url, by) = (scene.site.gateway.url(), id.as_str().unwrap());
    scene
        .site
        .home
        .run(&[
            "proposals",
            "approve",
            by,
            "--yes",
            "--url",
            &url,
            "--token",
            ANN,
        ])
        .expect(0);
    until("the answer", || {
        held.next()["result"].is_object().then_some(())
    });
    assert!(scene.lists(&scene.token, &id));
    id
}

fn no_proposal(scene: &Scene, next: &Client, id: &Value) {
    assert!(!scene.lists(&scene.token, id) && scene.lists(ANN, id));
    let shown = scene.get(
        &scene.token,
        &format!("/api/v1/proposals/{}", id.as_str().unwrap()),
    );
    assert!(
        shown.status == 404 && !shown.body.contains("the first one's"),
        "{shown:?}"
    );
    for tool in ["wait_for_proposal", "withdraw_proposal"] {
        let said = next.ask(
            "tools/call",
            json!({ "name": tool, "arguments": { "id": id } }),
        );
        assert!(
            said["error"].is_object() || said["result"]["isError"] == true,
            "{tool}: {said}"
        );
        assert!(
            !said.to_string().contains("the first one's"),
            "{tool}: {said}"
        );
    }
}

fn messages(scene: &Scene, client: &Client) -> Value {
    let ann = scene.ann();
    data(&ann, "say", json!({ "text": "for everyone" }));
    data(
        &ann,
        "say",
        json!({ "text": "to the first tmp", "to": ["tmp"] }),
    );
    data(
        client,
        "say",
        json!({ "text": "of the first tmp", "to": ["ann"] }),
    );
    let page = data(client, "read_messages", json!({}));
    for words in ["for everyone", "to the first tmp", "of the first tmp"] {
        assert!(page.to_string().contains(words), "{page}");
    }
    page["cursor"].clone()
}

fn no_messages(scene: &Scene, next: &Client, cursor: &Value) {
    let bearer = format!("Bearer {}", scene.token);
    for mode in ["all", "directed"] {
        let query = format!("?mode={mode}");
        let welcome = Socket::open_with(&scene.site.gateway, "tmp", &query, &bearer).receive();
        assert_eq!(welcome["kind"], "system/welcome", "{welcome}");
        assert!(!welcome.to_string().contains("first tmp"), "{welcome}");
    }
    let old = next.ask(
        "tools/call",
        json!({ "name": "read_messages", "arguments": { "cursor": cursor } }),
    );
    assert!(
        old["error"].is_object() || old["result"]["isError"] == true,
        "{old}"
    );
    let read = data(next, "read_messages", json!({}));
    assert!(!read.to_string().contains("first tmp"), "{read}");
}

fn request_state(scene: &Scene, _: &Client) -> Value {
    let asked = scene.stateful(&json!({}))["result"].clone();
    let key = asked["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    let given = json!({ key: { "action": "accept", "content": { "ok": true } } });
    json!({ "inputResponses": given, "requestState": asked["requestState"] })
}

fn no_request_state(scene: &Scene, _: &Client, back: &Value) {
    let refused = scene.stateful(back);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

fn tasks(scene: &Scene, client: &Client) -> Value {
    let (open, over) = (begin(client, "jobs_job"), begin(client, "jobs_job"));
    scene.ann().call("jobs_finish", json!({ "task": "task-2" }));
    until("the second one is over", || {
        (about(client, "tasks/get", &over)["result"]["status"] == "completed").then_some(())
    });
    assert_eq!(
        about(client, "tasks/get", &open)["result"]["status"],
        "working"
    );
    json!([open, over])
}

fn no_tasks(_: &Scene, next: &Client, ids: &Value) {
    for id in ids.as_array().unwrap() {
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            is_unknown(&about(next, method, id.as_str().unwrap()), next);
        }
    }
    assert_eq!(
        next.ask("tasks/list", json!({}))["result"]["tasks"],
        json!([])
    );
}

fn grant(scene: &Scene, client: &Client) -> Value {
    let granted = scene.site.post(
        ANN,
        "/api/v1/participants/tmp/grants",
        &json!({ "add": [GRANTED] }),
    );
    assert_eq!(granted.status, 200, "{granted:?}");
    assert!(scene.capabilities().contains(GRANTED));
    client.call("ops_add", json!({ "a": 1, "b": 2 }));
    Value::Null
}

fn no_grant(scene: &Scene, _: &Client, _: &Value) {
    assert!(
        !scene.capabilities().contains(GRANTED),
        "{}",
        scene.capabilities()
    );
}

#[test]
fn nothing_that_a_bearer_of_a_name_owned_is_within_reach_of_the_next() {
    let mut scene = Scene::start();
    let first = scene.client();
    let owned: Vec<Value> = STORES
        .iter()
        .map(|store| (store.own)(&scene, &first))
        .collect();
    scene.site.home.run(&["token", "revoke", "tmp"]).expect(0);
    scene.issue();
    let check = |scene: &Scene, when: &str| {
        let next = scene.client();
        for (store, owned) in STORES.iter().zip(&owned) {
            println!("{}, {when}", store.name);
            (store.is_out_of_reach)(scene, &next, owned);
        }
    };
    check(&scene, "at once");
    // Nor after a restart. What was shared is still there.
    scene.site.restart();
    scene.ready();
    check(&scene, "after a restart");
    assert_eq!(
        text(&scene.ann().call("ops_echo", json!({ "text": "x" }))),
        "x"
    );
}
