//! Every door: each path and protocol on which a stranger can send bytes, opened with a message
//! that never ends.
//!
//! The table below is compared with the gateway's OpenAPI document and with the paths in the
//! sources of its routers.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::{frame, head};
use crate::home::Home;
use crate::http::{Connection, TIMEOUT};
use crate::support::{Client, Gateway, fixture, until};
use crate::tls::authority::Authority;
use crate::ws::{GOOD, people, token};

/// Bytes of a body, of which the last one is missing.
const BODY_BYTES: usize = 4_000;
/// Bytes of a head, a frame, a handshake or a connection of HTTP/2 that is not whole.
const UNFINISHED_BYTES: usize = 20_000;
/// Bytes of a connection of HTTP/2 that are on no account (docs/limits.md).
const FREE_BYTES: usize = 4 * 1024;
/// The share of one address (docs/limits.md).
const SHARE_BYTES: usize = 1 << 20;

/// What becomes of a body of a stranger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    /// The gateway answers with this status before the body is whole, and holds nothing of it.
    Unread(u16),
    /// It is on the account of its address, and is waited for so long as docs/limits.md says: 2 s
    /// if it is refused anyway, 5 s for a form.
    Counted,
    /// The same for a stream of questions, for 60 s.
    Questions,
}

use Body::{Counted, Questions, Unread};

