//! Keys and accounts at HTTP APIs: sent where a description says, under the name that it has there;
//! tokens of an authorization server as at any server; calls over the REST API.

use serde_json::{Value, json};

use super::{JSON, Stub, api, setup};
use crate::docs::{section, transcripts};
use crate::home::Home;
use crate::http::Connection;
use crate::support::{Client, Gateway, until};

const KEY: &str = "key-of-the-shop-0123456789";

/// An API with one operation and this security scheme.
fn with_scheme(origin: &str, scheme: &Value) -> String {
    json!({ "openapi": "3.1.0", "info": { "title": "Shop", "version": "7" }, "servers": [{ "url": format!("{origin}/v1") }],
        "components": { "securitySchemes": { "shop": scheme } }, "security": [{ "shop": [] }],
        "paths": { "/items": { "get": { "operationId": "items", "parameters": [
            { "in": "query", "name": "limit", "schema": { "type": "integer" } },
            { "in": "query", "name": "access_key", "schema": { "type": "string" } }] } } } })
    .to_string()
}

#[test]
fn a_key_is_sent_where_the_description_says_under_its_own_name() {
    let schemes = [
        (
            json!({ "type": "apiKey", "in": "query", "name": "access_key" }),
            "query = { access_key = \"${SHOP_KEY}\" }",
        ),
        (
            json!({ "type": "apiKey", "in": "cookie", "name": "sid" }),
            "headers = { Cookie = \"sid=${SHOP_KEY}\" }",
        ),
        (
            json!({ "type": "apiKey", "in": "header", "name": "X-Shop" }),
            "headers = { X-Shop = \"${SHOP_KEY}\" }",
        ),
        (
            json!({ "type": "http", "scheme": "Bearer" }),
            "headers = { Authorization = \"Bearer ${SHOP_KEY}\" }",
        ),
    ];
    for (scheme, written) in schemes {
        let home = Home::new().env("SHOP_KEY", KEY);
        let stub = Stub::new(|_| (200, JSON, "{}".to_owned()));
        home.write("shop.json", &with_scheme(&stub.origin(), &scheme));
        home.write("portmoot.toml", "");
        let added = home
            .run(&[
                "add",
                "shop",
                "--openapi",
                "shop.json",
                "--key",
                "${SHOP_KEY}",
            ])
            .expect(0)
            .stderr;
        assert!(
            added.contains(written) && added.contains("note: `Shop` has 1 tool"),
            "{added}"
        );
        assert!(
            !added.contains("the API asks for") && !added.contains("keep it out"),
            "{added}"
        );
        let gateway = Gateway::start_with(&home, &["--config", "portmoot.toml"]);
        gateway.ready("shop");
        let client = Client::plain(&gateway);
        client.call("shop_items", json!({ "limit": 2 }));
        let sent = stub.received().pop().unwrap();
        let at = |name: &str| sent.header(name).unwrap_or_default().to_owned();
        let expected = match scheme["in"].as_str() {
            Some("query") => (
                format!("/v1/items?limit=2&access_key={KEY}"),
                sent.target.clone(),
            ),
            Some("cookie") => (format!("sid={KEY}"), at("Cookie")),
            Some(_) => (KEY.to_owned(), at("X-Shop")),
            None => (format!("Bearer {KEY}"), at("Authorization")),
        };
        assert_eq!(expected.0, expected.1, "{scheme}");
        // What is configured is no argument, and the key is shown nowhere.
        let tool = client.ask("tools/list", json!({}))["result"]["tools"][0].take();
        let is_argument = tool["inputSchema"]["properties"]
            .get("access_key")
            .is_some();
        assert_eq!(is_argument, scheme["in"] != "query", "{tool}");
        let shown = home.run(&["servers", "show", "shop"]).expect(0).stdout;
        let config = home
            .run(&["config", "show", "--config", "portmoot.toml"])
            .expect(0)
            .stdout;
        let log = gateway.stop().stderr;
        assert!(
            ![&shown, &config, &log]
                .iter()
                .any(|text| text.contains(KEY)),
            "{shown}{config}{log}"
        );
    }
}

