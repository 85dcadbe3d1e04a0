//! Objects and arrays as `serde_json` reads them.

use std::fmt;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::span::{MemberSpan, Span};

/// The members of the object that fills the frame but for white space.
pub(super) fn object(frame: &[u8]) -> Option<Vec<MemberSpan>> {
    let mut source = serde_json::Deserializer::from_slice(frame);
    let found = source.deserialize_map(Reader { frame }).ok()?;
    source.end().ok().map(|()| found)
}

/// The elements of the array that fills the frame but for white space.
pub(super) fn array(frame: &[u8]) -> Option<Vec<Span>> {
    let mut source = serde_json::Deserializer::from_slice(frame);
    let found = source.deserialize_seq(Elements(Reader { frame })).ok()?;
    source.end().ok().map(|()| found)
}

struct Reader<'a> {
    frame: &'a [u8],
}

struct Elements<'a>(Reader<'a>);

impl Reader<'_> {
    fn place(&self, part: &str) -> Span {
        let start = part.as_ptr().addr() - self.frame.as_ptr().addr();
        Span {
            start,
            end: start + part.len(),
        }
    }
}

impl<'a> Visitor<'a> for Reader<'a> {
    type Value = Vec<MemberSpan>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        let mut from = 0;
        while map.next_key::<String>()?.is_some() {
            let raw = map.next_value::<&'a RawValue>()?.get();
            let value = self.place(raw);
            // Between the value before and this one are the key's quotes, and no others that are
            // not escaped.
            let gap = &self.frame[from..value.start];
            let quote = |byte: &u8| *byte == b'"';
            let start = from + gap.iter().position(quote).unwrap() + 1;
            let key = Span {
                start,
                end: from + gap.iter().rposition(quote).unwrap(),
            };
            let in_key = key.of(self.frame).contains(&b'\\');
            let in_value = raw.starts_with('"') && raw.contains('\\');
            found.push(MemberSpan::new(0, (key, in_key), (value, in_value)));
            from = value.end;
        }
        Ok(found)
    }
}

impl<'a> Visitor<'a> for Elements<'a> {
    type Value = Vec<Span>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(raw) = seq.next_element::<&'a RawValue>()? {
            found.push(self.0.place(raw.get()));
        }
        Ok(found)
    }
}
