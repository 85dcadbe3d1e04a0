//! Handshake results: what the gateway answers to `initialize` and to `server/discover`.
//!
//! The gateway's own capabilities do not depend on which servers are running, so that a client that
//! connects early misses nothing. The extensions are those that the servers declared when they ran
//! last, and the instructions theirs, each under its server's name.

use std::borrow::Cow;

use bytes::Bytes;
use json::Object;
use wire::mcp::{Version, extensions::Merged, gateways, meta, task};

/// Longest instructions of a server that are passed on, in bytes.
pub const INSTRUCTIONS_BYTES_MAX: usize = 16 * 1024;

/// The gateway's `Implementation` object, raw JSON.
const IMPLEMENTATION: &str = concat!(
    r#"{"name":"portmoot","title":"Portmoot","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}"#
);

/// The gateway's `Implementation` object, raw JSON.
#[must_use]
pub fn identity() -> Bytes {
    Bytes::from_static(IMPLEMENTATION.as_bytes())
}

/// The result of `initialize` (MCP 2025-11-25, "Initialization"), which names the gateways that the
/// lists come through.
#[must_use]
pub fn initialize(
    instructions: Option<&str>,
    extensions: &Merged,
    gateways: &[String],
    version: Version,
) -> Vec<u8> {
    json::object(|result| {
        result.raw("_meta", &gateways::added(None, gateways));
        result.object("capabilities", |all| {
            write_capabilities(all, extensions, version)
        });
        result.optional_text("instructions", instructions);
        result.text("protocolVersion", version.as_str());
        result.raw("serverInfo", IMPLEMENTATION.as_bytes());
    })
}

/// The result of `server/discover` (MCP 2026-07-28, "Discovery").
#[must_use]
pub fn discover(instructions: Option<&str>, extensions: &Merged, gateways: &[String]) -> Vec<u8> {
    json::object(|result| {
        result.object("_meta", |about| {
            about.raw(meta::SERVER_INFO, IMPLEMENTATION.as_bytes());
            about.texts(gateways::KEY, gateways);
        });
        result.text("cacheScope", "private");
        result.object("capabilities", |all| {
            write_capabilities(all, extensions, Version::NEWEST)
        });
        result.optional_text("instructions", instructions);
        result.text("resultType", "complete");
        result.texts(
            "supportedVersions",
            Version::ALL.iter().rev().map(|version| version.as_str()),
        );
        result.number("ttlMs", 0);
    })
}

/// The result of an `initialize` that asks a server in the room for this revision. Of the server's
/// capabilities it has those that a room carries out, which are in every legacy revision or in the
/// one that is answered; a room has no notifications of lists and resources, no tasks and no
/// extensions. Without capabilities of its own a server has tools.
#[must_use]
pub fn of_server(name: &str, capabilities: &[u8], asked: &str) -> Vec<u8> {
    let version = Version::answer_to(asked);
    let capabilities = if json::is_object(capabilities) {
        capabilities
    } else {
        br#"{"tools":{}}"#
    };
    json::object(|result| {
        result.text("protocolVersion", version.as_str());
        result.object("capabilities", |all| {
            // Earlier revisions have completions without a capability that says so.
            if declares(capabilities, "completions") && version >= Version::V2025_03_26 {
                all.raw("completions", b"{}");
            }
            for ability in ["prompts", "resources", "tools"] {
                if declares(capabilities, ability) {
                    all.raw(ability, b"{}");
                }
            }
        });
        result.object("serverInfo", |info| {
            info.text("name", name)
                .text("version", env!("CARGO_PKG_VERSION"));
        });
    })
}

/// Whether capabilities, a JSON object, have this one.
fn declares(capabilities: &[u8], ability: &str) -> bool {
    json::at(capabilities, &[ability]).is_some_and(json::is_object)
}

