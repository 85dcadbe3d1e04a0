//! Tasks and restarts of the gateway: those of modern servers over HTTP go on, and the others say
//! that they ended.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::Running;
use serde_json::{Value, json};

use super::{ADA, BOB, about, client, id_of, is_unknown, people, setup};
use crate::path_cases;
use crate::peer::{Peer, answer};
use crate::support::{Client, Gateway, fixture, modern, until};

/// Tasks of each client that are acknowledged before the gateway is killed.
const ACKNOWLEDGED: usize = 8;

fn knows_tasks(mut params: Value) -> Value {
    let able = json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": able });
    params
}

fn get(gateway: &Gateway, id: &str) -> Value {
    modern(
        gateway,
        Some(ADA),
        "tasks/get",
        knows_tasks(json!({ "taskId": id })),
    )
    .json()
}

/// The ids of all tasks that a client's lists have, page by page.
fn listed(client: &Client) -> Vec<String> {
    let (mut ids, mut params) = (Vec::new(), json!({}));
    loop {
        let page = client.ask("tasks/list", params)["result"].clone();
        let tasks = page["tasks"]
            .as_array()
            .unwrap_or_else(|| panic!("no list: {page}"));
        ids.extend(
            tasks
                .iter()
                .map(|task| task["taskId"].as_str().unwrap().to_owned()),
        );
        if page["nextCursor"].is_null() {
            return ids;
        }
        params = json!({ "cursor": page["nextCursor"] });
    }
}

/// A modern server over HTTP. The arguments of a call say which task it becomes (`own`) and for how
/// long (`ttl`), or which kind its result has otherwise (`kind`); the server does not know the task
/// `gone` afterwards.
pub(crate) fn scripted() -> Peer {
    Peer::http(|message| {
        let at = r#""createdAt":"2026-11-22T05:00:00Z","lastUpdatedAt":"2026-11-22T05:00:00Z","pollIntervalMs":50"#;
        let arguments = &message["params"]["arguments"];
        let said = match message["method"].as_str().unwrap_or_default() {
            "server/discover" => r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"t","version":"1"}}}"#.to_owned(),
            "tools/list" => r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"job","inputSchema":{"type":"object"}}]}"#.to_owned(),
            "tools/call" if arguments["kind"].is_string() => {
                format!(r#"{{"resultType":{},"content":[]}}"#, arguments["kind"])
            }
            "tools/call" => {
                let (own, ttl) = (&arguments["own"], &arguments["ttl"]);
                format!(r#"{{"resultType":"task","taskId":{own},"status":"working","ttlMs":{ttl},{at}}}"#)
            }
            "tasks/get" if message["params"]["taskId"] != "gone" => {
                let own = &message["params"]["taskId"];
                format!(r#"{{"resultType":"complete","taskId":{own},"status":"working","ttlMs":null,{at}}}"#)
            }
            "tasks/cancel" => r#"{"resultType":"complete"}"#.to_owned(),
            _ => {
                let id = &message["id"];
                let error = r#"{"code":-32602,"message":"no such task"}"#;
                return response(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
            }
        };
        response(&answer(message, &said))
    })
}

fn response(body: &str) -> Vec<Vec<u8>> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
    vec![format!("{head}: {}\r\n\r\n{body}", body.len()).into_bytes()]
}

/// Begins the task `own` of a scripted server, with this time to live, in milliseconds or `null`.
fn begin_own(client: &Client, own: &str, ttl: &Value) -> Value {
    client.ask(
        "tools/call",
        json!({ "name": "m_job", "arguments": { "own": own, "ttl": ttl }, "task": {} }),
    )
}

/// Begins tasks until the gateway is killed, and keeps the ids of those that it acknowledged.
fn begin_all(kept: &Mutex<Vec<String>>, killed: &AtomicBool, begin: impl Fn() -> Value) {
    while !killed.load(Ordering::SeqCst) && kept.lock().unwrap().len() < 100 {
        // The gateway may be killed during the request.
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&begin));
        if let Ok(made) = made {
            kept.lock().unwrap().push(id_of(&made));
        }
    }
}

