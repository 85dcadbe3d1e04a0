//! Header check: detection of the era, and rejection of a request whose headers and body disagree.

use super::schema::{HeaderParam, HeaderType};
use super::value::{argument, decode, has_name, trim, whole};
use crate::mcp::{Era, Params, Rejection, Version, meta};
use crate::rpc::{Malformed, MessageKind, code};

/// `MCP-Protocol-Version`, as all names in lower case.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// `Mcp-Method`.
pub const METHOD: &str = "mcp-method";
/// `Mcp-Name`.
pub const NAME: &str = "mcp-name";
/// The prefix of all headers for arguments.
const PARAM_PREFIX: &str = "mcp-param-";

/// The era and role of a POST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Stateless, 2026-07-28 or later: [`check`] it.
    Modern,
    /// `initialize`: a legacy session begins.
    LegacyInitialize,
    /// Any other message of a legacy session, or without one.
    Legacy,
}

/// The era of a POST, by its version header and by the modern key in its `_meta`.
#[must_use]
pub fn classify<'h>(get: impl Fn(&str) -> Option<&'h str>, params: &Params<'_>) -> Opening {
    let claims = get(PROTOCOL_VERSION).is_some_and(|version| Version::claims_modern(trim(version)));
    if claims || params.is_modern() {
        Opening::Modern
    } else if params.method() == "initialize" {
        Opening::LegacyInitialize
    } else {
        Opening::Legacy
    }
}

/// Checks a modern message against its headers, all but `Mcp-Param-*`: these need the tool, see
/// [`check_params`].
///
/// Of a notification only the headers that it has are checked; the revision defines none from
/// clients over HTTP.
///
/// # Errors
/// [`Rejection`] in this order: versions missing in the header or unequal (-32020), `_meta` without
/// a version (-32602), an unsupported version (-32022), method or name missing or unequal (-32020),
/// no client capabilities (-32602), a method that only legacy revisions have (404, -32601).
pub fn check<'h>(
    get: impl Fn(&str) -> Option<&'h str>,
    params: &Params<'_>,
) -> Result<Version, Rejection> {
    let message = params.message();
    let request = message.shape() == MessageKind::Request;
    let version = check_version(get(PROTOCOL_VERSION).map(trim), params, request)?;
    let method = params.method();
    match get(METHOD).map(trim) {
        Some(value) if value == method => {}
        Some(_) => {
            return Err(Rejection::mismatch(
                "the Mcp-Method header differs from the body's method",
            ));
        }
        None if request => return Err(Rejection::mismatch("the Mcp-Method header is missing")),
        None => {}
    }
    if !request {
        return Ok(version);
    }
    if has_name(method) {
        let value =
            get(NAME).ok_or_else(|| Rejection::mismatch("the Mcp-Name header is missing"))?;
        let value = decode(value)
            .ok_or_else(|| Rejection::mismatch("the Mcp-Name header cannot be decoded"))?;
        if params.target() != Some(&*value) {
            return Err(Rejection::mismatch(
                "the Mcp-Name header differs from the body's target",
            ));
        }
    }
    check_body(params, version)?;
    Ok(version)
}

/// Checks what a modern request of this version must have besides it, where no header repeats it.
///
/// # Errors
/// [`Rejection`] in this order: no client capabilities (-32602), a method that only legacy
/// revisions have (404, -32601).
pub fn check_body(params: &Params<'_>, version: Version) -> Result<(), Rejection> {
    if !params
        .meta_raw(meta::CLIENT_CAPABILITIES)
        .is_some_and(json::is_object)
    {
        let key = meta::CLIENT_CAPABILITIES;
        return Err(Rejection::params(format!(
            "`_meta[\"{key}\"]` must be an object"
        )));
    }
    if params
        .known()
        .is_some_and(|known| !known.is_in(Era::Modern))
    {
        return Err(Rejection {
            status: 404,
            code: code::METHOD_NOT_FOUND,
            message: format!("the method is not part of revision {version}"),
            data: None,
        });
    }
    Ok(())
}

/// The modern revision of this name.
///
/// # Errors
/// [`Rejection`]: it is not supported (-32022).
pub fn supported(version: &str) -> Result<Version, Rejection> {
    let modern = Version::parse(version).filter(|version| version.era().is_stateless());
    modern.ok_or_else(|| Rejection::unsupported_version(version))
}

/// Checks the `Mcp-Param-*` headers of a call against its arguments, by the annotations of the tool
/// that it names.
///
/// # Errors
/// [`Rejection`]: -32020 for a header that is missing, unreadable, unequal, or there although its argument is absent
/// or null; -32600 when an object on the way to an argument has a member twice.
pub fn check_params<'h>(
    get: impl Fn(&str) -> Option<&'h str>,
    params: &Params<'_>,
    annotations: &[HeaderParam],
) -> Result<(), Rejection> {
    for param in annotations {
        let value = get(&format!(
            "{PARAM_PREFIX}{}",
            param.name.to_ascii_lowercase()
        ));
        let expect = argument(params, &param.path)
            .map_err(|error| Malformed::json(&error, params.message().id().cloned()))?;
        let wrong = |what: &str| {
            Err(Rejection::mismatch(format!(
                "the Mcp-Param-{} header {what}",
                param.name
            )))
        };
        match (value.map(decode), expect) {
            (None, None) => {}
            (None, Some(_)) => return wrong("is missing"),
            (Some(_), None) => return wrong("has no argument in the body"),
            (Some(None), Some(_)) => return wrong("cannot be decoded"),
            (Some(Some(value)), Some(expect)) if agree(&value, &expect, param) => {}
            (Some(Some(_)), Some(_)) => return wrong("differs from the body's argument"),
        }
    }
    Ok(())
}

fn agree(value: &str, expect: &str, param: &HeaderParam) -> bool {
    value == expect
        || (param.kind == HeaderType::Integer
            && whole(value).is_some()
            && whole(value) == whole(expect))
}

fn check_version(
    header: Option<&str>,
    params: &Params<'_>,
    request: bool,
) -> Result<Version, Rejection> {
    let raw = params.meta_raw(meta::PROTOCOL_VERSION);
    let body = params.meta_text(meta::PROTOCOL_VERSION);
    let version = match (header, raw, body) {
        (None, Some(_), _) => {
            return Err(Rejection::mismatch(
                "the MCP-Protocol-Version header is missing",
            ));
        }
        (Some(header), Some(_), Some(body)) if header != body => {
            return Err(Rejection::mismatch(
                "the MCP-Protocol-Version header differs from the body's version",
            ));
        }
        (Some(_), Some(_), Some(body)) => body.into_owned(),
        (Some(header), None, _) if !request => header.to_owned(),
        (_, _, None) => {
            let key = meta::PROTOCOL_VERSION;
            return Err(Rejection::params(format!(
                "`_meta[\"{key}\"]` must be a string"
            )));
        }
        (_, None, Some(_)) => return Err(Rejection::params("`_meta` is missing")),
    };
    supported(&version)
}
