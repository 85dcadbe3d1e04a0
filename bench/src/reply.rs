//! Reads one HTTP/1.1 answer off a socket: status, one header, the body as it came.

use std::io;

use memchr::memmem;
use tokio::io::{AsyncRead, AsyncReadExt};

/// One answer.
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// `Mcp-Session-Id`, if it was given.
    pub session: Option<String>,
    /// The body; chunk sizes stay in it.
    pub body: Vec<u8>,
}

/// Reads the next answer. `buffer` keeps what came after it.
pub async fn read(from: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> io::Result<Reply> {
    let head_end = loop {
        if let Some(at) = memmem::find(buffer, b"\r\n\r\n") {
            break at + 4;
        }
        more(from, buffer).await?;
    };
    let head = Head::read(&buffer[..head_end]);
    let end = match head.length {
        Some(length) => head_end + length,
        None if head.chunked => loop {
            let whole = buffer[head_end..]
                .starts_with(b"0\r\n\r\n")
                .then_some(head_end + 5);
            match whole.or_else(|| {
                memmem::find(&buffer[head_end..], b"\r\n0\r\n\r\n").map(|at| head_end + at + 7)
            }) {
                Some(end) => break end,
                None => more(from, buffer).await?,
            }
        },
        None => head_end,
    };
    while buffer.len() < end {
        more(from, buffer).await?;
    }
    let body = buffer[head_end..end].to_vec();
    buffer.drain(..end);
    Ok(Reply {
        status: head.status,
        session: head.session,
        body,
    })
}

async fn more(from: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> io::Result<()> {
    match from.read_buf(buffer).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

struct Head {
    status: u16,
    session: Option<String>,
    length: Option<usize>,
    chunked: bool,
}

impl Head {
    fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.get(9..12))
            .and_then(|code| code.parse().ok())
            .unwrap_or(0);
        let mut head = Self {
            status,
            session: None,
            length: None,
            chunked: false,
        };
        for line in lines {
            let Some((name, value)) = line.split_once(": ") else {
                continue;
            };
            if name.eq_ignore_ascii_case("content-length") {
                head.length = value.parse().ok();
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                head.chunked = true;
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                head.session = Some(value.to_owned());
            }
        }
        head
    }
}
