//! People who sign in with the SDKs of three languages: the whole loop from the first 401 to a
//! call, in both eras.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use harness::{deps, repository, rust_signs_in, signs_in};
use serde_json::{Value, json};

use super::provider::Provider;
use crate::home::Home;
use crate::shared_accounts::person::Person;
use crate::signin::documents::published;
use crate::support::Gateway;

const SCOPES: &str = "[scopes.\"mcp:read\"]\nbaseline = true\ncapabilities = [\"mcp/request:tools/call:a_echo\"]\n\
    [scopes.\"mcp:write\"]\nimplies = [\"mcp:read\"]\ncapabilities = [\"mcp/request:tools/call:*\"]\n";

/// A gateway that is reached under its own address, as the SDK insists, and its provider, whose
/// tokens are valid for `ttl` seconds.
pub(super) fn start(ttl: u64, more: &str) -> (Home, Gateway, Provider) {
    start_with(|resources| Provider::of(resources, ttl), more)
}

fn start_with(
    provider: impl FnOnce(&[String]) -> Provider,
    more: &str,
) -> (Home, Gateway, Provider) {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let public = format!("http://127.0.0.1:{port}");
    let resources = ["/mcp", "/mcp/ops"].map(|endpoint| format!("{public}{endpoint}"));
    let provider = provider(&resources);
    let issuer = format!("issuer = \"{}\"\n", provider.issuer());
    let config = super::config(&provider, SCOPES)
        .replace(super::PUBLIC, &public)
        .replace(&issuer, &format!("{issuer}step_up = true\n{more}"));
    let home = Home::new();
    home.write("portmoot.toml", &config);
    let listen = format!("127.0.0.1:{port}");
    let command = home.command(&["serve", "--listen", &listen, "--config", "portmoot.toml"]);
    let gateway = Gateway::serve(command);
    gateway.ready("a");
    (home, gateway, provider)
}

fn check(report: &Value, authorized: &[&str]) {
    let tools = report["tools"].as_array().unwrap();
    assert!(
        tools.len() > 3 && tools.contains(&json!("a_add")),
        "{report}"
    );
    assert_eq!(report["calls"][0], "hello", "{report}");
    assert_eq!(
        report["authorized"].as_array().unwrap().len(),
        authorized.len(),
        "{report}"
    );
    for (visit, scope) in report["authorized"]
        .as_array()
        .unwrap()
        .iter()
        .zip(authorized)
    {
        assert!(
            visit.as_str().unwrap().split(' ').any(|one| one == *scope),
            "{report}"
        );
    }
}

#[test]
fn the_python_sdk_signs_in_lists_calls_and_steps_up() {
    let (_home, gateway, _provider) = start(600, "");
    for (path, era) in [
        ("/mcp", "legacy"),
        ("/mcp", "modern"),
        ("/mcp/ops", "legacy"),
        ("/mcp/ops", "modern"),
    ] {
        let url = format!("{}{path}", gateway.url());
        let calls = [
            "--call",
            "a_echo",
            "{\"text\":\"hello\"}",
            "--call",
            "a_add",
            "{\"a\":1,\"b\":2}",
        ];
        let report = signs_in(
            &[
                &[url.as_str(), "ann", "--era", era, "--client-id", "desk"],
                &calls[..],
            ]
            .concat(),
        );
        check(&report, &["mcp:read", "mcp:write"]);
        assert!(
            report["calls"][1]
                .as_str()
                .is_some_and(|text| text.contains('3')),
            "{era} {path}: {report}"
        );
    }
}

#[test]
fn a_client_with_a_document_at_its_provider_signs_in_and_steps_up() {
    let (document, proxy) = published(&["http://127.0.0.1/callback"]);
    let files = Home::new();
    let authority = files.write("authority.pem", &proxy.pem);
    let (_home, gateway, _provider) = start_with(
        |resources| Provider::of_documents(resources, &authority),
        "",
    );
    let url = format!("{}/mcp", gateway.url());
    let calls = [
        "--call",
        "a_echo",
        "{\"text\":\"hello\"}",
        "--call",
        "a_add",
        "{\"a\":1,\"b\":2}",
    ];
    let report = signs_in(
        &[
            &[
                url.as_str(),
                "ann",
                "--client-metadata-url",
                document.as_str(),
            ],
            &calls[..],
        ]
        .concat(),
    );
    check(&report, &["mcp:read", "mcp:write"]);
    assert!(
        report["calls"][1]
            .as_str()
            .is_some_and(|text| text.contains('3')),
        "{report}"
    );
}

