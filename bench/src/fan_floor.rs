//! The floor of the fan-out: one thread that writes the bytes of one socket to all sockets, and
//! knows nothing else.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use crate::wires::Wire;

const LISTENER: Token = Token(usize::MAX);

struct Member {
    socket: TcpStream,
    /// The start of a frame whose end has not come.
    begun: Vec<u8>,
    /// What it did not take yet.
    held: Vec<u8>,
}

impl Member {
    fn write(&mut self, bytes: &[u8]) {
        if !self.held.is_empty() {
            return self.held.extend_from_slice(bytes);
        }
        let count = self.socket.write(bytes).unwrap_or(0);
        self.held.extend_from_slice(&bytes[count..]);
    }

    fn flush(&mut self) {
        while let Ok(count @ 1..) = self.socket.write(&self.held) {
            self.held.drain(..count);
        }
    }
}

/// Serves until it is ended. `each`: one write for each frame and member; else one for all frames
/// that have come.
///
/// # Errors
/// Those of the listener.
pub fn run(port: u16, each: bool) -> io::Result<()> {
    let mut poll = Poll::new()?;
    let mut listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port)))?;
    poll.registry()
        .register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut members: Vec<Option<Member>> = Vec::new();
    let mut events = Events::with_capacity(1024);
    let mut scratch = vec![0; 256 << 10];
    // All frames of one round, and where each ends.
    let (mut frames, mut ends) = (Vec::new(), Vec::new());
    loop {
        poll.poll(&mut events, None)?;
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut socket, _)) = listener.accept() {
                    socket.set_nodelay(true)?;
                    let token = Token(members.len());
                    poll.registry().register(
                        &mut socket,
                        token,
                        Interest::READABLE | Interest::WRITABLE,
                    )?;
                    members.push(Some(Member {
                        socket,
                        begun: Vec::new(),
                        held: Vec::new(),
                    }));
                }
                continue;
            }
            let place = &mut members[event.token().0];
            let Some(member) = place else { continue };
            if event.is_writable() && !member.held.is_empty() {
                member.flush();
            }
            if event.is_readable() && !hear(member, &mut scratch, &mut frames, &mut ends) {
                *place = None;
            }
        }
        for member in members.iter_mut().flatten() {
            let mut from = 0;
            let whole = if each {
                0
            } else {
                ends.len().saturating_sub(1)
            };
            for end in ends.iter().skip(whole) {
                member.write(&frames[from..*end]);
                from = *end;
            }
        }
        frames.clear();
        ends.clear();
        if members.iter().all(Option::is_none) {
            members.clear();
        }
    }
}

/// Takes what one has said; false when it has gone.
fn hear(
    member: &mut Member,
    scratch: &mut [u8],
    frames: &mut Vec<u8>,
    ends: &mut Vec<usize>,
) -> bool {
    loop {
        let count = match member.socket.read(scratch) {
            Ok(0) => return false,
            Ok(count) => count,
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        };
        member.begun.extend_from_slice(&scratch[..count]);
        let mut done = 0;
        while let Some((_, len)) = Wire::Bare.frame(&member.begun[done..]) {
            done += len;
            ends.push(frames.len() + done);
        }
        frames.extend_from_slice(&member.begun[..done]);
        member.begun.drain(..done);
        if count < scratch.len() {
            return true;
        }
    }
}
