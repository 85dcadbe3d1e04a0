//! Two servers with the same URIs: those of the later one are rewritten wherever they occur, for
//! callers only.

use serde_json::{Value, json};

use crate::peer::{Peer, answer, small, tool};
use crate::socket::{Gateway, LEGACY, Session, until};

const OWN: &str = "shared://thing";
const TEMPLATE: &str = "shared://item/{id}";

/// A server with URIs in every place. `touch` sends an update first; `ask` sends a question with a
/// resource in it.
fn script(name: &'static str) -> impl Fn(&Value) -> Vec<Vec<u8>> + Send + Sync {
    move |message| {
        let embedded =
            format!(r#"{{"type":"resource","resource":{{"uri":"{OWN}","text":"{name}"}}}}"#);
        let link = format!(r#"{{"type":"resource_link","uri":"{OWN}","name":"x"}}"#);
        let mut said = Vec::new();
        let result = match (
            message["method"].as_str(),
            message["params"]["name"].as_str(),
        ) {
            (Some("initialize"), _) => {
                let version = &message["params"]["protocolVersion"];
                let has =
                    r#"{"tools":{},"prompts":{},"completions":{},"resources":{"subscribe":true}}"#;
                let info = r#"{"name":"peer","version":"1"}"#;
                format!(
                    r#"{{"protocolVersion":{version},"capabilities":{has},"serverInfo":{info}}}"#
                )
            }
            (Some("resources/list"), _) => {
                format!(r#"{{"resources":[{{"uri":"{OWN}","name":"{name}"}}]}}"#)
            }
            (Some("resources/templates/list"), _) => {
                format!(
                    r#"{{"resourceTemplates":[{{"uriTemplate":"{TEMPLATE}","name":"{name}"}}]}}"#
                )
            }
            (Some("prompts/list"), _) => r#"{"prompts":[{"name":"p"}]}"#.to_owned(),
            (Some("resources/read"), _) => {
                format!(
                    r#"{{"contents":[{{"uri":{},"text":"{name}"}}]}}"#,
                    message["params"]["uri"]
                )
            }
            (Some("prompts/get"), _) => {
                format!(r#"{{"messages":[{{"role":"user","content":{embedded}}}]}}"#)
            }
            (Some("completion/complete"), _) => {
                format!(r#"{{"completion":{{"values":["{name}"]}}}}"#)
            }
            (Some("tools/call"), Some("ask")) => {
                said.push(format!(
                    r#"{{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{{"maxTokens":1,"messages":[{{"role":"user","content":{{"type":"tool_result","toolUseId":"t","content":[{link},{embedded}]}}}}]}}}}"#
                ));
                r#"{"content":[]}"#.to_owned()
            }
            (Some("tools/call"), asked) => {
                if asked == Some("touch") {
                    said.push(format!(
                        r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{OWN}","x-kept":1e400}}}}"#
                    ));
                }
                format!(r#"{{"content":[{link},{embedded}]}}"#)
            }
            (Some("resources/subscribe"), _) => "{}".to_owned(),
            _ => {
                let shown = format!(
                    r#"{{"name":"show","inputSchema":{{"type":"object"}},"_meta":{{"ui":{{"resourceUri":"{OWN}"}},"ui/resourceUri":"{OWN}"}}}}"#
                );
                let tools = ["give", "touch", "ask"].map(tool).join(",") + "," + &shown;
                return small(message, &format!("[{tools}]"))
                    .into_iter()
                    .map(String::into_bytes)
                    .collect();
            }
        };
        said.push(answer(message, &result));
        said.into_iter().map(String::into_bytes).collect()
    }
}

/// Two servers with the same URIs, and the public spellings of their resources.
struct Pair {
    gateway: Gateway,
    peers: [Peer; 2],
    uris: [String; 2],
}

impl Pair {
    fn start() -> Pair {
        let peers = [Peer::stdio(script("first")), Peer::stdio(script("second"))];
        let gateway =
            Gateway::serve(&[peers[0].child("first", "a"), peers[1].child("second", "b")].concat());
        let session = gateway.session();
        let mut all = Vec::new();
        until("both are listed", || {
            all = listed(&session, "resources/list", "resources");
            all.len() == 2
        });
        let uris = ["first", "second"].map(|name| spelled(&all, name, "uri"));
        assert_eq!(uris[0], OWN);
        assert_ne!(uris[1], OWN);
        Pair {
            gateway,
            peers,
            uris,
        }
    }
}

fn listed(session: &Session<'_>, method: &str, key: &str) -> Vec<Value> {
    let all = session
        .post(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#))
        .json();
    all["result"][key]
        .as_array()
        .unwrap_or_else(|| panic!("{all}"))
        .clone()
}

fn spelled(all: &[Value], name: &str, key: &str) -> String {
    all.iter().find(|item| item["name"] == name).unwrap()[key]
        .as_str()
        .unwrap()
        .to_owned()
}

fn ask(session: &Session<'_>, method: &str, params: &Value) -> Value {
    session
        .post(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string())
        .json()
}

/// Checks that a server received URIs only in its own spelling.
fn heard_its_own(peer: &Peer) {
    assert!(
        peer.received()
            .iter()
            .all(|line| !line.contains("portmoot:")),
        "{:?}",
        peer.received()
    );
}

#[test]
fn a_rewritten_uri_is_rewritten_in_results() {
    let pair = Pair::start();
    let session = pair.gateway.session();
    for (at, name) in ["first", "second"].into_iter().enumerate() {
        let (uri, prefix) = (json!(pair.uris[at]), ["a", "b"][at]);
        let given = session.call(&format!("{prefix}_give"), &json!({}));
        assert_eq!(
            given.pointer("/result/content/0/uri"),
            Some(&uri),
            "{given}"
        );
        assert_eq!(
            given.pointer("/result/content/1/resource/uri"),
            Some(&uri),
            "{given}"
        );
        let got = ask(
            &session,
            "prompts/get",
            &json!({"name": format!("{prefix}_p")}),
        );
        assert_eq!(
            got.pointer("/result/messages/0/content/resource/uri"),
            Some(&uri),
            "{got}"
        );
        let read = ask(&session, "resources/read", &json!({"uri": uri}));
        assert_eq!(
            read.pointer("/result/contents/0/text"),
            Some(&json!(name)),
            "{read}"
        );
        assert_eq!(read.pointer("/result/contents/0/uri"), Some(&uri), "{read}");
        let modern = pair
            .gateway
            .modern("resources/read", uri.as_str(), &format!("\"uri\":{uri}"));
        assert_eq!(
            modern.json().pointer("/result/contents/0/uri"),
            Some(&uri),
            "{}",
            modern.text()
        );
        let modern = pair.gateway.modern(
            "tools/call",
            Some(&format!("{prefix}_give")),
            &format!(r#""name":"{prefix}_give","arguments":{{}}"#),
        );
        assert_eq!(
            modern.json().pointer("/result/content/0/uri"),
            Some(&uri),
            "{}",
            modern.text()
        );
    }
    heard_its_own(&pair.peers[1]);
}

#[test]
fn a_rewritten_uri_is_rewritten_in_listed_tools() {
    let pair = Pair::start();
    let tools = listed(&pair.gateway.session(), "tools/list", "tools");
    for (prefix, uri) in ["a", "b"].iter().zip(&pair.uris) {
        let tool = tools
            .iter()
            .find(|tool| tool["name"] == format!("{prefix}_show"))
            .unwrap();
        assert_eq!(
            tool["_meta"],
            json!({ "ui": { "resourceUri": uri }, "ui/resourceUri": uri }),
            "{tool}"
        );
    }
}

#[test]
fn a_rewritten_template_is_completed_by_its_server() {
    let pair = Pair::start();
    let session = pair.gateway.session();
    let all = listed(&session, "resources/templates/list", "resourceTemplates");
    let templates = ["first", "second"].map(|name| spelled(&all, name, "uriTemplate"));
    assert_eq!(templates[0], TEMPLATE);
    assert_ne!(templates[1], TEMPLATE);
    let uris = pair
        .uris
        .iter()
        .chain(&templates)
        .zip(["first", "second"].iter().cycle());
    for (uri, name) in uris {
        let params = json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "id", "value": "1"}});
        let done = ask(&session, "completion/complete", &params);
        assert_eq!(
            done.pointer("/result/completion/values/0"),
            Some(&json!(name)),
            "{uri}: {done}"
        );
        let raw = params.to_string();
        let modern = pair
            .gateway
            .modern("completion/complete", None, &raw[1..raw.len() - 1])
            .json();
        assert_eq!(
            modern.pointer("/result/completion/values/0"),
            Some(&json!(name)),
            "{uri}: {modern}"
        );
    }
    for (template, name) in templates.iter().zip(["first", "second"]) {
        let read = ask(
            &session,
            "resources/read",
            &json!({"uri": template.replace("{id}", "7")}),
        );
        assert_eq!(
            read.pointer("/result/contents/0/text"),
            Some(&json!(name)),
            "{read}"
        );
        assert_eq!(
            read.pointer("/result/contents/0/uri"),
            Some(&json!(template.replace("{id}", "7"))),
            "{read}"
        );
    }
    for (peer, uri) in pair.peers.iter().zip([OWN, OWN]) {
        let completed: Vec<_> = peer
            .received()
            .into_iter()
            .filter(|line| line.contains("completion/complete"))
            .collect();
        assert_eq!(completed.len(), 4, "{completed:?}");
        assert_eq!(
            completed
                .iter()
                .filter(|line| line.contains(&format!("\"{uri}\"")))
                .count(),
            2
        );
        assert_eq!(
            completed
                .iter()
                .filter(|line| line.contains(&format!("\"{TEMPLATE}\"")))
                .count(),
            2
        );
        heard_its_own(peer);
    }
}

#[test]
fn updates_of_a_rewritten_resource_use_the_subscribers_uri() {
    let pair = Pair::start();
    let sessions = [pair.gateway.session(), pair.gateway.session()];
    let mut streams = Vec::new();
    for (session, uri) in sessions.iter().zip(&pair.uris) {
        let done = ask(session, "resources/subscribe", &json!({"uri": uri}));
        assert!(done["result"].is_object(), "{done}");
        streams.push(session.listen(None));
    }
    for prefix in ["b", "a"] {
        sessions[0].call(&format!("{prefix}_touch"), &json!({}));
    }
    for (stream, uri) in streams.iter_mut().zip(&pair.uris) {
        // Each receives only its own update, though the two were touched in the other order.
        let (_, data) = stream.next().unwrap();
        assert!(
            data.contains(&format!(r#""params":{{"uri":"{uri}","x-kept":1e400}}"#)),
            "{data}"
        );
    }
    heard_its_own(&pair.peers[1]);
}

#[test]
fn a_rewritten_uri_is_rewritten_in_questions() {
    let pair = Pair::start();
    let session = pair.gateway.session_as(&[], LEGACY, r#"{"sampling":{}}"#);
    for (prefix, uri) in ["a", "b"].iter().zip(&pair.uris) {
        let body = crate::socket::call("5", &format!("{prefix}_ask"), "{}");
        let mut events = session.begin(body);
        let question: Value = serde_json::from_str(&events.next().unwrap().1).unwrap();
        let content = &question["params"]["messages"][0]["content"]["content"];
        assert_eq!(content[0]["uri"], json!(uri), "{question}");
        assert_eq!(content[1]["resource"]["uri"], json!(uri), "{question}");
    }
}
