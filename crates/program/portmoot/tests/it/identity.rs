//! Identity tests: tokens, capabilities, and what ends when they change.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::support::{Client, Gateway, fixture, modern, modern_stream, until};

const ADMIN: &str = "token-of-the-administrator";
const SCOUT: &str = "token-of-the-narrow-scout";
const OTHER: &str = "token-of-the-other-scout";

/// A home with tokens of three participants: `admin` with full access, `scout` and `other` with few
/// capabilities.
fn setup() -> Home {
    let home = Home::new()
        .env("ADMIN_TOKEN", ADMIN)
        .env("OTHER_TOKEN", OTHER);
    home.write("scout.token", &format!("{SCOUT}\n"));
    home
}

const ADMIN_TABLE: &str = "[participants.admin]\ntoken_env = \"ADMIN_TOKEN\"\n\
    capabilities = [\"mcp/request:*\", \"mcp/response:*\", \"portmoot/*\"]\n";

fn scout(capabilities: &[&str]) -> String {
    format!("[participants.scout]\ntoken_file = \"scout.token\"\ncapabilities = {capabilities:?}\n")
}

const NARROW: [&str; 6] = [
    "mcp/request:tools/call:a_e*",
    "mcp/request:tools/call:a_slow",
    "mcp/request:tools/call:a_touch_watched_resource",
    "mcp/request:prompts/get:a_test_simple_prompt",
    "mcp/request:resources/*:test://static-text",
    "mcp/request:resources/*:test://watched-resource",
];

fn data_dir(home: &Home) -> String {
    format!(
        "[server]\ndata_dir = \"{}\"\n",
        home.path().join("data").display()
    )
}

/// The text without its request id and without this word.
fn like(reply: &Reply, word: &str) -> (u16, String) {
    let mut message = reply.json();
    message["id"] = Value::Null;
    (reply.status, message.to_string().replace(word, "WORD"))
}

#[test]
fn refused_targets_are_unlisted_and_look_unknown() {
    let home = setup();
    let gateway = Gateway::start(&home, &(fixture("a", &[]) + ADMIN_TABLE + &scout(&NARROW)));
    let admin = Client::of(&gateway, ADMIN);
    assert!(admin.names("tools").len() > 20);
    assert_eq!(admin.names("prompts").len(), 5);
    let scout = Client::of(&gateway, SCOUT);
    assert_eq!(
        scout.names("tools"),
        ["a_touch_watched_resource", "a_echo", "a_slow"]
    );
    assert_eq!(scout.names("prompts"), ["a_test_simple_prompt"]);
    assert_eq!(
        scout.names("resources"),
        ["test://static-text", "test://watched-resource"]
    );
    assert_eq!(scout.names("templates"), Vec::<String>::new());
    assert_eq!(
        scout.call("a_echo", json!({ "text": "hi" }))["content"][0]["text"],
        "hi"
    );

    let named = |name: &str| json!({ "name": name, "arguments": {} });
    let prompt = |name: &str| json!({ "ref": { "type": "ref/prompt", "name": name }, "argument": { "name": "arg1", "value": "p" } });
    let template = |uri: &str| json!({ "ref": { "type": "ref/resource", "uri": uri }, "argument": { "name": "id", "value": "1" } });
    let uri = |uri: &str| json!({ "uri": uri });
    type Pair<'p> = (&'p str, &'p dyn Fn(&str) -> Value, &'p str, &'p str);
    let pairs: [Pair<'_>; 8] = [
        ("tools/call", &named, "a_record", "a_nowhere"),
        ("tools/call", &named, "a_hidden", "a_nowhere"),
        (
            "prompts/get",
            &named,
            "a_test_prompt_with_arguments",
            "a_nowhere",
        ),
        (
            "completion/complete",
            &prompt,
            "a_test_prompt_with_arguments",
            "a_nowhere",
        ),
        (
            "completion/complete",
            &template,
            "test://template/{id}/data",
            "test://nowhere/{id}",
        ),
        (
            "resources/read",
            &uri,
            "test://static-binary",
            "test://nowhere",
        ),
        (
            "resources/read",
            &uri,
            "test://template/1/data",
            "test://nowhere",
        ),
        (
            "resources/subscribe",
            &uri,
            "test://static-binary",
            "test://nowhere",
        ),
    ];
    for (method, params, refused, unknown) in pairs {
        let legacy = [refused, unknown]
            .map(|word| like(&scout.post(&scout.request(method, params(word))), word));
        assert_eq!(legacy[0], legacy[1], "{method}");
        assert!(legacy[0].1.contains("unknown_target"), "{legacy:?}");
        if method != "resources/subscribe" {
            let modern = [refused, unknown]
                .map(|word| like(&modern(&gateway, Some(SCOUT), method, params(word)), word));
            assert_eq!(modern[0], modern[1], "{method}");
        }
        // The target exists for participants with the capability.
        if !refused.contains("hidden") {
            assert!(
                admin.ask(method, params(refused)).get("result").is_some(),
                "{method} {refused}"
            );
        }
    }
    // The API does not list it either.
    let tools = gateway.get("/api/v1/tools", Some(SCOUT)).json();
    assert_eq!(tools["tools"].as_array().unwrap().len(), 3, "{tools}");
    let [refused, unknown] = ["a_record", "a_nowhere"].map(|name| {
        gateway
            .get(&format!("/api/v1/tools/{name}"), Some(SCOUT))
            .body
            .replace(name, "WORD")
    });
    assert_eq!(refused, unknown);
    for path in ["/api/v1/servers", "/api/v1/tokens"] {
        assert_eq!(gateway.get(path, Some(SCOUT)).status, 403);
        assert_eq!(gateway.get(path, Some(ADMIN)).status, 200);
    }
}

