//! Everything that a gateway measures, in no format.

mod parts;
mod servers;
mod topics;

use std::sync::atomic::Ordering;

use control::Registry;
use gateway::{HoldDurations, RouteCounts};
use platform::resident_bytes;
use telemetry::{ExportCount, MeasuredFamily, MeasuredValue, MetricLabels};

pub use parts::MetricsViewer;
use parts::{gauge, label};

/// Everything that is measured and that the viewer may know of.
#[must_use]
pub fn gather(registry: &Registry, viewer: MetricsViewer<'_>) -> Vec<MeasuredFamily> {
    let mut families = servers::families(registry, viewer);
    families.extend(topics::families(registry, viewer));
    families.push(holds(registry));
    families.push(overhead(registry));
    families.extend(issuers(registry, viewer));
    families.extend(process(registry));
    families.extend(audit(registry));
    families.extend(audit_exports(registry));
    families.extend(notifications(registry, viewer));
    families.push(exports(registry));
    families.push(spans(registry));
    families
}

/// A metric with one value.
fn single(name: &'static str, help: &'static str, value: MeasuredValue) -> MeasuredFamily {
    MeasuredFamily::new(name, help).with(MetricLabels::new(), value)
}

/// The running program and its memory, and whether it can write down what it must.
fn process(registry: &Registry) -> Vec<MeasuredFamily> {
    let version = vec![label("portmoot.version", env!("CARGO_PKG_VERSION"))];
    let sessions = registry.http_sessions.load(Ordering::Relaxed);
    vec![
        MeasuredFamily::new("portmoot.build", "The running version")
            .with(version, MeasuredValue::Info),
        single(
            "portmoot.uptime_seconds",
            "Seconds since the gateway started",
            MeasuredValue::Gauge(registry.context.now_ms() / 1000),
        ),
        single(
            "portmoot.sessions",
            "Legacy sessions open over HTTP",
            gauge(sessions),
        ),
        single(
            "portmoot.held_bytes",
            "Bytes that wait for readers or are kept for them, and bodies while they are read",
            gauge(registry.held.taken()),
        ),
        single(
            "portmoot.memory_bytes",
            "Resident memory of the gateway itself, without its servers",
            MeasuredValue::Gauge(resident_bytes().unwrap_or_default()),
        ),
        single(
            "portmoot.newcomer_bytes",
            "Bytes that wait of senders that are not known yet",
            gauge(registry.newcomers.taken()),
        ),
        single(
            "portmoot.audit_available",
            "0 while requests that must be recorded are refused",
            gauge(usize::from(registry.audit.is_available())),
        ),
        single(
            "portmoot.journal_available",
            "0 if the journal cannot be written",
            gauge(usize::from(registry.keeps_journal())),
        ),
    ]
}

/// How long proposals wait.
fn holds(registry: &Registry) -> MeasuredFamily {
    let help = "Time for which proposals waited, by their decision and by what made it";
    let mut holds = MeasuredFamily::new("portmoot.hold", help).in_seconds();
    for one in registry.context.holds.read() {
        let HoldDurations {
            decision,
            by,
            durations,
        } = one;
        let labels = vec![
            label("portmoot.decision", decision),
            label("portmoot.by", by),
        ];
        holds.add(labels, MeasuredValue::Durations(durations));
    }
    holds
}

/// The gateway's own share of the durations of calls; without values while it is not measured.
fn overhead(registry: &Registry) -> MeasuredFamily {
    let help = "The gateway's own share of the duration of a call at a server";
    let mut overhead = MeasuredFamily::new("portmoot.overhead", help).in_seconds();
    if let Some(durations) = registry.context.overhead.read() {
        overhead.add(MetricLabels::new(), MeasuredValue::Durations(durations));
    }
    overhead
}

