//! WebSocket frames that the gateway sends (RFC 6455, section 5): text, ping, close.

use bytes::{BufMut, Bytes, BytesMut};
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tungstenite::protocol::frame::{Frame, FrameHeader};

/// Longest frame header of a server, in bytes.
const HEADER_BYTES_MAX: usize = 10;

/// Why the gateway closes a socket (RFC 6455, section 7.4; codes from 4000 are the gateway's).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// The gateway stops.
    GoingAway,
    /// Too many malformed messages.
    Policy,
    /// A message is longer than the limit.
    TooBig,
    /// Too many bytes of unfinished messages.
    TooMuch,
    /// The gateway failed.
    Internal,
    /// A newer WebSocket of the same participant replaced it.
    Replaced,
    /// The participant lost its access.
    Revoked,
    /// The client reads too slowly.
    TooSlow,
    /// No frame arrived for several pings.
    Idle,
    /// The topic rejected the participant.
    Rejected,
    /// The access token with which it was opened has ended.
    TokenEnded,
}

impl Close {
    /// Its code on the wire, its reason in words, and whether it is no fault of the client.
    fn row(self) -> (u16, &'static str, bool) {
        match self {
            Self::GoingAway => (1001, "the gateway stops", true),
            Self::Policy => (1008, "too many malformed messages", false),
            Self::TooBig => (1009, "the message is too long", false),
            Self::TooMuch => (
                1013,
                "too many bytes of this sender wait already; try again later",
                false,
            ),
            Self::Internal => (1011, "the gateway failed", true),
            Self::Replaced => (
                4001,
                "another connection of the same participant took over",
                true,
            ),
            Self::Revoked => (4002, "access was withdrawn", false),
            Self::TooSlow => (4003, "reading too slowly", false),
            Self::Idle => (4004, "no frame arrived", false),
            Self::Rejected => (4005, "the topic is full, or the name is a server's", false),
            Self::TokenEnded => (
                4006,
                "the access token has ended; come back with a fresh one",
                true,
            ),
        }
    }

    /// The code on the wire.
    pub fn code(self) -> u16 {
        self.row().0
    }

    /// The reason in words.
    pub fn reason(self) -> &'static str {
        self.row().1
    }

    /// Whether the close is no fault of the client.
    pub fn is_blameless(self) -> bool {
        self.row().2
    }

    /// The close frame.
    pub fn frame(self) -> Bytes {
        let close = CloseFrame {
            code: CloseCode::from(self.code()),
            reason: self.reason().into(),
        };
        encode(Frame::close(Some(close)))
    }
}

/// A ping frame.
pub(crate) fn ping() -> Bytes {
    encode(Frame::ping(Bytes::new()))
}

fn encode(frame: Frame) -> Bytes {
    let mut out = Vec::with_capacity(frame.len());
    // Writing to memory cannot fail.
    let _ = frame.format(&mut out);
    out.into()
}

/// Encodes a text message as one frame.
pub fn text(message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(HEADER_BYTES_MAX + message.len());
    put_text(&mut out, message);
    out.freeze()
}

/// Appends a text message as one frame.
pub(crate) fn put_text(out: &mut BytesMut, message: &[u8]) {
    let header = FrameHeader {
        opcode: OpCode::Data(Data::Text),
        ..FrameHeader::default()
    };
    let mut head = [0_u8; HEADER_BYTES_MAX];
    let mut rest: &mut [u8] = &mut head;
    // Every header of a server fits into ten bytes.
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
        for (len, head) in [
            (0, vec![0x81, 0]),
            (125, vec![0x81, 125]),
            (126, vec![0x81, 126, 0, 126]),
        ] {
            let frame = text(&vec![b'x'; len]);
            assert_eq!(
                (&frame[..head.len()], frame.len()),
                (&head[..], head.len() + len)
            );
        }
        let long = text(&vec![b'x'; 70_000]);
        assert_eq!(&long[..10], [0x81, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70]);
    }

    #[test]
    fn close_frames_carry_code_and_reason() {
        let frame = Close::TooSlow.frame();
        assert_eq!(&frame[..4], [0x88, frame.len() as u8 - 2, 0x0f, 0xa3]);
        assert_eq!(&frame[4..], b"reading too slowly");
        assert_eq!(&ping()[..], [0x89, 0]);
    }
}
