//! Request ids: strings or integers, echoed exactly as they were spelled.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

/// Ids of up to this many bytes (quotes included; a UUID has 38) are kept without an allocation.
const SHORT: usize = 46;

/// The largest number up to which floats are exact integers: 2^53.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A JSON-RPC id or an MCP progress token: a string or an integer.
///
/// Equality is typed: `1` is not `"1"`. Strings are compared after unescaping, integers as they are
/// spelled, so that 20 digits stay 20 digits.
#[derive(Clone)]
pub struct Id(Spelling);

#[derive(Clone)]
enum Spelling {
    Short { len: u8, bytes: [u8; SHORT] },
    Long(Box<[u8]>),
}

impl Id {
    /// Reads an id as it lies in a frame. `None` for null, fractions, exponents, objects, arrays
    /// and booleans.
    #[must_use]
    pub fn read(raw: &[u8]) -> Option<Self> {
        let valid = match raw.first()? {
            b'"' => json::text(raw).is_some(),
            b'-' | b'0'..=b'9' => {
                let digits = raw.strip_prefix(b"-").unwrap_or(raw);
                !digits.is_empty()
                    && digits.iter().all(u8::is_ascii_digit)
                    && (digits.len() == 1 || digits.first() != Some(&b'0'))
            }
            _ => false,
        };
        valid.then(|| Self::keep(raw))
    }

    /// Reads the id of an answer: also an integer that is written as a fraction or with an
    /// exponent. JSON has one kind of number, and some servers write each as a float.
    #[must_use]
    pub(crate) fn read_answered(raw: &[u8]) -> Option<Self> {
        Self::read(raw).or_else(|| {
            let begins_as_number = matches!(raw.first(), Some(b'-' | b'0'..=b'9'));
            let number: f64 = std::str::from_utf8(raw)
                .ok()
                .filter(|_| begins_as_number)?
                .parse()
                .ok()?;
            let is_exact = number.fract() == 0.0 && number.abs() <= EXACT_MAX;
            is_exact.then(|| Self::keep(itoa::Buffer::new().format(number as i64).as_bytes()))
        })
    }

    /// An integer id that the gateway chose.
    #[must_use]
    pub fn number(number: u64) -> Self {
        Self::keep(itoa::Buffer::new().format(number).as_bytes())
    }

    /// A string id that the gateway chose.
    #[must_use]
    pub fn string(text: &str) -> Self {
        Self::keep(json::quote(text).as_bytes())
    }

    /// The id as it was spelled, quotes included.
    #[must_use]
    pub fn raw(&self) -> &[u8] {
        match &self.0 {
            Spelling::Short { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Spelling::Long(bytes) => bytes,
        }
    }

    /// The value if this is an integer that fits; the gateway's own ids do.
    #[must_use]
    pub fn as_number(&self) -> Option<u64> {
        self.raw().iter().try_fold(0_u64, |sum, byte| {
            let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
            sum.checked_mul(10)?.checked_add(digit.into())
        })
    }

    fn keep(raw: &[u8]) -> Self {
        let mut bytes = [0; SHORT];
        match (bytes.get_mut(..raw.len()), u8::try_from(raw.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(raw);
                Self(Spelling::Short { len, bytes })
            }
            (None, _) | (_, Err(_)) => Self(Spelling::Long(raw.into())),
        }
    }

    /// The bytes that are compared: the spelling, or for a string with escapes the quoted text
    /// without them.
    fn value(&self) -> Cow<'_, [u8]> {
        let raw = self.raw();
        if !raw.contains(&b'\\') {
            return Cow::Borrowed(raw);
        }
        let text = json::text(raw).unwrap_or_default();
        Cow::Owned([b"\"", text.as_bytes(), b"\""].concat())
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value().hash(state);
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Id({self})")
    }
}

impl fmt::Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&String::from_utf8_lossy(self.raw()))
    }
}
