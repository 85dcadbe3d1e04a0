//! Reading side of a WebSocket: bytes of the socket to whole messages (RFC 6455).
//!
//! A library reads frames, and answers pings and closes. Its answers are handed on, because every byte on a socket takes the
//! room's one path.

use std::cell::RefCell;
use std::io::{self, Read, Write};

use bytes::{Buf, Bytes};
use room::Close;
use tokio::net::TcpStream;
use tungstenite::error::{CapacityError, ProtocolError};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};
use tungstenite::{Error, Message};

/// Bytes read at once, into a buffer that all connections of a thread share.
const READ_BYTES: usize = 16 * 1024;
/// Bytes handed to the library at once. Small: an idle connection keeps them.
const PIECE_BYTES: usize = 256;

/// Bytes of the longest control frame of a client (RFC 6455, section 5.5).
const CONTROL_BYTES_MAX: usize = 125 + 6;

thread_local! {
    static SCRATCH: RefCell<[u8; READ_BYTES]> = const { RefCell::new([0; READ_BYTES]) };
}

/// What was read.
pub(super) enum Received {
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
    /// The client has left or has broken the protocol; the last frame to write.
    End(Bytes, Departure),
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Departure {
    /// The client closed it.
    Left,
    /// The connection was lost.
    Lost,
    /// The client has broken the protocol.
    Broke(u16),
    /// The gateway closed it, because of what the client sent.
    Cut(Close),
}

/// Reads one connection.
pub(super) struct Reader {
    context: WebSocketContext,
    /// Bytes that were read and not yet handed to the library.
    lead: Bytes,
    answer: Vec<u8>,
    /// Bytes handed to the library since the last whole message.
    handed: usize,
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
        Self {
            context: WebSocketContext::new(Role::Server, Some(config)),
            lead,
            answer: Vec::new(),
            handed: 0,
        }
    }

    /// Bytes of a message that has not arrived as a whole, about.
    pub(super) fn partial_bytes(&self) -> usize {
        self.handed
    }

    /// The next message, without waiting.
    pub(super) fn next(&mut self, stream: &TcpStream) -> Received {
        if !self.answer.is_empty() {
            return Received::Answer(std::mem::take(&mut self.answer).into());
        }
        let mut both =
            Both { lead: &mut self.lead, stream, answer: &mut self.answer, handed: &mut self.handed };
        let received = loop {
            match self.context.read(&mut both) {
                Ok(Message::Text(text)) => {
                    *both.handed = 0;
                    break Received::Text(text.into());
                }
                Ok(Message::Binary(_)) => {
                    *both.handed = 0;
                    break Received::Wrong("an envelope is a text message, not a binary one");
                }
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {
                    *both.handed = both.handed.saturating_sub(CONTROL_BYTES_MAX);
                }
                Ok(Message::Close(close)) => {
                    // The answer to it is ready once it is asked for.
                    let _ = self.context.flush(&mut both);
                    // The library reads a code that no client may send as this one.
                    let broke = close.is_some_and(|close| close.code == CloseCode::Protocol);
                    let departure =
                        if broke { Departure::Broke(CloseCode::Protocol.into()) } else { Departure::Left };
                    break Received::End(Bytes::new(), departure);
                }
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    break Received::Nothing;
                }
                Err(Error::Capacity(CapacityError::MessageTooLong { .. })) => break Received::TooLong,
                Err(error) => break last_frame(&error),
            }
        };
        match received {
            Received::End(last, departure) if last.is_empty() => {
                Received::End(std::mem::take(&mut self.answer).into(), departure)
            }
            Received::Nothing if !self.answer.is_empty() => {
                Received::Answer(std::mem::take(&mut self.answer).into())
            }
            received => received,
        }
    }
}

/// The last frame to a client that broke the protocol.
fn last_frame(error: &Error) -> Received {
    let code: u16 = match error {
        Error::Utf8(_) => 1007,
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            return Received::End(Bytes::new(), Departure::Lost);
        }
        Error::Protocol(_) => 1002,
        _ => return Received::End(Bytes::new(), Departure::Lost),
    };
    let [high, low] = code.to_be_bytes();
    Received::End(Bytes::copy_from_slice(&[0x88, 2, high, low]), Departure::Broke(code))
}

/// The socket as the library uses it: it reads without waiting, and keeps what is written.
struct Both<'b> {
    lead: &'b mut Bytes,
    stream: &'b TcpStream,
    answer: &'b mut Vec<u8>,
    handed: &'b mut usize,
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
        *self.handed += count;
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
