//! Translation of a client's requests and notifications.

use bytes::Bytes;
use json::{Splice, quote};

use crate::mcp::meta;
use crate::mcp::params::Params;
use crate::mcp::version::Version;
use crate::rpc::Message;

/// A legacy request as a modern one: `_meta` gets the version, the client's capabilities and its name.
/// `None` if its params cannot be read.
#[must_use]
pub(crate) fn request_to_modern(
    message: &Message,
    client_info: Option<&[u8]>,
    capabilities: &[u8],
) -> Option<Bytes> {
    let params = Params::read(message).ok()?;
    let mut edit = params.edit();
    edit.set_meta(meta::PROTOCOL_VERSION, quote(Version::NEWEST.as_str()).as_bytes());
    if let Some(info) = client_info {
        edit.set_meta(meta::CLIENT_INFO, info);
    }
    edit.set_meta(meta::CLIENT_CAPABILITIES, capabilities);
    let mut splice = Splice::new();
    edit.finish(&mut splice);
    Some(message.edited(&splice))
}

/// A modern request as a legacy one: the protocol's own keys leave `_meta`; the progress token and all others stay.
/// `None` if its params cannot be read.
#[must_use]
pub(crate) fn request_to_legacy(message: &Message) -> Option<Bytes> {
    let params = Params::read(message).ok()?;
    let mut splice = Splice::new();
    params.edit().remove_meta(&meta::REQUEST_KEYS).finish(&mut splice);
    Some(message.edited(&splice))
}
