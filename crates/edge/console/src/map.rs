//! A map of a topic: participants, servers, and the calls between them of the last minutes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use html::Hostile;
use json::visible;
use maud::{Markup, html};
use serde::Deserialize;
use wire::time::read_rfc3339;

use crate::api_client::{Problem, encoded};
use crate::arguments::counted;
use crate::people::{GATEWAY, Participant};
use crate::servers::Server;
use crate::state::Visit;

/// Participants that the map draws; the others are counted.
pub const MAP_PARTICIPANTS_MAX: usize = 8;
/// Servers that it draws; the others are counted.
pub const MAP_SERVERS_MAX: usize = 8;
/// The latest calls of which the flows are made.
pub const MAP_CALLS_MAX: usize = 300;
/// Rows of the table of flows; the others are counted.
const FLOWS_MAX: usize = 20;
/// The time of which calls are drawn, in milliseconds.
const RECENT_MS: u64 = 300_000;
/// Characters of a name in the picture; the table has all of them.
const NAME_CHARS: usize = 14;

/// Lengths of the picture, in its own units: about as wide as a narrow screen, so that names are legible
/// there.
const WIDTH: usize = 350;
const BOX_WIDTH: usize = 122;
const ROW: usize = 46;
const BOX_HEIGHT: usize = 36;
const TOPIC_WIDTH: usize = 62;

#[derive(Deserialize)]
struct CallList {
    calls: Vec<RecentCall>,
}

/// A call of the audit log.
#[derive(Deserialize)]
struct RecentCall {
    at: String,
    by: String,
    to: Vec<String>,
}

/// Calls from a participant to a server of late.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Flows {
    /// By participant and server.
    calls: BTreeMap<(String, String), usize>,
    /// Why there are none, if the log may not be read.
    refused: Option<String>,
}

impl Flows {
    /// Asks for the calls in a topic.
    ///
    /// # Errors
    /// If the session has ended. Where the log may not be read, there are no flows.
    pub(crate) async fn of(visit: &Visit, topic: &str) -> Result<Self, Problem> {
        let path = format!(
            "/api/v1/audit/calls?topic={}&limit={MAP_CALLS_MAX}",
            encoded(topic)
        );
        match visit.api.get::<CallList>(&path).await {
            Ok(list) => Ok(Self::among(list.calls, visit.now_ms())),
            Err(refused) if refused.ends_session() => Err(refused),
            Err(refused) => Ok(Self {
                refused: Some(refused.message),
                ..Self::default()
            }),
        }
    }

    fn among(calls: Vec<RecentCall>, now_ms: u64) -> Self {
        let mut flows = Self::default();
        for call in calls {
            let at_ms = read_rfc3339(&call.at).unwrap_or_default();
            if now_ms.saturating_sub(at_ms) > RECENT_MS {
                continue;
            }
            for to in call.to {
                let flow = flows.calls.entry((call.by.clone(), to));
                *flow.or_default() += 1;
            }
        }
        flows
    }

    fn from(&self, id: &str) -> usize {
        let own = self.calls.iter().filter(|((by, _), _)| by == id);
        own.map(|(_, count)| count).sum()
    }

    fn to(&self, id: &str) -> usize {
        let own = self.calls.iter().filter(|((_, to), _)| to == id);
        own.map(|(_, count)| count).sum()
    }
}

/// A participant or server of the map.
struct Node {
    name: String,
    about: String,
    calls: usize,
    is_in_trouble: bool,
}

/// The map of a topic.
pub(crate) struct TopicMap<'t> {
    topic: &'t str,
    callers: Vec<Node>,
    servers: Vec<Node>,
    flows: &'t Flows,
}

impl<'t> TopicMap<'t> {
    pub(crate) fn new(
        topic: &'t str,
        here: &[Participant],
        servers: &[Server],
        flows: &'t Flows,
    ) -> Self {
        let here = || {
            here.iter()
                .filter(|one| one.topic == topic && one.links > 0)
        };
        let mut callers: Vec<Node> = here()
            .filter(|one| one.role != "server")
            .map(|one| caller(one, flows))
            .collect();
        let mut serving: Vec<Node> = servers.iter().map(|one| server(one, flows)).collect();
        let is_known = |known: &[Node], id: &str| known.iter().any(|one| one.name == id);
        for one in here().filter(|one| one.role == "server") {
            if !is_known(&serving, &one.id) {
                let about = if one.id == GATEWAY { "the gateway" } else { "" };
                serving.push(node(&one.id, about.to_owned(), flows.to(&one.id)));
            }
        }
        // Some have called and are gone.
        for (by, to) in flows.calls.keys() {
            if !is_known(&callers, by) {
                callers.push(node(by, "not here now".to_owned(), flows.from(by)));
            }
            if !is_known(&serving, to) {
                serving.push(node(to, String::new(), flows.to(to)));
            }
        }
        for nodes in [&mut callers, &mut serving] {
            nodes.sort_by(|one, other| {
                let key = |one: &Node| (Reverse(one.calls), one.name.clone());
                key(one).cmp(&key(other))
            });
        }
        Self {
            topic,
            callers,
            servers: serving,
            flows,
        }
    }

