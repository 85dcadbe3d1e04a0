//! Prefixes of one configuration, and the check that they keep servers' names apart.

use crate::{config::UpstreamNames, names::PREFIX_CHARS_MAX};

/// An error in a configuration of prefixes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// Two servers with one name.
    #[error("two servers are named `{0}`")]
    SameId(String),
    /// Two servers without a prefix.
    #[error("`{0}` and `{1}` both have an empty prefix: give one of them a `prefix`")]
    TwoEmpty(String, String),
    /// One prefix and `_` begins the other, or they are equal.
    #[error("names of `{0}` and `{1}` could shadow each other: give one of them another `prefix`")]
    Shadows(String, String),
    /// Longer than [`PREFIX_CHARS_MAX`].
    #[error(
        "the prefix of `{0}` is longer than {PREFIX_CHARS_MAX} characters: set a shorter `prefix`"
    )]
    TooLong(String),
}

/// Refuses configurations in which names of one server could be taken for another's.
///
/// # Errors
/// The first pair, in configuration order, that could be confused.
pub fn check_prefixes(upstreams: &[UpstreamNames]) -> Result<(), PrefixError> {
    for (at, later) in upstreams.iter().enumerate() {
        if later.prefix.chars().count() > PREFIX_CHARS_MAX {
            return Err(PrefixError::TooLong(later.id.to_string()));
        }
        for earlier in upstreams.iter().take(at) {
            check_pair(earlier, later)?;
        }
    }
    Ok(())
}

fn check_pair(earlier: &UpstreamNames, later: &UpstreamNames) -> Result<(), PrefixError> {
    if earlier.id == later.id {
        return Err(PrefixError::SameId(later.id.to_string()));
    }
    // The gateway's own names win over all others.
    if earlier.builtin || later.builtin {
        return Ok(());
    }
    if earlier.prefix.is_empty() != later.prefix.is_empty() {
        // A name without a prefix that lies under the other's is quarantined alone.
        return Ok(());
    }
    if earlier.prefix.is_empty() {
        return Err(PrefixError::TwoEmpty(
            earlier.id.to_string(),
            later.id.to_string(),
        ));
    }
    if shadows(&earlier.prefix, &later.prefix) {
        return Err(PrefixError::Shadows(
            earlier.id.to_string(),
            later.id.to_string(),
        ));
    }
    Ok(())
}

/// Whether a name can begin with both prefixes and their `_`.
fn shadows(left: &str, right: &str) -> bool {
    begins(left, right) || begins(right, left)
}

/// Whether `name` with a `_` behind it begins with `prefix` and a `_`.
fn begins(prefix: &str, name: &str) -> bool {
    name.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

#[cfg(test)]
mod tests {
    use model::ParticipantId;

    use super::*;

    #[test]
    fn prefixes_that_could_shadow_are_refused() {
        let check = |pairs: &[(&str, &str)], expected: Result<(), PrefixError>| {
            let upstreams: Vec<UpstreamNames> = pairs
                .iter()
                .map(|(id, prefix)| UpstreamNames::new(ParticipantId::new(id).unwrap(), *prefix))
                .collect();
            assert_eq!(check_prefixes(&upstreams), expected, "{pairs:?}");
        };
        let pair = |left: &str, right: &str| (left.to_owned(), right.to_owned());
        let ((a, b), (a2, b2)) = (pair("a", "b"), pair("a", "b"));
        check(&[("a", "gh"), ("b", "git")], Ok(()));
        check(&[("a", "gh"), ("b", "gh2")], Ok(()));
        check(&[("a", ""), ("b", "gh")], Ok(()));
        check(
            &[("a", "gh"), ("b", "gh_x")],
            Err(PrefixError::Shadows(a, b)),
        );
        check(
            &[("a", "gh_x"), ("b", "gh")],
            Err(PrefixError::Shadows(a2, b2)),
        );
        check(
            &[("a", "gh"), ("b", "gh")],
            Err(PrefixError::Shadows("a".into(), "b".into())),
        );
        check(
            &[("a", ""), ("b", "")],
            Err(PrefixError::TwoEmpty("a".into(), "b".into())),
        );
        check(
            &[("a", "x"), ("a", "y")],
            Err(PrefixError::SameId("a".into())),
        );
        let limit = "p".repeat(PREFIX_CHARS_MAX);
        check(&[("a", &limit)], Ok(()));
        check(
            &[("a", &format!("{limit}p"))],
            Err(PrefixError::TooLong("a".into())),
        );
        let with_gateway = [
            UpstreamNames::gateway(),
            UpstreamNames::new(ParticipantId::new("a").unwrap(), ""),
        ];
        assert_eq!(check_prefixes(&with_gateway), Ok(()));
    }
}
