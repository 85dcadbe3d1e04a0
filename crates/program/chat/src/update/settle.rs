//! Consequences of every event: what can be completed, limits of the scroll, rows that were seen.

use crate::state::{ChatState, Focus, ScreenMode};

/// Consequences of any event: limits of the scroll, and the rows of the card that are on the screen
/// now.
pub(super) fn settle(state: &mut ChatState) {
    let participants = state.others.keys().cloned();
    let proposals = state
        .inbox
        .items()
        .iter()
        .map(|item| item.number.to_string());
    state.candidates.set_participants(participants, proposals);
    if state.mode != ScreenMode::Screen || state.focus != Focus::Inbox || state.help.is_some() {
        return;
    }
    let Some(areas) = state.areas() else { return };
    if let Some(shown) = &mut state.suggestions {
        let height = usize::from(areas.main.height);
        let rows = shown.rows(areas.main.width.into()).len();
        shown.scroll = shown.scroll.min(rows.saturating_sub(height));
        return shown.note_shown(height);
    }
    let (rows, _) = state.card_rows(areas.main.width.into());
    let height = usize::from(areas.main.height);
    state.inbox.scroll = state.inbox.scroll.min(rows.len().saturating_sub(height));
    if state.prompt.is_none() {
        state.inbox.note_shown(height);
    }
}