    /// The map, and what it shows as a table.
    pub(crate) fn section(&self) -> Markup {
        html! {
            h2 { "Who calls what now" }
            figure class="map" data-testid="map" {
                figcaption {
                    "Calls of the last 5 minutes in topic " strong { (Hostile(self.topic)) }
                    @if let Some(why) = &self.flows.refused { ". Who calls what is not shown: " (Hostile(why)) }
                }
                div class="svg" aria-hidden="true" { (self.picture()) }
                (self.table())
            }
        }
    }

    fn picture(&self) -> Markup {
        let rows =
            |nodes: &[Node], max: usize| nodes.len().min(max) + usize::from(nodes.len() > max);
        let (callers, servers) = (
            rows(&self.callers, MAP_PARTICIPANTS_MAX),
            rows(&self.servers, MAP_SERVERS_MAX),
        );
        let height = callers.max(servers).max(1) * ROW + 10;
        let middle = height / 2;
        let right = WIDTH - BOX_WIDTH;
        let (from, to) = (
            (WIDTH - TOPIC_WIDTH) / 2,
            usize::midpoint(WIDTH, TOPIC_WIDTH),
        );
        html! {
            svg viewBox={ "0 0 " (WIDTH) " " (height) } {
                @for (at, one) in self.callers.iter().take(MAP_PARTICIPANTS_MAX).enumerate() {
                    (flow(BOX_WIDTH, middle_of(at, callers, height), from, middle, one.calls))
                }
                @for (at, one) in self.servers.iter().take(MAP_SERVERS_MAX).enumerate() {
                    (flow(to, middle, right, middle_of(at, servers, height), one.calls))
                }
                (column(&self.callers, MAP_PARTICIPANTS_MAX, 0, callers, height))
                (column(&self.servers, MAP_SERVERS_MAX, right, servers, height))
                rect class="topic" x=(from) y=(middle - BOX_HEIGHT / 2) width=(TOPIC_WIDTH) height=(BOX_HEIGHT) rx="18" {}
                text class="name" x=(WIDTH / 2) y=(middle + 4) text-anchor="middle" { (short(self.topic, 8)) }
            }
        }
    }

    fn table(&self) -> Markup {
        let mut flows: Vec<_> = self.flows.calls.iter().collect();
        flows.sort_by_key(|(_, count)| Reverse(**count));
        let more = flows.len().saturating_sub(FLOWS_MAX);
        html! {
            details class="figures-of" {
                summary { "Figures" span class="vh" { " of the map" } }
                table class="rows" {
                    thead { tr { th { "Participant" } th { "Server" } th class="number" { "Calls" } } }
                    tbody {
                        @for ((by, to), count) in flows.into_iter().take(FLOWS_MAX) { tr { td { (Hostile(by)) } td { (Hostile(to)) } td class="number" { (count) } } }
                    }
                }
                @if self.flows.calls.is_empty() { p { "No call in this time." } }
                @if more > 0 { p { (more) " more pairs are not listed." } }
                p { (counted(self.callers.len(), "participant", "participants")) ":" @for one in self.callers.iter().take(FLOWS_MAX) { " " (Hostile(&one.name)) " (" (one.about) ")" } }
                p { (counted(self.servers.len(), "server", "servers")) ":" @for one in self.servers.iter().take(FLOWS_MAX) { " " (Hostile(&one.name)) " (" (one.about) ")" } }
            }
        }
    }
}

fn node(name: &str, about: String, calls: usize) -> Node {
    Node {
        name: name.to_owned(),
        about,
        calls,
        is_in_trouble: false,
    }
}

fn caller(one: &Participant, flows: &Flows) -> Node {
    let calls = flows.from(&one.id);
    let about = if one.is_paused() {
        "paused".to_owned()
    } else {
        counted(calls, "call", "calls")
    };
    Node {
        is_in_trouble: one.is_paused(),
        ..node(&one.id, about, calls)
    }
}

