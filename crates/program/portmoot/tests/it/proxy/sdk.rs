//! Client of the SDK against the running tool: what it decodes, and what it is as a plain client.

use std::sync::Mutex;

use participant::proxy::{
    Definition, ListKind, ProxyClient, ProxyError, ProxySubject, Requester, RoomServer,
};
use participant::{CallError, RpcError};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{client, stage};
use crate::home::Home;
use crate::participants::{join, read};
use crate::program::{Program, example};
use crate::support::{Client, Gateway, fixture};
use crate::ws::{people, token};

/// A session over HTTP.
struct Session(Mutex<Client>);

impl Session {
    fn of(client: Client) -> Self {
        Self(Mutex::new(client))
    }
}

#[derive(Deserialize)]
struct Answer {
    result: Option<Box<RawValue>>,
    error: Option<RpcError>,
}

impl Requester for Session {
    async fn request(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>, CallError> {
        let message =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let reply = self.0.lock().unwrap().post_text(&message);
        let answer: Answer = serde_json::from_str(&reply.body).unwrap();
        answer
            .result
            .ok_or_else(|| CallError::Answered(answer.error.unwrap()))
    }
}

fn raw(list: &[Definition]) -> Vec<(ListKind, &str)> {
    list.iter()
        .map(|one| (one.list(), one.raw().get()))
        .collect()
}

#[tokio::test]
async fn the_sdk_is_a_plain_client_with_and_without_the_tool() {
    let plain = "[topics.plain]\naccess = \"public\"\n";
    let (_home, gateway) = stage(&(fixture("raw", &["--raw"]) + plain));
    gateway.ready("raw");
    let through = ProxyClient::detect(Session::of(client(&gateway, "boss")))
        .await
        .unwrap();
    assert_eq!(through.tool(), Some("proxy"));
    let elsewhere = Client::open(&gateway, Some(&token("boss")), "/mcp/plain", json!({}));
    let directly = ProxyClient::detect(Session::of(elsewhere)).await.unwrap();
    assert_eq!(directly.tool(), None);
    let (listed, own) = (
        through.list_tools().await.unwrap(),
        directly.list_tools().await.unwrap(),
    );
    let listed: Vec<_> = raw(&listed)
        .into_iter()
        .filter(|one| raw(&own).contains(one))
        .collect();
    assert_eq!(listed, raw(&own), "the tools of the servers, byte for byte");
    assert!(
        listed.iter().any(|(_, raw)| raw.contains("1e400")),
        "{listed:?}"
    );
    assert_eq!(
        raw(&through.list_resources().await.unwrap()),
        raw(&directly.list_resources().await.unwrap())
    );
    assert_eq!(
        raw(&through.list_prompts().await.unwrap()),
        raw(&directly.list_prompts().await.unwrap())
    );

    for uri in [
        "test://static-text",
        "test://static-binary",
        "test://template/7/data",
    ] {
        let [one, two] = [
            through.read_resource(uri).await.unwrap(),
            directly.read_resource(uri).await.unwrap(),
        ];
        assert_eq!(read(&one)["contents"], read(&two)["contents"], "{uri}");
    }
    let arguments = json!({ "arg1": "one", "arg2": "two" });
    let name = "up_test_prompt_with_arguments";
    assert_eq!(
        through.get_prompt(name, &arguments).await.unwrap().get(),
        directly.get_prompt(name, &arguments).await.unwrap().get()
    );
    for client in [&through, &directly] {
        let sum = read(
            &client
                .call_tool("up_add", &json!({ "a": 2, "b": 3 }))
                .await
                .unwrap(),
        );
        assert_eq!(sum["structuredContent"], json!({ "sum": 5 }), "{sum}");
        let failed = read(
            &client
                .call_tool("up_test_error_handling", &())
                .await
                .unwrap(),
        );
        assert_eq!(failed["isError"], true, "{failed}");
    }
    let odd = r#"{"content":[{"type":"text","text":"\u00fc\/","x":-0.0}],"exp":1e400}"#;
    let odd = RawValue::from_string(odd.to_owned()).unwrap();
    let mirrored = through.call_tool("raw_mirror", &odd).await.unwrap();
    assert!(
        mirrored.get().contains(r#""text":"\u00fc\/","x":-0.0,"#),
        "{mirrored}"
    );
    assert!(mirrored.get().contains(r#""exp":1e400"#), "{mirrored}");

    assert!(matches!(
        through.read_resource("test://absent").await,
        Err(ProxyError::Failed(_))
    ));
    assert!(matches!(
        directly.read_resource("test://absent").await,
        Err(ProxyError::Call(_))
    ));
    let template = through
        .info(ProxySubject::Resource, "test://template/{id}/data")
        .await
        .unwrap();
    assert_eq!(template.list(), ListKind::Templates);
    assert!(
        matches!(through.info(ProxySubject::Tool, "absent").await, Err(ProxyError::Failed(why)) if why.contains("'absent'"))
    );
}

#[tokio::test]
async fn lists_of_the_sdk_follow_the_notifications() {
    let (home, config) = people(&[("boss", super::FULL)]);
    let with = |more: &str| format!("{config}{}{}{more}", super::LISTED, fixture("up", &[]));
    let gateway = Gateway::start(&home, &with(""));
    gateway.ready("up");
    let boss = client(&gateway, "boss");
    let changes = boss.listen();
    let sdk = ProxyClient::detect(Session::of(boss)).await.unwrap();
    let has_more = async || {
        sdk.list_tools()
            .await
            .unwrap()
            .iter()
            .any(|tool| tool.key() == "more_echo")
    };
    assert!(!has_more().await);
    home.write("portmoot.toml", &with(&fixture("more", &[])));
    gateway.signal("HUP");
    gateway.ready("more");
    assert!(!has_more().await, "the kept list");
    // A change may be announced before the server's tools are there.
    loop {
        let change = changes.next_of("notifications/tools/list_changed");
        assert!(sdk.notified(change["method"].as_str().unwrap()));
        if has_more().await {
            break;
        }
    }
}

/// The tool of a server in the room: another gateway, which has it in its topic.
#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_uses_the_proxy_of_a_server_in_the_room() {
    let inner_home = Home::new();
    let inner = format!(
        "[topics.main]\nbuiltin = [\"proxy\"]\n{}",
        fixture("up", &[])
    );
    let inner = Gateway::start(&inner_home, &inner);
    inner.ready("up");
    let (home, config) = people(&[("boss", super::FULL)]);
    let gateway = Gateway::start(
        &home,
        &format!("{config}[servers.inner]\nurl = \"{}/mcp\"\n", inner.url()),
    );
    gateway.ready("inner");
    let (boss, _) = join(&gateway, "boss").await;
    let sdk = ProxyClient::detect(RoomServer {
        participant: boss,
        server: "inner".into(),
    })
    .await
    .unwrap();
    assert_eq!(sdk.tool(), Some("proxy"));
    let sum = read(
        &sdk.call_tool("up_add", &json!({ "a": 2, "b": 3 }))
            .await
            .unwrap(),
    );
    assert_eq!(sum["structuredContent"], json!({ "sum": 5 }), "{sum}");
    assert_eq!(
        sum["content"][0]["annotations"]["proxyPath"], "up_add",
        "{sum}"
    );
    assert!(
        sdk.list_resources()
            .await
            .unwrap()
            .iter()
            .any(|one| one.key() == "test://static-text")
    );
}

#[test]
fn the_example_lists_and_calls_both_ways() {
    let (_home, gateway) = stage("[topics.plain]\naccess = \"public\"\n");
    for (path, way) in [("/mcp", "through `proxy`"), ("/mcp/plain", "directly")] {
        let url = gateway.url() + path;
        let run = |more: &[&str]| {
            let args = [&[url.as_str()], more].concat();
            let (code, printed) =
                Program::start(example("proxy_client", &gateway, "boss", &args)).wait_for_exit();
            assert_eq!(code, 0, "{printed}");
            assert!(printed.starts_with(way), "{printed}");
            printed
        };
        let listed = run(&[]);
        for one in [
            "Tools up_add",
            "Resources test://static-text",
            "Templates test://template/{id}/data",
        ] {
            assert!(listed.lines().any(|line| line == one), "{one}: {listed}");
        }
        let called = run(&["up_add", "{\"a\": 2, \"b\": 3}"]);
        assert!(
            called.contains("\"structuredContent\":{\"sum\":5}"),
            "{called}"
        );
    }
}
