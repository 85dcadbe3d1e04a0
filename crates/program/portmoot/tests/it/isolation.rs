//! Isolation tests: a bad server fails only its own calls, and its state is visible.

use serde_json::{Value, json};

use crate::home::Home;
use crate::support::{Client, Gateway, fixture, fixture_behind, is_alive, signal, until};

fn pid(server: &Value) -> u32 {
    u32::try_from(
        server["pid"]
            .as_u64()
            .unwrap_or_else(|| panic!("no pid: {server}")),
    )
    .unwrap()
}

fn own(names: &[String], server: &str) -> usize {
    names
        .iter()
        .filter(|name| name.starts_with(&format!("{server}_")))
        .count()
}

#[test]
fn a_server_answers_while_others_are_killed_hung_or_flooding() {
    let home = Home::new();
    let servers =
        ["killed", "hung", "flooding", "fine"].map(|name| fixture(name, &["--era", "legacy"]));
    let servers = format!("[server]\nstart = \"always\"\n{}", servers.concat());
    let gateway = Gateway::start(&home, &servers);
    let client = Client::plain(&gateway);
    let whole = client.names("tools");
    for name in ["killed", "hung", "flooding", "fine"] {
        assert!(own(&whole, name) > 10, "{whole:?}");
    }

    let flood = client.begin_call("flooding_flood", json!({}));
    let hung = pid(&gateway.wait_for("hung", "ready"));
    signal(hung, "STOP");
    let stuck = client.begin_call("hung_echo", json!({ "text": "?" }));
    let mut killed = pid(&gateway.wait_for("killed", "ready"));
    for round in 1..=3 {
        signal(killed, "KILL");
        for _ in 0..30 {
            let answer = client.call("fine_echo", json!({ "text": "still here" }));
            assert_eq!(answer["content"][0]["text"], "still here");
            assert_eq!(client.names("tools"), whole, "the list is whole");
        }
        let before = killed;
        killed = until("it is started again", || {
            let now = gateway.server("killed");
            (now["state"] == "ready" && now["restarts"] == round)
                .then(|| pid(&now))
                .filter(|pid| *pid != before)
        });
        assert_eq!(
            client.call("killed_add", json!({ "a": 2, "b": 3 }))["structuredContent"]["sum"],
            5
        );
    }
    // All of them were answered while this one was open: it has not ended in time.
    signal(hung, "CONT");
    assert_eq!(stuck.next()["result"]["content"][0]["text"], "?");
    drop(flood);
}

#[test]
fn a_call_open_at_a_server_that_is_killed_ends_with_a_plain_refusal() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("a", &["--era", "legacy"]));
    let client = Client::plain(&gateway);
    client.names("tools");
    let open = client.begin_call("a_hang", json!({}));
    until("the call is open", || {
        (gateway.server("a")["calls"] == 1).then_some(())
    });
    signal(pid(&gateway.server("a")), "KILL");
    let error = &open.next()["error"];
    assert_eq!(error["data"]["code"], "upstream_failed", "{error}");
    assert!(!error.to_string().contains("fixture"), "{error}");
}

#[test]
fn a_hung_server_is_degraded_then_started_again_and_its_calls_end_in_time() {
    let home = Home::new();
    let config = fixture("hung", &["--era", "legacy"])
        + "start = \"always\"\nrequest_timeout = \"300ms\"\nstart_timeout = \"3s\"\n"
        + &fixture("fine", &[]);
    let gateway = Gateway::start(&home, &config);
    let client = Client::plain(&gateway);
    let whole = client.names("tools");
    let hung = pid(&gateway.wait_for("hung", "ready"));
    signal(hung, "STOP");
    let answer = client.ask(
        "tools/call",
        json!({ "name": "hung_echo", "arguments": { "text": "?" } }),
    );
    assert_eq!(
        answer["error"]["data"]["code"], "upstream_timeout",
        "{answer}"
    );
    let seen = gateway.wait_for("hung", "degraded");
    assert!(seen["reason"].is_string(), "{seen}");
    let ready = gateway.get("/readyz", None);
    assert_eq!(
        (ready.status, &ready.json()["servers"][0]["state"]),
        (200, &json!("degraded")),
        "{ready:?}"
    );
    assert_eq!(client.names("tools"), whole);
    let listed = home
        .run(&["servers", "ls", "--url", &gateway.url()])
        .expect(0)
        .stdout;
    assert!(
        listed
            .lines()
            .any(|line| line.starts_with("hung") && line.contains("degraded")),
        "{listed}"
    );
    signal(hung, "CONT");
    assert_eq!(
        client.call("hung_echo", json!({ "text": "back" }))["content"][0]["text"],
        "back"
    );
    gateway.wait_for("hung", "ready");

    signal(hung, "STOP");
    let answer = client.ask(
        "tools/call",
        json!({ "name": "hung_echo", "arguments": { "text": "?" } }),
    );
    assert_eq!(
        answer["error"]["data"]["code"], "upstream_timeout",
        "{answer}"
    );
    until("it is started again", || {
        let now = gateway.server("hung");
        (now["state"] == "ready" && now["restarts"] == 1 && pid(&now) != hung).then_some(())
    });
    until("the hung one is gone", || {
        (!is_alive(hung.into())).then_some(())
    });
    assert_eq!(
        client.call("hung_echo", json!({ "text": "new" }))["content"][0]["text"],
        "new"
    );
}

