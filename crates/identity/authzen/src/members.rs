//! Strict reading of members: what is there and has another type is a fault, never an absence.

use json::{Members, Span, members, refuse_duplicates};

use crate::fault::AuthzenFault;

/// Checks a whole body, in which no object has a member twice, and reads its members.
pub(crate) fn body(raw: &[u8]) -> Result<Members<'_>, AuthzenFault> {
    refuse_duplicates(raw).map_err(|_| AuthzenFault::Malformed("it is no JSON"))?;
    object(raw, "it is no JSON object")
}

/// The members of an object; else the fault `what`.
pub(crate) fn object<'r>(raw: &'r [u8], what: &'static str) -> Result<Members<'r>, AuthzenFault> {
    members(raw, Span::all(raw)).map_err(|_| AuthzenFault::Malformed(what))
}

/// The members of an object that may be absent.
pub(crate) fn optional_object<'r>(
    of: &Members<'r>,
    key: &str,
    what: &'static str,
) -> Result<Option<Members<'r>>, AuthzenFault> {
    let member = of.get(key);
    member.map(|member| object(member.raw, what)).transpose()
}

/// A text that may be absent.
pub(crate) fn optional_text(
    of: &Members<'_>,
    key: &str,
    what: &'static str,
) -> Result<Option<String>, AuthzenFault> {
    let Some(member) = of.get(key) else {
        return Ok(None);
    };
    let text = member.text().ok_or(AuthzenFault::Malformed(what))?;
    Ok(Some(text.into_owned()))
}

/// A text that is required.
pub(crate) fn text(
    of: &Members<'_>,
    key: &str,
    what: &'static str,
) -> Result<String, AuthzenFault> {
    optional_text(of, key, what)?.ok_or(AuthzenFault::Malformed(what))
}
