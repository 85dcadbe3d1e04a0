//! Fields of an encoded protobuf message, found in place (protobuf encoding, "Message Structure").
//!
//! No field is decoded into a type, so what no descriptor names is kept with all else. Groups are
//! of proto2, and no message that the gateway reads has one.

use std::ops::Range;

use prost::encoding::{WireType, decode_varint, encode_key, encode_varint};

/// The highest number of a field, and one (protobuf encoding, "Message Structure").
const NUMBERS_END: u64 = 1 << 29;

/// The bytes that the length of a nested message mostly has.
const NESTED_LENGTH_BYTES: usize = 2;

/// Why bytes are no protobuf message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are no protobuf message")]
pub struct NoMessage;

/// One field: its number, its content, and where its parts are in the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field<'m> {
    /// The field's number.
    pub number: u32,
    /// The value of a varint, else 0.
    pub varint: u64,
    /// The content of a string, bytes or a message; `None` for numbers.
    pub content: Option<&'m [u8]>,
    /// Range of that content; `None` for numbers.
    pub place: Option<Range<usize>>,
    /// Start of the field's length, if it has one; else of its value.
    pub at: usize,
    /// Start of the next field.
    pub end: usize,
    /// The whole field, key included.
    pub whole: &'m [u8],
}

/// An iterator over the fields of one message, in their order. After bytes that are no field it
/// ends.
#[derive(Debug)]
pub struct Fields<'m> {
    message: &'m [u8],
    at: usize,
}

impl<'m> Fields<'m> {
    /// The fields of these bytes.
    #[must_use]
    pub fn of(message: &'m [u8]) -> Self {
        Self { message, at: 0 }
    }

    fn read(&self) -> Result<Field<'m>, NoMessage> {
        let message = self.message;
        let mut end = self.at;
        let key = varint(message, &mut end)?;
        let number = Some(key >> 3).filter(|number| (1..NUMBERS_END).contains(number));
        let number = number
            .and_then(|number| u32::try_from(number).ok())
            .ok_or(NoMessage)?;
        let at = end;
        let mut value = 0;
        let mut place = None;
        match WireType::try_from(key & 7).map_err(|_| NoMessage)? {
            WireType::Varint => value = varint(message, &mut end)?,
            WireType::SixtyFourBit => end += 8,
            WireType::ThirtyTwoBit => end += 4,
            WireType::LengthDelimited => {
                let length = usize::try_from(varint(message, &mut end)?).map_err(|_| NoMessage)?;
                let start = end;
                end = start.checked_add(length).ok_or(NoMessage)?;
                place = Some(start..end);
            }
            WireType::StartGroup | WireType::EndGroup => return Err(NoMessage),
        }
        let whole = message.get(self.at..end).ok_or(NoMessage)?;
        let content = place.clone().and_then(|place| message.get(place));
        Ok(Field {
            number,
            varint: value,
            content,
            place,
            at,
            end,
            whole,
        })
    }
}

impl<'m> Iterator for Fields<'m> {
    type Item = Result<Field<'m>, NoMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.message.len() {
            return None;
        }
        let read = self.read();
        self.at = read.as_ref().map_or(self.message.len(), |field| field.end);
        Some(read)
    }
}

/// Reads a varint and moves behind it.
fn varint(bytes: &[u8], at: &mut usize) -> Result<u64, NoMessage> {
    let mut rest = bytes.get(*at..).unwrap_or_default();
    let before = rest.len();
    let value = decode_varint(&mut rest).map_err(|_| NoMessage)?;
    *at += before - rest.len();
    Ok(value)
}

/// Appends a field with a length: a string, bytes or a message.
#[inline]
pub fn append(to: &mut Vec<u8>, number: u32, content: &[u8]) {
    begin(to, number, content.len());
    to.extend_from_slice(content);
}

/// Begins a field whose content has so many bytes, and follows.
#[inline]
pub fn begin(to: &mut Vec<u8>, number: u32, content_bytes: usize) {
    // Most fields have a low number and a short content: one byte says each.
    if let (Ok(key @ 0..16), Ok(length @ 0..128)) =
        (u8::try_from(number), u8::try_from(content_bytes))
    {
        to.extend_from_slice(&[key << 3 | WireType::LengthDelimited as u8, length]);
        return;
    }
    encode_key(number, WireType::LengthDelimited, to);
    encode_varint(content_bytes as u64, to);
}

