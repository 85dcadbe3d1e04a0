//! Addresses of servers with `type = "proto"` and `type = "grpc"`.

use auth::check_proto_dial;
use hyper::Uri;
use upstream::config::{HttpConfig, ProtoConfig, Transport};

use crate::reader::Table;

/// Form that the URL of a server must have.
struct Expected {
    /// Whether it is that, by its parts.
    is_good: fn(&Uri) -> bool,
    /// The scheme with TLS.
    encrypted: &'static str,
    example: &'static str,
}

const SOCKET: Expected = Expected {
    is_good: |uri| match uri.scheme_str() {
        Some("tcp") => uri.port_u16().is_some(),
        scheme => matches!(scheme, Some("ws" | "wss")),
    },
    encrypted: "wss",
    example: "for example \"tcp://127.0.0.1:9100\" or \"wss://tools.example/proto\"",
};

const GRPC: Expected = Expected {
    is_good: |uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.path().len() <= 1,
    encrypted: "https",
    example: "for example \"https://tools.example\": gRPC has no path of its own",
};

/// The transport to a socket or WebSocket. `is_whole`: its variables are set, so its text is the
/// one that counts.
pub(super) fn address(table: &Table<'_>, at: HttpConfig, is_whole: bool) -> Option<Transport> {
    check(table, &at, is_whole, &SOCKET).then(|| {
        let is_tcp = at.url.expose().starts_with("tcp:");
        Transport::Proto(if is_tcp {
            ProtoConfig::Tcp(at)
        } else {
            ProtoConfig::WebSocket(at)
        })
    })
}

/// The transport to a server of gRPC.
pub(super) fn grpc(table: &Table<'_>, at: HttpConfig, is_whole: bool) -> Option<Transport> {
    check(table, &at, is_whole, &GRPC).then(|| Transport::Proto(ProtoConfig::Grpc(at)))
}

fn check(table: &Table<'_>, at: &HttpConfig, is_whole: bool, expected: &Expected) -> bool {
    let text = at.url.expose();
    // A disabled server's variables are empty.
    let unset = !is_whole || text.is_empty();
    let uri: Option<Uri> = text.parse().ok();
    let uri = uri
        .filter(|uri| uri.host().is_some_and(|host| !host.is_empty()) && (expected.is_good)(uri));
    let Some(uri) = uri else {
        if !unset {
            let message = format!(
                "`{}` is no address of a proto-mcp server: `{}`",
                table.full("url"),
                at.url.written()
            );
            table.note_value("url", message, expected.example);
        }
        return unset;
    };
    let encrypted = expected.encrypted;
    let safe = check_proto_dial(
        uri.host().unwrap_or_default(),
        uri.scheme_str() == Some(encrypted),
    )
    .is_ok();
    if !safe {
        let message = format!(
            "`{}` leads to another machine without TLS: `{}`",
            table.full("url"),
            at.url.written()
        );
        table.note_value(
            "url",
            message,
            format!("use {encrypted}:// there, or an address of this machine"),
        );
    }
    safe
}
