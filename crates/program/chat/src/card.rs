//! A proposal as its reviewer reads it: what matters first, the arguments in full, the tool's
//! definition last.

use json::visible;
use review::{ProposalDetails, ToolEffects, marks};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::clock::{Zone, relative};
use crate::rows::{TerminalRow, wrap};

/// Headings of what the server of the tool says.
const TOOL: &str = "the tool, as its server describes it";
const DEFINITION: &str = "its definition";

/// Kind of a part of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardPart {
    /// The participant that asks, and its request.
    Head,
    /// Facts of the gateway.
    Fact,
    /// A mark for a second look.
    Mark,
    /// A heading.
    Heading,
    /// The proposer's own text: params and arguments, which stand behind a gutter.
    Asked,
    /// Text of the tool's server, behind a gutter too.
    Claimed,
}

/// One line of a card, not yet wrapped. Its hidden characters are visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardLine {
    /// Part of the card to which it belongs.
    pub part: CardPart,
    /// The text.
    pub text: String,
}

/// Surroundings of the proposal that a card shows too.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// The time, in Unix milliseconds.
    pub now_ms: u64,
    /// The zone of times.
    pub zone: Zone,
    /// Whether a participant is in the topic.
    pub is_here: &'a dyn Fn(&str) -> bool,
}

/// The lines of a card, and how many of them a reviewer must have seen before an approval: all but
/// the definition of the tool.
#[must_use]
pub fn lines(name: &str, proposal: &ProposalDetails, around: Around<'_>) -> (Vec<CardLine>, usize) {
    let mut card = CardText::default();
    card.line(CardPart::Head, head(name, proposal));
    let state = if proposal.is_pending() {
        times(proposal, around)
    } else {
        decision(proposal)
    };
    card.line(CardPart::Fact, state);
    if let Some(approvals) = approvals(proposal) {
        card.line(CardPart::Fact, approvals);
    }
    if let Some(plan) = plan(proposal) {
        card.line(CardPart::Fact, plan);
    }
    if let Some(amendments) = amendments(proposal) {
        card.line(CardPart::Fact, amendments);
    }
    if let Some(claims) = claims(proposal) {
        card.line(CardPart::Fact, claims);
    }
    for would in &proposal.would {
        let text = format!("in shadow: {}", would.words);
        card.line(CardPart::Fact, visible::line(&text));
    }
    for note in &proposal.notes {
        let text = format!("note by {}: {}", note.by, note.note);
        card.line(CardPart::Fact, visible::line(&text));
    }
    card.line(CardPart::Mark, ToolEffects::of(proposal).words());
    let marks = marks(proposal, around.is_here);
    if !marks.is_empty() {
        card.line(CardPart::Mark, format!("look again: {}", marks.join("; ")));
    }
    let steps = proposal.single_steps();
    if steps.is_empty() {
        card.params(proposal);
    }
    for (at, step) in steps.iter().enumerate() {
        card.line(CardPart::Heading, step_head(at, proposal, step));
        card.params(step);
    }
    // The reviewer decides about what is asked for, whatever the tool's server claims.
    let must_see = card.lines.len();
    if let Some(tool) = proposal.tool.as_ref().filter(|_| steps.is_empty()) {
        card.tool(tool);
    }
    for (at, step) in steps.iter().enumerate() {
        card.line(CardPart::Heading, step_head(at, proposal, step));
        if let Some(tool) = &step.tool {
            card.tool(tool);
        }
    }
    card.line(
        CardPart::Fact,
        format!(
            "id {}  envelope {}  topic {}",
            visible::line(&proposal.id),
            visible::line(&proposal.envelope),
            visible::line(&proposal.topic)
        ),
    );
    card.line(
        CardPart::Fact,
        format!("digest {}", visible::line(&proposal.digest)),
    );
    (card.lines, must_see)
}

/// A card while it is written.
#[derive(Default)]
struct CardText {
    lines: Vec<CardLine>,
}

impl CardText {
    fn line(&mut self, part: CardPart, text: impl Into<String>) {
        let text = text.into();
        self.lines.push(CardLine { part, text });
    }

    /// A heading, and a text below it.
    fn block(&mut self, part: CardPart, heading: &str, text: &str) {
        self.line(CardPart::Heading, heading);
        for line in text.lines() {
            self.line(part, line);
        }
    }

