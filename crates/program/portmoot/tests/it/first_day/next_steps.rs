//! Texts that a new user reads after a mistake: why it went wrong, and a next step that works.

use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::home::{Home, Ran};
use crate::support::{Client, Gateway, fixture, until};

/// A server that says why it does not start.
const BAD: &str = "[servers.bad]\ncommand = \"sh\"\nargs = [\"-c\", \"echo starting >&2; echo 'Error: /nope does not exist' >&2; exit 1\"]\n";

const BOSS: &str = "token-of-the-one-who-decides";
const WORKER: &str = "token-of-the-one-who-works";

/// A gateway with the fixture as `a`, a `boss` with all rights, and a `worker` that may call all.
fn office() -> (Home, Gateway) {
    let home = Home::new()
        .env("BOSS_TOKEN", BOSS)
        .env("WORKER_TOKEN", WORKER);
    let config = fixture("a", &[])
        + "[participants.boss]\ntoken_env = \"BOSS_TOKEN\"\ncapabilities = [\"mcp/*\", \"portmoot/*\"]\n"
        + "[participants.worker]\ntoken_env = \"WORKER_TOKEN\"\ncapabilities = [\"mcp/*\"]\n";
    let gateway = Gateway::start(&home, &config);
    gateway.ready("a");
    (home, gateway)
}

/// A command against a gateway, with a token.
fn words<'a>(words: &[&'a str], url: &'a str, token: &'a str) -> Vec<&'a str> {
    [words, &["--url", url, "--token", token]].concat()
}

#[test]
fn without_a_gateway_the_servers_own_words_are_shown() {
    let home = Home::new();
    home.write(".config/portmoot/portmoot.toml", BAD);
    for command in [
        &["tools", "ls"][..],
        &["prompts", "ls"],
        &["tools", "call", "bad_read"],
        &["tools", "show", "bad_read"],
        &["tokens"],
    ] {
        let said = home.run(command).stderr;
        assert!(
            said.contains("server `bad` is down") && said.contains("\n  starting\n"),
            "{command:?}: {said}"
        );
        assert!(said.contains("Error: /nope does not exist"), "{said}");
        for dead_end in ["portmoot logs", "portmoot servers ls"] {
            assert!(!said.contains(dead_end), "{command:?}: {said}");
        }
    }
    let doctor = home.run(&["doctor", "--listen", "127.0.0.1:0"]).expect(0);
    assert!(
        doctor.stderr.contains("no server was started") && doctor.stderr.contains("tools ls"),
        "{}",
        doctor.stderr
    );
}

#[test]
fn the_doctor_says_where_a_variable_is_missing() {
    let home = Home::new();
    let file = home.write(
        "x.toml",
        "[servers.unset]\ncommand = \"sh\"\nenv = { A = \"${ONLY_HERE}\" }\n",
    );
    let gateway = Gateway::start_with(&home, &["--config", "x.toml"]);
    gateway.wait_for("unset", "down");
    let fix_of = |ran: &Ran, what: &str| {
        let mut lines = ran.stdout.lines().skip_while(|line| !line.contains(what));
        let fix = lines.find(|line| line.trim_start().starts_with("fix:"));
        fix.unwrap_or_else(|| panic!("{what}: {}", ran.stdout))
            .to_owned()
    };
    // The server is in no file that is checked: the gateway says what it lacks.
    let fix = fix_of(&home.run(&["doctor"]).expect(1), "server unset");
    assert!(
        fix.contains("set ONLY_HERE") && !fix.contains("`url`"),
        "{fix}"
    );
    // The variable is set here.
    let mut doctor = home.command(&["doctor", "--config", "x.toml"]);
    let here = Ran::from(doctor.env("ONLY_HERE", "1").output().unwrap()).expect(1);
    let fix = fix_of(&here, "server unset");
    assert!(fix.contains("start it anew from here"), "{fix}");
    // The gateway cannot take the file over, and this terminal can.
    let text = "[participants.a]\ntoken_env = \"ONLY_HERE\"\n";
    std::fs::write(&file, text).unwrap();
    gateway.signal("HUP");
    gateway.receive("the reload failed");
    let mut doctor = home.command(&["doctor", "--config", "x.toml"]);
    let ran: Output = doctor
        .env("ONLY_HERE", "a-token-that-is-long-enough-for-the-gateway")
        .output()
        .unwrap();
    let fix = fix_of(&Ran::from(ran), "did not take over");
    assert!(fix.contains("start it anew from here"), "{fix}");
}

