//! Figures and pictures of the present, from the metrics and lists of the API.

use html::Hostile;
use maud::{Markup, html};

use crate::api_client::Problem;
use crate::charts::{Line, chart};
use crate::inbox;
use crate::latencies::{self, ServerDurations};
use crate::page::{Content, Tab};
use crate::samples::Sample;
use crate::servers::{self, Server, memory, state};
use crate::state::Visit;
use crate::times;

/// The sum of a metric over all its labels, of those lines that have this label.
fn sum(metrics: &str, name: &str, label: &str) -> f64 {
    let lines = metrics.lines().filter_map(|line| line.strip_prefix(name));
    lines
        .filter(|rest| rest.starts_with([' ', '{']) && rest.contains(label))
        .filter_map(|rest| rest.rsplit_once(' ')?.1.parse::<f64>().ok())
        .sum()
}

fn read(metrics: &str, at_ms: u64) -> Sample {
    let of = |name: &str, label: &str| sum(metrics, &format!("portmoot_{name}"), label);
    Sample {
        at_ms,
        uptime_s: of("uptime_seconds", ""),
        admitted: of("requests_total", "verdict=\"admitted\""),
        refused: of("requests_total", "verdict=\"refused\""),
        open: of("topic_operations", ""),
        proposals: of("topic_proposals", ""),
        participants: of("topic_participants", ""),
        audit_available: of("audit_available", ""),
    }
}

/// Takes a sample for a person whose console is open, if it is time.
pub(crate) async fn sample(visit: &Visit) -> Result<(), Problem> {
    if is_due(visit) {
        add(visit, &visit.api.text("/metrics").await?);
    }
    Ok(())
}

fn is_due(visit: &Visit) -> bool {
    let samples = &visit.console.samples;
    samples.is_due(&visit.session.participant, visit.now_ms())
}

/// Adds a sample of these metrics, if it is time.
fn add(visit: &Visit, metrics: &str) {
    if is_due(visit) {
        let sample = read(metrics, visit.now_ms());
        visit
            .console
            .samples
            .add(&visit.session.participant, sample);
    }
}

/// `GET /console/overview`.
pub(crate) async fn content(visit: &Visit) -> Result<Content, Problem> {
    let metrics = visit.api.text("/metrics").await?;
    add(visit, &metrics);
    let samples = visit.console.samples.of(&visit.session.participant);
    let waiting = inbox::count(visit).await?;
    // Servers are for those that may know of them.
    let servers = servers::all(visit).await.unwrap_or_default();
    let body = html! {
        h1 { "Overview" }
        div id="figures" data-live { (figures(visit, &samples, waiting, &servers)) }
        div id="pictures" data-live class="pictures" { (pictures(&samples)) }
        section id="latencies" data-live { (latencies::section(visit, &ServerDurations::all(&metrics))) }
        section id="now" data-live { (busy(visit, &servers)) }
    };
    Ok(Content {
        tab: Tab::Overview,
        title: "Overview".to_owned(),
        body,
        command: "portmoot status".to_owned(),
    })
}

