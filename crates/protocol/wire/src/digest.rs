//! Digest of a reviewed call: the bytes that a decision is bound to (ARCHITECTURE.md, "A
//! proposal").
//!
//! Chooses the parts of the call that count, and separates them so that none can reach into the
//! next.

use json::{JsonError, MemberChange, Span, Splice, canonical};
use model::{Digest, MethodFacts};
use sha2::{Digest as _, Sha256};

use crate::mcp::meta;

/// Prefix of the bytes, so that no other hash of the gateway can be taken for one of these.
const DOMAIN: &[u8] = b"portmoot/shown/1";
/// Prefix of the bytes of plans.
const DOMAIN_OF_PLANS: &[u8] = b"portmoot/plan/1";
/// The member of params that has a call's arguments.
const ARGUMENTS: &str = "arguments";
/// Keys of `_meta` that concern the transport of a call, not its effect.
const OF_TRAVEL: [&str; 3] = [meta::PROGRESS_TOKEN, meta::TRACEPARENT, meta::TRACESTATE];

/// A call as a reviewer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewedCall<'a> {
    /// The method.
    pub method: &'a str,
    /// The addressees that are to carry it out. Order and repetition do not count.
    pub to: &'a [&'a str],
    /// The params as they were written; none counts as `{}`.
    pub params: Option<&'a [u8]>,
    /// The definition of the tool as its server lists it, if there is one.
    pub definition: Option<&'a [u8]>,
}

impl ReviewedCall<'_> {
    /// The bytes to be hashed: each part with its length before it, so that none can reach into the
    /// next.
    ///
    /// # Errors
    /// [`JsonError`] when params or definition have no canonical form; see [`canonical`].
    pub(crate) fn input(&self) -> Result<Vec<u8>, JsonError> {
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
        // No canonical form is empty, so an absent part differs from every present one.
        part(
            &mut out,
            &self
                .definition
                .map(canonical)
                .transpose()?
                .unwrap_or_default(),
        );
        Ok(out)
    }

    /// Their SHA-256.
    ///
    /// # Errors
    /// As `input`.
    pub fn digest(&self) -> Result<Digest, JsonError> {
        Ok(Digest(Sha256::digest(self.input()?).into()))
    }
}

/// The digest of a plan: of the digests of its steps, in their order.
pub fn of_plan(steps: &[Digest]) -> Digest {
    let mut hash = Sha256::new_with_prefix(DOMAIN_OF_PLANS);
    hash.update(length(steps.len()));
    for step in steps {
        hash.update(step.0);
    }
    Digest(hash.finalize().into())
}

/// The canonical params of a call, without the members of its transport: `task` (2025-11-25), and
/// of `_meta` the progress token, the trace and the protocol's own keys. Two calls with equal
/// canonical params do the same. A key that the protocol does not define counts, also under its
/// prefix: a server may do something by it.
///
/// # Errors
/// [`JsonError`] when they are no object or have no canonical form; see [`canonical`].
pub fn call_params(params: &[u8]) -> Result<Vec<u8>, JsonError> {
    let members = json::members(params, Span::all(params))?;
    let (mut splice, mut changes) = (Splice::new(), vec![("task", None)]);
    if let Some(member) = members.get("_meta") {
        match json::members(params, member.span) {
            Ok(keys) => {
                let gone = keys
                    .iter()
                    .filter(|(key, _)| is_of_travel(key))
                    .map(|(key, _)| (key, None));
                let gone: Vec<MemberChange<'_>> = gone.collect();
                if json::leaves_nothing(&keys, &gone) {
                    changes.push(("_meta", None));
                } else {
                    json::edit_object(&keys, &gone, &mut splice);
                }
            }
            // A `_meta` of another type is shown as it is.
            Err(JsonError::NotAnObject) => {}
            Err(error) => return Err(error),
        }
    }
    json::edit_object(&members, &changes, &mut splice);
    canonical(&splice.apply_to(params))
}

/// Whether a key of `_meta` concerns the transport of a call, not its effect: no digest covers it.
#[must_use]
pub fn is_of_travel(key: &str) -> bool {
    meta::REQUEST_KEYS.contains(&key) || OF_TRAVEL.contains(&key)
}

/// A call in the parts that rules judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallParts {
    /// Its arguments, as canonical JSON; `{}` if it has none.
    pub arguments: Vec<u8>,
    /// Names of the members that its params have beside target and arguments.
    pub beside: Vec<String>,
}

impl CallParts {
    /// The parts of a call with these params, by their canonical form.
    ///
    /// # Errors
    /// As [`call_params`].
    pub fn of(method: &str, params: &[u8]) -> Result<Self, JsonError> {
        let canonical = call_params(params)?;
        let members = json::members(&canonical, Span::all(&canonical))?;
        let is_named = MethodFacts::of(method).names_in().is_some();
        let target = if is_named { "name" } else { "uri" };
        let names = members.iter().map(|(name, _)| name);
        let beside = names.filter(|name| **name != *target && **name != *ARGUMENTS);
        Ok(Self {
            arguments: members
                .get(ARGUMENTS)
                .map_or_else(|| b"{}".to_vec(), |arguments| arguments.raw.to_vec()),
            beside: beside.map(|name| name.to_string()).collect(),
        })
    }
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