#[test]
fn an_api_is_added_by_its_description_and_what_it_asks_for_is_said() {
    let home = Home::new();
    let key = json!({ "type": "apiKey", "in": "query", "name": "access_key" });
    home.write("shop.json", &with_scheme("https://shop.example", &key));
    home.write(
        "oauth.json",
        &with_scheme(
            "https://shop.example",
            &json!({ "type": "oauth2", "flows": {} }),
        ),
    );
    home.write("nowhere.json", r#"{ "openapi": "3.1.0", "paths": {} }"#);
    home.write("old.json", r#"{ "swagger": "2.0" }"#);
    let config = home.write("portmoot.toml", "");
    let written = || std::fs::read_to_string(&config).unwrap();
    let refuse = |words: &[&str], code, expect: &str| {
        let ran = home
            .run(&[&["add", "shop"], words].concat())
            .expect(code)
            .stderr;
        assert!(ran.contains(expect), "{words:?}: {ran}");
        assert_eq!(written(), "", "{words:?}");
    };
    let described = ["--openapi", "shop.json"];
    let with = |more: &[&'static str]| [&described, more].concat();
    refuse(&["--openapi", "absent.json"], 5, "[unknown_file]");
    refuse(
        &["--openapi", "old.json"],
        2,
        "this is no OpenAPI description",
    );
    refuse(
        &["--openapi", "nowhere.json"],
        2,
        "its description names no server",
    );
    refuse(
        &["--openapi", "oauth.json", "--key", "x"],
        2,
        "no security scheme that takes a key alone",
    );
    refuse(
        &["--openapi", "https://shop.example/a.json", "--key", "x"],
        2,
        "--key needs the description as a file",
    );
    refuse(
        &with(&["--env", "A=b"]),
        2,
        "--env or --cwd is for a server with a command",
    );
    refuse(
        &with(&["--query", "x"]),
        2,
        "a value of --query is not NAME=VALUE",
    );
    refuse(&with(&["--", "npx"]), 2, "cannot be used with");
    refuse(&["https://shop.example", "--query", "a=b"], 2, "--openapi");
    refuse(
        &with(&["not a url"]),
        2,
        "is not an absolute http or https URL",
    );
    let dry = home
        .run(&[&["add", "shop", "--dry-run"], &described[..]].concat())
        .expect(0)
        .stdout;
    assert!(
        dry.contains("+ [servers.shop]") && written().is_empty(),
        "{dry}"
    );

    let added = home
        .run(&[&["add", "shop"], &described[..]].concat())
        .expect(0)
        .stderr;
    assert!(
        added.contains("the API asks for the parameter `access_key` of the query (`query`)"),
        "{added}"
    );
    let file = home.path().join("shop.json");
    assert_eq!(written(), format!("[servers.shop]\nopenapi = {file:?}\n"));
    home.run(&["rm", "shop"]).expect(0);
    // A secret in clear is hidden, and the note has the option that keeps it out.
    let clear = [
        "add",
        "shop",
        "https://shop.example/v2",
        "--query",
        "api_key=hush-hush",
        "-H",
        "X-A: 1",
    ];
    let added = home
        .run(&[&clear, &described[..]].concat())
        .expect(0)
        .stderr;
    assert!(
        added.contains("--query 'api_key=${SHOP_API_KEY}'") && !added.contains("hush"),
        "{added}"
    );
    let expected = format!(
        "[servers.shop]\nopenapi = {file:?}\nurl = \"https://shop.example/v2\"\nheaders = {{ X-A = \"1\" }}\nquery = {{ api_key = \"hush-hush\" }}\n"
    );
    assert_eq!(written(), expected);
    home.run(&["rm", "shop"]).expect(0);
    home.run(&[
        "add",
        "shop",
        "--openapi",
        "https://shop.example/openapi.json",
        "--query",
        "k=${K}",
    ])
    .expect(0);
    let expected = "[servers.shop]\nopenapi = \"https://shop.example/openapi.json\"\nquery = { k = \"${K}\" }\n";
    assert_eq!(written(), expected);
}

#[test]
fn an_operation_is_called_over_the_rest_api() {
    let (home, api) = (Home::new(), api(String::new()));
    let gateway = setup(&home, &api);
    let call = |tool: &str, body: &Value| {
        let path = format!("/api/v1/tools/{tool}/call");
        let headers = [("content-type", "application/json")];
        Connection::open(gateway.address()).exchange("POST", &path, &headers, &body.to_string())
    };
    let read = call(
        "shop_getItem",
        &json!({ "arguments": { "id": "a/b", "fields": ["name", "no,te"] } }),
    );
    assert_eq!(read.status, 200, "{read:?}");
    assert_eq!(
        read.json()["structuredContent"],
        json!({ "name": "one", "note": null }),
        "{read:?}"
    );
    let put = call(
        "shop_putItem",
        &json!({ "arguments": { "id": 2, "body": { "name": "two" } } }),
    )
    .json();
    assert_eq!(
        put["content"][0]["text"], "HTTP 204, without content",
        "{put}"
    );
    let refused = call(
        "shop_putItem",
        &json!({ "arguments": { "id": 2, "body": {} } }),
    )
    .json();
    assert_eq!(
        (&refused["isError"], &refused["content"][0]["text"]),
        (&json!(true), &json!("HTTP 400\n{\"error\":\"no item\"}"))
    );
    let unknown = call("shop_remote", &json!({}));
    assert_eq!(
        (unknown.status, &unknown.json()["code"]),
        (404, &json!("unknown_target"))
    );
}

/// An API whose authorization server is beside it.
fn with_tokens() -> Stub {
    use std::sync::atomic::{AtomicU64, Ordering};
    let issued = AtomicU64::new(0);
    Stub::new(move |request| {
        let host = request.header("Host").unwrap();
        let path = request.target.split('?').next().unwrap();
        let bearer = request.header("Authorization").unwrap_or_default();
        match (request.method.as_str(), path) {
            ("GET", "/.well-known/oauth-authorization-server") => {
                let origin = format!("http://{host}");
                let metadata = json!({ "issuer": origin, "token_endpoint": format!("{origin}/token"),
                    "grant_types_supported": ["client_credentials"], "response_types_supported": [],
                    "token_endpoint_auth_methods_supported": ["client_secret_basic"] });
                (200, JSON, metadata.to_string())
            }
            // `robot:hush-hush` in base64.
            ("POST", "/token")
                if bearer == "Basic cm9ib3Q6aHVzaC1odXNo"
                    && request.body.contains("grant_type=client_credentials") =>
            {
                let number = issued.fetch_add(1, Ordering::SeqCst) + 1;
                let token = json!({ "access_token": format!("token-{number}"), "token_type": "Bearer", "expires_in": 600 });
                (200, JSON, token.to_string())
            }
            // The first token serves the first page alone.
            ("GET", "/v1/items")
                if bearer == "Bearer token-2"
                    || (bearer == "Bearer token-1" && request.target.ends_with("limit=1")) =>
            {
                (200, JSON, json!({ "as": bearer }).to_string())
            }
            ("GET", "/v1/items") => {
                let challenge = "Content-Type: application/json\r\nWWW-Authenticate: Bearer error=\"invalid_token\"\r\n";
                (
                    401,
                    challenge,
                    json!({ "error": "invalid_token" }).to_string(),
                )
            }
            _ => (404, JSON, json!({ "error": "unknown" }).to_string()),
        }
    })
}

#[test]
fn calls_carry_a_token_of_the_gateways_own_account_and_a_refused_one_is_renewed() {
    let home = Home::new().env("SECRET", "hush-hush");
    let stub = with_tokens();
    home.write(
        "shop.json",
        &with_scheme(&stub.origin(), &json!({ "type": "oauth2", "flows": {} })),
    );
    let auth =
        "kind = \"client_credentials\"\nclient_id = \"robot\"\nclient_secret_env = \"SECRET\"";
    let config = format!(
        "[servers.shop]\nopenapi = \"shop.json\"\n[servers.shop.auth]\n{auth}\nissuer = \"{}\"\n",
        stub.origin()
    );
    let gateway = Gateway::start(&home, &config);
    gateway.ready("shop");
    let client = Client::plain(&gateway);
    let first = client.call("shop_items", json!({ "limit": 1 }));
    assert_eq!(
        first["structuredContent"]["as"], "Bearer token-1",
        "{first}"
    );
    // The API refuses the token, and ran nothing: the call goes out again with another one.
    let second = until("the token is renewed", || {
        let answer = client.call("shop_items", json!({ "limit": 2 }));
        (answer["isError"] != true).then_some(answer)
    });
    assert_eq!(
        second["structuredContent"]["as"], "Bearer token-2",
        "{second}"
    );
    let servers = gateway.server("shop").to_string();
    let log = gateway.stop().stderr;
    for secret in ["hush-hush", "token-1", "token-2", "cm9ib3Q6aHVzaC1odXNo"] {
        assert!(
            !servers.contains(secret) && !log.contains(secret),
            "{secret}: {servers}\n{log}"
        );
    }
}

#[test]
fn the_page_on_servers_shows_what_an_api_prints() {
    let page = std::fs::read_to_string(harness::repository().join("docs/servers.md")).unwrap();
    let shop = |id: &str| json!({ "id": id, "name": "A lamp", "price": 49.5 }).to_string();
    let stub = Stub::new(
        move |request| match (request.header("X-Key"), request.target.as_str()) {
            (Some(KEY), "/v1/items/7") => (200, JSON, shop("7")),
            (Some(KEY), "/v1/items/8") => {
                (404, JSON, json!({ "error": "no such item" }).to_string())
            }
            _ => (401, JSON, "{}".to_owned()),
        },
    );
    let origin = "https://shop.example.com";
    let home = Home::new().env("SHOP_KEY", KEY);
    let (_, described) = page.split_once("```yaml\n").unwrap();
    let described = described.split("```").next().unwrap();
    home.write("shop.yaml", &described.replace(origin, &stub.origin()));
    let mut gateway = None;
    let shown = transcripts(section(&page, "HTTP APIs"), "portmoot ");
    assert_eq!(shown.len(), 4, "{shown:?}");
    let folder = home.path().canonicalize().unwrap().display().to_string();
    for (command, expect) in shown {
        let words: Vec<&str> = command
            .split(' ')
            .skip(1)
            .map(|word| word.trim_matches('\''))
            .collect();
        let ran = home.run(&words);
        let text = (ran.stdout + &ran.stderr).replace(&folder, "/home/me");
        let text = text.replace(env!("CARGO_BIN_EXE_portmoot"), "portmoot");
        assert_eq!(text.trim_end(), expect.trim_end(), "{command}");
        if gateway.is_none() {
            let started = Gateway::start_with(&home, &[]);
            started.ready("shop");
            gateway = Some(started);
        }
    }
}
