//! Sign-ins that are refused, and tokens of earlier experiments: what operators and callers are
//! shown.

use std::io::Write;
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use crate::home::{Home, Ran};
use crate::http::Connection;
use crate::support::{Client, Gateway, until};

/// A token of this issuer and type, with a signature of no key.
fn token(issuer: &str, kind: &str) -> String {
    let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let head = part(json!({ "alg": "RS256", "typ": kind, "kid": "1" }));
    let claims = part(json!({ "iss": issuer, "sub": "eve", "aud": "x", "exp": 4_000_000_000_u64 }));
    format!("{head}.{claims}.{}", URL_SAFE_NO_PAD.encode("no signature"))
}

const CONFIG: &str = "[server]\npublic_url = \"https://gw.example\"\ndata_dir = \"data\"\n\
    [issuers.corp]\nissuer = \"http://127.0.0.1:9\"\n[[issuers.corp.map]]\nwhen = { groups = \"x\" }\n\
    profile = \"p\"\n[profiles.p]\ncapabilities = [\"chat\"]\n[servers.demo]\ntype = \"demo\"\n";

#[test]
fn a_refused_sign_in_is_recorded_and_explained() {
    let home = Home::new();
    let gateway = Gateway::start(&home, CONFIG);
    let foreign = token("https://elsewhere.example", "at+jwt");
    let refused = home.run(&["tools", "ls", "--url", &gateway.url(), "--token", &foreign]);
    let said = refused.expect(4).stderr;
    assert!(
        said.contains("the issuer of the token is not known here"),
        "{said}"
    );
    assert!(!said.contains("answered with status"), "{said}");
    let entries = until("it is recorded", || {
        let query = [
            "audit",
            "query",
            "portmoot/connection",
            "--config",
            "portmoot.toml",
        ];
        let entries = home.run(&query).expect(0).stdout;
        entries.contains("with an access token").then_some(entries)
    });
    assert!(
        entries.contains("the issuer of the token is not known here"),
        "{entries}"
    );
}

/// Pipes a token into `auth check`.
fn checked(home: &Home, token: &str) -> Ran {
    let mut command = home.command(&["auth", "check", "--config", "portmoot.toml"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(token.as_bytes())
        .unwrap();
    Ran::from(child.wait_with_output().unwrap())
}

#[test]
fn a_token_of_another_type_comes_with_the_key_to_set() {
    let home = Home::new();
    home.write("portmoot.toml", CONFIG);
    let shown = checked(&home, &token("http://127.0.0.1:9", "JWT"))
        .expect(4)
        .stdout;
    assert!(
        shown.contains("types = [\"at+jwt\", \"jwt\"] in [issuers.corp]"),
        "{shown}"
    );
}

#[test]
fn a_probe_of_the_wrong_path_names_the_right_one() {
    let home = Home::new();
    let gateway = Gateway::start_with(&home, &[]);
    let probed = home
        .run(&["auth", "probe", &gateway.url()])
        .expect(1)
        .stdout;
    assert!(
        probed.contains(&format!("did you mean {}/mcp?", gateway.url())),
        "{probed}"
    );
}

#[test]
fn tokens_of_earlier_runs_are_named_and_can_be_left_out() {
    let home = Home::new();
    let temp = home.path().join("temp");
    std::fs::create_dir(&temp).unwrap();
    let home = home.env("TMPDIR", temp.to_str().unwrap());
    home.run(&["token", "new", "agent"]).expect(0);
    let gateway = Gateway::start_with(&home, &[]);
    gateway.receive("need a token (1 is issued: agent)");
    let revoked = home.run(&["token", "revoke", "agent"]).expect(0).stderr;
    assert!(
        revoked.contains("callers need a token until the gateway starts again"),
        "{revoked}"
    );
    gateway.stop().expect(0);
    home.run(&["token", "new", "agent"]).expect(0);
    let trial = Gateway::start_with(&home, &["--try"]);
    trial.receive("need no token");
    trial.receive(&format!("stdio --url {}", trial.url()));
    trial.stop().expect(0);
    assert_eq!(
        std::fs::read_dir(&temp).unwrap().count(),
        0,
        "nothing of it is left"
    );
}

#[test]
fn the_first_token_is_issued_while_the_gateway_runs_and_closes_it() {
    let home = Home::new();
    let gateway = Gateway::start_with(&home, &[]);
    gateway.ready("demo");
    let client = Client::plain(&gateway);
    assert!(client.names("tools").contains(&"demo_add".to_owned()));
    // Another program of the machine is the local user, too, and does not shut the others out.
    let mut connection = Connection::open(gateway.address());
    let body = json!({ "name": "thief" }).to_string();
    let is_json = [("content-type", "application/json")];
    let refused = connection.exchange("POST", "/api/v1/tokens", &is_json, &body);
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(
        refused.body.contains("takes the operator key"),
        "{refused:?}"
    );
    let issued = home
        .run(&["token", "new", "ci", "--capability", "mcp/*"])
        .expect(0);
    assert!(
        issued.stderr.contains("from now on callers need a token"),
        "{}",
        issued.stderr
    );
    // What was open is over, and nothing new begins without a token.
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    assert_eq!(
        connection.exchange("POST", "/mcp", &is_json, &list).status,
        401
    );
    assert_eq!(
        connection
            .exchange("GET", "/api/v1/servers", &[], "")
            .status,
        401
    );
    let open = Home::beside(&home);
    let url = gateway.url();
    open.run(&["tools", "ls", "--url", &url]).expect(4);
    let listed = open
        .run(&[
            "tools",
            "ls",
            "--url",
            &url,
            "--token",
            issued.stdout.trim(),
        ])
        .expect(0)
        .stdout;
    assert!(listed.contains("demo_add"), "{listed}");
    let second = home.run(&["token", "new", "bot"]).expect(0).stderr;
    assert!(!second.contains("from now on"), "{second}");
    let tokens = home.run(&["token", "ls"]).expect(0).stderr;
    assert!(
        tokens.contains("audit query --participant NAME --last 1"),
        "{tokens}"
    );
}
