//! This process: its environment, the name of its program, who may look into its memory.

/// An environment variable.
pub(crate) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The program name to use in printed commands: the path as typed, such as
/// `target/release/portmoot`, else `portmoot`.
pub(crate) fn program_name() -> String {
    let typed = std::env::args_os()
        .next()
        .and_then(|name| name.into_string().ok())
        .unwrap_or_default();
    // A path that a shell would read otherwise, if it were copied from a message, is left out.
    let is_plain = typed
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/._-+~".contains(c));
    if typed.contains('/') && is_plain {
        typed
    } else {
        "portmoot".to_owned()
    }
}

/// The variable that leaves the memory of the program open to debuggers and core files.
const DUMPABLE: &str = "PORTMOOT_DUMPABLE";

/// Keeps the memory of this process, which has tokens of others, out of core files, and away from
/// other programs of the same user. A kernel that refuses it leaves things as they are everywhere
/// else.
pub(crate) fn hide_memory() {
    if env(DUMPABLE).is_none() {
        let _ = platform::hide_memory();
    }
}
