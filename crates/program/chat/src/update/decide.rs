//! Decisions: approve, edit, allow for a time, reject, withdraw, and the questions before them.

use json::visible;

use crate::api::{Allow, ApiRefusal, LikeRule};
use crate::card::{CardLine, CardPart};
use crate::clock::span;
use crate::command::{TIMES, object};
use crate::entry::{ChatEntry, Tone};
use crate::inbox::InboxItem;
use crate::state::{Action, Approval, ChatState, Focus, Later, Prompt, ReasonedAct, ScreenMode};
use crate::typing::Typing;
use review::ToolEffects;

/// A proposal that the person may decide about now: it is pending, of another participant, and on
/// the screen its card has been read.
fn to_decide(state: &mut ChatState, id: &str) -> Option<InboxItem> {
    let item = state.inbox.get(id)?.clone();
    if state.is_own(&item.proposal) {
        state.tell(
            "It is your own proposal: another participant decides. You can amend it (e, /edit) or withdraw it (w, /withdraw).",
        );
        return None;
    }
    (is_reread(state, &item) && is_settled(state)).then_some(item)
}

/// Whether the person has had time to look at a proposal since it changed.
fn is_reread(state: &mut ChatState, item: &InboxItem) -> bool {
    if item.is_to_reread(state.now_ms) {
        state.tell(format!(
            "#{} has just changed: look at it again, then decide.",
            item.number
        ));
        return false;
    }
    true
}

/// The proposal that a look-up was for, if the person still looks at the request that was looked up.
/// The answer may come late: it asks nothing about another version, and takes no key that is meant
/// for something else.
fn looked_up(state: &mut ChatState, id: &str, digest: &str) -> Option<InboxItem> {
    let number = state.inbox.number_of(id);
    let found = state.inbox.get(id);
    if found.is_none_or(|item| item.proposal.digest != digest) {
        state.tell(format!(
            "Nothing was decided: #{number} is not the request any more that you had read."
        ));
        return None;
    }
    if !is_looked_at(state, id) {
        state.tell(format!(
            "Nothing was decided about #{number}: you do something else now."
        ));
        return None;
    }
    let item = to_decide(state, id)?;
    is_read(state).then_some(item)
}

/// Whether no other question is open and, on the screen, the keys go to the card of a proposal.
fn is_looked_at(state: &ChatState, id: &str) -> bool {
    let open = state.inbox.selected();
    let is_open = open.is_some_and(|item| item.proposal.id == id)
        && state.focus == Focus::Inbox
        && state.suggestions.is_none();
    state.prompt.is_none() && (is_open || state.mode != ScreenMode::Screen)
}

/// Whether the open card is still the one that the person meant.
fn is_settled(state: &mut ChatState) -> bool {
    if state.mode == ScreenMode::Screen && state.now_ms < state.inbox.settled_ms {
        state.tell("Another card has just opened: look at it, then press the key again.");
        return false;
    }
    true
}

/// Whether all that must be seen of the open card was on the screen.
fn is_read(state: &mut ChatState) -> bool {
    if state.mode != ScreenMode::Screen {
        return true;
    }
    let Some(areas) = state.areas() else {
        return false;
    };
    let (_, must_see) = state.card_rows(areas.main.width.into());
    let left = must_see.saturating_sub(state.inbox.seen_rows);
    if left > 0 {
        state.tell(format!(
            "{left} rows of what is asked for were not shown yet: Space reads on."
        ));
    }
    left == 0
}

/// An approval of what is shown. A note, arguments and leave for later calls may be added.
fn approval(item: &InboxItem) -> Box<Approval> {
    let id = item.proposal.id.clone();
    let digest = item.proposal.digest.clone();
    Box::new(Approval {
        id,
        number: item.number,
        digest,
        arguments: None,
        note: None,
        later: None,
    })
}

/// Approves with a note, unless it is empty, or asks first.
pub(super) fn approve(state: &mut ChatState, id: &str, note: &str) -> Vec<Action> {
    let Some(item) = to_decide(state, id) else {
        return Vec::new();
    };
    if !is_read(state) {
        return Vec::new();
    }
    let mut approval = approval(&item);
    let note = note.trim();
    approval.note = (!note.is_empty()).then(|| note.to_owned());
    let effects = ToolEffects::of(&item.proposal);
    if !effects.needs_second_key() {
        return vec![Action::Approve(approval)];
    }
    let question = format!(
        "Approve #{}? It {}.",
        item.number,
        lower_first(effects.words())
    );
    ask(
        state,
        approval,
        vec![CardLine {
            part: CardPart::Head,
            text: question,
        }],
    );
    Vec::new()
}

