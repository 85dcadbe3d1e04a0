//! Keys of callers: each enters its own for a server that wants one, on a page or by a command, and
//! acts there with no other.

use std::io::Write as _;
use std::process::Stdio;

use harness::Running;
use serde_json::{Value, json};

use crate::home::{Home, Ran};
use crate::oauth_client::browser::Browser;
use crate::support::{Client, Gateway, fixture, is_alive, until};

const ANN: &str = "token-of-ann-for-keys";
const BOB: &str = "token-of-bob-for-keys";
const OPS: &str = "token-of-ops-for-keys";
/// Every key begins so.
const CANARY: &str = "canary-key-";

struct Stage {
    home: Home,
    gateway: Gateway,
    _web: Running,
    /// All that was answered.
    said: Vec<String>,
}

/// A server over HTTP and one that is a process, each with a key of each caller, and a process
/// without.
fn stage() -> Stage {
    let home = Home::new()
        .env("ANN", ANN)
        .env("BOB", BOB)
        .env("OPS", OPS)
        .env("PORTMOOT_LOG", "trace");
    let key = home.secret("key", &"07".repeat(32));
    let web = Running::fixture(&["--era", "legacy"]);
    let who = |name: &str, capabilities: &str| {
        format!(
            "[participants.{name}]\ntoken_env = {:?}\ncapabilities = [{capabilities}]\n",
            name.to_uppercase()
        )
    };
    let config = [
        format!("[server]\nkey_file = {key:?}\n[topics.main]\n"),
        who("ann", "\"mcp/*\""),
        who("bob", "\"mcp/*\""),
        who("ops", "\"mcp/*\", \"portmoot/*\""),
        // The harness takes the first address with `/mcp` in the log for the gateway's: this one is
        // announced later.
        format!(
            "[servers.web]\nurl = {:?}\nera = \"legacy\"\nheaders = {{ X-Api-Key = {{ caller = \"API key of the <web>\", prefix = \"Key \" }} }}\n",
            web.url()
        ),
        fixture("notes", &["--era", "legacy"]),
        "env = { OWN_KEY = { caller = \"Key of the notes\" } }\n".to_owned(),
        fixture("other", &["--era", "legacy"]),
    ];
    let gateway = Gateway::start(&home, &config.concat());
    gateway.ready("other");
    Stage {
        home,
        gateway,
        _web: web,
        said: Vec::new(),
    }
}

impl Stage {
    /// The words with which a call of a participant without a key is answered.
    #[track_caller]
    fn invitation(&mut self, client: &Client, server: &str) -> String {
        let answer = client.call(&format!("{server}_record"), json!({}));
        assert_eq!(answer["isError"], true, "{answer}");
        let text = answer["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(
            text.starts_with(&format!(
                "{server} needs a key of yours. Open http://127.0.0.1:"
            )),
            "{text}"
        );
        self.said.push(text.clone());
        text.split(' ')
            .find(|word| word.contains("/connect/"))
            .unwrap()
            .to_owned()
    }

