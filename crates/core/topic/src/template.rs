//! RFC 6570 URI templates, and the URIs that could be expansions of one.

/// The most expressions of one template: the limit bounds the time of a match.
pub(crate) const EXPRESSIONS_MAX: usize = 32;

/// The possible expansions of one expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hole {
    /// The first byte of an expansion; an expression without values expands to nothing.
    lead: Option<u8>,
    /// Bytes that no expansion holds.
    stops: &'static [u8],
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(Box<str>),
    Hole(Hole),
}

/// A compiled template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
    /// The template with a star (`None`) in place of each expression.
    pub(crate) shape: Vec<Option<char>>,
}

impl Template {
    /// Compiles; `None` if braces do not pair, an expression is empty, or there are too many.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.matches('{').count() > EXPRESSIONS_MAX {
            return None;
        }
        let mut pieces = Vec::new();
        let mut shape = Vec::new();
        let mut rest = text;
        while let Some((literal, behind)) = rest.split_once('{') {
            let (expression, after) = behind.split_once('}')?;
            if literal.contains('}') || expression.contains('{') {
                return None;
            }
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal.into()));
            }
            pieces.push(Piece::Hole(hole(expression)?));
            shape.extend(literal.chars().map(Some).chain([None]));
            rest = after;
        }
        if rest.contains('}') {
            return None;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Literal(rest.into()));
        }
        shape.extend(rest.chars().map(Some));
        Some(Self { pieces, shape })
    }

    /// Whether the whole URI fits. Time is at most the product of the lengths, whatever the
    /// template, because all possible ends of a piece are followed at once.
    pub(crate) fn matches(&self, uri: &str) -> bool {
        let uri = uri.as_bytes();
        let mut ends = vec![false; uri.len() + 1];
        if let Some(start) = ends.first_mut() {
            *start = true;
        }
        for piece in &self.pieces {
            ends = match piece {
                Piece::Literal(literal) => behind_literal(&ends, uri, literal.as_bytes()),
                Piece::Hole(hole) => behind_hole(&ends, uri, *hole),
            };
        }
        ends.last() == Some(&true)
    }
}

/// Reads an expression by its operator. A value of a plain expression is taken to hold anything but
/// `/`, as the common servers do, and not only what RFC 6570 section 3.2.2 would leave unencoded.
fn hole(expression: &str) -> Option<Hole> {
    let (lead, stops, variables): (Option<u8>, &'static [u8], &str) = match expression.as_bytes() {
        [b'+', ..] => (None, b"", expression.get(1..)?),
        [b'#', ..] => (Some(b'#'), b"", expression.get(1..)?),
        [b'.', ..] => (Some(b'.'), b"/", expression.get(1..)?),
        [b'/', ..] => (Some(b'/'), b"?#", expression.get(1..)?),
        [b';', ..] => (Some(b';'), b"/?#", expression.get(1..)?),
        [b'?', ..] => (Some(b'?'), b"#", expression.get(1..)?),
        [b'&', ..] => (Some(b'&'), b"#", expression.get(1..)?),
        _ => (None, b"/", expression),
    };
    (!variables.is_empty()).then_some(Hole { lead, stops })
}

fn behind_literal(ends: &[bool], uri: &[u8], literal: &[u8]) -> Vec<bool> {
    let mut next = vec![false; ends.len()];
    for (at, _) in ends.iter().enumerate().filter(|(_, end)| **end) {
        if uri.get(at..).is_some_and(|rest| rest.starts_with(literal))
            && let Some(end) = next.get_mut(at + literal.len())
        {
            *end = true;
        }
    }
    next
}

/// With a lead, a hole is empty or begins with it; without, it holds at least one byte.
fn behind_hole(ends: &[bool], uri: &[u8], hole: Hole) -> Vec<bool> {
    let mut next = Vec::with_capacity(ends.len());
    let mut inside = false;
    let mut before: Option<(bool, u8)> = None;
    for (at, end) in ends.iter().enumerate() {
        if let Some((began, byte)) = before {
            let goes_on = inside && !hole.stops.contains(&byte);
            let begins = began
                && hole
                    .lead
                    .map_or(!hole.stops.contains(&byte), |lead| lead == byte);
            inside = goes_on || begins;
        }
        next.push(inside || (hole.lead.is_some() && *end));
        before = uri.get(at).map(|byte| (*end, *byte));
    }
    next
}

#[cfg(test)]
mod tests;
