//! Values of secrets: what bytes are one, and why there is none.

use oauth::Secret;

use super::name::SecretName;

/// The longest secret, in bytes.
pub const SECRET_BYTES_MAX: usize = 16 << 10;
/// Advice about a secret that cannot be read.
const CORRECT: &str = "correct it where it comes from; SIGHUP has the gateway read it again";

/// Why a secret has no value, without anything of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSecret {
    /// Why.
    pub why: String,
    /// Advice on the next step.
    pub fix: String,
    /// Whether no secret of its name is kept: then there is no value of before either.
    pub is_unset: bool,
}

impl NoSecret {
    /// It cannot be read.
    pub(crate) fn unread(why: String) -> Self {
        Self {
            why,
            fix: CORRECT.to_owned(),
            is_unset: false,
        }
    }

    /// None of this name is kept.
    pub(crate) fn unset(name: &SecretName) -> Self {
        let fix = format!("portmoot secret set {name}");
        Self {
            why: format!("the secret `{name}` is not set"),
            fix,
            is_unset: true,
        }
    }

    /// This error with other advice.
    pub(crate) fn fix(self, fix: String) -> Self {
        Self { fix, ..self }
    }
}

/// The secret that these bytes are: UTF-8 without its line end, bounded, without a NUL.
pub(crate) fn text_of(bytes: &[u8]) -> Result<Secret, String> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| "it is not UTF-8")?
        .trim_end_matches(['\n', '\r']);
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.len() > SECRET_BYTES_MAX {
        return Err(format!("it has more than {SECRET_BYTES_MAX} bytes"));
    }
    if text.contains('\0') {
        return Err("it has a NUL".to_owned());
    }
    Ok(Secret::new(text.to_owned()))
}
