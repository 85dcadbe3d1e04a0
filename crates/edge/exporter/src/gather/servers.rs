//! Servers: their states, sessions and tools, and the durations of calls.

use control::Registry;
use telemetry::{MeasuredFamily, MeasuredValue, MetricLabel};
use upstream::{CallDurations, ToolDurations, Upstream};

use super::parts::{MetricsViewer, gauge, label};

/// What is measured of each server.
struct OfServers {
    counts: MeasuredFamily,
    states: MeasuredFamily,
    restarts: MeasuredFamily,
    sessions: MeasuredFamily,
    calls: MeasuredFamily,
    tools: MeasuredFamily,
    unlisted: MeasuredFamily,
    durations: MeasuredFamily,
    tool_durations: MeasuredFamily,
}

impl OfServers {
    fn new() -> Self {
        Self {
            counts: MeasuredFamily::new("portmoot.servers", "Servers in this state"),
            states: MeasuredFamily::new("portmoot.server_state", "1 for the state of the server"),
            restarts: MeasuredFamily::new(
                "portmoot.server_restarts",
                "Sessions with the server that ended unexpectedly",
            ),
            sessions: MeasuredFamily::new(
                "portmoot.server_sessions",
                "Sessions open with the server",
            ),
            calls: MeasuredFamily::new("portmoot.server_calls", "Calls open at the server"),
            tools: MeasuredFamily::new("portmoot.server_tools", "Tools that the server lists"),
            unlisted: MeasuredFamily::new(
                "portmoot.server_tools_unlisted",
                "Tools of the server that are not listed, because their schemas cannot be used",
            ),
            durations: MeasuredFamily::new(
                "mcp.client.operation.duration",
                "Duration of a call at a server, from when it is sent until its answer",
            )
            .in_seconds(),
            tool_durations: MeasuredFamily::new(
                "portmoot.tool_duration",
                "Duration of the calls of a tool at its server, as the durations of all calls",
            )
            .in_seconds(),
        }
    }

    /// Enters a server. A participant may serve in several topics: its numbers are added up.
    fn enter(&mut self, upstream: &Upstream) {
        let status = upstream.status();
        let server = label("portmoot.server", &*status.name);
        let state = label("portmoot.state", status.state.as_str());
        let states = vec![server.clone(), state];
        if !self.states.samples.contains_key(&states) {
            self.states.add(states, MeasuredValue::Gauge(1));
        }
        let of_server = vec![server.clone()];
        let [listed, ..] = status.listed;
        let restarts = MeasuredValue::Counter(status.restarts);
        self.restarts.add(of_server.clone(), restarts);
        self.sessions.add(of_server.clone(), gauge(status.sessions));
        self.calls.add(of_server.clone(), gauge(status.calls));
        self.tools.add(of_server.clone(), gauge(listed));
        self.unlisted
            .add(of_server, gauge(status.quarantined.len()));
        for one in upstream.call_durations() {
            self.enter_durations(&server, one);
        }
        for one in upstream.tool_durations() {
            self.enter_tool(&server, one);
        }
    }

    fn enter_tool(&mut self, server: &MetricLabel, one: ToolDurations) {
        let outcome = if one.has_failed { "failed" } else { "answered" };
        let labels = vec![
            server.clone(),
            label("portmoot.tool", one.tool),
            label("portmoot.outcome", outcome),
        ];
        self.tool_durations
            .add(labels, MeasuredValue::Durations(one.durations));
    }

    fn enter_durations(&mut self, server: &MetricLabel, one: CallDurations) {
        let mut labels = vec![server.clone(), label("mcp.method.name", one.method)];
        labels.extend(one.error_type.map(|error| label("error.type", error)));
        self.durations
            .add(labels, MeasuredValue::Durations(one.durations));
    }
}

/// What is measured of the servers.
pub(super) fn families(registry: &Registry, viewer: MetricsViewer<'_>) -> Vec<MeasuredFamily> {
    let mut all = OfServers::new();
    let known = registry.topics().into_iter();
    let known = known.filter(|dispatch| viewer.knows(dispatch, registry));
    let serving = known
        .flat_map(|dispatch| dispatch.servers())
        .filter(|server| server.serves())
        .map(|server| server.upstream.clone());
    for upstream in registry.upstreams().into_iter().chain(serving) {
        let state = label("portmoot.state", upstream.status().state.as_str());
        all.counts.add(vec![state], MeasuredValue::Gauge(1));
        if viewer.sees_servers() {
            all.enter(&upstream);
        }
    }
    if !viewer.sees_servers() {
        return vec![all.counts];
    }
    vec![
        all.counts,
        all.states,
        accounts(registry),
        all.restarts,
        all.sessions,
        all.calls,
        all.tools,
        all.unlisted,
        all.durations,
        all.tool_durations,
    ]
}

/// The states of the accounts that all callers of a server share.
fn accounts(registry: &Registry) -> MeasuredFamily {
    let help = "1 for the state of the account that all callers share";
    let mut states = MeasuredFamily::new("portmoot.server_account", help);
    let all = registry.accounts.servers().into_iter();
    for server in all.filter(|server| !server.is_of_callers()) {
        // It is there before anything was asked of it.
        let _ = server.of(None);
        for (_, account) in server.all(&registry.accounts.logins) {
            let state = vec![
                label("portmoot.server", &*server.site.name),
                label("portmoot.state", account.state),
            ];
            if !states.samples.contains_key(&state) {
                states.add(state, MeasuredValue::Gauge(1));
            }
        }
    }
    states
}
