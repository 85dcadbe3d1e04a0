//! Floods of bad tokens: stopped by address, without memory, and without harm to others.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use tokio::net::TcpSocket;

use super::provider::{Provider, unsigned};
use super::{initialize, resource, start};
use crate::http::TIMEOUT;
use crate::support::until;

/// Bad tokens that are sent. `PORTMOOT_BAD_TOKENS` has another number: docs/authorization.md has
/// what 100,000 gave.
const BAD_TOKENS: usize = 4_000;
/// Bad tokens of one address that are looked at in a minute.
const LOOKED_AT: usize = 60;
/// Tokens that one address sends here.
const OF_ONE_ADDRESS: usize = 80;
/// Bytes by which the gateway may grow from the first tenth of a flood to its end.
const GROWN_BYTES_MAX: usize = 6 << 20;

#[test]
fn a_flood_of_bad_tokens_is_stopped_and_leaves_others_alone() {
    let sent =
        std::env::var("PORTMOOT_BAD_TOKENS").map_or(BAD_TOKENS, |number| number.parse().unwrap());
    let provider = Provider::start(600);
    let (_home, gateway) = start(&provider, "");
    let good = provider.machine("machine", &resource("/mcp"), "");
    assert_eq!(initialize(&gateway, "/mcp", Some(&good)).status, 200);
    let (fetches, begun) = (provider.asked("/jwks"), Instant::now());
    let memory = || until("its memory", || resident(gateway.pid()));
    let (addresses, flooded) = (sent.div_ceil(OF_ONE_ADDRESS), AtomicBool::new(false));
    let issuer = provider.issuer();
    let (statuses, grown, served) = thread::scope(|scope| {
        // Others from an address of the flood: one with a token that was checked, one with a token
        // of its own each time.
        let others = scope.spawn(|| {
            let mut served = 0_usize;
            while !flooded.load(Ordering::Relaxed) || served < 20 {
                assert_eq!(initialize(&gateway, "/mcp", Some(&good)).status, 200);
                served += 1;
            }
            served
        });
        let (mut statuses, mut at_first) = (BTreeMap::new(), 0);
        for address in 0..addresses {
            // Also from the address of the others.
            let from = if address == 0 {
                Ipv4Addr::LOCALHOST
            } else {
                source(address)
            };
            let mut flood = Flood::from(gateway.address(), from);
            for number in 0..OF_ONE_ADDRESS {
                let token = match number % 4 {
                    0 => unsigned(&issuer, &format!("unknown-{address}-{number}")),
                    1 => format!("{}{address}x{number}", unsigned(&issuer, "a")),
                    2 => unsigned(&format!("https://issuer-{address}.example/{number}"), "a"),
                    _ => format!("opaque-{address}-{number}"),
                };
                let (status, wait) = flood.send(&token);
                *statuses.entry(status).or_insert(0_usize) += 1;
                assert_eq!(
                    status,
                    if number < LOOKED_AT { 401 } else { 429 },
                    "{address} {number}"
                );
                assert_eq!(
                    wait.is_some_and(|wait| (1..=60).contains(&wait)),
                    status == 429,
                    "{wait:?}"
                );
            }
            if address == addresses / 10 {
                at_first = memory();
            }
        }
        let grown = memory().saturating_sub(at_first);
        flooded.store(true, Ordering::Relaxed);
        (statuses, grown, others.join().unwrap())
    });
    let all: usize = statuses.values().sum();
    assert_eq!(
        statuses,
        BTreeMap::from([
            (401, addresses * LOOKED_AT),
            (429, all - addresses * LOOKED_AT)
        ])
    );
    assert!(grown < GROWN_BYTES_MAX, "{grown} bytes more");
    let looks = provider.asked("/jwks") - fetches;
    assert!(
        looks <= 1 + begun.elapsed().as_secs() / 30,
        "{looks} looks for unknown keys"
    );
    // From an address without bad tokens a token that was not seen before is looked at.
    let mut other = Flood::from(gateway.address(), source(addresses));
    assert_eq!(
        other
            .send(&provider.machine("machine", &resource("/mcp"), ""))
            .0,
        200
    );
    println!(
        "{all} bad tokens from {addresses} addresses in {:?}: {grown} bytes more, {looks} looks for keys, {served} requests of others served",
        begun.elapsed()
    );
}

/// The loopback address of this number.
pub(crate) fn source(number: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x7f01_0000 + u32::try_from(number).unwrap())
}

/// A connection from an address.
pub(crate) struct Flood(BufReader<TcpStream>);

impl Flood {
    pub(crate) fn from(to: &str, from: Ipv4Addr) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        let stream = runtime.block_on(async {
            let socket = TcpSocket::new_v4().unwrap();
            // Elsewhere there are fewer loopback addresses: all tokens come from one.
            socket.bind(SocketAddr::from((from, 0))).unwrap();
            let stream = socket.connect(to.parse().unwrap()).await.unwrap();
            stream.into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    /// Sends `initialize` with a token; the status, and after how many seconds to come back.
    fn send(&mut self, token: &str) -> (u16, Option<u32>) {
        let body = super::initialize_message().to_string();
        self.post("/mcp", &format!("authorization: Bearer {token}\r\n"), &body)
    }

    /// Sends JSON with these further headers; the same.
    pub(crate) fn post(&mut self, path: &str, headers: &str, body: &str) -> (u16, Option<u32>) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             {headers}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.get_mut().write_all(head.as_bytes()).unwrap();
        let (mut status, mut wait, mut length) = (0, None, 0);
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            let line = line.trim_end().to_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().unwrap();
            } else if let Some(seconds) = line.strip_prefix("retry-after: ") {
                wait = Some(seconds.parse().unwrap());
            } else if let Some(bytes) = line.strip_prefix("content-length: ") {
                length = bytes.parse().unwrap();
            } else if line.is_empty() {
                break;
            }
        }
        self.0.read_exact(&mut vec![0; length]).unwrap();
        (status, wait)
    }
}

/// The resident memory of a process in bytes.
pub(crate) fn resident(pid: u32) -> Option<usize> {
    status(pid, "VmRSS:")
}

/// The same without that of files, such as the program itself.
pub(crate) fn own_memory(pid: u32) -> Option<usize> {
    status(pid, "RssAnon:")
}

fn status(pid: u32, key: &str) -> Option<usize> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace()
        .next()?
        .parse::<usize>()
        .ok()
        .map(|kib| kib * 1024)
}
