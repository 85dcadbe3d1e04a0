//! Proposal states, and the digest of a reviewed call.

use std::{fmt, str::FromStr};
use strum::{Display, EnumString, IntoStaticStr};

/// The state of a proposal. It ends once, in a state for which [`ProposalState::is_over`] returns
/// true.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Display, EnumString, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
pub enum ProposalState {
    /// Open: reviewers can approve or reject it.
    Pending,
    /// Approved, and in execution.
    Running,
    /// Executed; the answer was a result.
    Completed,
    /// Executed or lost, without a result.
    Failed,
    /// A reviewer rejected it.
    Rejected,
    /// The proposer withdrew it.
    Withdrawn,
    /// No reviewer decided in time.
    Expired,
}

impl ProposalState {
    /// The state as scripts see it. Never changes.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the state is final.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

/// The digest of a call as a reviewer sees it: method, target, canonical arguments and the tool's
/// definition. A decision counts only for the digest that it names. Prints as 64 lower-case
/// hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Digest({self})")
    }
}

/// A text that is no [`Digest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest has 64 hexadecimal digits")]
pub struct NoDigest;

impl FromStr for Digest {
    type Err = NoDigest;

    fn from_str(text: &str) -> Result<Self, NoDigest> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let mut bytes = [0; 32];
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return Err(NoDigest);
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = nibble(*high)? << 4 | nibble(*low)?;
        }
        Ok(Self(bytes))
    }
}

fn nibble(digit: u8) -> Result<u8, NoDigest> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
        .ok_or(NoDigest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_round_trip_and_two_are_not_final() {
        let names = [
            "pending",
            "running",
            "completed",
            "failed",
            "rejected",
            "withdrawn",
            "expired",
        ];
        let states = names.map(|name| name.parse::<ProposalState>().unwrap());
        assert_eq!(states.map(ProposalState::as_str), names);
        let open: Vec<&str> = states
            .iter()
            .filter(|state| !state.is_over())
            .map(|state| state.as_str())
            .collect();
        assert_eq!(open, ["pending", "running"]);
        assert!("done".parse::<ProposalState>().is_err());
    }

    #[test]
    fn digests_round_trip() {
        let digest = Digest(std::array::from_fn(|at| {
            u8::try_from(at * 8).unwrap_or(u8::MAX)
        }));
        let text = digest.to_string();
        assert_eq!(text.get(..6), Some("000810"));
        assert_eq!(text.parse(), Ok(digest));
        assert_eq!(text.to_uppercase().parse(), Ok(digest));
        let nearly = [
            &text[1..],
            &format!("{text}0"),
            &text.replace('8', "g"),
            "",
            &"é".repeat(32),
        ];
        for text in nearly {
            assert_eq!(text.parse::<Digest>(), Err(NoDigest), "{text}");
        }
    }
}
