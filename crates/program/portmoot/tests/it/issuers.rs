//! Tokens and grants of participants that hold few capabilities: nothing is given or taken that its
//! author does not hold.

use serde_json::{Value, json};

use crate::home::{Home, Ran};
use crate::http::Connection;
use crate::support::{Client, Gateway, fixture};
use crate::ws::{people, token};

const CLERK: &[&str] = &[
    "portmoot/tokens",
    "portmoot/grants",
    "mcp/proposal:*",
    "mcp/response:*",
    "chat",
    "mcp/request:tools/call:a_e*",
];

/// `boss` may do everything, also in the private topic `ops`. `clerk` issues tokens and grants, and
/// may call `a_e*` in `main`.
/// `ci`, `deploy`, `operator` and `worker` are configured without tokens.
fn setup() -> (Home, String) {
    let (home, config) = people(&[("boss", &["mcp/*", "chat", "portmoot/*"]), ("clerk", CLERK)]);
    let config = config.replace(
        "[participants.clerk]",
        "topics = [\"main\", \"ops\"]\n[participants.clerk]",
    );
    let tables = "[participants.ci]\ncapabilities = [\"mcp/request:tools/call:a_echo\"]\n\
        [participants.deploy]\ncapabilities = [\"mcp/request:tools/call:*\"]\n\
        [participants.both]\ncapabilities = [\"chat\"]\ntopics = [\"main\", \"ops\"]\n\
        [participants.worker]\ncapabilities = [\"mcp/response:*\"]\nserves = true\n\
        [topics.main]\n[topics.ops]\naccess = \"private\"\n";
    (home, config + tables + &fixture("a", &[]))
}

fn cli(home: &Home, gateway: &Gateway, who: &str, args: &[&str]) -> Ran {
    home.run(&[args, &["--url", &gateway.url(), "--token", &token(who)]].concat())
}

#[test]
fn a_token_is_issued_only_for_what_its_issuer_holds() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    gateway.ready("a");
    let new =
        |who: &str, args: &[&str]| cli(&home, &gateway, who, &[&["token", "new"], args].concat());
    for args in [
        &["x", "--capability", "mcp/request:*"][..],
        &["x", "--capability", "mcp/*"],
        &["x", "--capability", "mcp/request:tools/call"],
        &["x", "--capability", "mcp/request:tools/call:*"],
        &["x", "--capability", "mcp/request:tools/call:a_*"],
        &["x", "--capability", "portmoot/servers"],
        &["x", "--capability", "portmoot/*"],
        &[
            "x",
            "--capability",
            "chat",
            "--capability",
            "mcp/request:prompts/get:a_p",
        ],
        // A configured name needs all that this name may do, also the topics that it may enter.
        &["deploy"],
        &["both"],
        &["worker"],
    ] {
        let refused = new("clerk", args).expect(3).stderr;
        assert!(
            refused.contains("[capability_violation]"),
            "{args:?}: {refused}"
        );
        assert!(!refused.contains("ops"), "{refused}");
    }
    // A private topic is refused like one that does not exist.
    let [ops, gone] = ["ops", "gone"].map(|topic| {
        new("clerk", &["x", "--topic", topic])
            .expect(1)
            .stderr
            .replace(topic, "TOPIC")
    });
    assert_eq!(ops, gone);
    assert_eq!(
        cli(&home, &gateway, "boss", &["token", "ls", "--json"])
            .expect(0)
            .stdout
            .matches("\"name\"")
            .count(),
        0
    );
    let issued = new(
        "clerk",
        &["x", "--capability", "mcp/request:tools/call:a_echo"],
    )
    .expect(0)
    .stdout;
    assert_eq!(
        Client::of(&gateway, issued.trim()).names("tools"),
        ["a_echo"]
    );
    new("clerk", &["ci"]).expect(0);
    new("clerk", &["newcomer"]).expect(0);
    for args in [
        &["deploy"][..],
        &["both"],
        &["worker"],
        &["y", "--capability", "mcp/*", "--topic", "ops"],
    ] {
        new("boss", args).expect(0);
    }
    // What was granted on record counts as held, and what was revoked does not.
    let grant = [
        "participants",
        "grant",
        "ci",
        "mcp/request:prompts/get:*",
        "--topic",
        "main",
    ];
    cli(&home, &gateway, "boss", &grant).expect(0);
    cli(&home, &gateway, "boss", &["token", "revoke", "ci"]).expect(0);
    new("clerk", &["ci"]).expect(3);
    cli(
        &home,
        &gateway,
        "boss",
        &[
            "participants",
            "revoke",
            "clerk",
            "mcp/request:tools/call:a_e*",
        ],
    )
    .expect(0);
    new(
        "clerk",
        &["z", "--capability", "mcp/request:tools/call:a_echo"],
    )
    .expect(3);
    // The private topic of a token is not shown to those who may not know it.
    let listed = |who: &str| cli(&home, &gateway, who, &["token", "ls"]).expect(0).stdout;
    assert!(
        listed("boss").contains("ops") && !listed("clerk").contains("ops"),
        "{}",
        listed("clerk")
    );
}

