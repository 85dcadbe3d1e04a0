//! Keyed hash chain: MACs of lines, MACs of the head, and their text forms.

use std::{fmt, str::FromStr};

use data_encoding::HEXLOWER;
use hmac::{Hmac, Mac as _};
use json::Object;
use sha2::Sha256;

/// HMAC-SHA256 of a line and the MAC of the line before it.
pub(super) type Mac = [u8; 32];

const LINE_PREFIX: &[u8] = br#"{"seq":"#;
const END: &[u8] = br#""end":true,"#;
const MAC_PREFIX: &[u8] = br#","mac":""#;
const MAC_SUFFIX: &[u8] = br#""}"#;
const MAC_DIGITS: usize = 64;

/// Bytes of one of the two slots in the file of the head.
pub(super) const SLOT_BYTES: usize = 256;

/// Head of the chain: the number and the MAC of the last entry. A file outside the log holds it,
/// and it prints as `SEQ:HEX` so that operators can keep it outside the machine. The default is the
/// head of an empty log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChainHead {
    /// Number of the last entry; 0 when there is none.
    pub seq: u64,
    pub(super) last: Mac,
}

/// A text is not a [`ChainHead`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a head has the form SEQ:HEX, a number and 64 hexadecimal digits, as `audit verify` prints it"
)]
pub struct ParseHeadError;

/// The two keys that are derived from the key in the journal.
#[derive(Clone)]
pub(super) struct Chain {
    lines: Hmac<Sha256>,
    heads: Hmac<Sha256>,
}

/// A line of the log, parsed as far as the chain needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChainLine<'a> {
    pub(super) seq: u64,
    /// The bytes that the MAC covers, besides the MAC of the line before.
    pub(super) covered: &'a [u8],
    pub(super) mac: Mac,
    /// Whether it is the last line of its group.
    pub(super) end: bool,
}

impl Chain {
    pub(super) fn new(key: &[u8; 32]) -> Chain {
        let derive =
            |name: &[u8]| keyed(&keyed(key).chain_update(name).finalize().into_bytes().into());
        Chain {
            lines: derive(b"audit lines"),
            heads: derive(b"audit head"),
        }
    }

    /// MAC of these bytes after the MAC `before`.
    pub(super) fn next_mac(&self, before: &Mac, covered: &[u8]) -> Mac {
        let mac = self
            .lines
            .clone()
            .chain_update(before)
            .chain_update(covered);
        mac.finalize().into_bytes().into()
    }

    /// Whether a line goes on with the chain after this head.
    pub(super) fn goes_on(&self, before: &ChainHead, line: &ChainLine<'_>) -> bool {
        before.seq.checked_add(1) == Some(line.seq)
            && self.next_mac(&before.last, line.covered) == line.mac
    }

    /// Writes a line after this head: number, mark of the last line of a group, body (members
    /// without braces) and MAC. Returns the new head.
    pub(super) fn write(
        &self,
        out: &mut Vec<u8>,
        before: &ChainHead,
        body: &[u8],
        end: bool,
    ) -> ChainHead {
        let seq = before.seq + 1;
        let start = out.len();
        out.extend_from_slice(LINE_PREFIX);
        out.extend_from_slice(itoa::Buffer::new().format(seq).as_bytes());
        out.push(b',');
        if end {
            out.extend_from_slice(END);
        }
        out.extend_from_slice(body);
        let last = self.next_mac(&before.last, out.get(start..).unwrap_or_default());
        out.extend_from_slice(MAC_PREFIX);
        let digits = out.len();
        out.resize(digits + MAC_DIGITS, 0);
        HEXLOWER.encode_mut(&last, out.get_mut(digits..).unwrap_or_default());
        out.extend_from_slice(MAC_SUFFIX);
        out.push(b'\n');
        ChainHead { seq, last }
    }

