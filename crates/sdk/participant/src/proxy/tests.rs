use std::collections::VecDeque;

use model::{Answer, Form, Outcome, Payload};
use platform::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use wire::mcp::proxy as server;

use super::*;
use crate::{CallError, RpcError};

/// A server with prepared answers, in the order of the requests.
#[derive(Default)]
struct Fake {
    answers: Mutex<VecDeque<Result<String, CallError>>>,
    asked: Mutex<Vec<(String, String)>>,
}

impl Requester for Fake {
    async fn request(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>, CallError> {
        self.asked
            .lock()
            .push((method.to_owned(), params.get().to_owned()));
        let answer = self.answers.lock().pop_front().expect("no further request");
        answer.map(|answer| RawValue::from_string(answer).unwrap())
    }
}

impl Fake {
    fn new(answers: impl IntoIterator<Item = impl ToString>) -> Self {
        let answers = answers
            .into_iter()
            .map(|answer| Ok(answer.to_string()))
            .collect();
        Self {
            answers: Mutex::new(answers),
            ..Self::default()
        }
    }

    fn then(self, error: i64) -> Self {
        self.answers
            .lock()
            .push_back(Err(CallError::Answered(RpcError::new(error, "no"))));
        self
    }

    /// The params of all requests.
    fn params(&self) -> Vec<Value> {
        self.asked
            .lock()
            .iter()
            .map(|(_, params)| serde_json::from_str(params).unwrap())
            .collect()
    }
}

fn client(answers: impl IntoIterator<Item = impl ToString>) -> ProxyClient<Fake> {
    ProxyClient::new(Fake::new(answers))
}

/// A result with this data and annotations besides those of the operation.
fn answer(action: &str, subject: &str, data: &str, more: Value) -> Value {
    let mut notes = json!({ "proxyAction": action, "proxyType": subject });
    notes
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let resource = json!({ "uri": "proxy:x", "mimeType": "application/json", "text": data });
    json!({ "content": [{ "type": "resource", "resource": resource, "annotations": notes }] })
}

fn tools(names: &[&str]) -> String {
    json!(
        names
            .iter()
            .map(|name| json!({ "name": name }))
            .collect::<Vec<_>>()
    )
    .to_string()
}

fn keys(list: &[Definition]) -> Vec<&str> {
    list.iter().map(Definition::key).collect()
}

/// A definition of a tool with the parameters of the proxy.
fn like_proxy(name: &str, description: &str) -> Value {
    let schema = json!({ "properties": { "action": {}, "type": {} } });
    json!({ "name": name, "description": description, "inputSchema": schema })
}

#[tokio::test]
async fn detection_takes_three_steps() {
    let works = || answer("list", "tool", &tools(&["a"]), json!({})).to_string();
    let listed = |tools: Value| json!({ "tools": tools }).to_string();
    let said = json!({ "content": [{ "type": "text", "text": "fetched" }] }).to_string();
    // By name; the trial fills the cache.
    let words = json!([like_proxy("a", "A proxy"), like_proxy("proxy", "")]);
    let found = ProxyClient::detect(Fake::new([listed(words.clone()), works()]))
        .await
        .unwrap();
    assert_eq!(
        (found.tool(), keys(&found.list_tools().await.unwrap())),
        (Some("proxy"), vec!["a"])
    );
    // By the description, after the named one has failed in one way or another.
    for failure in [
        &said,
        &json!({ "content": [] }).to_string(),
        &json!({ "isError": true, "content": [] }).to_string(),
    ] {
        let found =
            ProxyClient::detect(Fake::new([listed(words.clone()), failure.clone(), works()]))
                .await
                .unwrap();
        assert_eq!(found.tool(), Some("a"), "{failure}");
    }
    // An empty list is an answer of the proxy where the extension's form says so.
    let empty = answer("list", "tool", "[]", json!({})).to_string();
    let found = ProxyClient::detect(Fake::new([listed(words.clone()), empty]))
        .await
        .unwrap();
    assert_eq!(
        (found.tool(), found.list_tools().await.unwrap().len()),
        (Some("proxy"), 0)
    );
    let schema = json!({ "properties": { "action": { "enum": ["add", "remove"] }, "type": { "enum": ["tool"] } } });
    let firewall = json!({ "name": "proxy_rules", "description": "Rules of the proxy", "inputSchema": schema });
    // Tools that cannot be it are not called, and what was listed is kept.
    let others = json!([{ "name": "proxy", "description": "Fetches by proxy" }, like_proxy("approximate", "Proxying"), firewall]);
    let none = ProxyClient::detect(Fake::new([listed(others)]))
        .await
        .unwrap();
    assert_eq!(
        (none.tool(), none.list_tools().await.unwrap().len()),
        (None, 3)
    );
    // A tool that answers with an error is none; a lost connection is an error.
    let none =
        ProxyClient::detect(Fake::new([listed(json!([like_proxy("proxy", "")]))]).then(-32602))
            .await
            .unwrap();
    assert_eq!(none.tool(), None);
    let lost = Fake::new([listed(json!([like_proxy("proxy", "")]))]);
    lost.answers.lock().push_back(Err(CallError::Lost));
    assert!(matches!(
        ProxyClient::detect(lost).await,
        Err(ProxyError::Call(CallError::Lost))
    ));
}

#[tokio::test]
async fn few_tools_are_tried() {
    let many: Vec<Value> = (0..TRIALS_MAX + 3)
        .map(|at| like_proxy(&format!("t{at}"), "Proxied"))
        .collect();
    let mut answers = vec![json!({ "tools": many })];
    answers.extend(vec![json!({ "content": [] }); TRIALS_MAX]);
    let none = ProxyClient::detect(Fake::new(answers)).await.unwrap();
    assert_eq!(
        (none.tool(), none.requester().params().len()),
        (None, 1 + TRIALS_MAX)
    );
}

#[tokio::test]
async fn a_list_is_read_page_by_page() {
    let page = |names: &[&str]| answer("list", "tool", &tools(names), json!({ "totalCount": 3 }));
    let client = client([page(&["a", "b"]), page(&["c"])]);
    assert_eq!(
        keys(&client.list(ProxySubject::Tool).await.unwrap()),
        ["a", "b", "c"]
    );
    let arguments = |more: Value| json!({ "name": "proxy", "arguments": more });
    assert_eq!(
        client.requester().params(),
        [
            arguments(json!({ "action": "list", "type": "tool" })),
            arguments(json!({ "action": "list", "type": "tool", "offset": 2, "limit": 1000 })),
        ]
    );
}

#[tokio::test]
async fn a_list_that_is_cut_or_too_long_is_an_error() {
    let page = |names: &[&str]| {
        answer(
            "list",
            "tool",
            &tools(names),
            json!({ "totalCount": 1_000_000 }),
        )
        .to_string()
    };
    for last in [page(&[]), json!({ "content": [] }).to_string()] {
        let cut = client([page(&["a"]), last]).list(ProxySubject::Tool).await;
        assert!(
            matches!(
                cut,
                Err(ProxyError::ListCut {
                    read: 1,
                    total: 1_000_000
                })
            ),
            "{cut:?}"
        );
    }
    let endless = client(vec![page(&["a"]); PAGES_MAX + 1]);
    assert!(matches!(
        endless.list(ProxySubject::Tool).await,
        Err(ProxyError::ListTooLong)
    ));
    let long = "x".repeat(LIST_BYTES_MAX / 2);
    let fits = client([answer("list", "tool", &tools(&["a"]), json!({}))]);
    assert!(fits.list(ProxySubject::Tool).await.is_ok());
    let long = client([answer("list", "tool", &tools(&[&long]), json!({}))]);
    assert!(matches!(
        long.list(ProxySubject::Tool).await,
        Err(ProxyError::ListTooLong)
    ));
    let endless = ProxyClient::with_tool(
        Fake::new(vec![
            json!({ "tools": [], "nextCursor": "x" });
            PAGES_MAX + 1
        ]),
        None,
    );
    assert!(matches!(
        endless.list_tools().await,
        Err(ProxyError::ListTooLong)
    ));
}

#[tokio::test]
async fn types_are_decoded_in_every_spelling() {
    let data = r#"[{"uri":"a:b","uriTemplate":null},{"uriTemplate":"a:{b}","name":"t"}]"#;
    let both = [ListKind::Resources, ListKind::Templates];
    for notes in [
        json!({}),
        json!({ "pythonType": "mcp.types.Resource | mcp.types.ResourceTemplate", "many": true }),
        json!({ "pythonType": "Resource|ResourceTemplate" }),
        json!({ "dataType": "ResourceTemplate|Resource", "isArray": true, "pythonType": "ignored", "many": false }),
        json!({ "objectType": "Resource | ResourceTemplate", "multiple": true }),
    ] {
        let list = client([answer("list", "resource", data, notes.clone())])
            .list(ProxySubject::Resource)
            .await
            .unwrap();
        assert_eq!(
            list.iter().map(Definition::list).collect::<Vec<_>>(),
            both,
            "{notes}"
        );
        assert_eq!(keys(&list), ["a:b", "a:{b}"]);
    }
    let fails = async |notes: Value, data: &str| {
        client([answer("list", "tool", data, notes)])
            .list(ProxySubject::Tool)
            .await
            .unwrap_err()
            .to_string()
    };
    for (notes, data, why) in [
        (
            json!({ "pythonType": "Prompt" }),
            "[]",
            "with the type `Prompt`",
        ),
        (
            json!({ "dataType": "Tool|mcp.types.Cake" }),
            "[]",
            "with the type `Cake`",
        ),
        (json!({ "many": true }), "{}", "the data is no list"),
        (json!({ "isArray": false }), "[]", "the data is a list"),
        (json!({}), "[{}]", "a definition has no name or URI"),
        (json!({}), "[", "the text is not JSON"),
        (
            json!({ "proxyAction": "info" }),
            "[]",
            "the annotations are those of another operation",
        ),
        (
            json!({ "proxyType": "prompt" }),
            "[]",
            "the annotations are those of another operation",
        ),
    ] {
        let said = fails(notes, data).await;
        assert!(said.ends_with(why), "{said}");
    }
}

#[tokio::test]
async fn info_is_decoded_without_many() {
    let magg = answer(
        "info",
        "tool",
        "{\n\"name\":\n\"a\"}",
        json!({ "pythonType": "Tool", "proxyPath": "a" }),
    );
    let tool = client([magg.clone()])
        .info(ProxySubject::Tool, "a")
        .await
        .unwrap();
    assert_eq!((tool.list(), tool.key()), (ListKind::Tools, "a"));
    let wrong = client([answer("info", "tool", "[]", json!({}))])
        .info(ProxySubject::Tool, "a")
        .await;
    assert!(matches!(wrong, Err(ProxyError::Unreadable(_))));
    let failed =
        json!({ "isError": true, "content": [{ "type": "text", "text": "Tool 'a' not found" }] });
    let failed = client([failed]).info(ProxySubject::Tool, "a").await;
    assert!(matches!(failed, Err(ProxyError::Failed(why)) if why == "Tool 'a' not found"));
}

#[tokio::test]
async fn numbers_and_unknown_members_of_answers_survive() {
    let raw = r#"{"name":"a","x-vendor":[1.0,-0.0,1e400,12345678901234567890]}"#;
    let list = client([answer("list", "tool", &format!("[ {raw} ]"), json!({}))])
        .list(ProxySubject::Tool)
        .await
        .unwrap();
    assert_eq!(list[0].raw().get(), raw);
    let result = r#"{"content":[{"type":"text","text":"x","annotations":{"proxyType":"tool"}}],"structuredContent":{"n":1.00},"new":1e3}"#;
    let called = client([result]);
    let args = RawValue::from_string(r#"{"n":1.10}"#.to_owned()).unwrap();
    assert_eq!(
        called
            .call(ProxySubject::Tool, "a", &args)
            .await
            .unwrap()
            .get(),
        result
    );
    let sent = r#"{"name":"proxy","arguments":{"action":"call","type":"tool","path":"a","args":{"n":1.10}}}"#;
    assert_eq!(called.requester().asked.lock()[0].1, sent);
    let asks = client([r#"{"resultType":"input_required"}"#])
        .call(ProxySubject::Tool, "a", &json!({}))
        .await;
    assert!(matches!(asks, Err(ProxyError::Unfinished(_))));
}

#[tokio::test]
async fn contents_of_resources_have_their_media_type_again() {
    let result = concat!(
        r#"{"content":[{"type":"resource","resource":{"uri":"a:1","mimeType":"application/json","text":"{\"n\":1.0}","contentType":"text/plain","x":1},"annotations":{}},"#,
        r#"{"type":"resource","resource":{"uri":"a:2","mimeType":"image/png","blob":"AA==","contentType":"kept"}}],"isError":false,"_meta":{"m":1e2}}"#
    );
    let read = client([result])
        .call(ProxySubject::Resource, "a:1", &())
        .await
        .unwrap();
    let expected = concat!(
        r#"{"_meta":{"m":1e2},"contents":[{"uri":"a:1","mimeType":"text/plain","text":"{\"n\":1.0}","x":1},"#,
        r#"{"uri":"a:2","mimeType":"image/png","blob":"AA==","contentType":"kept"}]}"#
    );
    assert_eq!(read.get(), expected);
    let text = client([r#"{"content":[{"type":"text","text":"x"}]}"#])
        .read_resource("a:1")
        .await;
    assert!(matches!(text, Err(ProxyError::Unreadable(_))));
}

#[tokio::test]
async fn a_prompt_is_its_own_result_again() {
    let prompt = r#"{"messages":[{"role":"user","content":{"type":"text","text":"é"}}],"x":1.0}"#;
    let ok = answer(
        "call",
        "prompt",
        prompt,
        json!({ "pythonType": "mcp.types.GetPromptResult" }),
    );
    let client = client([
        ok,
        answer("call", "prompt", prompt, json!({ "pythonType": "Prompt" })),
        answer("call", "prompt", "{}", json!({})),
    ]);
    assert_eq!(
        client
            .get_prompt("p", &json!({ "a": "b" }))
            .await
            .unwrap()
            .get(),
        prompt
    );
    assert!(matches!(
        client.get_prompt("p", &()).await,
        Err(ProxyError::UnexpectedType(_))
    ));
    assert!(matches!(
        client.get_prompt("p", &()).await,
        Err(ProxyError::Unreadable(_))
    ));
    assert_eq!(
        client.requester().params()[0]["arguments"]["args"],
        json!({ "a": "b" })
    );
    assert_eq!(
        client.requester().params()[1]["arguments"],
        json!({ "action": "call", "type": "prompt", "path": "p" })
    );
}

#[tokio::test]
async fn answers_of_the_server_side_are_decoded() {
    let entry = |list, raw: &[u8]| server::ListedEntry {
        list,
        raw: raw.to_vec(),
    };
    let entries = [
        entry(ListKind::Resources, br#"{"uri":"a:b"}"#),
        entry(ListKind::Templates, br#"{"uriTemplate":"a:{b}"}"#),
    ];
    let page = server::ProxyPage {
        offset: 0,
        limit: 2,
    };
    for form in [Form::Legacy, Form::Modern] {
        let made = |asked, entries: &[_]| {
            String::from_utf8(server::query(ProxySubject::Resource, asked, entries, form)).unwrap()
        };
        let list = client([made(server::Query::List(page, 2), &entries)])
            .list(ProxySubject::Resource)
            .await
            .unwrap();
        assert_eq!(keys(&list), ["a:b", "a:{b}"]);
        let info = client([made(server::Query::Info("a:{b}"), &entries[1..])])
            .info(ProxySubject::Resource, "a:{b}")
            .await;
        assert_eq!(info.unwrap().list(), ListKind::Templates);
        let none = client([made(server::Query::List(page, 0), &[])])
            .list(ProxySubject::Resource)
            .await
            .unwrap();
        assert!(none.is_empty());
    }
}

#[tokio::test]
async fn results_that_the_server_side_wrapped_are_themselves_again() {
    let sent = r#"{"contents":[{"uri":"a:1","mimeType":"text/yaml","text":"{\"n\": 1.0}"},{"uri":"a:2","text":"no JSON"}],"_meta":{"m":1e2}}"#;
    let read = r#"{"_meta":{"m":1e2},"contents":[{"uri":"a:1","mimeType":"text/yaml","text":"{\"n\":1.0}"},{"uri":"a:2","text":"no JSON"}]}"#;
    let prompt =
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"\u00fc"}}],"x":1.0}"#;
    for (subject, sent, expected) in [
        (ProxySubject::Resource, sent, read),
        (ProxySubject::Prompt, prompt, prompt),
    ] {
        let payload = Payload::body(Form::Legacy, sent.as_bytes().to_vec());
        let answer = Answer {
            outcome: Outcome::Ok,
            payload,
        };
        let made = server::answered(
            subject,
            "a",
            &answer,
            subject.method(),
            Form::Legacy,
            &|_| None,
        );
        let made = String::from_utf8(made.unwrap()).unwrap();
        assert_eq!(
            client([made]).call(subject, "a", &()).await.unwrap().get(),
            expected
        );
    }
}

#[tokio::test]
async fn lists_are_kept_until_they_change() {
    let page = |name: &str| answer("list", "tool", &tools(&[name]), json!({}));
    let client = client([page("a"), page("b"), page("c")]);
    let now = async || client.list_tools().await.unwrap()[0].key().to_owned();
    assert_eq!((now().await, now().await), ("a".to_owned(), "a".to_owned()));
    for (method, known) in [
        ("notifications/prompts/list_changed", true),
        ("notifications/message", false),
    ] {
        assert_eq!(
            (client.notified(method), now().await),
            (known, "a".to_owned())
        );
    }
    assert!(client.notified("notifications/tools/list_changed"));
    assert_eq!((now().await, now().await), ("b".to_owned(), "b".to_owned()));
    client.forget(ProxySubject::Tool);
    assert_eq!(now().await, "c");
}

#[test]
fn a_list_that_changes_while_it_is_read_is_not_kept() {
    let cache = cache::Cache::default();
    let (_, changes) = cache.get(ProxySubject::Prompt);
    cache.forget(ProxySubject::Prompt);
    cache.put(ProxySubject::Prompt, &[].into(), changes);
    assert!(cache.get(ProxySubject::Prompt).0.is_none());
    let (_, changes) = cache.get(ProxySubject::Prompt);
    cache.put(ProxySubject::Prompt, &[].into(), changes);
    assert!(cache.get(ProxySubject::Prompt).0.is_some());
}

#[tokio::test]
async fn without_the_tool_requests_go_directly() {
    let fake = Fake::new([
        json!({ "resources": [{ "uri": "a:1" }], "nextCursor": "next" }),
        json!({ "resources": [{ "uri": "a:2" }] }),
    ])
    .then(-32601);
    let client = ProxyClient::with_tool(fake, None);
    assert_eq!(
        keys(&client.list_resources().await.unwrap()),
        ["a:1", "a:2"]
    );
    assert_eq!(
        keys(&client.list_resources().await.unwrap()),
        ["a:1", "a:2"]
    );
    for error in [
        client.list(ProxySubject::Resource).await.err(),
        client.info(ProxySubject::Tool, "a").await.err(),
    ] {
        assert!(matches!(error, Some(ProxyError::NoProxy)));
    }
    let answers = [
        r#"{"content":[]}"#,
        r#"{"contents":[]}"#,
        r#"{"messages":[]}"#,
    ];
    client
        .requester()
        .answers
        .lock()
        .extend(answers.map(|answer| Ok(answer.to_owned())));
    assert_eq!(
        client
            .call_tool("t", &json!({ "n": 1 }))
            .await
            .unwrap()
            .get(),
        answers[0]
    );
    assert_eq!(client.read_resource("a:1").await.unwrap().get(), answers[1]);
    assert_eq!(client.get_prompt("p", &()).await.unwrap().get(), answers[2]);
    let asked = client.requester().asked.lock().clone();
    let asked: Vec<_> = asked
        .iter()
        .map(|(method, params)| (method.as_str(), params.as_str()))
        .collect();
    assert_eq!(
        asked,
        [
            ("resources/list", "{}"),
            ("resources/list", r#"{"cursor":"next"}"#),
            ("resources/templates/list", "{}"),
            ("tools/call", r#"{"name":"t","arguments":{"n":1}}"#),
            ("resources/read", r#"{"uri":"a:1"}"#),
            ("prompts/get", r#"{"name":"p"}"#),
        ]
    );
}
