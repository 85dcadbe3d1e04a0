//! The one step of a chat: `update(state, now, event)` returns what is to be done. It has no
//! terminal, no connection, no clock.

mod command;
mod decide;
mod pressed;
mod settle;
mod topic;

use crate::state::{Action, Event, State};
pub use topic::REFRESH_MS;

/// Takes an event in.
pub fn update(state: &mut State, now_ms: u64, event: Event) -> Vec<Action> {
    state.now_ms = now_ms;
    let actions = match event {
        Event::Topic(event) => topic::happened(state, *event),
        Event::Key(key) => pressed::key(state, key),
        Event::Paste(text) => {
            pressed::paste(state, &text);
            Vec::new()
        }
        Event::Resize { columns, rows } => {
            state.size = (columns, rows);
            // What was seen at another width is not what is shown now.
            state.inbox.seen_rows = 0;
            Vec::new()
        }
        Event::Tick => topic::tick(state),
        Event::Line(line) => command::typed(state, &line),
        Event::Inbox(found) => topic::inbox(state, found),
        Event::Capability { id, seconds, found } => {
            decide::capability(state, &id, seconds, found);
            Vec::new()
        }
        Event::Edited { id, text } => decide::edited(state, &id, text),
        Event::Sent { to, text } => {
            topic::sent(state, to.as_deref(), &text);
            Vec::new()
        }
        Event::Outcome(entries) => {
            entries.into_iter().for_each(|entry| state.push(entry));
            Vec::new()
        }
        Event::Decided(entries) => {
            entries.into_iter().for_each(|entry| state.push(entry));
            state.refresh()
        }
        Event::Tools { owner, names } => {
            state.candidates.set_tools(&owner, names.into_iter());
            Vec::new()
        }
    };
    settle::settle(state);
    actions
}

#[cfg(test)]
mod tests;
