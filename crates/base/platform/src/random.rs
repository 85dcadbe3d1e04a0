//! Random bytes of the operating system.

/// `N` random bytes. Ends the process if the operating system gives none, because ids and keys must
/// not be guessable.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if getrandom::fill(&mut bytes).is_err() {
        std::process::abort();
    }
    bytes
}