/// Issuers of access tokens, and what is known of their tokens; nothing if none is configured.
fn issuers(registry: &Registry, viewer: MetricsViewer<'_>) -> Vec<MeasuredFamily> {
    let issuers = registry.bearers.issuers();
    if issuers.is_empty() {
        return Vec::new();
    }
    let mut counts =
        MeasuredFamily::new("portmoot.issuers", "Issuers of access tokens in this state");
    let mut states = MeasuredFamily::new("portmoot.issuer_state", "1 for the state of the issuer");
    let mut asked = MeasuredFamily::new("portmoot.issuer_requests", "Requests to the issuer");
    let mut failed = MeasuredFamily::new(
        "portmoot.issuer_requests_failed",
        "Requests to the issuer without an answer of use",
    );
    for (name, issuer) in issuers {
        let state = label("portmoot.state", issuer.condition().as_str());
        let of_issuer = label("portmoot.issuer", name);
        counts.add(vec![state.clone()], MeasuredValue::Gauge(1));
        states.add(vec![of_issuer.clone(), state], MeasuredValue::Gauge(1));
        let all = issuer.asked();
        for (purpose, count) in [("keys", all.keys), ("tokens", all.tokens)] {
            let labels = vec![of_issuer.clone(), label("portmoot.for", purpose)];
            asked.add(labels.clone(), MeasuredValue::Counter(count.all));
            failed.add(labels, MeasuredValue::Counter(count.failed));
        }
    }
    let known = single(
        "portmoot.access_tokens",
        "Access tokens that were checked and are remembered",
        gauge(registry.bearers.tokens_len()),
    );
    let refused = single(
        "portmoot.access_tokens_refused",
        "Access tokens that were refused",
        MeasuredValue::Counter(registry.bearers.refused()),
    );
    let mut families = vec![counts, known, refused];
    if viewer.sees_servers() {
        families.extend([states, asked, failed]);
    }
    families
}

fn audit(registry: &Registry) -> Vec<MeasuredFamily> {
    let Some(load) = registry.audit.load() else {
        return Vec::new();
    };
    vec![
        single(
            "portmoot.audit_waiting",
            "Entries of the audit log that wait for the disk",
            gauge(load.waiting),
        ),
        single(
            "portmoot.audit_refused",
            "Acts refused because they could not be recorded",
            MeasuredValue::Counter(load.refused),
        ),
        single(
            "portmoot.audit_lost",
            "Entries of the audit log that are lost",
            MeasuredValue::Counter(load.lost),
        ),
    ]
}

/// The export of the audit log, by where it goes.
fn audit_exports(registry: &Registry) -> Vec<MeasuredFamily> {
    let durable = registry.audit.durable_seq().unwrap_or_default();
    let mut sent = MeasuredFamily::new(
        "portmoot.audit_exported",
        "Entries of the audit log that have arrived where they are exported to",
    );
    let mut missing = MeasuredFamily::new(
        "portmoot.audit_export_missing",
        "Entries of the audit log that will not arrive where they are exported to",
    );
    let mut waiting = MeasuredFamily::new(
        "portmoot.audit_export_waiting",
        "Entries of the audit log that have not arrived yet where they are exported to",
    );
    for one in registry.audit_exports.read() {
        let labels = || vec![label("portmoot.to", one.target.as_str())];
        sent.add(labels(), MeasuredValue::Counter(one.sent));
        missing.add(labels(), MeasuredValue::Counter(one.missing));
        let behind = durable.saturating_sub(one.seq);
        waiting.add(labels(), MeasuredValue::Gauge(behind));
    }
    vec![sent, missing, waiting]
}

/// Notifications by route and outcome. The names of routes are for operators.
fn notifications(registry: &Registry, viewer: MetricsViewer<'_>) -> Option<MeasuredFamily> {
    let help = "Notifications about proposals that wait, by what became of them";
    let mut sent = MeasuredFamily::new("portmoot.notifications", help);
    for RouteCounts { route, outcomes } in registry.context.notifications.counts() {
        for (outcome, count) in outcomes {
            let labels = vec![
                label("portmoot.route", &*route),
                label("portmoot.outcome", outcome),
            ];
            sent.add(labels, MeasuredValue::Counter(count));
        }
    }
    viewer.sees_servers().then_some(sent)
}

/// Messages to a collector by what became of them.
fn exports(registry: &Registry) -> MeasuredFamily {
    let help = "Messages to the collector of telemetry, by what became of them";
    let mut exports = MeasuredFamily::new("portmoot.telemetry_exports", help);
    for one in registry.exports.read() {
        let ExportCount {
            signal,
            outcome,
            number,
        } = one;
        let labels = vec![
            label("portmoot.signal", signal.as_str()),
            label("portmoot.outcome", outcome.as_str()),
        ];
        exports.add(labels, MeasuredValue::Counter(number));
    }
    exports
}

/// Spans that reached no collector.
fn spans(registry: &Registry) -> MeasuredFamily {
    let help = "Spans that were dropped: there was no room, or the collector did not take them";
    let dropped = registry.context.traces.spans.dropped();
    let dropped = MeasuredValue::Counter(dropped);
    single("portmoot.spans_dropped", help, dropped)
}