#[test]
fn a_capability_can_be_narrowed_to_an_addressee() {
    let home = setup();
    let participant = "[participants.scout]\ntoken_file = \"scout.token\"\n\
        capabilities = [{ kind = \"mcp/request:tools/call:*_echo\", to = [\"b\"] }]\n";
    let gateway = Gateway::start(
        &home,
        &(fixture("a", &[]) + &fixture("b", &[]) + participant),
    );
    let scout = Client::of(&gateway, SCOUT);
    assert_eq!(scout.names("tools"), ["b_echo"]);
    assert_eq!(
        scout.call("b_echo", json!({ "text": "hi" }))["content"][0]["text"],
        "hi"
    );
    let refused = scout.ask("tools/call", json!({ "name": "a_echo", "arguments": {} }));
    assert_eq!(refused["error"]["data"]["code"], "unknown_target");
}

#[test]
fn configured_tokens_are_required() {
    let home = setup();
    let gateway = Gateway::start(&home, &(fixture("a", &[]) + ADMIN_TABLE));
    for token in [
        None,
        Some("wrong"),
        Some(""),
        Some("token-of-the-administrato"),
    ] {
        for reply in [
            gateway.get("/mcp", token),
            gateway.get("/api/v1/tools", token),
            gateway.get("/metrics", token),
            modern(&gateway, token, "tools/list", json!({})),
        ] {
            assert_eq!(reply.status, 401, "{reply:?}");
            assert!(
                reply
                    .header("www-authenticate")
                    .is_some_and(|scheme| scheme.starts_with("Bearer")),
                "{reply:?}"
            );
        }
    }
    assert_eq!(gateway.get("/healthz", None).status, 200);
    home.run(&["tools", "ls", "--url", &gateway.url()])
        .expect(4);
    home.run(&["tools", "ls", "--url", &gateway.url(), "--token", ADMIN])
        .expect(0);
}

#[test]
fn a_token_can_be_configured_by_its_hash() {
    let home = Home::new();
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("printf %s {ADMIN} | sha256sum")])
        .output();
    let sum = String::from_utf8(output.unwrap().stdout).unwrap();
    let hash = sum.split(' ').next().unwrap();
    let table = format!(
        "[participants.admin]\ntoken_sha256 = \"{hash}\"\ncapabilities = [\"mcp/request:*\"]\n"
    );
    let gateway = Gateway::start(&home, &(fixture("a", &[]) + &table));
    assert!(Client::of(&gateway, ADMIN).names("tools").len() > 10);
    assert_eq!(gateway.get("/api/v1/tools", Some(SCOUT)).status, 401);
}

