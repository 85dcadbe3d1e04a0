//! Frames of channels between two nodes, as bytes.

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::seal::CONTENT_BYTES_MAX;

/// Bytes of a data frame before its content.
const DATA_HEAD_BYTES: usize = 1 + 1 + 8 + 8;
/// The most bytes of content in one data frame, so that channels take turns.
pub(super) const CHUNK_BYTES_MAX: usize = 64 * 1024;
const _: () = assert!(CHUNK_BYTES_MAX + DATA_HEAD_BYTES <= CONTENT_BYTES_MAX);

const DATA: u8 = 1;
const ACKNOWLEDGE: u8 = 2;
const PROBE: u8 = 3;
const RESET: u8 = 4;
const RESET_SEEN: u8 = 5;

const OPENED_BY_SENDER: u8 = 1;
const ENDS_MESSAGE: u8 = 2;
const ENDS_STREAM: u8 = 4;
const IS_TUNNEL: u8 = 8;
const HAS_GAP: u8 = 16;

/// A channel between two incarnations: each of them counts those that it opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ChannelId {
    pub(super) is_own: bool,
    pub(super) number: u64,
}

/// The use of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Call,
    Tunnel,
}

/// A part of what one side says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) bytes: Bytes,
    pub(super) ends_message: bool,
    pub(super) ends_stream: bool,
}

/// The reason for which a channel was closed before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reset {
    /// Its side does not want the rest.
    Cancelled,
    /// The other side has too many.
    Busy,
    /// It is not known any more.
    Unknown,
    /// It took more than its share, or broke the rules.
    Overrun,
}

/// The content of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Data {
        purpose: Purpose,
        number: u64,
        piece: Piece,
    },
    /// All pieces before `next` were received, and so many bytes may be sent in all.
    Acknowledge {
        next: u64,
        may: u64,
        has_gap: bool,
    },
    /// A wish for an acknowledgement.
    Probe,
    Reset(Reset),
    ResetSeen,
}

/// A frame of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) channel: ChannelId,
    pub(super) content: Content,
}

impl Frame {
    pub(super) fn encode(&self) -> Bytes {
        let (kind, flags) = self.head();
        let mut out = BytesMut::with_capacity(DATA_HEAD_BYTES + 16 + self.content_bytes());
        out.put_u8(kind);
        out.put_u8(flags | flag(self.channel.is_own, OPENED_BY_SENDER));
        out.put_u64(self.channel.number);
        match &self.content {
            Content::Data { number, piece, .. } => {
                out.put_u64(*number);
                out.put_slice(&piece.bytes);
            }
            Content::Acknowledge { next, may, .. } => {
                out.put_u64(*next);
                out.put_u64(*may);
            }
            Content::Reset(why) => out.put_u8(why.code()),
            Content::Probe | Content::ResetSeen => {}
        }
        out.freeze()
    }

    fn head(&self) -> (u8, u8) {
        match &self.content {
            Content::Data { purpose, piece, .. } => {
                let flags = flag(piece.ends_message, ENDS_MESSAGE)
                    | flag(piece.ends_stream, ENDS_STREAM)
                    | flag(*purpose == Purpose::Tunnel, IS_TUNNEL);
                (DATA, flags)
            }
            Content::Acknowledge { has_gap, .. } => (ACKNOWLEDGE, flag(*has_gap, HAS_GAP)),
            Content::Probe => (PROBE, 0),
            Content::Reset(_) => (RESET, 0),
            Content::ResetSeen => (RESET_SEEN, 0),
        }
    }

    fn content_bytes(&self) -> usize {
        match &self.content {
            Content::Data { piece, .. } => piece.bytes.len(),
            _ => 0,
        }
    }

