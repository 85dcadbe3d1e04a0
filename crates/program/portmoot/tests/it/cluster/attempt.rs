//! Requests to gateways that may end meanwhile.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::{ApiRequest, Reply};
use crate::socket;
use crate::support::modern_request;

/// Sends a request; `None` if the gateway does not take it.
pub(super) fn send(
    address: &str,
    within: Duration,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Option<TcpStream> {
    let at: SocketAddr = address.parse().unwrap();
    let mut stream = TcpStream::connect_timeout(&at, within).ok()?;
    stream.set_read_timeout(Some(within)).unwrap();
    let length = body.len();
    let mut text = format!(
        "{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n"
    );
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    stream
        .write_all(format!("{text}\r\n{body}").as_bytes())
        .ok()?;
    Some(stream)
}

/// Sends a request and waits for its whole answer; `None` if there is none in time.
pub(super) fn attempt(
    address: &str,
    within: Duration,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Option<Reply> {
    answer(send(address, within, line, headers, body)?, within)
}

/// Waits for the whole answer to a request that was sent; `None` if there is none in time.
pub(super) fn answer(mut stream: TcpStream, within: Duration) -> Option<Reply> {
    let end = Instant::now() + within;
    let (mut bytes, mut part) = (Vec::new(), [0; 16_384]);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        stream
            .set_read_timeout(Some(left.max(Duration::from_millis(1))))
            .unwrap();
        match stream.read(&mut part).ok()? {
            0 => return whole(&bytes),
            length => bytes.extend_from_slice(&part[..length]),
        }
    }
}

/// The answer, unless its end is missing.
fn whole(bytes: &[u8]) -> Option<Reply> {
    let reply = socket::Reply::read(bytes);
    let is_chunked = reply.header("transfer-encoding") == Some("chunked");
    let length = reply.header("content-length").map(str::parse);
    let is_whole = if is_chunked {
        bytes.ends_with(b"0\r\n\r\n")
    } else {
        length == Some(Ok(reply.body.len()))
    };
    is_whole.then(|| Reply {
        status: reply.status,
        headers: Vec::new(),
        body: reply.message(),
    })
}

/// One request to the API.
pub(super) fn api(
    address: &str,
    within: Duration,
    token: &str,
    line: &str,
    body: &Value,
) -> Option<Reply> {
    let request = ApiRequest::new(token, body);
    attempt(address, within, line, &request.headers(), &request.body)
}

/// One request of a modern client.
pub(super) fn modern(
    address: &str,
    within: Duration,
    token: &str,
    method: &str,
    params: Value,
) -> Option<Reply> {
    let (headers, body) = modern_request(Some(token), method, params);
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    attempt(address, within, "POST /mcp", &headers, &body)
}
