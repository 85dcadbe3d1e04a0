//! Tasks that the gateway makes and follows for callers that know none: these see an ordinary, slow
//! call.

use serde_json::{Value, json};

use super::jobs::server;
use super::{ADA, BOB, RELATED, client, people, setup};
use crate::peer::Peer;
use crate::support::{Client, Gateway, fixture, modern, modern_stream, until};
use crate::ws::{self, Socket};

const SCOUT: &str = "token-of-scout-who-may-propose";

fn old(gateway: &Gateway, token: &str) -> Client {
    Client::of_revision(gateway, token, "2025-06-18")
}

fn text(answer: &Value) -> &Value {
    &answer["result"]["content"][0]["text"]
}

/// Checks that a message says nothing of tasks.
#[track_caller]
pub(super) fn knows_no_task(message: &Value) {
    let text = message.to_string();
    assert!(
        !text.contains(RELATED) && !text.contains("taskId") && !text.contains("\"task\""),
        "{text}"
    );
}

/// Waits until the server was asked for the result of its only task.
fn awaited(one: &Peer) {
    until("the result is awaited", || {
        one.received()
            .iter()
            .any(|line| line.contains("tasks/result"))
            .then_some(())
    });
}

pub(super) fn sent(one: &Peer, method: &str) -> usize {
    one.received()
        .iter()
        .filter(|line| line.contains(&format!("{method:?}")))
        .count()
}

#[test]
fn plain_calls_of_tools_that_require_a_task_are_slow_calls() {
    let (home, one) = (setup(), server());
    let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a")));
    let (bob, modern_call) = (
        client(&gateway, BOB),
        json!({ "name": "a_must", "arguments": {}, "_meta": { "progressToken": "mine" } }),
    );
    let old = old(&gateway, ADA);
    for (number, is_modern) in [(1, true), (2, false)] {
        let waits = match is_modern {
            true => modern_stream(&gateway, Some(ADA), "tools/call", modern_call.clone()),
            false => old.begin(&old.request("tools/call", modern_call.clone())),
        };
        until("the result is awaited", || {
            (sent(&one, "tasks/result") == number).then_some(())
        });
        bob.call("a_progress", json!({ "task": format!("task-{number}") }));
        let progress = waits.next_of("notifications/progress");
        assert_eq!(progress["params"]["progressToken"], "mine");
        knows_no_task(&progress);
        bob.call("a_finish", json!({ "task": format!("task-{number}") }));
        let end = waits.next();
        assert_eq!(text(&end), &json!(format!("task-{number} is done")));
        assert_eq!(
            end["result"].get("resultType").is_some(),
            is_modern,
            "{end}"
        );
        knows_no_task(&end);
    }
    // The caller has no task.
    assert_eq!(
        client(&gateway, ADA).ask("tasks/list", json!({}))["result"]["tasks"],
        json!([])
    );
    assert_eq!(sent(&one, "tasks/cancel"), 0);
}

#[test]
fn a_call_that_is_cancelled_cancels_its_task() {
    let (home, one) = (setup(), server());
    let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a")));
    let ada = old(&gateway, ADA);
    let request = ada.request("tools/call", json!({ "name": "a_must", "arguments": {} }));
    let waits = ada.begin(&request);
    awaited(&one);
    ada.notify(
        "notifications/cancelled",
        json!({ "requestId": request["id"] }),
    );
    until("the task is cancelled", || {
        (sent(&one, "tasks/cancel") == 1).then_some(())
    });
    until("so is the request for its result", || {
        (sent(&one, "notifications/cancelled") == 1).then_some(())
    });
    assert!(
        waits
            .so_far()
            .iter()
            .all(|message| message.get("result").is_none())
    );
    let left = modern_stream(
        &gateway,
        Some(ADA),
        "tools/call",
        json!({ "name": "a_must", "arguments": {} }),
    );
    until("the second is awaited", || {
        (sent(&one, "tasks/result") == 2).then_some(())
    });
    drop(left);
    until("it is cancelled too", || {
        (sent(&one, "tasks/cancel") == 2).then_some(())
    });
}

#[test]
fn a_followed_task_is_cancelled_when_its_caller_is_revoked_or_the_gateway_stops() {
    for revoked in [true, false] {
        let (home, old_server, new_server) = (setup(), server(), super::questions::asking());
        let table = new_server
            .child("m", "m")
            .replace("\"legacy\"", "\"modern\"");
        let config = people(&home) + &old_server.child("a", "a") + &table;
        let gateway = Gateway::start(&home, &config);
        let ada = Client::open(&gateway, Some(ADA), "/mcp", json!({ "elicitation": {} }));
        let call = |tool: &str| {
            ada.begin(&ada.request("tools/call", json!({ "name": tool, "arguments": {} })))
        };
        let older = old(&gateway, ADA);
        let of_old =
            older.begin(&older.request("tools/call", json!({ "name": "a_must", "arguments": {} })));
        let of_new = call("m_job");
        awaited(&old_server);
        of_new.next_of("elicitation/create");
        match revoked {
            true => {
                home.write(
                    "portmoot.toml",
                    &config.replace("[participants.ada]", "[participants.eve]"),
                );
                gateway.signal("HUP");
            }
            false => gateway.signal("TERM"),
        }
        for peer in [&old_server, &new_server] {
            until("the task is cancelled", || {
                (sent(peer, "tasks/cancel") >= 1).then_some(())
            });
        }
        for waits in [of_old, of_new] {
            assert!(
                waits
                    .so_far()
                    .iter()
                    .all(|message| message.get("result").is_none())
            );
        }
    }
}

