//! Reading side of a WebSocket: bytes of the socket to whole messages (RFC 6455).
//!
//! A library reads frames, and answers pings and closes. Its answers are handed on, because every
//! byte on a socket takes the room's one path.

use std::cell::RefCell;
use std::io::{self, Cursor, Read, Write};

use bytes::{Buf, Bytes};
use room::Close;
use tokio::net::TcpStream;
use tungstenite::error::{CapacityError, ProtocolError};
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{CloseCode, OpCode};
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};
use tungstenite::{Error, Message};

/// Bytes read at once, into a buffer that all connections of a thread share.
const READ_BYTES: usize = 16 * 1024;
/// Bytes handed to the library at once.
const PIECE_BYTES: usize = 256;

/// Bytes of the longest control frame of a client (RFC 6455, section 5.5).
const CONTROL_BYTES_MAX: usize = 125 + 6;

thread_local! {
    static SCRATCH: RefCell<[u8; READ_BYTES]> = const { RefCell::new([0; READ_BYTES]) };
}

/// Result of one read of a client's frames.
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

/// End of a connection.
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
    /// The library, from the first byte of a message to the last: a silent connection keeps neither
    /// it nor the memory of the longest message.
    context: Option<Box<WebSocketContext>>,
    message_bytes_max: usize,
    /// Bytes that were read and not yet handed to the library.
    lead: Bytes,
    place: Place,
    answer: Vec<u8>,
    /// Bytes handed to the library since the last whole message.
    handed: usize,
}

impl Reader {
    /// `lead` was read with the handshake.
    pub(super) fn new(lead: Bytes, message_bytes_max: usize) -> Self {
        // Even an empty lead keeps the buffer that the handshake was read with.
        let lead = if lead.is_empty() { Bytes::new() } else { lead };
        Self {
            context: None,
            message_bytes_max,
            lead,
            place: Place::default(),
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
        let Self {
            context,
            message_bytes_max,
            lead,
            place,
            answer,
            handed,
        } = self;
        let library = context.get_or_insert_with(|| library(*message_bytes_max));
        let mut both = Both {
            lead,
            stream,
            place,
            answer,
            handed,
        };
        let received = loop {
            match library.read(&mut both) {
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
                    let _ = library.flush(&mut both);
                    // The library reads a code that no client may send as this one.
                    let broke = close.is_some_and(|close| close.code == CloseCode::Protocol);
                    let departure = if broke {
                        Departure::Broke(CloseCode::Protocol.into())
                    } else {
                        Departure::Left
                    };
                    break Received::End(Bytes::new(), departure);
                }
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    break Received::Nothing;
                }
                Err(Error::Capacity(CapacityError::MessageTooLong { .. })) => {
                    break Received::TooLong;
                }
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
            Received::Nothing => {
                if self.place.is_between_messages() {
                    self.context = None;
                }
                Received::Nothing
            }
            received => received,
        }
    }
}

fn library(message_bytes_max: usize) -> Box<WebSocketContext> {
    let config = WebSocketConfig::default()
        .read_buffer_size(PIECE_BYTES)
        .write_buffer_size(0)
        .max_message_size(Some(message_bytes_max))
        .max_frame_size(Some(message_bytes_max));
    Box::new(WebSocketContext::new(Role::Server, Some(config)))
}

/// End, in the client's frames, of the bytes that the library has. It gets a header only as a
/// whole, and no byte beyond a frame together with the frame's last ones.
#[derive(Default)]
struct Place {
    /// Bytes that the frame still has.
    left: u64,
    /// The last frame of a message has not begun.
    open: bool,
}

impl Place {
    fn is_between_messages(&self) -> bool {
        self.left == 0 && !self.open
    }

    /// Begins the frame whose header is here. False if the header has not arrived as a whole.
    fn begin(&mut self, bytes: &[u8]) -> bool {
        let mut cursor = Cursor::new(bytes);
        match FrameHeader::parse(&mut cursor) {
            Ok(None) => return false,
            Ok(Some((header, payload))) => {
                self.left = cursor.position().saturating_add(payload);
                if matches!(header.opcode, OpCode::Data(_)) {
                    self.open = !header.is_final;
                }
            }
            // The library finds the same fault.
            Err(_) => self.left = u64::MAX,
        }
        true
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
    Received::End(
        Bytes::copy_from_slice(&[0x88, 2, high, low]),
        Departure::Broke(code),
    )
}

/// The socket as the library uses it: it reads without waiting, and keeps what is written.
struct Both<'b> {
    lead: &'b mut Bytes,
    stream: &'b TcpStream,
    place: &'b mut Place,
    answer: &'b mut Vec<u8>,
    handed: &'b mut usize,
}

