//! Addresses of servers with `type = "proto"`.

use auth::check_proto_dial;
use hyper::Uri;
use upstream::config::{HttpConfig, ProtoConfig, Transport};

use crate::reader::Table;

/// The transport to this address. `is_whole`: its variables are set, so its text is the one that counts.
pub(super) fn address(table: &Table<'_>, at: HttpConfig, is_whole: bool) -> Option<Transport> {
    let text = at.url.expose();
    // A disabled server's variables are empty.
    let unset = !is_whole || text.is_empty();
    let uri: Option<Uri> = text.parse().ok();
    let scheme = uri.as_ref().and_then(Uri::scheme_str).unwrap_or_default().to_owned();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
    let has_port = uri.as_ref().is_some_and(|uri| uri.port_u16().is_some());
    let good = match &*scheme {
        "tcp" => !host.is_empty() && has_port,
        "ws" | "wss" => !host.is_empty(),
        _ => false,
    };
    if !good && !unset {
        let message =
            format!("`{}` is no address of a proto-mcp server: `{}`", table.full("url"), at.url.written());
        table.note_value(
            "url",
            message,
            "for example \"tcp://127.0.0.1:9100\" or \"wss://tools.example/proto\"",
        );
        return None;
    }
    if good && check_proto_dial(host, scheme == "wss").is_err() {
        let message =
            format!("`{}` leads to another machine without TLS: `{}`", table.full("url"), at.url.written());
        table.note_value("url", message, "use wss:// there, or an address of this machine");
        return None;
    }
    let is_tcp = scheme == "tcp";
    Some(Transport::Proto(if is_tcp { ProtoConfig::Tcp(at) } else { ProtoConfig::WebSocket(at) }))
}