    /// The params, those that ran in their place, and the answer.
    fn params(&mut self, proposal: &ProposalDetails) {
        match proposal.split_params() {
            (Some(arguments), rest) => {
                self.block(CardPart::Asked, "arguments", &pretty(arguments.get()));
                if let Some(rest) = rest {
                    self.block(CardPart::Asked, "and these params", &pretty(&rest));
                }
            }
            (None, Some(params)) => self.block(CardPart::Asked, "params", &pretty(&params)),
            (None, None) => self.block(CardPart::Asked, "params", "none"),
        }
        if let Some(edited) = &proposal.edited {
            self.block(
                CardPart::Asked,
                "params that ran, edited by the reviewer",
                &pretty(edited.get()),
            );
        }
        if let Some(answer) = &proposal.answer {
            self.block(CardPart::Claimed, "answer", &pretty(answer.get()));
        }
    }

    /// The tool as its server describes it.
    fn tool(&mut self, tool: &RawValue) {
        self.line(CardPart::Heading, TOOL);
        let read: Value = serde_json::from_str(tool.get()).unwrap_or_default();
        if let Some(description) = read.get("description").and_then(Value::as_str) {
            for line in visible::lines(description).lines() {
                self.line(CardPart::Claimed, line);
            }
            self.line(CardPart::Heading, DEFINITION);
        }
        for line in pretty(tool.get()).lines() {
            self.line(CardPart::Claimed, line);
        }
    }
}

/// Who asks whom for what.
fn head(name: &str, proposal: &ProposalDetails) -> String {
    let to = if proposal.to.is_empty() {
        "anyone".to_owned()
    } else {
        proposal.to.join(", ")
    };
    let target = match &proposal.context {
        Some(target) => format!(" {}", visible::line(target)),
        None => String::new(),
    };
    if !proposal.steps.is_empty() {
        let by = visible::line(&proposal.by);
        return format!("{name} by {by}: a plan of {} steps", proposal.steps.len());
    }
    format!(
        "{name} by {} at {}: {}{target}",
        visible::line(&proposal.by),
        visible::line(&to),
        visible::line(&proposal.method)
    )
}

/// The line above a step of a plan.
fn step_head(at: usize, plan: &ProposalDetails, step: &ProposalDetails) -> String {
    let number = at + 1;
    let of = plan.steps.len();
    let to = visible::line(&step.to.join(", "));
    let what = visible::line(step.what());
    let state = plan.steps.get(at).and_then(|step| step.state.as_deref());
    let state = state.filter(|_| !plan.is_pending());
    let has_failed = plan.steps.get(at).is_some_and(|step| step.failed);
    let state = if has_failed { Some("failed") } else { state };
    let state = state.map_or_else(String::new, |state| format!(", {}", visible::line(state)));
    format!("step {number} of {of}: {what} at {to}{state}")
}

/// The lines above the steps of a plan, with their states once it is decided; none of another
/// proposal.
#[must_use]
pub fn step_heads(plan: &ProposalDetails) -> Vec<String> {
    let steps = plan.single_steps();
    let heads = steps.iter().enumerate();
    heads.map(|(at, step)| step_head(at, plan, step)).collect()
}

/// The plan of a proposal, in words; `None` if it is no step of one.
#[must_use]
pub fn plan(proposal: &ProposalDetails) -> Option<String> {
    let plan = proposal.plan.as_ref()?;
    let (step, of, id) = (plan.step, plan.of, visible::line(&plan.id));
    if step > 1 {
        return Some(format!(
            "step {step} of {of} of the plan {id}, which is decided about as a whole"
        ));
    }
    Some(format!(
        "a plan of {of} steps, decided about as one: they run in this order, and stop at the first that fails"
    ))
}

/// When a pending proposal was made, and when it expires.
fn times(proposal: &ProposalDetails, around: Around<'_>) -> String {
    let Around { now_ms, zone, .. } = around;
    let at_ms = proposal.at_ms();
    let expires_ms = proposal.expires_ms();
    let held = if proposal.held {
        "; held: its caller may still wait"
    } else {
        ""
    };
    format!(
        "made {} ({}), expires {} ({}){held}",
        relative(at_ms, now_ms),
        zone.near(at_ms, now_ms),
        relative(expires_ms, now_ms),
        zone.near(expires_ms, now_ms)
    )
}