#[test]
fn a_wider_bind_without_tokens_is_refused() {
    let home = Home::new();
    home.write("own.toml", "");
    for address in ["0.0.0.0:0", "[::]:0"] {
        let ran = home
            .run(&["serve", "--config", "own.toml", "--listen", address])
            .expect(3);
        assert!(ran.stderr.contains("token"), "{}", ran.stderr);
    }
}

#[test]
fn resources_of_other_participants_look_unknown() {
    let home = setup();
    let other =
        "[participants.other]\ntoken_env = \"OTHER_TOKEN\"\ncapabilities = [\"mcp/request:*\"]\n";
    let gateway = Gateway::start(&home, &(fixture("a", &[]) + ADMIN_TABLE + other));
    let admin = Client::of(&gateway, ADMIN);
    let thief = Client::resume(&gateway, Some(OTHER), "/mcp", &admin.session);
    let absent = Client::resume(&gateway, Some(OTHER), "/mcp", "no-such-session");
    let [stolen, unknown] = [&thief, &absent]
        .map(|client| like(&client.post(&client.request("tools/list", json!({}))), ""));
    assert_eq!((stolen.0, &stolen), (404, &unknown));
    assert_eq!((thief.delete(), absent.delete()), (404, 404));
    assert!(admin.names("tools").len() > 10, "it is still there");

    // An event id of another participant's stream.
    let call = admin.begin_call("a_test_tool_with_progress", json!({}));
    call.next();
    let own = Client::of(&gateway, OTHER);
    let resume = |id: &str| {
        let headers = [
            ("accept", "text/event-stream"),
            ("authorization", &*format!("Bearer {OTHER}")),
            ("mcp-session-id", &*own.session.clone()),
            ("last-event-id", id),
        ];
        Connection::open(gateway.address()).exchange("GET", "/mcp", &headers, "")
    };
    let [stolen, unknown] = ["1-1", "99-1"].map(|id| like(&resume(id), ""));
    assert_eq!((stolen.0, &stolen), (400, &unknown));
}

#[test]
fn rate_limited_requests_are_refused_with_a_retry_delay() {
    let home = setup();
    let config = fixture("a", &[]) + &scout(&NARROW) + "rate = { limit = \"60/min\", burst = 3 }\n";
    let gateway = Gateway::start(&home, &config);
    let scout = Client::of(&gateway, SCOUT);
    let call = || {
        scout.ask(
            "tools/call",
            json!({ "name": "a_echo", "arguments": { "text": "x" } }),
        )
    };
    let refused = until("the bucket is empty", || {
        Some(call()).filter(|answer| answer.get("error").is_some())
    });
    let data = &refused["error"]["data"];
    assert_eq!(data["code"], "rate_limited", "{refused}");
    let wait = data["retryAfterMs"].as_u64().unwrap();
    assert!((1..=1_000).contains(&wait), "{refused}");
    until("there is room again", || call().get("result").map(|_| ()));
}

/// Opens everything that a participant can hold open: a session with a GET stream, a call with
/// progress, a modern listen stream. `end` must end them all, and the server must receive the
/// cancellations.
#[track_caller]
fn all_ends(gateway: &Gateway, token: &str, admin: &Client, end: impl FnOnce()) {
    let client = Client::of(gateway, token);
    client.names("tools");
    let cancelled = admin.record("a")["cancelled"].as_u64().unwrap();
    let free = client.listen();
    let call = client.begin_call("a_slow", json!({ "ms": 18_000 }));
    call.next();
    let listening = modern_stream(
        gateway,
        Some(token),
        "subscriptions/listen",
        json!({ "notifications": { "toolsListChanged": true } }),
    );
    listening.next();
    let begun = Instant::now();
    end();
    free.rest();
    let said = call.rest();
    assert!(
        said.iter().all(|message| message.get("result").is_none()),
        "{said:?}"
    );
    listening.rest();
    until("the server hears of it", || {
        (admin.record("a")["cancelled"].as_u64() == Some(cancelled + 1)).then_some(())
    });
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "at once, not {:?}",
        begun.elapsed()
    );
    let status = client.status("tools/list", json!({}));
    assert!([401, 404].contains(&status), "{status}");
}

