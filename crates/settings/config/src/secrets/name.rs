//! Names of secrets that the gateway keeps itself: also names of files.

use std::fmt;

/// The longest name of a kept secret, in characters.
pub const SECRET_NAME_CHARS_MAX: usize = 64;

/// The name of a kept secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretName(String);

/// A text is no name of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a name of a secret has 1 to {SECRET_NAME_CHARS_MAX} letters, digits, `_` and `-`, and begins with a letter or digit"
)]
pub struct SecretNameError;

impl SecretName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`SecretNameError`].
    pub fn new(text: &str) -> Result<Self, SecretNameError> {
        let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins && text.len() <= SECRET_NAME_CHARS_MAX && text.chars().all(is_good) {
            Ok(Self(text.to_owned()))
        } else {
            Err(SecretNameError)
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
