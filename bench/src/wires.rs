//! How an envelope lies on the wire of each fan-out server: WebSocket, the floor's bare frames,
//! NATS.
//!
//! Must not know sockets, nor what is measured.

use memchr::memmem;

/// Which server is spoken to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// WebSocket with a bearer token.
    Ws,
    /// Frames as a WebSocket server writes them, in both directions and without a handshake: the
    /// floor knows no protocol.
    Bare,
    /// NATS, publish and subscribe.
    Nats,
}

/// What one frame is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Frame<'b> {
    /// A message.
    Message(&'b [u8]),
    /// Something that the protocol needs for itself.
    Other,
    /// The end, with its code.
    Close(u16),
}

impl Wire {
    /// Reads the flag's word.
    ///
    /// # Panics
    /// When there is no such wire.
    pub fn read(word: &str) -> Self {
        match word {
            "ws" => Self::Ws,
            "bare" => Self::Bare,
            "nats" => Self::Nats,
            other => panic!("no wire {other}"),
        }
    }

    /// What a connection says first, as this participant in this topic.
    pub fn hello(self, host: &str, topic: &str, participant: &str) -> String {
        match self {
            Self::Ws => format!(
                "GET /ws?topic={topic} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
                 Authorization: Bearer {}\r\n\r\n",
                token(participant)
            ),
            Self::Bare => String::new(),
            Self::Nats => format!("CONNECT {{\"verbose\":false}}\r\nSUB {topic} 1\r\nPING\r\n"),
        }
    }

    /// How long the answer to the hello is, once it is there whole.
    pub fn greeted(self, bytes: &[u8]) -> Option<usize> {
        let end: &[u8] = match self {
            Self::Ws => b"\r\n\r\n",
            Self::Bare => return Some(0),
            Self::Nats => b"PONG\r\n",
        };
        memmem::find(bytes, end).map(|at| at + end.len())
    }

    /// Writes a message, and gives the place of its own bytes.
    pub fn put(self, out: &mut Vec<u8>, topic: &str, message: &[u8]) {
        let len = u16::try_from(message.len())
            .expect("a short message")
            .to_be_bytes();
        match self {
            // The mask is zero: the server has its work with it, the load has not.
            Self::Ws => out.extend_from_slice(&[0x81, 0x80 | 126, len[0], len[1], 0, 0, 0, 0]),
            Self::Bare => out.extend_from_slice(&[0x81, 126, len[0], len[1]]),
            Self::Nats => {
                out.extend_from_slice(format!("PUB {topic} {}\r\n", message.len()).as_bytes());
            }
        }
        out.extend_from_slice(message);
        if self == Self::Nats {
            out.extend_from_slice(b"\r\n");
        }
    }

    /// The first frame and its length, if it is there whole.
    pub fn frame(self, bytes: &[u8]) -> Option<(Frame<'_>, usize)> {
        if self == Self::Nats {
            nats(bytes)
        } else {
            web_socket(bytes)
        }
    }
}

/// The token of a participant.
pub fn token(participant: &str) -> String {
    format!("token-of-{participant}-0123456789")
}

fn web_socket(bytes: &[u8]) -> Option<(Frame<'_>, usize)> {
    let (start, len) = match *bytes.get(1)? {
        126 => (
            4,
            usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?)),
        ),
        127 => (
            10,
            usize::try_from(u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)).ok()?,
        ),
        len => (2, usize::from(len)),
    };
    let body = bytes.get(start..start + len)?;
    let frame = match bytes[0] {
        0x81 => Frame::Message(body),
        0x88 => Frame::Close(
            body.first_chunk()
                .map_or(1005, |code| u16::from_be_bytes(*code)),
        ),
        _ => Frame::Other,
    };
    Some((frame, start + len))
}

fn nats(bytes: &[u8]) -> Option<(Frame<'_>, usize)> {
    let head = memmem::find(bytes, b"\r\n")?;
    let Some(rest) = bytes.strip_prefix(b"MSG ") else {
        return Some((Frame::Other, head + 2));
    };
    let words = std::str::from_utf8(&rest[..head - 4]).ok()?;
    let len: usize = words.rsplit(' ').next()?.parse().ok()?;
    let body = bytes.get(head + 2..head + 2 + len)?;
    bytes.get(head + 2 + len..head + 4 + len)?;
    Some((Frame::Message(body), head + 4 + len))
}