/// The doors of HTTP, by method and path as the routers spell it.
const DOORS: &[(&str, &str, Body)] = &[
    // MCP.
    ("POST", "/mcp", Counted),
    ("GET", "/mcp", Counted),
    ("DELETE", "/mcp", Counted),
    ("POST", "/mcp/{topic}", Counted),
    ("GET", "/sse", Unread(401)),
    ("POST", "/sse", Unread(405)),
    ("POST", "/messages", Unread(401)),
    // Sockets, without an upgrade: their upgrades are a test of its own.
    ("GET", "/ws", Unread(401)),
    ("POST", "/ws", Unread(405)),
    ("GET", "/proto", Unread(401)),
    ("POST", "/proto", Unread(405)),
    ("GET", "/proto/{topic}", Unread(401)),
    // gRPC: a refusal is in the trailers.
    ("POST", "/buf.mcp.v1.MCPService/Initialize", Unread(200)),
    ("POST", "/buf.mcp.v1.MCPService/ListTools", Unread(200)),
    ("POST", "/buf.mcp.v1.MCPService/CallTool", Unread(200)),
    ("POST", "/buf.mcp.v1.MCPService/ListResources", Unread(200)),
    ("POST", "/buf.mcp.v1.MCPService/ReadResource", Unread(200)),
    ("POST", "/buf.mcp.v1.MCPService/{unknown}", Unread(200)),
    ("POST", "/grpc.health.v1.Health/{method}", Questions),
    (
        "POST",
        "/grpc.reflection.v1.ServerReflection/{method}",
        Questions,
    ),
    (
        "POST",
        "/grpc.reflection.v1alpha.ServerReflection/{method}",
        Questions,
    ),
    ("POST", "/no.such.v1.Service/{method}", Unread(200)),
    // Schemas.
    (
        "POST",
        "/buf.registry.module.v1.CommitService/GetCommits",
        Unread(401),
    ),
    (
        "POST",
        "/buf.registry.module.v1.GraphService/GetGraph",
        Unread(401),
    ),
    (
        "POST",
        "/buf.registry.module.v1.DownloadService/Download",
        Unread(401),
    ),
    (
        "POST",
        "/buf.registry.module.v1.ModuleService/GetModules",
        Unread(401),
    ),
    (
        "POST",
        "/buf.registry.owner.v1.OwnerService/GetOwners",
        Unread(401),
    ),
    (
        "POST",
        "/buf.registry.module.v1.FileDescriptorSetService/GetFileDescriptorSet",
        Unread(401),
    ),
    (
        "POST",
        "/buf.reflect.v1beta1.FileDescriptorSetService/GetFileDescriptorSet",
        Unread(401),
    ),
    // Signing in, and the connect pages.
    ("GET", "/.well-known/oauth-protected-resource", Unread(200)),
    ("POST", "/.well-known/oauth-protected-resource", Unread(405)),
    ("GET", "/.well-known/oauth-authorization-server", Counted),
    (
        "POST",
        "/.well-known/oauth-authorization-server/{path}",
        Counted,
    ),
    ("GET", "/.well-known/openid-configuration", Counted),
    ("GET", "/oauth/authorize", Counted),
    ("POST", "/oauth/authorize", Counted),
    ("POST", "/oauth/consent", Counted),
    ("POST", "/oauth/token", Counted),
    ("PUT", "/oauth/token", Counted),
    ("POST", "/oauth/register", Counted),
    ("POST", "/oauth/revoke", Counted),
    ("GET", "/connect/{id}", Counted),
    ("POST", "/connect/{id}", Counted),
    ("GET", "/oauth/callback", Counted),
    ("POST", "/oauth/client.json", Counted),
    ("POST", "/oauth/client/{name}", Counted),
    ("POST", "/oauth/jwks.json", Counted),
    // The console.
    ("GET", "/console", Counted),
    ("POST", "/console/login", Counted),
    ("GET", "/console/signed-in/portmoot", Counted),
    ("POST", "/console/p/{id}/approve", Counted),
    // The API.
    ("GET", "/healthz", Unread(200)),
    ("GET", "/readyz", Unread(200)),
    ("GET", "/metrics", Unread(401)),
    ("GET", "/api/v1/openapi.json", Unread(200)),
    ("GET", "/api/v1/audit", Unread(401)),
    ("GET", "/api/v1/audit/verify", Unread(401)),
    ("GET", "/api/v1/audit/calls", Unread(401)),
    ("GET", "/api/v1/audit/calls/{id}", Unread(401)),
    ("GET", "/api/v1/servers", Unread(401)),
    ("GET", "/api/v1/servers/{name}", Unread(401)),
    ("PUT", "/api/v1/servers/{name}", Unread(401)),
    ("DELETE", "/api/v1/servers/{name}", Unread(401)),
    ("GET", "/api/v1/servers/{name}/logs", Unread(401)),
    ("POST", "/api/v1/servers/{name}/restart", Unread(401)),
    ("POST", "/api/v1/servers/{name}/disable", Unread(401)),
    ("POST", "/api/v1/servers/{name}/enable", Unread(401)),
    ("GET", "/api/v1/servers/{name}/login", Unread(401)),
    ("POST", "/api/v1/servers/{name}/login", Unread(401)),
    ("POST", "/api/v1/servers/{name}/login/complete", Unread(401)),
    ("POST", "/api/v1/servers/{name}/login/device", Unread(401)),
    (
        "POST",
        "/api/v1/servers/{name}/login/device/{id}",
        Unread(401),
    ),
    ("POST", "/api/v1/servers/{name}/logout", Unread(401)),
    ("POST", "/api/v1/servers/{name}/key", Unread(401)),
    ("GET", "/api/v1/accounts", Unread(401)),
    ("POST", "/api/v1/connect-code", Unread(401)),
    ("POST", "/api/v1/console-codes", Unread(401)),
    ("GET", "/api/v1/pins", Unread(401)),
    ("GET", "/api/v1/pins/{server}", Unread(401)),
    ("DELETE", "/api/v1/pins/{server}", Unread(401)),
    ("POST", "/api/v1/pins/{server}/approve", Unread(401)),
    ("GET", "/api/v1/tools", Unread(401)),
    ("GET", "/api/v1/tools/{name}", Unread(401)),
    ("POST", "/api/v1/tools/{name}/call", Unread(401)),
    ("GET", "/api/v1/tokens", Unread(401)),
    ("POST", "/api/v1/tokens", Unread(401)),
    ("DELETE", "/api/v1/tokens/{name}", Unread(401)),
    ("POST", "/api/v1/tokens/{name}/rotate", Unread(401)),
    ("POST", "/api/v1/logins", Unread(401)),
    ("GET", "/api/v1/clients", Unread(401)),
    ("DELETE", "/api/v1/clients/{client}", Unread(401)),
    ("GET", "/api/v1/consents", Unread(401)),
    ("DELETE", "/api/v1/consents/{client}", Unread(401)),
    ("GET", "/api/v1/participants", Unread(401)),
    ("GET", "/api/v1/participants/{id}/can", Unread(401)),
    ("POST", "/api/v1/participants/{id}/grants", Unread(401)),
    ("DELETE", "/api/v1/participants/{id}/grants", Unread(401)),
    ("POST", "/admin/participants/{id}/capabilities", Unread(401)),
    ("GET", "/api/v1/proposals", Unread(401)),
    ("GET", "/api/v1/proposals/{id}", Unread(401)),
    ("GET", "/api/v1/proposals/{id}/rules", Unread(401)),
    ("GET", "/api/v1/topics/{topic}/rules", Unread(401)),
    ("POST", "/api/v1/topics/{topic}/messages", Unread(401)),
    (
        "POST",
        "/api/v1/topics/{topic}/participants/{id}/pause",
        Unread(401),
    ),
    (
        "POST",
        "/api/v1/topics/{topic}/participants/{id}/resume",
        Unread(401),
    ),
    ("POST", "/api/v1/topics/{topic}/rules", Unread(401)),
    ("POST", "/api/v1/topics/{topic}/rules/replay", Unread(401)),
    ("GET", "/api/v1/topics/{topic}/rules/offers", Unread(401)),
    (
        "POST",
        "/api/v1/topics/{topic}/rules/offers/{digest}/accept",
        Unread(401),
    ),
    (
        "POST",
        "/api/v1/topics/{topic}/rules/offers/{digest}/dismiss",
        Unread(401),
    ),
    (
        "POST",
        "/api/v1/topics/{topic}/rules/{rule}/end",
        Unread(401),
    ),
    ("GET", "/api/v1/results/{id}", Unread(401)),
    ("POST", "/api/v1/plans", Unread(401)),
    ("POST", "/api/v1/proposals/{id}/approve", Unread(401)),
    ("POST", "/api/v1/proposals/{id}/claim", Unread(401)),
    ("POST", "/api/v1/proposals/{id}/amend", Unread(401)),
    ("POST", "/api/v1/proposals/{id}/extend", Unread(401)),
    ("POST", "/api/v1/proposals/{id}/like", Unread(401)),
    ("POST", "/api/v1/proposals/{id}/reject", Unread(401)),
    ("POST", "/api/v1/proposals/{id}/withdraw", Unread(401)),
    // Nothing.
    ("POST", "/", Unread(404)),
    ("POST", "/no-such-page", Unread(404)),
];

