//! The single rows of the screen: the status at the top, hint and input at the bottom.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use super::style::Look;
use crate::rows::width;
use crate::state::{ChatState, Connection, Focus, Prompt, ReasonedAct};
use crate::typing::Typing;

/// Writes a text at the beginning of a row, as far as it fits.
pub(super) fn put(buffer: &mut Buffer, area: Rect, at: u16, text: &str, style: Style) {
    if at < area.height {
        buffer.set_stringn(area.x, area.y + at, text, area.width.into(), style);
    }
}

/// Writes a gutter and the text behind it.
pub(super) fn row(
    buffer: &mut Buffer,
    area: Rect,
    at: u16,
    gutter: (&str, Style),
    text: (&str, Style),
) {
    if at >= area.height {
        return;
    }
    let y = area.y + at;
    let (x, _) = buffer.set_stringn(area.x, y, gutter.0, area.width.into(), gutter.1);
    let left = usize::from(area.right().saturating_sub(x));
    buffer.set_stringn(x, y, text.0, left, text.1);
}

/// Topic, person, connection, counts.
pub(super) fn status(state: &ChatState, look: Look, area: Rect, buffer: &mut Buffer) {
    buffer.set_style(area, look.bar());
    let own = state
        .inbox
        .items()
        .iter()
        .filter(|item| state.is_own(&item.proposal))
        .count();
    let waiting = state.inbox.items().len() - own;
    let me = json::visible::line(&state.me.id);
    let left = format!(" {}  {me}", state.topic);
    let connection = match &state.connection {
        Connection::Connected => "connected".to_owned(),
        Connection::Lost if state.welcomed => "CONNECTION LOST, reconnecting".to_owned(),
        Connection::Lost => "connecting".to_owned(),
        Connection::Over(why) => format!("ENDED: {why}"),
    };
    let inbox = match (&state.inbox_failure, waiting, own) {
        (Some(_), _, _) => "inbox unreadable".to_owned(),
        (None, waiting, 0) => format!("{waiting} wait"),
        (None, waiting, own) => format!("{waiting} wait, {own} yours"),
    };
    let right = format!("{connection} | {} here | {inbox} ", state.others.len() + 1);
    put(buffer, area, 0, &left, look.bar());
    let columns = u16::try_from(width(&right))
        .unwrap_or(u16::MAX)
        .min(area.width);
    let at = Rect {
        x: area.right() - columns,
        width: columns,
        ..area
    };
    put(buffer, at, 0, &right, look.bar());
}

/// The latest notice, else what the keys do here.
pub(super) fn hint(state: &ChatState, look: Look, area: Rect, buffer: &mut Buffer) {
    if let Some(notice) = state.notice() {
        return put(buffer, area, 0, notice, look.heading());
    }
    if state.focus == Focus::Talk && state.talk.scroll > 0 {
        let below = state.talk.below;
        let new = if below > 0 {
            format!("{below} new below; ")
        } else {
            String::new()
        };
        return put(
            buffer,
            area,
            0,
            &format!("{new}Esc goes to the newest entry"),
            look.heading(),
        );
    }
    let text = match (&state.prompt, state.focus) {
        (Some(Prompt::Sure { .. }), _) => "y approves, any other key goes back",
        (Some(Prompt::Reason { .. }), _) => {
            "Enter goes on, with or without a reason; Esc goes back"
        }
        (Some(Prompt::Note { .. }), _) => "Enter approves, with or without a note; Esc goes back",
        (Some(Prompt::Arguments { .. } | Prompt::Conditions { .. }), _) => {
            "Enter goes on, Esc goes back"
        }
        (Some(Prompt::Time { .. }), _) => "1, 2 or 3 goes on, any other key goes back",
        (None, Focus::Talk) => {
            "F1 help  F2 inbox  F3 calls  PgUp back  Tab completes  Ctrl-C leaves"
        }
        (None, Focus::Inbox) if state.suggestions.is_some() => suggested(state),
        (None, Focus::Inbox) if state.now_ms < state.inbox.settled_ms => {
            "another card has opened: look at it"
        }
        (None, Focus::Inbox) => {
            "a approve  r reject  e E edit  h the like  s suggested  Space more  ? help"
        }
    };
    put(buffer, area, 0, text, look.note());
}

/// What the keys do at suggested rules.
fn suggested(state: &ChatState) -> &'static str {
    let Some(shown) = &state.suggestions else {
        return "";
    };
    match shown.asked.as_ref().map(|asked| asked.accept) {
        Some(true) => "y puts the rule in force, any other key goes back",
        Some(false) => "y refuses the rule for good, any other key goes back",
        None if state.now_ms < shown.settled_ms => "another rule has opened: look at it",
        None => "a put in force  r refuse  j k other ones  Space more  ? help  Esc back",
    }
}

/// The line that is typed. Returns the place of the cursor.
pub(super) fn input(
    state: &ChatState,
    look: Look,
    area: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    let typed = |label: &str, line: &Typing, buffer: &mut Buffer| {
        let label_columns = width(label);
        let (text, column) = line.shown(usize::from(area.width).saturating_sub(label_columns));
        put(buffer, area, 0, label, look.heading());
        let x = area.x
            + u16::try_from(label_columns)
                .unwrap_or(u16::MAX)
                .min(area.width - 1);
        let rest = Rect {
            x,
            width: area.right() - x,
            ..area
        };
        put(buffer, rest, 0, &text, Style::new());
        let column = u16::try_from(column).unwrap_or(u16::MAX);
        Some(Position::new(
            x.saturating_add(column).min(area.right() - 1),
            area.y,
        ))
    };
    match &state.prompt {
        Some(Prompt::Reason { id, act, line }) => {
            let number = state.inbox.number_of(id);
            let what = match act {
                ReasonedAct::Reject => format!("reject #{number}"),
                ReasonedAct::Withdraw => format!("withdraw #{number}"),
                ReasonedAct::Pause => format!("pause {}", proposer(state, id)),
            };
            typed(&format!("{what}, because: "), line, buffer)
        }
        Some(Prompt::Note { id, line }) => typed(
            &format!("approve #{}, note: ", state.inbox.number_of(id)),
            line,
            buffer,
        ),
        Some(Prompt::Conditions { line, .. }) => {
            typed("conditions, with ; between: ", line, buffer)
        }
        Some(Prompt::Arguments { line, .. }) => typed("arguments: ", line, buffer),
        Some(Prompt::Time { id }) => {
            let by = proposer(state, id);
            let text =
                format!("approve, and the like by {by}: 1) 15 minutes  2) 1 hour  3) 8 hours");
            put(buffer, area, 0, &text, look.heading());
            None
        }
        Some(Prompt::Sure { .. }) => {
            put(buffer, area, 0, "y?", look.trouble());
            Some(Position::new(area.x + 2, area.y))
        }
        None if state.focus == Focus::Talk => typed("> ", &state.line, buffer),
        None => {
            let left = state.line.text();
            let note = if left.is_empty() {
                String::new()
            } else {
                "> (a line is begun)".to_owned()
            };
            put(buffer, area, 0, &note, look.note());
            None
        }
    }
}

/// The proposer of a proposal, as a row shows it.
fn proposer(state: &ChatState, id: &str) -> String {
    let item = state.inbox.get(id);
    item.map(|item| json::visible::line(&item.proposal.by))
        .unwrap_or_default()
}