    /// A slot for the file of the head. `turn` counts the writes of the head.
    pub(super) fn slot(&self, head: &ChainHead, turn: u64) -> Vec<u8> {
        let mut slot = Vec::with_capacity(SLOT_BYTES);
        Object::write(&mut slot, |slot| {
            slot.number("turn", turn).number("seq", head.seq);
            slot.raw("last", &quoted_hex::<66>(&head.last));
            slot.raw("mac", &quoted_hex::<66>(&self.head_mac(head, turn)));
        });
        slot.resize(SLOT_BYTES - 1, b' ');
        slot.push(b'\n');
        slot
    }

    /// Reads a slot and its turn; `None` when the slot is torn or its MAC is wrong.
    pub(super) fn read_slot(&self, slot: &[u8]) -> Option<(ChainHead, u64)> {
        #[derive(serde::Deserialize)]
        struct Slot<'a> {
            turn: u64,
            seq: u64,
            last: &'a str,
            mac: &'a str,
        }
        let slot: Slot<'_> = serde_json::from_slice(slot).ok()?;
        let head = ChainHead {
            seq: slot.seq,
            last: parse_hex(slot.last.as_bytes())?,
        };
        (self.head_mac(&head, slot.turn) == parse_hex(slot.mac.as_bytes())?)
            .then_some((head, slot.turn))
    }
    fn head_mac(&self, head: &ChainHead, turn: u64) -> Mac {
        let mac = self
            .heads
            .clone()
            .chain_update(turn.to_le_bytes())
            .chain_update(head.seq.to_le_bytes());
        let mac = mac.chain_update(head.last);
        mac.finalize().into_bytes().into()
    }
}

impl<'a> ChainLine<'a> {
    /// The head of the chain after it.
    pub(super) fn head(&self) -> ChainHead {
        ChainHead {
            seq: self.seq,
            last: self.mac,
        }
    }

    /// Parses a line without its line feed; `None` when it does not have the form of a line of the
    /// log. Checks no MAC.
    pub(super) fn read(line: &'a [u8]) -> Option<ChainLine<'a>> {
        let tail = MAC_PREFIX.len() + MAC_DIGITS + MAC_SUFFIX.len();
        let (covered, tail) = line.split_at_checked(line.len().checked_sub(tail)?)?;
        let mac = parse_hex(tail.strip_prefix(MAC_PREFIX)?.strip_suffix(MAC_SUFFIX)?)?;
        let number = covered.strip_prefix(LINE_PREFIX)?;
        let digits = number.iter().position(|byte| *byte == b',')?;
        let seq = std::str::from_utf8(number.get(..digits)?)
            .ok()?
            .parse()
            .ok()?;
        let end = number.get(digits + 1..)?.starts_with(END);
        Some(ChainLine {
            seq,
            covered,
            mac,
            end,
        })
    }
}

impl fmt::Display for ChainHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, hex(&self.last))
    }
}

impl FromStr for ChainHead {
    type Err = ParseHeadError;
    fn from_str(text: &str) -> Result<ChainHead, ParseHeadError> {
        let (seq, last) = text.split_once(':').ok_or(ParseHeadError)?;
        Ok(ChainHead {
            seq: seq.parse().map_err(|_| ParseHeadError)?,
            last: parse_hex(last.as_bytes()).ok_or(ParseHeadError)?,
        })
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chain")
    }
}

/// HMAC with this key, padded with zeros to one block.
fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    let mut block = [0; 64];
    block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    <Hmac<Sha256> as hmac::digest::KeyInit>::new(&block.into())
}

/// Bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

/// Bytes as a JSON string of lower-case hexadecimal digits. `N` is twice their number plus two.
pub(super) fn quoted_hex<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [b'"'; N];
    HEXLOWER.encode_mut(bytes, out.get_mut(1..N - 1).unwrap_or_default());
    out
}

/// Parses exactly 32 bytes of lower-case hexadecimal digits.
pub(super) fn parse_hex(digits: &[u8]) -> Option<[u8; 32]> {
    HEXLOWER.decode(digits).ok()?.try_into().ok()
}
