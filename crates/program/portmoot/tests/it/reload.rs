//! Configuration reload tests: a changed file takes effect as a whole or not at all.

use serde_json::json;

use crate::home::Home;
use crate::http::Connection;
use crate::support::{Client, Gateway, fixture, is_alive, until};

fn pid(gateway: &Gateway, server: &str) -> u64 {
    gateway.wait_for(server, "ready")["pid"].as_u64().unwrap()
}

fn servers(names: &[String]) -> Vec<&str> {
    let mut servers: Vec<&str> = names
        .iter()
        .filter_map(|name| Some(name.split_once('_')?.0))
        .collect();
    servers.dedup();
    servers
}

#[test]
fn changed_servers_restart_and_unchanged_ones_keep_running() {
    let home = Home::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| fixture(name, &["--era", "legacy"]));
    let gateway = Gateway::start(&home, &(a.clone() + &b));
    let client = Client::plain(&gateway);
    let changes = client.listen();
    assert_eq!(servers(&client.names("tools")), ["a", "b"]);
    let (kept, gone) = (pid(&gateway, "a"), pid(&gateway, "b"));
    let open = client.begin_call("b_hang", json!({}));
    let undisturbed = client.begin_call("a_slow", json!({ "ms": 3_000 }));
    until("both are open", || {
        (gateway.server("b")["calls"] == 1 && gateway.server("a")["calls"] == 1).then_some(())
    });

    // The gateway notices the change by itself.
    home.write("portmoot.toml", &(a.clone() + &c));
    let error = &open.next()["error"];
    assert!(
        error["data"]["code"]
            .as_str()
            .is_some_and(|code| code.starts_with("upstream_")),
        "{error}"
    );
    until("the new list is announced", || {
        changes.next_of("notifications/tools/list_changed");
        (servers(&client.names("tools")) == ["a", "c"]).then_some(())
    });
    assert_eq!(
        client.call("c_echo", json!({ "text": "new" }))["content"][0]["text"],
        "new"
    );
    let refused = client.ask("tools/call", json!({ "name": "b_echo", "arguments": {} }));
    assert_eq!(refused["error"]["data"]["code"], "unknown_target");
    until("its child ends", || (!is_alive(gone)).then_some(()));
    assert_eq!(pid(&gateway, "a"), kept);
    let last = undisturbed.rest();
    assert!(last.last().unwrap().get("result").is_some(), "{last:?}");

    // SIGHUP reloads at once. A changed server is restarted under its name.
    let before = pid(&gateway, "c");
    home.write(
        "portmoot.toml",
        &(a + &fixture("c", &["--era", "legacy", "--name", "other"])),
    );
    gateway.signal("HUP");
    until("it is restarted", || {
        let now = gateway.server("c");
        (now["state"] == "ready" && now["pid"] != before).then_some(())
    });
    until("its child ends", || (!is_alive(before)).then_some(()));
    until("its tools are there", || {
        (servers(&client.names("tools")) == ["a", "c"]).then_some(())
    });
    assert_eq!(client.record("c")["arguments"][4], "other");
    assert_eq!(pid(&gateway, "a"), kept);
}

#[test]
fn a_changed_secret_restarts_exactly_the_servers_that_use_it() {
    let home = Home::new();
    let [one, two] = ["one", "two"].map(|name| home.secret(name, "hush-first"));
    let with = |name: &str, env: &str| {
        format!(
            "{}start = \"always\"\n{env}\n",
            fixture(name, &["--era", "legacy"])
        )
    };
    let config = [
        with("a", &format!("env = {{ KEY = {{ file = {one:?} }} }}")),
        with(
            "b",
            &format!("env = {{ KEY = {{ command = [\"cat\", {two:?}] }} }}"),
        ),
        with("c", ""),
    ];
    let gateway = Gateway::start(&home, &config.concat());
    let pids = || ["a", "b", "c"].map(|name| pid(&gateway, name));
    let client = Client::plain(&gateway);
    let key = |server: &str| client.record(server)["environment"]["KEY"].clone();
    let before = pids();
    assert_eq!(
        [key("a"), key("b"), key("c")],
        [json!("hush-first"), json!("hush-first"), json!(null)]
    );
    let restarted = |server: &str, before: u64| {
        until("it is restarted", || {
            let now = gateway.server(server);
            (now["state"] == "ready" && now["pid"] != before).then_some(())
        });
    };

    // The gateway notices the other file by itself.
    home.secret("one", "hush-second");
    restarted("a", before[0]);
    assert_eq!(key("a"), "hush-second");
    assert_eq!(pids()[1..], before[1..]);
    // A command is run again at each reload.
    let after_one = pids();
    home.secret("two", "hush-third");
    gateway.signal("HUP");
    restarted("b", after_one[1]);
    assert_eq!([key("a"), key("b")], ["hush-second", "hush-third"]);
    let after_two = pids();
    assert_eq!([after_two[0], after_two[2]], [after_one[0], after_one[2]]);
    // What cannot be read any more stays as it was.
    std::fs::remove_file(&two).unwrap();
    gateway.signal("HUP");
    gateway
        .receive("`servers.b.env.KEY` stays as it was: the command `cat` failed: exit status: 1");
    assert_eq!((key("b"), pids()), (json!("hush-third"), after_two));
    let log = gateway.stop().expect(0).stderr;
    assert!(
        log.contains("secret `servers.b.env.KEY` is printed by: cat "),
        "{log}"
    );
    assert!(!log.contains("hush-"), "{log}");
}

