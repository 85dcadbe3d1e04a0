//! Keys that change under load, providers that die, lie and burn, and tokens that end.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use prost::Message as _;
use serde_json::{Value, json};

use super::provider::{Provider, unsigned};
use super::{PUBLIC, every_door, initialize, resource, start};
use crate::http::{Connection, TIMEOUT};
use crate::support::{Gateway, until};
use crate::ws::{Socket, people, token};

#[test]
fn keys_rotate_in_three_steps_under_load_and_no_good_token_is_refused() {
    let provider = Provider::start(600);
    let (_home, gateway) = start(&provider, "");
    let fresh = || provider.machine("machine", &resource("/mcp"), "");
    let ask = |token: &str| initialize(&gateway, "/mcp", Some(token));
    let old = fresh();
    assert_eq!(ask(&old).status, 200);
    let (stopped, good, bad) = (
        AtomicBool::new(false),
        AtomicU32::new(0),
        Mutex::new(Vec::new()),
    );
    thread::scope(|scope| {
        for worker in 0..4 {
            let (old, fresh, ask, provider) = (&old, &fresh, &ask, &provider);
            let (stopped, good, bad) = (&stopped, &good, &bad);
            scope.spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    // One of them keeps its token all the time.
                    let token = if worker == 0 { old.clone() } else { fresh() };
                    match ask(&token) {
                        // Only new tokens count: they wait until the gateway has the new keys,
                        // before the old ones go.
                        reply if reply.status == 200 => {
                            good.fetch_add(u32::from(worker > 0), Ordering::Relaxed);
                        }
                        reply => bad
                            .lock()
                            .unwrap()
                            .push(format!("{} {reply:?}", provider.asked("/jwks"))),
                    }
                }
            });
        }
        for keys in [&["a"][..], &["b", "a"], &["b"]] {
            provider.control(&json!({"op": "keys", "keys": keys}));
            let before = good.load(Ordering::Relaxed);
            until("the load goes on", || {
                (good.load(Ordering::Relaxed) >= before + 40).then_some(())
            });
        }
        stopped.store(true, Ordering::Relaxed);
    });
    let bad = bad.into_inner().unwrap();
    assert!(
        bad.is_empty(),
        "{} refused, first: {:?}",
        bad.len(),
        bad.first()
    );
    // At the start, and for the key that was new: whatever the load.
    assert_eq!(provider.asked("/jwks"), 2);
}

#[test]
fn a_provider_that_dies_leaves_its_keys_and_new_ones_are_taken_when_it_returns() {
    let provider = Provider::start(600);
    let (_home, gateway) = start(&provider, "");
    let token = |key: &str, id: &str| provider.forged(json!({"kid": key}), json!({"jti": id}), key);
    let ask = |token: &str| initialize(&gateway, "/mcp", Some(token));
    let seen = token("a", "1");
    assert_eq!(ask(&seen).status, 200);
    let detail = || gateway.get("/readyz", Some(&seen)).json();
    let metric = || gateway.get("/metrics", Some(&seen)).body;
    assert_eq!(
        (
            detail()["issuers_not_ready"].clone(),
            detail()["issuers"].clone()
        ),
        (json!(0), json!([]))
    );
    provider.control(&json!({"op": "mode", "mode": "dead"}));
    let new = token("c", "3");
    let refused = ask(&new);
    assert_eq!(refused.status, 503, "it may be good: {refused:?}");
    assert!(
        refused.header("retry-after").is_some() && refused.header("www-authenticate").is_none()
    );
    for known in [&seen, &token("a", "2")] {
        assert_eq!(ask(known).status, 200, "the keys from before serve");
    }
    let condition = detail();
    assert_eq!(
        (&condition["ready"], &condition["issuers_not_ready"]),
        (&json!(true), &json!(1)),
        "{condition}"
    );
    let issuer = &condition["issuers"][0];
    assert_eq!(
        (&issuer["name"], &issuer["state"]),
        (&json!("corp"), &json!("stale")),
        "{condition}"
    );
    // Why is for those who may know of servers.
    assert!(
        issuer["reason"].is_string() && gateway.get("/readyz", None).json()["issuers"].is_null()
    );
    assert!(
        metric().contains("portmoot_issuer_state{issuer=\"corp\",state=\"stale\"} 1"),
        "{}",
        metric()
    );
    provider.control(&json!({"op": "keys", "keys": ["c", "a"]}));
    provider.control(&json!({"op": "mode", "mode": "up"}));
    until("the keys are fetched again", || {
        (detail()["issuers_not_ready"] == 0).then_some(())
    });
    assert_eq!((ask(&new).status, ask(&seen).status), (200, 200));
    assert!(
        metric().contains("portmoot_issuer_state{issuer=\"corp\",state=\"ready\"} 1"),
        "{}",
        metric()
    );
    assert!(
        metric().contains("portmoot_access_tokens 2"),
        "{}",
        metric()
    );
}

