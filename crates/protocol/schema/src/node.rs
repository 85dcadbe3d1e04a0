//! Reading a JSON Schema where it lies.

use std::borrow::Cow;

use json::{Members, Span};

/// One value of a JSON document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'a>(pub(crate) &'a [u8]);

impl<'a> Node<'a> {
    /// The members, in the order of the text; `None` if this is no object.
    pub(crate) fn members(self) -> Option<Members<'a>> {
        json::members(self.0, Span::all(self.0)).ok()
    }

    pub(crate) fn get(self, key: &str) -> Option<Node<'a>> {
        json::at(self.0, &[key]).map(Node)
    }

    /// The elements; none if this is no array.
    pub(crate) fn elements(self) -> Vec<Node<'a>> {
        let spans = json::elements(self.0, Span::all(self.0)).unwrap_or_default();
        spans
            .into_iter()
            .map(|span| Node(span.of(self.0)))
            .collect()
    }

    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        json::text(self.0)
    }

    pub(crate) fn integer(self) -> Option<i64> {
        json::integer(self.0)
    }

    /// The number, if it is finite.
    pub(crate) fn number(self) -> Option<f64> {
        let text = std::str::from_utf8(self.0).ok()?;
        text.parse().ok().filter(|number: &f64| number.is_finite())
    }

    pub(crate) fn is(self, literal: &str) -> bool {
        self.0 == literal.as_bytes()
    }

    /// The description for people.
    pub(crate) fn description(self) -> Option<Cow<'a, str>> {
        self.get("description")?
            .text()
            .filter(|text| !text.trim().is_empty())
    }

    /// The node that a local reference names (RFC 6901), such as `#/$defs/Date`.
    pub(crate) fn at_pointer(self, reference: &str) -> Option<Node<'a>> {
        let pointer = reference.strip_prefix('#')?;
        if pointer.is_empty() {
            return Some(self);
        }
        let mut steps = pointer
            .strip_prefix('/')?
            .split('/')
            .map(|step| step.replace("~1", "/").replace("~0", "~"));
        steps.try_fold(self, |node, step| match node.get(&step) {
            Some(member) => Some(member),
            None => node.elements().get(step.parse::<usize>().ok()?).copied(),
        })
    }
}
