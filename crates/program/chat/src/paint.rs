//! The way of cells to a terminal, row by row.
//!
//! Terminals disagree about the columns of many characters. So a row that changes is cleared and
//! written whole, and after each character beyond ASCII the cursor is placed anew: no text moves
//! what stands behind it, and nothing of the row before remains.

use std::io::{self, Write};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::queue;
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Position;
use ratatui::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthStr;

use crate::rows::{LEFT_TO_RIGHT, is_right_to_left};

/// Writes the rows that differ from those before; all without some.
pub(crate) fn paint(
    out: &mut impl Write,
    before: Option<&Buffer>,
    now: &Buffer,
    cursor: Option<Position>,
) -> io::Result<()> {
    queue!(out, BeginSynchronizedUpdate, Hide)?;
    let before = before.filter(|before| before.area == now.area);
    if before.is_none() {
        queue!(out, Clear(ClearType::All))?;
    }
    let columns = usize::from(now.area.width).max(1);
    let old = |at: usize| before.and_then(|before| before.content.chunks(columns).nth(at));
    for (at, cells) in now.content.chunks(columns).enumerate() {
        if old(at) != Some(cells) {
            paint_row(out, u16::try_from(at).unwrap_or(u16::MAX), cells)?;
        }
    }
    if let Some(Position { x, y }) = cursor {
        queue!(out, MoveTo(x, y), Show)?;
    }
    queue!(out, EndSynchronizedUpdate)?;
    out.flush()
}

fn paint_row(out: &mut impl Write, y: u16, cells: &[Cell]) -> io::Result<()> {
    queue!(out, MoveTo(0, y))?;
    write!(out, "\u{1b}[0m")?;
    queue!(out, Clear(ClearType::CurrentLine))?;
    let plain = Style::new();
    // What was cleared is blank already.
    let is_blank =
        |cell: &Cell| cell.symbol() == " " && !cell.modifier.contains(Modifier::REVERSED);
    let used = cells
        .iter()
        .rposition(|cell| !is_blank(cell))
        .map_or(0, |last| last + 1);
    let turns = cells.iter().take(used).any(turns);
    if turns {
        write!(out, "{LEFT_TO_RIGHT}")?;
        queue!(out, MoveTo(0, y))?;
    }
    let mut style = plain;
    let mut x = 0_usize;
    let mut was_turned = false;
    while x < used
        && let Some(cell) = cells.get(x)
    {
        let wanted = Style {
            fg: Some(cell.fg),
            bg: None,
            add_modifier: cell.modifier,
            ..plain
        };
        if wanted != style {
            write!(out, "{}", ansi(wanted))?;
            style = wanted;
        }
        let symbol = cell.symbol();
        let next = x + symbol.width().max(1);
        let is_turned = self::turns(cell);
        if was_turned && !is_turned {
            write!(out, "{LEFT_TO_RIGHT}")?;
            queue!(out, MoveTo(u16::try_from(x).unwrap_or(u16::MAX), y))?;
        }
        write!(out, "{symbol}")?;
        if !symbol.is_ascii() {
            queue!(out, MoveTo(u16::try_from(next).unwrap_or(u16::MAX), y))?;
        }
        (x, was_turned) = (next, is_turned);
    }
    write!(out, "\u{1b}[0m")
}

/// Whether a cell has a letter that is written from right to left.
fn turns(cell: &Cell) -> bool {
    cell.symbol().chars().any(is_right_to_left)
}

/// The escape sequence that sets a style after whatever was set before.
pub(crate) fn ansi(style: Style) -> String {
    let mut codes = vec!["0".to_owned()];
    let modifiers = [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::REVERSED, "7"),
    ];
    codes.extend(
        modifiers
            .iter()
            .filter(|(one, _)| style.add_modifier.contains(*one))
            .map(|(_, code)| (*code).to_owned()),
    );
    let colour = match style.fg {
        Some(Color::Red) => Some("31"),
        Some(Color::Green) => Some("32"),
        Some(Color::Yellow) => Some("33"),
        Some(Color::Blue) => Some("34"),
        Some(Color::Magenta) => Some("35"),
        Some(Color::Cyan) => Some("36"),
        Some(Color::LightGreen) => Some("92"),
        Some(Color::LightCyan) => Some("96"),
        _ => None,
    };
    codes.extend(colour.map(str::to_owned));
    format!("\u{1b}[{}m", codes.join(";"))
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::*;

    fn painted(before: Option<&str>, now: &str) -> String {
        let buffer = |text: &str| {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 2));
            buffer.set_stringn(0, 1, text, 8, Style::new());
            buffer
        };
        let before = before.map(buffer);
        let mut out = Vec::new();
        paint(&mut out, before.as_ref(), &buffer(now), None).unwrap();
        String::from_utf8(out).unwrap().replace('\u{1b}', "^")
    }

    #[test]
    fn only_rows_that_differ_are_written_and_those_are_cleared_first() {
        let expect = "^[?2026h^[?25l^[2;1H^[0m^[2K^[0mab^[0m^[?2026l";
        assert_eq!(
            painted(Some("x"), "ab").replace("^[0m^[0m", "^[0m"),
            expect.replace("^[0m^[0m", "^[0m")
        );
        assert_eq!(painted(Some("ab"), "ab"), "^[?2026h^[?25l^[?2026l");
    }

    #[test]
    fn the_cursor_is_placed_after_each_character_beyond_ascii() {
        let shown = painted(Some(""), "漢é|");
        assert!(shown.contains("漢^[2;3Hé^[2;4H|"), "{shown}");
        let turned = painted(Some(""), "aש1");
        assert!(
            turned.contains("\u{200e}^[2;1H") && turned.contains("ש^[2;3H\u{200e}^[2;3H1"),
            "{turned:?}"
        );
    }
}
