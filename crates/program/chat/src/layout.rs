//! The places of the screen's parts.

use ratatui::layout::Rect;

/// Fewest columns of the screen; a smaller terminal shows a word about it.
pub const COLUMNS_MIN: u16 = 24;
/// Fewest rows of the screen.
pub const ROWS_MIN: u16 = 8;
/// Columns from which on the inbox has its place at the right.
const WIDE_COLUMNS: u16 = 100;
/// Columns of the inbox there.
const LIST_COLUMNS: u16 = 38;
/// Most rows of the inbox on a narrow screen.
const LIST_ROWS_MAX: u16 = 6;

/// The places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Areas {
    /// Topic, connection, counts.
    pub status: Rect,
    /// The talk, or the open card.
    pub main: Rect,
    /// The list of what waits; empty on a narrow screen when nothing does.
    pub list: Rect,
    /// Line about the keys, or the latest notice.
    pub hint: Rect,
    /// The line that is typed.
    pub input: Rect,
}

impl Areas {
    /// The places on a screen of this size when so many proposals wait; `None` if it is too small.
    #[must_use]
    pub fn of(columns: u16, rows: u16, waiting: usize) -> Option<Self> {
        if columns < COLUMNS_MIN || rows < ROWS_MIN {
            return None;
        }
        let row = |y: u16| Rect::new(0, y, columns, 1);
        let top = 1;
        let height = rows - 3;
        let (main, list) = if columns >= WIDE_COLUMNS {
            let left = columns - LIST_COLUMNS;
            (
                Rect::new(0, top, left - 1, height),
                Rect::new(left, top, LIST_COLUMNS, height),
            )
        } else {
            let wanted = u16::try_from(waiting).unwrap_or(u16::MAX).saturating_add(1);
            let most = LIST_ROWS_MAX.min(height / 2);
            let list = if waiting == 0 { 0 } else { wanted.min(most) };
            let main = height - list;
            (
                Rect::new(0, top, columns, main),
                Rect::new(0, top + main, columns, list),
            )
        };
        Some(Self {
            status: row(0),
            main,
            list,
            hint: row(rows - 2),
            input: row(rows - 1),
        })
    }

    /// Whether the list is beside the main part.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.list.y == self.main.y && self.list.height > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fill_the_screen_without_overlapping() {
        for (columns, rows) in [(24, 8), (80, 24), (99, 9), (100, 8), (120, 40), (500, 200)] {
            for waiting in [0, 1, 3, 50] {
                let Areas {
                    status,
                    main,
                    list,
                    hint,
                    input,
                } = Areas::of(columns, rows, waiting).unwrap();
                let all = [status, main, list, hint, input];
                for (at, one) in all.iter().enumerate() {
                    assert!(one.right() <= columns && one.bottom() <= rows, "{one:?}");
                    assert!(
                        all.iter()
                            .skip(at + 1)
                            .all(|other| one.intersection(*other).is_empty()),
                        "{all:?}"
                    );
                }
                assert!(main.height >= 3 && main.width >= COLUMNS_MIN, "{main:?}");
            }
        }
        assert_eq!((Areas::of(23, 24, 0), Areas::of(80, 7, 0)), (None, None));
    }
}
