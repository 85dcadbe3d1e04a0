//! Events of the topic and of the inbox.

use json::visible;
use participant::{Event as TopicEvent, IncomingProposal, ParticipantInfo, ProposalState};
use serde_json::Value;

use crate::api::ApiRefusal;
use crate::entry::{ChatEntry, Tone};
use crate::in_force;
use crate::inbox::InboxItem;
use crate::show::{self, EventContext};
use crate::state::{Action, Announced, ChatState, Connection, Prompt, ScreenMode};
use review::ProposalDetails;

/// Announcements that wait for the inbox.
pub(super) const ANNOUNCED_MAX: usize = 256;
/// Time that an announcement waits for a word that the proposal is on disk, in milliseconds.
const ANNOUNCED_MS: u64 = 2_000;
/// Interval at which the inbox is read when nothing happens, in milliseconds.
pub const REFRESH_MS: u64 = 10_000;
/// Interval at which the rules of the topic are read for notices about them, in milliseconds.
pub const RULES_MS: u64 = 30_000;

/// Something happened in the topic.
pub(super) fn happened(state: &mut ChatState, event: TopicEvent) -> Vec<Action> {
    let mut actions = Vec::new();
    let resumed = is_resumed(state, &event);
    let was_lost = state.welcomed && state.connection == Connection::Lost;
    match &event {
        TopicEvent::Welcomed { you, others } => {
            welcomed(state, you, others);
            actions.extend(state.refresh());
            actions.push(state.read_rules(false));
        }
        TopicEvent::History { past, is_cut } => recall(state, past, *is_cut),
        TopicEvent::Joined(seen) | TopicEvent::Changed(seen) => {
            if seen.id != state.me.id {
                state.others.insert(seen.id.clone(), seen.clone());
            }
            actions.extend(state.refresh());
        }
        TopicEvent::Left(seen) => drop(state.others.remove(&seen.id)),
        TopicEvent::Proposal(proposed) => {
            announce(state, proposed);
            actions.extend(state.refresh());
        }
        TopicEvent::ProposalState { proposal, to, .. } => {
            for one in &mut state.announced {
                if one.by == *to && one.envelope == *proposal {
                    one.is_known = true;
                }
            }
            actions.extend(state.refresh());
        }
        TopicEvent::Disconnected { why, is_final } => {
            state.connection = if *is_final {
                Connection::Over(visible::line(why))
            } else {
                Connection::Lost
            };
        }
        TopicEvent::Chat { .. }
        | TopicEvent::Refused { .. }
        | TopicEvent::Other(_)
        | TopicEvent::Violation { .. }
        | TopicEvent::Lagged(_) => {}
    }
    // Of attempts that fail one after the other, the first has an entry; the status shows the rest.
    let fails_again = was_lost
        && matches!(
            &event,
            TopicEvent::Disconnected {
                is_final: false,
                ..
            }
        );
    if !fails_again && let Some(entry) = entry_of(state, &event, resumed) {
        if calls_person(state, &entry, &event) {
            actions.push(Action::Bell);
        }
        state.push(entry);
    }
    if let TopicEvent::ProposalState {
        proposal,
        to,
        state: now,
        ..
    } = &event
        && *now != ProposalState::Pending
    {
        state.inbox.close(to, proposal, state.now_ms);
        drop_stale_prompt(state, &[]);
    }
    actions
}

/// The connection is there, for the first time or again.
fn welcomed(state: &mut ChatState, you: &ParticipantInfo, others: &[ParticipantInfo]) {
    state.others = others
        .iter()
        .map(|seen| (seen.id.clone(), seen.clone()))
        .collect();
    state.was_paused = std::mem::replace(&mut state.me, you.clone()).paused;
    let was = std::mem::replace(&mut state.connection, Connection::Connected);
    if !state.welcomed {
        enter(state);
    } else if was != Connection::Connected {
        state.push(ChatEntry::new(Tone::Note, "* connected again").of_topic());
    }
}

/// Keeps an announced proposal until the inbox has said whether the person can decide about it.
fn announce(state: &mut ChatState, proposed: &IncomingProposal) {
    if state.announced.len() < ANNOUNCED_MAX {
        state.announced.push(Announced {
            by: proposed.from().to_owned(),
            envelope: proposed.id().to_owned(),
            entry: show::proposed(proposed),
            at_ms: state.now_ms,
            is_known: false,
        });
    }
}

