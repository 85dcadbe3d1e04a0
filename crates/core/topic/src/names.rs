//! Public names and URIs: pure functions of the configuration, shortened or rewritten readably.

use std::borrow::Cow;

use model::ParticipantId;

/// The longest public name under a prefix, in characters. Hosts refuse longer ones.
pub const NAME_CHARS_MAX: usize = 64;
/// The longest prefix, in characters, so that a shortened name stays readable.
pub const PREFIX_CHARS_MAX: usize = 48;
/// The beginning of a rewritten URI; the server's id, `/` and its own URI follow.
pub const REWRITTEN: &str = "portmoot:";
/// The schemes by which clients know what a resource is, so that rewritten URIs keep them: apps and
/// skills. Between the scheme and the rest of the server's URI come [`KEPT_AUTHORITY`], the
/// server's id and `/`.
pub const KEPT_SCHEMES: [&str; 2] = [APP_SCHEME, "skill://"];
/// The scheme of the resources of apps (MCP Apps).
pub(crate) const APP_SCHEME: &str = "ui://";
/// Authority of the public URI of such a resource; the server's id follows it.
pub const KEPT_AUTHORITY: &str = "portmoot/";

/// Hexadecimal digits of the hash at the end of a shortened name.
const HASH_CHARS: usize = 8;
/// Characters before the `_` and the hash of a shortened name.
const BEGINNING_CHARS: usize = NAME_CHARS_MAX - HASH_CHARS - 1;

/// The public name of a server's tool or prompt: `<prefix>_<own>`. With an empty prefix it is the
/// own name, and so it is if that begins with the prefix and `_` already.
///
/// Longer than [`NAME_CHARS_MAX`] characters, it keeps its beginning and ends with `_` and a hash
/// of the whole. Names under an empty prefix are never touched.
///
/// All names under a prefix begin with it and `_`, so that no server can take another's. Two names
/// of one server can be equal in public: the one that has the prefix itself counts
/// ([`Quarantine::Twice`](crate::Quarantine::Twice)).
pub fn public_name(prefix: &str, own: &str) -> String {
    if prefix.is_empty() {
        return own.to_owned();
    }
    let whole = whole_name(prefix, own).into_owned();
    if whole.chars().count() <= NAME_CHARS_MAX {
        return whole;
    }
    let beginning: String = whole.chars().take(BEGINNING_CHARS).collect();
    hashed(&beginning, &whole)
}

/// A public name for clients that accept letters, digits, `_` and `-` only: other characters become
/// `_`, and a hash of the whole follows.
/// `None` for a name that has no others.
#[must_use]
pub fn narrow_name(public: &str) -> Option<String> {
    if public.chars().all(is_narrow) {
        return None;
    }
    let beginning: String = public
        .chars()
        .take(BEGINNING_CHARS)
        .map(|c| if is_narrow(c) { c } else { '_' })
        .collect();
    Some(hashed(&beginning, public))
}

fn is_narrow(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Whether a name ends as the narrow ones do.
#[must_use]
pub fn may_be_narrow(name: &str) -> bool {
    let Some([b'_', digits @ ..]) = name.as_bytes().last_chunk::<{ HASH_CHARS + 1 }>() else {
        return false;
    };
    digits.iter().all(u8::is_ascii_hexdigit)
}

/// The beginning of a name with a hash of the whole.
fn hashed(beginning: &str, whole: &str) -> String {
    let hash = fnv1a(whole);
    format!("{beginning}_{:08x}", (hash ^ (hash >> 32)) & 0xffff_ffff)
}

/// An own name with its prefix before it is shortened: the prefix is not repeated.
pub(crate) fn whole_name<'a>(prefix: &str, own: &'a str) -> Cow<'a, str> {
    if prefix.is_empty() || lies_under(prefix, own) {
        own.into()
    } else {
        format!("{prefix}_{own}").into()
    }
}

/// The public spelling of a URI (or template) that another server owns as well.
pub fn public_uri(upstream: &ParticipantId, own: &str) -> String {
    match kept_scheme(own) {
        Some(scheme) => {
            let rest = own.strip_prefix(scheme).unwrap_or_default();
            format!("{scheme}{KEPT_AUTHORITY}{upstream}/{rest}")
        }
        None => format!("{REWRITTEN}{upstream}/{own}"),
    }
}

/// The scheme of a URI, if rewriting keeps it.
fn kept_scheme(uri: &str) -> Option<&'static str> {
    KEPT_SCHEMES
        .into_iter()
        .find(|scheme| uri.starts_with(scheme))
}

/// A URI as it is rewritten.
pub(crate) struct Rewritten<'a> {
    /// The scheme of the server's own URI, if rewriting keeps it; else empty.
    pub(crate) scheme: &'static str,
    /// The server's id, `/`, and what follows the scheme in the server's own URI.
    pub(crate) rest: &'a str,
}

/// Reads a rewritten URI; `None` if it is none.
pub(crate) fn behind_rewriting(uri: &str) -> Option<Rewritten<'_>> {
    let Some(scheme) = kept_scheme(uri) else {
        let rest = uri.strip_prefix(REWRITTEN)?;
        return Some(Rewritten { scheme: "", rest });
    };
    let rest = uri.strip_prefix(scheme)?.strip_prefix(KEPT_AUTHORITY)?;
    Some(Rewritten { scheme, rest })
}

/// FNV-1a, 64 bits. It distinguishes the long names of one server. It need not resist attacks,
/// because two names of one server can only take each other's place.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Whether a public name lies in the space of this (non-empty) prefix.
pub(crate) fn lies_under(prefix: &str, name: &str) -> bool {
    !prefix.is_empty()
        && name
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with('_'))
}

#[cfg(test)]
mod tests;
