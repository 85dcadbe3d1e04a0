//! `auth probe` and `auth check`: what a client finds, and why a token is refused.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use super::people;
use super::provider::Provider;
use super::resource;
use crate::home::{Home, Ran};
use crate::support::Gateway;

/// The steps of a probe: what, whether it is good, and what was found.
fn probed(url: &str, code: i32) -> Vec<(String, bool, String)> {
    let home = Home::new();
    let printed: Value = serde_json::from_str(
        &home
            .run(&["auth", "probe", url, "--json"])
            .expect(code)
            .stdout,
    )
    .unwrap();
    assert_eq!(printed["ok"], code == 0, "{printed:#}");
    let step = |one: &Value| {
        let text = |name: &str| one[name].as_str().unwrap().to_owned();
        (text("what"), one["ok"].as_bool().unwrap(), text("found"))
    };
    // People read the same.
    let shown = home.run(&["auth", "probe", url]).expect(code).stdout;
    let steps: Vec<_> = printed["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(step)
        .collect();
    assert_eq!(shown.lines().count(), steps.len(), "{shown}");
    assert!(
        steps
            .iter()
            .all(|(what, _, _)| shown.contains(what.as_str())),
        "{shown}"
    );
    steps
}

#[test]
fn a_probe_finds_what_a_client_needs_or_says_what_is_missing() {
    let (_home, gateway, provider) = people::start(600, "");
    for path in ["/mcp", "/mcp/ops"] {
        let steps = probed(&format!("{}{path}", gateway.url()), 0);
        assert!(steps.iter().all(|(_, good, _)| *good), "{steps:#?}");
        let found = |what: &str| {
            let (_, _, found) = steps
                .iter()
                .find(|(step, _, _)| step == what)
                .unwrap_or_else(|| panic!("{what}: {steps:#?}"));
            found.clone()
        };
        assert!(found("the server asks for a token").starts_with("401, Bearer resource_metadata="));
        assert!(found("its `issuer` is the one that was named").starts_with(&provider.issuer()));
        assert!(found("authorization_endpoint").starts_with(&provider.issuer()));
        assert_eq!(found("PKCE with S256"), "listed");
        assert_eq!(found("clients register"), "dynamically");
    }
    // A slash more than in the metadata: the mistake that clients refuse.
    let steps = probed(&format!("{}/mcp/", gateway.url()), 1);
    let wrong = steps.iter().find(|(_, good, _)| !good).unwrap();
    assert_eq!(
        wrong.0, "its `resource` is the address that was typed",
        "{steps:#?}"
    );
    // The provider is gone.
    provider.control(&json!({"op": "mode", "mode": "dead"}));
    let steps = probed(&format!("{}/mcp", gateway.url()), 1);
    let (what, good, _) = steps.last().unwrap();
    assert_eq!(
        (what.as_str(), *good),
        ("metadata of the authorization server", false),
        "{steps:#?}"
    );
}

#[test]
fn a_probe_says_that_no_token_is_needed_or_that_no_server_is_there() {
    let home = Home::new();
    let open = Gateway::start_with(&home, &[]);
    let url = format!("{}/mcp", open.url());
    let steps = probed(&url, 0);
    assert_eq!(steps.len(), 1);
    assert!(steps[0].2.contains("without a token: 200"), "{steps:?}");
    drop(open);
    let steps = probed(&url, 1);
    assert_eq!(
        (steps[0].0.as_str(), steps[0].1),
        ("the server answers", false),
        "{steps:?}"
    );
    let wrong = home.run(&["auth", "probe", "gopher://a.example/mcp"]);
    assert!(
        wrong.code == 2 && wrong.stderr.contains("bad_url"),
        "{} {}",
        wrong.code,
        wrong.stderr
    );
}

/// Runs `auth check` with this on stdin.
fn checked(home: &Home, token: &str, args: &[&str]) -> Ran {
    let mut command =
        home.command(&[&["auth", "check", "--config", "portmoot.toml"], args].concat());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(token.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_check_names_the_step_at_which_a_token_is_refused() {
    let provider = Provider::start(600);
    let home = Home::new().env("IDP_SECRET", "gateway-secret");
    home.write("portmoot.toml", &super::config(&provider, ""));
    let ops = json!({"aud": resource("/mcp/ops")});
    for (header, claims, key, step) in [
        (
            json!({"alg": "none"}),
            json!({}),
            "none",
            "size, form and algorithm",
        ),
        (
            json!({}),
            json!({"pad": "x".repeat(8192)}),
            "a",
            "size, form and algorithm",
        ),
        (
            json!({}),
            json!({"iss": "https://elsewhere.example"}),
            "a",
            "its issuer is configured",
        ),
        (
            json!({"typ": "JWT"}),
            json!({}),
            "a",
            "algorithm and type are the issuer's",
        ),
        (json!({"kid": "zz"}), json!({}), "a", "its signature"),
        (json!({}), json!({}), "foreign", "its signature"),
        (json!({}), json!({"exp": 1_000_000}), "a", "times, subject"),
        (json!({}), json!({"sub": null}), "a", "times, subject"),
        (json!({}), ops.clone(), "a", "it is for this gateway"),
        (
            json!({}),
            json!({"groups": ["strangers"]}),
            "a",
            "its subject has a place here",
        ),
    ] {
        let token = provider.forged(header, claims.clone(), key);
        let ran = checked(&home, &token, &[]).expect(4);
        let last = ran.stdout.lines().last().unwrap();
        assert!(
            last.starts_with(&format!("no   {step}: ")),
            "{claims}: {}",
            ran.stdout
        );
        assert!(
            ran.stdout
                .lines()
                .rev()
                .skip(1)
                .all(|line| line.starts_with("yes  ")),
            "{}",
            ran.stdout
        );
        assert!(!ran.stdout.contains(&token) && !ran.stderr.contains(&token));
    }
    // Good tokens, as files and headers have them, for the endpoint that is asked about.
    let main = provider.forged(json!({}), json!({}), "a");
    for text in [format!("{main}\n"), format!("  Bearer {main} \n")] {
        let ran = checked(&home, &text, &[]).expect(0);
        assert!(
            ran.stdout.contains("participant   corp:ann") && ran.stdout.contains("main, ops"),
            "{}",
            ran.stdout
        );
    }
    let other = provider.forged(json!({}), ops, "a");
    checked(&home, &other, &["--topic", "ops"]).expect(0);
    // Opaque ones are asked about.
    let issuer = format!("issuer = \"{}\"\n", provider.issuer());
    let asks = format!(
        "{issuer}tokens = \"introspect\"\nclient_id = \"gateway\"\nclient_secret_env = \"IDP_SECRET\"\nunknown = \"ops\"\n"
    );
    home.write(
        "portmoot.toml",
        &super::config(&provider, "").replace(&issuer, &asks),
    );
    let opaque = provider.machine("machine", &format!("{}?opaque", resource("/mcp")), "");
    checked(&home, &opaque, &[]).expect(0);
    let refused = checked(&home, "no-such-token", &[]).expect(4);
    assert!(
        refused
            .stdout
            .starts_with("no   its issuer says that it is active"),
        "{}",
        refused.stdout
    );
    provider.control(&json!({"op": "mode", "mode": "dead"}));
    let refused = checked(&home, "another-token", &[]).expect(4);
    assert!(
        refused.stdout.contains("cannot be asked"),
        "{}",
        refused.stdout
    );
    assert!(checked(&home, "  \n", &[]).stderr.contains("no_token"));
}