/// The approvals of a proposal that needs several, so far.
#[must_use]
pub fn approvals(proposal: &ProposalDetails) -> Option<String> {
    if proposal.approvals < 2 {
        return None;
    }
    let by = proposal.approved_by.iter();
    let by: Vec<String> = by.map(|name| visible::line(name)).collect();
    let by = if by.is_empty() {
        String::new()
    } else {
        format!("approved by {}, ", by.join(", "))
    };
    let was_approved = matches!(&*proposal.state, "running" | "completed" | "failed");
    let last = usize::from(was_approved);
    let count = proposal.approved_by.len() + last;
    let edited = if proposal.amended {
        "; a reviewer has changed the arguments"
    } else {
        ""
    };
    Some(format!(
        "{by}{count} of {} approvals{edited}",
        proposal.approvals
    ))
}

/// The number of times that its proposer replaced the arguments of a proposal, in words; `None` if
/// it never did.
#[must_use]
pub fn amendments(proposal: &ProposalDetails) -> Option<String> {
    match proposal.amendments {
        0 => None,
        1 => Some("amended once by its proposer".to_owned()),
        times => Some(format!("amended {times} times by its proposer")),
    }
}

/// The participants that look at a proposal, by name; `None` if there are none.
#[must_use]
pub fn claimants(proposal: &ProposalDetails) -> Option<String> {
    let by = proposal.claims.iter().map(|one| visible::line(&one.by));
    let by: Vec<String> = by.collect();
    (!by.is_empty()).then(|| by.join(", "))
}