#[test]
fn a_client_that_registers_itself_signs_in_with_the_baseline() {
    let (_home, gateway, _provider) = start(600, "");
    let url = format!("{}/mcp", gateway.url());
    let report = signs_in(&[
        url.as_str(),
        "ann",
        "--call",
        "a_echo",
        "{\"text\":\"hello\"}",
    ]);
    check(&report, &["mcp:read"]);
}

#[test]
fn a_client_on_the_python_sdk_renews_an_access_token_that_has_expired() {
    let (_home, gateway, _provider) = start(5, "");
    for (path, era) in [("/mcp", "modern"), ("/mcp/ops", "legacy")] {
        let url = format!("{}{path}", gateway.url());
        let words = [
            "ann",
            "--era",
            era,
            "--client-id",
            "desk",
            "--call",
            "a_echo",
            "{\"text\":\"hello\"}",
        ];
        let report = signs_in(&[&[url.as_str()], &words[..], &["--later", "5.5"]].concat());
        check(&report, &["mcp:read"]);
        assert_eq!(
            (&report["refreshed"], &report["later"]),
            (&true.into(), &report["tools"]),
            "{report:#}"
        );
    }
}

#[test]
fn clients_on_the_typescript_sdks_sign_in_list_call_and_renew() {
    // They list again when each has opened its stream anew, which ends with its token and the skew:
    // two requests at that moment would both renew, and the provider takes a refresh token that
    // comes twice for a stolen one.
    let (_home, gateway, _provider) = start(5, "skew = \"1s\"\n");
    let clients = [
        ("/mcp", &["--client-id", "desk"][..]),
        ("/mcp/ops", &[]),
        ("/mcp", &["--sdk", "2"]),
        ("/mcp/ops", &["--sdk", "2", "--client-id", "desk"]),
    ];
    let running = clients.map(|(path, client)| {
        let url = format!("{}{path}", gateway.url());
        let mut command = Command::new(deps().node());
        command
            .arg(repository().join("tests/third-party/signs_in.mjs"))
            .args([url.as_str(), "ann"]);
        command
            .args(client)
            .args(["--later", "9"])
            .env("NPM_MODULES", deps().npm(""));
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    });
    for client in running {
        let ran = client.wait_with_output().unwrap();
        let report: Value = serde_json::from_slice(&ran.stdout).unwrap_or_default();
        assert!(
            ran.status.success(),
            "{report:#} {}",
            String::from_utf8_lossy(&ran.stderr)
        );
        let tools = report["tools"].as_array().unwrap();
        assert!(
            tools.contains(&json!("a_add")) && report["call"] == "hello",
            "{report:#}"
        );
        assert_eq!(
            (&report["refreshed"], &report["later"]),
            (&true.into(), &report["tools"]),
            "{report:#}"
        );
        assert_eq!(
            report["authorized"].as_array().unwrap().len(),
            1,
            "one sign-in is enough: {report:#}"
        );
    }
}

#[test]
fn a_client_on_the_rust_sdk_signs_in_lists_calls_and_renews() {
    let (_home, gateway, _provider) = start(5, "");
    for (path, client, modern) in [
        ("/mcp", Some("desk"), true),
        ("/mcp/ops", Some("desk"), false),
        ("/mcp", None, false),
    ] {
        let url = format!("{}{path}", gateway.url());
        let mut visits = 0;
        let report = rust_signs_in(
            &url,
            (client, modern),
            Duration::from_millis(5500),
            |page| {
                visits += 1;
                Person::default().open(page)
            },
        );
        let tools = report["tools"].as_array().unwrap();
        assert!(
            tools.contains(&json!("a_add")) && report["call"] == "hello",
            "{report:#}"
        );
        assert_eq!(
            (&report["refreshed"], &report["later"]),
            (&true.into(), &report["tools"]),
            "{report:#}"
        );
        assert_eq!(visits, 1, "one sign-in is enough");
    }
}
