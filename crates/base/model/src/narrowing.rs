//! Narrowing of a participant's capabilities by the scopes of the access token that it came with.

use std::sync::Arc;

use crate::{Capabilities, KindRef};

/// Capabilities to which a caller's access token narrows its participant's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrowing {
    /// The capabilities of the token's scopes. An act must be admitted by them too.
    pub to: Arc<Capabilities>,
    /// All scopes that tokens may have, if its client can come back with another token: lists then
    /// show what the participant may use, although this token is not good for it, and a refusal
    /// names the scope that is missing.
    pub step_up: Option<Arc<Scopes>>,
}

/// Scopes of access tokens, in the order in which they are configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes(Box<[Scope]>);

/// A scope of access tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// Its name, as tokens have it.
    pub name: Box<str>,
    /// Capabilities that it gives its bearer, as far as the participant has them.
    pub capabilities: Arc<Capabilities>,
}

impl Scopes {
    /// The name of the first scope that is good for an act towards these addressees.
    #[must_use]
    pub fn good_for(&self, kind: KindRef<'_>, addressees: &[&str]) -> Option<&str> {
        let good = self
            .0
            .iter()
            .find(|scope| scope.capabilities.admits(kind, addressees));
        good.map(|scope| &*scope.name)
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_scope_that_is_good_for_an_act_is_named() {
        let scope = |name: &str, kinds: &[&str]| Scope {
            name: name.into(),
            capabilities: Arc::new(Capabilities::parse(kinds.iter().copied()).unwrap()),
        };
        let scopes: Scopes = [
            scope("read", &["mcp/request:tools/call:*_read"]),
            scope("write", &["mcp/request:tools/call:*"]),
            scope("talk", &["chat"]),
        ]
        .into_iter()
        .collect();
        for (kind, expected) in [
            ("mcp/request:tools/call:gh_read", Some("read")),
            ("mcp/request:tools/call:gh_write", Some("write")),
            ("chat", Some("talk")),
            ("mcp/proposal:tools/call:gh_read", None),
        ] {
            assert_eq!(
                scopes.good_for(KindRef::parse(kind).unwrap(), &["gh"]),
                expected,
                "{kind}"
            );
        }
    }
}
