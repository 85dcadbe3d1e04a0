//! The one step of a chat: `update(state, now, event)` returns what is to be done. It has no
//! terminal, no connection, no clock.

mod command;
mod decide;
mod pressed;
mod settle;
mod suggest;
mod topic;

use crate::state::{Action, ChatEvent, ChatState};
pub use topic::{REFRESH_MS, RULES_MS};

/// Takes an event in.
pub fn update(state: &mut ChatState, now_ms: u64, event: ChatEvent) -> Vec<Action> {
    state.now_ms = now_ms;
    let actions = match event {
        ChatEvent::Topic(event) => topic::happened(state, *event),
        ChatEvent::Key(key) => pressed::key(state, key),
        ChatEvent::Paste(text) => {
            pressed::paste(state, &text);
            Vec::new()
        }
        ChatEvent::Resize { columns, rows } => {
            state.size = (columns, rows);
            // What was seen at another width is not what is shown now.
            state.inbox.seen_rows = 0;
            if let Some(shown) = &mut state.suggestions {
                shown.seen_rows = 0;
            }
            Vec::new()
        }
        ChatEvent::Tick => topic::tick(state),
        ChatEvent::Line(line) => command::typed(state, &line),
        ChatEvent::Inbox(found) => topic::inbox(state, found),
        ChatEvent::Capability {
            id,
            digest,
            seconds,
            found,
        } => {
            decide::capability(state, &id, &digest, seconds, found);
            Vec::new()
        }
        ChatEvent::Like { id, digest, found } => {
            decide::like(state, &id, &digest, found);
            Vec::new()
        }
        ChatEvent::Suggestions(found) => {
            suggest::found(state, found);
            Vec::new()
        }
        ChatEvent::Rules { asked, found } => {
            topic::rules(state, asked, found);
            Vec::new()
        }
        ChatEvent::SuggestionDecided { digest, done } => {
            suggest::done(state, &digest, done);
            Vec::new()
        }
        ChatEvent::Edited { id, text } => decide::edited(state, &id, text),
        ChatEvent::Sent { to, text } => {
            topic::sent(state, to.as_deref(), &text);
            Vec::new()
        }
        ChatEvent::Outcome(entries) => {
            entries.into_iter().for_each(|entry| state.push(entry));
            Vec::new()
        }
        ChatEvent::Decided(entries) => {
            entries.into_iter().for_each(|entry| state.push(entry));
            state.refresh()
        }
        ChatEvent::Tools { owner, names } => {
            state.candidates.set_tools(&owner, names.into_iter());
            Vec::new()
        }
    };
    settle::settle(state);
    actions
}

#[cfg(test)]
mod tests;
