//! Coverage: which tools of a topic participants may call with no rule and no approval before, and
//! which rules and approvals cover.

use html::Hostile;
use maud::{Markup, html};
use model::NamePattern;

use crate::access::link;
use crate::api_client::Problem;
use crate::arguments::text;
use crate::page::{Content, Tab, command};
use crate::people::{self, MAIN_TOPIC};
use crate::rights::{Right, Rights, can};
use crate::rules::{self, Rule};
use crate::state::{At, Visit};

/// The most participants whose rights the page looks at.
pub const COVERAGE_PARTICIPANTS_MAX: usize = 64;
/// The most tools of the page; those that nothing covers go first.
pub const COVERAGE_ROWS_MAX: usize = 200;
/// The right to know of all participants.
const GRANTS: &str = "portmoot/grants";
/// Participants that one cell names.
const NAMED_MAX: usize = 6;

/// Participants of a topic, as far as the person may know what they may do.
struct Known {
    rights: Vec<(String, Rights)>,
    /// Whether the person may know of all of them.
    is_all: bool,
    /// The number of participants whose rights the API does not say.
    hidden: usize,
    /// The number of participants whose rights were not asked for.
    left_out: usize,
}

/// A participant, and the rules that look at its calls of a tool.
#[derive(Debug, PartialEq, Eq)]
struct Caller {
    id: String,
    rules: Vec<String>,
}

/// A tool, and how calls of it come to run.
#[derive(Debug, PartialEq, Eq)]
struct CoveredTool {
    server: String,
    name: String,
    own: String,
    /// Whether no rule may approve its calls.
    is_never: bool,
    /// May call it at once, with no rule before.
    open: Vec<Caller>,
    /// May call it, after rules that reject or ask have looked at the call.
    ruled: Vec<Caller>,
    /// May propose it, and rules approve.
    approved: Vec<Caller>,
    /// May propose it, and people alone decide.
    decided: Vec<Caller>,
}

/// `GET /console/rules/coverage`.
pub(crate) async fn content(visit: &Visit, topic: &str) -> Result<Content, Problem> {
    let topic = if topic.is_empty() { MAIN_TOPIC } else { topic };
    let rules = rules::all(visit, topic).await?;
    let known = known(visit, topic).await?;
    let mut tools = covered(&known.rights, &rules);
    let (open, count) = (
        tools.iter().filter(|tool| !tool.open.is_empty()).count(),
        tools.len(),
    );
    tools.truncate(COVERAGE_ROWS_MAX);
    let back = At::Rules {
        topic: topic.to_owned(),
    };
    let body = html! {
        h1 { "Coverage of topic " (Hostile(topic)) }
        p data-testid="summary" { (open) " of " (count) " tools may be called at once by one of the " (known.rights.len()) " participants that the page looks at, with no rule and no approval before." }
        (beyond(&known))
        @for (at, server) in servers(&tools).into_iter().enumerate() {
            h2 id={ "s-" (at) } { (Hostile(server)) }
            div class="wide" tabindex="0" role="region" aria-labelledby={ "s-" (at) } { (table(visit, server, &tools)) }
        }
        @if count > tools.len() { p class="soft" { (count - tools.len()) " more tools are not listed here." } }
        p class="soft" { "Of one participant, at a terminal: " code { "portmoot participants can NAME" } }
        p { a href={ (visit.base) (back.address()) } { "The rules" } }
    };
    Ok(Content {
        tab: Tab::Rules,
        title: "Coverage".to_owned(),
        body,
        command: command("portmoot rules ls --topic", topic),
    })
}

/// Asks what the participants of a topic may do; the person first.
async fn known(visit: &Visit, topic: &str) -> Result<Known, Problem> {
    let mut ids = vec![visit.session.participant.clone()];
    for one in people::all(visit, topic).await? {
        if one.role != "server" && !ids.contains(&one.id) {
            ids.push(one.id);
        }
    }
    let left_out = ids.len().saturating_sub(COVERAGE_PARTICIPANTS_MAX);
    ids.truncate(COVERAGE_PARTICIPANTS_MAX);
    let mut known = Known {
        rights: Vec::new(),
        is_all: false,
        hidden: 0,
        left_out,
    };
    for id in ids {
        match can(visit, &id, topic).await {
            Ok(rights) => {
                let is_own = id == visit.session.participant;
                known.is_all |= is_own && rights.admits(GRANTS);
                known.rights.push((id, rights));
            }
            Err(why) if why.status.is_client_error() && !why.ends_session() => known.hidden += 1,
            Err(why) => return Err(why),
        }
    }
    Ok(known)
}