fn server(one: &Server, flows: &Flows) -> Node {
    let calls = flows.to(&one.name);
    let state = one.state.replace('_', " ");
    let is_good = matches!(one.state.as_str(), "ready" | "idle" | "starting");
    let about = if is_good && one.calls > 0 {
        format!("{state}, {} open", one.calls)
    } else {
        state
    };
    Node {
        is_in_trouble: !is_good,
        ..node(&one.name, about, calls)
    }
}

/// The middle of a row of a column with so many rows.
fn middle_of(at: usize, rows: usize, height: usize) -> usize {
    let top = (height - rows * ROW) / 2;
    top + at * ROW + ROW / 2
}

/// A line between two places: the more calls, the wider.
fn flow(x: usize, y: usize, to_x: usize, to_y: usize, calls: usize) -> Markup {
    let half = usize::midpoint(x, to_x);
    let width = calls.checked_ilog2().map_or(1, |log| log + 2).min(9);
    html! {
        path class=(if calls > 0 { "flow" } else { "link" }) fill="none" stroke-width=(width)
            d={ "M" (x) " " (y) " C" (half) " " (y) " " (half) " " (to_y) " " (to_x) " " (to_y) } {}
    }
}

/// The boxes of one side, and the number of those that find no place.
fn column(nodes: &[Node], max: usize, x: usize, rows: usize, height: usize) -> Markup {
    let more = nodes.len().saturating_sub(max);
    html! {
        @for (at, one) in nodes.iter().take(max).enumerate() {
            @let middle = middle_of(at, rows, height);
            rect class=(if one.is_in_trouble { "box trouble" } else { "box" }) x=(x) y=(middle - BOX_HEIGHT / 2) width=(BOX_WIDTH) height=(BOX_HEIGHT) rx="8" {}
            text class="name" x=(x + 9) y=(middle - 2) { (short(&one.name, NAME_CHARS)) }
            text class="about" x=(x + 9) y=(middle + 12) { (one.about) }
        }
        @if more > 0 { text class="about" x=(x + 9) y=(middle_of(max, rows, height) + 4) { "and " (more) " more" } }
    }
}

/// A name as a text of the picture: hidden characters are escapes, and of a long name the beginning is
/// there.
fn short(name: &str, chars: usize) -> String {
    let name = visible::line(name);
    if name.chars().count() <= chars {
        return name;
    }
    let begin: String = name.chars().take(chars - 1).collect();
    begin + "…"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn participant(id: &str, role: &str) -> Participant {
        serde_json::from_value(json!({ "id": id, "topic": "main", "role": role, "links": 1 }))
            .unwrap()
    }

    fn call(by: &str, to: &str, at: &str) -> RecentCall {
        RecentCall {
            at: at.to_owned(),
            by: by.to_owned(),
            to: vec![to.to_owned()],
        }
    }

    #[test]
    fn calls_of_late_flow_between_participants_and_servers() {
        let now = "2026-11-30T12:00:00.000Z";
        let calls = vec![
            call("scout", "files", "2026-11-30T11:59:00.000Z"),
            call("scout", "files", "2026-11-30T11:56:00.000Z"),
            call("gone", "mail", "2026-11-30T11:58:00.000Z"),
            call("scout", "files", "2026-11-30T11:54:00.000Z"),
        ];
        let flows = Flows::among(calls, read_rfc3339(now).unwrap());
        assert_eq!((flows.from("scout"), flows.to("mail")), (2, 1));
        let here = [
            participant("scout", "caller"),
            participant("files", "server"),
        ];
        let map = TopicMap::new("main", &here, &[], &flows);
        let page = map.section().into_string();
        for seen in [
            ">2 calls<",
            ">not here now<",
            ">mail<",
            "class=\"flow\"",
            "<td class=\"number\">2</td>",
        ] {
            assert!(page.contains(seen), "{seen}: {page}");
        }
        assert!(!page.contains("style="), "{page}");
    }

    #[test]
    fn the_map_is_bounded_and_its_names_are_harmless() {
        let many = |role: &str, count: usize| -> Vec<Participant> {
            let one = |at: usize| participant(&format!("{role}{at:02}<b>\u{202e}"), role);
            (0..count).map(one).collect()
        };
        let here = [many("caller", 20), many("server", 11)].concat();
        let flows = Flows::default();
        let page = TopicMap::new("main", &here, &[], &flows)
            .section()
            .into_string();
        assert_eq!(
            page.matches("<rect class=\"box").count(),
            MAP_PARTICIPANTS_MAX + MAP_SERVERS_MAX
        );
        assert!(
            page.contains("and 12 more") && page.contains("and 3 more"),
            "{page}"
        );
        assert!(!page.contains("<b>") && !page.contains('\u{202e}'));
        assert_eq!(short("a-rather-long-name", 14), "a-rather-long…");
    }
}