#[test]
fn an_address_without_its_scheme_is_no_command() {
    let home = Home::new();
    let said = home
        .run(&["add", "web", "127.0.0.1:7310/mcp"])
        .expect(2)
        .stderr;
    assert!(
        said.contains("hint: did you mean http://127.0.0.1:7310/mcp?"),
        "{said}"
    );
    let said = home.run(&["add", "files", "npx"]).expect(2).stderr;
    assert!(said.contains("add files -- npx"), "{said}");
}

#[test]
fn a_call_that_a_pause_holds_waits_as_long_as_it_was_told_to() {
    let (home, gateway) = office();
    let url = gateway.url();
    let pause = ["participants", "pause", "worker"];
    home.run(&words(&pause, &url, BOSS)).expect(0);
    let call = ["tools", "call", "a_echo", "text=x", "--wait", "500ms"];
    let begun = Instant::now();
    let held = home.run(&words(&call, &url, WORKER)).expect(6);
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    let said = held.stderr;
    assert!(said.contains("this call needs approval"), "{said}");
    assert!(
        said.contains("no decision yet: the proposal goes on"),
        "{said}"
    );
    // What is decided meanwhile is the result, and nothing else was asked of the server.
    let pending = gateway.pending(&home, BOSS);
    let id = pending["id"].as_str().unwrap();
    assert!(
        !pending["params"].to_string().contains("portmoot/held"),
        "{pending}"
    );
    let approve = ["proposals", "approve", id, "--yes"];
    let approved = home.run(&words(&approve, &url, BOSS)).expect(0);
    assert_eq!(approved.stdout, "x\n");
    // Without a pause the call is an ordinary one.
    let resume = ["participants", "resume", "worker"];
    home.run(&words(&resume, &url, BOSS)).expect(0);
    let plain = home.run(&words(&call, &url, WORKER)).expect(0);
    assert_eq!((&*plain.stdout, &*plain.stderr), ("x\n", ""));
}