#[test]
fn a_killed_gateway_loses_no_acknowledged_task_of_a_modern_server_over_http() {
    let (home, server) = (setup(), Running::fixture(&["--era", "modern"]));
    let config = people(&home) + &format!("[servers.m]\nurl = {:?}\n", server.url());
    let gateway = Gateway::start(&home, &config);
    let call = json!({ "name": "m_slow_compute", "arguments": { "seconds": 0.5 } });
    let as_task = json!({ "name": "m_slow_compute", "arguments": { "seconds": 0.5 }, "task": {} });
    let (of_2025, of_2026, killed) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let ada = client(&gateway, ADA);
            begin_all(&of_2025, &killed, || ada.ask("tools/call", as_task.clone()));
        });
        scope.spawn(|| {
            let begin =
                || modern(&gateway, Some(ADA), "tools/call", knows_tasks(call.clone())).json();
            begin_all(&of_2026, &killed, begin);
        });
        let begun = |kept: &Mutex<Vec<String>>| kept.lock().unwrap().len() >= ACKNOWLEDGED;
        until("tasks are acknowledged", || {
            (begun(&of_2025) && begun(&of_2026)).then_some(())
        });
        gateway.signal("KILL");
        killed.store(true, Ordering::SeqCst);
    });
    drop(gateway);

    let gateway = Gateway::start(&home, &config);
    let (ada, bob) = (client(&gateway, ADA), client(&gateway, BOB));
    let (of_2025, of_2026) = (of_2025.into_inner().unwrap(), of_2026.into_inner().unwrap());
    // Its lists have them before it asks for one.
    let all = listed(&ada);
    let missing: Vec<_> = of_2025
        .iter()
        .chain(&of_2026)
        .filter(|id| !all.contains(id))
        .collect();
    assert!(
        missing.is_empty(),
        "{} of {} tasks are not listed",
        missing.len(),
        all.len()
    );
    assert_eq!(listed(&bob), [""; 0]);
    for id in &of_2025 {
        is_unknown(&about(&bob, "tasks/result", id), &bob);
        let end = about(&ada, "tasks/result", id);
        assert_eq!(
            end["result"]["content"][0]["text"], "computed in 0.5 s",
            "{end}"
        );
    }
    for id in &of_2026 {
        let end = until("the task ends", || {
            let task = get(&gateway, id)["result"].clone();
            assert_eq!(task["taskId"], json!(id), "{task}");
            (task["status"] == "completed").then_some(task)
        });
        assert_eq!(end["result"]["content"][0]["text"], "computed in 0.5 s");
    }
    // Each era's caller has the tasks of the other.
    assert_eq!(
        about(&ada, "tasks/get", &of_2026[0])["result"]["status"],
        "completed"
    );
    assert_eq!(get(&gateway, &of_2025[0])["result"]["status"], "completed");
}

#[test]
fn questions_of_a_task_are_asked_again_after_a_restart() {
    let (home, server) = (setup(), Running::fixture(&["--era", "modern"]));
    let config = people(&home) + &format!("[servers.m]\nurl = {:?}\n", server.url());
    let gateway = Gateway::start(&home, &config);
    let able =
        |gateway: &Gateway| Client::open(gateway, Some(ADA), "/mcp", json!({ "elicitation": {} }));
    let ada = able(&gateway);
    let id = id_of(&ada.ask(
        "tools/call",
        json!({ "name": "m_confirm_delete", "arguments": {}, "task": {} }),
    ));
    let waits = ada.begin(&ada.request("tasks/result", json!({ "taskId": id })));
    waits.next_of("elicitation/create");
    drop(gateway);
    let gateway = Gateway::start(&home, &config);
    let ada = able(&gateway);
    let waits = ada.begin(&ada.request("tasks/result", json!({ "taskId": id })));
    let question = waits.next_of("elicitation/create");
    ada.answer(
        &question,
        json!({ "action": "accept", "content": { "confirm": true } }),
    );
    assert_eq!(
        waits.next()["result"]["content"][0]["text"],
        "file.txt: confirmed = true"
    );
}

#[test]
fn a_result_that_only_the_gateway_has_ends_with_it() {
    let home = setup();
    let config = people(&home) + &fixture("m", &["--era", "modern"]);
    let gateway = Gateway::start(&home, &config);
    let call = json!({ "name": "m_greet", "arguments": { "name": "Ada" }, "task": {} });
    let id = id_of(&client(&gateway, ADA).ask("tools/call", call));
    // It outlives its server's session.
    let pid = gateway.get("/api/v1/servers/m", Some(ADA)).json()["pid"]
        .as_u64()
        .unwrap();
    crate::support::signal(u32::try_from(pid).unwrap(), "KILL");
    let ada = client(&gateway, ADA);
    assert_eq!(
        about(&ada, "tasks/result", &id)["result"]["content"][0]["text"],
        "Hello, Ada!"
    );
    drop(gateway);
    let gateway = Gateway::start(&home, &config);
    let ada = client(&gateway, ADA);
    let task = about(&ada, "tasks/get", &id)["result"].clone();
    assert_eq!(task["status"], "failed", "{task}");
    assert!(
        task["statusMessage"]
            .as_str()
            .unwrap()
            .contains("has ended"),
        "{task}"
    );
    assert_eq!(get(&gateway, &id)["result"]["status"], "failed");
    assert_eq!(
        about(&ada, "tasks/result", &id)["error"]["data"]["code"],
        "upstream_down"
    );
}

