//! Published revisions of MCP, and the era of each.

/// One of MCP's two eras: that of a revision, and the form of its payloads.
pub use model::Form as Era;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]

/// A published revision, oldest first.
pub enum Version {
    #[strum(serialize = "2024-11-05")]
    /// The first; HTTP+SSE as two endpoints.
    V2024_11_05,
    #[strum(serialize = "2025-03-26")]
    /// Streamable HTTP, and the only one with batches.
    V2025_03_26,
    #[strum(serialize = "2025-06-18")]
    /// Elicitation, structured output.
    V2025_06_18,
    #[strum(serialize = "2025-11-25")]
    /// Tasks, URL elicitation; the newest legacy one.
    V2025_11_25,
    #[strum(serialize = "2026-07-28")]
    /// Stateless; the first modern one.
    V2026_07_28,
}

impl Version {
    /// All of them, oldest first.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;
    /// The newest that opens with `initialize`.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;
    /// The newest of all.
    pub const NEWEST: Self = Self::V2026_07_28;

    /// The published revision of this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    /// Its name: a date.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Its era.
    #[must_use]
    pub fn era(self) -> Era {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => {
                Era::Legacy
            }
            Self::V2026_07_28 => Era::Modern,
        }
    }

    /// Whether it has JSON-RPC batches.
    #[must_use]
    pub fn batches(self) -> bool {
        self == Self::V2025_03_26
    }

    /// The answer to an `initialize` that asks for `asked`: the same if it is a known legacy
    /// revision, else the newest legacy one.
    #[must_use]
    pub fn answer_to(asked: &str) -> Self {
        Self::parse(asked)
            .filter(|version| !version.era().is_stateless())
            .unwrap_or(Self::NEWEST_LEGACY)
    }

    /// Whether a version text, known or not, claims to be modern. Revisions are dates and sort as
    /// text.
    #[must_use]
    pub fn claims_modern(text: &str) -> bool {
        let date = text.len() == 10
            && text.bytes().enumerate().all(|(at, byte)| match at {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        date && text >= Self::V2026_07_28.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_sort() {
        for version in Version::ALL.iter().copied() {
            assert_eq!(Version::parse(version.as_str()), Some(version));
        }
        assert!(Version::ALL.is_sorted());
        assert_eq!(Version::parse("2025-06-19"), None);
    }

    #[test]
    fn initialize_never_answers_a_modern_version() {
        for (asked, expect) in [
            ("2024-11-05", "2024-11-05"),
            ("2026-07-28", "2025-11-25"),
            ("", "2025-11-25"),
            ("1.0", "2025-11-25"),
        ] {
            assert_eq!(Version::answer_to(asked).as_str(), expect);
        }
    }

    #[test]
    fn only_dates_claim_to_be_modern() {
        for (text, expect) in [
            ("2026-07-28", true),
            ("2027-01-01", true),
            ("2025-11-25", false),
            ("DRAFT-2026", false),
            ("9999", false),
        ] {
            assert_eq!(Version::claims_modern(text), expect, "{text}");
        }
    }
}