#[test]
fn an_invalid_file_is_reported_and_changes_nothing() {
    let home = Home::new();
    let a = fixture("a", &["--era", "legacy"]);
    let gateway = Gateway::start(&home, &a);
    let client = Client::plain(&gateway);
    client.names("tools");
    let before = pid(&gateway, "a");
    let broken = [
        "[servers.a]\ncomand = \"x\"\n".to_owned(),
        "[servers".to_owned(),
        a.clone() + &fixture("b", &[]) + "prefix = \"a_b\"\n",
    ];
    for (count, text) in broken.iter().enumerate() {
        home.write("portmoot.toml", text);
        gateway.signal("HUP");
        until("the problem is reported", || {
            (gateway
                .log()
                .matches("keeps its current configuration")
                .count()
                > count)
                .then_some(())
        });
        assert_eq!(
            client.call("a_echo", json!({ "text": "on" }))["content"][0]["text"],
            "on"
        );
    }
    let log = gateway.log();
    assert!(
        log.contains("did you mean `command`?") && log.contains("portmoot.toml"),
        "{log}"
    );
    // An unchanged file changes nothing.
    home.write("portmoot.toml", &a);
    gateway.signal("HUP");
    assert_eq!(client.record("a")["pid"], before);
    assert_eq!(gateway.server("a")["restarts"], 0);
}

#[test]
fn topics_choose_their_servers_and_can_be_added_and_removed() {
    let home = Home::new();
    let both = fixture("a", &[]) + &fixture("b", &[]);
    let gateway = Gateway::start(
        &home,
        &(both.clone() + "[topics.side]\nservers = [\"b\"]\n"),
    );
    let main = Client::plain(&gateway);
    let side = Client::open(&gateway, None, "/mcp/side", json!({}));
    assert_eq!(servers(&main.names("tools")), ["a", "b"]);
    assert_eq!(servers(&side.names("tools")), ["b"]);
    let refused = side.ask("tools/call", json!({ "name": "a_echo", "arguments": {} }));
    assert_eq!(refused["error"]["data"]["code"], "unknown_target");
    // A session belongs to its topic.
    let elsewhere = Client::resume(&gateway, None, "/mcp", &side.session);
    assert_eq!(elsewhere.status("tools/list", json!({})), 404);
    let nowhere = Client::resume(&gateway, None, "/mcp/other", &side.session);
    assert_eq!(nowhere.status("tools/list", json!({})), 403);

    let changes = side.listen();
    home.write(
        "portmoot.toml",
        &(both.clone() + "[topics.side]\nservers = [\"a\"]\n[topics.other]\nservers = [\"b\"]\n"),
    );
    gateway.signal("HUP");
    changes.next_of("notifications/tools/list_changed");
    assert_eq!(servers(&side.names("tools")), ["a"]);
    let other = Client::open(&gateway, None, "/mcp/other", json!({}));
    assert_eq!(servers(&other.names("tools")), ["b"]);

    home.write("portmoot.toml", &both);
    gateway.signal("HUP");
    changes.rest();
    assert!([403, 404].contains(&side.status("tools/list", json!({}))));
    assert_eq!(servers(&main.names("tools")), ["a", "b"]);
}

