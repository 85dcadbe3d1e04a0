//! Text in Base64 or hexadecimal digits, where a description has no reason for it.

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};

/// The shortest run of digits that is decoded.
const RUN_MIN: usize = 32;
/// Bytes of a run that are decoded.
const RUN_MAX: usize = 4_096;

/// The place of the first run of digits that is text.
pub(super) fn find(text: &str) -> Option<usize> {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    let bytes = text.as_bytes();
    let mut from = 0;
    while from < bytes.len() {
        let rest = bytes.get(from..).unwrap_or_default();
        let length = rest
            .iter()
            .position(|byte| !is_digit(*byte))
            .unwrap_or(rest.len());
        if length >= RUN_MIN && rest.get(..length.min(RUN_MAX)).is_some_and(is_text) {
            return Some(from);
        }
        from += length + 1;
    }
    None
}

fn is_text(run: &[u8]) -> bool {
    let whole = run.get(..run.len() / 4 * 4).unwrap_or_default();
    let even = run.get(..run.len() / 2 * 2).unwrap_or_default();
    let decoded = [
        HEXLOWER_PERMISSIVE.decode(even),
        BASE64_NOPAD.decode(whole),
        BASE64URL_NOPAD.decode(whole),
    ];
    decoded.into_iter().flatten().any(|bytes| {
        let printable = bytes
            .iter()
            .filter(|byte| (b' '..=b'~').contains(byte) || **byte == b'\n')
            .count();
        printable == bytes.len() && bytes.contains(&b' ')
    })
}
