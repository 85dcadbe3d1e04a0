//! Ends of grants: with the tokens of their participant, and only by participants that hold what is
//! granted.

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::support::{Gateway, fixture, until};

const ROOT: &str = "token-of-the-root-operator";
const GRANTER: &str = "token-of-one-who-may-only-grant";
const PEOPLE: &str = "[participants.root]\ntoken_env = \"ROOT_TOKEN\"\n\
    capabilities = [\"mcp/*\", \"chat\", \"game/*\", \"portmoot/*\"]\n\
    [participants.granter]\ntoken_env = \"GRANTER_TOKEN\"\ncapabilities = [\"chat\", \"portmoot/grants\"]\n\
    [participants.fixed]\ncapabilities = [\"game/*\", \"chat\"]\n";

fn setup() -> (Home, String) {
    let home = Home::new()
        .env("ROOT_TOKEN", ROOT)
        .env("GRANTER_TOKEN", GRANTER);
    let data = format!(
        "[server]\ndata_dir = \"{}\"\n",
        home.path().join("data").display()
    );
    (home, data + PEOPLE + &fixture("a", &[]))
}

/// A request to the API with a token.
pub(crate) fn api(gateway: &Gateway, token: &str, method: &str, path: &str, body: &Value) -> Reply {
    let path = format!("/api/v1/{path}");
    Connection::open(gateway.address()).api(method, &path, token, body)
}

#[track_caller]
fn root(gateway: &Gateway, method: &str, path: &str, body: &Value) -> Value {
    let reply = api(gateway, ROOT, method, path, body);
    assert!(matches!(reply.status, 200 | 201), "{reply:?}");
    reply.json()
}

/// Issues a token, and returns the capabilities of its participant.
fn issue(gateway: &Gateway, name: &str) -> Value {
    root(gateway, "POST", "tokens", &json!({ "name": name }));
    held(gateway, name)
}

fn held(gateway: &Gateway, name: &str) -> Value {
    let all = root(gateway, "GET", "participants?topic=main", &Value::Null);
    let found = all["participants"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["id"] == name)
        .cloned();
    found.unwrap_or_else(|| panic!("no {name}: {all}"))["capabilities"].clone()
}

const CHANGE: &str = r#"{"add": ["mcp/request:tools/*"], "remove": ["chat"]}"#;

#[test]
fn grants_end_with_the_tokens_of_their_participant() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    let fresh = issue(&gateway, "scout");
    root(
        &gateway,
        "POST",
        "participants/scout/grants",
        &serde_json::from_str(CHANGE).unwrap(),
    );
    assert_ne!(held(&gateway, "scout"), fresh);
    let revoked = api(&gateway, ROOT, "DELETE", "tokens/scout", &Value::Null);
    assert_eq!(
        issue(&gateway, "scout"),
        fresh,
        "the next participant of this name"
    );
    assert_eq!(
        revoked.json(),
        json!({ "name": "scout", "grants_ended": 2, "grants_kept": 0 })
    );
    // The same after a restart, and by the command line.
    root(
        &gateway,
        "POST",
        "participants/scout/grants",
        &serde_json::from_str(CHANGE).unwrap(),
    );
    gateway.stop();
    let ran = home
        .run(&["token", "revoke", "scout", "--config", "portmoot.toml"])
        .expect(0);
    assert!(
        ran.stderr
            .contains("2 changes of its capabilities have ended"),
        "{}",
        ran.stderr
    );
    let gateway = Gateway::start(&home, &config);
    assert_eq!(issue(&gateway, "scout"), fresh);
    assert_eq!(
        root(&gateway, "DELETE", "tokens/scout", &Value::Null)["grants_ended"],
        0
    );
}

