//! Digests of modules: B5, which is SHAKE256 over a manifest of the files and the digests of the
//! dependencies (bufbuild/buf, `private/bufpkg/bufmodule/digest.go`).

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use sha3::Shake256;
use sha3::digest::{ExtendableOutput, Update};

/// Bytes of a digest.
pub(crate) const DIGEST_BYTES: usize = 64;

/// The B5 digest of files, in the order of their paths, and of the digests of all that they depend
/// on, indirectly too.
pub(crate) fn b5<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    dependencies: &[[u8; DIGEST_BYTES]],
) -> [u8; DIGEST_BYTES] {
    let line =
        |(path, content)| format!("shake256:{}  {path}\n", HEXLOWER.encode(&shake256(content)));
    let manifest: String = files.into_iter().map(line).collect();
    let mut lines: Vec<_> = dependencies.iter().map(printed).collect();
    lines.sort();
    lines.insert(
        0,
        format!(
            "shake256:{}",
            HEXLOWER.encode(&shake256(manifest.as_bytes()))
        ),
    );
    shake256(lines.join("\n").as_bytes())
}

/// A digest as `buf.lock` has it.
pub(crate) fn printed(digest: &[u8; DIGEST_BYTES]) -> String {
    format!("b5:{}", HEXLOWER.encode(digest))
}

/// Reads what [`printed`] writes.
pub(crate) fn parse(text: &str) -> Option<[u8; DIGEST_BYTES]> {
    HEXLOWER
        .decode(text.strip_prefix("b5:")?.as_bytes())
        .ok()?
        .try_into()
        .ok()
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

/// Whether a version is a commit id: 32 hexadecimal digits. Any other is a label.
pub(crate) fn is_commit(version: &str) -> bool {
    version.len() == 32
        && version
            .bytes()
            .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}
