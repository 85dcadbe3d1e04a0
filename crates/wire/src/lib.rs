//! The codecs: JSON-RPC, MCP's eras, and how a refusal is spelled on each.
