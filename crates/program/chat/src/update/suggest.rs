//! Suggested rules: shown in the inbox, put in force or refused there.

use json::visible;

use crate::api::ApiRefusal;
use crate::entry::{ChatEntry, Tone};
use crate::keys::Deed;
use crate::state::{Action, ChatState, Focus};
use crate::suggested::Suggestions;

/// Asks for the suggested rules.
pub(super) fn find(state: &mut ChatState) -> Vec<Action> {
    state.tell("Looking for rules in what you have decided ...");
    vec![Action::FindSuggestions]
}

/// The suggested rules are there.
pub(super) fn found(state: &mut ChatState, found: Result<Suggestions, ApiRefusal>) {
    state.notice = None;
    match found {
        // A question about a proposal is answered first.
        Ok(_) if state.prompt.is_some() || state.focus != Focus::Inbox => {
            state.tell("Suggested rules are there: s in the inbox shows them.");
        }
        Ok(suggestions) => state.suggestions = Some(suggestions),
        Err(refused) => {
            let why = visible::line(&refused.to_string());
            state.tell(format!("No rules can be shown: {why}"));
        }
    }
}

/// Does what a key means while suggested rules are shown.
pub(super) fn deed(state: &mut ChatState, deed: Deed, page: usize) -> Vec<Action> {
    let Some(shown) = &mut state.suggestions else {
        return Vec::new();
    };
    match deed {
        Deed::Back => state.suggestions = None,
        Deed::Next => shown.step(1),
        Deed::Previous => shown.step(-1),
        Deed::PageDown => shown.scroll += page,
        Deed::PageUp => shown.scroll = shown.scroll.saturating_sub(page),
        Deed::PutInForce => ask(state, true),
        Deed::Refuse => ask(state, false),
        Deed::Top => shown.scroll = 0,
        Deed::Bottom => shown.scroll = usize::MAX,
        Deed::Help
        | Deed::OtherPane
        | Deed::Calls
        | Deed::Redraw
        | Deed::Interrupt
        | Deed::Leave
        | Deed::Send
        | Deed::Complete
        | Deed::Earlier
        | Deed::Later
        | Deed::Line(_)
        | Deed::Suggestions
        | Deed::Decide(_) => {}
    }
    Vec::new()
}

/// Asks whether to go on, once all of the rule was on the screen.
fn ask(state: &mut ChatState, accept: bool) {
    let Some(columns) = state.areas().map(|areas| areas.main.width) else {
        return;
    };
    let Some(shown) = &mut state.suggestions else {
        return;
    };
    if shown.is_empty() {
        return state.tell("No rule is suggested.");
    }
    let left = shown
        .rows(columns.into())
        .len()
        .saturating_sub(shown.seen_rows);
    if left == 0 {
        shown.asked = Some(accept);
    } else {
        state.tell(format!(
            "{left} rows of the rule were not shown yet: Space reads on."
        ));
    }
}

/// The second key: `y` goes on, any other one drops the question.
pub(super) fn answered(state: &mut ChatState, is_yes: bool) -> Vec<Action> {
    let Some(shown) = &mut state.suggestions else {
        return Vec::new();
    };
    let accept = shown.asked.take().filter(|_| is_yes);
    let (Some(accept), Some(digest)) = (accept, shown.digest()) else {
        return Vec::new();
    };
    let digest = digest.to_owned();
    vec![Action::DecideSuggestion { digest, accept }]
}

/// A suggested rule was decided about, or was not.
pub(super) fn done(state: &mut ChatState, digest: &str, done: Result<String, String>) {
    let (tone, text) = match done {
        Ok(text) => {
            if let Some(shown) = &mut state.suggestions {
                shown.remove(digest);
            }
            (Tone::Outcome, text)
        }
        Err(why) => (Tone::Trouble, why),
    };
    state.push(ChatEntry::new(tone, text.clone()));
    state.tell(text);
}