#[test]
fn grants_of_a_configured_participant_stay() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    issue(&gateway, "fixed");
    root(
        &gateway,
        "POST",
        "participants/fixed/grants",
        &serde_json::from_str(CHANGE).unwrap(),
    );
    let changed = held(&gateway, "fixed");
    let revoked = root(&gateway, "DELETE", "tokens/fixed", &Value::Null);
    assert_eq!(
        revoked,
        json!({ "name": "fixed", "grants_ended": 0, "grants_kept": 2 })
    );
    assert_eq!(
        issue(&gateway, "fixed"),
        changed,
        "a capability that was taken from it does not come back"
    );
    // Once it is not configured any more, another participant of its name begins without them.
    root(&gateway, "DELETE", "tokens/fixed", &Value::Null);
    gateway.stop();
    let at = config.find("[participants.fixed]").unwrap();
    let end = config.find("[servers").unwrap();
    let gateway = Gateway::start(&home, &(config[..at].to_owned() + &config[end..]));
    let fresh = issue(&gateway, "other");
    assert_eq!(issue(&gateway, "fixed"), fresh);
}

#[test]
fn a_participant_that_is_configured_later_gets_no_grants_of_an_earlier_one() {
    let (home, config) = setup();
    let home = home.env("SCOUT_TOKEN", "token-of-the-configured-scout");
    let gateway = Gateway::start(&home, &config);
    issue(&gateway, "scout");
    root(
        &gateway,
        "POST",
        "participants/scout/grants",
        &serde_json::from_str(CHANGE).unwrap(),
    );
    let configured = "[participants.scout]\ntoken_env = \"SCOUT_TOKEN\"\ncapabilities = [\"chat\", \"game/*\"]\n";
    let later = config.replace(
        "[participants.fixed]",
        &format!("{configured}[participants.fixed]"),
    );
    home.write("portmoot.toml", &later);
    gateway.signal("HUP");
    until("scout has what is configured", || {
        (held(&gateway, "scout") == json!(["chat", "game/*"])).then_some(())
    });
    let says = "they were made before the participant was configured";
    let log = gateway.stop().stderr;
    assert!(log.contains(says) && log.contains("scout"), "{log}");
    let doctor = home.run(&["doctor", "--config", "portmoot.toml"]).stdout;
    assert!(
        doctor.contains(&format!(
            "careful grants: scout: changes of capabilities on record do not apply: {says}"
        )),
        "{doctor}"
    );
    // The same after a restart. What is granted to the configured participant applies, and ends
    // when it is not configured.
    let gateway = Gateway::start(&home, &later);
    assert_eq!(held(&gateway, "scout"), json!(["chat", "game/*"]));
    root(
        &gateway,
        "POST",
        "participants/scout/grants",
        &json!({ "remove": ["game/*"] }),
    );
    assert_eq!(held(&gateway, "scout"), json!(["chat"]));
    let log = gateway.stop().stderr;
    assert!(log.contains(says), "{log}");
    // The bearer of the token is there again, with what was changed for it and nothing else.
    let gateway = Gateway::start(&home, &config);
    assert_eq!(
        held(&gateway, "scout"),
        json!(["mcp/proposal:*", "mcp/response:*", "mcp/request:tools/*"])
    );
}

#[test]
fn a_granter_takes_away_nothing_that_it_does_not_hold() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    issue(&gateway, "scout");
    root(
        &gateway,
        "POST",
        "participants/scout/grants",
        &json!({ "add": ["mcp/request:tools/*"], "remove": [] }),
    );
    let before = held(&gateway, "scout");
    for path in [
        "participants/scout/grants",
        "participants/scout/grants?topic=main",
    ] {
        for capability in ["mcp/request:tools/*", "mcp/proposal:*"] {
            let body = json!({ "add": [], "remove": [capability] });
            let reply = api(&gateway, GRANTER, "POST", path, &body);
            assert_eq!(
                (reply.status, &reply.json()["code"]),
                (403, &json!("capability_violation")),
                "{reply:?}"
            );
        }
        let reply = api(
            &gateway,
            GRANTER,
            "POST",
            path,
            &json!({ "add": [], "remove": ["chat", "mcp/proposal:*"] }),
        );
        assert_eq!(reply.status, 403, "all or nothing: {reply:?}");
    }
    let cleared = api(
        &gateway,
        GRANTER,
        "DELETE",
        "participants/scout/grants",
        &Value::Null,
    );
    assert_eq!(cleared.status, 403, "{cleared:?}");
    assert_eq!(held(&gateway, "scout"), before);
    let reply = api(
        &gateway,
        GRANTER,
        "POST",
        "participants/scout/grants",
        &json!({ "add": [], "remove": ["chat"] }),
    );
    assert_eq!(reply.status, 200, "it holds `chat` itself: {reply:?}");
}

