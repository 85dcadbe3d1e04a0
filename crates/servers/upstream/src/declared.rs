//! Declarations of a server in its handshake.

use bytes::Bytes;
use wire::mcp::{Version, gateways};

/// The server's declarations in the handshake.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Handshake {
    pub(crate) version: Version,
    /// The result of `initialize` or `server/discover`.
    pub(crate) result: Bytes,
    /// The server's capabilities.
    pub(crate) capabilities: Bytes,
    /// The gateways between this one and what it lists, if it is a gateway itself: its own id
    /// first.
    pub(crate) gateways: Option<Vec<String>>,
    /// Whether the server also speaks the other era.
    pub(crate) both: bool,
}

impl Handshake {
    /// The handshake with this result.
    pub(crate) fn of(version: Version, result: Bytes, both: bool) -> Self {
        let capabilities = json::at(&result, &["capabilities"]);
        let capabilities =
            capabilities.map_or(Bytes::from_static(b"{}"), |raw| result.slice_ref(raw));
        let gateways = gateways::read(&result);
        Self {
            version,
            capabilities,
            gateways,
            both,
            result,
        }
    }
}
