//! A fake gateway with fixed answers, for tests of the command line alone.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

/// A received request.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: String,
    pub(crate) body: String,
}

/// An answer: status, content type, body.
pub(crate) type Answer = (u16, &'static str, String);

/// Listens on a free port until the test ends. Returns the URL and a channel of received requests.
pub(crate) fn gateway(
    answer: impl Fn(&Seen) -> Answer + Send + 'static,
) -> (String, Receiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (send, seen) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = read(&mut stream);
            let (status, kind, body) = answer(&request);
            let session = if request.body.contains("\"initialize\"") {
                "mcp-session-id: s1\r\n"
            } else {
                ""
            };
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n{session}connection: close\r\n\r\n",
                body.len()
            );
            // The test may have dropped the receiver.
            let _ = stream
                .write_all(head.as_bytes())
                .and_then(|()| stream.write_all(body.as_bytes()));
            let _ = send.send(request);
        }
    });
    (url, seen)
}

fn read(stream: &mut TcpStream) -> Seen {
    let mut reader = BufReader::new(stream);
    let (mut line, mut headers, mut body) = (String::new(), String::new(), Vec::new());
    reader.read_line(&mut line).unwrap();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        if header.trim().is_empty() {
            break;
        }
        headers.push_str(&header.to_lowercase());
    }
    let length = headers
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    body.resize(length.map_or(0, |length| length.trim().parse().unwrap()), 0);
    reader.read_exact(&mut body).unwrap();
    Seen {
        line: line.trim().to_owned(),
        headers,
        body: String::from_utf8(body).unwrap(),
    }
}