#[test]
fn settings_that_need_a_restart_are_named_and_unchanged() {
    let home = Home::new();
    let config = |settings: &str| format!("[server]\n{settings}[servers.a]\ntype = \"demo\"\n");
    home.write("portmoot.toml", &config("listen = \"127.0.0.1:0\"\n"));
    let gateway = Gateway::serve(home.command(&["serve", "--config", "portmoot.toml"]));
    gateway.ready("a");
    let fixed = "listen = \"0.0.0.0:1\"\ndata_dir = \"elsewhere\"\n[server.limits]\nconnections_max = 1\n\
                 held_bytes_max = 4096\naway = \"1s\"\n[audit]\nenabled = false\n\
                 [cluster]\nname = \"prod\"\nnats = [\"nats://127.0.0.1:4222\"]\nkey_file = \"key\"\n";
    home.write("portmoot.toml", &config(fixed));
    gateway.signal("HUP");
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/configuration.md"
    ))
    .unwrap();
    let limits = [
        "connections_max",
        "participant_connections_max",
        "held_bytes_max",
        "participant_held_bytes_max",
        "away",
    ];
    assert_eq!(page.matches("Needs a restart.").count(), limits.len());
    let limits = limits.map(|key| format!("server.limits.{key}"));
    for key in ["server.listen", "server.data_dir", "audit", "cluster"]
        .into_iter()
        .chain(limits.iter().map(String::as_str))
    {
        gateway.receive(&format!(
            "`{key}` has changed: this takes effect when the gateway is restarted"
        ));
    }
    // An Origin that is not served is still refused; other settings of the same file are taken
    // over.
    let by = |origin: &str| {
        Connection::open(gateway.address())
            .exchange("GET", "/healthz", &[("origin", origin)], "")
            .status
    };
    assert_eq!(by("http://gate.example"), 403);
    home.write(
        "portmoot.toml",
        &config(&format!("hosts = [\"gate.example\"]\n{fixed}")),
    );
    gateway.signal("HUP");
    gateway.receive("the configuration has changed: reloaded");
    until("the host is known", || {
        (by("http://gate.example") == 200).then_some(())
    });
    assert!(!home.path().join("elsewhere").exists());
    let log = gateway.stop().expect(0).stderr;
    assert_eq!(
        log.matches("reloaded").count(),
        1,
        "what needs a restart is no change: {log}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn the_limit_of_descriptors_grows_with_the_servers() {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let home = Home::new();
    let few = "[server.limits]\nconnections_max = 10\nparticipant_connections_max = 10\n\
               upstream_sessions_max = 20\nparticipant_upstream_sessions_max = 20\n";
    let config = |servers: &[&str]| {
        servers.iter().fold(few.to_owned(), |config, server| {
            config + &fixture(server, &[])
        })
    };
    let gateway = Gateway::start(&home, &config(&["a"]));
    let maximum = getrlimit(Resource::Nofile).maximum;
    // The limit of the gateway until now, with another one in its place.
    let replaced = |current: u64| {
        let limit = Rlimit {
            current: Some(current),
            maximum,
        };
        let pid = Pid::from_raw(i32::try_from(gateway.pid()).unwrap());
        prlimit(pid, Resource::Nofile, limit).unwrap().current
    };
    gateway.ready("a");
    replaced(100);
    home.write("portmoot.toml", &config(&["a", "b"]));
    gateway.signal("HUP");
    gateway.ready("b");
    // Files, connections, and what the sessions of both servers may have.
    assert_eq!(replaced(400), Some(128 + 10 + 2 * 22 * 4));
}

#[test]
fn files_that_are_no_files_delay_nothing() {
    let home = Home::new();
    let config = fixture("a", &[]);
    let mut gateway = Gateway::start(&home, &config);
    let path = home.fifo("portmoot.toml");
    gateway.signal("HUP");
    // A reader that waits for a writer would never say it: no writer comes.
    gateway.receive("it is not a regular file");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    gateway.signal("HUP");
    gateway.receive("it is not a regular file");
    // The same of a file with a token.
    let token = home.fifo("token");
    let participant = format!(
        "[participants.ann]\ntoken_file = {:?}\n",
        token.display().to_string()
    );
    std::fs::remove_file(&path).unwrap();
    home.write("portmoot.toml", &(config + &participant));
    gateway.signal("HUP");
    gateway.receive("cannot read");
    gateway.wait_for("a", "ready");
    gateway.signal("TERM");
    gateway.wait();
}
