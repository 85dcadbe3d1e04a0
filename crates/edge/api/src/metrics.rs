//! Metrics in the OpenMetrics text format: `/metrics`.

mod call_durations;

use std::sync::atomic::Ordering;

use auth::Participant;
use axum::response::{IntoResponse, Response};
use axum::{extract::State, http::header};
use control::Registry;
use gateway::RouteCounts;
use identity::SERVERS;
use prometheus_client::{
    encoding::text::{encode_eof, encode_registry},
    metrics::counter::Counter,
    metrics::family::Family,
    metrics::gauge::Gauge,
    metrics::info::Info,
    registry::Registry as Metrics,
};

use crate::error::ApiResult;
use crate::metrics::call_durations::AllDurations;
use crate::state::{Api, Caller};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Names and values of a metric's labels.
type Labels = Vec<(&'static str, String)>;

/// Metrics of the gateway, its servers, and the topics that the caller may know of.
///
/// Needs a token if the gateway requires tokens: the metrics name topics, and servers to callers
/// with `portmoot/servers`.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, body = String, content_type = "application/openmetrics-text"))
)]
pub(crate) async fn metrics(State(api): State<Api>, Caller(caller): Caller) -> ApiResult<Response> {
    let names_servers = api.holds(&caller, SERVERS, None);
    let text = render(&api.registry, &caller, names_servers);
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response())
}

fn render(registry: &Registry, caller: &Participant, names_servers: bool) -> String {
    let mut metrics = Metrics::with_prefix("portmoot");
    let durations = servers(&mut metrics, registry, (caller, names_servers));
    topics(&mut metrics, registry, caller);
    issuers(&mut metrics, registry, names_servers);
    process(&mut metrics, registry);
    audit(&mut metrics, registry);
    notifications(&mut metrics, registry, names_servers);
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode_registry(&mut text, &metrics);
    // Names of the conventions, without the gateway's own prefix.
    if !durations.is_empty() {
        let mut conventional = Metrics::default();
        conventional.register_collector(Box::new(durations));
        let _ = encode_registry(&mut text, &conventional);
    }
    let _ = encode_eof(&mut text);
    text
}

fn process(metrics: &mut Metrics, registry: &Registry) {
    metrics.register(
        "build",
        "The running version",
        Info::new([("version", env!("CARGO_PKG_VERSION"))]),
    );
    let mut gauge = |name: &str, help: &str, value: i64| {
        let gauge = Gauge::<i64>::default();
        gauge.set(value);
        metrics.register(name, help, gauge);
    };
    let seconds = i64::try_from(registry.context.now_ms() / 1000).unwrap_or(i64::MAX);
    let sessions = registry.http_sessions.load(Ordering::Relaxed);
    let held = "Bytes that wait for readers or are kept for them, and bodies while they are read";
    gauge(
        "uptime_seconds",
        "Seconds since the gateway started",
        seconds,
    );
    gauge(
        "sessions",
        "Legacy sessions open over HTTP",
        number(sessions),
    );
    gauge("held_bytes", held, number(registry.held.taken()));
    let newcomers = "Bytes that wait of senders that are not known yet";
    gauge(
        "newcomer_bytes",
        newcomers,
        number(registry.newcomers.taken()),
    );
    let audit = registry.audit.is_available();
    let journal = registry.keeps_journal();
    gauge(
        "audit_available",
        "0 while requests that must be recorded are refused",
        i64::from(audit),
    );
    gauge(
        "journal_available",
        "0 if the journal cannot be written",
        i64::from(journal),
    );
}