#[test]
fn revoking_a_token_ends_what_is_open() {
    let home = setup();
    let gateway = Gateway::start(
        &home,
        &(data_dir(&home) + &fixture("a", &["--era", "legacy"]) + ADMIN_TABLE),
    );
    let admin = Client::of(&gateway, ADMIN);
    let cli = |args: &[&str]| {
        let url = gateway.url();
        home.run(&[args, &["--url", &url, "--token", ADMIN]].concat())
    };
    let issue = || {
        cli(&["token", "new", "guest", "--capability", "mcp/request:*"])
            .expect(0)
            .stdout
            .trim()
            .to_owned()
    };
    let token = issue();
    let listed = cli(&["token", "ls"]).expect(0).stdout;
    assert!(
        listed.contains("guest") && !listed.contains(&token),
        "{listed}"
    );
    // Issuing tokens needs the capability.
    let url = gateway.url();
    home.run(&["token", "ls", "--url", &url, "--token", &token])
        .expect(3);

    let earlier = Client::of(&gateway, &token);
    all_ends(&gateway, &token, &admin, || {
        drop(cli(&["token", "revoke", "guest"]).expect(0))
    });
    assert_eq!(earlier.status("tools/list", json!({})), 401);
    cli(&["token", "revoke", "guest"]).expect(5);

    // A new token of the same name does not bring the old session back.
    let renewed = issue();
    let again = Client::resume(&gateway, Some(&renewed), "/mcp", &earlier.session);
    assert_eq!(again.status("tools/list", json!({})), 404);
    assert!(Client::of(&gateway, &renewed).names("tools").len() > 10);
}

#[test]
fn a_token_issued_offline_is_valid_after_the_next_start() {
    let home = setup();
    let config = data_dir(&home) + &fixture("a", &[]);
    home.write("portmoot.toml", &config);
    let new = [
        "token",
        "new",
        "guest",
        "--capability",
        "mcp/request:tools/call:a_echo",
        "--config",
        "portmoot.toml",
    ];
    let token = home.run(&new).expect(0).stdout.trim().to_owned();
    let gateway = Gateway::start(&home, &config);
    assert_eq!(
        gateway.get("/api/v1/tools", None).status,
        401,
        "loopback needs a token now"
    );
    assert_eq!(Client::of(&gateway, &token).names("tools"), ["a_echo"]);
}

#[test]
fn an_expired_token_ends_what_is_open() {
    let home = setup();
    let gateway = Gateway::start(
        &home,
        &(data_dir(&home) + &fixture("a", &["--era", "legacy"]) + ADMIN_TABLE),
    );
    let admin = Client::of(&gateway, ADMIN);
    admin.names("tools");
    let url = gateway.url();
    let new = [
        "token",
        "new",
        "guest",
        "--capability",
        "mcp/request:*",
        "--expires",
        "4s",
        "--url",
        &url,
        "--token",
        ADMIN,
    ];
    let token = home.run(&new).expect(0).stdout.trim().to_owned();
    all_ends(&gateway, &token, &admin, || {});
    assert_eq!(gateway.get("/api/v1/tools", Some(&token)).status, 401);
}

#[test]
fn removing_a_participant_from_the_configuration_ends_its_sessions() {
    let home = setup();
    let config = fixture("a", &["--era", "legacy"]) + ADMIN_TABLE;
    let wide = config.clone() + &scout(&["mcp/request:*"]);
    let gateway = Gateway::start(&home, &wide);
    let admin = Client::of(&gateway, ADMIN);
    all_ends(&gateway, SCOUT, &admin, || {
        home.write("portmoot.toml", &config);
        gateway.signal("HUP");
    });
    assert_eq!(gateway.get("/api/v1/tools", Some(SCOUT)).status, 401);
}

