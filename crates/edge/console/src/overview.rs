//! Figures and pictures of the present, from the metrics and lists of the API.

use html::Hostile;
use maud::{Markup, html};

use crate::api_client::Problem;
use crate::arguments::counted;
use crate::charts::{Line, chart};
use crate::inbox;
use crate::latencies;
use crate::map::{Flows, TopicMap};
use crate::metrics::Metrics;
use crate::page::{Content, Tab};
use crate::people;
use crate::samples::{Sample, ServersUse};
use crate::servers::{self, Server, memory, state};
use crate::state::Visit;
use crate::times;
use crate::tools::BYTES_A_TOKEN;
use crate::waits;

/// A sample of these metrics, and of the servers if they were looked at.
fn read(metrics: Metrics<'_>, at_ms: u64, servers: Option<&[Server]>) -> Sample {
    let requests = |verdict: &str| metrics.sum_of("portmoot_requests_total", "verdict", verdict);
    Sample {
        at_ms,
        uptime_s: metrics.sum("portmoot_uptime_seconds"),
        admitted: requests("admitted"),
        refused: requests("refused"),
        open: metrics.sum("portmoot_topic_operations"),
        proposals: metrics.sum("portmoot_topic_proposals"),
        participants: metrics.sum("portmoot_topic_participants"),
        audit_available: metrics.sum("portmoot_audit_available"),
        failed: latencies::failed(metrics),
        by_people: waits::decided(metrics, "person"),
        by_rules: waits::decided(metrics, "rule"),
        left_out: metrics.sum("portmoot_list_bytes_left_out_total"),
        memory: metrics.sum("portmoot_memory_bytes"),
        servers: servers.filter(|all| !all.is_empty()).map(used),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "bytes and processes of a machine"
)]
fn used(servers: &[Server]) -> ServersUse {
    ServersUse {
        processes: servers.iter().map(|one| one.processes as f64).sum(),
        memory: servers.iter().map(|one| one.memory_bytes as f64).sum(),
    }
}

/// Takes a sample for a person whose console is open, if it is time.
pub(crate) async fn sample(visit: &Visit) -> Result<(), Problem> {
    if is_due(visit) {
        add(visit, Metrics(&visit.api.text("/metrics").await?), None);
    }
    Ok(())
}

fn is_due(visit: &Visit) -> bool {
    let samples = &visit.console.samples;
    samples.is_due(&visit.session.participant, visit.now_ms())
}

/// Adds a sample of these metrics, if it is time.
fn add(visit: &Visit, metrics: Metrics<'_>, servers: Option<&[Server]>) {
    if is_due(visit) {
        let sample = read(metrics, visit.now_ms(), servers);
        visit
            .console
            .samples
            .add(&visit.session.participant, sample);
    }
}