    /// The frame that the other side encoded; `None` when these bytes are none.
    pub(super) fn decode(bytes: &Bytes) -> Option<Self> {
        let ([kind, flags], rest) = bytes.split_first_chunk::<2>()?;
        let (number, rest) = split_u64(rest)?;
        let channel = ChannelId {
            is_own: flags & OPENED_BY_SENDER == 0,
            number,
        };
        let flags = flags & !OPENED_BY_SENDER;
        let content = match (*kind, rest) {
            (DATA, rest) => data(flags, bytes, rest),
            (ACKNOWLEDGE, rest) => acknowledgement(flags, rest),
            (PROBE, []) if flags == 0 => Some(Content::Probe),
            (RESET, [code]) if flags == 0 => Reset::of(*code).map(Content::Reset),
            (RESET_SEEN, []) if flags == 0 => Some(Content::ResetSeen),
            _ => None,
        };
        content.map(|content| Self { channel, content })
    }
}

fn data(flags: u8, frame: &Bytes, rest: &[u8]) -> Option<Content> {
    let (number, content) = split_u64(rest)?;
    let has = |wanted: u8| flags & wanted != 0;
    let is_known = flags & !(ENDS_MESSAGE | ENDS_STREAM | IS_TUNNEL) == 0;
    if !is_known || content.len() > CHUNK_BYTES_MAX {
        return None;
    }
    Some(Content::Data {
        purpose: if has(IS_TUNNEL) {
            Purpose::Tunnel
        } else {
            Purpose::Call
        },
        number,
        piece: Piece {
            bytes: frame.slice_ref(content),
            ends_message: has(ENDS_MESSAGE),
            ends_stream: has(ENDS_STREAM),
        },
    })
}

fn acknowledgement(flags: u8, rest: &[u8]) -> Option<Content> {
    let (next, rest) = split_u64(rest)?;
    let (may, rest) = split_u64(rest)?;
    let is_known = flags & !HAS_GAP == 0 && rest.is_empty();
    is_known.then_some(Content::Acknowledge {
        next,
        may,
        has_gap: flags & HAS_GAP != 0,
    })
}

impl Reset {
    fn code(self) -> u8 {
        match self {
            Self::Cancelled => 1,
            Self::Busy => 2,
            Self::Unknown => 3,
            Self::Overrun => 4,
        }
    }

    fn of(code: u8) -> Option<Self> {
        let all = [Self::Cancelled, Self::Busy, Self::Unknown, Self::Overrun];
        all.into_iter().find(|one| one.code() == code)
    }
}

fn flag(is_set: bool, flag: u8) -> u8 {
    if is_set { flag } else { 0 }
}

fn split_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn contents() -> impl Strategy<Value = Content> {
        let piece = (any::<Vec<u8>>(), any::<bool>(), any::<bool>()).prop_map(
            |(bytes, ends_message, ends_stream)| Piece {
                bytes: bytes.into(),
                ends_message,
                ends_stream,
            },
        );
        let purpose = prop_oneof![Just(Purpose::Call), Just(Purpose::Tunnel)];
        let reset = (1_u8..5).prop_map(|code| Content::Reset(Reset::of(code).unwrap()));
        prop_oneof![
            (purpose, any::<u64>(), piece).prop_map(|(purpose, number, piece)| Content::Data {
                purpose,
                number,
                piece
            }),
            any::<(u64, u64, bool)>().prop_map(|(next, may, has_gap)| Content::Acknowledge {
                next,
                may,
                has_gap
            }),
            Just(Content::Probe),
            reset,
            Just(Content::ResetSeen),
        ]
    }

    proptest! {
        #[test]
        fn a_frame_is_read_as_the_other_side_wrote_it(
            is_own: bool, number: u64, content in contents(),
        ) {
            let channel = ChannelId { is_own, number };
            let frame = Frame { channel, content };
            let read = Frame::decode(&frame.encode()).unwrap();
            // What is one side's own is not the other's.
            prop_assert_eq!(read.channel, ChannelId { is_own: !is_own, number });
            prop_assert_eq!(read.content, frame.content);
        }

        #[test]
        fn no_bytes_panic_and_no_other_bytes_are_the_same_frame(bytes: Vec<u8>, kind in 0_u8..7) {
            let bytes: Bytes = [&[kind, 0][..], &bytes].concat().into();
            if let Some(mut frame) = Frame::decode(&bytes) {
                frame.channel.is_own = !frame.channel.is_own;
                prop_assert_eq!(frame.encode(), bytes);
            }
        }
    }
}
