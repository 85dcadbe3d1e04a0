//! The keyed chain: what ties each line to the one before it, and the head to the last. Must not know files.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, Mac as _};
use json::Object;
use sha2::Sha256;

/// What a line's bytes and all before it come to under the key: HMAC-SHA256.
pub(super) type Mac = [u8; 32];

const LINE_PREFIX: &[u8] = br#"{"seq":"#;
const END: &[u8] = br#""end":true,"#;
const MAC_PREFIX: &[u8] = br#","mac":""#;
const MAC_SUFFIX: &[u8] = br#""}"#;
const MAC_DIGITS: usize = 64;

/// Bytes that one of the head's two slots takes.
pub(super) const SLOT_BYTES: usize = 256;

/// How far the log reaches: the number of its last entry, and what the chain comes to there. Kept outside the log, and
/// shown so that it can be kept outside the machine, as `SEQ:HEX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Number of the last entry; 0 when there is none.
    pub seq: u64,
    pub(super) last: Mac,
}

/// Why a text is no [`Head`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a head is written SEQ:HEX, a number and 64 hexadecimal digits, as `audit verify` prints it")]
pub struct NoHead;

/// The two keys that follow from the journal's one.
#[derive(Clone)]
pub(super) struct Chain {
    lines: Hmac<Sha256>,
    heads: Hmac<Sha256>,
}

/// A line as the chain sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link<'a> {
    pub(super) seq: u64,
    /// The bytes that the mac is made of, beside the mac before it.
    pub(super) covered: &'a [u8],
    pub(super) mac: Mac,
    /// Whether it is the last of a group that was written at once.
    pub(super) end: bool,
}

impl Chain {
    pub(super) fn new(key: &[u8; 32]) -> Chain {
        let derive = |name: &[u8]| keyed(&keyed(key).chain_update(name).finalize().into_bytes().into());
        Chain { lines: derive(b"audit lines"), heads: derive(b"audit head") }
    }

    /// What the chain comes to with these bytes after `before`.
    pub(super) fn after(&self, before: &Mac, covered: &[u8]) -> Mac {
        let mac = self.lines.clone().chain_update(before).chain_update(covered);
        mac.finalize().into_bytes().into()
    }

    /// Writes a line after this head: number, whether it is the last of its group, body (members without braces), and
    /// what the chain comes to. Gives the head with it.
    pub(super) fn write(&self, out: &mut Vec<u8>, before: &Head, body: &[u8], end: bool) -> Head {
        let seq = before.seq + 1;
        let start = out.len();
        out.extend_from_slice(LINE_PREFIX);
        push_number(out, seq);
        out.push(b',');
        if end {
            out.extend_from_slice(END);
        }
        out.extend_from_slice(body);
        let last = self.after(&before.last, out.get(start..).unwrap_or_default());
        out.extend_from_slice(MAC_PREFIX);
        push_hex(out, &last);
        out.extend_from_slice(MAC_SUFFIX);
        out.push(b'\n');
        Head { seq, last }
    }

    /// A slot of the head's file. `turn` counts how often the head was written.
    pub(super) fn slot(&self, head: &Head, turn: u64) -> Vec<u8> {
        let mut slot = Vec::with_capacity(SLOT_BYTES);
        Object::write(&mut slot, |slot| {
            slot.number("turn", turn).number("seq", head.seq);
            slot.raw("last", &quoted_hex::<66>(&head.last));
            slot.raw("mac", &quoted_hex::<66>(&self.seal(head, turn)));
        });
        slot.resize(SLOT_BYTES - 1, b' ');
        slot.push(b'\n');
        slot
    }

    /// Reads a slot and its turn; `None` when it is torn or not ours.
    pub(super) fn read_slot(&self, slot: &[u8]) -> Option<(Head, u64)> {
        #[derive(serde::Deserialize)]
        struct Slot<'a> {
            turn: u64,
            seq: u64,
            last: &'a str,
            mac: &'a str,
        }
        let slot: Slot<'_> = serde_json::from_slice(slot).ok()?;
        let head = Head { seq: slot.seq, last: unhex(slot.last.as_bytes())? };
        (self.seal(&head, slot.turn) == unhex(slot.mac.as_bytes())?).then_some((head, slot.turn))
    }

    fn seal(&self, head: &Head, turn: u64) -> Mac {
        let mac = self.heads.clone().chain_update(turn.to_le_bytes()).chain_update(head.seq.to_le_bytes());
        let mac = mac.chain_update(head.last);
        mac.finalize().into_bytes().into()
    }
}

impl<'a> Link<'a> {
    /// Reads a line without its line feed; `None` when it has not the form of one.
    pub(super) fn read(line: &'a [u8]) -> Option<Link<'a>> {
        let tail = MAC_PREFIX.len() + MAC_DIGITS + MAC_SUFFIX.len();
        let (covered, tail) = line.split_at_checked(line.len().checked_sub(tail)?)?;
        let mac = unhex(tail.strip_prefix(MAC_PREFIX)?.strip_suffix(MAC_SUFFIX)?)?;
        let number = covered.strip_prefix(LINE_PREFIX)?;
        let digits = number.iter().position(|byte| *byte == b',')?;
        let seq = std::str::from_utf8(number.get(..digits)?).ok()?.parse().ok()?;
        let end = number.get(digits + 1..)?.starts_with(END);
        Some(Link { seq, covered, mac, end })
    }
}

impl Head {
    /// Before the first entry.
    pub(super) const START: Head = Head { seq: 0, last: [0; 32] };
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, hex(&self.last))
    }
}

impl FromStr for Head {
    type Err = NoHead;

    fn from_str(text: &str) -> Result<Head, NoHead> {
        let (seq, last) = text.split_once(':').ok_or(NoHead)?;
        Ok(Head { seq: seq.parse().map_err(|_| NoHead)?, last: unhex(last.as_bytes()).ok_or(NoHead)? })
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chain")
    }
}

/// A key of one block: HMAC fills shorter ones up with zeros.
fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    let mut block = [0; 64];
    block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    <Hmac<Sha256> as hmac::digest::KeyInit>::new(&block.into())
}

/// Bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(2 * bytes.len());
    push_hex(&mut out, bytes);
    String::from_utf8(out).unwrap_or_default()
}

/// Bytes as a JSON string of lower-case hexadecimal digits. `N` is twice their number and two.
pub(super) fn quoted_hex<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [b'"'; N];
    let inside = out.get_mut(1..N - 1).unwrap_or_default();
    write_hex(inside, bytes);
    out
}

fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + 2 * bytes.len(), 0);
    write_hex(out.get_mut(start..).unwrap_or_default(), bytes);
}

fn write_hex(out: &mut [u8], bytes: &[u8]) {
    let digit = |half: u8| if half < 10 { b'0' + half } else { b'a' + half - 10 };
    let (pairs, _) = out.as_chunks_mut::<2>();
    for (pair, byte) in pairs.iter_mut().zip(bytes) {
        *pair = [digit(byte >> 4), digit(byte & 15)];
    }
}

/// Exactly 32 bytes from lower-case hexadecimal digits.
pub(super) fn unhex(digits: &[u8]) -> Option<[u8; 32]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; 32];
    let (pairs, rest) = digits.as_chunks::<2>();
    if pairs.len() != bytes.len() || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(bytes)
}

fn push_number(out: &mut Vec<u8>, mut number: u64) {
    let start = out.len();
    loop {
        out.push(b'0' + u8::try_from(number % 10).unwrap_or_default());
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.get_mut(start..).unwrap_or_default().reverse();
}
