//! The fields of a serialized message, read where they lie.

use prost::encoding::{WireType, decode_key, decode_varint};

/// One field of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawField<'a> {
    pub(crate) number: u32,
    /// The content of a string, bytes or a message; `None` for numbers.
    pub(crate) content: Option<&'a [u8]>,
    /// The whole field, key included.
    pub(crate) whole: &'a [u8],
}

/// The fields of a message in their order; the last item is `None` if the bytes are no message. Groups are none.
pub(crate) fn fields(message: &[u8]) -> impl Iterator<Item = Option<RawField<'_>>> {
    let mut rest = message;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let read = field(rest);
        rest = read.and_then(|read| rest.get(read.whole.len()..)).unwrap_or_default();
        Some(read)
    })
}

fn field(bytes: &[u8]) -> Option<RawField<'_>> {
    let mut rest = bytes;
    let (number, wire) = decode_key(&mut rest).ok()?;
    let content = match wire {
        WireType::LengthDelimited => {
            let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
            Some(take(&mut rest, length)?)
        }
        WireType::Varint => decode_varint(&mut rest).ok().map(|_| None)?,
        WireType::SixtyFourBit => take(&mut rest, 8).map(|_| None)?,
        WireType::ThirtyTwoBit => take(&mut rest, 4).map(|_| None)?,
        WireType::StartGroup | WireType::EndGroup => return None,
    };
    Some(RawField { number, content, whole: bytes.get(..bytes.len() - rest.len())? })
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

/// Appends a length-delimited field.
pub(crate) fn append(to: &mut Vec<u8>, number: u32, content: &[u8]) {
    prost::encoding::encode_key(number, WireType::LengthDelimited, to);
    prost::encoding::encode_varint(content.len() as u64, to);
    to.extend_from_slice(content);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_they_lie() {
        let message =
            [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1d, 1, 2, 3, 4, 0x21, 1, 2, 3, 4, 5, 6, 7, 8];
        let read: Vec<_> = fields(&message).flatten().map(|field| (field.number, field.content)).collect();
        assert_eq!(read, [(1, None), (2, Some(&b"hi"[..])), (3, None), (4, None)]);
        let lengths: Vec<_> = fields(&message).flatten().map(|field| field.whole.len()).collect();
        assert_eq!(lengths, [3, 4, 5, 9]);
        let mut out = Vec::new();
        append(&mut out, 2, b"hi");
        assert_eq!(out, [0x12, 2, b'h', b'i']);
    }

    #[test]
    fn what_is_no_message_ends_with_none() {
        for bad in [&[0x12, 3, 1, 2][..], &[0x08], &[0x08, 0x80], &[0x1d, 1], &[0x0b, 0x0c], &[0x00, 1]] {
            assert!(fields(bad).last().is_some_and(|last| last.is_none()), "{bad:?}");
        }
    }
}
