//! From registration to calls: who signs in acts as the participant, at its endpoint, within its
//! scopes.

use serde_json::json;

use super::{Browser, REDIRECT, Site, Tokens, VERIFIER, initialize_message};
use crate::home::Home;
use crate::support::{Gateway, until};

#[test]
fn a_client_signs_in_and_acts_as_the_participant() {
    let site = Site::start("", "");
    let client = site.register(&[REDIRECT, "vscode://not/accepted"]);
    let mut browser = Browser::default();
    let page = browser.authorize(&site, &client, &[]);
    assert_eq!(page.reply.status, 200, "{:?}", page.reply);
    let back = site.allowed(&mut browser, &client, "ann", &[]);
    assert_eq!(back.reply.status, 303);
    assert!(
        back.location().starts_with(&format!("{REDIRECT}?code=")),
        "{}",
        back.location()
    );
    assert_eq!(
        (back.parameter("state"), back.parameter("iss")),
        ("the state".to_owned(), site.url())
    );
    let tokens = Tokens::of(&site.exchange(&client, &back.parameter("code"), &[]));
    // On every way in, as the participant.
    assert_eq!(site.initialize("/mcp", &tokens.access), 200);
    assert_eq!(site.initialize("/mcp/main", &tokens.access), 200);
    let bearer = format!("Bearer {}", tokens.access);
    let api = site.request("GET", "/api/v1/tools", &[("authorization", &bearer)], "");
    assert_eq!(api.status, 200, "{api:?}");
    let ws = [
        ("authorization", bearer.as_str()),
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", "mcpx.v0"),
    ];
    let opened = site.request("GET", "/ws?topic=main", &ws, "");
    assert!(
        [101, 400].contains(&opened.status),
        "not refused: {opened:?}"
    );
    let can = site.request(
        "GET",
        "/api/v1/participants/ann/can?method=tools/list",
        &[("authorization", &bearer)],
        "",
    );
    assert!(can.status != 401, "{can:?}");
    site.recorded("ann", "admitted", "consented");
    site.recorded("ann", "admitted", "issued");
    // No token is on disk or in the log.
    let journal = std::fs::read_to_string(journal(&site.home)).unwrap();
    for secret in [&tokens.access, &tokens.refresh, &back.parameter("code")] {
        assert!(
            !journal.contains(secret.as_str()) && !site.gateway.log().contains(secret.as_str())
        );
    }
}

fn journal(home: &Home) -> std::path::PathBuf {
    let found = std::process::Command::new("find")
        .arg(home.path())
        .args(["-name", "journal.jsonl"])
        .output();
    String::from_utf8(found.unwrap().stdout)
        .unwrap()
        .lines()
        .next()
        .unwrap()
        .into()
}

#[test]
fn a_token_is_for_its_endpoint_alone() {
    let site = Site::start("", "");
    let ops = format!("{}/mcp/ops", site.url());
    let (_, main_only) = site.signed_in("ann", &[]);
    let (_, ops_only) = site.signed_in("ann", &[("resource", &ops)]);
    for (path, main, other) in [
        ("/mcp", 200, 401),
        ("/mcp/ops", 401, 200),
        ("/mcp/nowhere", 401, 401),
    ] {
        assert_eq!(site.initialize(path, &main_only.access), main, "{path}");
        assert_eq!(site.initialize(path, &ops_only.access), other, "{path}");
    }
    let bearer = format!("Bearer {}", ops_only.access);
    let api = site.request("GET", "/api/v1/tokens", &[("authorization", &bearer)], "");
    assert_eq!(api.status, 401, "the API is the main endpoint's: {api:?}");
    // A changed token, one of nothing, and one in the query are no tokens.
    let mut changed = main_only.access.clone();
    changed.pop();
    for bad in [changed.as_str(), "pm_at_", "pm_at_AAAA", &main_only.refresh] {
        assert_eq!(site.initialize("/mcp", bad), 401, "{bad}");
    }
}

