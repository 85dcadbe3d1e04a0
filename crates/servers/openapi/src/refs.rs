//! References within a description. Those to other documents, local files among them, are never
//! followed.

use serde_json::Value;

/// The longest chain of references that each lead to the next.
const CHAIN_MAX: usize = 32;
/// The longest reference, in bytes.
const REFERENCE_BYTES_MAX: usize = 1024;

/// Why an operation, or a part of it, is not offered; in words for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// In these words.
    Because(String),
    /// Its schemas are larger than their bound.
    TooLarge,
}

impl Unusable {
    pub(crate) fn because(why: impl Into<String>) -> Self {
        Self::Because(why.into())
    }

    /// The words.
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Because(why) => why.clone(),
            Self::TooLarge => "its schemas are too large".to_owned(),
        }
    }
}

/// A reference as people read it: one line, not too long.
fn shown(reference: &str) -> String {
    reference
        .chars()
        .take(120)
        .collect::<String>()
        .escape_debug()
        .to_string()
}

/// The value that a reference of this description names, which may be a reference itself.
pub(crate) fn target<'d>(root: &'d Value, reference: &str) -> Result<&'d Value, Unusable> {
    let Some(fragment) = reference.strip_prefix('#') else {
        return Err(Unusable::because(
            "it refers to another document, which is not followed",
        ));
    };
    if fragment.len() > REFERENCE_BYTES_MAX {
        return Err(Unusable::because("it has a reference that is too long"));
    }
    if let Ok(pointer) = percent_encoding::percent_decode_str(fragment).decode_utf8()
        && let Some(target) = root.pointer(&pointer)
    {
        return Ok(target);
    }
    Err(Unusable::Because(format!(
        "its reference `{}` leads to nothing",
        shown(reference)
    )))
}

/// An object, behind the references that lead to it.
pub(crate) fn object<'d>(root: &'d Value, mut value: &'d Value) -> Result<&'d Value, Unusable> {
    for _ in 0..CHAIN_MAX {
        match value.get("$ref").and_then(Value::as_str) {
            Some(reference) => value = target(root, reference)?,
            None => return Ok(value),
        }
    }
    Err(Unusable::because("its references lead in a circle"))
}
