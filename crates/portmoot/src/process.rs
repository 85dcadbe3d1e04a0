//! What the machine tells: its environment and its clock. Must not know who asks.

/// The process's environment.
pub(crate) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// How this program was called, so that what we print can be typed: `target/release/portmoot` from a fresh clone.
pub(crate) fn called() -> String {
    let name = std::env::args_os().next().and_then(|name| name.into_string().ok());
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+~".contains(c);
    name.filter(|name| name.contains('/') && name.chars().all(plain)).unwrap_or_else(|| "portmoot".to_owned())
}

/// Unix milliseconds.
pub(crate) fn now_ms() -> u64 {
    platform::unix_ms()
}