/// Paths in the sources of the routers that are other spellings of doors in the table, or no doors.
const SPELLINGS: &[(&str, &str)] = &[
    (
        "/.well-known/{name}",
        "/.well-known/oauth-authorization-server",
    ),
    (
        "/.well-known/{name}/{{*path}}",
        "/.well-known/oauth-authorization-server/{path}",
    ),
    ("/messages?sessionId={id}", "/messages"),
    // What follows the well-known part of a path.
    (
        "/{suffix}",
        "/.well-known/oauth-authorization-server/{path}",
    ),
    // The listener of `servers login` is its own, and the gateway's stands beside it.
    ("/callback", "/oauth/callback"),
    // What the API's document leaves out of a path to name its operation, and where an answer says
    // that its proposal is.
    ("/api/v1", "/api/v1/servers"),
    ("/api/v1/proposals/{proposal}", "/api/v1/proposals/{id}"),
];

/// A gateway with every door open: signing in, the event streams of 2024-11-05, a server.
fn gateway() -> (Home, Gateway) {
    let (home, people) = people(&[("ann", &["mcp/*", "portmoot/*"])]);
    let config = people
        + "legacy_sse = true\npublic_url = \"http://127.0.0.1:1\"\n[login]\nenabled = true\n[topics.main]\n"
        + &fixture("a", &[]);
    let gateway = Gateway::start(&home, &config);
    gateway.ready("a");
    (home, gateway)
}

/// What is on the accounts of senders that are not known, in bytes, as an operator sees it.
struct Account(Connection);

impl Account {
    fn of(gateway: &Gateway) -> Account {
        Account(Connection::open(gateway.address()))
    }

    fn bytes(&mut self) -> usize {
        let bearer = format!("Bearer {}", token("ann"));
        let metrics = self
            .0
            .exchange("GET", "/metrics", &[("authorization", &bearer)], "");
        let line = metrics
            .body
            .lines()
            .find_map(|line| line.strip_prefix("portmoot_newcomer_bytes "));
        line.unwrap_or_else(|| panic!("{metrics:?}"))
            .parse()
            .unwrap()
    }

    #[track_caller]
    fn holds(&mut self, least: usize, what: &str) {
        until(&format!("{what}: {least} bytes are counted"), || {
            (self.bytes() >= least).then_some(())
        });
    }

    #[track_caller]
    fn is_empty(&mut self, what: &str) {
        until(&format!("{what}: nothing is counted any more"), || {
            (self.bytes() == 0).then_some(())
        });
    }
}