/// "may be", "is": the words about effects as the end of a sentence.
fn lower_first(words: &str) -> String {
    if words.starts_with("may ") || words.starts_with("reads ") {
        words.to_owned()
    } else {
        format!("is {words}")
    }
}

/// Asks whether to go on.
fn ask(state: &mut ChatState, approval: Box<Approval>, question: Vec<CardLine>) {
    if matches!(state.mode, ScreenMode::Lines(_)) {
        let text = format!(
            "? {}\nType /yes to approve it; any other line drops the question.",
            state.lines_text(&question)
        );
        state.push(ChatEntry::new(Tone::Proposal, text));
    }
    state.drop_progress();
    state.prompt = Some(Prompt::Sure { approval, question });
}

/// The person is sure.
pub(super) fn go_on(state: &mut ChatState) -> Vec<Action> {
    match state.prompt.take() {
        Some(Prompt::Sure { approval, question }) => {
            let fits = state.areas().is_some_and(|areas| {
                crate::card::rows(&question, Some(areas.main.width.into())).len()
                    <= areas.main.height.into()
            });
            if state.mode == ScreenMode::Screen && !fits {
                state.tell(
                    "The question does not fit on the screen: make the terminal larger, and ask again.",
                );
                return Vec::new();
            }
            vec![Action::Approve(approval)]
        }
        other => {
            state.prompt = other;
            state.tell("There is no question to confirm.");
            Vec::new()
        }
    }
}

/// A proposal whose arguments the person may replace now: one of their own, or one that they may
/// decide about and have read.
fn to_edit(state: &mut ChatState, id: &str) -> Option<InboxItem> {
    let item = state.inbox.get(id)?.clone();
    if state.is_own(&item.proposal) {
        return is_settled(state).then_some(item);
    }
    let item = to_decide(state, id)?;
    if !item.proposal.steps.is_empty() {
        state.tell("It is a plan of several calls, which is approved as it is.");
        return None;
    }
    is_read(state).then_some(item)
}

/// Begins to edit the arguments of a proposal.
pub(super) fn edit(state: &mut ChatState, id: &str, outside: bool) -> Vec<Action> {
    let Some(item) = to_edit(state, id) else {
        return Vec::new();
    };
    let Some(arguments) = arguments(state, &item) else {
        return Vec::new();
    };
    if outside {
        let lines: Vec<String> = visible::pretty(&arguments)
            .lines()
            .map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned())
            .collect();
        return vec![Action::Edit {
            id: id.to_owned(),
            text: lines.join("\n") + "\n",
        }];
    }
    let line = Typing::new(&arguments);
    if line.text() != arguments {
        state.tell("The arguments are too long for a line: E edits them in your editor.");
        return Vec::new();
    }
    state.prompt = Some(Prompt::Arguments {
        id: id.to_owned(),
        line,
    });
    Vec::new()
}

/// The proposed arguments, if the proposal has such that can be replaced. Hidden characters are
/// spelled as JSON escapes.
fn arguments(state: &mut ChatState, item: &InboxItem) -> Option<String> {
    if item.proposal.method != "tools/call" {
        state.tell("Only the arguments of a tool's call can be edited.");
        return None;
    }
    let raw = item
        .proposal
        .arguments()
        .map_or_else(|| "{}".to_owned(), |raw| raw.get().to_owned());
    Some(visible::escaped(&raw))
}

/// Other arguments are there: asks whether to approve with them, or amends the person's own proposal.
pub(super) fn with_arguments(state: &mut ChatState, id: &str, text: &str) -> Vec<Action> {
    let Some(item) = state.inbox.get(id).cloned() else {
        return Vec::new();
    };
    let is_own = state.is_own(&item.proposal);
    if !is_own && to_decide(state, id).is_none() {
        return Vec::new();
    }
    let Some(given) = object(text) else {
        state.tell(
            "The arguments must be one JSON object without duplicate members; nothing was changed.",
        );
        return Vec::new();
    };
    if are_proposed(&item, given.get()) {
        state.tell("The arguments are the proposed ones.");
        return if is_own {
            Vec::new()
        } else {
            approve(state, id, "")
        };
    }
    if is_own {
        return vec![Action::Amend {
            id: id.to_owned(),
            number: item.number,
            arguments: given.get().to_owned(),
        }];
    }
    ask_with_arguments(state, &item, given.get());
    Vec::new()
}

/// Whether these arguments are the proposed ones, however they are written.
fn are_proposed(item: &InboxItem, given: &str) -> bool {
    let proposed = item
        .proposal
        .arguments()
        .map_or_else(|| "{}".to_owned(), |raw| raw.get().to_owned());
    let canonical = |text: &str| json::canonical(text.as_bytes()).ok();
    canonical(&proposed).is_some() && canonical(&proposed) == canonical(given)
}