#[test]
fn tokens_of_others_are_revoked_only_by_those_who_hold_as_much() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    for name in ["deploy", "both", "worker", "ci"] {
        cli(&home, &gateway, "boss", &["token", "new", name]).expect(0);
    }
    for name in ["deploy", "both", "worker"] {
        let refused = cli(&home, &gateway, "clerk", &["token", "revoke", name])
            .expect(3)
            .stderr;
        assert!(
            refused.contains("[capability_violation]") && !refused.contains("ops"),
            "{refused}"
        );
    }
    cli(&home, &gateway, "clerk", &["token", "revoke", "ci"]).expect(0);
    let left = cli(&home, &gateway, "boss", &["token", "ls"])
        .expect(0)
        .stdout;
    assert!(
        ["deploy", "both", "worker"]
            .iter()
            .all(|name| left.contains(name)),
        "{left}"
    );
    cli(&home, &gateway, "boss", &["token", "revoke", "deploy"]).expect(0);
}

#[test]
fn capabilities_are_taken_only_by_those_who_hold_them() {
    let (home, config) = setup();
    let gateway = Gateway::start(&home, &config);
    let exchange = |method: &str, path: &str, body: Value| {
        let mut connection = Connection::open(gateway.address());
        let reply = connection.api(method, path, &token("clerk"), &body);
        (reply.status, reply.body)
    };
    for path in [
        "/admin/participants/ID/capabilities",
        "/api/v1/participants/ID/grants",
    ] {
        for (id, taken, status) in [
            ("boss", "mcp/*", 403),
            ("boss", "portmoot/*", 403),
            ("deploy", "mcp/request:tools/call:*", 403),
            // The clerk holds `chat`, but may not enter all topics of the boss.
            ("boss", "chat", 403),
            ("ci", "mcp/request:tools/call:a_echo", 200),
        ] {
            let path = path.replace("ID", id);
            let (given, body) = exchange("POST", &path, json!({ "remove": [taken] }));
            assert_eq!(given, status, "{path} {taken}: {body}");
            assert!(!body.contains("ops"), "{body}");
        }
        assert_eq!(
            exchange("DELETE", "/api/v1/participants/ci/grants", Value::Null).0,
            204
        );
    }
    // In one topic, where the clerk holds it.
    assert_eq!(
        exchange(
            "POST",
            "/api/v1/participants/boss/grants?topic=main",
            json!({ "remove": ["chat"] })
        )
        .0,
        200
    );
    // What another participant has granted is not cleared by one that does not hold it.
    cli(
        &home,
        &gateway,
        "boss",
        &["participants", "grant", "ci", "mcp/request:prompts/*"],
    )
    .expect(0);
    assert_eq!(
        exchange("DELETE", "/api/v1/participants/ci/grants", Value::Null).0,
        403
    );
}
