//! Fields of an encoded protobuf message, found in place (protobuf encoding, "Message Structure").

use std::ops::Range;

/// Why bytes are no protobuf message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are no protobuf message")]
pub struct NoMessage;

/// One field: its number, and where its parts are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    /// The field's number.
    pub(super) number: u32,
    /// The value of a varint, else 0.
    pub(super) varint: u64,
    /// Where the field's length begins, if it has one; else where its value begins.
    pub(super) at: usize,
    /// The content of a length-delimited field; `None` if it is a number.
    pub(super) content: Option<Range<usize>>,
    /// Where the next field begins.
    pub(super) end: usize,
}

/// An iterator over the fields of one message.
#[derive(Debug)]
pub(super) struct Fields<'m> {
    message: &'m [u8],
    at: usize,
}

impl<'m> Fields<'m> {
    /// The fields of these bytes.
    pub(super) fn of(message: &'m [u8]) -> Self {
        Self { message, at: 0 }
    }

    fn read(&mut self) -> Result<Field, NoMessage> {
        let tag = varint(self.message, &mut self.at)?;
        let number =
            u32::try_from(tag >> 3).ok().filter(|number| (1..1 << 29).contains(number)).ok_or(NoMessage)?;
        let at = self.at;
        let mut field = Field { number, varint: 0, at, content: None, end: at };
        let len = match tag & 7 {
            0 => {
                field.varint = varint(self.message, &mut self.at)?;
                field.end = self.at;
                return Ok(field);
            }
            1 => 8,
            2 => usize::try_from(varint(self.message, &mut self.at)?).map_err(|_| NoMessage)?,
            5 => 4,
            // Groups are of proto2, and no message of the contract has one.
            _ => return Err(NoMessage),
        };
        let start = self.at;
        let end = start.checked_add(len).filter(|end| *end <= self.message.len()).ok_or(NoMessage)?;
        (self.at, field.end) = (end, end);
        field.content = (tag & 7 == 2).then_some(start..end);
        Ok(field)
    }
}

impl Iterator for Fields<'_> {
    type Item = Result<Field, NoMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.message.len() {
            return None;
        }
        let read = self.read();
        if read.is_err() {
            self.at = self.message.len();
        }
        Some(read)
    }
}

/// Reads a varint and moves behind it.
fn varint(bytes: &[u8], at: &mut usize) -> Result<u64, NoMessage> {
    let mut rest = bytes.get(*at..).unwrap_or_default();
    let before = rest.len();
    let value = prost::encoding::decode_varint(&mut rest).map_err(|_| NoMessage)?;
    *at += before - rest.len();
    Ok(value)
}