/// Acts a second between each two samples.
fn rates(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> Vec<(f64, f64)> {
    let Some(last) = samples.last() else {
        return Vec::new();
    };
    let ago = |sample: &Sample| -seconds(last.at_ms.saturating_sub(sample.at_ms));
    samples
        .iter()
        .zip(samples.iter().skip(1))
        .filter_map(|(one, next)| {
            let lasted = seconds(next.at_ms.saturating_sub(one.at_ms));
            let rate = (of(next) - of(one)).max(0.0) / lasted;
            (lasted > 0.0).then(|| (ago(next), rate))
        })
        .collect()
}

/// Values over time.
fn levels(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> Vec<(f64, f64)> {
    let last = samples.last().map_or(0, |last| last.at_ms);
    samples
        .iter()
        .map(|sample| (-seconds(last.saturating_sub(sample.at_ms)), of(sample)))
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of minutes")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

fn figures(visit: &Visit, samples: &[Sample], waiting: usize, servers: &[Server]) -> Markup {
    let last = samples.last().copied().unwrap_or_default();
    let rate = |of: fn(&Sample) -> f64| rates(samples, of).last().map_or(0.0, |(_, rate)| *rate);
    let ready = servers
        .iter()
        .filter(|one| one.state == "ready" || one.state == "idle")
        .count();
    let figure = |value: Markup, words: &str| {
        html! { div class="figure" { strong { (value) } span { (words) } } }
    };
    let written = |value: f64| html! { (format!("{value:.1}")) };
    let whole = |value: f64| html! { (format!("{value:.0}")) };
    html! {
        div class="figures" {
            a class="figure" href=(visit.base) { strong data-testid="waiting" { (waiting) } span { "wait for you" } }
            (figure(written(rate(|one| one.admitted)), "requests a second"))
            (figure(whole(last.admitted), "requests since the start"))
            (figure(whole(last.open), "open requests"))
            (figure(whole(last.proposals), "open proposals"))
            (figure(whole(last.participants), "participants"))
            @if !servers.is_empty() { (figure(html! { (ready) " / " (servers.len()) }, "servers ready or idle")) }
            (figure(html! { (times::span(whole_ms(last.uptime_s))) }, "since the start"))
        }
        @if last.audit_available == 0.0 && !samples.is_empty() {
            p class="said wrong" role="alert" { strong { "The audit log cannot be written: what must be recorded is refused." } " See portmoot doctor." }
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds of a process"
)]
fn whole_ms(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1_000.0) as u64
}

fn pictures(samples: &[Sample]) -> Markup {
    let admitted = rates(samples, |one| one.admitted);
    let refused = rates(samples, |one| one.refused);
    let open = levels(samples, |one| one.open);
    let proposals = levels(samples, |one| one.proposals);
    html! {
        (chart("Requests a second", &[Line::main("admitted", &admitted), Line::second("refused", &refused)]))
        (chart("Open requests and proposals", &[Line::main("requests", &open), Line::second("proposals", &proposals)]))
    }
}

/// Servers, the busiest first.
fn busy(visit: &Visit, servers: &[Server]) -> Markup {
    let mut all: Vec<&Server> = servers.iter().collect();
    all.sort_by(|one, other| other.calls.cmp(&one.calls).then(one.name.cmp(&other.name)));
    html! {
        @if !all.is_empty() {
            h2 { "Servers now" }
            div class="wide" tabindex="0" role="region" aria-label="Servers now" {
                table class="rows" {
                    thead { tr { th { "Server" } th { "State" } th class="number" { "Open calls" } th class="number" { "Processes" } th class="number" { "Memory" } } }
                    tbody {
                        @for one in all {
                            tr {
                                td { a href={ (visit.base) "/servers/" (crate::api_client::encoded(&one.name)) } { (Hostile(&one.name)) } }
                                td { (state(&one.state)) }
                                td class="number" { (one.calls) }
                                td class="number" { (one.processes) }
                                td class="number" { (memory(one.memory_bytes)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = "# TYPE portmoot_requests counter\n\
        portmoot_uptime_seconds 12\n\
        portmoot_sessions 3\n\
        portmoot_server_sessions{server=\"a\"} 9\n\
        portmoot_requests_total{topic=\"main\",verdict=\"admitted\"} 10\n\
        portmoot_requests_total{topic=\"other\",verdict=\"admitted\"} 5\n\
        portmoot_requests_total{topic=\"main\",verdict=\"refused\"} 2\n\
        portmoot_topic_operations{topic=\"main\"} 4\n\
        portmoot_audit_available 1\n# EOF\n";

    #[test]
    fn metrics_are_read_by_their_names() {
        let sample = read(METRICS, 7);
        assert_eq!(
            (
                sample.uptime_s,
                sample.admitted,
                sample.refused,
                sample.open
            ),
            (12.0, 15.0, 2.0, 4.0)
        );
    }

    fn at(at_ms: u64, admitted: f64) -> Sample {
        Sample {
            at_ms,
            admitted,
            uptime_s: seconds(at_ms),
            ..Sample::default()
        }
    }

    #[test]
    fn rates_are_differences_over_time() {
        let samples = [
            at(0, 0.0),
            at(2_000, 10.0),
            at(6_000, 30.0),
            at(6_000, 30.0),
        ];
        assert_eq!(
            rates(&samples, |one| one.admitted),
            [(-4.0, 5.0), (0.0, 5.0)]
        );
        assert_eq!(rates(&[], |one| one.admitted), []);
    }
}