#[test]
fn a_call_that_is_cut_off_says_why_and_where_it_goes_on() {
    let (home, mut gateway) = office();
    let url = gateway.url();
    let token = home
        .run(&words(
            &["token", "new", "guest", "--capability", "mcp/*"],
            &url,
            BOSS,
        ))
        .expect(0)
        .stdout;
    let begin = |call: &[&str], token: &str| {
        let call = [&["tools", "call", "--wait", "60s"], call].concat();
        let mut command = home.command(&words(&call, &url, token));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let call = begin(&["a_hang"], token.trim());
    until("the call", || {
        let shown = home.run(&words(&["servers", "show", "a", "--json"], &url, BOSS));
        let shown: Value = serde_json::from_str(&shown.stdout).ok()?;
        (shown["calls"].as_u64()? > 0).then_some(())
    });
    home.run(&words(&["token", "revoke", "guest"], &url, BOSS))
        .expect(0);
    let ended = Ran::from(call.wait_with_output().unwrap()).expect(4).stderr;
    assert!(ended.contains("takes the token no more"), "{ended}");
    assert!(ended.contains("hint: "), "{ended}");
    let pause = ["participants", "pause", "worker"];
    home.run(&words(&pause, &url, BOSS)).expect(0);
    let call = begin(&["a_echo", "text=x"], WORKER);
    let id = gateway.pending(&home, BOSS)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    gateway.signal("KILL");
    gateway.wait();
    let ended = Ran::from(call.wait_with_output().unwrap()).expect(1).stderr;
    assert!(ended.contains("the gateway is gone"), "{ended}");
    let next = format!("the proposal goes on; to look at it: portmoot proposals show {id}");
    assert!(ended.contains(&next), "{ended}");
}

#[test]
fn the_chat_says_as_much_as_the_status_of_what_it_cannot_reach() {
    let home = Home::new();
    let unheard = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", unheard.local_addr().unwrap());
    drop(unheard);
    let failure = |ran: Ran| ran.expect(1).stderr;
    let chat = failure(home.run(&["chat", "--lines", "--url", &url]));
    assert_eq!(chat, failure(home.run(&["status", "--url", &url])));
    assert!(
        chat.contains("hint: start one with: portmoot serve"),
        "{chat}"
    );
    let (_home, gateway) = office();
    let tls = gateway.url().replacen("http", "https", 1);
    let chat = failure(home.run(&["chat", "--lines", "--url", &tls]));
    assert_eq!(chat, failure(home.run(&["status", "--url", &tls])));
    assert!(chat.contains("does not speak TLS"), "{chat}");
}

#[test]
fn the_log_is_asked_by_the_beginning_of_an_id_and_by_verdicts_that_there_are() {
    let (home, gateway) = office();
    Client::of(&gateway, WORKER).call("a_echo", serde_json::json!({ "text": "x" }));
    let all = until("the call is recorded", || {
        let all = home.run(&["audit", "query", "--jsonl"]).expect(0).stdout;
        all.contains(r#""operation":""#).then_some(all)
    });
    let (_, operation) = all.split_once(r#""operation":""#).unwrap();
    let whole = &operation[..32];
    let entries = |id: &str| {
        let ran = home.run(&["audit", "query", "--operation", id, "--jsonl"]);
        ran.expect(0).stdout
    };
    assert!(!entries(whole).is_empty());
    assert!(entries(&whole[..30].to_uppercase()).contains(whole));
    home.run(&["audit", "query", "--operation", "xyz"])
        .expect(2);
    let typo = home
        .run(&["audit", "query", "--verdict", "refuse"])
        .expect(2)
        .stderr;
    assert!(
        typo.contains("no verdict `refuse`") && typo.contains("refused"),
        "{typo}"
    );
    home.run(&["audit", "query", "--verdict", "refused"])
        .expect(0);
}

#[test]
fn a_rule_is_not_added_without_consent() {
    let (home, gateway) = office();
    let url = gateway.url();
    home.run(&words(&["participants", "pause", "worker"], &url, BOSS))
        .expect(0);
    let call = ["tools", "call", "a_echo", "text=x", "--wait", "10ms"];
    home.run(&words(&call, &url, WORKER)).expect(6);
    let id = gateway.pending(&home, BOSS)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let like = ["rules", "like", &id, "--tool", "echo"];
    let refused = home.run(&words(&like, &url, BOSS)).expect(3).stderr;
    assert!(
        refused.contains("no rule was added") && refused.contains("--yes"),
        "{refused}"
    );
}

#[test]
fn a_token_says_what_its_bearer_may_do() {
    let home = Home::new();
    let config = "[participants.known]\ncapabilities = [\"mcp/*\"]\n";
    home.write(".config/portmoot/portmoot.toml", config);
    let new = |name: &str| home.run(&["token", "new", name]).expect(0).stderr;
    let said = new("stray");
    assert!(
        said.contains("no [participants.stray]: default capabilities"),
        "{said}"
    );
    assert!(!new("known").contains("no [participants"));
    let listed = home.run(&["token", "ls"]).expect(0).stdout;
    let row = |name: &str| listed.lines().find(|row| row.starts_with(name)).unwrap();
    assert!(row("known").contains("(configured)"), "{listed}");
    assert!(row("stray").contains("(default)"), "{listed}");
    let gateway = Gateway::start_with(&home, &[]);
    assert_eq!(home.run(&["token", "ls"]).expect(0).stdout, listed);
    drop(gateway);
}

#[test]
fn a_test_of_a_route_names_the_file_that_was_read() {
    let home = Home::new();
    let file = home.write(".config/portmoot/portmoot.toml", "");
    let said = home
        .run(&["notifications", "test", "phone"])
        .expect(5)
        .stderr;
    assert!(
        said.contains(&file.display().to_string()) && said.contains("--config"),
        "{said}"
    );
}
