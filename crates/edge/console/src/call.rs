//! One call as a card shows it: marks for a second look, its arguments in full, and the tool in the
//! words of its server. A plan has several.

use html::Hostile;
use maud::{Markup, html};
use review::{ProposalDetails, RestOfParams, ToolEffects, marks};
use serde::Deserialize;

use crate::arguments::{Missing, Room, Rows, marked_table, table};
use crate::nearest::{ApprovedCalls, Nearest};
use crate::state::Visit;

/// A call that is proposed: alone, or as a step of a plan.
pub(crate) struct ProposedCall {
    details: ProposalDetails,
    /// The tool, by its name.
    what: Markup,
    arguments: Rows,
    beside: Beside,
    /// The approved call that it is most like.
    nearest: Option<Nearest>,
    /// The tool's description and definition.
    tool: Option<(Markup, Rows)>,
}

/// The calls of a proposal: one, or those of the steps of a plan, as far as there is room.
pub(crate) fn calls(
    proposal: &ProposalDetails,
    room: &mut Room,
    approved: &ApprovedCalls,
) -> Vec<ProposedCall> {
    let steps = proposal.single_steps();
    let calls = if steps.is_empty() {
        vec![proposal.clone()]
    } else {
        steps
    };
    let asked = calls
        .into_iter()
        .map(|one| ProposedCall::new(one, room, approved));
    let mut calls: Vec<ProposedCall> = asked.collect();
    // What is asked for goes first: the words about it take the room that is left.
    for call in &mut calls {
        call.tool = tool(&call.details, room);
    }
    calls
}

/// The tool as its server describes it.
fn tool(details: &ProposalDetails, room: &mut Room) -> Option<(Markup, Rows)> {
    let raw = details.tool.as_ref()?;
    let read: Option<Tool> = serde_json::from_str(raw.get()).ok();
    let description = read.and_then(|tool| tool.description);
    let words = description.map(|words| html! { p { (room.words(&words)) } });
    Some((words.unwrap_or_default(), table(raw.get(), room)))
}

/// The name that an approval repeats: of the tool that may destroy something, as its server says; of
/// a plan, of the first such tool.
pub(crate) fn name_to_type(proposal: &ProposalDetails) -> Option<String> {
    let is_destructive = |one: &ProposalDetails| ToolEffects::of(one) == ToolEffects::Destructive;
    let steps = proposal.single_steps();
    let found = if steps.is_empty() {
        Some(proposal).filter(|one| is_destructive(one))
    } else {
        steps.iter().find(|one| is_destructive(one))
    };
    found.map(|one| one.what().to_owned())
}

/// The rows of a JSON text; none without one.
fn rows(raw: Option<&str>, room: &mut Room) -> Rows {
    raw.map_or_else(Rows::none, |raw| table(raw, room))
}

/// Members of the params of a call beside its arguments.
pub(crate) struct Beside {
    /// Rows of the values that a decision is about.
    decided: Rows,
    /// Rows of the values of the transport, which no decision is about.
    of_travel: Rows,
}

impl Beside {
    /// Those of the rest of [`ProposalDetails::split_params`].
    pub(crate) fn new(rest: Option<&str>, room: &mut Room) -> Self {
        let rest = RestOfParams::of(rest);
        Self {
            decided: rows(rest.decided.as_deref(), room),
            of_travel: rows(rest.of_travel.as_deref(), room),
        }
    }

    /// The part that is not there in full.
    pub(crate) fn missing(&self) -> Option<&Missing> {
        let missing = self.decided.missing.as_ref();
        missing.or(self.of_travel.missing.as_ref())
    }

    /// Rows of all of them; those of the transport are folded.
    pub(crate) fn markup(&self, follows_arguments: bool) -> Markup {
        html! {
            @if self.decided.count > 0 {
                @if follows_arguments { p class="soft" { "and these params besides the arguments:" } }
                (self.decided.markup)
            }
            @if self.of_travel.count > 0 {
                details class="stranger" data-testid="of-travel" {
                    summary { "Sent by the client program, not by the agent" }
                    p { "Members of the protocol's transport. An approval is not about them: the gateway passes them on, or puts its own in their place." }
                    (self.of_travel.markup)
                }
            }
        }
    }
}

impl ProposedCall {
    fn new(details: ProposalDetails, room: &mut Room, approved: &ApprovedCalls) -> Self {
        let (arguments, rest) = details.split_params();
        let nearest = Some(&details).filter(|one| one.is_pending());
        let nearest = nearest.and_then(|one| approved.nearest(one));
        let marked = nearest.as_ref().map(Nearest::marked);
        Self {
            arguments: arguments.map_or_else(Rows::none, |raw| {
                marked_table(raw.get(), room, marked.as_ref())
            }),
            beside: Beside::new(rest.as_deref(), room),
            what: room.words(details.what()),
            tool: None,
            nearest,
            details,
        }
    }

    /// Its part that is not there in full.
    pub(crate) fn missing(&self) -> Option<&Missing> {
        let missing = self.arguments.missing.as_ref();
        missing.or_else(|| self.beside.missing())
    }

    /// The part of its tool's definition that is not there in full.
    pub(crate) fn missing_of_tool(&self) -> Option<&Missing> {
        self.tool.as_ref()?.1.missing.as_ref()
    }

    /// The tool and the server that runs it.
    pub(crate) fn target(&self) -> Markup {
        html! {
            span class="tool" { (self.what) }
            @for (at, to) in self.details.to.iter().enumerate() {
                (if at == 0 { " at " } else { ", " }) span class="who" { (Hostile(to)) }
            }
        }
    }

    /// Claims of the server about the tool, and marks for a second look: words, not colours alone.
    pub(crate) fn marks(&self) -> Markup {
        let effects = ToolEffects::of(&self.details);
        let class = match effects {
            ToolEffects::Destructive => "mark danger",
            ToolEffects::Unsaid => "mark care",
            ToolEffects::Reading | ToolEffects::ReadOnly | ToolEffects::Additive => "mark calm",
        };
        let marks = marks(&self.details, |_| true);
        html! {
            ul class="marks" aria-label="Marks" {
                li class=(class) { (effects.words()) }
                @for mark in &marks { li class="mark care" { (Hostile(mark)) } }
            }
        }
    }

    /// Rows of what is asked for.
    pub(crate) fn asked(&self, visit: &Visit) -> Markup {
        let (arguments, beside) = (&self.arguments, &self.beside);
        html! {
            @if arguments.count == 0 && beside.decided.count == 0 { p class="soft" { "Without arguments." } }
            @if let Some(nearest) = &self.nearest { (nearest.words(visit)) }
            @if arguments.count > 0 { (arguments.markup) }
            (beside.markup(self.details.method == "tools/call"))
        }
    }

    /// The tool as its server describes it: words of a stranger, boxed.
    pub(crate) fn tool(&self) -> Markup {
        let Some((words, definition)) = &self.tool else {
            return Markup::default();
        };
        html! {
            details class="stranger" {
                summary { "The tool, in the words of its server" }
                (words)
                (definition.markup)
            }
        }
    }
}

#[derive(Deserialize)]
struct Tool {
    description: Option<String>,
}
