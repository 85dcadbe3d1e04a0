//! Durations of the calls at each server, from the histograms of the metrics.

use std::collections::BTreeMap;

use html::Hostile;
use maud::{Markup, html};

use crate::api_client::encoded;
use crate::state::Visit;

/// The buckets of the histogram in the metrics.
const BUCKETS: &str = "mcp_client_operation_duration_seconds_bucket{";
/// Parts of the calls whose longest duration is shown.
const PARTS: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];
/// The scale of the pictures, in seconds, and their width: each ten times as long takes as much room.
const SCALE_S: (f64, f64) = (0.005, 300.0);
const WIDTH: f64 = 200.0;

/// Durations of the calls at one server.
pub(crate) struct ServerDurations {
    server: String,
    /// Bounds in seconds, the shortest first, with the number of calls that took no longer.
    buckets: Vec<(f64, u64)>,
}

impl ServerDurations {
    /// Those of all servers, by name. Methods and failures of a server are added up.
    pub(crate) fn all(metrics: &str) -> Vec<Self> {
        let mut servers: BTreeMap<&str, Vec<(f64, u64)>> = BTreeMap::new();
        let lines = metrics.lines();
        for (labels, count) in lines.filter_map(|line| line.strip_prefix(BUCKETS)?.rsplit_once(' '))
        {
            let read = (label(labels, "server"), bound(labels), count.parse().ok());
            if let (Some(server), Some(bound), Some(count)) = read {
                enter(servers.entry(server).or_default(), bound, count);
            }
        }
        let all = servers.into_iter().map(|(server, mut buckets)| {
            buckets.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            let server = server.to_owned();
            Self { server, buckets }
        });
        all.collect()
    }

    fn calls(&self) -> u64 {
        self.buckets.last().map_or(0, |(_, count)| *count)
    }

    /// The bound at or below which this part of the calls lies, in seconds; infinity for those beyond
    /// the longest one.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a part of a count needs no more precision"
    )]
    fn quantile(&self, part: f64) -> f64 {
        let wanted = part * self.calls() as f64;
        let found = self
            .buckets
            .iter()
            .find(|(_, count)| *count as f64 >= wanted);
        found.map_or(f64::INFINITY, |(bound, _)| *bound)
    }

    /// A duration in words: a bucket says no more than its bound.
    fn words(&self, seconds: f64) -> String {
        if seconds.is_finite() {
            return format!("≤ {}", span(seconds));
        }
        let mut finite = self.buckets.iter().filter(|(bound, _)| bound.is_finite());
        format!(
            "> {}",
            span(finite.next_back().map_or(0.0, |(bound, _)| *bound))
        )
    }
}

/// Adds a count to that of its bound.
fn enter(buckets: &mut Vec<(f64, u64)>, bound: f64, count: u64) {
    match buckets
        .iter_mut()
        .find(|(known, _)| known.total_cmp(&bound).is_eq())
    {
        Some((_, known)) => *known += count,
        None => buckets.push((bound, count)),
    }
}

/// The value of a label of a line.
fn label<'l>(labels: &'l str, name: &str) -> Option<&'l str> {
    let (_, rest) = labels.split_once(&format!("{name}=\""))?;
    Some(rest.split_once('"')?.0)
}

fn bound(labels: &str) -> Option<f64> {
    match label(labels, "le")? {
        "+Inf" => Some(f64::INFINITY),
        bound => bound.parse().ok(),
    }
}

/// Seconds in words.
fn span(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1_000.0)
    } else if seconds < 60.0 {
        format!("{seconds:.0} s")
    } else {
        format!("{:.0} min", seconds / 60.0)
    }
}

/// The place of a duration on the scale.
fn place(seconds: f64) -> String {
    let (shortest, longest) = SCALE_S;
    let part = (seconds.clamp(shortest, longest) / shortest).ln() / (longest / shortest).ln();
    format!("{:.1}", 4.0 + part * (WIDTH - 8.0))
}

/// The calls at each server since the gateway started.
pub(crate) fn section(visit: &Visit, all: &[ServerDurations]) -> Markup {
    html! {
        @if !all.is_empty() {
            h2 { "How long calls take" }
            div class="wide" tabindex="0" role="region" aria-label="How long calls take" {
                table class="rows" data-testid="latencies" {
                    thead { tr {
                        th { "Server" }
                        @for (name, _) in PARTS { th class="number" { (name) } }
                        th { span class="vh" { "Picture" } }
                        th class="number" { "Calls since the start" }
                    } }
                    tbody { @for one in all { (row(visit, one)) } }
                }
            }
        }
    }
}

