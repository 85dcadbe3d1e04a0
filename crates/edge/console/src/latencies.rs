//! Durations of the calls at each server and of each tool, from the histograms of the metrics.

use std::collections::BTreeMap;

use html::Hostile;
use maud::{Markup, html};

use crate::api_client::encoded;
use crate::metrics::{Durations, Metrics, whole};
use crate::state::Visit;

/// The metric of the calls at servers, and that of the calls of tools.
const CALLS: &str = "mcp_client_operation_duration";
const TOOLS: &str = "portmoot_tool_duration";
/// Parts of the calls whose longest duration is shown.
const PARTS: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];
/// The scale of the pictures, in seconds, and their width: each ten times as long takes as much room.
const SCALE_S: (f64, f64) = (0.005, 300.0);
const WIDTH: f64 = 200.0;
/// The most tools with a row of their own: those that are called most. The others have one together.
pub const TOOL_ROWS_MAX: usize = 20;

/// A row of durations.
pub(crate) struct Timed {
    server: String,
    /// The server's own name of a tool; of a whole server, or of the rest of all, `None`.
    tool: Option<String>,
    durations: Durations,
    failed: f64,
}

impl Timed {
    fn new(server: &str, tool: Option<&str>) -> Self {
        Self {
            server: server.to_owned(),
            tool: tool.map(str::to_owned),
            durations: Durations::default(),
            failed: 0.0,
        }
    }

    fn enter(&mut self, durations: &Durations, has_failed: bool) {
        self.durations.add(durations);
        if has_failed {
            self.failed += durations.count();
        }
    }
}

/// The calls at each server, by its name. Methods and failures are added up.
fn by_server(metrics: Metrics<'_>) -> Vec<Timed> {
    let mut all: BTreeMap<String, Timed> = BTreeMap::new();
    for (key, durations) in metrics.durations(CALLS, &["server", "error_type"]) {
        let [server, error_type] = &key[..] else {
            continue;
        };
        let timed = all.entry(server.clone());
        let timed = timed.or_insert_with(|| Timed::new(server, None));
        timed.enter(&durations, !error_type.is_empty());
    }
    all.into_values().collect()
}

/// The calls of each tool, the most called first; those beyond [`TOOL_ROWS_MAX`] and their number, if
/// there are any.
fn by_tool(metrics: Metrics<'_>) -> (Vec<Timed>, Option<(Timed, usize)>) {
    let mut all: BTreeMap<(String, String), Timed> = BTreeMap::new();
    for (key, durations) in metrics.durations(TOOLS, &["server", "tool", "outcome"]) {
        let [server, tool, outcome] = &key[..] else {
            continue;
        };
        let timed = all.entry((server.clone(), tool.clone()));
        let timed = timed.or_insert_with(|| Timed::new(server, Some(tool)));
        timed.enter(&durations, outcome == "failed");
    }
    let mut all: Vec<Timed> = all.into_values().collect();
    all.sort_by(|one, other| other.durations.count().total_cmp(&one.durations.count()));
    let rest = all.split_off(TOOL_ROWS_MAX.min(all.len()));
    let mut others = Timed::new("", None);
    for one in &rest {
        others.durations.add(&one.durations);
        others.failed += one.failed;
    }
    (all, (!rest.is_empty()).then_some((others, rest.len())))
}

/// The number of calls that have failed at servers since the gateway started.
pub(crate) fn failed(metrics: Metrics<'_>) -> f64 {
    by_server(metrics).iter().map(|one| one.failed).sum()
}

/// The place of a duration on the scale.
fn place(seconds: f64) -> String {
    let (shortest, longest) = SCALE_S;
    let part = (seconds.clamp(shortest, longest) / shortest).ln() / (longest / shortest).ln();
    format!("{:.1}", 4.0 + part * (WIDTH - 8.0))
}

