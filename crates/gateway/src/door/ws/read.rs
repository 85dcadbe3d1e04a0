//! The reading side of a WebSocket: bytes of the socket to whole messages (RFC 6455), by a library that answers pings and
//! closes by itself. What it wants written is handed on: every byte on a socket takes the room's one path.

use std::cell::RefCell;
use std::io::{self, Read, Write};

use bytes::{Buf, Bytes};
use room::Close;
use tokio::net::TcpStream;
use tungstenite::error::{CapacityError, ProtocolError};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};
use tungstenite::{Error, Message};

/// Bytes read at once, into a place that all connections of a thread share.
const READ_BYTES: usize = 16 * 1024;
/// Bytes handed to the library at once. Small: an idle connection keeps them.
const PIECE_BYTES: usize = 256;

thread_local! {
    static SCRATCH: RefCell<[u8; READ_BYTES]> = const { RefCell::new([0; READ_BYTES]) };
}

/// What was read.
pub(super) enum Heard {
    /// Nothing more for now.
    Nothing,
    /// A whole text message.
    Text(Bytes),
    /// A frame to write: the answer to a ping.
    Answer(Bytes),
    /// A message that is no text.
    Wrong(&'static str),
    /// A message beyond the limit.
    TooLong,
    /// The other side is gone or has broken the protocol; the last frame to write.
    End(Bytes, Gone),
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    /// The other side said goodbye.
    Left,
    /// It was lost.
    Lost,
    /// The other side has broken the protocol.
    Broke(u16),
    /// What came over it is too much.
    Cut(Close),
}

/// Reads one connection.
pub(super) struct Reader {
    context: WebSocketContext,
    /// What was read and not yet handed to the library.
    lead: Bytes,
    answer: Vec<u8>,
}

impl Reader {
    /// `lead` was read with the handshake.
    pub(super) fn new(lead: Bytes, message_bytes_max: usize) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(PIECE_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(message_bytes_max))
            .max_frame_size(Some(message_bytes_max));
        // Even an empty lead keeps the buffer that the handshake was read with.
        let lead = if lead.is_empty() { Bytes::new() } else { lead };
        Self { context: WebSocketContext::new(Role::Server, Some(config)), lead, answer: Vec::new() }
    }

    /// The next message, without waiting.
    pub(super) fn next(&mut self, stream: &TcpStream) -> Heard {
        if !self.answer.is_empty() {
            return Heard::Answer(std::mem::take(&mut self.answer).into());
        }
        let mut both = Both { lead: &mut self.lead, stream, answer: &mut self.answer };
        let heard = loop {
            match self.context.read(&mut both) {
                Ok(Message::Text(text)) => break Heard::Text(text.into()),
                Ok(Message::Binary(_)) => {
                    break Heard::Wrong("an envelope is a text message, not a binary one");
                }
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
                Ok(Message::Close(close)) => {
                    // The answer to it is ready once it is asked for.
                    let _ = self.context.flush(&mut both);
                    // So a code is read that nobody may send.
                    let broke = close.is_some_and(|close| close.code == CloseCode::Protocol);
                    let gone = if broke { Gone::Broke(CloseCode::Protocol.into()) } else { Gone::Left };
                    break Heard::End(Bytes::new(), gone);
                }
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => break Heard::Nothing,
                Err(Error::Capacity(CapacityError::MessageTooLong { .. })) => break Heard::TooLong,
                Err(error) => break last_word(&error),
            }
        };
        match heard {
            Heard::End(last, gone) if last.is_empty() => {
                Heard::End(std::mem::take(&mut self.answer).into(), gone)
            }
            Heard::Nothing if !self.answer.is_empty() => {
                Heard::Answer(std::mem::take(&mut self.answer).into())
            }
            heard => heard,
        }
    }
}

/// What a peer that broke the protocol is told.
fn last_word(error: &Error) -> Heard {
    let code: u16 = match error {
        Error::Utf8(_) => 1007,
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            return Heard::End(Bytes::new(), Gone::Lost);
        }
        Error::Protocol(_) => 1002,
        _ => return Heard::End(Bytes::new(), Gone::Lost),
    };
    let [high, low] = code.to_be_bytes();
    Heard::End(Bytes::copy_from_slice(&[0x88, 2, high, low]), Gone::Broke(code))
}

/// The socket as the library wants it: it reads without waiting, and what it writes is kept.
struct Both<'b> {
    lead: &'b mut Bytes,
    stream: &'b TcpStream,
    answer: &'b mut Vec<u8>,
}

impl Read for Both<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.lead.is_empty() {
            *self.lead = SCRATCH.with_borrow_mut(|scratch| {
                let count = self.stream.try_read(scratch)?;
                io::Result::Ok(Bytes::copy_from_slice(scratch.get(..count).unwrap_or_default()))
            })?;
        }
        let count = self.lead.len().min(into.len());
        self.lead.copy_to_slice(into.get_mut(..count).unwrap_or_default());
        if self.lead.is_empty() {
            *self.lead = Bytes::new();
        }
        Ok(count)
    }
}

impl Write for Both<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.answer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