/// Whether the bell rings for an entry.
fn calls_person(state: &ChatState, entry: &ChatEntry, event: &TopicEvent) -> bool {
    match entry.tone {
        Tone::Mention => true,
        Tone::Private => is_to_me(state, event),
        Tone::Said
        | Tone::Own
        | Tone::Note
        | Tone::Proposal
        | Tone::Call
        | Tone::Outcome
        | Tone::Trouble => false,
    }
}

/// Looks at the inbox from time to time, and soon after an announcement about which no report
/// comes.
pub(super) fn tick(state: &mut ChatState) -> Vec<Action> {
    let now_ms = state.now_ms;
    let mut is_late = false;
    for one in &mut state.announced {
        if !one.is_known && now_ms >= one.at_ms + ANNOUNCED_MS {
            one.is_known = true;
            is_late = true;
        }
    }
    let mut actions = Vec::new();
    if is_late || now_ms >= state.refreshed_ms + REFRESH_MS {
        actions.extend(state.refresh());
    }
    if state.connection == Connection::Connected && now_ms >= state.rules_read_ms + RULES_MS {
        actions.push(state.read_rules(false));
    }
    actions
}

/// The rules of the topic are there. Only a person who asked for them is shown why they cannot be
/// read.
pub(super) fn rules(state: &mut ChatState, asked: bool, found: Result<Value, ApiRefusal>) {
    let answer = match found {
        Ok(answer) => answer,
        Err(refused) if asked => {
            let why = visible::line(&refused.to_string());
            let text = format!("! the rules cannot be read: {why}");
            return state.push(ChatEntry::new(Tone::Trouble, text));
        }
        Err(_) => return,
    };
    for notice in state.rules.take(&answer, state.now_ms) {
        state.push(ChatEntry::new(Tone::Note, notice));
    }
    if asked {
        for line in in_force::lines(&answer) {
            state.push(ChatEntry::new(Tone::Outcome, line));
        }
    }
}

fn is_to_me(state: &ChatState, event: &TopicEvent) -> bool {
    match event {
        TopicEvent::Chat { envelope, .. } => envelope.to().any(|to| to == state.me.id),
        _ => false,
    }
}

fn entry_of(state: &ChatState, event: &TopicEvent, resumed: bool) -> Option<ChatEntry> {
    let number = |by: &str, envelope: &str| state.inbox.number(by, envelope);
    show::entry(
        event,
        &EventContext {
            me: &state.me.id,
            number: &number,
            calls: state.calls,
            resumed,
        },
    )
}

/// Whether an event ends the pause of a participant.
fn is_resumed(state: &mut ChatState, event: &TopicEvent) -> bool {
    let TopicEvent::Changed(seen) = event else {
        return false;
    };
    let was_paused = if seen.id == state.me.id {
        // The welcome before has replaced what was known.
        std::mem::take(&mut state.was_paused)
    } else {
        state.others.get(&seen.id).is_some_and(|one| one.paused)
    };
    was_paused && !seen.paused
}

/// The first welcome: the topic, and who is here.
fn enter(state: &mut ChatState) {
    state.welcomed = true;
    let help = match state.mode {
        ScreenMode::Screen => "F1 lists the keys, /help the commands.",
        ScreenMode::Lines(_) => "Type /help for a list of commands.",
    };
    let text = format!(
        "You are {} in topic {}. {help}",
        visible::line(&state.me.id),
        state.topic
    );
    state.push(ChatEntry::new(Tone::Note, text));
    let here: Vec<&str> = state.others.keys().map(String::as_str).collect();
    let here = if here.is_empty() {
        "no other participant".to_owned()
    } else {
        here.join(", ")
    };
    state.push(ChatEntry::new(
        Tone::Note,
        format!("* here: {}", visible::line(&here)),
    ));
}