/// `GET /console/overview`.
pub(crate) async fn content(visit: &Visit) -> Result<Content, Problem> {
    let metrics = visit.api.text("/metrics").await?;
    let metrics = Metrics(&metrics);
    // Servers are for those that may know of them.
    let servers = servers::all(visit).await.unwrap_or_default();
    add(visit, metrics, Some(&servers));
    let samples = visit.console.samples.of(&visit.session.participant);
    let waiting = inbox::count(visit).await?;
    let here = people::all(visit, "").await?;
    let topic = people::chosen_topic(&here);
    let flows = Flows::of(visit, topic).await?;
    let body = html! {
        h1 { "Overview" }
        div id="figures" data-live { (figures(visit, &samples, waiting, &servers)) }
        section id="map" data-live { (TopicMap::new(topic, &here, &servers, &flows).section()) }
        div id="pictures" data-live class="pictures" { (pictures(&samples)) }
        section id="waits" data-live { (waits::section(metrics)) }
        section id="latencies" data-live { (latencies::section(visit, metrics)) }
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

/// Values over time, where they are known.
fn levels(samples: &[Sample], of: impl Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
    let last = samples.last().map_or(0, |last| last.at_ms);
    let points = samples.iter().filter_map(|sample| {
        let ago = seconds(last.saturating_sub(sample.at_ms));
        Some((-ago, of(sample)?))
    });
    points.collect()
}

#[expect(clippy::cast_precision_loss, reason = "a small constant")]
fn tokens(bytes: f64) -> f64 {
    bytes / BYTES_A_TOKEN as f64
}

fn mebibytes(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
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
            @if last.failed > 0.0 { (figure(whole(last.failed), "calls failed at servers")) }
            @if last.by_rules > 0.0 { (figure(whole(last.by_rules), "prompts saved by rules")) }
            @if last.left_out > 0.0 { (figure(html! { "about " (whole(tokens(last.left_out))) }, "tokens saved: definitions that lists left to the search")) }
            @if last.memory > 0.0 { (figure(html! { (whole(mebibytes(last.memory))) " MiB" }, "memory of the gateway")) }
            @if let Some(used) = Some(used(servers)).filter(|used| used.processes > 0.0) { (figure(html! { (whole(mebibytes(used.memory))) " MiB" }, &format!("memory of {} of servers", counted(servers.iter().map(|one| one.processes).sum(), "process", "processes")))) }
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
    let failed = rates(samples, |one| one.failed);
    let open = levels(samples, |one| Some(one.open));
    let proposals = levels(samples, |one| Some(one.proposals));
    let a_minute = |of: fn(&Sample) -> f64| -> Vec<(f64, f64)> {
        let rates = rates(samples, of).into_iter();
        rates.map(|(at, rate)| (at, rate * 60.0)).collect()
    };
    let (people, rules) = (a_minute(|one| one.by_people), a_minute(|one| one.by_rules));
    let own = levels(samples, |one| Some(mebibytes(one.memory)));
    let servers = levels(samples, |one| Some(mebibytes(one.servers?.memory)));
    html! {
        (chart("Requests a second", &[Line::main("admitted", &admitted), Line::second("refused", &refused)]))
        (chart("Failed calls a second", &[Line::second("failed at servers", &failed)]))
        (chart("Open requests and proposals", &[Line::main("requests", &open), Line::second("proposals", &proposals)]))
        (chart("Decisions a minute", &[Line::main("rules", &rules), Line::second("participants", &people)]))
        (chart("Memory in MiB", &[Line::main("gateway", &own), Line::second("servers", &servers)]))
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

    const METRICS: &str = "portmoot_uptime_seconds 12\n\
        portmoot_requests_total{topic=\"main\",verdict=\"admitted\"} 10\n\
        portmoot_requests_total{topic=\"other\",verdict=\"admitted\"} 5\n\
        portmoot_requests_total{topic=\"main\",verdict=\"refused\"} 2\n\
        portmoot_hold_seconds_count{decision=\"approved\",by=\"rule\"} 6\n\
        portmoot_list_bytes_left_out_total{topic=\"main\"} 400\n\
        portmoot_topic_operations{topic=\"main\"} 4\n\
        portmoot_audit_available 1\n# EOF\n";

    #[test]
    fn a_sample_has_the_metrics_of_all_topics() {
        let sample = read(Metrics(METRICS), 7, None);
        let expected = Sample {
            at_ms: 7,
            uptime_s: 12.0,
            admitted: 15.0,
            refused: 2.0,
            open: 4.0,
            audit_available: 1.0,
            by_rules: 6.0,
            left_out: 400.0,
            ..Sample::default()
        };
        assert_eq!(sample, expected);
    }

    #[test]
    fn what_was_not_looked_at_has_no_point() {
        let with = |at_ms, memory| Sample {
            at_ms,
            servers: Some(ServersUse {
                memory,
                processes: 1.0,
            }),
            ..Sample::default()
        };
        let samples = [with(0, 3.0), at(2_000, 0.0), with(4_000, 5.0)];
        let memory = levels(&samples, |one| Some(one.servers?.memory));
        assert_eq!(memory, [(-4.0, 3.0), (0.0, 5.0)]);
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
