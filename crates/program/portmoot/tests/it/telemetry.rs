//! Telemetry: what a collector receives by OTLP.

mod audit;
mod collector;
mod conventions;
mod failures;
mod foreign;
mod headers;
mod holds;
mod other_doors;
mod overhead;
mod rooms;
mod traces;

use serde_json::json;

use crate::approver_outside::pdp::Received;
use crate::home::Home;
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{people, token};
use collector::{Collector, Values, metrics_of, text, values_of, values_on};

const OFTEN: &str = "interval = \"100ms\"\n";
const RELOADED: &str = "the configuration has changed: reloaded";
const SECRET: &str = "a-token-of-the-collector";
/// Values that move while a gateway rests: the time, and what these tests themselves cause.
const MOVING: [&str; 5] = [
    "portmoot_uptime_seconds",
    "portmoot_telemetry_exports_total",
    "portmoot_held_bytes",
    "portmoot_newcomer_bytes",
    "portmoot_memory_bytes",
];

/// A gateway with the fixture as `tools`, and `ann` that sees everything.
struct Stage {
    home: Home,
    base: String,
    gateway: Gateway,
}

impl Stage {
    fn new(telemetry: &str) -> Stage {
        Stage::at(telemetry, |home| home)
    }

    /// The same, in a home that was changed.
    fn at(telemetry: &str, change: impl FnOnce(Home) -> Home) -> Stage {
        let (home, config) = people(&[("ann", &["mcp/*", "portmoot/*"])]);
        let home = change(home);
        let base = config + &fixture("tools", &[]);
        let gateway = Gateway::start(&home, &format!("{base}{telemetry}"));
        gateway.ready("tools");
        Stage {
            home,
            base,
            gateway,
        }
    }

    /// Calls a tool that succeeds.
    #[track_caller]
    fn call(&self) {
        let ann = Client::of(&self.gateway, &token("ann"));
        let result = ann.call("tools_echo", json!({ "text": "x" }));
        assert_eq!(result["content"][0]["text"], "x", "{result}");
    }

    fn page(&self) -> Values {
        values_on(&self.gateway.get("/metrics", Some(&token("ann"))).body)
    }

    /// The number of messages of metrics with this outcome.
    fn exports(&self, outcome: &str) -> f64 {
        let key =
            format!("portmoot_telemetry_exports_total{{signal=\"metrics\",outcome=\"{outcome}\"}}");
        self.page().get(&key).copied().unwrap_or_default()
    }

    /// Puts other telemetry in force.
    fn reload(&self, telemetry: &str) {
        let reloads = || self.gateway.log().matches(RELOADED).count();
        let before = reloads();
        let config = format!("{}{telemetry}", self.base);
        self.home.write("portmoot.toml", &config);
        self.gateway.signal("HUP");
        until("the reload", || (reloads() > before).then_some(()));
    }
}

/// Values without those that move by themselves.
fn resting(mut values: Values) -> Values {
    values.retain(|key, _| !MOVING.iter().any(|moving| key.starts_with(moving)));
    values
}

/// The number of calls at the server `tools` that succeeded, as a message has it.
fn calls_in(values: &Values) -> Option<f64> {
    let labels = "server=\"tools\",mcp_method_name=\"tools/call\"";
    let key = format!("mcp_client_operation_duration_seconds_count{{{labels}}}");
    values.get(&key).copied()
}

#[test]
fn metrics_arrive_by_otlp_and_equal_the_page() {
    let collector = Collector::new();
    let stage = Stage::new(&collector.table(OFTEN));
    let ann = Client::of(&stage.gateway, &token("ann"));
    ann.call("tools_echo", json!({ "text": "x" }));
    assert_eq!(ann.call("tools_add", json!({}))["isError"], true);
    until("a message that equals the page", || {
        let page = resting(stage.page());
        assert!(page.len() > 30, "{page:?}");
        (resting(values_of(&collector.latest())) == page).then_some(())
    });
    assert!(stage.exports("sent") > 0.0);
    stage.gateway.stop().expect(0);
}

