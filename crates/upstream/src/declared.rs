//! Declarations of a server in its handshake.

use bytes::Bytes;
use wire::mcp::Version;

/// The server's declarations in the handshake.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Handshake {
    pub(crate) version: Version,
    /// The result of `initialize` or `server/discover`.
    pub(crate) result: Bytes,
    /// The server's capabilities.
    pub(crate) capabilities: Bytes,
    /// Whether the server also speaks the other era.
    pub(crate) both: bool,
}

impl Handshake {
    /// The handshake with this result.
    pub(crate) fn of(version: Version, result: Bytes, both: bool) -> Self {
        let capabilities = json::at(&result, &["capabilities"]);
        let capabilities = capabilities.map_or(Bytes::from_static(b"{}"), |raw| result.slice_ref(raw));
        Self { version, capabilities, both, result }
    }
}
