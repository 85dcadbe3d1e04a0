//! Names and numbers of participants, links, operations and topics.

use std::{fmt, str::FromStr, sync::Arc};

use data_encoding::HEXLOWER;
use unicode_normalization::is_nfkc;
use unicode_security::mixed_script::AugmentedScriptSet;
use unicode_security::{MixedScript, skeleton};

use crate::context::is_hidden;

/// The longest participant id, in bytes.
pub const PARTICIPANT_BYTES_MAX: usize = 128;
/// The digits of the number of an operation as text, which are hexadecimal.
const OPERATION_DIGITS: usize = 32;
/// The longest topic name, in bytes.
pub(crate) const TOPIC_BYTES_MAX: usize = 64;
/// The gateway's own participant, the addressee of MCP callers' requests.
pub const GATEWAY: &str = "portmoot";
/// The beginning of guests' names: participants without a token. No configured participant has such
/// a name.
pub const ANONYMOUS_PREFIX: &str = "anonymous-";
/// The sender of system messages. Never a participant.
pub const SYSTEM: &str = "system:gateway";
/// The name under which rules decide proposals, on the authority of their authors. Never a
/// participant.
pub const RULES: &str = "rules";
/// Names of the gateway's own, with what is below them.
const RESERVED: [&str; 3] = [GATEWAY, RULES, "system"];

/// The account on which the participant of this name has its shares: its own, or the one of all
/// guests.
#[must_use]
pub fn account(name: &str) -> &str {
    if name.starts_with(ANONYMOUS_PREFIX) {
        ANONYMOUS_PREFIX
    } else {
        name
    }
}

/// Why a text is no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Empty.
    #[error("the name is empty")]
    Empty,
    /// Longer than [`PARTICIPANT_BYTES_MAX`] or `TOPIC_BYTES_MAX`.
    #[error("the name is too long")]
    TooLong,
    /// White space, a control or invisible character, or (in a topic) anything but letters, digits,
    /// `.`, `_` and `-`.
    #[error("the name holds a character that is not allowed")]
    Character,
    /// A compatibility form of other characters, such as wide letters, or an accent that is not
    /// joined to its letter.
    #[error("the name has another normal form (NFKC), with which it could be confused")]
    Form,
    /// Letters of several scripts that look alike, such as Latin and Cyrillic.
    #[error("the name mixes scripts, so that it can look like another name")]
    MixedScripts,
    /// `system`, `rules`, `portmoot` in another spelling, anything that begins with one of them and
    /// `:`, or a name that looks like such a one.
    #[error("this name, or one that looks like it, belongs to the gateway")]
    Reserved,
    /// Not 32 hexadecimal digits.
    #[error("an operation id has 32 hexadecimal digits")]
    NotHex,
}

/// The identity of a participant, on all its connections. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParticipantId(Arc<str>);

impl ParticipantId {
    /// Accepts 1 to [`PARTICIPANT_BYTES_MAX`] bytes of visible characters, without white space, in
    /// Unicode's normal form NFKC, of one script, or of Latin letters with Han, kana, bopomofo or
    /// Hangul (UTS 39 "Highly Restrictive"), and not the gateway's names in any spelling that looks
    /// like them. [`GATEWAY`] itself is accepted: envelopes are addressed to it.
    ///
    /// # Errors
    /// What is wrong with the name.
    pub fn new(name: &str) -> Result<Self, IdError> {
        if name.is_empty() {
            return Err(IdError::Empty);
        }
        if name.len() > PARTICIPANT_BYTES_MAX {
            return Err(IdError::TooLong);
        }
        if name
            .chars()
            .any(|symbol| symbol.is_whitespace() || is_hidden(symbol))
        {
            return Err(IdError::Character);
        }
        if !name.is_ascii() && !is_nfkc(name) {
            return Err(IdError::Form);
        }
        if !name.is_ascii() && !is_of_one_script(name) {
            return Err(IdError::MixedScripts);
        }
        if name != GATEWAY && imitates_the_gateway(name) {
            return Err(IdError::Reserved);
        }
        Ok(Self(name.into()))
    }