    /// `portmoot servers login SERVER --key` with this key on stdin.
    fn enter(&mut self, server: &str, token: &str, more: &[&str], key: &str) -> Ran {
        let url = self.gateway.url();
        let args = [
            &[
                "servers", "login", server, "--key", "--url", &url, "--token", token,
            ],
            more,
        ]
        .concat();
        let mut command = self.home.command(&args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(key.as_bytes())
            .unwrap();
        let ran = Ran::from(child.wait_with_output().unwrap());
        self.said.extend([ran.stdout.clone(), ran.stderr.clone()]);
        ran
    }

    /// Until a server has got this key of a caller. Returns what it got.
    #[track_caller]
    fn gets(&self, client: &Client, server: &str, key: &str) -> Value {
        until("the server gets the key", || {
            let call = json!({ "name": format!("{server}_record"), "arguments": {} });
            let record = client.ask("tools/call", call)["result"]["structuredContent"].clone();
            let got = match server {
                "web" => record["headers"]["x-api-key"].clone(),
                _ => record["environment"]["OWN_KEY"].clone(),
            };
            let expect = if server == "web" {
                format!("Key {key}")
            } else {
                key.to_owned()
            };
            (got == expect).then_some(record)
        })
    }
}

#[test]
fn each_caller_acts_with_the_key_that_it_has_entered() {
    let mut stage = stage();
    let (ann, bob) = (
        Client::of(&stage.gateway, ANN),
        Client::of(&stage.gateway, BOB),
    );
    for client in [&ann, &bob] {
        let names = client.names("tools");
        for server in ["web", "notes"] {
            assert!(
                names.contains(&format!("{server}_authorize"))
                    && !names.contains(&format!("{server}_record")),
                "{names:?}"
            );
        }
    }
    // On the page: who one is, then the key, which is never shown.
    let link = stage.invitation(&ann, "web");
    let mut browser = Browser::default();
    let page = browser.open(stage.gateway.address(), &link);
    let url = stage.gateway.url();
    let code = |token: &str| {
        let ran = stage
            .home
            .run(&[
                "servers",
                "connect-code",
                "--json",
                "--url",
                &url,
                "--token",
                token,
            ])
            .expect(0);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()["code"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (of_ann, of_bob) = (code(ANN), code(BOB));
    // Another participant's browser gets nowhere.
    let mut other = Browser::default();
    let asked = other.open(stage.gateway.address(), &link);
    let refused = other.submit(stage.gateway.address(), &asked, &[("code", &of_bob)]);
    assert!(
        refused.status == 403 && refused.body.contains("for another participant"),
        "{refused:?}"
    );
    let page = browser.submit(stage.gateway.address(), &page, &[("code", &of_ann)]);
    assert!(
        page.body.contains("API key of the &lt;web&gt;") && page.body.contains("type=\"password\""),
        "{page:?}"
    );
    assert!(
        page.header("content-security-policy")
            .unwrap()
            .contains("form-action 'self'"),
        "{page:?}"
    );
    for bad in ["", " ", "canary-key-\u{e4}", &"x".repeat(8 * 1024 + 1)] {
        let again = browser.submit(
            stage.gateway.address(),
            &page,
            &[("key", bad), ("decision", "allow")],
        );
        assert!(
            again.status == 400 && again.body.contains("printable ASCII"),
            "{again:?}"
        );
        assert!(!again.body.contains(CANARY), "{again:?}");
    }
    // A form of another site, or of another browser, enters nothing.
    let key = [("key", "canary-key-ann-web"), ("decision", "allow")];
    let cross = [
        ("sec-fetch-site", "cross-site"),
        ("origin", "https://evil.example"),
    ];
    assert_eq!(
        browser
            .submit_with(stage.gateway.address(), &page, &key, &cross)
            .status,
        403
    );
    assert_eq!(
        Browser::default()
            .submit(stage.gateway.address(), &page, &key)
            .status,
        403
    );
    let done = browser.submit(stage.gateway.address(), &page, &key);
    assert!(
        done.status == 200 && done.body.contains("Connected"),
        "{done:?}"
    );
    assert_eq!(
        browser.submit(stage.gateway.address(), &page, &key).status,
        403,
        "the browser is no one's any more"
    );
    assert_eq!(
        browser.open(stage.gateway.address(), &link).status,
        404,
        "a link is good once"
    );
    stage.said.extend([page.body, done.body]);
    stage.gets(&ann, "web", "canary-key-ann-web");
    until("its tools are listed", || {
        ann.names("tools")
            .contains(&"web_record".to_owned())
            .then_some(())
    });

    // By commands: one's own, and another's by an operator.
    stage
        .enter("notes", ANN, &[], "canary-key-ann-notes\n")
        .expect(0);
    stage.enter("web", BOB, &[], "canary-key-bob-web").expect(0);
    assert_eq!(
        stage
            .enter("notes", ANN, &["--as", "bob"], "canary-key-bob-notes")
            .code,
        3,
        "not an operator"
    );
    stage
        .enter("notes", OPS, &["--as", "bob"], "canary-key-bob-notes")
        .expect(0);
    for server in ["other", "none"] {
        assert_ne!(
            stage.enter(server, OPS, &[], "canary-key-nowhere").code,
            0,
            "{server}"
        );
    }
    assert_ne!(stage.enter("notes", ANN, &[], "\n").code, 0, "no key");
    let mut pids = Vec::new();
    for (client, who, others) in [(&ann, "ann", "bob"), (&bob, "bob", "ann")] {
        let of_web = stage.gets(client, "web", &format!("canary-key-{who}-web"));
        let of_notes = stage.gets(client, "notes", &format!("canary-key-{who}-notes"));
        for (record, own) in [(&of_web, "web"), (&of_notes, "notes")] {
            let all = record.to_string();
            assert!(!all.contains(&format!("canary-key-{others}")), "{all}");
            assert_eq!(all.matches(CANARY).count(), 1, "{own}: {all}");
        }
        pids.push(of_notes["pid"].as_u64().unwrap());
        let without = client.record("other").to_string();
        assert!(!without.contains(CANARY), "{without}");
    }
    assert_ne!(pids[0], pids[1], "each has a process");

    // A changed key ends the process that had the former one.
    stage
        .enter("notes", ANN, &[], "canary-key-ann-changed")
        .expect(0);
    let changed = stage.gets(&ann, "notes", "canary-key-ann-changed");
    assert_ne!(changed["pid"], pids[0]);
    until("its process ends", || (!is_alive(pids[0])).then_some(()));
    assert!(is_alive(pids[1]), "another caller's goes on");
    stage.enter("web", ANN, &[], "canary-key-ann-new").expect(0);
    stage.gets(&ann, "web", "canary-key-ann-new");

    // What operators see.
    let shown = stage
        .home
        .run(&["servers", "auth", "--json", "--url", &url, "--token", OPS])
        .expect(0)
        .stdout;
    let accounts: Value = serde_json::from_str(&shown).unwrap();
    let ready = accounts["accounts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["state"] == "ready");
    assert_eq!(ready.count(), 4, "{shown}");
    let config = stage
        .home
        .run(&["config", "show", "--config", "portmoot.toml"])
        .expect(0)
        .stdout;
    assert!(config.contains("caller = \"Key of the notes\""), "{config}");
    stage.said.extend([shown, config]);

    // They outlive the gateway, and end with a logout.
    stage.gateway.signal("KILL");
    stage.gateway.wait();
    stage.gateway = Gateway::start_with(&stage.home, &["--config", "portmoot.toml"]);
    let ann = Client::of(&stage.gateway, ANN);
    let kept = stage.gets(&ann, "notes", "canary-key-ann-changed")["pid"]
        .as_u64()
        .unwrap();
    let url = stage.gateway.url();
    stage
        .home
        .run(&["servers", "logout", "notes", "--url", &url, "--token", ANN])
        .expect(0);
    until("its process ends", || (!is_alive(kept)).then_some(()));
    stage.invitation(&ann, "notes");
    stage.gets(&ann, "web", "canary-key-ann-new");

    let Stage {
        home,
        gateway,
        said,
        ..
    } = stage;
    let log = gateway.stop().expect(0).stderr;
    assert!(log.contains("TRACE"), "everything is logged");
    for text in said.iter().chain([&log]) {
        assert!(!text.contains(CANARY), "a key is in: {text}");
    }
    assert!(files(home.path()) > 5);
}

/// Looks through the files below a folder, none of which has a key. Returns their number.
fn files(folder: &std::path::Path) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            count += files(&entry.path());
        } else if kind.is_file() {
            let bytes = std::fs::read(entry.path()).unwrap();
            let has = bytes
                .windows(CANARY.len())
                .any(|window| window == CANARY.as_bytes());
            assert!(!has, "a key is in {}", entry.path().display());
            count += 1;
        }
    }
    count
}

#[test]
fn the_next_bearer_of_a_name_has_no_key_of_the_former_one() {
    let mut stage = stage();
    let url = stage.gateway.url();
    let new = [
        "token",
        "new",
        "tmp",
        "--capability",
        "mcp/*",
        "--url",
        &url,
        "--token",
        OPS,
    ];
    let first = stage.home.run(&new).expect(0).stdout.trim().to_owned();
    stage
        .enter("notes", &first, &[], "canary-key-former")
        .expect(0);
    let client = Client::of(&stage.gateway, &first);
    let pid = stage.gets(&client, "notes", "canary-key-former")["pid"]
        .as_u64()
        .unwrap();
    stage
        .home
        .run(&["token", "revoke", "tmp", "--url", &url, "--token", OPS])
        .expect(0);
    until("its process ends", || (!is_alive(pid)).then_some(()));
    let next = stage.home.run(&new).expect(0).stdout.trim().to_owned();
    let client = Client::of(&stage.gateway, &next);
    stage.invitation(&client, "notes");
}