/// Who looks at a proposal, and since when.
#[must_use]
pub fn claims(proposal: &ProposalDetails) -> Option<String> {
    let each = proposal.claims.iter().map(|one| {
        let since = one.since.get(11..19).unwrap_or(&one.since);
        visible::line(&format!("{} since {since} UTC", one.by))
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("looking at it: {}", each.join(", ")))
}

/// How a proposal has ended, by whom, and why.
fn decision(proposal: &ProposalDetails) -> String {
    let mut text = visible::line(&proposal.state);
    if let Some(by) = &proposal.decided_by {
        text += &format!(" by {}", visible::line(by));
    }
    if let (Some(rule), Some(author)) = (&proposal.rule, &proposal.rule_author) {
        let author = visible::line(author);
        text += &format!(" (rule {} of {author})", visible::line(rule));
    }
    if let Some(reason) = &proposal.reason {
        text += &format!(": {}", visible::line(reason));
    }
    text
}

/// JSON over several lines. The gutter of the card indents it already.
fn pretty(raw: &str) -> String {
    let lines: Vec<String> = visible::pretty(raw)
        .lines()
        .map(|line| unindented(line).to_owned())
        .collect();
    lines.join("\n")
}

/// The lines of a card before a question, which stands below them: who asks whom for what comes last,
/// beside it, then upwards what matters to the answer, and what the tool's server says first, where it
/// may scroll away. `must_see` is the number that [`lines`] returns.
#[must_use]
pub fn before_question(mut lines: Vec<CardLine>, must_see: usize) -> Vec<CardLine> {
    let mut ordered = lines.split_off(must_see.min(lines.len()));
    let is_heading = |line: &CardLine| line.part == CardPart::Heading;
    let first = lines.iter().position(is_heading).unwrap_or(lines.len());
    ordered.append(&mut lines.split_off(first));
    let head = (!lines.is_empty()).then(|| lines.remove(0));
    ordered.append(&mut lines);
    ordered.extend(head);
    ordered
}

/// Lines of a description that [`brief`] keeps.
const DESCRIPTION_LINES: usize = 4;

/// The lines of a card before a question: in place of the definition of the tool, and of what its
/// description has beyond its first lines, `more` says where these are.
#[must_use]
pub fn brief(lines: Vec<CardLine>, more: &str) -> Vec<CardLine> {
    let mut kept = Vec::new();
    let mut is_cut = false;
    let mut described = 0;
    for line in lines {
        match line.part {
            CardPart::Heading if line.text == DEFINITION => {
                is_cut = true;
                continue;
            }
            CardPart::Heading if line.text == TOOL => described = DESCRIPTION_LINES,
            CardPart::Claimed if described > 0 && !is_cut => described -= 1,
            // Of an answer all is kept: it is before the heading of the tool.
            CardPart::Claimed
                if kept
                    .iter()
                    .any(|line: &CardLine| line.part == CardPart::Heading && line.text == TOOL) =>
            {
                is_cut = true;
                continue;
            }
            _ if is_cut => {
                kept.push(CardLine {
                    part: CardPart::Fact,
                    text: more.to_owned(),
                });
                is_cut = false;
            }
            _ => {}
        }
        kept.push(line);
    }
    kept
}

impl CardPart {
    /// The beginning of each row of this part: of its first one, and of those into which a long
    /// line is wrapped.
    #[must_use]
    pub fn gutters(self) -> [&'static str; 2] {
        match self {
            Self::Head => ["", "  "],
            Self::Fact | Self::Mark | Self::Heading => ["  ", "    "],
            Self::Asked => ["  | ", "  |> "],
            Self::Claimed => ["  : ", "  :> "],
        }
    }
}

/// The rows of lines on so many columns, each behind the gutter of its part. Without columns no
/// line is wrapped.
#[must_use]
pub fn rows(lines: &[CardLine], columns: Option<usize>) -> Vec<(CardPart, TerminalRow)> {
    let mut rows = Vec::new();
    for line in lines {
        let [first, further] = line.part.gutters();
        // The last column stays empty.
        let room = columns.map_or(usize::MAX, |columns| {
            columns.saturating_sub(further.len() + 1).max(1)
        });
        for (at, text) in wrap(&line.text, room).into_iter().enumerate() {
            let gutter = if at == 0 { first } else { further };
            rows.push((
                line.part,
                TerminalRow {
                    gutter: gutter.to_owned(),
                    text,
                },
            ));
        }
    }
    rows
}

/// Lines as one text.
#[must_use]
pub fn text(lines: &[CardLine], columns: Option<usize>) -> String {
    let rows = rows(lines, columns).into_iter();
    rows.map(|(_, row)| format!("{}{}", row.gutter, row.text))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Without the indentation that pretty-printed JSON begins with.
fn unindented(line: &str) -> &str {
    line.strip_prefix("  ").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests_support::proposal;

    #[test]
    fn what_matters_comes_first_and_the_definition_last() {
        let tool = json!({ "name": "echo", "description": "Says it\u{202e}\nagain", "annotations": { "readOnlyHint": true } });
        let proposal = proposal("ab", &json!({ "tool": tool }));
        let around = Around {
            now_ms: 1_785_241_862_000,
            zone: Zone::utc(),
            is_here: &|id| id == "worker",
        };
        let (lines, must_see) = lines("#3", &proposal, around);
        insta::assert_snapshot!("card", text(&lines, None));
        let of = |part| lines.iter().position(|line| line.part == part).unwrap();
        assert!(of(CardPart::Asked) < must_see && of(CardPart::Claimed) >= must_see);
    }

    #[test]
    fn before_a_question_who_asks_for_what_comes_last() {
        let tool = json!({ "name": "echo", "description": "1", "inputSchema": { "x": 1 } });
        let proposal = proposal("ab", &json!({ "tool": tool }));
        let around = Around {
            now_ms: 1_785_241_862_000,
            zone: Zone::utc(),
            is_here: &|_| true,
        };
        let (lines, must_see) = lines("#3", &proposal, around);
        let ordered = before_question(lines.clone(), must_see);
        assert_eq!(ordered.last(), lines.first());
        let parts = ordered.iter().map(|line| line.part);
        let mut parts: Vec<CardPart> = parts.collect();
        parts.dedup();
        use CardPart::{Asked, Claimed, Fact, Head, Heading, Mark};
        let expect = [
            Heading, Claimed, Heading, Claimed, Fact, Heading, Asked, Fact, Mark, Head,
        ];
        assert_eq!(parts, expect);
        // Nothing is lost, whatever is cut off before.
        assert_eq!(ordered.len(), lines.len());
        assert_eq!(before_question(Vec::new(), must_see), []);
    }

    #[test]
    fn before_a_question_the_definition_is_left_out() {
        let tool =
            json!({ "name": "echo", "description": "1\n2\n3\n4\n5", "inputSchema": { "x": 1 } });
        let proposal = proposal("ab", &json!({ "tool": tool }));
        let around = Around {
            now_ms: 1_785_241_862_000,
            zone: Zone::utc(),
            is_here: &|_| true,
        };
        let (lines, must_see) = lines("#3", &proposal, around);
        let short = brief(lines.clone(), "more: here");
        assert_eq!(
            short[..must_see],
            lines[..must_see],
            "all that must be seen"
        );
        let short = text(&short, None);
        assert!(
            short.contains("  : 4\n  more: here\n") && !short.contains("inputSchema"),
            "{short}"
        );
        assert!(short.contains("digest "), "{short}");
    }

    #[test]
    fn a_plan_is_shown_with_all_its_steps_before_it_is_approved() {
        let step = |name: &str, hint: bool| {
            json!({
                "id": name, "state": "pending", "to": ["worker"], "method": "tools/call", "context": name,
                "params": { "name": name, "arguments": { "of": name } },
                "tool": { "name": name, "description": format!("Says {name}"), "annotations": { "readOnlyHint": hint } },
            })
        };
        let more = json!({
            "plan": { "id": "ab", "step": 1, "of": 2 }, "steps": [step("one", true), step("two", false)],
            "context": null, "params": null, "tool": null,
        });
        let plan = proposal("ab", &more);
        let around = Around {
            now_ms: 1_785_241_862_000,
            zone: Zone::utc(),
            is_here: &|_| true,
        };
        let (all, must_see) = lines("#3", &plan, around);
        insta::assert_snapshot!("plan", text(&all, None));
        let before = text(&all[..must_see], None);
        for seen in [
            "step 1 of 2: one at worker",
            "\"of\": \"one\"",
            "\"of\": \"two\"",
        ] {
            assert!(before.contains(seen), "{seen}: {before}");
        }
        assert!(
            ToolEffects::of(&plan).needs_second_key(),
            "as its strictest step"
        );
        let later = json!({ "plan": { "id": "ab", "step": 2, "of": 2 } });
        assert!(
            !proposal("two", &later).is_pending(),
            "it is not decided about"
        );
    }

    fn shown(proposal: &ProposalDetails, around: Around<'_>) -> String {
        text(&lines("#1", proposal, around).0, None)
    }

    #[test]
    fn all_params_are_shown_when_there_is_more_than_arguments() {
        let around = Around {
            now_ms: 1_785_241_800_000,
            zone: Zone::utc(),
            is_here: &|_| true,
        };
        let more = json!({ "name": "echo", "arguments": { "b": 2 }, "_meta": { "a": 1 } });
        let more = shown(&proposal("1", &json!({ "params": more })), around);
        let expect = "  arguments\n  | {\n  |   \"b\": 2\n  | }\n  and these params\n  | {\n  |   \"_meta\": {\n";
        assert!(more.contains(expect), "{more}");
        for params in [
            json!({ "name": "other", "arguments": {} }),
            json!({ "name": "echo" }),
        ] {
            let shown = shown(&proposal("1", &json!({ "params": params })), around);
            assert!(shown.contains("  params\n  | {\n"), "{shown}");
        }
        let shown = shown(&proposal("1", &json!({ "params": null })), around);
        assert!(shown.contains("  params\n  | none\n"), "{shown}");
    }

    #[test]
    fn no_text_of_others_stands_without_a_gutter() {
        let hostile = "x\nid forged\n#9 by boss at you: safe\u{2028}digest 00";
        let more = json!({
            "by": hostile, "to": [hostile], "context": hostile, "envelope": hostile,
            "params": { "name": hostile, "arguments": { hostile: hostile } },
            "tool": { "name": hostile, "description": hostile },
        });
        let around = Around {
            now_ms: 1_785_241_800_000,
            zone: Zone::utc(),
            is_here: &|_| true,
        };
        let (lines, _) = lines("#1", &proposal("1", &more), around);
        for columns in [None, Some(20), Some(40), Some(79)] {
            for (part, row) in rows(&lines, columns) {
                assert!(part.gutters().contains(&row.gutter.as_str()), "{row:?}");
                let of_others = matches!(part, CardPart::Asked | CardPart::Claimed);
                assert_eq!(of_others, row.gutter.contains(['|', ':']), "{row:?}");
                let forged = ["id forged", "#9", "digest 00"]
                    .iter()
                    .any(|forged| row.text.starts_with(forged));
                assert!(!forged || of_others, "{row:?}");
            }
        }
    }
}