/// Asks whether to approve with arguments in place of the proposed ones.
fn ask_with_arguments(state: &mut ChatState, item: &InboxItem, given: &str) {
    let mut question = vec![CardLine {
        part: CardPart::Head,
        text: format!("Approve #{} with these arguments instead?", item.number),
    }];
    let rows = visible::pretty(given);
    question.extend(rows.lines().map(|line| CardLine {
        part: CardPart::Asked,
        text: line.strip_prefix("  ").unwrap_or(line).to_owned(),
    }));
    question.push(CardLine {
        part: CardPart::Mark,
        text: ToolEffects::of(&item.proposal).words().to_owned(),
    });
    let mut approval = approval(item);
    approval.arguments = Some(given.to_owned());
    ask(state, approval, question);
}

/// The editor has ended.
pub(super) fn edited(state: &mut ChatState, id: &str, text: Result<String, String>) -> Vec<Action> {
    match text {
        Ok(text) => {
            state.inbox.select(id);
            with_arguments(state, id, &text)
        }
        Err(why) => {
            state.tell(format!("Nothing was decided: {}", visible::line(&why)));
            Vec::new()
        }
    }
}

/// A time was chosen, or conditions were written: the rule is made before it is asked about.
pub(super) fn like_for(state: &mut ChatState, id: &str, seconds: u64, when: &str) -> Vec<Action> {
    let Some(item) = to_allow(state, id) else {
        return Vec::new();
    };
    state.tell("Making the rule ...");
    vec![Action::FindLike {
        proposal: Box::new(item.proposal),
        seconds,
        // A line has no line ends.
        when: when.replace(';', "\n"),
    }]
}

/// The rule for the like of a call is made: asks whether to approve the call and add the rule.
pub(super) fn like(
    state: &mut ChatState,
    id: &str,
    digest: &str,
    found: Result<LikeRule, ApiRefusal>,
) {
    let rule = match found {
        Ok(rule) => rule,
        Err(refused) => {
            return state.tell(format!(
                "Nothing was decided: {}. All calls of the tool: /allow {} 1h",
                visible::line(&refused.to_string()),
                state.inbox.number_of(id)
            ));
        }
    };
    let Some(item) = looked_up(state, id, digest) else {
        return;
    };
    let until = state.zone.minute(state.now_ms + rule.seconds * 1_000);
    let text = format!(
        "Approve #{}, and the like of it until {until} by this rule? e writes conditions in place of values.",
        item.number
    );
    let line = |part, text| CardLine { part, text };
    let question = vec![
        line(CardPart::Head, text),
        line(CardPart::Asked, visible::line(&rule.sentence)),
        line(
            CardPart::Mark,
            ToolEffects::of(&item.proposal).words().to_owned(),
        ),
    ];
    let mut approval = approval(&item);
    approval.later = Some(Later::Rule(rule));
    ask(state, approval, question);
}

/// Asks for conditions in place of the values of a call whose like is asked about; `None` if it is not.
pub(super) fn ask_conditions(approval: &Approval) -> Option<Prompt> {
    match &approval.later {
        Some(Later::Rule(rule)) => Some(Prompt::Conditions {
            id: approval.id.clone(),
            seconds: rule.seconds,
            line: Typing::default(),
        }),
        Some(Later::Grant(_)) | None => None,
    }
}

/// A proposal whose like the person may approve now: one call, and not a plan of several.
fn to_allow(state: &mut ChatState, id: &str) -> Option<InboxItem> {
    let item = to_decide(state, id)?;
    if !item.proposal.steps.is_empty() {
        state.tell(
            "It is a plan of several calls, which is approved once: nothing is allowed for later.",
        );
        return None;
    }
    is_read(state).then_some(item)
}

/// Asks for how long to approve the like of what is proposed.
pub(super) fn allow(state: &mut ChatState, id: &str) {
    if to_allow(state, id).is_some() {
        state.prompt = Some(Prompt::Time { id: id.to_owned() });
    }
}

/// A time was chosen: the capability is looked up before it is asked about.
pub(super) fn allow_for(state: &mut ChatState, id: &str, seconds: u64) -> Vec<Action> {
    let Some(item) = to_allow(state, id) else {
        return Vec::new();
    };
    state.tell("Looking up the capability ...");
    vec![Action::FindCapability {
        proposal: Box::new(item.proposal),
        seconds,
    }]
}

/// The time that a key chooses.
pub(super) fn time_of(key: char) -> Option<u64> {
    TIMES
        .iter()
        .find(|(own, _, _)| *own == key)
        .map(|(_, _, seconds)| *seconds)
}

