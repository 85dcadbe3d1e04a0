//! `/metrics` in the OpenMetrics format: how the servers and sessions are. Must not know who may read it.

use std::sync::Arc;

use auth::Participant;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use gateway::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfServer {
    server: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfServerState {
    server: String,
    state: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTopic {
    topic: String,
    verdict: String,
}

/// Everything that this participant may know of, as it is now.
pub(super) fn render(gate: &Arc<Registry>, who: &Participant) -> String {
    let mut registry = Registry::with_prefix("portmoot");
    servers(&mut registry, gate, who);
    topics(&mut registry, gate, who);
    whole(&mut registry, gate);
    audit(&mut registry, gate);
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

fn whole(registry: &mut Registry, gate: &Registry) {
    registry.register("build", "The version that runs", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
    let mut one = |name: &str, help: &str, value: i64| {
        let gauge = Gauge::<i64>::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    };
    let seconds = i64::try_from(gate.ground().now_ms() / 1000).unwrap_or(i64::MAX);
    one("uptime_seconds", "Seconds since the gateway began", seconds);
    one("sessions", "Legacy sessions open over HTTP", number(gate.sessions().len()));
    one(
        "held_bytes",
        "Bytes that wait for readers or are kept for them, and bodies while they are read",
        number(gate.held().bytes()),
    );
    one("audit_available", "0 when what must be recorded is refused", i64::from(gate.audit().is_available()));
    one("journal_available", "0 when the journal cannot be written", i64::from(gate.keeps_its_journal()));
}

fn servers(registry: &mut Registry, gate: &Registry, who: &Participant) {
    let (states, restarts) =
        (Family::<OfServerState, Gauge>::default(), Family::<OfServer, Counter>::default());
    let (sessions, calls) = (Family::<OfServer, Gauge>::default(), Family::<OfServer, Gauge>::default());
    let (tools, hidden) = (Family::<OfServer, Gauge>::default(), Family::<OfServer, Gauge>::default());
    let known = gate.topics().into_iter().filter(|dispatch| gate.may_know(who, dispatch.name()));
    let serving = known.flat_map(|dispatch| dispatch.servers());
    // A participant may serve in several topics: its numbers are added up.
    for upstream in gate.upstreams().into_iter().chain(serving) {
        let status = upstream.status();
        let server = status.name.to_string();
        let of = OfServer { server: server.clone() };
        states.get_or_create(&OfServerState { server, state: status.state.as_str().into() }).set(1);
        restarts.get_or_create(&of).inc_by(status.restarts);
        sessions.get_or_create(&of).inc_by(number(status.sessions));
        calls.get_or_create(&of).inc_by(number(status.calls));
        let [listed, ..] = status.listed;
        tools.get_or_create(&of).inc_by(number(listed));
        hidden.get_or_create(&of).inc_by(number(status.quarantined.len()));
    }
    registry.register("server_state", "1 for the state that the server is in", states);
    registry.register("server_restarts", "Sessions with the server that ended unexpectedly", restarts);
    registry.register("server_sessions", "Sessions open with the server", sessions);
    registry.register("server_calls", "Calls open at the server", calls);
    registry.register("server_tools", "Tools that the server lists", tools);
    registry.register("server_tools_quarantined", "Tools of the server that are left out", hidden);
}

fn topics(registry: &mut Registry, gate: &Registry, who: &Participant) {
    let (participants, links) =
        (Family::<OfTopicName, Gauge>::default(), Family::<OfTopicName, Gauge>::default());
    let (open, proposals) =
        (Family::<OfTopicName, Gauge>::default(), Family::<OfTopicName, Gauge>::default());
    let requests = Family::<OfTopic, Counter>::default();
    for dispatch in gate.topics().iter().filter(|dispatch| gate.may_know(who, dispatch.name())) {
        let name = OfTopicName { topic: dispatch.name().to_string() };
        let counts = dispatch.with(|topic| {
            [topic.participants_len(), topic.links_len(), topic.operations_len(), topic.proposals_len()]
        });
        for (gauge, count) in [&participants, &links, &open, &proposals].into_iter().zip(counts) {
            gauge.get_or_create(&name).set(number(count));
        }
        for (verdict, count) in dispatch.verdicts() {
            let of = OfTopic { topic: name.topic.clone(), verdict: verdict.into() };
            requests.get_or_create(&of).inc_by(count);
        }
    }
    registry.register("topic_participants", "Participants in the topic, upstreams included", participants);
    registry.register("topic_links", "Links of participants to the topic", links);
    registry.register("topic_operations", "Operations open in the topic", open);
    registry.register("topic_proposals", "Proposals that are not over", proposals);
    registry.register("requests", "Requests by verdict", requests);
}

fn audit(registry: &mut Registry, gate: &Registry) {
    let Some(load) = gate.audit().load() else { return };
    let (waiting, refused, lost) =
        (Gauge::<i64>::default(), Counter::<u64>::default(), Counter::<u64>::default());
    waiting.set(number(load.waiting));
    refused.inc_by(load.refused);
    lost.inc_by(load.lost);
    registry.register("audit_waiting", "Entries of the audit log that wait for the disk", waiting);
    registry.register("audit_refused", "Acts refused because they could not be recorded", refused);
    registry.register("audit_lost", "Entries of the audit log that are lost", lost);
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTopicName {
    topic: String,
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