#[test]
fn scopes_narrow_what_a_token_is_good_for() {
    let scopes = "[scopes.\"mcp:read\"]\nbaseline = true\ncapabilities = [\"mcp/request:tools/call:a_echo\"]\n\
                  [scopes.\"mcp:all\"]\ncapabilities = [\"mcp/*\"]";
    let site = Site::start("", scopes);
    let metadata = site
        .request("GET", "/.well-known/oauth-authorization-server", &[], "")
        .json();
    assert_eq!(
        metadata["scopes_supported"],
        json!(["mcp:read", "mcp:all"]),
        "{metadata:#}"
    );
    let echo = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "a_echo",
        "arguments": {"text": "x", "message": "x"}}});
    let add = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "a_add",
        "arguments": {"a": 2, "b": 3}}});
    for (asked, add_works) in [
        ("", false),
        ("mcp:read", false),
        ("mcp:all", true),
        ("offline_access", false),
    ] {
        let (_, tokens) = site.signed_in("ann", &[("scope", asked)]);
        let opened = site.post("/mcp", &tokens.access, &initialize_message());
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        let call = |message: &serde_json::Value| {
            let bearer = format!("Bearer {}", tokens.access);
            let headers = [
                ("content-type", "application/json"),
                ("accept", "application/json, text/event-stream"),
                ("authorization", bearer.as_str()),
                ("mcp-session-id", session.as_str()),
                ("mcp-protocol-version", "2025-11-25"),
            ];
            site.request("POST", "/mcp", &headers, &message.to_string())
                .json()
        };
        assert!(
            call(&echo).get("result").is_some(),
            "{asked}: {}",
            call(&echo)
        );
        assert_eq!(
            call(&add).get("result").is_some(),
            add_works,
            "{asked}: {}",
            call(&add)
        );
    }
}

#[test]
fn a_code_is_bound_to_its_client_redirect_uri_proof_and_resource() {
    let site = Site::start("", "");
    let client = site.register(&[REDIRECT]);
    let other = site.register(&["http://localhost/other"]);
    let mut browser = Browser::default();
    let wrong_verifier = VERIFIER.replace('d', "e");
    let ops = format!("{}/mcp/ops", site.url());
    let cases: [(&[(&str, &str)], u16, &str); 8] = [
        (&[("client_id", &other)], 400, "invalid_grant"),
        (
            &[("redirect_uri", "http://127.0.0.1:33418/other")],
            400,
            "invalid_grant",
        ),
        (&[("code_verifier", &wrong_verifier)], 400, "invalid_grant"),
        (&[("code_verifier", "")], 400, "invalid_request"),
        (&[("resource", &ops)], 400, "invalid_target"),
        (&[("client_secret", "x")], 401, "invalid_client"),
        (&[("grant_type", "password")], 400, "unsupported_grant_type"),
        (&[("grant_type", "")], 400, "invalid_request"),
    ];
    for (wrong, status, error) in cases {
        let code = site
            .allowed(&mut browser, &client, "ann", &[])
            .parameter("code");
        let refused = site.exchange(&client, &code, wrong);
        assert_eq!(
            (refused.status, refused.json()["error"].as_str().unwrap()),
            (status, error),
            "{wrong:?}"
        );
        assert_eq!(refused.header("cache-control"), Some("no-store"));
    }
    // The one that is right, with the main endpoint spelled otherwise.
    let code = site
        .allowed(&mut browser, &client, "ann", &[])
        .parameter("code");
    let main = format!("{}/mcp/", site.url());
    Tokens::of(&site.exchange(&client, &code, &[("resource", &main)]));
}

#[test]
fn a_second_use_of_a_code_ends_what_the_first_one_gave() {
    let site = Site::start("", "");
    let client = site.register(&[REDIRECT]);
    let code = site
        .allowed(&mut Browser::default(), &client, "ann", &[])
        .parameter("code");
    let tokens = Tokens::of(&site.exchange(&client, &code, &[]));
    assert_eq!(site.initialize("/mcp", &tokens.access), 200);
    assert_eq!(
        site.exchange(&client, &code, &[]).json()["error"],
        "invalid_grant"
    );
    assert_eq!(site.initialize("/mcp", &tokens.access), 401);
    assert_eq!(
        site.refresh(&client, &tokens.refresh).json()["error"],
        "invalid_grant"
    );
    site.recorded("ann", "refused", "reuse");
}