/// The path of a request, for a path of the table.
fn path_of(pattern: &str) -> String {
    let mut parts = pattern.split('/').map(|part| match part {
        "{method}" if pattern.contains("Health") => "Check",
        "{method}" => "ServerReflectionInfo",
        part if part.starts_with('{') => "x",
        part => part,
    });
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |path, part| path + "/" + part)
}

fn connect(gateway: &Gateway) -> TcpStream {
    let stream = TcpStream::connect(gateway.address()).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// The head of a request, without its last line.
fn request(gateway: &Gateway, method: &str, pattern: &str) -> String {
    let content_type = match pattern {
        grpc if grpc.contains(".v1.MCPService/")
            || grpc.contains("grpc.")
            || grpc.contains("no.such") =>
        {
            "application/grpc-web+proto"
        }
        schemas if schemas.starts_with("/buf.re") => "application/proto",
        page if ["/oauth/", "/connect/", "/console"]
            .iter()
            .any(|one| page.starts_with(one)) =>
        {
            "application/x-www-form-urlencoded"
        }
        _ => "application/json",
    };
    format!(
        "{method} {} HTTP/1.1\r\nhost: {}\r\naccept: application/json, text/event-stream\r\ncontent-type: {content_type}\r\n",
        path_of(pattern),
        gateway.address()
    )
}

/// The bytes of a message of gRPC, or of nothing else, of which the last one is missing.
fn unfinished(bytes: usize) -> Vec<u8> {
    let message = u32::try_from(bytes - 5).unwrap().to_be_bytes();
    [&[0][..], &message, &vec![b'x'; bytes - 6]].concat()
}

/// Opens a door by HTTP/1, with a body without its last byte.
fn open(gateway: &Gateway, method: &str, pattern: &str) -> TcpStream {
    let mut stream = connect(gateway);
    let head = request(gateway, method, pattern) + &format!("content-length: {BODY_BYTES}\r\n\r\n");
    // It may be answered before it is written.
    let _ = stream.write_all(&[head.as_bytes(), &unfinished(BODY_BYTES)].concat());
    stream
}

/// The status of an answer; 0 if the connection ends without one.
fn status(stream: &mut TcpStream, what: &str) -> u16 {
    let mut head = [0; 12];
    match stream.read_exact(&mut head) {
        Ok(()) => std::str::from_utf8(&head[9..]).unwrap().parse().unwrap(),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
            ) =>
        {
            0
        }
        Err(error) => panic!("{what}: neither answered nor closed: {error}"),
    }
}

#[test]
fn no_byte_of_a_stranger_is_held_without_an_account() {
    let (_home, gateway) = gateway();
    let mut account = Account::of(&gateway);
    for &(method, pattern, body) in DOORS {
        let what = format!("{method} {pattern}");
        account.is_empty(&format!("before {what}"));
        let mut stream = open(&gateway, method, pattern);
        match body {
            Unread(expected) => assert_eq!(status(&mut stream, &what), expected, "{what}"),
            Counted | Questions => {
                account.holds(BODY_BYTES - 1, &what);
                drop(stream);
            }
        }
        account.is_empty(&format!("after {what}"));
    }
    // What is waited for ends, with an answer, in the seconds that are documented: 5 at most.
    let counted = DOORS.iter().filter(|(.., body)| *body == Counted);
    let mut open: Vec<_> = counted
        .map(|(method, pattern, _)| (open(&gateway, method, pattern), method, pattern))
        .collect();
    for (stream, method, pattern) in &mut open {
        let what = format!("{method} {pattern}");
        let status = status(stream, &what);
        assert!([401, 408].contains(&status), "{what}: {status}");
    }
    account.is_empty("all are over");
    drop(open);
}