/// Appends a field with the content that a function appends.
#[inline]
pub fn nest(to: &mut Vec<u8>, number: u32, content: impl FnOnce(&mut Vec<u8>)) {
    encode_key(number, WireType::LengthDelimited, to);
    let length_at = to.len();
    to.extend_from_slice(&[0; NESTED_LENGTH_BYTES]);
    let content_at = to.len();
    content(to);
    put_length(to, length_at, to.len() - content_at);
}

/// Writes the length of a content, for which room was left. Another length than most have moves the
/// content.
#[inline]
fn put_length(to: &mut Vec<u8>, at: usize, content_bytes: usize) {
    let content_at = at + NESTED_LENGTH_BYTES;
    let room = to.get_mut(at..content_at);
    if let (Ok(length @ 0x80..0x4000), Some(room)) = (u16::try_from(content_bytes), room) {
        // Seven bits in each byte, the lower ones first, and a mark that another byte follows.
        let varint = length & 0x7f | 0x80 | (length & 0x3f80) << 1;
        room.copy_from_slice(&varint.to_le_bytes());
        return;
    }
    let mut length = Vec::new();
    encode_varint(content_bytes as u64, &mut length);
    to.splice(at..content_at, length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_they_lie() {
        let message = [
            0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1d, 1, 2, 3, 4, 0x21, 1, 2, 3, 4, 5, 6, 7,
            8,
        ];
        let read: Vec<_> = Fields::of(&message).map(Result::unwrap).collect();
        let shown: Vec<_> = read
            .iter()
            .map(|one| (one.number, one.varint, one.content))
            .collect();
        assert_eq!(
            shown,
            [
                (1, 150, None),
                (2, 0, Some(&b"hi"[..])),
                (3, 0, None),
                (4, 0, None)
            ]
        );
        let places: Vec<_> = read
            .iter()
            .map(|one| (one.at, one.place.clone(), one.end))
            .collect();
        assert_eq!(
            places,
            [
                (1, None, 3),
                (4, Some(5..7), 7),
                (8, None, 12),
                (13, None, 21)
            ]
        );
        let lengths: Vec<_> = read.iter().map(|one| one.whole.len()).collect();
        assert_eq!(lengths, [3, 4, 5, 9]);
        let mut out = Vec::new();
        append(&mut out, 2, b"hi");
        assert_eq!(out, [0x12, 2, b'h', b'i']);
    }

    #[test]
    fn a_nested_field_is_one_whose_length_was_known() {
        for content_bytes in [0, 1, 127, 128, 129, 0x3fff, 0x4000, 0x1f_ffff, 0x20_0000] {
            let content = vec![7; content_bytes];
            for number in [1, 15, 16] {
                let (mut known, mut nested) = (vec![1], vec![1]);
                append(&mut known, number, &content);
                nest(&mut nested, number, |to| to.extend_from_slice(&content));
                assert!(known == nested, "{number}: {content_bytes}");
            }
        }
    }

    #[test]
    fn what_is_no_message_ends_with_an_error() {
        for bad in [
            // A length beyond the end, a number without a value, a varint and a number that end too
            // early.
            &[0x12, 3, 1, 2][..],
            &[0x08],
            &[0x08, 0x80],
            &[0x1d, 1],
            &[0x21, 1, 2, 3, 4, 5, 6, 7],
            // Groups, the number 0, wire types that there are not, a number beyond the last, the
            // longest length.
            &[0x0b, 0x0c],
            &[0x00, 1],
            &[0x0e],
            &[0x80, 0x80, 0x80, 0x80, 0x10, 1],
            &[
                0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
            ],
        ] {
            let whole = [&[0x08, 1][..], bad].concat();
            let read: Vec<_> = Fields::of(&whole)
                .map(|field| field.map(|field| field.number))
                .collect();
            assert_eq!(read, [Ok(1), Err(NoMessage)], "{bad:?}");
        }
        assert_eq!(Fields::of(&[]).count(), 0);
        // The last number that there is.
        let last = [0xf8, 0xff, 0xff, 0xff, 0x0f, 1];
        assert_eq!(
            Fields::of(&last).next().unwrap().unwrap().number,
            (1 << 29) - 1
        );
    }
}
