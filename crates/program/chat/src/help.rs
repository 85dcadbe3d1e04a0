//! The help screen: the table of keys and the commands.

use crate::command::HELP;
use crate::keys::table;
use crate::rows::wrap;

/// Columns of the keys' names.
const KEY_COLUMNS: usize = 16;

/// The rows of the help on so many columns.
#[must_use]
pub fn rows(columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let room = columns.saturating_sub(KEY_COLUMNS + 3).max(10);
    for (place, bindings) in table() {
        rows.push(place.heading().to_owned());
        for (keys, words) in bindings {
            for (at, words) in wrap(words, room).iter().enumerate() {
                let keys = if at == 0 { keys.as_str() } else { "" };
                rows.push(format!("  {keys:KEY_COLUMNS$}{words}"));
            }
        }
        rows.push(String::new());
    }
    rows.push("Commands".to_owned());
    for line in HELP.lines() {
        rows.extend(
            wrap(line, columns.saturating_sub(3).max(10))
                .into_iter()
                .map(|row| format!("  {row}")),
        );
    }
    rows
}
