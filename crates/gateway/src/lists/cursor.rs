//! Cursor of a list: the place of the next page, sealed for its participant.

use auth::Sealer;
use model::{ListKind, ParticipantId};
use wire::mcp::ListNames;

use crate::sealed::Purpose;

/// For how long a cursor is valid, in milliseconds: an hour.
pub const CURSOR_MS: u64 = 3_600_000;
const CURSOR: Purpose = Purpose { name: "cursor", valid_ms: CURSOR_MS };

/// The cursor of the page that begins at this item.
pub(super) fn seal(
    sealer: &Sealer,
    who: &ParticipantId,
    list: ListKind,
    now_ms: u64,
    start: usize,
) -> String {
    CURSOR.seal(sealer, who, now_ms, &format!("{}:{start}", ListNames::of(list).method))
}

/// Where the page of a cursor begins; `None` if the cursor is another participant's, another list's, or too old.
pub(super) fn open(
    sealer: &Sealer,
    who: &ParticipantId,
    list: ListKind,
    now_ms: u64,
    cursor: &str,
) -> Option<usize> {
    let state = CURSOR.open(sealer, who, now_ms, cursor)?;
    let (method, start) = state.rsplit_once(':')?;
    if method == ListNames::of(list).method { start.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_valid_for_its_participant_its_list_and_an_hour() {
        let sealer = Sealer::new(&[7; 32], None);
        let (ada, bob) = (ParticipantId::new("ada").unwrap(), ParticipantId::new("bob").unwrap());
        let cursor = seal(&sealer, &ada, ListKind::Tools, 5, 1000);
        let check = |who, list, now_ms, sealed: &str, expected| {
            assert_eq!(open(&sealer, who, list, now_ms, sealed), expected, "{who} {list:?} {now_ms}");
        };
        check(&ada, ListKind::Tools, 4 + CURSOR_MS, &cursor, Some(1000));
        check(&ada, ListKind::Tools, 5 + CURSOR_MS, &cursor, None);
        check(&bob, ListKind::Tools, 6, &cursor, None);
        check(&ada, ListKind::Prompts, 6, &cursor, None);
        check(&ada, ListKind::Tools, 6, "", None);
        check(&ada, ListKind::Tools, 6, "nonsense", None);
        // The form of the state stays, so that cursors survive an update of the program.
        let known = sealer.seal("cursor", "ada", u64::MAX, [1; 24], b"resources/templates/list:17");
        check(&ada, ListKind::Templates, 6, &known, Some(17));
        check(&ada, ListKind::Resources, 6, &known, None);
    }
}