/// Returns the durations of calls at the servers.
fn servers(
    metrics: &mut Metrics,
    registry: &Registry,
    (caller, names): (&Participant, bool),
) -> AllDurations {
    let mut durations = AllDurations::default();
    let counts = Family::<Labels, Gauge>::default();
    let states = Family::<Labels, Gauge>::default();
    let restarts = Family::<Labels, Counter>::default();
    let [sessions, calls, tools, unlisted] = [(); 4].map(|()| Family::<Labels, Gauge>::default());
    let known = registry
        .topics()
        .into_iter()
        .filter(|dispatch| registry.may_know(caller, dispatch.name()));
    let serving = known
        .flat_map(|dispatch| dispatch.servers())
        .filter(|server| server.serves());
    let serving = serving.map(|server| server.upstream.clone());
    // A participant may serve in several topics: its numbers are added up.
    for upstream in registry.upstreams().into_iter().chain(serving) {
        let status = upstream.status();
        let label = vec![("server", status.name.to_string())];
        let state = ("state", status.state.as_str().to_owned());
        counts.get_or_create(&vec![state.clone()]).inc();
        if !names {
            continue;
        }
        states
            .get_or_create(&[label.clone(), vec![state]].concat())
            .set(1);
        restarts.get_or_create(&label).inc_by(status.restarts);
        sessions
            .get_or_create(&label)
            .inc_by(number(status.sessions));
        calls.get_or_create(&label).inc_by(number(status.calls));
        durations.add(&status.name, upstream.call_durations());
        let [listed, ..] = status.listed;
        tools.get_or_create(&label).inc_by(number(listed));
        unlisted
            .get_or_create(&label)
            .inc_by(number(status.quarantined.len()));
    }
    metrics.register("servers", "Servers in this state", counts);
    if !names {
        return durations;
    }
    metrics.register("server_state", "1 for the state of the server", states);
    metrics.register(
        "server_account",
        "1 for the state of the account that all callers share",
        accounts(registry),
    );
    metrics.register(
        "server_restarts",
        "Sessions with the server that ended unexpectedly",
        restarts,
    );
    metrics.register("server_sessions", "Sessions open with the server", sessions);
    metrics.register("server_calls", "Calls open at the server", calls);
    metrics.register("server_tools", "Tools that the server lists", tools);
    metrics.register(
        "server_tools_unlisted",
        "Tools of the server that are not listed, because their schemas cannot be used",
        unlisted,
    );
    durations
}

/// The states of the accounts that all callers of a server share.
fn accounts(registry: &Registry) -> Family<Labels, Gauge> {
    let states = Family::<Labels, Gauge>::default();
    let shared = registry
        .accounts
        .servers()
        .into_iter()
        .filter(|server| !server.is_of_callers());
    for server in shared {
        // It is there before anything was asked of it.
        let _ = server.of(None);
        for (_, account) in server.all(&registry.accounts.logins) {
            let state = vec![
                ("server", server.site.name.clone()),
                ("state", account.state.to_owned()),
            ];
            states.get_or_create(&state).set(1);
        }
    }
    states
}

fn topics(metrics: &mut Metrics, registry: &Registry, caller: &Participant) {
    let counted = [(); 4].map(|()| Family::<Labels, Gauge>::default());
    let [requests, violations] = [(); 2].map(|()| Family::<Labels, Counter>::default());
    for dispatch in registry
        .topics()
        .iter()
        .filter(|dispatch| registry.may_know(caller, dispatch.name()))
    {
        let label = vec![("topic", dispatch.name().to_string())];
        let counts = dispatch.with(|topic| {
            [
                topic.participants_len(),
                topic.links_len(),
                topic.operations_len(),
                topic.proposals_len(),
            ]
        });
        for (gauge, count) in counted.iter().zip(counts) {
            gauge.get_or_create(&label).set(number(count));
        }
        for (verdict, count) in dispatch.verdicts() {
            let verdict = ("verdict", verdict.to_owned());
            requests
                .get_or_create(&[label.clone(), vec![verdict]].concat())
                .inc_by(count);
        }
        for (broken, count) in dispatch.violations() {
            let broken = ("broken", broken.to_owned());
            violations
                .get_or_create(&[label.clone(), vec![broken]].concat())
                .inc_by(count);
        }
    }
    let [participants, links, operations, proposals] = counted;
    metrics.register(
        "topic_participants",
        "Participants in the topic, servers included",
        participants,
    );
    metrics.register("topic_links", "Links of participants to the topic", links);
    metrics.register(
        "topic_operations",
        "Operations open in the topic",
        operations,
    );
    metrics.register(
        "topic_proposals",
        "Proposals in the topic that have not ended",
        proposals,
    );
    metrics.register("requests", "Requests by verdict", requests);
    metrics.register(
        "violations",
        "Envelopes by the rule that they break",
        violations,
    );
}