/// The tools that some participant may call or propose, as the rules in force leave them; those that nothing
/// covers go first.
fn covered(known: &[(String, Rights)], rules: &[Rule]) -> Vec<CoveredTool> {
    let mut tools: Vec<CoveredTool> = Vec::new();
    for (id, rights) in known {
        let calls = rights.entries.iter();
        for right in calls.filter(|right| right.method == "tools/call") {
            let (may, may_propose) = (right.is("may"), right.is("may propose"));
            if !may && !may_propose {
                continue;
            }
            let place = tools
                .iter()
                .position(|tool| tool.server == right.server && tool.name == right.name);
            let place = place.unwrap_or_else(|| {
                tools.push(CoveredTool::new(right));
                tools.len() - 1
            });
            if let Some(tool) = tools.get_mut(place) {
                tool.add(id, may, rules);
            }
        }
    }
    tools.sort_by_key(|tool| tool.open.is_empty());
    tools
}

impl CoveredTool {
    fn new(right: &Right) -> Self {
        Self {
            server: right.server.clone(),
            name: right.name.clone(),
            own: right.own.clone(),
            is_never: right.rules.as_deref() == Some("never"),
            open: Vec::new(),
            ruled: Vec::new(),
            approved: Vec::new(),
            decided: Vec::new(),
        }
    }

    /// Adds a participant that may call it, or propose it.
    fn add(&mut self, id: &str, may_call: bool, all: &[Rule]) {
        let looks = |rule: &&Rule| (rule.decision != "approve") == may_call;
        let looking = all.iter().filter(looks);
        let looking = looking.filter(|rule| self.is_within(rule, id));
        let rules: Vec<String> = looking.map(|rule| rule.rule.clone()).collect();
        let is_ruled = !rules.is_empty() && (may_call || !self.is_never);
        let callers = match (may_call, is_ruled) {
            (true, false) => &mut self.open,
            (true, true) => &mut self.ruled,
            (false, true) => &mut self.approved,
            (false, false) => &mut self.decided,
        };
        let rules = if is_ruled { rules } else { Vec::new() };
        let id = id.to_owned();
        callers.push(Caller { id, rules });
    }

    /// Whether a rule that is in force looks at calls of it by a participant.
    fn is_within(&self, rule: &Rule, id: &str) -> bool {
        let has_proposer =
            |pattern: &String| NamePattern::parse(pattern).is_ok_and(|pattern| pattern.matches(id));
        rule.state == "in force"
            && rule.method == "tools/call"
            && rule
                .target
                .as_ref()
                .is_none_or(|target| *target == self.own)
            && rule.to.as_ref().is_none_or(|to| *to == self.server)
            && rule.proposers.iter().any(has_proposer)
    }
}

/// The part of the topic that the page does not show.
fn beyond(known: &Known) -> Markup {
    html! {
        @if !known.is_all || known.hidden > 0 {
            p class="said wrong" data-testid="hidden" {
                "You may not know of all participants, and what they may do: that needs portmoot/grants. Those are not counted here."
                @if known.hidden > 0 { " Of them " (known.hidden) " are here now." }
            }
        }
        @if known.left_out > 0 {
            p class="said wrong" data-testid="left-out" { "The page looks at " (COVERAGE_PARTICIPANTS_MAX) " participants; " (known.left_out) " more are not counted here." }
        }
    }
}

/// The servers of these tools, each once.
fn servers(tools: &[CoveredTool]) -> Vec<&str> {
    let mut servers: Vec<&str> = Vec::new();
    for tool in tools {
        if !servers.contains(&&*tool.server) {
            servers.push(&tool.server);
        }
    }
    servers.sort_unstable();
    servers
}

fn table(visit: &Visit, server: &str, tools: &[CoveredTool]) -> Markup {
    html! {
        table class="rows" {
            thead { tr { th { "Tool" } th { "Called at once" } th { "Called, after a rule" } th { "Proposed, a rule approves" } th { "Proposed, people decide" } } }
            tbody {
                @for tool in tools.iter().filter(|tool| tool.server == server) {
                    tr data-testid="covered" {
                        td {
                            (text(&tool.name))
                            @if tool.is_never { " " span class="mark calm" { "no rule may approve it" } }
                        }
                        td {
                            @if !tool.open.is_empty() { span class="mark care" { "not covered" } " " }
                            (callers(visit, &tool.open))
                        }
                        td { (callers(visit, &tool.ruled)) }
                        td { (callers(visit, &tool.approved)) }
                        td { (callers(visit, &tool.decided)) }
                    }
                }
            }
        }
    }
}

