//! Handshake results: what the gateway answers to `initialize` and to `server/discover`.

use wire::mcp::Version;

use crate::dispatch::Dispatch;

/// The result of `initialize` (MCP 2025-11-25, "Initialization").
pub fn initialize(_dispatch: &Dispatch, _version: Version) -> Vec<u8> {
    todo!()
}

/// The result of `server/discover` (MCP 2026-07-28, "Discovery").
pub fn discover(_dispatch: &Dispatch) -> Vec<u8> {
    todo!()
}
