//! Rights that end: what their holders pass on ends no later.

use serde_json::{Value, json};

use crate::ended_grants::api;
use crate::support::Gateway;
use crate::ws::{people, token};

const HOUR: u64 = 3_600;
const PROMPTS: &str = "mcp/request:prompts/*";
const CLERK: &[&str] = &[
    "portmoot/tokens",
    "portmoot/grants",
    "mcp/proposal:*",
    "mcp/response:*",
    "chat",
];

/// A request of the operator, which succeeds.
#[track_caller]
fn boss(gateway: &Gateway, method: &str, path: &str, body: &Value) -> Value {
    let reply = api(gateway, &token("boss"), method, path, body);
    assert!((200..300).contains(&reply.status), "{reply:?}");
    if reply.body.is_empty() {
        Value::Null
    } else {
        reply.json()
    }
}

/// Requests that are refused because they would give something for too long.
#[track_caller]
fn too_long(gateway: &Gateway, token: &str, requests: &[(&str, &str, Value)]) {
    for (method, path, body) in requests {
        let reply = api(gateway, token, method, path, body);
        assert_eq!(reply.status, 403, "{method} {path} {body}: {reply:?}");
        let reply = reply.json();
        assert_eq!(
            reply["code"], "capability_violation",
            "{path} {body}: {reply}"
        );
        let hint = reply["hint"].as_str().unwrap();
        assert!(
            hint.contains("for a shorter time"),
            "{path} {body}: {reply}"
        );
    }
}

#[track_caller]
fn allowed(gateway: &Gateway, token: &str, requests: &[(&str, &str, Value)]) {
    for (method, path, body) in requests {
        let reply = api(gateway, token, method, path, body);
        assert!(
            (200..300).contains(&reply.status),
            "{method} {path} {body}: {reply:?}"
        );
    }
}

fn setup() -> (crate::home::Home, String) {
    let (home, config) = people(&[("boss", &["mcp/*", "chat", "portmoot/*"]), ("clerk", CLERK)]);
    let tables = "[participants.ci]\ncapabilities = [\"chat\"]\n\
        [participants.reader]\ncapabilities = [\"mcp/request:prompts/*\"]\n";
    (home, config + tables)
}

#[test]
fn a_timed_grant_is_passed_on_for_no_longer() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    let timed = json!({ "add": [PROMPTS], "expires_in_seconds": HOUR });
    boss(&gateway, "POST", "participants/clerk/grants", &timed);
    let clerk = token("clerk");
    let grants = "participants/ci/grants";
    let exact = "mcp/request:prompts/get:greet";
    too_long(
        &gateway,
        &clerk,
        &[
            ("POST", grants, json!({ "add": [PROMPTS] })),
            (
                "POST",
                grants,
                json!({ "add": [exact], "expires_in_seconds": 2 * HOUR }),
            ),
            (
                "POST",
                "participants/ci/grants?topic=main",
                json!({ "add": ["chat", exact] }),
            ),
            (
                "POST",
                "participants/clerk/grants",
                json!({ "add": [PROMPTS] }),
            ),
            (
                "POST",
                "tokens",
                json!({ "name": "x", "capabilities": [PROMPTS] }),
            ),
            (
                "POST",
                "tokens",
                json!({ "name": "x", "capabilities": [exact], "lifetime_ms": 2_000 * HOUR }),
            ),
            ("POST", "tokens", json!({ "name": "reader" })),
        ],
    );
    allowed(
        &gateway,
        &clerk,
        &[
            (
                "POST",
                grants,
                json!({ "add": [PROMPTS], "expires_in_seconds": HOUR / 2 }),
            ),
            // What it holds without an end it passes on without one.
            (
                "POST",
                "participants/reader/grants",
                json!({ "add": ["chat"] }),
            ),
            (
                "POST",
                "tokens",
                json!({ "name": "x", "capabilities": [PROMPTS], "lifetime_ms": 500 * HOUR }),
            ),
            ("POST", "tokens", json!({ "name": "newcomer" })),
            (
                "POST",
                "tokens",
                json!({ "name": "reader", "lifetime_ms": 500 * HOUR }),
            ),
            // Taking has no end.
            ("POST", grants, json!({ "remove": [PROMPTS] })),
            ("DELETE", "tokens/x", Value::Null),
        ],
    );
}