/// Messages from before this connection.
fn recall(state: &mut ChatState, past: &[TopicEvent], is_cut: bool) {
    if is_cut {
        state.push(
            ChatEntry::new(
                Tone::Trouble,
                "! more messages were missed than the topic keeps",
            )
            .of_topic(),
        );
    }
    let mut entries = Vec::new();
    for event in past {
        let Some(entry) = entry_of(state, event, false) else {
            continue;
        };
        if entry.speaker.is_none() && entry.tone != Tone::Call {
            continue;
        }
        // The time is the sender's claim: it is not later than now.
        let at_ms = show::claimed_ms(event)
            .unwrap_or(state.now_ms)
            .min(state.now_ms);
        entries.push(ChatEntry { at_ms, ..entry });
    }
    if entries.is_empty() {
        return;
    }
    state.push(ChatEntry::new(Tone::Note, "* earlier messages:").of_topic());
    for entry in entries {
        state.push(entry);
    }
    state.push(ChatEntry::new(Tone::Note, "* end of the earlier messages").of_topic());
}

/// Takes in the pending proposals.
pub(super) fn inbox(
    state: &mut ChatState,
    found: Result<Vec<ProposalDetails>, ApiRefusal>,
) -> Vec<Action> {
    state.refreshing = false;
    let mut actions = Vec::new();
    match found {
        Ok(pending) => {
            state.inbox_failure = None;
            let come = state.inbox.set(pending, state.now_ms);
            for item in &come {
                if !state.is_own(&item.proposal) {
                    actions.push(Action::Bell);
                    arrived(state, item);
                }
            }
            drop_stale_prompt(state, &come);
        }
        Err(refused) => {
            let why = visible::line(&refused.to_string());
            let is_new = state.inbox_failure.as_ref() != Some(&why);
            if is_new && state.connection == Connection::Connected {
                state.push(ChatEntry::new(
                    Tone::Trouble,
                    format!("! the inbox cannot be read: {why}"),
                ));
            }
            state.inbox_failure = Some(why);
        }
    }
    if state.stale {
        actions.extend(state.refresh());
    } else {
        // What is not in the inbox is for others to decide.
        let (known, unknown): (Vec<Announced>, _) = std::mem::take(&mut state.announced)
            .into_iter()
            .partition(|one| one.is_known);
        state.announced = unknown;
        for one in known {
            if state.inbox.number(&one.by, &one.envelope).is_none() {
                state.push(one.entry);
            }
        }
    }
    actions
}

/// A proposal has come that the person can decide about.
fn arrived(state: &mut ChatState, item: &InboxItem) {
    let text = match state.mode {
        ScreenMode::Screen => {
            let ProposalDetails { by, .. } = &item.proposal;
            let what = visible::line(item.proposal.what());
            let waits = if item.changed_ms.is_some() {
                "is another request now"
            } else {
                "waits for a decision"
            };
            format!(
                "? #{} {waits}: {} asks for {what} (F2)",
                item.number,
                visible::line(by)
            )
        }
        ScreenMode::Lines(_) => {
            let (lines, _) = state.card(item);
            let changed = if item.changed_ms.is_some() {
                "changed: "
            } else {
                ""
            };
            format!("? {changed}{}", state.lines_text(&lines))
        }
    };
    state.push(ChatEntry::new(Tone::Proposal, text).of_topic());
}

/// Drops a question about a proposal that does not wait any more, or that is another request since
/// this look at the inbox.
fn drop_stale_prompt(state: &mut ChatState, come: &[InboxItem]) {
    let id = match &state.prompt {
        Some(
            Prompt::Reason { id, .. }
            | Prompt::Note { id, .. }
            | Prompt::Arguments { id, .. }
            | Prompt::Conditions { id, .. }
            | Prompt::Time { id },
        ) => id,
        Some(Prompt::Sure { approval, .. }) => &approval.id,
        None => return,
    };
    let number = state.inbox.number_of(id);
    let became = if state.inbox.get(id).is_none() {
        "has been decided, withdrawn or has expired."
    } else if come.iter().any(|item| item.proposal.id == *id) {
        "is another request now: nothing was decided, look at it again."
    } else {
        return;
    };
    state.prompt = None;
    state.tell(format!("#{number} {became}"));
}

/// A message of the person's own is on its way.
pub(super) fn sent(state: &mut ChatState, to: Option<&str>, text: &str) {
    // Without a screen, the line is there as it was typed.
    if state.mode != ScreenMode::Screen {
        return;
    }
    let me = visible::line(&state.me.id);
    let entry = match to {
        Some(to) => ChatEntry::said(
            Tone::Private,
            format!("{me} to {}", visible::line(to)),
            visible::lines(text),
        ),
        None => ChatEntry::said(Tone::Own, me, visible::lines(text)),
    };
    state.push(entry);
}
