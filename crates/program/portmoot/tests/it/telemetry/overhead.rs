//! The gateway's own share of the durations of calls.

use serde_json::json;

use super::collector::{Collector, Values};
use super::{OFTEN, Stage};
use crate::support::{Client, until};
use crate::ws::token;

const COUNT: &str = "portmoot_overhead_seconds_count";

fn counted(values: &Values) -> f64 {
    values.get(COUNT).copied().unwrap_or_default()
}

fn own_share(values: &Values) -> f64 {
    let sum = values.get("portmoot_overhead_seconds_sum");
    sum.copied().unwrap_or_default()
}

/// The sum of the durations of all calls at servers.
fn at_servers(values: &Values) -> f64 {
    let sums = values
        .iter()
        .filter(|(key, _)| key.starts_with("mcp_client_operation_duration_seconds_sum"));
    sums.map(|(_, value)| value).sum()
}

#[test]
fn the_share_of_a_gateway_is_measured_without_the_time_at_the_server() {
    // Far longer than what a gateway adds on any machine.
    const SLOW_MS: u64 = 1_000;
    let collector = Collector::new();
    let stage = Stage::new(&collector.table(OFTEN));
    let ann = Client::of(&stage.gateway, &token("ann"));
    // The first call of a client may open its session at the server.
    ann.call("tools_echo", json!({ "text": "first" }));
    let before = stage.page();
    ann.call("tools_slow", json!({ "ms": SLOW_MS }));
    assert_eq!(ann.call("tools_add", json!({}))["isError"], true);
    // It is entered once the answer is with the door, which may have written it by then.
    let after = until("both calls", || {
        let after = stage.page();
        (counted(&after) - counted(&before) >= 2.0).then_some(after)
    });
    assert!(counted(&after) - counted(&before) < 3.0, "{after:?}");
    let own = own_share(&after) - own_share(&before);
    let server = at_servers(&after) - at_servers(&before);
    assert!(own > 0.0 && own < server, "{own} {server}");
    // What the gateway answers itself was at no server.
    let refused = ann.ask("tools/call", json!({ "name": "none" }));
    assert_eq!(refused["error"]["code"], -32602);
    ann.call("tools_echo", json!({ "text": "last" }));
    until("one more call", || {
        (counted(&stage.page()) - counted(&after) >= 1.0).then_some(())
    });
    stage.gateway.stop().expect(0);
}

#[test]
fn without_telemetry_the_share_of_a_gateway_is_not_measured() {
    let stage = Stage::new("");
    stage.call();
    let page = stage.page();
    assert!(at_servers(&page) > 0.0);
    assert_eq!(page.get(COUNT), None);
    let collector = Collector::new();
    stage.reload(&collector.table(OFTEN));
    stage.call();
    until("the call", || (counted(&stage.page()) >= 1.0).then_some(()));
    stage.gateway.stop().expect(0);
}