#[test]
fn an_expired_token_is_refused_and_its_streams_end() {
    let site = Site::start("access = \"3s\"", "");
    let (client, tokens) = site.signed_in("ann", &[]);
    let (session, stream) = site.streamed(&tokens.access);
    until("the token expires", || {
        (site.initialize("/mcp", &tokens.access) == 401).then_some(())
    });
    let refused = site.post("/mcp", &tokens.access, &initialize_message());
    let challenge = refused.header("www-authenticate").unwrap();
    assert!(
        challenge.contains("error=\"invalid_token\"") && challenge.contains("expired"),
        "{challenge}"
    );
    // With its token.
    stream.rest();
    // A fresh token goes on with the same session.
    let fresh = Tokens::of(&site.refresh(&client, &tokens.refresh));
    let bearer = format!("Bearer {}", fresh.access);
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("authorization", bearer.as_str()),
        ("mcp-session-id", session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).to_string();
    assert!(
        site.request("POST", "/mcp", &headers, &list)
            .json()
            .get("result")
            .is_some()
    );
}

#[test]
fn the_metadata_leads_to_the_authorization_server() {
    let site = Site::start("", "");
    let challenge = site.request(
        "POST",
        "/mcp",
        &[
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ],
        "{}",
    );
    assert_eq!(challenge.status, 401);
    let named = format!(
        "resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"",
        site.url()
    );
    assert!(
        challenge
            .header("www-authenticate")
            .unwrap()
            .contains(&named),
        "{challenge:?}"
    );
    let resource = site
        .request("GET", "/.well-known/oauth-protected-resource/mcp", &[], "")
        .json();
    assert_eq!(resource["authorization_servers"], json!([site.url()]));
    for path in [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ] {
        let reply = site.request("GET", path, &[("origin", "https://claude.ai")], "");
        assert_eq!(
            (reply.status, reply.header("access-control-allow-origin")),
            (200, Some("*")),
            "{path}"
        );
        let document = reply.json();
        assert_eq!(document["issuer"], site.url());
        assert_eq!(
            document["token_endpoint_auth_methods_supported"],
            json!(["none"])
        );
        assert_eq!(
            document["code_challenge_methods_supported"],
            json!(["S256"])
        );
        assert_eq!(document["client_id_metadata_document_supported"], true);
        assert_eq!(
            document["authorization_response_iss_parameter_supported"],
            true
        );
    }
    assert_eq!(
        site.request(
            "GET",
            "/.well-known/oauth-authorization-server/mcp",
            &[],
            ""
        )
        .status,
        404
    );
    // Scripts of other sites may use what has no cookies, and nothing else.
    for (path, cors) in [
        ("/oauth/token", true),
        ("/oauth/register", true),
        ("/oauth/authorize", false),
        ("/oauth/consent", false),
    ] {
        let headers = [
            ("origin", "https://claude.ai"),
            ("access-control-request-method", "POST"),
        ];
        let reply = site.request("OPTIONS", path, &headers, "");
        assert_eq!(
            reply.header("access-control-allow-origin"),
            cors.then_some("*"),
            "{path}: {reply:?}"
        );
    }
}

#[test]
fn without_login_nothing_of_it_is_served() {
    let home = Home::new();
    let gateway = Gateway::start(&home, "[login]\nenabled = false\nclients = \"trusted\"\n");
    for path in [
        "/.well-known/oauth-authorization-server",
        "/oauth/authorize",
        "/oauth/token",
        "/oauth/register",
    ] {
        assert_eq!(gateway.get(path, None).status, 404, "{path}");
    }
    let refused = home.run(&["login", "code", "ann"]);
    assert!(
        refused.code != 0 && refused.stderr.contains("not enabled"),
        "{}",
        refused.stderr
    );
    let home = Home::new();
    home.write("portmoot.toml", "[login]\nenabled = true\n");
    let checked = home.run(&["config", "check", "--config", "portmoot.toml"]);
    assert!(
        checked.code != 0 && checked.stderr.contains("public_url"),
        "{}{}",
        checked.stdout,
        checked.stderr
    );
}
