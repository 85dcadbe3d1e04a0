//! Stop of a gateway with open calls: they end within a bound or are refused, and no child stays.

use harness::Running;
use serde_json::json;

use crate::home::Home;
use crate::support::{Client, Gateway, below, fixture, is_alive, modern_stream, until};

#[test]
fn open_calls_end_when_the_gateway_stops_or_are_refused_after_a_bound() {
    let home = Home::new();
    let running = Running::fixture(&["--era", "legacy"]);
    let web = format!("[servers.web]\nurl = \"{}\"\n", running.url());
    let config =
        fixture("old", &["--era", "legacy"]) + &fixture("new", &["--era", "modern"]) + &web;
    let mut gateway = Gateway::start(&home, &config);
    let client = Client::plain(&gateway);
    // A stream without a call delays nothing.
    let listening = client.listen();
    let servers = ["old", "new", "web"];
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for server in servers {
        let call =
            |tool: &str| json!({ "name": format!("{server}_{tool}"), "arguments": { "ms": 1500 } });
        short.push(client.begin(&client.request("tools/call", call("slow"))));
        short.push(modern_stream(&gateway, None, "tools/call", call("slow")));
        long.push(client.begin(&client.request("tools/call", call("hang"))));
        long.push(modern_stream(&gateway, None, "tools/call", call("hang")));
    }
    let open = || {
        servers
            .iter()
            .map(|server| gateway.server(server)["calls"].as_u64().unwrap())
            .sum::<u64>()
    };
    until("all are open", || (open() == 12).then_some(()));
    let left = below(gateway.pid(), "");
    assert!(left.len() >= 2, "{left:?}");
    gateway.signal("TERM");
    for call in short {
        let last = call.rest().pop().expect("an answer");
        assert_eq!(
            last["result"]["content"][0]["text"], "1500 ms later",
            "{last}"
        );
    }
    for call in long {
        let last = call.rest().pop().expect("a refusal");
        assert_eq!(last["error"]["data"]["code"], "upstream_down", "{last}");
        assert!(
            last["error"]["message"]
                .as_str()
                .unwrap()
                .contains("was stopped"),
            "{last}"
        );
    }
    assert!(listening.rest().is_empty());
    gateway.wait();
    for pid in left {
        until("no child is left", || (!is_alive(pid)).then_some(()));
    }
}

#[test]
fn a_gateway_without_open_calls_stops_at_once() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("old", &["--era", "legacy"]));
    let client = Client::plain(&gateway);
    client.call("old_echo", json!({ "text": "x" }));
    let _listening = client.listen();
    let begun = std::time::Instant::now();
    gateway.stop().expect(0);
    assert!(begun.elapsed() < control::DRAIN, "{:?}", begun.elapsed());
}