#[test]
fn a_slow_start_delays_the_first_list_up_to_a_limit() {
    let home = Home::new();
    let gate = home.path().join("the slow one may start");
    let config = fixture_behind("slow", &gate)
        + &fixture("fine", &[])
        + "[topics.main]\nlist_wait = \"600ms\"\n";
    let gateway = Gateway::start(&home, &config);
    assert_eq!(gateway.get("/readyz", None).status, 503);
    assert_eq!(gateway.server("slow")["state"], "starting");
    let client = Client::plain(&gateway);
    let changes = client.listen();
    // It is not there yet, and will not be as long as it may not.
    let names = client.names("tools");
    assert!(own(&names, "slow") == 0, "{names:?}");
    until("the quick one is listed", || {
        (own(&client.names("tools"), "fine") > 10).then_some(())
    });
    std::fs::write(&gate, "").unwrap();
    until("the slow server is announced", || {
        changes.next_of("notifications/tools/list_changed");
        (own(&client.names("tools"), "slow") > 10).then_some(())
    });
    assert_eq!(gateway.get("/readyz", None).status, 200);
}

#[test]
fn a_server_that_never_starts_is_down_and_reveals_nothing_internal() {
    let home = Home::new();
    let config =
        "[servers.gone]\ncommand = \"/opt/secret-place/no-such-program\"\nargs = [\"--key=hush\"]\n\
        [servers.quits]\ncommand = \"sh\"\nargs = [\"-c\", \"echo no store here >&2; exit 3\"]\n\
        [servers.nowhere]\nurl = \"http://127.0.0.1:9/hush\"\n\
        [servers.mute]\ncommand = \"sleep\"\nargs = [\"1000\"]\nstart_timeout = \"400ms\"\n"
            .to_owned() + &fixture("fine", &[]);
    let gateway = Gateway::start(&home, &config);
    let client = Client::plain(&gateway);
    assert!(own(&client.names("tools"), "fine") > 10);
    // Operators see which program and which host, and nothing that may be a secret: no path,
    // arguments or URL.
    let mut operators = String::new();
    for name in ["gone", "quits", "nowhere", "mute"] {
        let seen = gateway.wait_for(name, "down");
        assert!(
            seen["reason"]
                .as_str()
                .is_some_and(|reason| reason.contains(name)),
            "{seen}"
        );
        operators += &seen.to_string();
    }
    operators += &gateway.get("/readyz", None).body;
    operators += &home
        .run(&["servers", "ls", "--url", &gateway.url()])
        .expect(0)
        .stdout;
    let all = client
        .ask("tools/call", json!({ "name": "gone_echo" }))
        .to_string();
    for secret in ["secret-place", "hush"] {
        assert!(
            !operators.contains(secret),
            "{secret} is revealed: {operators}"
        );
    }
    for place in ["no-such-program", "127.0.0.1:9"] {
        assert!(
            operators.contains(place),
            "{place} is not named: {operators}"
        );
    }
    for secret in [
        "secret-place",
        "no-such-program",
        "hush",
        "127.0.0.1",
        "sleep",
    ] {
        assert!(!all.contains(secret), "{secret} is revealed: {all}");
    }
}

#[test]
fn a_child_has_its_own_environment_and_nothing_else() {
    let home = Home::new()
        .env("SECRET_OF_THE_GATEWAY", "hush")
        .env("LANG", "C.UTF-8")
        .env("OTHER", "expanded");
    let config = fixture("a", &[]) + "env = { OWN = \"mine\", FROM = \"${OTHER}\" }\n";
    let gateway = Gateway::start(&home, &config);
    let record = Client::plain(&gateway).record("a");
    let environment = record["environment"].as_object().unwrap();
    let names: Vec<&str> = environment.keys().map(String::as_str).collect();
    assert_eq!(names, ["FROM", "HOME", "LANG", "OWN", "PATH"]);
    assert_eq!(
        (&environment["OWN"], &environment["FROM"]),
        (&json!("mine"), &json!("expanded"))
    );
}

/// A server that ends only on SIGKILL, with a child process that does too.
fn stubborn() -> String {
    let command = harness::fixture_binary().display().to_string();
    let script = format!(
        "trap '' TERM; (trap '' TERM; sleep 1000) & exec 3<&0; {command} --stdio <&3; sleep 1000"
    );
    format!("[servers.stubborn]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n")
}

/// The processes of a process group.
fn group(leader: u32) -> Vec<u64> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
    let of_group = |pid: &u64| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat
            .rsplit_once(") ")
            .map_or("", |(_, rest)| rest)
            .split(' ')
            .collect();
        fields
            .get(2)
            .is_some_and(|group| *group == leader.to_string())
    };
    pids.filter(of_group).collect()
}

#[test]
fn no_child_outlives_a_killed_gateway() {
    no_child_outlives("KILL");
}

#[test]
fn no_child_outlives_a_terminated_gateway() {
    no_child_outlives("TERM");
}

#[test]
fn no_child_outlives_an_interrupted_gateway() {
    no_child_outlives("INT");
}

fn no_child_outlives(how: &str) {
    let home = Home::new();
    let config = stubborn() + &fixture("plain", &["--era", "legacy"]);
    let mut gateway = Gateway::start(&home, &config);
    let own = Client::open(&gateway, None, "/mcp", json!({ "sampling": {} }));
    own.names("tools");
    let mut children: Vec<u64> = Vec::new();
    for name in ["stubborn", "plain"] {
        children.extend(group(pid(&gateway.wait_for(name, "ready"))));
        children.push(own.record(name)["pid"].as_u64().unwrap());
    }
    assert!(children.len() >= 6, "{children:?}");
    gateway.signal(how);
    gateway.wait();
    until("every child ends", || {
        children.iter().all(|pid| !is_alive(*pid)).then_some(())
    });
}
