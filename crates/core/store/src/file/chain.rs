//! Numbers and checksums of the journal's lines: a changed, lost, moved or repeated line does not
//! fit the line before it.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

const PREFIX: &[u8] = br#"{"n":"#;
const SUM_PREFIX: &[u8] = br#","sum":""#;
const SUM_SUFFIX: &[u8] = br#"","#;
const SUM_BYTES: usize = 8;
const SUM_DIGITS: usize = 2 * SUM_BYTES;

/// Start of the SHA-256 of a line, its number and the sum of the line before it.
pub(super) type Sum = [u8; SUM_BYTES];

/// The lines so far: how many, and the sum of the last one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) lines: u64,
    pub(super) sum: Sum,
}

impl Chain {
    /// Writes the next line. `body` is a JSON object with a member.
    pub(super) fn seal(&mut self, body: &[u8], out: &mut Vec<u8>) {
        let members = body.strip_prefix(b"{").unwrap_or(body);
        self.advance(members);
        out.extend(PREFIX);
        out.extend((self.lines - 1).to_string().bytes());
        out.extend(SUM_PREFIX);
        out.extend(HEXLOWER.encode(&self.sum).bytes());
        out.extend(SUM_SUFFIX);
        out.extend(members);
        out.push(b'\n');
    }

    /// Checks that a line, without its line feed, is the next one.
    pub(super) fn check(&mut self, line: &[u8]) -> Result<(), String> {
        let parts = split(line).ok_or("it has no number and no checksum")?;
        if parts.number != self.lines.to_string().as_bytes() {
            let number = String::from_utf8_lossy(parts.number);
            return Err(format!(
                "its number is {number} in place of {}: lines are missing or moved",
                self.lines
            ));
        }
        self.advance(parts.members);
        if parts.sum == HEXLOWER.encode(&self.sum).as_bytes() {
            Ok(())
        } else {
            Err("its checksum does not match: the line or one before it was changed".to_owned())
        }
    }

    fn advance(&mut self, members: &[u8]) {
        let hash = Sha256::new()
            .chain_update(self.sum)
            .chain_update(self.lines.to_le_bytes());
        let hash = hash.chain_update(members).finalize();
        self.sum
            .iter_mut()
            .zip(hash)
            .for_each(|(sum, byte)| *sum = byte);
        self.lines += 1;
    }
}

struct Parts<'l> {
    number: &'l [u8],
    sum: &'l [u8],
    members: &'l [u8],
}

fn split(line: &[u8]) -> Option<Parts<'_>> {
    let rest = line.strip_prefix(PREFIX)?;
    let (number, rest) =
        rest.split_at_checked(rest.iter().position(|byte| !byte.is_ascii_digit())?)?;
    let (sum, rest) = rest
        .strip_prefix(SUM_PREFIX)?
        .split_at_checked(SUM_DIGITS)?;
    Some(Parts {
        number,
        sum,
        members: rest.strip_prefix(SUM_SUFFIX)?,
    })
}

/// The members of a line behind its number and its checksum.
pub(super) fn members(line: &[u8]) -> Option<&[u8]> {
    split(line).map(|parts| parts.members)
}

/// Whether a text begins as a line with a number.
pub(super) fn is_numbered(text: &[u8]) -> bool {
    text.starts_with(PREFIX)
}

/// Whether bytes are a beginning of the line after these lines, as an interrupted write leaves it.
pub(super) fn is_torn(chain: Chain, tail: &[u8]) -> bool {
    let start = [PREFIX, chain.lines.to_string().as_bytes(), SUM_PREFIX].concat();
    tail.iter().zip(&start).all(|(is, should)| is == should)
}