/// Writes the gateway's capabilities. Legacy revisions have no extensions in their schemas, but
/// clients and servers of theirs declare them.
fn write_capabilities(all: &mut Object<'_>, extensions: &Merged, version: Version) {
    let (is_extension, tasks) = match version {
        Version::V2026_07_28 => (true, None),
        Version::V2025_11_25 => (false, Some(task::LEGACY_ABILITIES)),
        Version::V2025_06_18 | Version::V2025_03_26 | Version::V2024_11_05 => (false, None),
    };
    all.raw("completions", b"{}");
    all.raw("extensions", &extensions.write(is_extension));
    all.raw("logging", b"{}");
    all.raw("prompts", br#"{"listChanged":true}"#);
    all.raw("resources", br#"{"listChanged":true,"subscribe":true}"#);
    if let Some(tasks) = tasks {
        all.raw("tasks", tasks.as_bytes());
    }
    all.raw("tools", br#"{"listChanged":true}"#);
}

/// The instructions of these servers, out of so many. A single server needs no heading.
#[must_use]
pub fn join(parts: &[(&str, String)], servers: usize) -> Option<String> {
    match parts {
        [] => None,
        [(_, text)] if servers == 1 => Some(text.clone()),
        parts => {
            let each = parts
                .iter()
                .map(|(name, text)| format!("# {name}\n\n{text}"));
            Some(each.collect::<Vec<_>>().join("\n\n"))
        }
    }
}

/// The instructions in a server's handshake.
#[must_use]
pub fn instructions(handshake: &[u8]) -> Option<String> {
    json::at(handshake, &["instructions"])
        .and_then(json::text)
        .map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn tasks_are_declared_in_the_place_of_their_revision() {
        for (version, tasks, extension) in [
            (Version::V2025_06_18, false, false),
            (Version::V2025_11_25, true, false),
            (Version::V2026_07_28, false, true),
        ] {
            let all = json::object(|all| write_capabilities(all, &Merged::default(), version));
            let all: Value = serde_json::from_slice(&all).unwrap();
            assert_eq!(all["tasks"]["list"].is_object(), tasks, "{version}");
            assert_eq!(
                all["extensions"][task::EXTENSION].is_object(),
                extension,
                "{version}"
            );
            assert_eq!(all["resources"]["subscribe"], true);
        }
    }

    #[test]
    fn instructions_are_headed_by_their_servers_unless_there_is_one_server() {
        let one = [("a", "use a".to_owned())];
        assert_eq!(join(&[], 2), None);
        assert_eq!(join(&one, 1).as_deref(), Some("use a"));
        assert_eq!(join(&one, 2).as_deref(), Some("# a\n\nuse a"));
        let two = [("a", "x".to_owned()), ("b", "y".to_owned())];
        assert_eq!(join(&two, 2).as_deref(), Some("# a\n\nx\n\n# b\n\ny"));
    }

    #[test]
    fn a_server_in_the_room_has_tools_unless_it_says_otherwise() {
        let read = |capabilities: &[u8], asked: &str| -> Value {
            serde_json::from_slice(&of_server("git\"hub", capabilities, asked)).unwrap()
        };
        assert_eq!(read(b"", "")["capabilities"], json!({ "tools": {} }));
        let other = read(br#"{"prompts":{}}"#, "");
        assert_eq!(other["capabilities"], json!({ "prompts": {} }));
        assert_eq!(other["serverInfo"]["name"], "git\"hub");
        assert_eq!(other["protocolVersion"], "2025-11-25");
        // A revision is answered with itself, and with what it has and a room carries out.
        let modern = br#"{"completions":{},"extensions":{"io.modelcontextprotocol/tasks":{}},"experimental":{"x":{}},"logging":{},
            "prompts":null,"resources":{"subscribe":true,"listChanged":true},"tasks":{"list":{}},"tools":{"listChanged":true}}"#;
        for (asked, expected, completions) in [
            ("2024-11-05", "2024-11-05", false),
            ("2025-03-26", "2025-03-26", true),
            ("2025-06-18", "2025-06-18", true),
            ("2025-11-25", "2025-11-25", true),
            ("2026-07-28", "2025-11-25", true),
            ("2099-01-01", "2025-11-25", true),
            ("1", "2025-11-25", true),
        ] {
            let answer = read(modern, asked);
            assert_eq!(answer["protocolVersion"], expected, "{asked}");
            let mut capabilities = json!({ "resources": {}, "tools": {} });
            if completions {
                capabilities["completions"] = json!({});
            }
            assert_eq!(answer["capabilities"], capabilities, "{asked}");
        }
    }
}
