//! The list of what waits, beside the talk or below it.

use json::visible;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::lines::put;
use super::style::Look;
use crate::clock::span;
use crate::inbox::InboxItem;
use crate::layout::Areas;
use crate::rows::{shortened, width};
use crate::state::{ChatState, Focus};
use review::ToolEffects;

/// Draws the list with its frame.
pub(super) fn list(state: &ChatState, look: Look, areas: &Areas, buffer: &mut Buffer) {
    let area = areas.list;
    if area.height == 0 {
        return;
    }
    if areas.is_wide() {
        for at in 0..area.height {
            let frame = Rect {
                x: area.x - 1,
                width: 1,
                ..area
            };
            put(buffer, frame, at, "|", look.note());
        }
    }
    let items = state.inbox.items();
    let heading = format!(
        "-- inbox: {} --",
        if items.is_empty() {
            "empty".to_owned()
        } else {
            items.len().to_string()
        }
    );
    put(buffer, area, 0, &heading, look.heading());
    let room = usize::from(area.height) - 1;
    let at = state.inbox.position().unwrap_or_default();
    // The last row says how many do not fit.
    let room = if items.len() > room {
        room.saturating_sub(1).max(1)
    } else {
        room
    };
    let first = (at + 1).saturating_sub(room);
    for (place, (index, item)) in (1..).zip(items.iter().enumerate().skip(first).take(room)) {
        let style = if index == at {
            look.selected(state.focus == Focus::Inbox)
        } else {
            Style::new()
        };
        put(
            buffer,
            area,
            place,
            &entry(state, item, index == at, area.width.into()),
            style,
        );
    }
    let hidden = items.len().saturating_sub(room);
    if hidden > 0 && area.height > 2 {
        put(
            buffer,
            area,
            area.height - 1,
            &format!("  and {hidden} more"),
            look.note(),
        );
    }
}

/// One row: number, proposer, what, time left. Names are shortened in the middle.
fn entry(state: &ChatState, item: &InboxItem, is_selected: bool, columns: usize) -> String {
    let proposal = &item.proposal;
    let mark = if is_selected { '>' } else { ' ' };
    let second = match ToolEffects::of(proposal) {
        ToolEffects::Destructive => "!",
        ToolEffects::Unsaid => "?",
        ToolEffects::Reading | ToolEffects::ReadOnly | ToolEffects::Additive => " ",
    };
    let left = span(proposal.expires_ms().saturating_sub(state.now_ms));
    // Another one looks at it.
    let looks = proposal.claims.iter().any(|one| one.by != state.me.id);
    let left = if looks { format!("@ {left}") } else { left };
    let by = if state.is_own(proposal) {
        "yours".to_owned()
    } else {
        visible::line(&proposal.by)
    };
    let begin = format!("{mark}{second}#{} ", item.number);
    // The last column stays empty.
    let room = columns.saturating_sub(width(&begin) + left.len() + 4);
    let by = shortened(&by, room / 2);
    let what = shortened(
        &visible::line(proposal.what()),
        room.saturating_sub(width(&by) + 1),
    );
    let text = format!("{by} {what}");
    let pad = " ".repeat((room + 1).saturating_sub(width(&text)));
    format!("{begin}{text}{pad}{left} ")
}