/// The calls at each server, and of each tool, since the gateway started.
pub(crate) fn section(visit: &Visit, metrics: Metrics<'_>) -> Markup {
    let (tools, others) = by_tool(metrics);
    let servers = by_server(metrics);
    html! {
        @if !servers.is_empty() {
            h2 { "How long calls take, by server" }
            (table("By server", "latencies", &html! { th { "Server" } }, &html! {
                @for one in &servers { tr { td { (server(visit, &one.server)) } (durations(one)) } }
            }))
        }
        @if !tools.is_empty() {
            h2 { "How long calls take, by tool" }
            (table("By tool", "tool-latencies", &html! { th { "Tool" } th { "Server" } }, &html! {
                @for one in &tools {
                    tr { td { (tool(one)) } td { (server(visit, &one.server)) } (durations(one)) }
                }
                @if let Some((others, count)) = &others {
                    tr data-testid="other-tools" { td { (count) " more tools" } td {} (durations(others)) }
                }
            }))
        }
    }
}

fn table(label: &str, testid: &str, first: &Markup, rows: &Markup) -> Markup {
    html! {
        div class="wide" tabindex="0" role="region" aria-label=(label) {
            table class="rows" data-testid=(testid) {
                thead { tr {
                    (first)
                    @for (name, _) in PARTS { th class="number" { (name) } }
                    th { span class="vh" { "Picture" } }
                    th class="number" { "Calls" }
                    th class="number" { "Failed" }
                } }
                tbody { (rows) }
            }
        }
    }
}

fn server(visit: &Visit, name: &str) -> Markup {
    html! { a href={ (visit.base) "/servers/" (encoded(name)) } { (Hostile(name)) } }
}

/// A tool by its server's own name; `_OTHER` are those that the gateway counts together.
fn tool(one: &Timed) -> Markup {
    match one.tool.as_deref() {
        Some("_OTHER") => html! { "others" },
        Some(name) => html! { code { (Hostile(name)) } },
        None => Markup::default(),
    }
}

fn durations(one: &Timed) -> Markup {
    let parts = PARTS.map(|(_, part)| one.durations.quantile(part));
    html! {
        @for part in parts { td class="number" { (one.durations.words(part)) } }
        td class="span" { (picture(parts)) }
        td class="number" { (whole(one.durations.count())) }
        td class="number" { @if one.failed > 0.0 { span class="bad" { (whole(one.failed)) } } @else { "0" } }
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

    /// A bucket of each of these counts.
    fn lines(name: &str, labels: &str, count: u32) -> String {
        let line = |le: &str| format!("{name}_seconds_bucket{{le=\"{le}\",{labels}}} {count}\n");
        line("0.01") + &line("+Inf")
    }

    #[test]
    fn failed_calls_of_a_server_are_among_its_calls() {
        let text = lines(CALLS, "server=\"files\"", 7)
            + &lines(CALLS, "server=\"files\",error_type=\"tool_error\"", 2)
            + &lines(CALLS, "server=\"mail\",error_type=\"-32602\"", 1);
        let all = by_server(Metrics(&text));
        let seen = all
            .iter()
            .map(|one| (&*one.server, one.durations.count(), one.failed));
        assert_eq!(
            seen.collect::<Vec<_>>(),
            [("files", 9.0, 2.0), ("mail", 1.0, 1.0)]
        );
        assert_eq!(failed(Metrics(&text)), 3.0);
    }

    #[test]
    fn the_most_called_tools_have_rows_and_the_others_one() {
        let of = |number: u32| {
            let labels = |outcome: &str| {
                format!("server=\"files\",tool=\"t{number}\",outcome=\"{outcome}\"")
            };
            lines(TOOLS, &labels("answered"), number) + &lines(TOOLS, &labels("failed"), 1)
        };
        let count = u32::try_from(TOOL_ROWS_MAX).unwrap() + 3;
        let text: String = (1..=count).map(of).collect();
        let (tools, others) = by_tool(Metrics(&text));
        assert_eq!(tools.len(), TOOL_ROWS_MAX);
        assert_eq!(tools[0].tool.as_deref(), Some(&*format!("t{count}")));
        let (others, number) = others.unwrap();
        // Those that were called once, twice and three times, and failed once each.
        assert_eq!(
            (number, others.durations.count(), others.failed),
            (3, 9.0, 3.0)
        );
        let few = by_tool(Metrics(&of(1)));
        assert!(few.1.is_none() && few.0.len() == 1);
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