#[test]
fn heads_and_http2_of_strangers_are_on_an_account_at_every_door() {
    let (_home, gateway) = gateway();
    let mut account = Account::of(&gateway);
    let filler = "x".repeat(UNFINISHED_BYTES);
    for &(method, pattern, _) in DOORS {
        let what = format!("the head of {method} {pattern}");
        let mut stream = connect(&gateway);
        let head = request(&gateway, method, pattern) + "x-long: " + &filler;
        stream.write_all(head.as_bytes()).unwrap();
        account.holds(UNFINISHED_BYTES, &what);
        drop(stream);
        account.is_empty(&what);

        let path = path_of(pattern);
        let address = gateway.address();
        let fields = [
            (":method", method),
            (":scheme", "http"),
            (":path", path.as_str()),
            (":authority", address),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ];
        let preface = [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            &frame(4, 0, 0, &[])[..],
        ]
        .concat();
        let message = unfinished(UNFINISHED_BYTES);
        let parts = message.chunks(10_000).flat_map(|part| frame(0, 0, 1, part));
        let body = [frame(1, 4, 1, &self::head(&fields)), parts.collect()].concat();
        // A head that goes on in two further frames, as many as none objects to.
        let long = self::head(&[("x-long", &"x".repeat(100))]).repeat(UNFINISHED_BYTES / 2 / 100);
        let further = [frame(9, 0, 1, &long), frame(9, 0, 1, &long)];
        let head = [frame(1, 0, 1, &self::head(&fields)), further.concat()].concat();
        for (part, bytes) in [("body", body), ("head", head)] {
            let what = format!("the {part} of {method} {pattern} over HTTP/2");
            let mut stream = connect(&gateway);
            stream.write_all(&[&preface[..], &bytes].concat()).unwrap();
            account.holds(UNFINISHED_BYTES - FREE_BYTES, &what);
            drop(stream);
            account.is_empty(&what);
        }
    }
}

#[test]
fn first_frames_of_strangers_are_on_an_account_and_their_upgrades_are_refused() {
    let (_home, gateway) = gateway();
    let mut account = Account::of(&gateway);
    let mut stream = connect(&gateway);
    let length = u32::try_from(UNFINISHED_BYTES).unwrap().to_be_bytes();
    stream
        .write_all(&[&length[..], &vec![b'x'; UNFINISHED_BYTES - 1]].concat())
        .unwrap();
    account.holds(UNFINISHED_BYTES, "a first frame");
    drop(stream);
    account.is_empty("a first frame");
    for path in ["/ws", "/ws?topic=main", "/proto", "/proto/main"] {
        let mut stream = connect(&gateway);
        let upgrade = GOOD
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .concat();
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{upgrade}\r\n");
        let message = crate::ws::masked(0x80 | crate::ws::BINARY, &vec![b'x'; 4_000]);
        stream
            .write_all(&[head.as_bytes(), &message[..message.len() - 1]].concat())
            .unwrap();
        assert_eq!(status(&mut stream, path), 401, "{path}");
        account.is_empty(path);
    }
}

#[test]
fn handshakes_of_strangers_are_on_an_account() {
    const METRICS: &str = "import ssl, sys, urllib.request\n\
        context = ssl.create_default_context(cafile=sys.argv[2])\n\
        print(urllib.request.urlopen(sys.argv[1], context=context).read().decode())\n";
    let home = Home::new();
    let authority = Authority::new(&home, "ca");
    let gateway = Gateway::start(&home, &authority.issue_local(&home, "gate").table());
    let (url, port) = (gateway.url(), gateway.address().rsplit(':').next().unwrap());
    assert!(url.starts_with("https://"));
    let metrics = format!("https://localhost:{port}/metrics");
    let counted = || {
        let ran = Command::new("python3")
            .args(["-c", METRICS, &metrics])
            .arg(&authority.file)
            .output()
            .unwrap();
        let text = String::from_utf8(ran.stdout).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("portmoot_newcomer_bytes "));
        line.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&ran.stderr)))
            .parse::<usize>()
            .unwrap()
    };
    assert_eq!(counted(), 0);
    // A hello of 60,000 bytes, in records of 16,000.
    let hello = [
        &[1, 0][..],
        &60_000_u16.to_be_bytes(),
        &vec![b'x'; UNFINISHED_BYTES],
    ]
    .concat();
    let records = hello.chunks(16_000).flat_map(|part| {
        [
            &[22, 3, 1][..],
            &u16::try_from(part.len()).unwrap().to_be_bytes(),
            part,
        ]
        .concat()
    });
    let mut stream = connect(&gateway);
    stream.write_all(&records.collect::<Vec<u8>>()).unwrap();
    until("the handshake is counted", || {
        (counted() >= UNFINISHED_BYTES).then_some(())
    });
    drop(stream);
    until("nothing is counted any more", || {
        (counted() == 0).then_some(())
    });
}