impl Both<'_> {
    /// Bytes that the client has sent since; empty at its end.
    fn receive(&self) -> io::Result<Bytes> {
        SCRATCH.with_borrow_mut(|scratch| {
            let count = self.stream.try_read(scratch)?;
            Ok(Bytes::copy_from_slice(
                scratch.get(..count).unwrap_or_default(),
            ))
        })
    }
}

impl Read for Both<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.lead.is_empty() {
            *self.lead = self.receive()?;
        }
        while self.place.left == 0 && !self.lead.is_empty() && !self.place.begin(self.lead) {
            let more = self.receive()?;
            if more.is_empty() {
                // The library sees the end within the header.
                self.place.left = self.lead.len() as u64;
            }
            *self.lead = [&**self.lead, &more].concat().into();
        }
        let left = usize::try_from(self.place.left).unwrap_or(usize::MAX);
        let count = self.lead.len().min(into.len()).min(left);
        self.place.left -= count as u64;
        *self.handed += count;
        self.lead
            .copy_to_slice(into.get_mut(..count).unwrap_or_default());
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

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    const MESSAGE_BYTES_MAX: usize = 1 << 20;

    /// A client's frame; its mask changes nothing.
    fn frame(head: u8, payload: &[u8]) -> Vec<u8> {
        let len = payload.len();
        let mut out = vec![head, 0x80 | u8::try_from(len).unwrap_or_default().min(126)];
        if len > 125 {
            out[1] = 0x80 | 126;
            out.extend(u16::try_from(len).unwrap().to_be_bytes());
        }
        out.extend([0; 4]);
        out.extend(payload);
        out
    }

    /// Reads all that there is. Adds the texts.
    fn read(reader: &mut Reader, stream: &TcpStream, texts: &mut Vec<Bytes>) {
        loop {
            match reader.next(stream) {
                Received::Text(text) => texts.push(text),
                Received::Answer(pong) => assert_eq!(pong[0], 0x8a),
                Received::Nothing => return,
                _ => panic!("none of these frames"),
            }
        }
    }

    #[tokio::test]
    async fn between_messages_a_reader_keeps_nothing_of_the_library() {
        let long = vec![b'x'; 300];
        // A whole message; one of three frames, with a ping between; a whole one.
        let frames = [
            (0x81, &b"one"[..]),
            (0x01, b""),
            (0x89, b"ping"),
            (0x00, long.as_slice()),
            (0x80, b"y"),
            (0x81, b"two"),
        ];
        let frames = frames.map(|(head, payload)| frame(head, payload));
        let bytes = frames.concat();
        let ends: Vec<usize> = (0..=frames.len())
            .map(|count| frames[..count].concat().len())
            .collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        for split in 0..=bytes.len() {
            let mut client = TcpStream::connect(listener.local_addr().unwrap())
                .await
                .unwrap();
            let stream = listener.accept().await.unwrap().0;
            let mut reader =
                Reader::new(Bytes::copy_from_slice(&bytes[..split]), MESSAGE_BYTES_MAX);
            let mut texts = Vec::new();
            read(&mut reader, &stream, &mut texts);
            // In a whole frame after its header, or between the frames of a message.
            let begun = ends.iter().rposition(|end| *end <= split).unwrap();
            let header = if begun == 3 { 8 } else { 6 };
            let within = begun < frames.len() && split >= ends[begun] + header;
            let open = (2..=4).contains(&begun);
            assert_eq!(
                reader.context.is_some(),
                within || open,
                "{split} of {ends:?}"
            );
            client.write_all(&bytes[split..]).await.unwrap();
            while texts.len() < 3 {
                stream.readable().await.unwrap();
                read(&mut reader, &stream, &mut texts);
            }
            assert_eq!(
                texts,
                [b"one", [&long[..], b"y"].concat().as_slice(), b"two"]
            );
            assert!(reader.context.is_none() && reader.lead.is_empty());
        }
    }

    #[tokio::test]
    async fn a_client_that_ends_within_a_header_is_lost() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let stream = listener.accept().await.unwrap().0;
        let mut reader = Reader::new(Bytes::from_static(&[0x81, 0xfe, 1]), MESSAGE_BYTES_MAX);
        assert!(matches!(reader.next(&stream), Received::Nothing));
        drop(client);
        stream.readable().await.unwrap();
        assert!(matches!(
            reader.next(&stream),
            Received::End(_, Departure::Lost)
        ));
    }
}
