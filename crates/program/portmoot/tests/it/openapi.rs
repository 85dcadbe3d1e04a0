//! HTTP APIs as servers: a description's operations are tools, and their calls arrive as it
//! describes them, in both eras and from the command line; credentials and requests go to the API's
//! origin alone.

mod accounts;
mod real;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::home::Home;
use crate::support::{Client, Gateway, modern, until};

/// A request as the stub received it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Received {
    method: String,
    pub(crate) target: String,
    head: String,
    body: String,
}

impl Received {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .next()
    }
}

/// An HTTP server that answers with what a function makes of each request.
pub(crate) struct Stub {
    pub(crate) port: u16,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Stub {
    pub(crate) fn new(
        answer: impl Fn(&Received) -> (u16, &'static str, String) + Send + Sync + 'static,
    ) -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let (kept, answer) = (Arc::clone(&received), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                std::thread::spawn(move || serve(&stream, &kept, &*answer));
            }
        });
        Stub { port, received }
    }

    fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

fn serve(
    stream: &TcpStream,
    kept: &Mutex<Vec<Received>>,
    answer: &(dyn Fn(&Received) -> (u16, &'static str, String) + Send + Sync),
) {
    let (mut reader, mut out) = (BufReader::new(stream), stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let mut words = head.split_whitespace().map(str::to_owned);
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let mut request = Received {
            method,
            target,
            head,
            body: String::new(),
        };
        let length = request
            .header("content-length")
            .map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        request.body = String::from_utf8_lossy(&body).into_owned();
        let (status, headers, text) = answer(&request);
        kept.lock().unwrap().push(request);
        let response = format!(
            "HTTP/1.1 {status} Any\r\n{headers}Content-Length: {}\r\n\r\n{text}",
            text.len()
        );
        if out.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

const JSON: &str = "Content-Type: application/json\r\n";

fn description() -> Value {
    json!({ "openapi": "3.0.3", "info": { "title": "Shop", "version": "7" },
        "servers": [{ "url": "https://shop.example/v1" }],
        "components": {
            "securitySchemes": { "key": { "type": "apiKey", "in": "header", "name": "X-Key" } },
            "schemas": { "Item": { "type": "object", "required": ["name"], "properties": {
                "name": { "type": "string" }, "note": { "type": "string", "nullable": true },
                "parts": { "type": "array", "items": { "$ref": "#/components/schemas/Item" } } } } } },
        "paths": {
            "/items/{id}": {
                "parameters": [{ "in": "path", "name": "id", "required": true, "schema": { "type": "string" } }],
                "get": { "operationId": "getItem", "summary": "Reads an item", "parameters": [
                        { "in": "query", "name": "fields", "explode": false, "schema": { "type": "array", "items": { "type": "string" } } },
                        { "in": "header", "name": "X-Key", "schema": { "type": "string" } },
                        { "in": "query", "name": "api_key", "schema": { "type": "string" } }],
                    "responses": { "200": { "description": "Good.", "content": { "application/json": {
                        "schema": { "$ref": "#/components/schemas/Item" } } } } } },
                "put": { "operationId": "putItem", "requestBody": { "required": true, "content": { "application/json": {
                    "schema": { "$ref": "#/components/schemas/Item" } } } }, "responses": { "204": { "description": "Done." } } } },
            "/away": { "get": { "operationId": "away", "responses": {} } },
            "/large": { "get": { "operationId": "large", "responses": {} } },
            "/remote": { "get": { "operationId": "remote", "parameters": [{ "$ref": "https://evil.example/p.json" }] } },
            "/elsewhere": { "get": { "operationId": "elsewhere", "servers": [{ "url": "https://evil.example" }] } } } })
}

/// The API: it refuses what its description does not have, and says why.
fn api(away: String) -> Stub {
    let away: &'static str = Box::leak(format!("Location: {away}/stolen\r\n").into_boxed_str());
    Stub::new(move |request| {
        let good_key = request.header("X-Key") == Some("secret-key")
            && request.target.contains("api_key=k%261");
        let path = request.target.split('?').next().unwrap();
        match (request.method.as_str(), path) {
            _ if !good_key => (401, JSON, json!({ "error": "no key" }).to_string()),
            ("GET", "/v1/items/a%2Fb") if request.target.contains("fields=name,no%2Cte") => (
                200,
                JSON,
                json!({ "name": "one", "note": null }).to_string(),
            ),
            ("PUT", "/v1/items/2") => {
                let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
                let is_good = request.header("Content-Type") == Some("application/json")
                    && body["name"].is_string();
                if is_good {
                    (204, "", String::new())
                } else {
                    (400, JSON, "{\"error\":\"no item\"}".to_owned())
                }
            }
            ("GET", "/v1/away") => (302, away, String::new()),
            ("GET", "/v1/large") => (
                200,
                "Content-Type: text/plain\r\n",
                "x".repeat((4 << 20) + 1),
            ),
            _ => (
                404,
                JSON,
                json!({ "error": "unknown", "path": path }).to_string(),
            ),
        }
    })
}

fn setup(home: &Home, api: &Stub) -> Gateway {
    home.write("shop.json", &description().to_string());
    let config = format!(
        "[servers.shop]\nopenapi = \"shop.json\"\nurl = \"{}/v1\"\nheaders = {{ X-Key = \"secret-key\" }}\nquery = {{ api_key = \"k&1\" }}\n",
        api.origin()
    );
    let gateway = Gateway::start(home, &config);
    gateway.ready("shop");
    gateway
}

#[test]
fn operations_are_tools_and_calls_arrive_as_they_are_described() {
    let other = Stub::new(|_| (200, JSON, "{}".to_owned()));
    let (home, api) = (Home::new(), api(other.origin()));
    let gateway = setup(&home, &api);
    let client = Client::plain(&gateway);
    let mut names = client.names("tools");
    names.sort_unstable();
    assert_eq!(
        names,
        ["shop_away", "shop_getItem", "shop_large", "shop_putItem"]
    );
    let listed = client.ask("tools/list", json!({}));
    let named = |name: &str| {
        let mut tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools.find(|tool| tool["name"] == name).unwrap()
    };
    let tool = named("shop_getItem");
    assert_eq!(
        (&tool["title"], &tool["annotations"]),
        (&json!("Reads an item"), &json!({ "readOnlyHint": true }))
    );
    // What is configured is no argument.
    let names: Vec<&String> = tool["inputSchema"]["properties"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(names, ["fields", "id"]);
    assert_eq!(
        named("shop_putItem")["inputSchema"]["$defs"]["Item"]["properties"]["note"]["type"],
        json!(["string", "null"])
    );

    let arguments = json!({ "id": "a/b", "fields": ["name", "no,te"] });
    let item = json!({ "name": "one", "note": null });
    let legacy = client.call("shop_getItem", arguments.clone());
    assert_eq!(legacy["structuredContent"], item, "{legacy}");
    let params = json!({ "name": "shop_getItem", "arguments": arguments });
    let answer = modern(&gateway, None, "tools/call", params).json();
    assert_eq!(answer["result"]["structuredContent"], item, "{answer}");
    let text = arguments.to_string();
    let called = home
        .run(&["tools", "call", "shop_getItem", "--args", &text, "--json"])
        .expect(0)
        .stdout;
    let called: Value = serde_json::from_str(&called).unwrap();
    assert_eq!(called["structuredContent"], item, "{called}");

    let put = client.call(
        "shop_putItem",
        json!({ "id": 2, "body": { "name": "two" } }),
    );
    assert_eq!(
        (&put["content"][0]["text"], &put["isError"]),
        (&json!("HTTP 204, without content"), &Value::Null)
    );
    let refused = client.call("shop_putItem", json!({ "id": "2", "body": {} }));
    assert_eq!(refused["isError"], true);
    assert_eq!(
        refused["content"][0]["text"],
        "HTTP 400\n{\"error\":\"no item\"}"
    );
    let absent = client.call("shop_putItem", json!({ "id": ".." }));
    assert!(
        absent["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("missing: `body`"),
        "{absent}"
    );
    // Not where a proxy that decodes the path would take it either.
    for id in [
        "..",
        "../admin",
        "a/../../admin",
        "..\\admin",
        "..;x",
        "%2e%2e/admin",
    ] {
        let steps = client.call("shop_putItem", json!({ "id": id, "body": {} }));
        assert!(
            steps["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("must not be `.` or `..`"),
            "{steps}"
        );
    }
    let sent = api.received();
    assert!(
        sent.iter().all(|one| !one.target.contains("..")),
        "{sent:?}"
    );

    // Neither the request nor its credentials follow a redirect to another origin.
    let away = client.call("shop_away", json!({}));
    assert!(
        away["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("HTTP 302: the API redirects"),
        "{away}"
    );
    assert_eq!(other.received(), []);
    let large = client.call("shop_large", json!({}));
    assert_eq!(large["isError"], true);
    assert_eq!(
        large["content"][0]["text"],
        "the API's answer is longer than 4194304 bytes: ask for less"
    );

    let shown = home.run(&["servers", "show", "shop"]).expect(0).stdout;
    for word in [
        "remote",
        "another document",
        "elsewhere",
        "at another origin",
    ] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    assert!(
        !shown.contains("secret-key") && !gateway.log().contains("secret-key"),
        "{shown}"
    );
}

/// An API whose arguments could become each other, whose body is a form, whose writes are answered
/// elsewhere, and that refuses a key.
fn hostile() -> Value {
    let object = json!({ "type": "object" });
    let query =
        |name: &str, schema: &Value| json!({ "in": "query", "name": name, "schema": schema });
    let text = json!({ "type": "string" });
    let form = json!({ "application/x-www-form-urlencoded": { "schema": object } });
    json!({ "openapi": "3.1.0", "info": { "title": "Hostile", "version": "1" },
        "components": { "securitySchemes": { "key": { "type": "apiKey", "in": "header", "name": "X-Other-Key" } } },
        "paths": {
            "/search": { "get": { "operationId": "search", "parameters": [
                query("q", &object), query("word", &text), query("owner", &text), query("secret", &text) ] } },
            "/form": { "post": { "operationId": "form", "requestBody": { "content": form } } },
            "/numbers": { "post": { "operationId": "numbers", "requestBody": { "content": { "application/json": {} } } } },
            "/orders": { "post": { "operationId": "order" } },
            "/closed": { "get": { "operationId": "closed" } } } })
}

fn hostile_setup(home: &Home) -> (Stub, Gateway) {
    let api = Stub::new(|request| match request.target.split('?').next().unwrap() {
        "/orders" => (303, "Location: /orders/7\r\n", String::new()),
        "/closed" => (403, JSON, "{}".to_owned()),
        _ => (200, JSON, "{}".to_owned()),
    });
    home.write("api.json", &hostile().to_string());
    let config = format!(
        "[servers.h]\nopenapi = \"api.json\"\nurl = \"{}\"\nquery = {{ api_key = \"k1\" }}\n\
         [servers.h.tool.search]\npreset = {{ owner = \"acme\" }}\nhide_arguments = [\"secret\"]\n",
        api.origin()
    );
    let gateway = Gateway::start(home, &config);
    gateway.ready("h");
    (api, gateway)
}

#[test]
fn no_caller_sets_what_is_preset_hidden_or_configured() {
    let home = Home::new();
    let (api, gateway) = hostile_setup(&home);
    let client = Client::plain(&gateway);
    for arguments in [
        json!({ "q": { "owner": "me" } }),
        json!({ "q": { "OWNER[]": "me" } }),
        json!({ "q": { "secret": "me" } }),
        json!({ "q": { "api_key": "mine" } }),
        json!({ "word": { "owner": "me" } }),
    ] {
        let refused = client.call("h_search", arguments.clone());
        assert_eq!(refused["isError"], true, "{arguments}: {refused}");
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("wrong arguments: "), "{arguments}: {text}");
    }
    assert_eq!(api.received(), []);
    let good = client.call("h_search", json!({ "q": { "sort": "up" }, "word": "w" }));
    assert_eq!(good["structuredContent"], json!({}), "{good}");
    assert_eq!(
        api.received()[0].target,
        "/search?sort=up&word=w&owner=acme&api_key=k1"
    );
}

#[test]
fn a_request_that_would_be_far_longer_than_its_call_is_refused() {
    let home = Home::new();
    let (api, gateway) = hostile_setup(&home);
    let client = Client::plain(&gateway);
    let body = json!({ "k".repeat(1 << 20): vec![0; 1_000_000] });
    let refused = client.call("h_form", json!({ "body": body }));
    assert_eq!(
        refused["content"][0]["text"],
        "wrong arguments: the request would be too long: its body may have at most 16777216 bytes"
    );
    assert_eq!(api.received(), []);
    client.call("h_form", json!({ "body": { "k": [0, 1] } }));
    assert_eq!(api.received()[0].body, "k=0&k=1");
}

#[test]
fn numbers_are_sent_as_they_are_written_or_refused() {
    let home = Home::new();
    let (api, gateway) = hostile_setup(&home);
    let client = Client::plain(&gateway);
    let with = |value: &str| {
        let params = json!({ "name": "h_numbers", "arguments": { "body": { "n": "VALUE" } } });
        let request = client.request("tools/call", params).to_string();
        client
            .post_text(&request.replace("\"VALUE\"", value))
            .json()
    };
    for (value, why) in [
        (
            "12345678901234567890123",
            "the number `12345678901234567890123` cannot be sent as it is written",
        ),
        (
            "1e400",
            "the number `1e400` cannot be sent as it is written",
        ),
        (r#""\ud800""#, "half a surrogate pair"),
    ] {
        let error = with(value)["error"].clone();
        assert_eq!(error["code"], -32602, "{value}: {error}");
        assert!(
            error["message"].as_str().unwrap().contains(why),
            "{value}: {error}"
        );
    }
    assert_eq!(api.received(), []);
    let exact = "[18446744073709551615,0.30000000000000004,-7]";
    assert_eq!(with(exact)["result"]["structuredContent"], json!({}));
    assert_eq!(api.received()[0].body, format!("{{\"n\":{exact}}}"));
}

#[test]
fn a_write_whose_result_is_elsewhere_is_done_and_callers_read_nothing_about_credentials() {
    let home = Home::new();
    let (api, gateway) = hostile_setup(&home);
    let client = Client::plain(&gateway);
    let done = client.call("h_order", json!({}));
    assert_eq!(
        (&done["content"][0]["text"], &done["isError"]),
        (
            &json!("HTTP 303: done; the result is at /orders/7"),
            &Value::Null
        )
    );
    for _ in 0..2 {
        let closed = client.call("h_closed", json!({}));
        assert_eq!(
            (&closed["content"][0]["text"], &closed["isError"]),
            (
                &json!("HTTP 403: the gateway's credentials were refused\n{}"),
                &json!(true)
            )
        );
    }
    // Operators read it, once.
    let line = gateway.receive("the API refused the gateway's credentials");
    assert!(line.contains("X-Other-Key"), "{line}");
    assert_eq!(
        gateway
            .log()
            .matches("the API refused the gateway's credentials")
            .count(),
        1
    );
    assert_eq!(api.received().len(), 3);
}

#[test]
fn a_description_that_is_fetched_chooses_no_other_origin() {
    let text = |server: &str| {
        let mut text = description();
        text["servers"] = json!([{ "url": server }]);
        text.to_string()
    };
    // Its own origin, and another one to which the key would go.
    let (own, foreign) = (text("/v1"), text("https://evil.example/v1"));
    let api = Stub::new(
        move |request| match request.target.split('?').next().unwrap() {
            "/own.json" => (200, JSON, own.clone()),
            "/foreign.json" => (200, JSON, foreign.clone()),
            "/v1/items/1" => (200, JSON, "{}".to_owned()),
            _ => (404, "", String::new()),
        },
    );
    let home = Home::new();
    let origin = api.origin();
    let headers =
        "headers = { X-Key = \"secret-key\" }\nquery = { key = \"secret-query\", v = \"2\" }\n";
    let elsewhere = Stub::new(|_| (200, JSON, "{}".to_owned()));
    let gateway = Gateway::start(
        &home,
        &format!(
            "[servers.own]\nopenapi = \"{origin}/own.json?v=1\"\n{headers}\
             [servers.foreign]\nopenapi = \"{origin}/foreign.json\"\n{headers}\
             [servers.moved]\nopenapi = \"{origin}/own.json\"\nurl = \"{}/api\"\n{headers}\
             [servers.absent]\nopenapi = \"{origin}/nothing.json\"\n",
            elsewhere.origin()
        ),
    );
    for name in ["own", "moved"] {
        gateway.ready(name);
    }
    for (name, why) in [
        ("foreign", "set `url` to the API's"),
        ("absent", "HTTP status 404"),
    ] {
        let cause = until("it is down", || {
            let server = gateway.server(name);
            (server["state"] == "down")
                .then(|| server["cause"].as_str().unwrap_or_default().to_owned())
        });
        assert!(cause.contains(why), "{name}: {cause}");
    }
    let client = Client::plain(&gateway);
    assert_eq!(
        client.call("own_getItem", json!({ "id": "1" }))["structuredContent"],
        json!({})
    );
    assert_eq!(
        client.call("moved_getItem", json!({ "id": "1" }))["structuredContent"],
        json!({})
    );
    assert_eq!(
        elsewhere.received()[0].target,
        "/api/items/1?key=secret-query&v=2"
    );
    // The server whose API is elsewhere fetched its description without the API's key and
    // parameters. The other one fetched it with them, but for the one that its URL has.
    let fetched = api
        .received()
        .into_iter()
        .filter(|one| one.target.starts_with("/own.json"));
    let mut fetched: Vec<(String, bool)> = fetched
        .map(|one| (one.target.clone(), one.header("X-Key").is_some()))
        .collect();
    fetched.sort();
    fetched.dedup();
    let expected = [
        ("/own.json", false),
        ("/own.json?v=1&key=secret-query", true),
    ];
    assert_eq!(
        fetched,
        expected.map(|(target, has_key)| (target.to_owned(), has_key))
    );
}

#[test]
fn a_changed_file_is_read_again_on_a_reload_and_a_broken_one_is_a_problem() {
    let (home, api) = (Home::new(), api(String::new()));
    let gateway = setup(&home, &api);
    let client = Client::plain(&gateway);
    let mut less = description();
    less["paths"].as_object_mut().unwrap().remove("/away");
    home.write("shop.json", &less.to_string());
    gateway.signal("HUP");
    until("the tool is gone", || {
        (!client.names("tools").contains(&"shop_away".to_owned())).then_some(())
    });
    home.write("shop.json", "{\"swagger\":\"2.0\"}");
    gateway.signal("HUP");
    until("the problem is reported", || {
        gateway
            .log()
            .contains("keeps its current configuration")
            .then_some(())
    });
    let checked = home
        .run(&["config", "check", "--config", "portmoot.toml"])
        .expect(2);
    let said = checked.stdout + &checked.stderr;
    assert!(said.contains("this is no OpenAPI description"), "{said}");
    assert_eq!(client.call("shop_large", json!({}))["isError"], true);
}
