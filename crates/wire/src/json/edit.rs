//! Setting and removing members of one object, with the commas that this takes.
//!
//! It must not know what any member means.

use super::members::Members;
use super::splice::{Span, Splice};
use super::text::quote;

/// Changes to the members of one object. All other bytes of the object stay.
#[derive(Debug, Clone)]
pub struct ObjectEdit<'m, 'a> {
    members: &'m Members<'a>,
    set: Vec<(String, Vec<u8>)>,
    remove: Vec<String>,
}

impl<'m, 'a> ObjectEdit<'m, 'a> {
    /// No changes yet.
    #[must_use]
    pub fn new(members: &'m Members<'a>) -> Self {
        Self { members, set: Vec::new(), remove: Vec::new() }
    }

    /// Gives the member `key` the value `raw`, which must be valid JSON. A member that is not there is added at the end.
    pub fn set(&mut self, key: &str, raw: &[u8]) -> &mut Self {
        self.remove.retain(|gone| gone != key);
        self.set.retain(|(other, _)| other != key);
        self.set.push((key.to_owned(), raw.to_vec()));
        self
    }

    /// Takes the member `key` out, if it is there.
    pub fn remove(&mut self, key: &str) -> &mut Self {
        self.set.retain(|(other, _)| other != key);
        self.remove.push(key.to_owned());
        self
    }

    /// Whether no change was asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.remove.is_empty()
    }

    /// Whether the object will have no member left.
    #[must_use]
    pub fn leaves_nothing(&self) -> bool {
        self.set.is_empty() && self.members.iter().all(|member| self.removes(&member.key))
    }

    /// Writes the changes into `splice`, in places of the frame from which the members were read.
    pub fn finish(&self, splice: &mut Splice) {
        let mut kept_end = None;
        let mut before = None;
        let mut list = self.members.iter().peekable();
        while let Some(member) = list.next() {
            if self.removes(&member.key) {
                // After a member that stays, the comma before goes too; else the comma after.
                let start = if kept_end.is_some() {
                    before.unwrap_or(member.whole.start)
                } else {
                    member.whole.start
                };
                let end = match (kept_end, list.peek()) {
                    (None, Some(next)) => next.whole.start,
                    (Some(_), _) | (None, None) => member.whole.end,
                };
                splice.remove(Span { start, end });
            } else {
                kept_end = Some(member.whole.end);
                if let Some((_, raw)) = self.set.iter().find(|(key, _)| *key == member.key) {
                    splice.replace(member.span, raw);
                }
            }
            before = Some(member.whole.end);
        }
        self.add(splice, kept_end);
    }

    fn add(&self, splice: &mut Splice, kept_end: Option<usize>) {
        let mut added = Vec::new();
        for (key, raw) in &self.set {
            if self.members.get(key).is_none() {
                if kept_end.is_some() || !added.is_empty() {
                    added.push(b',');
                }
                write_member(&mut added, key, raw);
            }
        }
        if !added.is_empty() {
            splice.insert(kept_end.unwrap_or(self.members.object().start + 1), &added);
        }
    }

    fn removes(&self, key: &str) -> bool {
        self.remove.iter().any(|gone| gone == key)
    }
}

/// Appends `"key":raw` to `out`.
pub(crate) fn write_member(out: &mut Vec<u8>, key: &str, raw: &[u8]) {
    out.extend_from_slice(quote(key).as_bytes());
    out.push(b':');
    out.extend_from_slice(raw);
}