    /// Whether two different names look alike: their skeletons are equal (UTS 39 section 4). ASCII
    /// names never do, since their readers tell `l` from `1`.
    pub fn looks_like(&self, other: &ParticipantId) -> bool {
        self != other
            && !(self.0.is_ascii() && other.0.is_ascii())
            && self.skeleton() == other.skeleton()
    }

    /// The name with each character replaced by the one that it looks like; equal for names that
    /// [look alike](Self::looks_like).
    pub fn skeleton(&self) -> String {
        skeleton(&self.0).collect()
    }

    /// The gateway's own participant, [`GATEWAY`].
    pub fn gateway() -> Self {
        Self(GATEWAY.into())
    }

    /// Whether this is the name of a guest, a participant without a token.
    #[must_use]
    pub fn is_guest(&self) -> bool {
        self.0.starts_with(ANONYMOUS_PREFIX)
    }

    /// The account on which the participant has its shares: its own, or the one of all guests.
    #[must_use]
    pub fn account(&self) -> &str {
        account(&self.0)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether the letters of a name are of one script, or of Latin and an East Asian one: neither has
/// letters that look like the other's.
fn is_of_one_script(name: &str) -> bool {
    let others: String = name
        .chars()
        .filter(|symbol| !symbol.is_ascii_alphabetic())
        .collect();
    let scripts = AugmentedScriptSet::for_str(&others);
    name.is_single_script() || scripts.hanb || scripts.jpan || scripts.kore
}

/// Whether a name is, or looks like, one of [`RESERVED`], or something below one, such as
/// `system:x`.
fn imitates_the_gateway(name: &str) -> bool {
    let lower = name.to_lowercase();
    if lower.is_ascii() {
        return RESERVED.contains(&first_part(&lower));
    }
    let shown: String = skeleton(&lower).collect();
    let shown = first_part(&shown);
    // The skeleton of `m` is `rn`, which looks like it.
    RESERVED.iter().any(|own| skeleton(own).eq(shown.chars()))
}

/// The part of a name before its first `:`, which in names of an issuer's participants is the
/// issuer's.
fn first_part(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

impl fmt::Display for ParticipantId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The name of a topic: letters, digits, `.`, `_` and `-`. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicName(Arc<str>);

impl TopicName {
    /// Accepts 1 to `TOPIC_BYTES_MAX` of the allowed characters.
    ///
    /// # Errors
    /// What is wrong with the name.
    pub fn new(name: &str) -> Result<Self, IdError> {
        if name.is_empty() {
            return Err(IdError::Empty);
        }
        if name.len() > TOPIC_BYTES_MAX {
            return Err(IdError::TooLong);
        }
        if !name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        {
            return Err(IdError::Character);
        }
        Ok(Self(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// One connection or session of a participant. The door numbers them and never uses a number twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub u64);

impl fmt::Display for LinkId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "link-{}", self.0)
    }
}

/// One operation, from request to answer. Most have a number in the run of the gateway that opened
/// them, and can be guessed; those that are secrets are random. Prints as 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(pub u128);

impl OperationId {
    /// The operation of this number in a run of the gateway.
    pub fn of_run(run: u64, number: u64) -> Self {
        Self((u128::from(run) << 64) | u128::from(number))
    }

    /// The number in its run: its JSON-RPC id at a server, or a question's id at a client.
    pub fn number(self) -> u64 {
        u64::try_from(self.0 & u128::from(u64::MAX)).unwrap_or_default()
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Each call is written with its id several times.
        let mut digits = [0; OPERATION_DIGITS];
        HEXLOWER.encode_mut(&self.0.to_be_bytes(), &mut digits);
        out.write_str(std::str::from_utf8(&digits).unwrap_or_default())
    }
}

impl FromStr for OperationId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if text.len() != OPERATION_DIGITS || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(IdError::NotHex);
        }
        u128::from_str_radix(text, 16)
            .map(Self)
            .map_err(|_| IdError::NotHex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn participants_have_a_limit_and_reserved_names() {
        let check = |name: &str, expected: Result<(), IdError>| {
            assert_eq!(ParticipantId::new(name).map(|_| ()), expected, "{name:?}");
        };
        check("scout", Ok(()));
        check("auth0|42@example.com", Ok(()));
        check(&"x".repeat(PARTICIPANT_BYTES_MAX), Ok(()));
        check(
            &"x".repeat(PARTICIPANT_BYTES_MAX + 1),
            Err(IdError::TooLong),
        );
        check("", Err(IdError::Empty));
        check("two words", Err(IdError::Character));
        check("line\nbreak", Err(IdError::Character));
        check(SYSTEM, Err(IdError::Reserved));
        for reserved in [
            "system",
            "System:x",
            "SYSTEM",
            "Portmoot",
            "PORTMOOT",
            "portmoot:ann",
            "rules",
            "Rules",
            "rules:ann",
            "Rules:ann",
            // Letters of Latin alone, which look like others.
            "rule\u{a731}",
            "rule\u{a731}:ann",
            "\u{a731}ystem:x",
            // A ratio sign, which looks like a colon.
            "rules\u{2236}ann",
        ] {
            check(reserved, Err(IdError::Reserved));
        }
        check(GATEWAY, Ok(()));
        for fine in ["systematic", "systern", "rules-of-ann", "corp:rules"] {
            check(fine, Ok(()));
        }
    }

    #[test]
    fn names_that_look_like_others_are_refused() {
        let check = |name: &str, expected: Result<(), IdError>| {
            assert_eq!(ParticipantId::new(name).map(|_| ()), expected, "{name:?}");
        };
        for hidden in [
            "boss\u{200b}",
            "b\u{ad}oss",
            "\u{202e}ssob",
            "bo\u{200d}ss",
            "boss\u{fe0f}",
            "boss\u{2800}",
        ] {
            check(hidden, Err(IdError::Character));
        }
        check("bоss", Err(IdError::MixedScripts));
        check("αgent", Err(IdError::MixedScripts));
        check("ｂｏｓｓ", Err(IdError::Form));
        check("e\u{301}va", Err(IdError::Form));
        for mixed in ["地图д", "地图αmcp", "たろう지민x", "ไทยmcp"] {
            check(mixed, Err(IdError::MixedScripts));
        }
        for fine in [
            "éva",
            "Борис",
            "太郎",
            "たろうタロウ",
            "지민",
            "müller-2",
            "🔧",
            "地图mcp",
            "メモmcp",
            "검색-tools",
            "ㄅㄆmcp",
        ] {
            check(fine, Ok(()));
        }
        let id = |name: &str| ParticipantId::new(name).unwrap();
        assert!(id("аса").looks_like(&id("aca")));
        assert!(!id("éva").looks_like(&id("eva")));
        assert!(!id("agent1").looks_like(&id("agentl")));
        assert!(!id("boss").looks_like(&id("boss")));
    }

    #[test]
    fn topics_have_a_limit_and_an_alphabet() {
        assert!(TopicName::new(&"t".repeat(TOPIC_BYTES_MAX)).is_ok());
        assert_eq!(
            TopicName::new(&"t".repeat(TOPIC_BYTES_MAX + 1)),
            Err(IdError::TooLong)
        );
        assert_eq!(TopicName::new("a/b"), Err(IdError::Character));
        assert_eq!(TopicName::new(""), Err(IdError::Empty));
    }

    #[test]
    fn operation_ids_round_trip() {
        for id in [OperationId(0), OperationId(u128::MAX), OperationId(0xabc)] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!("abc".parse::<OperationId>(), Err(IdError::NotHex));
        assert_eq!(
            "+0000000000000000000000000000000".parse::<OperationId>(),
            Err(IdError::NotHex)
        );
    }
}
