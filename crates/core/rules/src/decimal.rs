//! Exact decimal numbers, as JSON spells them.

use std::cmp::Ordering;
use std::fmt;

/// The most significant digits of a number that rules compare: what every reader of JSON keeps
/// exactly.
pub const NUMBER_DIGITS_MAX: usize = 15;
/// The scale of [`Decimal::scaled`], in decimal places: the most that a number may have.
const SCALE: u8 = 15;

/// An exact number of at most [`NUMBER_DIGITS_MAX`] digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The digits without the point; no trailing zero behind the point.
    mantissa: i64,
    /// Digits behind the point.
    scale: u8,
}

/// A number by its spelling, which decides its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpelledNumber {
    /// Without fraction and exponent.
    Integer(Decimal),
    /// With a fraction, without exponent.
    Fraction(Decimal),
    /// With an exponent, with too many digits, or a negative zero: readers may differ.
    Odd,
}

impl SpelledNumber {
    /// Reads a number of JSON. What is no number is [`SpelledNumber::Odd`].
    #[must_use]
    pub fn read(raw: &str) -> Self {
        let (negative, digits) = match raw.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, raw),
        };
        let (whole, fraction) = match digits.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (digits, None),
        };
        let Some(number) = exact(negative, whole, fraction.unwrap_or_default()) else {
            return Self::Odd;
        };
        match fraction {
            Some("") => Self::Odd,
            Some(_) => Self::Fraction(number),
            None => Self::Integer(number),
        }
    }

    /// The number, if all readers agree on it.
    #[must_use]
    pub fn exact(self) -> Option<Decimal> {
        match self {
            Self::Integer(number) | Self::Fraction(number) => Some(number),
            Self::Odd => None,
        }
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn exact(negative: bool, whole: &str, fraction: &str) -> Option<Decimal> {
    let has_leading_zero = whole.len() > 1 && whole.starts_with('0');
    if whole.is_empty() || has_leading_zero || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0').len();
    if significant > NUMBER_DIGITS_MAX || fraction.len() > usize::from(SCALE) {
        return None;
    }
    let positive: i64 = digits.parse().ok()?;
    if negative && positive == 0 {
        return None;
    }
    let mantissa = if negative { -positive } else { positive };
    Some(Decimal::normal(
        mantissa,
        u8::try_from(fraction.len()).ok()?,
    ))
}

impl Decimal {
    /// Reads a number as JSON spells it; `None` if readers may differ on it.
    #[must_use]
    pub fn parse(raw: &str) -> Option<Self> {
        SpelledNumber::read(raw).exact()
    }

    fn normal(mut mantissa: i64, mut scale: u8) -> Self {
        while scale > 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        Self { mantissa, scale }
    }

    /// The number times 10 to the 15th: sums of these are exact.
    #[must_use]
    pub fn scaled(self) -> i128 {
        i128::from(self.mantissa) * 10_i128.pow(u32::from(SCALE.saturating_sub(self.scale)))
    }

    /// Whether it is less than zero.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.mantissa < 0
    }

    /// Whether it has no fraction.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.scale == 0
    }

    /// Its spelling with a fraction, `.0` if there is none.
    #[must_use]
    pub fn with_fraction(self) -> String {
        if self.is_whole() {
            format!("{self}.0")
        } else {
            self.to_string()
        }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        self.scaled().cmp(&other.scaled())
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<u32> for Decimal {
    fn from(number: u32) -> Self {
        Self {
            mantissa: i64::from(number),
            scale: 0,
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_whole() {
            return write!(out, "{}", self.mantissa);
        }
        let sign = if self.is_negative() { "-" } else { "" };
        let power = 10_u64.pow(u32::from(self.scale));
        let digits = self.mantissa.unsigned_abs();
        let width = usize::from(self.scale);
        write!(out, "{sign}{}.{:0width$}", digits / power, digits % power)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spelling_decides_the_type() {
        let integer = |raw: &str| matches!(SpelledNumber::read(raw), SpelledNumber::Integer(_));
        let fraction = |raw: &str| matches!(SpelledNumber::read(raw), SpelledNumber::Fraction(_));
        for raw in ["0", "7", "-7", "100", "999999999999999"] {
            assert!(integer(raw), "{raw}");
        }
        for raw in ["0.5", "-0.5", "100.0", "0.000000000000001", "0.0"] {
            assert!(fraction(raw), "{raw}");
        }
        for raw in [
            "1e3",
            "1E3",
            "-0",
            "-0.0",
            "1.",
            ".5",
            "01",
            "",
            "-",
            "+1",
            "0x10",
            "NaN",
            "1_000",
            "1000000000000000",
            "0.0000000000000001",
            "12345678901234567890",
        ] {
            assert_eq!(SpelledNumber::read(raw), SpelledNumber::Odd, "{raw}");
        }
    }

    #[test]
    fn the_last_digit_that_counts_is_the_fifteenth() {
        let longest = "9".repeat(NUMBER_DIGITS_MAX);
        assert!(Decimal::parse(&longest).is_some());
        assert!(Decimal::parse(&format!("{longest}9")).is_none());
    }

    #[test]
    fn numbers_compare_by_value() {
        let read = |raw: &str| Decimal::parse(raw).unwrap();
        assert_eq!(read("100.0"), read("100"));
        assert!(read("-0.5") < read("0"));
        assert!(read("0.30") > read("0.299999"));
        assert_eq!(read("100.0").with_fraction(), "100.0");
        assert_eq!(read("-0.05").to_string(), "-0.05");
    }

    proptest! {
        #[test]
        fn a_number_prints_as_a_number_of_the_same_value(mantissa in -999_999_999_i64..999_999_999, scale in 0_u8..9) {
            let number = Decimal::normal(mantissa, scale);
            prop_assert_eq!(Decimal::parse(&number.to_string()), Some(number));
            prop_assert_eq!(Decimal::parse(&number.with_fraction()), Some(number));
        }
    }
}