#[test]
fn reduced_capabilities_take_effect_at_once() {
    let home = setup();
    let config = fixture("a", &["--era", "legacy"]) + ADMIN_TABLE;
    let gateway = Gateway::start(&home, &(config.clone() + &scout(&NARROW)));
    let admin = Client::of(&gateway, ADMIN);
    let scout_client = Client::of(&gateway, SCOUT);
    assert_eq!(scout_client.names("tools").len(), 3);
    let free = scout_client.listen();
    for uri in ["test://static-text", "test://watched-resource"] {
        assert!(
            scout_client
                .ask("resources/subscribe", json!({ "uri": uri }))
                .get("result")
                .is_some()
        );
    }
    let listening = modern_stream(
        &gateway,
        Some(SCOUT),
        "subscriptions/listen",
        json!({ "notifications": { "resourceSubscriptions": ["test://watched-resource"], "toolsListChanged": true } }),
    );
    assert_eq!(
        listening.next()["method"],
        "notifications/subscriptions/acknowledged"
    );
    admin.call("a_touch_watched_resource", json!({}));
    free.next_of("notifications/resources/updated");
    listening.next_of("notifications/resources/updated");
    let call = scout_client.begin_call("a_slow", json!({ "ms": 18_000 }));
    call.next();

    home.write(
        "portmoot.toml",
        &(config + &scout(&["mcp/request:tools/call:a_echo"])),
    );
    gateway.signal("HUP");
    let last = call.rest();
    assert_eq!(
        last.last().unwrap()["error"]["data"]["code"],
        "forbidden",
        "{last:?}"
    );
    free.next_of("notifications/tools/list_changed");
    listening.next_of("notifications/tools/list_changed");
    until("the server hears of it", || {
        (admin.record("a")["cancelled"] == 1).then_some(())
    });
    assert_eq!(scout_client.names("tools"), ["a_echo"]);
    assert_eq!(scout_client.names("resources"), Vec::<String>::new());
    admin.call("a_touch_watched_resource", json!({}));
    scout_client.call("a_echo", json!({ "text": "a round trip" }));
    let received = [free.so_far(), listening.so_far()].concat();
    assert!(
        received
            .iter()
            .all(|message| message["method"] != "notifications/resources/updated"),
        "{received:?}"
    );
}

#[test]
fn a_wildcard_admits_no_uri_that_parsers_read_in_two_ways() {
    let home = setup();
    let narrow = scout(&["mcp/request:resources/read:test://template/a*"]);
    let gateway = Gateway::start(&home, &(fixture("a", &[]) + ADMIN_TABLE + &narrow));
    let admin = Client::open(&gateway, Some(ADMIN), "/mcp", json!({}));
    let scout = Client::open(&gateway, Some(SCOUT), "/mcp", json!({}));
    let read = |client: &Client, id: &str| {
        client.ask(
            "resources/read",
            json!({ "uri": format!("test://template/{id}/data") }),
        )
    };
    assert!(read(&scout, "a1")["result"].is_object());
    assert!(read(&scout, "a..1")["result"].is_object());
    let unknown = read(&scout, "b")["error"]["code"].clone();
    for id in [
        "a\t1",
        "a\n1",
        "a%09",
        "a%250d",
        "a\u{200b}",
        "a%e2%80%8b",
        "a%2e%2e",
        "a%252f",
        "a%5c",
        "a%c0%ae",
        "a%",
    ] {
        let answer = read(&scout, id);
        assert_eq!(
            (&answer["error"]["code"], unknown.is_i64()),
            (&unknown, true),
            "{id:?}: {answer}"
        );
        // A capability for every resource covers this one: the spelling alone is no fault.
        assert_ne!(read(&admin, id)["error"]["code"], unknown, "{id:?}");
    }
}
