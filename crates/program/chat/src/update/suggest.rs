//! Suggested rules: shown in the inbox, put in force or refused there.

use json::visible;

use crate::api::ApiRefusal;
use crate::entry::{ChatEntry, Tone};
use crate::keys::Deed;
use crate::state::{Action, ChatState, Focus};
use crate::suggested::{RuleQuestion, Suggestions};

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
    if state.now_ms < shown.settled_ms && deed != Deed::Back {
        state.tell("Another rule has just opened: look at it, then press the key again.");
        return Vec::new();
    }
    match deed {
        Deed::Back => state.suggestions = None,
        Deed::Next => shown.step(1),
        Deed::Previous => shown.step(-1),
        Deed::PageDown => shown.scroll = shown.scroll.saturating_add(page),
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
    let Some(digest) = shown.digest().map(str::to_owned) else {
        return state.tell("No rule is suggested.");
    };
    if shown.deciding.is_some() {
        return state.tell("A decision about a rule is on its way: wait for what becomes of it.");
    }
    let left = shown
        .rows(columns.into())
        .len()
        .saturating_sub(shown.seen_rows);
    if left == 0 {
        shown.asked = Some(RuleQuestion { digest, accept });
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
    let Some(RuleQuestion { digest, accept }) = shown.asked.take().filter(|_| is_yes) else {
        return Vec::new();
    };
    shown.deciding = Some(digest.clone());
    vec![Action::DecideSuggestion { digest, accept }]
}

/// A suggested rule was decided about, or was not.
pub(super) fn done(state: &mut ChatState, digest: &str, done: Result<String, String>) {
    if let Some(shown) = &mut state.suggestions {
        if shown.deciding.as_deref() == Some(digest) {
            shown.deciding = None;
        }
        if done.is_ok() {
            shown.remove(digest, state.now_ms);
        }
    }
    let (tone, text) = match done {
        Ok(text) => (Tone::Outcome, text),
        Err(why) => (Tone::Trouble, why),
    };
    state.push(ChatEntry::new(tone, text.clone()));
    state.tell(text);
}