#[test]
fn a_followed_task_is_bound_by_the_calls_maximum() {
    let (home, one) = (setup(), server());
    let limits = "request_timeout = \"1s\"\nmax_timeout = \"2s\"\n";
    let slow = fixture("m", &["--era", "modern"]) + limits;
    let gateway = Gateway::start(
        &home,
        &(people(&home) + &one.child("a", "a") + limits + &slow),
    );
    let ada = old(&gateway, ADA);
    let refused = ada.ask("tools/call", json!({ "name": "a_must", "arguments": {} }));
    assert_eq!(
        refused["error"]["data"]["code"], "upstream_timeout",
        "{refused}"
    );
    until("the task is cancelled", || {
        (sent(&one, "tasks/cancel") == 1).then_some(())
    });
    // The same where the result is asked for.
    let made = client(&gateway, ADA).ask(
        "tools/call",
        json!({ "name": "m_slow_compute", "arguments": { "seconds": 30 }, "task": {} }),
    );
    let id = super::id_of(&made);
    let refused = super::about(&client(&gateway, ADA), "tasks/result", &id);
    assert_eq!(
        refused["error"]["data"]["code"], "upstream_timeout",
        "{refused}"
    );
    assert_eq!(
        super::about(&client(&gateway, ADA), "tasks/get", &id)["result"]["status"],
        "working"
    );
}

#[test]
fn failures_of_followed_tasks_are_those_of_the_call() {
    let (home, one) = (setup(), server());
    let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a")));
    let (bob, ada) = (client(&gateway, BOB), old(&gateway, ADA));
    for (number, how) in [(1, "tool"), (2, "protocol")] {
        let waits =
            ada.begin(&ada.request("tools/call", json!({ "name": "a_must", "arguments": {} })));
        until("the result is awaited", || {
            (sent(&one, "tasks/result") == number).then_some(())
        });
        bob.call(
            "a_finish",
            json!({ "task": format!("task-{number}"), "how": how }),
        );
        let end = waits.next();
        match how {
            "tool" => assert_eq!(end["result"]["isError"], true, "{end}"),
            _ => assert_eq!(end["error"]["code"], -32050, "{end}"),
        }
        knows_no_task(&end);
    }
}

#[test]
fn modern_servers_that_insist_on_a_task_are_followed_for_legacy_callers() {
    let home = setup();
    let gateway = Gateway::start(
        &home,
        &(people(&home) + &fixture("m", &["--era", "modern"])),
    );
    for ada in [client(&gateway, ADA), old(&gateway, ADA)] {
        let end = ada.ask(
            "tools/call",
            json!({ "name": "m_failing_job", "arguments": {} }),
        );
        assert_eq!(
            (text(&end), &end["result"]["isError"]),
            (&json!("this tool fails on purpose"), &json!(true))
        );
        assert!(end["result"].get("resultType").is_none());
        knows_no_task(&end);
        // What can be answered at once is no task.
        assert_eq!(
            text(&ada.ask(
                "tools/call",
                json!({ "name": "m_slow_compute", "arguments": { "seconds": 0 } })
            )),
            "computed in 0 s"
        );
        // A question that the caller cannot be asked ends the call, and the task.
        let asked = ada.ask(
            "tools/call",
            json!({ "name": "m_confirm_delete", "arguments": {} }),
        );
        assert!(
            asked["error"]["message"]
                .as_str()
                .unwrap()
                .contains("`elicitation/create`"),
            "{asked}"
        );
    }
    // To a modern caller the server says what it needs.
    let needs = modern(
        &gateway,
        Some(ADA),
        "tools/call",
        json!({ "name": "m_failing_job", "arguments": {} }),
    );
    assert_eq!(needs.json()["error"]["code"], -32021);
}

#[test]
fn a_room_calls_tools_that_require_a_task() {
    let ((home, config), one) = (ws::people(&[("ada", &["mcp/*"])]), server());
    let gateway = Gateway::start(
        &home,
        &(config + &one.child("a", "a") + &fixture("m", &["--era", "modern"])),
    );
    let mut ada = Socket::enter(&gateway, "ada", "");
    for (server, tool, expected) in [
        ("m", "failing_job", "fails on purpose"),
        ("a", "must", "task-1 is done"),
    ] {
        ada.call(tool, &[server], tool, json!({}));
        if server == "a" {
            awaited(&one);
            Client::of(&gateway, &ws::token("ada")).call("a_finish", json!({}));
        }
        let end = ada.receive_until(|one| {
            one["kind"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("mcp/response:"))
        });
        assert!(end["payload"].to_string().contains(expected), "{end}");
        knows_no_task(&end["payload"]);
    }
}

#[test]
fn an_approved_call_of_a_tool_that_requires_a_task_is_followed() {
    let (home, one) = (setup().env("SCOUT_TOKEN", SCOUT), server());
    let scout =
        "[participants.scout]\ntoken_env = \"SCOUT_TOKEN\"\ncapabilities = [\"mcp/proposal:*\"]\n";
    let gateway = Gateway::start(&home, &(people(&home) + scout + &one.child("a", "a")));
    let (bob, scout) = (client(&gateway, BOB), client(&gateway, SCOUT));
    let waits =
        scout.begin(&scout.request("tools/call", json!({ "name": "a_must", "arguments": {} })));
    let proposal = gateway.pending(&home, ADA);
    let (url, id) = (gateway.url(), proposal["id"].as_str().unwrap());
    home.run(&[
        "proposals",
        "approve",
        id,
        "--yes",
        "--no-wait",
        "--url",
        &url,
        "--token",
        ADA,
    ])
    .expect(0);
    awaited(&one);
    bob.call("a_finish", json!({}));
    assert_eq!(text(&waits.next()), "task-1 is done");
}
