//! Commands: what a typed line asks for.

use super::decide;
use super::settle::settle;
use crate::command::{ChatCommand, HELP, read};
use crate::entry::{ChatEntry, Tone};
use crate::show;
use crate::state::{Action, ChatState, Prompt, ScreenMode};

/// A line was typed.
pub(super) fn typed(state: &mut ChatState, line: &str) -> Vec<Action> {
    let command = read(line);
    if !matches!(command, ChatCommand::Yes | ChatCommand::Empty)
        && let Some(Prompt::Sure { .. }) = state.prompt
    {
        // The question was about what was shown last.
        state.prompt = None;
    }
    match command {
        ChatCommand::Empty => Vec::new(),
        ChatCommand::Quit => vec![Action::Quit],
        ChatCommand::Send(text) => vec![Action::Say {
            to: None,
            text: text.to_owned(),
        }],
        ChatCommand::Message { to, text } => message(state, to, text),
        ChatCommand::Help => {
            help(state);
            Vec::new()
        }
        ChatCommand::Who => {
            people(state);
            Vec::new()
        }
        ChatCommand::Calls => {
            calls(state);
            Vec::new()
        }
        ChatCommand::Proposals => {
            proposals(state);
            Vec::new()
        }
        ChatCommand::Rules => vec![state.read_rules(true)],
        ChatCommand::Invalid(why) => {
            state.tell(why);
            Vec::new()
        }
        ChatCommand::Tools(target) => vec![list_tools(state, target)],
        ChatCommand::Call {
            target,
            name,
            arguments,
        } => vec![Action::Call {
            target: target.to_owned(),
            name: name.to_owned(),
            arguments,
        }],
        ChatCommand::Yes => decide::go_on(state),
        ChatCommand::Show(which) => about(state, which, |state, id| {
            card(state, id);
            Vec::new()
        }),
        ChatCommand::Approve { which, note } => {
            about(state, which, |state, id| approve(state, id, note))
        }
        ChatCommand::Extend(which) => about(state, which, decide::extend),
        ChatCommand::Claim(which) => about(state, which, decide::claim),
        ChatCommand::End {
            which,
            withdraw,
            reason,
        } => about(state, which, |state, id| {
            decide::end(state, id, withdraw, reason)
        }),
        ChatCommand::Brake {
            participant,
            resumes,
            reason,
        } => vec![Action::Brake {
            participant: participant.to_owned(),
            resumes,
            reason: reason.trim().to_owned(),
        }],
        ChatCommand::Edit {
            which,
            arguments: None,
        } => about(state, which, |state, id| decide::edit(state, id, true)),
        ChatCommand::Edit {
            which,
            arguments: Some(given),
        } => about(state, which, |state, id| {
            decide::with_arguments(state, id, given.get())
        }),
        ChatCommand::Allow { which, seconds } => about(state, which, |state, id| {
            decide::allow_for(state, id, seconds)
        }),
    }
}

/// Sends a message to one participant.
fn message(state: &mut ChatState, to: &str, text: &str) -> Vec<Action> {
    if !state.is_here(to) {
        state.tell(format!("{} is not here.", json::visible::line(to)));
        return Vec::new();
    }
    vec![Action::Say {
        to: Some(to.to_owned()),
        text: text.to_owned(),
    }]
}

/// Shows the commands.
fn help(state: &mut ChatState) {
    for line in HELP.lines() {
        state.push(ChatEntry::new(Tone::Note, line));
    }
}

/// Shows the participants.
fn people(state: &mut ChatState) {
    let all = show::people(&state.me, state.others.values());
    for entry in all {
        state.push(entry);
    }
}

/// Asks one participant for its tools, or all of them.
fn list_tools(state: &ChatState, target: Option<&str>) -> Action {
    match target {
        Some(target) => Action::ListTools {
            targets: vec![target.to_owned()],
            is_one: true,
        },
        None => Action::ListTools {
            targets: state.others.keys().cloned().collect(),
            is_one: false,
        },
    }
}

/// Shows a proposal where no card of it is on the screen.
fn card(state: &mut ChatState, id: &str) {
    if state.mode != ScreenMode::Screen
        && let Some(item) = state.inbox.get(id)
    {
        let (lines, _) = state.card(item);
        let text = format!("? {}", state.lines_text(&lines));
        state.push(ChatEntry::new(Tone::Outcome, text));
    }
}

/// Approves a proposal; on the screen, where its card has just opened, only a key does that.
fn approve(state: &mut ChatState, id: &str, note: &str) -> Vec<Action> {
    if state.mode == ScreenMode::Screen {
        state.tell("Read what is asked for, then press a to approve it, or A with a note.");
        return Vec::new();
    }
    decide::approve(state, id, note)
}

/// Does something about a proposal that was named. On the screen its card opens.
fn about(
    state: &mut ChatState,
    which: &str,
    what: impl FnOnce(&mut ChatState, &str) -> Vec<Action>,
) -> Vec<Action> {
    match state.inbox.find(which).map(|item| item.proposal.id.clone()) {
        Ok(id) => {
            decide::open(state, &id);
            // What is on the screen from now on counts as shown.
            settle(state);
            what(state, &id)
        }
        Err(why) => {
            state.tell(why);
            Vec::new()
        }
    }
}

/// Shows the calls of others, or stops showing them.
pub(super) fn calls(state: &mut ChatState) {
    state.calls = !state.calls;
    let text = if state.calls {
        "The calls of others are shown."
    } else {
        "The calls of others are not shown."
    };
    state.tell(text);
}

/// Lists what waits.
fn proposals(state: &mut ChatState) {
    if let Some(why) = &state.inbox_failure {
        let text = format!("! the inbox cannot be read: {why}");
        return state.push(ChatEntry::new(Tone::Trouble, text));
    }
    let items = state.inbox.items().to_vec();
    if items.is_empty() {
        return state.tell("No proposal waits for a decision.");
    }
    for item in &items {
        let (lines, _) = state.card(item);
        let text = format!("? {}", state.lines_text(&lines));
        state.push(ChatEntry::new(Tone::Outcome, text));
    }
}