#[test]
fn unfinished_heads_of_one_address_are_bounded_together() {
    let (_home, gateway) = gateway();
    let mut account = Account::of(&gateway);
    let ann = Client::of(&gateway, &token("ann"));
    let head = request(&gateway, "POST", "/mcp") + "x-long: " + &"x".repeat(60_000);
    let count = 2 * SHARE_BYTES / head.len();
    let open: Vec<TcpStream> = (0..count)
        .map(|_| {
            let mut stream = connect(&gateway);
            // One that does not fit is closed while it is written.
            let _ = stream.write_all(head.as_bytes());
            stream
        })
        .collect();
    account.holds(SHARE_BYTES / 2, "heads");
    assert!(account.bytes() <= SHARE_BYTES);
    let ended = |stream: &TcpStream| {
        stream
            .set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        let read = (&mut &*stream).read(&mut [0; 16]);
        read.map_or_else(
            |error| error.kind() == ErrorKind::ConnectionReset,
            |bytes| bytes == 0,
        )
    };
    until("those beyond the share have ended", || {
        (open.iter().filter(|stream| ended(stream)).count() >= count / 3).then_some(())
    });
    // Heads in one piece, and those who are known, go on.
    assert!(ann.names("tools").len() > 10);
    assert!(Client::of(&gateway, &token("ann")).names("tools").len() > 10);
    drop(open);
    account.is_empty("heads");
    let mut stream = connect(&gateway);
    let long = request(&gateway, "GET", "/healthz") + "x-long: " + &"x".repeat(50_000) + "\r\n\r\n";
    stream.write_all(long.as_bytes()).unwrap();
    assert_eq!(status(&mut stream, "a long head"), 200);
    account.is_empty("a whole head");
}

/// The paths in a source file of a router, without its tests.
fn paths_in(file: &Path, found: &mut BTreeSet<String>) {
    let text = std::fs::read_to_string(file).unwrap();
    let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    for line in code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
    {
        let texts = line.split('"').skip(1).step_by(2);
        let is_path = |text: &&str| {
            let rest = text.strip_prefix('/');
            rest.is_some_and(|rest| {
                rest.starts_with(|one: char| one.is_ascii_alphabetic() || ".{".contains(one))
            })
        };
        found.extend(texts.filter(is_path).map(str::to_owned));
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("tests") {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_route_of_the_gateway_is_a_door_in_the_table() {
    let crates = harness::crates();
    let known: BTreeSet<&str> = DOORS.iter().map(|(_, path, _)| *path).collect();
    // The API, method by method.
    let document =
        std::fs::read_to_string(harness::repository().join("docs/openapi.json")).unwrap();
    let document: Value = serde_json::from_str(&document).unwrap();
    let mut missing = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods
            .as_object()
            .unwrap()
            .keys()
            .map(|method| method.to_uppercase())
        {
            if !DOORS
                .iter()
                .any(|(known, at, _)| *known == method && at == path)
            {
                missing.push(format!("{method} {path}"));
            }
        }
    }
    // The methods of gRPC, and those of the registry.
    let methods = wire::proto::CONTRACT
        .lines()
        .filter_map(|line| line.trim().strip_prefix("rpc "));
    let methods: Vec<String> = methods
        .map(|line| {
            format!(
                "{}{}",
                wire::proto::grpc::SERVICE,
                line.split('(').next().unwrap()
            )
        })
        .collect();
    assert!(methods.len() >= 5, "{methods:?}");
    let registry = registry::METHODS.map(str::to_owned);
    missing.extend(
        methods
            .into_iter()
            .chain(registry)
            .filter(|path| !known.contains(path.as_str())),
    );
    // Every other path in the sources of the routers.
    let mut files = vec![crates["oauth"].join("src/registration.rs")];
    for name in ["doors", "api", "signin"] {
        sources(&crates[name].join("src"), &mut files);
    }
    let mut paths = BTreeSet::new();
    files.iter().for_each(|file| paths_in(file, &mut paths));
    assert!(paths.len() > 50, "{paths:?}");
    missing.extend(paths.into_iter().filter(|path| {
        let spelled = SPELLINGS
            .iter()
            .find(|(spelling, _)| spelling == path)
            .map_or(path.as_str(), |of| of.1);
        // A path that ends with a slash is the beginning of others.
        let begins = |of: &&&str| spelled.ends_with('/') && of.starts_with(spelled);
        !known.contains(spelled) && !known.iter().any(|of| begins(&of))
    }));
    assert!(
        missing.is_empty(),
        "doors without a row in the table: {missing:#?}"
    );
}
