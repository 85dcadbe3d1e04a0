//! The floors: `floor hyper PORT` answers every POST with one fixed text;
//! `floor bytes PORT UPSTREAM` passes bytes on between sockets and knows no HTTP;
//! `floor batch PORT` and `floor each PORT` write what one says to all.

use std::convert::Infallible;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let port: u16 = words[2].parse().expect("a port");
    match words[1].as_str() {
        "hyper" => hyper_floor(port),
        "bytes" => bytes_floor(port, words[3].parse().expect("an address")),
        "batch" => portmoot_bench::fan_floor::run(port, false),
        "each" => portmoot_bench::fan_floor::run(port, true),
        other => panic!("no floor {other}"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn hyper_floor(port: u16) -> io::Result<()> {
    // As long as an echo's answer, so that both write as much.
    let text = Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":1000000000,"result":{{"content":[{{"type":"text","text":"{}"}}]}}}}"#,
        "x".repeat(300)
    ));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let text = text.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let text = text.clone();
            async move {
                drop(request.into_body().collect().await);
                let mut response = Response::new(Full::new(text));
                response
                    .headers_mut()
                    .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                Ok::<_, Infallible>(response)
            }
        });
        tokio::spawn(
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service),
        );
    }
}

struct Pair {
    ends: [TcpStream; 2],
    /// What one end said and the other could not take yet.
    held: [Vec<u8>; 2],
}

const LISTENER: Token = Token(usize::MAX);

fn bytes_floor(port: u16, upstream: SocketAddr) -> io::Result<()> {
    let mut poll = Poll::new()?;
    let mut listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port)))?;
    poll.registry()
        .register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut pairs: Vec<Option<Pair>> = Vec::new();
    let mut events = Events::with_capacity(256);
    let mut buffer = vec![0; 64 << 10];
    loop {
        poll.poll(&mut events, None)?;
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((near, _)) = listener.accept() {
                    let mut ends = [near, TcpStream::connect(upstream)?];
                    for (side, end) in ends.iter_mut().enumerate() {
                        end.set_nodelay(true)?;
                        let token = Token(2 * pairs.len() + side);
                        poll.registry().register(
                            end,
                            token,
                            Interest::READABLE | Interest::WRITABLE,
                        )?;
                    }
                    pairs.push(Some(Pair {
                        ends,
                        held: Default::default(),
                    }));
                }
                continue;
            }
            let (at, side) = (event.token().0 / 2, event.token().0 % 2);
            let Some(pair) = &mut pairs[at] else { continue };
            let open = (!event.is_writable() || flush(pair, 1 - side))
                && (!event.is_readable() || pass(pair, side, &mut buffer));
            if !open {
                pairs[at] = None;
            }
        }
    }
}

/// Passes on what one end has said; false when it has ended.
fn pass(pair: &mut Pair, from: usize, buffer: &mut [u8]) -> bool {
    loop {
        match pair.ends[from].read(buffer) {
            Ok(0) => return false,
            Ok(count) => {
                pair.held[from].extend_from_slice(&buffer[..count]);
                if !flush(pair, from) {
                    return false;
                }
                if count < buffer.len() {
                    return true;
                }
            }
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

/// Writes what is held of this end to the other.
fn flush(pair: &mut Pair, from: usize) -> bool {
    while !pair.held[from].is_empty() {
        match pair.ends[1 - from].write(&pair.held[from]) {
            Ok(count) => drop(pair.held[from].drain(..count)),
            Err(error) => {
                return matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::NotConnected
                );
            }
        }
    }
    true
}
