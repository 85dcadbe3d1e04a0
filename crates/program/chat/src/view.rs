//! The screen: `view(state, buffer)` draws the state into cells. It changes nothing and knows no
//! terminal.

mod inbox;
mod lines;
mod style;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use crate::card::{self, CardPart};
use crate::help;
use crate::layout::{COLUMNS_MIN, ROWS_MIN};
use crate::rows::TerminalRow;
use crate::state::{ChatState, Focus, Prompt};
use lines::{put, row};
pub use style::Look;

/// Draws the state. Returns the place of the cursor, if it is shown.
pub fn view(state: &ChatState, look: Look, buffer: &mut Buffer) -> Option<Position> {
    let screen = buffer.area;
    // The terminal may have another size by now than the state knows.
    let fits = (screen.width, screen.height) == state.size;
    let areas = if fits { state.areas() } else { None };
    let Some(areas) = areas else {
        put(
            buffer,
            screen,
            0,
            &format!("needs {COLUMNS_MIN}x{ROWS_MIN}"),
            Style::new(),
        );
        return None;
    };
    if let Some(first) = state.help {
        draw_help(look, first, buffer);
        return None;
    }
    lines::status(state, look, areas.status, buffer);
    match state.focus {
        Focus::Talk => talk(state, look, areas.main, buffer),
        Focus::Inbox => open_card(state, look, areas.main, buffer),
    }
    inbox::list(state, look, &areas, buffer);
    lines::hint(state, look, areas.hint, buffer);
    lines::input(state, look, areas.input, buffer)
}

fn talk(state: &ChatState, look: Look, area: Rect, buffer: &mut Buffer) {
    let rows = state
        .talk
        .rows(area.width.into(), area.height.into(), state.zone);
    // The newest is at the bottom.
    let top = area
        .height
        .saturating_sub(u16::try_from(rows.len()).unwrap_or(u16::MAX));
    for (at, one) in (top..).zip(&rows) {
        let (gutter, text) = look.entry(one.tone, one.speaker.as_deref(), &state.me.id);
        row(
            buffer,
            area,
            at,
            (&one.row.gutter, gutter),
            (&one.row.text, text),
        );
    }
}

/// The card of the selected proposal, below a question about it.
fn open_card(state: &ChatState, look: Look, area: Rect, buffer: &mut Buffer) {
    if let Some(shown) = &state.suggestions {
        let rows = shown.rows(area.width.into());
        return card_from(&rows, shown.scroll, look, area, buffer);
    }
    let mut rows = Vec::new();
    let mut area = area;
    if let Some(Prompt::Sure { question, .. }) = &state.prompt {
        for (part, one) in card::rows(question, Some(area.width.into())) {
            rows.push((look.question(part), one));
        }
        for (at, (style, one)) in (0..area.height).zip(&rows) {
            row(buffer, area, at, (&one.gutter, *style), (&one.text, *style));
        }
        let used = u16::try_from(rows.len() + 1)
            .unwrap_or(u16::MAX)
            .min(area.height);
        area = Rect {
            y: area.y + used,
            height: area.height - used,
            ..area
        };
    }
    let (card, _) = state.card_rows(area.width.into());
    if card.is_empty() {
        let text = match &state.inbox_failure {
            Some(why) => format!("The inbox cannot be read: {why}"),
            None => "No proposal waits for a decision.".to_owned(),
        };
        return put(buffer, area, 0, &text, look.note());
    }
    card_from(&card, state.inbox.scroll, look, area, buffer);
}

/// Rows of a card from this one on.
fn card_from(
    card: &[(CardPart, TerminalRow)],
    scroll: usize,
    look: Look,
    area: Rect,
    buffer: &mut Buffer,
) {
    let shown = card.iter().skip(scroll).take(area.height.into());
    for (at, (part, one)) in (0..).zip(shown) {
        let style = look.part(*part);
        row(
            buffer,
            area,
            at,
            (&one.gutter, look.gutter(*part)),
            (&one.text, style),
        );
    }
}

fn draw_help(look: Look, first: usize, buffer: &mut Buffer) {
    let screen = buffer.area;
    let rows = help::rows(screen.width.into());
    put(buffer, screen, 0, "Keys and commands", look.heading());
    let height = screen.height.saturating_sub(2);
    let shown = rows.iter().skip(first).take(height.into());
    for (at, text) in (1..).zip(shown) {
        let style = if text.starts_with(' ') {
            Style::new()
        } else {
            look.heading()
        };
        put(buffer, screen, at, text, style);
    }
    let more = rows.len().saturating_sub(first + usize::from(height));
    let text = if more > 0 {
        format!("Down, Space: {more} rows more; any other key closes the help")
    } else {
        "any key closes the help".to_owned()
    };
    put(
        buffer,
        screen,
        screen.height.saturating_sub(1),
        &text,
        look.note(),
    );
}

#[cfg(test)]
mod tests;