#[test]
fn a_timed_token_passes_nothing_on_that_outlasts_it() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    let timed = json!({ "name": "temp", "capabilities": CLERK, "lifetime_ms": 1_000 * HOUR });
    let temp = boss(&gateway, "POST", "tokens", &timed)["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let grants = "participants/ci/grants";
    too_long(
        &gateway,
        &temp,
        &[
            ("POST", grants, json!({ "add": ["mcp/proposal:*"] })),
            (
                "POST",
                grants,
                json!({ "add": ["mcp/proposal:*"], "expires_in_seconds": 2 * HOUR }),
            ),
            (
                "POST",
                "participants/temp/grants",
                json!({ "add": ["chat"] }),
            ),
            ("POST", "tokens", json!({ "name": "x" })),
            (
                "POST",
                "tokens",
                json!({ "name": "x", "capabilities": ["chat"], "lifetime_ms": 2_000 * HOUR }),
            ),
            // The next token would live as long again.
            ("POST", "tokens/temp/rotate", json!({ "overlap_ms": 0 })),
        ],
    );
    allowed(
        &gateway,
        &temp,
        &[
            (
                "POST",
                grants,
                json!({ "add": ["mcp/proposal:*"], "expires_in_seconds": HOUR / 2 }),
            ),
            (
                "POST",
                "tokens",
                json!({ "name": "x", "capabilities": ["chat"], "lifetime_ms": 500 * HOUR }),
            ),
            ("POST", "tokens/x/rotate", json!({ "overlap_ms": 1_000 })),
            ("POST", grants, json!({ "remove": ["chat"] })),
        ],
    );
    boss(
        &gateway,
        "POST",
        "tokens/temp/rotate",
        &json!({ "overlap_ms": 0 }),
    );
}

#[test]
fn a_revocation_is_lifted_only_by_those_who_hold_as_long_what_it_gives_back() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    let timed = json!({ "name": "temp", "capabilities": CLERK, "lifetime_ms": 1_000 * HOUR });
    let temp = boss(&gateway, "POST", "tokens", &timed)["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let grants = "participants/ci/grants";
    let taken = |time: &Value| {
        boss(&gateway, "DELETE", grants, &Value::Null);
        boss(
            &gateway,
            "POST",
            grants,
            &json!({ "remove": ["chat"], "expires_in_seconds": time }),
        );
    };
    let brief = json!({ "add": ["chat"], "expires_in_seconds": 60 });
    // `ci` is configured with `chat`: without the revocation it has it again, for ever.
    taken(&Value::Null);
    too_long(&gateway, &temp, &[("DELETE", grants, Value::Null)]);
    // A change with an end leaves the lasting one in force.
    allowed(&gateway, &temp, &[("POST", grants, brief.clone())]);
    taken(&json!(2 * HOUR));
    too_long(
        &gateway,
        &temp,
        &[
            ("DELETE", grants, Value::Null),
            ("POST", grants, brief.clone()),
        ],
    );
    taken(&json!(HOUR / 2));
    allowed(
        &gateway,
        &temp,
        &[("POST", grants, brief), ("DELETE", grants, Value::Null)],
    );
    // A token whose bearer gets back what its issuer does not hold.
    let suspended = json!({ "remove": [PROMPTS], "expires_in_seconds": HOUR / 2 });
    boss(&gateway, "POST", "participants/reader/grants", &suspended);
    let clerk = token("clerk");
    too_long(
        &gateway,
        &clerk,
        &[("POST", "tokens", json!({ "name": "reader" }))],
    );
    allowed(
        &gateway,
        &clerk,
        &[(
            "POST",
            "tokens",
            json!({ "name": "reader", "lifetime_ms": 1_000 }),
        )],
    );
}
