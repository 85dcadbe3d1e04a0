//! What a reviewer is shown of a call, as the bytes that a decision is bound to (design, "Promotion").
//!
//! Owns which parts count and how they are told apart. It must not know who decides, or when.

use json::{JsonError, ObjectEdit, Span, Splice, canonical};
use model::Digest;
use sha2::{Digest as _, Sha256};

use crate::mcp::meta;

/// What begins the bytes, so that no other hash of the gateway can be taken for one of these.
const DOMAIN: &[u8] = b"portmoot/shown/1";
/// Under this prefix `_meta` belongs to the protocol, not to the call.
const OF_PROTOCOL: &str = "io.modelcontextprotocol/";
/// These keys of `_meta` say how a call travels, not what it does.
const OF_TRAVEL: [&str; 3] = [meta::PROGRESS_TOKEN, "traceparent", "tracestate"];

/// A call as it is shown to whoever decides about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown<'a> {
    /// The method.
    pub method: &'a str,
    /// Who is to carry it out. Order and repetition do not count.
    pub to: &'a [&'a str],
    /// The params as they were written; none counts as `{}`.
    pub params: Option<&'a [u8]>,
    /// The definition of the tool as its server lists it, if there is one.
    pub definition: Option<&'a [u8]>,
}

impl Shown<'_> {
    /// The bytes to be hashed: each part with its length before it, so that none can reach into the next.
    ///
    /// # Errors
    /// [`JsonError`] when params or definition have no canonical form; see [`canonical`].
    pub fn input(&self) -> Result<Vec<u8>, JsonError> {
        let mut to = self.to.to_vec();
        to.sort_unstable();
        to.dedup();
        let mut out = DOMAIN.to_vec();
        part(&mut out, self.method.as_bytes());
        out.extend_from_slice(&length(to.len()));
        for name in to {
            part(&mut out, name.as_bytes());
        }
        part(&mut out, &call_params(self.params.unwrap_or(b"{}"))?);
        // No canonical form is empty, so none is told from any.
        part(&mut out, &self.definition.map(canonical).transpose()?.unwrap_or_default());
        Ok(out)
    }

    /// Their SHA-256.
    ///
    /// # Errors
    /// As [`Shown::input`].
    pub fn digest(&self) -> Result<Digest, JsonError> {
        Ok(Digest(Sha256::digest(self.input()?).into()))
    }
}

/// The canonical params of a call, without what belongs to its transport: `task` (2025-11-25), and of `_meta` the progress
/// token, the trace and the protocol's own keys. Two calls with equal canonical params do the same.
///
/// # Errors
/// [`JsonError`] when they are no object or have no canonical form; see [`canonical`].
pub fn call_params(params: &[u8]) -> Result<Vec<u8>, JsonError> {
    let members = json::members(params, Span::all(params))?;
    let mut splice = Splice::new();
    let mut edit = ObjectEdit::new(&members);
    edit.remove("task");
    if let Some(member) = members.get("_meta") {
        match json::members(params, member.span) {
            Ok(keys) => {
                let mut inner = ObjectEdit::new(&keys);
                let mut left = keys.len();
                for key in keys.iter().map(|(key, _)| key) {
                    if key.starts_with(OF_PROTOCOL) || OF_TRAVEL.contains(&key) {
                        inner.remove(key);
                        left -= 1;
                    }
                }
                if left == 0 {
                    edit.remove("_meta");
                } else {
                    inner.finish(&mut splice);
                }
            }
            // Whatever it is, it is shown as it is.
            Err(JsonError::NotAnObject) => {}
            Err(error) => return Err(error),
        }
    }
    edit.finish(&mut splice);
    canonical(&splice.apply_within(params, Span::all(params)))
}

fn part(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&length(bytes.len()));
    out.extend_from_slice(bytes);
}

fn length(count: usize) -> [u8; 8] {
    u64::try_from(count).unwrap_or(u64::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests;
