//! Handshake of proto-mcp (v1.0, "Protocol Negotiation", "Version Compatibility").

use bytes::Bytes;
use model::{Refusal, RefusalCode};
use prost::Message as _;
use wire::proto::contract::{
    InitializeRequest, InitializeResponse, ResourceCapabilities, ServerCapabilities,
    ToolCapabilities,
};
use wire::proto::{PayloadKind, VERSION};

/// The encoding of every message.
const PROTOBUF: &str = "protobuf";

/// Declaration of a client; without one it gets schemas inline and hears of no changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Declared {
    /// Whether the client reads schemas by reference, and can ask the gateway's registry for them.
    pub(crate) references: bool,
    /// It wants to know when lists change.
    pub(crate) list_changed: bool,
    /// It wants JSON Schemas in metadata.
    pub(crate) json_schemas: bool,
    /// It wants descriptor sets with all imports.
    pub(crate) full_descriptors: bool,
}

/// Reads an `InitializeRequest`.
///
/// # Errors
/// [`RefusalCode::UnsupportedProtocol`] for another major version, or an encoding that is not
/// protobuf; [`RefusalCode::Malformed`] if it is no such message.
pub(crate) fn read(message: &Bytes) -> Result<(Declared, String), Refusal> {
    let asked = InitializeRequest::decode(message.clone()).map_err(|_| {
        Refusal::new(
            RefusalCode::Malformed,
            "the request is no InitializeRequest",
        )
    })?;
    let Some(version) = agreed(&asked.protocol_version) else {
        let what = "unsupported protocol version";
        let refusal = Refusal::new(RefusalCode::UnsupportedProtocol, what);
        return Err(refusal.hint(format!("use {VERSION}")));
    };
    let capabilities = asked.capabilities.unwrap_or_default();
    let encodings = &capabilities.encodings;
    if !encodings.is_empty() && !encodings.iter().any(|one| one == PROTOBUF) {
        let refusal = Refusal::new(RefusalCode::UnsupportedProtocol, "no encoding in common");
        return Err(refusal.hint(format!(
            "declare the encoding `{PROTOBUF}`, or speak JSON-RPC"
        )));
    }
    let experimental = &capabilities.experimental;
    let declared = Declared {
        references: capabilities.supports_bsr_refs,
        list_changed: experimental.get("mcp.list_changed") == Some(&true),
        json_schemas: experimental.get("mcp.json_schema") == Some(&true),
        full_descriptors: experimental.get("mcp.full_descriptors") == Some(&true),
    };
    Ok((declared, version))
}

/// The version that both sides speak: of one major version the lower minor one. No version is
/// 1.0.0.
fn agreed(asked: &str) -> Option<String> {
    let asked = if asked.is_empty() { VERSION } else { asked };
    let theirs = Numbers::read(asked)?;
    let ours = Numbers::read(VERSION)?;
    if theirs.major != ours.major {
        return None;
    }
    let lower = if theirs < ours { asked } else { VERSION };
    Some(lower.to_owned())
}

/// A version, in the order of its parts.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Numbers {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Numbers {
    fn read(version: &str) -> Option<Self> {
        let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
        let numbers = Self {
            major: parts.next()??,
            minor: parts.next()??,
            patch: parts.next()??,
        };
        parts.next().is_none().then_some(numbers)
    }
}

/// The payload field of the answer.
pub(crate) fn answer(version: String, declared: Declared) -> Bytes {
    let changes = declared.list_changed;
    let capabilities = ServerCapabilities {
        supports_bsr_refs: declared.references,
        tools: Some(ToolCapabilities {
            supports_list_changed: changes,
        }),
        resources: Some(ResourceCapabilities {
            supports_list_changed: changes,
            supports_subscribe: false,
        }),
        ..ServerCapabilities::default()
    };
    let metadata = [("name", "portmoot"), ("version", env!("CARGO_PKG_VERSION"))];
    let metadata = metadata
        .map(|(key, text)| (key.to_owned(), text.to_owned()))
        .into_iter()
        .collect();
    PayloadKind::InitializeResponse.field_of(&InitializeResponse {
        protocol_version: version,
        capabilities: Some(capabilities),
        metadata,
    })
}

#[cfg(test)]
mod tests {
    use wire::proto::contract::ClientCapabilities;

    use super::*;

    #[test]
    fn versions_of_one_major_agree_on_the_lower_one() {
        for (asked, answer) in [
            ("", Some("1.0.0")),
            ("1.0.0", Some("1.0.0")),
            ("1.3.2", Some("1.0.0")),
            ("2.0.0", None),
            ("0.9.0", None),
            ("1.0", None),
            ("1.0.0.0", None),
            ("one", None),
        ] {
            assert_eq!(agreed(asked).as_deref(), answer, "{asked}");
        }
    }

    #[test]
    fn an_encoding_that_is_not_protobuf_is_refused() {
        let with = |encodings: &[&str]| {
            let encodings = encodings.iter().map(|one| (*one).to_owned()).collect();
            let capabilities = Some(ClientCapabilities {
                encodings,
                ..Default::default()
            });
            let asked = InitializeRequest {
                capabilities,
                ..Default::default()
            };
            read(&asked.encode_to_vec().into()).map_err(|refusal| refusal.code)
        };
        assert!(with(&[]).is_ok() && with(&["json", "protobuf"]).is_ok());
        assert_eq!(
            with(&["json"]).unwrap_err(),
            RefusalCode::UnsupportedProtocol
        );
    }
}