fn callers(visit: &Visit, callers: &[Caller]) -> Markup {
    let more = callers.len().saturating_sub(NAMED_MAX);
    html! {
        @for one in callers.iter().take(NAMED_MAX) {
            div class="caller" { (link(visit, &one.id)) @if !one.rules.is_empty() { " (" (Hostile(&one.rules.join(", "))) ")" } }
        }
        @if more > 0 { div { "and " (more) " more" } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rights(entries: &[(&str, &str, &str)]) -> Rights {
        let entry = |(name, verdict, rules): &(&str, &str, &str)| {
            let way = json!({ "verdict": verdict, "capability": "mcp/*" });
            let way = if verdict.is_empty() { Value::Null } else { way };
            json!({ "topic": "main", "server": "bank", "method": "tools/call", "name": format!("bank_{name}"), "own": name, "rules": rules, "mcp": way, "ws": null })
        };
        let entries: Vec<Value> = entries.iter().map(entry).collect();
        let all = json!({ "wires": ["mcp"], "topics": [], "entries": entries });
        serde_json::from_value(all).unwrap()
    }

    fn rule(name: &str, more: &Value) -> Rule {
        let mut rule = json!({
            "rule": name, "author": "ann", "decision": "approve", "method": "tools/call", "target": "pay", "to": "bank",
            "proposers": ["scout"], "sentence": "", "state": "in force", "used": 0, "left": null, "expires": null,
            "origin": "file", "why": null, "shadow": null,
        });
        for (key, value) in more.as_object().unwrap() {
            rule[key] = value.clone();
        }
        serde_json::from_value(rule).unwrap()
    }

    /// Who is where, of one tool: at once, after a rule, by a rule, by people.
    fn places(tool: &CoveredTool) -> [Vec<&str>; 4] {
        [&tool.open, &tool.ruled, &tool.approved, &tool.decided]
            .map(|callers| callers.iter().map(|one| &*one.id).collect())
    }

    #[test]
    fn a_tool_is_covered_by_rules_in_force_for_its_callers_alone() {
        let none: &[&str] = &[];
        let known = [
            ("ann".to_owned(), rights(&[("pay", "may", "ask")])),
            ("scout".to_owned(), rights(&[("pay", "may propose", "ask")])),
        ];
        for (rules, expect) in [
            (vec![], [&["ann"][..], none, none, &["scout"]]),
            (
                vec![rule("r1.1", &json!({}))],
                [&["ann"], none, &["scout"], none],
            ),
            (
                vec![rule("r1.1", &json!({ "state": "in shadow" }))],
                [&["ann"], none, none, &["scout"]],
            ),
            (
                vec![rule("r1.1", &json!({ "target": "read" }))],
                [&["ann"], none, none, &["scout"]],
            ),
            (
                vec![rule("r1.1", &json!({ "to": "shop" }))],
                [&["ann"], none, none, &["scout"]],
            ),
            (
                vec![rule(
                    "r2.1",
                    &json!({ "decision": "ask", "target": null, "to": null, "proposers": ["a*"] }),
                )],
                [none, &["ann"], none, &["scout"]],
            ),
            (
                vec![rule(
                    "r2.1",
                    &json!({ "decision": "reject", "proposers": ["*"] }),
                )],
                [none, &["ann"], none, &["scout"]],
            ),
        ] {
            let tools = covered(&known, &rules);
            assert_eq!(tools.len(), 1);
            assert_eq!(
                places(&tools[0]).map(|ids| ids.join(" ")),
                expect.map(|ids| ids.join(" "))
            );
        }
    }

    #[test]
    fn no_rule_approves_what_the_operator_keeps_for_people() {
        let known = [(
            "scout".to_owned(),
            rights(&[("pay", "may propose", "never")]),
        )];
        let tools = covered(&known, &[rule("r1.1", &json!({}))]);
        assert_eq!(places(&tools[0])[3], ["scout"]);
        assert!(tools[0].is_never && tools[0].decided[0].rules.is_empty());
    }

    #[test]
    fn what_nothing_covers_goes_first_and_what_no_one_uses_is_left_out() {
        let known = [(
            "scout".to_owned(),
            rights(&[
                ("a", "may propose", "ask"),
                ("b", "may approve", "ask"),
                ("c", "", "ask"),
                ("d", "may", "ask"),
            ]),
        )];
        let tools = covered(&known, &[]);
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.own).collect();
        assert_eq!(names, ["d", "a"]);
    }
}
