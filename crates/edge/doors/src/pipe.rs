//! Client on a pipe: its first byte says which protocol it speaks (proto-mcp v1.0, "Dual-Protocol
//! Support").

use std::io;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use wire::proto::sniff::{Sniffed, sniff};
use wire::rpc::{self, code};

use crate::links::ClientLinks;
use crate::outlet::Visitor;
use crate::proto::{self, ProtoArrival};
use crate::stdio;
use crate::stream::{Lifetime, Stream};

/// The mark with which some editors begin UTF-8 texts.
const UTF8_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// Reads until the first byte that says something is there, and leaves it in `read`; `None` if the
/// client closes its side before.
///
/// # Errors
/// Errors of the pipe.
pub async fn first_byte(
    input: &mut (impl AsyncRead + Unpin),
    read: &mut BytesMut,
) -> io::Result<Option<u8>> {
    loop {
        // A line may be blank, and a mark may come in parts.
        while read.first().is_some_and(u8::is_ascii_whitespace) {
            read.advance(1);
        }
        if read.starts_with(UTF8_MARK) {
            read.advance(UTF8_MARK.len());
            continue;
        }
        match read.first().copied() {
            Some(first) if !UTF8_MARK.starts_with(read) => return Ok(Some(first)),
            _ if input.read_buf(read).await? == 0 => return Ok(None),
            _ => {}
        }
    }
}

/// Serves one client until it closes its side.
///
/// # Errors
/// Errors of the pipe.
pub(crate) async fn serve(
    links: &ClientLinks,
    visitor: Visitor,
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<()> {
    let mut read = BytesMut::new();
    let Some(first) = first_byte(&mut input, &mut read).await? else {
        return Ok(());
    };
    match sniff(first) {
        Sniffed::Proto => {
            let bounds = links.registry.bounds(&visitor.participant.id);
            let out = Stream::new(0, Lifetime::Reader, 0, &bounds);
            let arrival = ProtoArrival {
                visitor,
                host: None,
                address: None,
                trace: None,
            };
            proto::serve(links, arrival, &out, read, input, output).await
        }
        Sniffed::Json => stdio::serve(links, visitor, read, input, output).await,
        Sniffed::Tls | Sniffed::Http | Sniffed::Unknown => {
            let why = "neither JSON-RPC nor proto-mcp begins with this byte";
            let mut line = rpc::error(None, code::PARSE_ERROR, why, None).to_vec();
            line.push(b'\n');
            output.write_all(&line).await?;
            output.flush().await
        }
    }
}
