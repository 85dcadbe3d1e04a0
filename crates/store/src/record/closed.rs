//! Record of closed proposals: digests of ended proposals that the journal no longer keeps in full.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Digests of ended proposals, oldest first. One record holds many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedProposals {
    /// For each proposal the time until which the journal keeps the digest, in Unix milliseconds, and the digest
    /// ([`crate::closed_digest`]), 32 hexadecimal digits on disk.
    #[serde(serialize_with = "write", deserialize_with = "read")]
    pub digests: Vec<(u64, u128)>,
}

fn write<S: Serializer>(digests: &[(u64, u128)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(digests.iter().map(|(until_ms, digest)| (until_ms, format!("{digest:032x}"))))
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(u64, u128)>, D::Error> {
    let texts = Vec::<(u64, String)>::deserialize(deserializer)?;
    let parse = |(until_ms, text): (u64, String)| {
        let is_digest = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let digest = is_digest.then(|| u128::from_str_radix(&text, 16).ok()).flatten();
        digest
            .map(|digest| (until_ms, digest))
            .ok_or_else(|| D::Error::custom("a digest has 32 hexadecimal digits"))
    };
    texts.into_iter().map(parse).collect()
}