/// The capability for a grant is known: asks whether to approve and grant it.
pub(super) fn capability(
    state: &mut ChatState,
    id: &str,
    digest: &str,
    seconds: u64,
    found: Result<String, ApiRefusal>,
) {
    let capability = match found {
        Ok(capability) => capability,
        Err(refused) => {
            return state.tell(format!(
                "Nothing was decided: {}",
                visible::line(&refused.to_string())
            ));
        }
    };
    let Some(item) = looked_up(state, id, digest) else {
        return;
    };
    let proposal = &item.proposal;
    let until = state.zone.minute(state.now_ms + seconds * 1_000);
    let text = format!(
        "Approve #{}, and let {} make this call in topic {} without asking, with any arguments, for {} (until {until})?",
        item.number,
        visible::line(&proposal.by),
        visible::line(&proposal.topic),
        span(seconds * 1_000),
    );
    let mut question = vec![CardLine {
        part: CardPart::Head,
        text,
    }];
    question.push(CardLine {
        part: CardPart::Asked,
        text: visible::line(&capability),
    });
    question.push(CardLine {
        part: CardPart::Mark,
        text: ToolEffects::of(proposal).words().to_owned(),
    });
    let participant = proposal.by.clone();
    let topic = proposal.topic.clone();
    let mut approval = approval(&item);
    approval.later = Some(Later::Grant(Allow {
        participant,
        topic,
        capability,
        seconds,
    }));
    ask(state, approval, question);
}

/// Has others see that the person looks at a proposal. It decides nothing, so the card need not be
/// read.
pub(super) fn claim(state: &mut ChatState, id: &str) -> Vec<Action> {
    let number = of_another(state, id);
    let id = id.to_owned();
    number
        .map(|number| Action::Claim { id, number })
        .into_iter()
        .collect()
}

/// Gives more time to decide, which decides nothing either.
pub(super) fn extend(state: &mut ChatState, id: &str) -> Vec<Action> {
    let number = of_another(state, id);
    let id = id.to_owned();
    number
        .map(|number| Action::Extend { id, number })
        .into_iter()
        .collect()
}

/// The number of a proposal of another participant.
fn of_another(state: &mut ChatState, id: &str) -> Option<usize> {
    let item = state.inbox.get(id)?;
    let number = item.number;
    if state.is_own(&item.proposal) {
        state.tell("It is your own proposal: another participant decides about it.");
        return None;
    }
    Some(number)
}

/// Asks for the note of an approval.
pub(super) fn ask_note(state: &mut ChatState, id: &str) {
    if to_decide(state, id).is_some() && is_read(state) {
        state.prompt = Some(Prompt::Note {
            id: id.to_owned(),
            line: Typing::default(),
        });
    }
}

/// Asks for the reason of an act.
pub(super) fn ask_reason(state: &mut ChatState, id: &str, act: ReasonedAct) {
    let Some(item) = state.inbox.get(id).cloned() else {
        return;
    };
    let is_own = state.is_own(&item.proposal);
    let refused = match act {
        ReasonedAct::Reject if is_own => "It is your own proposal: w withdraws it, e amends it.",
        ReasonedAct::Pause if is_own => "It is your own proposal.",
        ReasonedAct::Withdraw if !is_own => "Only its proposer can withdraw it: r rejects it.",
        ReasonedAct::Reject | ReasonedAct::Pause | ReasonedAct::Withdraw => "",
    };
    if !refused.is_empty() {
        return state.tell(refused);
    }
    // A pause is of the proposer, whatever it proposes by now.
    let is_known = act == ReasonedAct::Pause || is_reread(state, &item);
    if is_known && is_settled(state) {
        state.prompt = Some(Prompt::Reason {
            id: id.to_owned(),
            act,
            line: Typing::default(),
        });
    }
}

/// Acts with a reason.
pub(super) fn with_reason(
    state: &ChatState,
    id: &str,
    act: ReasonedAct,
    reason: &str,
) -> Vec<Action> {
    let Some(item) = state.inbox.get(id) else {
        return Vec::new();
    };
    match act {
        ReasonedAct::Reject => end(state, id, false, reason),
        ReasonedAct::Withdraw => end(state, id, true, reason),
        ReasonedAct::Pause => vec![Action::Brake {
            participant: item.proposal.by.clone(),
            resumes: false,
            reason: reason.trim().to_owned(),
        }],
    }
}

/// Rejects or withdraws.
pub(super) fn end(state: &ChatState, id: &str, withdraw: bool, reason: &str) -> Vec<Action> {
    let number = state.inbox.number_of(id);
    vec![Action::End {
        id: id.to_owned(),
        number,
        withdraw,
        reason: reason.trim().to_owned(),
    }]
}

/// Opens the inbox at a proposal; without a screen there is none.
pub(super) fn open(state: &mut ChatState, id: &str) {
    if state.mode == ScreenMode::Screen {
        state.inbox.select(id);
        state.focus = Focus::Inbox;
    }
}
