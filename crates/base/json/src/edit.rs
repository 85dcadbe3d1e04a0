//! Edits of one object: members set and removed, with their commas.

use crate::error::JsonError;
use crate::members::{Members, members};
use crate::span::Span;
use crate::splice::Splice;
use crate::write::{Object, object};

/// A key with its new value, valid JSON, or `None` to remove the member.
pub type MemberChange<'c> = (&'c str, Option<&'c [u8]>);

/// Writes changes of an object's members into `splice`. Of several changes of one key the last
/// counts; a member that is not there is added at the end.
pub fn edit_object(members: &Members<'_>, changes: &[MemberChange<'_>], splice: &mut Splice) {
    if changes.is_empty() {
        return;
    }
    let mut kept_end = None;
    let mut before = None;
    let mut list = members.iter().peekable();
    while let Some((key, member)) = list.next() {
        match last(changes, key) {
            Some(None) => {
                // After a member that stays, the comma before it is removed too; else the comma
                // after it.
                let start = kept_end.and(before).unwrap_or(member.whole.start);
                let end = match (kept_end, list.peek()) {
                    (None, Some((_, next))) => next.whole.start,
                    (Some(_), _) | (None, None) => member.whole.end,
                };
                splice.remove(Span { start, end });
            }
            Some(Some(raw)) => {
                kept_end = Some(member.whole.end);
                splice.replace(member.span, raw);
            }
            None => kept_end = Some(member.whole.end),
        }
        before = Some(member.whole.end);
    }
    let mut added = Vec::new();
    Object::write_members(&mut added, |object| {
        write_changes(object, changes, |key| members.get(key).is_some());
    });
    if added.is_empty() {
        return;
    }
    match kept_end {
        Some(end) => {
            added.insert(0, b',');
            splice.insert(end, &added);
        }
        // No member is left to follow: right after the brace.
        None => splice.insert(members.object().start + 1, &added),
    }
}

/// An object with these changes of its members. All other bytes stay.
///
/// # Errors
/// As [`members`].
pub fn edited(object: &[u8], changes: &[MemberChange<'_>]) -> Result<Vec<u8>, JsonError> {
    let mut splice = Splice::new();
    edit_object(&members(object, Span::all(object))?, changes, &mut splice);
    Ok(splice.apply_to(object))
}

/// Whether an object has no member left after these changes.
#[must_use]
pub fn leaves_nothing(members: &Members<'_>, changes: &[MemberChange<'_>]) -> bool {
    members
        .iter()
        .all(|(key, _)| last(changes, key) == Some(None))
        && changes
            .iter()
            .all(|(key, _)| last(changes, key).flatten().is_none())
}

/// A new object with the members that are set in the end; `None` if there are none.
#[must_use]
pub fn object_of(changes: &[MemberChange<'_>]) -> Option<Vec<u8>> {
    if changes.is_empty() {
        return None;
    }
    let mut is_empty = true;
    let made = object(|object| {
        write_changes(object, changes, |_| false);
        is_empty = object.is_empty();
    });
    (!is_empty).then_some(made)
}

/// Adds the members that are set in the end.
fn write_changes(
    object: &mut Object<'_>,
    changes: &[MemberChange<'_>],
    but: impl Fn(&str) -> bool,
) {
    for (at, (key, raw)) in changes.iter().enumerate() {
        let later = changes.iter().skip(at + 1).any(|(other, _)| other == key);
        if let (Some(raw), false, false) = (raw, later, but(key)) {
            object.raw(key, raw);
        }
    }
}

fn last<'c>(changes: &[MemberChange<'c>], key: &str) -> Option<Option<&'c [u8]>> {
    changes
        .iter()
        .rev()
        .find(|(other, _)| *other == key)
        .map(|(_, raw)| *raw)
}
