//! Length-prefixed frames of pipes and sockets (proto-mcp v1.0, "Stdio Transport"): four bytes of
//! length, big-endian, then the message.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// The longest message that any configuration may allow, in bytes: beyond it the first byte would
/// look like other protocols' (see [`sniff`](super::sniff)).
pub const FRAME_BYTES_MAX: usize = 32 << 20;
/// Bytes of the length.
pub const PREFIX: usize = 4;

/// A frame of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A message. Never empty.
    Message(Bytes),
    /// A frame without a message keeps the connection alive.
    KeepAlive,
    /// A message of this length was announced, which is beyond the limit. Nothing after it can be
    /// trusted.
    TooLong(u32),
}

/// An incremental reader of frames with a limit.
///
/// Read into [`Frames::buffer`], then call [`Frames::next_frame`] until it returns `None`. At most
/// the limit, a prefix and one read are held.
#[derive(Debug)]
pub struct Frames {
    buffer: BytesMut,
    bytes_max: usize,
}

impl Frames {
    /// A reader for messages of at most `bytes_max` bytes, which is cut to [`FRAME_BYTES_MAX`];
    /// with bytes that were read before.
    #[must_use]
    pub fn new(bytes_max: usize, read: BytesMut) -> Self {
        Self {
            buffer: read,
            bytes_max: bytes_max.min(FRAME_BYTES_MAX),
        }
    }

    /// The buffer to read into: only append.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next complete frame.
    pub fn next_frame(&mut self) -> Option<Frame> {
        let announced = u32::from_be_bytes(*self.buffer.first_chunk()?);
        let len = announced as usize;
        if len > self.bytes_max {
            return Some(Frame::TooLong(announced));
        }
        if self.buffer.len() < PREFIX + len {
            return None;
        }
        self.buffer.advance(PREFIX);
        match len {
            0 => Some(Frame::KeepAlive),
            len => Some(Frame::Message(self.buffer.split_to(len).freeze())),
        }
    }

    /// Whether the stream ended inside a frame.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        !self.buffer.is_empty()
    }
}

/// A message with its prefix. `None` if it is longer than [`FRAME_BYTES_MAX`].
#[must_use]
pub fn framed(message: &[u8]) -> Option<Bytes> {
    let len = u32::try_from(message.len())
        .ok()
        .filter(|len| *len as usize <= FRAME_BYTES_MAX)?;
    let mut frame = BytesMut::with_capacity(PREFIX + message.len());
    frame.put_u32(len);
    frame.put_slice(message);
    Some(frame.freeze())
}

/// An `MCPMessage` of this id around a payload field, with its prefix. `None` if it is longer than
/// [`FRAME_BYTES_MAX`].
#[must_use]
pub fn of_field(id: u64, field: &[u8]) -> Option<Bytes> {
    let len = super::envelope::message_len(id, field);
    let announced = u32::try_from(len)
        .ok()
        .filter(|len| *len as usize <= FRAME_BYTES_MAX)?;
    let mut frame = BytesMut::with_capacity(PREFIX + len);
    frame.put_u32(announced);
    super::envelope::write_message(id, field, &mut frame);
    Some(frame.freeze())
}

/// The message in a binary WebSocket message, whose prefix may be there or not: a message without
/// one begins with 0x08 or more.
#[must_use]
pub fn unprefixed(message: Bytes) -> Bytes {
    let prefix = message
        .first_chunk()
        .map(|prefix| u32::from_be_bytes(*prefix) as usize);
    match prefix {
        Some(len) if len == message.len() - PREFIX => message.slice(PREFIX..),
        _ => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(frames: &mut Frames) -> Vec<Frame> {
        std::iter::from_fn(|| frames.next_frame()).collect()
    }

    #[test]
    fn frames_are_found_however_the_bytes_are_split() {
        let sent = [
            &[0, 0, 0, 3][..],
            b"abc",
            &[0, 0, 0, 0],
            &[0, 0, 0, 1],
            b"d",
        ]
        .concat();
        let expected = [
            Frame::Message("abc".into()),
            Frame::KeepAlive,
            Frame::Message("d".into()),
        ];
        for step in 1..=sent.len() {
            let mut frames = Frames::new(10, BytesMut::new());
            let mut found = Vec::new();
            for part in sent.chunks(step) {
                frames.buffer().extend_from_slice(part);
                found.extend(all(&mut frames));
            }
            assert_eq!(found, expected, "{step}");
            assert!(!frames.is_cut());
        }
    }

    #[test]
    fn the_limit_is_exact() {
        let mut frames = Frames::new(2, BytesMut::from(&[0, 0, 0, 2, 1, 2, 0, 0, 0, 3][..]));
        assert_eq!(frames.next_frame(), Some(Frame::Message(vec![1, 2].into())));
        assert_eq!(frames.next_frame(), Some(Frame::TooLong(3)));
        let of = |announced: u32| {
            let mut frames = Frames::new(usize::MAX, BytesMut::from(&announced.to_be_bytes()[..]));
            frames.next_frame()
        };
        assert_eq!(of(0x0200_0000), None);
        assert_eq!(of(0x0200_0001), Some(Frame::TooLong(0x0200_0001)));
        assert_eq!(
            framed(&vec![0; FRAME_BYTES_MAX]).map(|frame| frame.len()),
            Some(FRAME_BYTES_MAX + 4)
        );
        assert_eq!(framed(&vec![0; FRAME_BYTES_MAX + 1]), None);
    }

    #[test]
    fn a_websocket_message_may_have_a_prefix() {
        let message = Bytes::from_static(&[0x08, 3]);
        assert_eq!(unprefixed(framed(&message).unwrap()), message);
        assert_eq!(of_field(3, b""), framed(&message));
        assert_eq!(unprefixed(message.clone()), message);
        assert_eq!(unprefixed(Bytes::from_static(&[0, 0, 0, 0])), "");
        assert_eq!(unprefixed(Bytes::new()), "");
    }
}
