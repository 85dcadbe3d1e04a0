//! Names and numbers of participants, links, operations and topics.

use std::{fmt, str::FromStr, sync::Arc};

/// The longest participant id, in bytes.
pub const PARTICIPANT_BYTES_MAX: usize = 128;
/// The longest topic name, in bytes.
pub(crate) const TOPIC_BYTES_MAX: usize = 64;
/// The gateway's own participant, the addressee of MCP callers' requests.
pub const GATEWAY: &str = "portmoot";
/// The sender of system messages. Never a participant.
pub const SYSTEM: &str = "system:gateway";

/// Why a text is no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Empty.
    #[error("the name is empty")]
    Empty,
    /// Longer than [`PARTICIPANT_BYTES_MAX`] or `TOPIC_BYTES_MAX`.
    #[error("the name is too long")]
    TooLong,
    /// White space, a control character, or (in a topic) anything but letters, digits, `.`, `_` and `-`.
    #[error("the name holds a character that is not allowed")]
    Character,
    /// `system` or anything that begins with `system:`.
    #[error("names beginning with `system:` belong to the gateway")]
    Reserved,
    /// Not 32 hexadecimal digits.
    #[error("an operation id has 32 hexadecimal digits")]
    NotHex,
}

/// The identity of a participant, on all its connections. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParticipantId(Arc<str>);

impl ParticipantId {
    /// Accepts 1 to [`PARTICIPANT_BYTES_MAX`] bytes without white space and control characters.
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
        if name.chars().any(|symbol| symbol.is_whitespace() || symbol.is_control()) {
            return Err(IdError::Character);
        }
        if name == "system" || name.starts_with("system:") {
            return Err(IdError::Reserved);
        }
        Ok(Self(name.into()))
    }

    /// The gateway's own participant, [`GATEWAY`].
    pub fn gateway() -> Self {
        Self(GATEWAY.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
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
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) {
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

/// One operation, from request to answer. Unguessable: the door draws it at random. Prints as 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(pub u128);

impl fmt::Display for OperationId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

impl FromStr for OperationId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(IdError::NotHex);
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| IdError::NotHex)
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
        check(&"x".repeat(PARTICIPANT_BYTES_MAX + 1), Err(IdError::TooLong));
        check("", Err(IdError::Empty));
        check("two words", Err(IdError::Character));
        check("line\nbreak", Err(IdError::Character));
        check(SYSTEM, Err(IdError::Reserved));
        check("system", Err(IdError::Reserved));
        check("systematic", Ok(()));
    }

    #[test]
    fn topics_have_a_limit_and_an_alphabet() {
        assert!(TopicName::new(&"t".repeat(TOPIC_BYTES_MAX)).is_ok());
        assert_eq!(TopicName::new(&"t".repeat(TOPIC_BYTES_MAX + 1)), Err(IdError::TooLong));
        assert_eq!(TopicName::new("a/b"), Err(IdError::Character));
        assert_eq!(TopicName::new(""), Err(IdError::Empty));
    }

    #[test]
    fn operation_ids_round_trip() {
        for id in [OperationId(0), OperationId(u128::MAX), OperationId(0xabc)] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!("abc".parse::<OperationId>(), Err(IdError::NotHex));
        assert_eq!("+0000000000000000000000000000000".parse::<OperationId>(), Err(IdError::NotHex));
    }
}
