//! Secrets in memory: no `Debug`, no `Display`, zeroed when they are dropped.

use zeroize::Zeroizing;

/// A token, a client's secret, a verifier.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes the text over.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text itself, for the place that sends or seals it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// In a time that depends on the lengths alone.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        bool::from(subtle::ConstantTimeEq::ct_eq(
            self.0.as_bytes(),
            other.0.as_bytes(),
        ))
    }
}

impl Eq for Secret {}