/// Issuers of access tokens, and what is known of their tokens; nothing if none is configured.
fn issuers(metrics: &mut Metrics, registry: &Registry, names: bool) {
    let issuers = registry.bearers.issuers();
    if issuers.is_empty() {
        return;
    }
    let [counts, states] = [(); 2].map(|()| Family::<Labels, Gauge>::default());
    let [asked, failed] = [(); 2].map(|()| Family::<Labels, Counter>::default());
    for (name, issuer) in issuers {
        let state = ("state", issuer.condition().as_str().to_owned());
        counts.get_or_create(&vec![state.clone()]).inc();
        let label = vec![("issuer", name)];
        states
            .get_or_create(&[label.clone(), vec![state]].concat())
            .set(1);
        let all = issuer.asked();
        for (what, count) in [("keys", all.keys), ("tokens", all.tokens)] {
            let label = [label.clone(), vec![("for", what.to_owned())]].concat();
            asked.get_or_create(&label).inc_by(count.all);
            failed.get_or_create(&label).inc_by(count.failed);
        }
    }
    let known = Gauge::<i64>::default();
    let refused = Counter::<u64>::default();
    known.set(number(registry.bearers.tokens_len()));
    refused.inc_by(registry.bearers.refused());
    metrics.register("issuers", "Issuers of access tokens in this state", counts);
    metrics.register(
        "access_tokens",
        "Access tokens that were checked and are remembered",
        known,
    );
    metrics.register(
        "access_tokens_refused",
        "Access tokens that were refused",
        refused,
    );
    if names {
        metrics.register("issuer_state", "1 for the state of the issuer", states);
        metrics.register("issuer_requests", "Requests to the issuer", asked);
        metrics.register(
            "issuer_requests_failed",
            "Requests to the issuer without an answer of use",
            failed,
        );
    }
}

fn audit(metrics: &mut Metrics, registry: &Registry) {
    let Some(load) = registry.audit.load() else {
        return;
    };
    let waiting = Gauge::<i64>::default();
    let [refused, lost] = [load.refused, load.lost].map(|count| {
        let counter = Counter::<u64>::default();
        counter.inc_by(count);
        counter
    });
    waiting.set(number(load.waiting));
    metrics.register(
        "audit_waiting",
        "Entries of the audit log that wait for the disk",
        waiting,
    );
    metrics.register(
        "audit_refused",
        "Acts refused because they could not be recorded",
        refused,
    );
    metrics.register("audit_lost", "Entries of the audit log that are lost", lost);
}

/// Notifications by route and outcome. The names of routes are for operators.
fn notifications(metrics: &mut Metrics, registry: &Registry, names_routes: bool) {
    let counts = registry.context.notifications.counts();
    if counts.is_empty() || !names_routes {
        return;
    }
    let sent = Family::<Labels, Counter>::default();
    for RouteCounts { route, outcomes } in counts {
        for (outcome, count) in outcomes {
            let labels = vec![
                ("route", route.to_string()),
                ("outcome", outcome.to_owned()),
            ];
            sent.get_or_create(&labels).inc_by(count);
        }
    }
    let help = "Notifications about proposals that wait, by what became of them";
    metrics.register("notifications", help, sent);
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
