//! Process environment: variables, program name.

/// An environment variable.
pub(crate) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The program name to use in printed commands: the path as typed, such as `target/release/portmoot`, else `portmoot`.
pub(crate) fn program_name() -> String {
    let name = std::env::args_os().next().and_then(|name| name.into_string().ok());
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+~".contains(c);
    name.filter(|name| name.contains('/') && name.chars().all(plain)).unwrap_or_else(|| "portmoot".to_owned())
}
