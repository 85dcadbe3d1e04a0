//! Connections through a tunnel, and why TLS fails at its end.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tls::{ClientCertificates, ServerFiles, ServerTls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A connector to a server behind the tunnel of this proxy.
fn through(proxy: &TcpListener) -> Connector {
    let address = proxy.local_addr().unwrap();
    Connector(Arc::new(Target {
        url: Uri::from_static("https://mcp.internal.example/mcp"),
        // No certificate has this digest.
        tls: ClientTls::pinned([0; 32]),
        limit: Duration::from_secs(60),
        http2: false,
        proxy: Some(Proxy {
            uri: format!("http://{address}").parse().unwrap(),
            authorization: None,
            is_tunnel: true,
        }),
    }))
}

/// The tunnel that a proxy opens to the server, with this status.
async fn tunnel(proxy: &TcpListener, status: &str) -> TcpStream {
    let (mut stream, _) = proxy.accept().await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"CONNECT mcp.internal.example:443 "));
    let answer = format!("HTTP/1.1 {status}\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream
}

async fn proxy() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

#[tokio::test]
async fn a_server_behind_a_tunnel_that_speaks_no_tls_is_known_as_such() {
    let proxy = proxy().await;
    let server = async {
        let mut stream = tunnel(&proxy, "200 OK").await;
        stream.read_u8().await.unwrap();
        let answer = b"HTTP/1.1 400 Bad Request\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        stream
    };
    let (failed, _stream) = tokio::join!(through(&proxy).connect(), server);
    assert_eq!(failed.unwrap_err(), LinkError::NotTls);
}

#[tokio::test]
async fn a_server_behind_a_tunnel_with_another_certificate_is_untrusted() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        path
    };
    let names = vec!["mcp.internal.example".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    let files = ServerFiles {
        cert: write("cert.pem", cert.pem()),
        key: write("key.pem", signing_key.serialize_pem()),
        client_ca: None,
        client_auth: ClientCertificates::Required,
    };
    let tls = ServerTls::read(files, platform::unix_ms()).unwrap();
    let proxy = proxy().await;
    let server = async {
        let stream = tunnel(&proxy, "200 OK").await;
        tls.acceptor().accept(stream).await
    };
    let (failed, _) = tokio::join!(through(&proxy).connect(), server);
    let failed = failed.unwrap_err();
    assert!(matches!(failed, LinkError::Untrusted(_)), "{failed}");
}

#[tokio::test]
async fn a_proxy_that_opens_no_tunnel_is_named() {
    let proxy = proxy().await;
    let server = tunnel(&proxy, "502 Bad Gateway");
    let (failed, _stream) = tokio::join!(through(&proxy).connect(), server);
    let why = failed.unwrap_err().to_string();
    let expected = "cannot connect: through the proxy of the environment: ";
    assert!(why.starts_with(expected), "{why}");
}
