//! A collector of telemetry that takes every message and keeps nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

/// Takes messages on this port until the program ends, on a thread. Returns its address.
///
/// # Panics
/// When the port is taken.
pub fn collect(port: u16) -> String {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            // A client that leaves in the middle needs no answer.
            std::thread::spawn(|| take_all(socket));
        }
    });
    format!("http://{address}")
}

/// Reads requests and answers each, until the client closes.
fn take_all(socket: TcpStream) -> Option<()> {
    let mut writer = socket.try_clone().ok()?;
    let mut reader = BufReader::new(socket);
    loop {
        let bytes = body_bytes(&mut reader)?;
        std::io::copy(&mut (&mut reader).take(bytes), &mut std::io::sink()).ok()?;
        writer
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .ok()?;
    }
}

/// The length of the body after the next head; `None` at the end.
fn body_bytes(reader: &mut impl BufRead) -> Option<u64> {
    let mut bytes = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            return Some(bytes);
        }
        if let Some(length) = line.strip_prefix("content-length:") {
            bytes = length.trim().parse().ok()?;
        }
    }
}