fn row(visit: &Visit, one: &ServerDurations) -> Markup {
    let parts = PARTS.map(|(_, part)| one.quantile(part));
    html! {
        tr {
            td { a href={ (visit.base) "/servers/" (encoded(&one.server)) } { (Hostile(&one.server)) } }
            @for part in parts { td class="number" { (one.words(part)) } }
            td class="span" { (picture(parts)) }
            td class="number" { (one.calls()) }
        }
    }
}

/// From the median to the slowest hundredth, on a scale on which each ten times as long takes as much
/// room.
fn picture([half, most, nearly_all]: [f64; 3]) -> Markup {
    let [half, most, nearly_all] = [half, most, nearly_all].map(place);
    html! {
        svg viewBox={ "0 0 " (WIDTH) " 12" } aria-hidden="true" {
            line class="scale" x1="0" y1="6" x2=(WIDTH) y2="6" {}
            line class="range" x1=(half) y1="6" x2=(nearly_all) y2="6" {}
            circle class="half" cx=(half) cy="6" r="4" {}
            circle class="most" cx=(most) cy="6" r="3" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = "portmoot_sessions 3\n\
        mcp_client_operation_duration_seconds_count{server=\"files\",mcp_method_name=\"tools/call\"} 100\n\
        mcp_client_operation_duration_seconds_bucket{le=\"0.01\",server=\"files\",mcp_method_name=\"tools/call\"} 60\n\
        mcp_client_operation_duration_seconds_bucket{le=\"1.0\",server=\"files\",mcp_method_name=\"tools/call\"} 90\n\
        mcp_client_operation_duration_seconds_bucket{le=\"300.0\",server=\"files\",mcp_method_name=\"tools/call\"} 90\n\
        mcp_client_operation_duration_seconds_bucket{le=\"+Inf\",server=\"files\",mcp_method_name=\"tools/call\"} 90\n\
        mcp_client_operation_duration_seconds_bucket{le=\"0.01\",server=\"files\",mcp_method_name=\"tools/call\",error_type=\"timeout\"} 0\n\
        mcp_client_operation_duration_seconds_bucket{le=\"1.0\",server=\"files\",mcp_method_name=\"tools/call\",error_type=\"timeout\"} 7\n\
        mcp_client_operation_duration_seconds_bucket{le=\"300.0\",server=\"files\",mcp_method_name=\"tools/call\",error_type=\"timeout\"} 7\n\
        mcp_client_operation_duration_seconds_bucket{le=\"+Inf\",server=\"files\",mcp_method_name=\"tools/call\",error_type=\"timeout\"} 10\n\
        mcp_client_operation_duration_seconds_bucket{le=\"0.01\",server=\"mail\",mcp_method_name=\"tools/call\"} 1\n\
        mcp_client_operation_duration_seconds_bucket{le=\"+Inf\",server=\"mail\",mcp_method_name=\"tools/call\"} 1\n";

    #[test]
    fn durations_of_a_server_are_those_of_all_its_calls() {
        let all = ServerDurations::all(METRICS);
        let names: Vec<&str> = all.iter().map(|one| one.server.as_str()).collect();
        assert_eq!(names, ["files", "mail"]);
        let seen = PARTS.map(|(_, part)| all[0].words(all[0].quantile(part)));
        assert_eq!(seen, ["≤ 10 ms", "≤ 1 s", "> 5 min"]);
        assert_eq!((all[0].calls(), all[1].calls()), (100, 1));
        assert_eq!(all[1].words(all[1].quantile(0.99)), "≤ 10 ms");
    }

    #[test]
    fn the_scale_has_as_much_room_for_each_ten_times_as_long() {
        assert_eq!(place(0.0), "4.0");
        assert_eq!(place(SCALE_S.0), "4.0");
        assert_eq!(place(f64::INFINITY), "196.0");
        let at = |seconds: f64| place(seconds).parse::<f64>().unwrap();
        let (first, second) = (at(0.1) - at(0.01), at(1.0) - at(0.1));
        assert!((first - second).abs() < 0.2, "{first} {second}");
    }
}
