//! WebSocket frames that the gateway writes (RFC 6455, section 5). Must not know what they carry.

use bytes::{BufMut, Bytes, BytesMut};
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tungstenite::protocol::frame::{Frame, FrameHeader};

/// The longest frame header of a server.
const HEADER_BYTES_MAX: usize = 10;

/// Why a socket is closed (RFC 6455, section 7.4; codes from 4000 are ours).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// The gateway stops.
    GoingAway,
    /// Too much that cannot be read.
    Policy,
    /// A message is longer than the limit.
    TooBig,
    /// The gateway failed.
    Internal,
    /// Another WebSocket of the same participant took its place.
    Replaced,
    /// The participant may not be here any more.
    Revoked,
    /// It does not read fast enough.
    TooSlow,
    /// Nothing was heard of it.
    Idle,
    /// The topic did not let it in.
    KeptOut,
}

impl Close {
    /// The code on the wire.
    pub fn code(self) -> u16 {
        match self {
            Self::GoingAway => 1001,
            Self::Policy => 1008,
            Self::TooBig => 1009,
            Self::Internal => 1011,
            Self::Replaced => 4001,
            Self::Revoked => 4002,
            Self::TooSlow => 4003,
            Self::Idle => 4004,
            Self::KeptOut => 4005,
        }
    }

    /// Whether who was on the other side has done nothing wrong.
    pub fn is_well(self) -> bool {
        match self {
            Self::GoingAway | Self::Internal | Self::Replaced => true,
            Self::Policy | Self::TooBig | Self::Revoked | Self::TooSlow | Self::Idle => false,
            Self::KeptOut => false,
        }
    }

    /// The reason in words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::GoingAway => "the gateway stops",
            Self::Policy => "too many malformed messages",
            Self::TooBig => "the message is too long",
            Self::Internal => "the gateway failed",
            Self::Replaced => "another connection of the same participant took over",
            Self::Revoked => "access was withdrawn",
            Self::TooSlow => "reading too slowly",
            Self::Idle => "nothing was heard",
            Self::KeptOut => "the topic is full, or the name is a server's",
        }
    }

    /// The frame.
    pub fn frame(self) -> Bytes {
        let close = CloseFrame { code: CloseCode::from(self.code()), reason: self.reason().into() };
        written(Frame::close(Some(close)))
    }
}

/// A sign of life that is to be answered.
pub fn ping() -> Bytes {
    written(Frame::ping(Bytes::new()))
}

fn written(frame: Frame) -> Bytes {
    let mut out = Vec::with_capacity(frame.len());
    // Writing to memory does not fail.
    let _ = frame.format(&mut out);
    out.into()
}

/// A text message in one frame.
pub fn text(message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(HEADER_BYTES_MAX + message.len());
    put_text(&mut out, message);
    out.freeze()
}

/// Writes a text message in one frame.
pub fn put_text(out: &mut BytesMut, message: &[u8]) {
    let header = FrameHeader { opcode: OpCode::Data(Data::Text), ..FrameHeader::default() };
    let mut head = [0_u8; HEADER_BYTES_MAX];
    let mut rest: &mut [u8] = &mut head;
    // Ten bytes are enough for every header of a server.
    let _ = header.format(message.len() as u64, &mut rest);
    let left = rest.len();
    out.put_slice(head.get(..HEADER_BYTES_MAX - left).unwrap_or_default());
    out.put_slice(message);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_three_lengths() {
        for (len, head) in [(0, vec![0x81, 0]), (125, vec![0x81, 125]), (126, vec![0x81, 126, 0, 126])] {
            let frame = text(&vec![b'x'; len]);
            assert_eq!((&frame[..head.len()], frame.len()), (&head[..], head.len() + len));
        }
        let long = text(&vec![b'x'; 70_000]);
        assert_eq!(&long[..10], [0x81, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70]);
    }

    #[test]
    fn closes_say_why() {
        let frame = Close::TooSlow.frame();
        assert_eq!(&frame[..4], [0x88, frame.len() as u8 - 2, 0x0f, 0xa3]);
        assert_eq!(&frame[4..], b"reading too slowly");
        assert_eq!(&ping()[..], [0x89, 0]);
    }
}