#[test]
fn a_message_says_which_gateway_it_is_of_and_has_the_configured_headers() {
    let collector = Collector::new();
    let more = format!("{OFTEN}token_env = \"COLLECTOR\"\n");
    let stage = Stage::at(&collector.table(&more), |home| {
        home.env("COLLECTOR", SECRET)
            .env("OTEL_SERVICE_NAME", "the gateway")
            .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
            .env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=blue%20team")
    });
    let request: Received = until("a message", || collector.requests().pop());
    assert_eq!(request.header("authorization"), format!("bearer {SECRET}"));
    assert_eq!(request.header("x-tenant"), "blue team");
    assert_eq!(request.header("content-type"), "application/x-protobuf");
    let message = collector.messages().remove(0);
    let resource = message.resource_metrics[0].resource.as_ref().unwrap();
    let value = |name: &str| {
        let found = resource.attributes.iter().find(|one| one.key == name);
        text(found.unwrap_or_else(|| panic!("no {name}: {resource:?}"))).to_owned()
    };
    assert_eq!(value("service.name"), "the gateway");
    assert_eq!(value("deployment.environment"), "test");
    assert_eq!(value("service.version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(value("service.instance.id").len(), 32);
    assert!(!stage.gateway.stop().expect(0).stderr.contains(SECRET));
}

#[test]
fn the_environment_alone_switches_it_on() {
    let collector = Collector::new();
    let base = collector.base();
    let stage = Stage::at("", |home| {
        home.env("OTEL_EXPORTER_OTLP_ENDPOINT", &base)
            .env("OTEL_METRIC_EXPORT_INTERVAL", "100")
    });
    collector.latest();
    stage.gateway.stop().expect(0);
    let before = collector.requests().len();
    let stage = Stage::at("", |home| {
        home.env("OTEL_EXPORTER_OTLP_ENDPOINT", &base)
            .env("OTEL_METRIC_EXPORT_INTERVAL", "100")
            .env("OTEL_SDK_DISABLED", "true")
    });
    stage.call();
    let log = stage.gateway.stop().expect(0).stderr;
    assert!(
        log.contains("the environment has OTEL_SDK_DISABLED"),
        "{log}"
    );
    assert_eq!(collector.requests().len(), before);
}

#[test]
fn at_the_end_of_a_gateway_a_last_message_has_what_was_measured() {
    let collector = Collector::new();
    let stage = Stage::new(&collector.table("interval = \"1h\"\n"));
    stage.call();
    stage.gateway.stop().expect(0);
    let mut messages = collector.messages();
    assert_eq!(messages.len(), 1);
    let values = values_of(&metrics_of(messages.remove(0)));
    assert_eq!(calls_in(&values), Some(1.0), "{values:?}");
}

#[test]
fn a_reload_changes_the_collector_and_ends_the_export() {
    let (first, second) = (Collector::new(), Collector::new());
    let stage = Stage::new(&first.table("interval = \"1h\"\n"));
    stage.call();
    stage.reload(&second.table("interval = \"1h\"\n"));
    let log = stage.gateway.receive(RELOADED);
    assert!(log.contains("changed=\"telemetry\""), "{log}");
    // The former one gets what was measured until then.
    assert_eq!(calls_in(&values_of(&first.latest())), Some(1.0));
    stage.call();
    stage.reload("");
    assert_eq!(calls_in(&values_of(&second.latest())), Some(2.0));
    stage.call();
    stage.gateway.stop().expect(0);
    // Not even a last message.
    assert_eq!((first.requests().len(), second.requests().len()), (1, 1));
}

#[test]
fn commands_that_run_a_gateway_in_their_process_export_nothing() {
    let collector = Collector::new();
    let home = Home::new().env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.base());
    let config = fixture("tools", &[]) + &collector.table(OFTEN);
    home.write("portmoot.toml", &config);
    let call = ["tools", "call", "tools_echo", "text=x"];
    home.run(&[&call[..], &["--config", "portmoot.toml"]].concat())
        .expect(0);
    assert!(collector.requests().is_empty());
}
