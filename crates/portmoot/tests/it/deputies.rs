//! Servers that are not what their operator takes them for: what the gateway keeps from them.

#[cfg(target_os = "linux")]
mod sandbox;
