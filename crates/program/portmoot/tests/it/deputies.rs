//! Servers that are not what their operator takes them for: what the gateway keeps from them.

mod pins;
#[cfg(target_os = "linux")]
mod sandbox;
