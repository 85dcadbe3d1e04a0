//! Digests of modules that the configuration names: what a registry gives of their commits must
//! have them.

use std::collections::HashMap;

use crate::digest::{self, DIGEST_BYTES, is_commit};

/// Digests by `host/owner/module:COMMIT`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Digests(HashMap<String, [u8; DIGEST_BYTES]>);

/// Why a digest cannot be configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not HOST/OWNER/MODULE:COMMIT with a digest b5:...")]
pub struct BadDigest(pub String);

impl Digests {
    /// Adds the digest of a commit; both are written as `buf.lock` has them.
    ///
    /// # Errors
    /// One of them is not.
    pub fn add(&mut self, commit: &str, digest: &str) -> Result<(), BadDigest> {
        let is_named = commit.rsplit_once(':').is_some_and(|(module, id)| {
            module.split('/').filter(|part| !part.is_empty()).count() == 3 && is_commit(id)
        });
        match digest::parse(digest) {
            Some(digest) if is_named => {
                self.0.insert(commit.to_ascii_lowercase(), digest);
                Ok(())
            }
            Some(_) | None => Err(BadDigest(commit.to_owned())),
        }
    }

    /// The digest of a commit, if the configuration has one.
    pub(crate) fn of(&self, module: &str, commit: &str) -> Option<[u8; DIGEST_BYTES]> {
        self.0
            .get(&format!("{module}:{commit}").to_ascii_lowercase())
            .copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_as_in_a_lock_file() {
        let mut digests = Digests::default();
        let id = "0".repeat(32);
        let commit = format!("buf.build/acme/tools:{id}");
        let digest = format!("b5:{}", "1f".repeat(64));
        digests.add(&commit, &digest).unwrap();
        assert_eq!(
            digests.of("buf.build/acme/tools", &id),
            Some([0x1f; DIGEST_BYTES])
        );
        assert_eq!(digests.of("buf.build/acme/other", &id), None);
        let short = format!("b5:{}", "1f".repeat(63));
        for (commit, digest) in [
            (&*commit, &*short),
            (&*commit, &digest[3..]),
            ("buf.build/acme/tools:main", &*digest),
            ("buf.build/acme/tools", &*digest),
            (&*format!("acme/tools:{id}"), &*digest),
        ] {
            assert_eq!(
                digests.add(commit, digest),
                Err(BadDigest(commit.to_owned()))
            );
        }
    }
}