#[test]
fn a_list_after_a_restart_has_no_expired_and_no_forgotten_tasks() {
    let (home, peer) = (setup(), scripted());
    let config = people(&home) + &format!("[servers.m]\nurl = {:?}\n", peer.url());
    let gateway = Gateway::start(&home, &config);
    let ada = client(&gateway, ADA);
    let lasting = id_of(&begin_own(&ada, "lasting", &json!(null)));
    let short = id_of(&begin_own(&ada, "short", &json!(1)));
    let gone = id_of(&begin_own(&ada, "gone", &json!(null)));
    gateway.signal("KILL");
    drop(gateway);
    let gateway = Gateway::start(&home, &config);
    let ada = client(&gateway, ADA);
    assert_eq!(listed(&ada), [lasting.as_str()]);
    assert_eq!(
        about(&ada, "tasks/get", &lasting)["result"]["status"],
        "working"
    );
    for id in [&short, &gone] {
        assert!(!listed(&ada).contains(id));
    }
    // Without its server there is none of its tasks.
    drop(gateway);
    let gateway = Gateway::start(&home, &people(&home));
    assert_eq!(listed(&client(&gateway, ADA)), [""; 0]);
}

#[test]
fn tasks_of_a_guest_are_not_written_down_and_end_when_it_leaves() {
    let (home, peer) = (setup(), scripted());
    let config = people(&home)
        + &format!(
            "[topics.main]\nanonymous = \"guest\"\n[profiles.guest]\ncapabilities = [\"mcp/request:*\"]\n\
             [servers.m]\nurl = {:?}\n",
            peer.url()
        );
    let gateway = Gateway::start(&home, &config);
    let guest = Client::open(&gateway, None, "/mcp", json!({}));
    let of_guest = id_of(&begin_own(&guest, "of-guest", &json!(null)));
    let of_ada = id_of(&begin_own(&client(&gateway, ADA), "of-ada", &json!(null)));
    assert_eq!(listed(&guest), [of_guest]);
    let journal = std::fs::read_to_string(home.path().join("data/journal.jsonl")).unwrap();
    let created: Vec<&str> = journal
        .lines()
        .filter(|line| line.contains("task_created"))
        .collect();
    assert!(
        matches!(created.as_slice(), [one] if one.contains(&of_ada)),
        "{created:?}"
    );
    let are_cancelled = |own: &[&str]| {
        let cancels = peer.received().into_iter();
        let cancels: Vec<_> = cancels
            .filter(|line| line.contains("tasks/cancel"))
            .collect();
        let is_cancelled = |own: &&str| cancels.iter().any(|line| line.contains(*own));
        (cancels.len() == own.len() && own.iter().all(is_cancelled)).then_some(())
    };
    guest.delete();
    until("the guest's task is cancelled", || {
        are_cancelled(&["of-guest"])
    });
    assert_eq!(listed(&client(&gateway, ADA)), [of_ada]);
    // The next guest goes with the gateway.
    let next = Client::open(&gateway, None, "/mcp", json!({}));
    id_of(&begin_own(&next, "of-next", &json!(null)));
    gateway.stop().expect(0);
    until("its task is cancelled", || {
        are_cancelled(&["of-guest", "of-next"])
    });
}

#[test]
fn a_task_that_cannot_be_written_down_is_cancelled_and_refused() {
    let (home, peer) = (setup(), scripted());
    let config = people(&home)
        + &format!(
            "[audit]\nenabled = false\n[servers.m]\nurl = {:?}\n",
            peer.url()
        );
    home.write("portmoot.toml", &config);
    let gateway = path_cases::start(&home);
    let ada = client(&gateway, ADA);
    let kept = id_of(&begin_own(&ada, "kept", &json!(null)));
    path_cases::fill_disk(&gateway);
    let refused = begin_own(&ada, "lost", &json!(null));
    assert_eq!(
        refused["error"]["data"]["code"], "log_unavailable",
        "{refused}"
    );
    let cancelled = |line: &String| line.contains("tasks/cancel") && line.contains("\"lost\"");
    until("the task is cancelled", || {
        peer.received().iter().any(cancelled).then_some(())
    });
    assert_eq!(listed(&ada), [kept]);
}
