//! Digests of modules: B5, which is SHAKE256 over a manifest of the files and the digests of the dependencies
//! (bufbuild/buf, `private/bufpkg/bufmodule/digest.go`).

use std::collections::BTreeMap;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use sha3::Shake256;
use sha3::digest::{ExtendableOutput, Update};

/// Bytes of a digest.
pub(crate) const DIGEST_BYTES: usize = 64;

/// The B5 digest of files and of the digests of what they depend on.
pub(crate) fn b5(
    files: &BTreeMap<String, Arc<str>>,
    dependencies: &[[u8; DIGEST_BYTES]],
) -> [u8; DIGEST_BYTES] {
    let line = |(path, text): (&String, &Arc<str>)| {
        format!("shake256:{}  {path}\n", HEXLOWER.encode(&shake256(text.as_bytes())))
    };
    let manifest: String = files.iter().map(line).collect();
    let mut lines: Vec<_> =
        dependencies.iter().map(|digest| format!("b5:{}", HEXLOWER.encode(digest))).collect();
    lines.sort();
    lines.insert(0, format!("shake256:{}", HEXLOWER.encode(&shake256(manifest.as_bytes()))));
    shake256(lines.join("\n").as_bytes())
}

fn shake256(bytes: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut hash = Shake256::default();
    hash.update(bytes);
    let mut digest = [0; DIGEST_BYTES];
    hash.finalize_xof_into(&mut digest);
    digest
}

/// An id of 32 hexadecimal digits that follows from these parts.
pub(crate) fn id(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        sha2::Digest::update(&mut hash, (part.len() as u64).to_be_bytes());
        sha2::Digest::update(&mut hash, part);
    }
    let digits = HEXLOWER.encode(&hash.finalize());
    digits.chars().take(32).collect()
}
