//! Servers behind the proxies that the environment names.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::home::Home;
use crate::peer::{answer, small, tool};
use crate::support::{Client, Gateway};

/// A proxy that answers for every server itself, and keeps the first lines and the credentials of
/// requests.
struct Proxy {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start() -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || serve(stream, &kept));
            }
        });
        Proxy {
            url: format!("http://ann:s3cret@{address}"),
            seen,
        }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, kept: &Mutex<Vec<String>>) {
    let mut out = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let lower = head.to_lowercase();
        let header = |name: &str| {
            let line = lower
                .lines()
                .find_map(|line| line.strip_prefix(&format!("{name}: ")).map(str::to_owned));
            line.unwrap_or_default()
        };
        let first = head.lines().next().unwrap_or_default();
        kept.lock().unwrap().push(format!(
            "{first} host={} {}",
            header("host"),
            header("proxy-authorization")
        ));
        let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
        reader.read_exact(&mut body).unwrap();
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let said = match message.get("id") {
            None => String::new(),
            Some(_) => small(&message, &format!("[{}]", tool("echo")))
                .unwrap_or_else(|| answer(&message, r#"{"content":[{"type":"text","text":"x"}]}"#)),
        };
        // A tunnel ends here.
        let status = match first.split(' ').next() {
            Some("POST") => 200,
            Some("CONNECT") => 502,
            _ => 405,
        };
        let reply = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{said}",
            said.len()
        );
        if out.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn a_server_is_reached_through_the_proxy_of_the_environment() {
    let proxy = Proxy::start();
    let home = Home::new()
        .env("http_proxy", &proxy.url)
        .env("HTTP_PROXY", &proxy.url);
    let server = "[servers.s]\nurl = \"http://mcp.internal.example/mcp\"\nera = \"legacy\"\n";
    let gateway = Gateway::start(&home, server);
    gateway.ready("s");
    let said = Client::plain(&gateway).call("s_echo", json!({}));
    assert_eq!(said["content"][0]["text"], "x", "{said}");
    let expected = "POST http://mcp.internal.example/mcp HTTP/1.1 host=mcp.internal.example basic yw5uonmzy3jlda==";
    assert!(
        proxy.seen().iter().any(|seen| seen == expected),
        "{:?}",
        proxy.seen()
    );
}

#[test]
fn a_server_over_tls_is_reached_through_a_tunnel() {
    let proxy = Proxy::start();
    let home = Home::new().env("HTTPS_PROXY", &proxy.url);
    let server = "[servers.s]\nurl = \"https://mcp.internal.example/mcp\"\nera = \"legacy\"\n";
    let gateway = Gateway::start(&home, server);
    let down = gateway.wait_for("s", "down");
    assert!(
        down["cause"]
            .as_str()
            .unwrap()
            .contains("through the proxy of the environment"),
        "{down}"
    );
    let expected = "CONNECT mcp.internal.example:443 HTTP/1.1";
    assert!(
        proxy.seen().iter().any(|seen| seen.starts_with(expected)),
        "{:?}",
        proxy.seen()
    );
    assert!(!format!("{down}{}", gateway.log()).contains("s3cret"));
}

#[test]
fn no_proxy_is_used_for_this_machine_and_for_exceptions() {
    let (proxy, direct) = (Proxy::start(), Proxy::start());
    let port = direct.url.rsplit(':').next().unwrap().to_owned();
    let home = Home::new()
        .env("HTTP_PROXY", &proxy.url)
        .env("http_proxy", &proxy.url)
        .env("NO_PROXY", "internal.example");
    let servers = format!(
        "[servers.s]\nurl = \"http://127.0.0.1:{port}/mcp\"\nera = \"legacy\"\n\
         [servers.t]\nurl = \"http://mcp.internal.example/mcp\"\nera = \"legacy\"\n"
    );
    let gateway = Gateway::start(&home, &servers);
    gateway.ready("s");
    gateway.wait_for("t", "down");
    assert_eq!(proxy.seen(), [""; 0]);
    assert!(
        direct
            .seen()
            .iter()
            .any(|seen| seen.starts_with("POST /mcp HTTP/1.1")),
        "{:?}",
        direct.seen()
    );
}
