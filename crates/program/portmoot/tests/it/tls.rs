//! TLS servers: a trusted certificate connects, an untrusted one is reported.

pub(crate) mod authority;
mod inbound;
mod outbound;
mod refused;

use std::sync::Arc;

use harness::Running;
use serde_json::json;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto::ring};

use crate::home::Home;
use crate::socket::{Gateway, until};

/// The fixture behind TLS.
struct Secure {
    front: TlsProxy,
    _fixture: Running,
}

impl Secure {
    fn start() -> Secure {
        let fixture = Running::fixture(&[]);
        let front = TlsProxy::of(fixture.url().split('/').nth(2).unwrap());
        Secure {
            front,
            _fixture: fixture,
        }
    }

    fn table(&self, host: &str) -> String {
        format!(
            "[servers.secure]\nurl = \"https://{host}:{}/mcp\"\nprefix = \"\"\n",
            self.front.port
        )
    }
}

/// A TLS-terminating proxy with its own certificate for `localhost`.
pub(crate) struct TlsProxy {
    pub(crate) port: u16,
    pub(crate) pem: String,
    /// The SHA-256 of its certificate, in hexadecimal.
    pub(crate) sha256: String,
}

impl TlsProxy {
    /// In front of this address.
    pub(crate) fn of(address: &str) -> TlsProxy {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(certified.signing_key.serialize_der().into());
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        // The backend supports HTTP/1.1 only, so the proxy offers no HTTP/2.
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let port = TlsProxy::accepting(address, TlsAcceptor::from(Arc::new(config)));
        let sha256 = ::tls::fingerprint(certified.cert.der());
        let sha256 = sha256
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect::<Vec<_>>()
            .join(":");
        TlsProxy {
            port,
            pem: certified.cert.pem(),
            sha256,
        }
    }

    /// The port of a proxy in front of this address that performs such handshakes.
    fn accepting(address: &str, acceptor: TlsAcceptor) -> u16 {
        let plain = address.to_owned();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        // The thread ends with the test process.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(terminate(listener, acceptor, plain));
        });
        port
    }
}

/// Terminates TLS on every connection and forwards the bytes.
async fn terminate(listener: std::net::TcpListener, acceptor: TlsAcceptor, plain: String) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((tcp, _)) = listener.accept().await {
        let (acceptor, plain) = (acceptor.clone(), plain.clone());
        tokio::spawn(async move {
            // A client that does not trust the certificate disconnects here.
            let Ok(mut secure) = acceptor.accept(tcp).await else {
                return;
            };
            let mut plain = tokio::net::TcpStream::connect(plain).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut secure, &mut plain).await;
        });
    }
}

/// A gateway that trusts only this certificate.
fn trusting(home: &Home, pem: &str, config: &str) -> Gateway {
    let file = home.write("trusted.pem", pem);
    Gateway::serve_with(config, &[("SSL_CERT_FILE", file.to_str().unwrap())])
}

#[test]
fn a_server_whose_certificate_is_trusted_is_reached() {
    let (secure, home) = (Secure::start(), Home::new());
    let gateway = trusting(&home, &secure.front.pem, &secure.table("localhost"));
    let session = gateway.session();
    let echoed = session.call("echo", &json!({"text": "over TLS"}));
    assert_eq!(
        echoed.pointer("/result/content/0/text"),
        Some(&json!("over TLS")),
        "{echoed}"
    );
    let modern = gateway.modern(
        "tools/call",
        Some("echo"),
        r#""name":"echo","arguments":{"text":"x"}"#,
    );
    assert_eq!(
        modern.json().pointer("/result/content/0/text"),
        Some(&json!("x")),
        "{modern:?}"
    );
}

#[test]
fn a_server_whose_certificate_is_not_trusted_is_down_and_says_why() {
    let (secure, home) = (Secure::start(), Home::new());
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()])
        .unwrap()
        .cert
        .pem();
    // Another certificate for the same name, and the trusted one under another name.
    for (pem, host) in [(&other, "localhost"), (&secure.front.pem, "127.0.0.1")] {
        let gateway = trusting(&home, pem, &secure.table(host));
        let url = format!("http://{}", gateway.address());
        let mut line = String::new();
        // The gateway retries, and the server is `starting` meanwhile.
        until("it is down", || {
            let ran = home.run(&["servers", "ls", "--url", &url]).expect(0);
            line = ran
                .stdout
                .lines()
                .find(|line| line.contains("secure"))
                .unwrap()
                .to_owned();
            line.contains("down")
        });
        assert!(line.contains("untrusted certificate"), "{line}");
        assert!(!line.contains("https://"), "{line}");
        let refused = gateway.session().call("echo", &json!({"text": "x"}));
        assert_eq!(
            refused.pointer("/error/data/code"),
            Some(&json!("upstream_down")),
            "{refused}"
        );
        assert!(gateway.log().contains("certificate"), "{}", gateway.log());
    }
}