#[test]
fn a_token_has_at_most_as_many_capabilities_as_a_participant() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    for (count, by_api, by_command) in [(1_024, 201, 0), (1_025, 400, 1), (2_000, 400, 1)] {
        let may: Vec<String> = (0..count)
            .map(|at| format!("mcp/request:tools/call:a_{at}"))
            .collect();
        let body = json!({ "name": format!("api-{count}"), "capabilities": may });
        let issued = api(&gateway, ROOT, "POST", "tokens", &body);
        assert_eq!(issued.status, by_api, "{count}: {issued:?}");
        let name = format!("command-{count}");
        let url = gateway.url();
        let mut args = vec!["token", "new", &name, "--url", &url, "--token", ROOT];
        may.iter()
            .for_each(|one| args.extend(["--capability", one]));
        let ran = home.run(&args);
        assert_eq!(ran.code, by_command, "{count}: {}", ran.stderr);
        if by_api != 201 {
            let said = issued.body + &ran.stderr;
            assert_eq!(
                said.matches("a token has at most 1024 capabilities")
                    .count(),
                2,
                "{said}"
            );
        }
    }
}

/// A library that sets the wall clock of a process back by an hour.
#[cfg(target_os = "linux")]
const AN_HOUR_AGO: &str = "#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *at) {
  int end = syscall(SYS_clock_gettime, clock, at);
  if (clock == CLOCK_REALTIME) at->tv_sec -= 3600;
  return end;
}
";

#[cfg(target_os = "linux")]
#[test]
fn what_has_expired_stays_expired_when_the_clock_is_set_back() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    let before = issue(&gateway, "fixed");
    let lasting = root(
        &gateway,
        "POST",
        "tokens",
        &json!({ "name": "lasting", "lifetime_ms": 3_600_000 }),
    );
    let brief = root(
        &gateway,
        "POST",
        "tokens",
        &json!({ "name": "brief", "lifetime_ms": 1_000 }),
    );
    let [lasting, brief] =
        [&lasting, &brief].map(|issued| issued["token"].as_str().unwrap().to_owned());
    let grant = json!({ "add": ["mcp/request:tools/*"], "expires_in_seconds": 1 });
    root(&gateway, "POST", "participants/fixed/grants", &grant);
    let status = |gateway: &Gateway, token: &str| gateway.get("/api/v1/tools", Some(token)).status;
    assert_eq!(status(&gateway, &lasting), 200);
    let journal = home.path().join("data/journal.jsonl");
    // The latest time of this name in records that have this member with this value.
    let latest = |time: &str, member: &str, value: &str| {
        let text = std::fs::read_to_string(&journal).unwrap();
        let all = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        all.filter(|record| record[member] == value)
            .filter_map(|record| record[time].as_u64())
            .max()
    };
    let last_end = latest("expires_ms", "name", "brief")
        .max(latest("expires_ms", "participant", "fixed"))
        .unwrap();
    until("both ends are on record", || {
        (latest("at_ms", "record", "expired")? >= last_end).then_some(())
    });
    assert_eq!(
        (held(&gateway, "fixed"), status(&gateway, &brief)),
        (before.clone(), 401)
    );
    gateway.stop();
    let (source, library) = (
        home.write("clock.c", AN_HOUR_AGO),
        home.path().join("clock.so"),
    );
    let mut compiler = std::process::Command::new("cc");
    let built = compiler
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status()
        .unwrap();
    assert!(built.success());
    let mut command = home.command(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--config",
        "portmoot.toml",
    ]);
    command.env("LD_PRELOAD", &library);
    let gateway = Gateway::serve(command);
    root(&gateway, "POST", "tokens", &json!({ "name": "earlier" }));
    let created = ["earlier", "lasting"].map(|name| latest("created_ms", "name", name).unwrap());
    assert!(
        created[0] + 1_800_000 < created[1],
        "the clock is not set back: {created:?}"
    );
    assert_eq!(held(&gateway, "fixed"), before);
    assert_eq!(
        [&lasting, &brief].map(|token| status(&gateway, token)),
        [200, 401]
    );
}