/// A provider on a free port that does not do what providers do; its issuer.
fn broken(how: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    if how == "gone" {
        return issuer;
    }
    let of = issuer.clone();
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let issuer = of.clone();
            thread::spawn(move || {
                let _ = socket.read(&mut [0; 4096]);
                let json = |status: &str, body: &str| {
                    let length = body.len();
                    format!(
                        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
                    )
                };
                let foreign = json!({"issuer": "https://elsewhere.example", "jwks_uri": format!("{issuer}/keys")});
                let inward = json!({"issuer": issuer, "jwks_uri": "http://169.254.169.254/keys"});
                let keyless = json!({"issuer": issuer, "jwks_uri": issuer, "keys": [{"kty": "oct", "k": "AAAA"}]});
                let said = match how {
                    "lying" => json("200 OK", &foreign.to_string()),
                    "pointing inward" => json("200 OK", &inward.to_string()),
                    "without a public key" => json("200 OK", &keyless.to_string()),
                    "failing" => json("500 Internal Server Error", "{}"),
                    "talking of something else" => json("200 OK", "<html>sign in</html>"),
                    "redirecting" => {
                        "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n"
                            .to_owned()
                    }
                    "no HTTP at all" => "\0\x01\u{7f}\u{fffd}SSH-2.0\r\n".to_owned(),
                    "endless" | "dripping" => {
                        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"issuer\": \"".to_owned()
                    }
                    _ => String::new(),
                };
                let _ = socket.write_all(said.as_bytes());
                match how {
                    "endless" => while socket.write_all(&[b'x'; 65_536]).is_ok() {},
                    "dripping" => {
                        while socket.write_all(b"x").is_ok() {
                            thread::sleep(std::time::Duration::from_millis(50));
                        }
                    }
                    // It says nothing until the other side has enough.
                    "silent" => drop(socket.read(&mut [0; 16])),
                    _ => {}
                }
            });
        }
    });
    issuer
}

#[test]
fn a_gateway_starts_and_serves_whatever_its_providers_do() {
    const HOW: [&str; 12] = [
        "gone",
        "dead",
        "silent",
        "lying",
        "pointing inward",
        "without a public key",
        "failing",
        "talking of something else",
        "redirecting",
        "no HTTP at all",
        "endless",
        "dripping",
    ];
    let issuers = HOW.map(broken);
    let (home, config) = people(&[("boss", &["mcp/*", "portmoot/*"])]);
    let mut config = format!("{config}public_url = {PUBLIC:?}\n");
    for (number, issuer) in issuers.iter().enumerate() {
        config += &format!("[issuers.i{number}]\nissuer = {issuer:?}\n");
    }
    let gateway = Gateway::start(&home, &config);
    assert_eq!(
        initialize(&gateway, "/mcp", Some(&token("boss"))).status,
        200,
        "others are served at once"
    );
    thread::scope(|scope| {
        for (how, issuer) in HOW.iter().zip(&issuers) {
            let gateway = &gateway;
            scope.spawn(move || {
                let reply = initialize(gateway, "/mcp", Some(&unsigned(issuer, "a")));
                assert_eq!(reply.status, 503, "{how}: {reply:?}");
                let challenge = reply.header("www-authenticate");
                assert!(
                    reply.header("retry-after").is_some() && challenge.is_none(),
                    "{how}: {reply:?}"
                );
                assert_eq!(
                    reply.json()["error"]["data"]["code"],
                    "issuer_unreachable",
                    "{how}"
                );
            });
        }
    });
    let detail = gateway.get("/readyz", Some(&token("boss"))).json();
    assert_eq!(detail["issuers_not_ready"], HOW.len(), "{detail}");
    let unreachable = |one: &Value| one["state"] == "unreachable" && one["reason"].is_string();
    assert!(
        detail["issuers"]
            .as_array()
            .unwrap()
            .iter()
            .all(unreachable),
        "{detail}"
    );
    assert_eq!(
        initialize(&gateway, "/mcp", Some(&token("boss"))).status,
        200
    );
}

#[test]
fn what_was_opened_with_a_token_ends_with_it_and_the_session_stays() {
    let provider = Provider::start(600);
    let (_home, gateway) = start(&provider, "");
    // The skew is part of a token's life: it ends in three seconds.
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let short = provider.forged(json!({}), json!({"exp": now - 26, "iat": null}), "a");
    let opened = initialize(&gateway, "/mcp", Some(&short));
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let headers = |token: &str| {
        [
            ("accept", "application/json, text/event-stream".to_owned()),
            ("mcp-session-id", session.clone()),
            ("authorization", format!("Bearer {token}")),
            ("mcp-protocol-version", "2025-11-25".to_owned()),
            ("content-type", "application/json".to_owned()),
        ]
    };
    let exchange = |connection: &mut Connection, method: &str, token: &str, body: &str| {
        let headers = headers(token);
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        connection.exchange(method, "/mcp", &headers, body)
    };
    let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}).to_string();
    let mut kept = Connection::open(gateway.address());
    assert_eq!(exchange(&mut kept, "POST", &short, &ping).status, 200);
    let bearer = format!("Bearer {short}");
    let mut room = Socket::open_with(&gateway, "corp:ann", "", &bearer);
    let mut proto = Socket::at(&gateway, "/proto", &[("authorization", &bearer)]);
    let mut frames = TcpStream::connect(gateway.address()).unwrap();
    let hello = every_door::hello(&short).encode_to_vec();
    frames
        .write_all(
            &[
                &u32::try_from(hello.len()).unwrap().to_be_bytes(),
                &hello[..],
            ]
            .concat(),
        )
        .unwrap();
    // Each ends by itself: a stream, which `exchange` reads until then, sockets, and frames.
    assert_eq!(
        exchange(&mut Connection::open(gateway.address()), "GET", &short, "").status,
        200
    );
    assert_eq!((room.closed(), proto.closed()), (4006, 4006));
    frames.set_read_timeout(Some(TIMEOUT)).unwrap();
    frames.read_to_end(&mut Vec::new()).unwrap();
    // On a new connection, and on the one where it was good.
    for connection in [&mut Connection::open(gateway.address()), &mut kept] {
        let late = exchange(connection, "POST", &short, &ping);
        assert_eq!(
            (late.status, late.json()["error"]["data"]["code"].as_str()),
            (401, Some("token_expired"))
        );
    }
    let again = exchange(
        &mut kept,
        "POST",
        &provider.forged(json!({}), json!({}), "a"),
        &ping,
    );
    assert_eq!(again.status, 200, "the session goes on: {again:?}");
}
