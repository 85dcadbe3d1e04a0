//! What the gateway says of itself: to `initialize` and to `server/discover`.
//!
//! Capabilities are the same whoever is up, so that a client that asked early misses nothing; instructions are those of
//! the servers, each under its name. Must not know transports.

use model::Era;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use wire::mcp::{Version, meta, task};

use crate::pump::Pump;

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];
/// Bytes of one server's instructions that are passed on.
pub const INSTRUCTIONS_BYTES_MAX: usize = 16 * 1024;

/// The `Implementation` object of the gateway.
pub fn identity() -> Value {
    json!({ "name": "portmoot", "title": "Portmoot", "version": env!("CARGO_PKG_VERSION") })
}

/// What the gateway can do in this revision.
fn capabilities(version: Version) -> Value {
    let mut all = json!({
        "completions": {},
        "logging": {},
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "tools": { "listChanged": true },
    });
    let ability = match version {
        Version::NEWEST => Some(("extensions", task::ABILITIES)),
        Version::NEWEST_LEGACY => Some(("tasks", task::LEGACY_ABILITIES)),
        _ => None,
    };
    if let (Some((name, raw)), Some(members)) = (ability, all.as_object_mut()) {
        members.insert(name.to_owned(), raw.parse().unwrap_or_default());
    }
    all
}

/// The result of `initialize` (MCP 2025-11-25, "Initialization").
pub fn initialize(pump: &Pump, version: Version) -> Vec<u8> {
    let mut result = json!({
        "protocolVersion": version.as_str(),
        "capabilities": capabilities(version),
        "serverInfo": identity(),
    });
    with_instructions(&mut result, pump)
}

/// The result of `server/discover` (MCP 2026-07-28, "Discovery").
pub fn discover(pump: &Pump) -> Vec<u8> {
    let versions: Vec<&str> = Version::ALL.iter().rev().map(|version| version.as_str()).collect();
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": versions,
        "capabilities": capabilities(Version::NEWEST),
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { meta::SERVER_INFO: identity() },
    });
    with_instructions(&mut result, pump)
}

fn with_instructions(result: &mut Value, pump: &Pump) -> Vec<u8> {
    let mut parts = Vec::new();
    for seat in pump.seats().iter() {
        let shared = ERAS.into_iter().find_map(|era| seat.upstream.open_shared(era));
        let Some(session) = shared else { continue };
        let greeting = session.handshake_result();
        let said = instructions(&greeting);
        if let Some(said) =
            said.filter(|said| !said.trim().is_empty() && said.len() <= INSTRUCTIONS_BYTES_MAX)
        {
            parts.push((seat.id.clone(), said));
        }
    }
    let text = match parts.as_slice() {
        [] => None,
        // One server that is shown as it is speaks for itself.
        [(_, said)] if pump.seats().len() == 1 => Some(said.clone()),
        parts => {
            let each: Vec<String> = parts.iter().map(|(name, said)| format!("# {name}\n\n{said}")).collect();
            Some(each.join("\n\n"))
        }
    };
    if let (Some(text), Some(members)) = (text, result.as_object_mut()) {
        members.insert("instructions".into(), text.into());
    }
    result.to_string().into_bytes()
}

fn instructions(greeting: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Greeting {
        instructions: Option<String>,
    }
    serde_json::from_slice::<Greeting>(greeting).ok()?.instructions
}

/// The gateway's identity as raw JSON.
pub fn identity_raw() -> bytes::Bytes {
    let raw: Option<Box<RawValue>> = to_raw_value(&identity()).ok();
    raw.map_or_else(|| bytes::Bytes::from_static(b"{}"), |raw| String::from(Box::<str>::from(raw)).into())
}
