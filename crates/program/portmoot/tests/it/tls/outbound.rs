//! Servers behind TLS: one that requires a client certificate, its own authority, and a certificate
//! that changes.

use std::sync::Arc;

use harness::Running;
use serde_json::json;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto::ring};

use super::TlsProxy;
use super::authority::{Authority, Pair};
use crate::home::Home;
use crate::openapi::Stub;
use crate::proto_servers::listening;
use crate::support::{Client, Gateway, until};

/// What a proxy shows, asking every client for a certificate of this authority.
fn requiring(own: &Pair, authority: &Authority) -> TlsAcceptor {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(&authority.file).unwrap())
        .unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![CertificateDer::from_pem_file(&own.cert).unwrap()],
            PrivateKeyDer::from_pem_file(&own.key).unwrap(),
        )
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

#[test]
fn a_server_that_requires_a_certificate_gets_the_configured_one() {
    let home = Home::new();
    let fixture = Running::fixture(&[]);
    let servers = Authority::new(&home, "servers");
    let clients = Authority::new(&home, "clients");
    let acceptor = requiring(&servers.issue_local(&home, "server"), &clients);
    let port = TlsProxy::accepting(fixture.url().split('/').nth(2).unwrap(), acceptor);
    let table = |shown: &str| {
        format!(
            "[servers.s]\nurl = \"https://localhost:{port}/mcp\"\nprefix = \"\"\nca = {:?}\n{shown}",
            servers.file
        )
    };
    let pair = clients.issue(&home, "gateway", &["gateway.example"]);
    let shown = format!(
        "client_cert = {:?}\nclient_key = {:?}\n",
        pair.cert, pair.key
    );

    let gateway = Gateway::start(&home, &table(""));
    until("the server wants a certificate", || {
        gateway
            .log()
            .lines()
            .any(|line| line.contains("CertificateRequired"))
            .then_some(())
    });
    // One of another authority is refused too.
    let foreign = servers.issue(&home, "foreign", &["gateway.example"]);
    home.write(
        "portmoot.toml",
        &table(&format!(
            "client_cert = {:?}\nclient_key = {:?}\n",
            foreign.cert, foreign.key
        )),
    );
    gateway.receive("the configuration has changed");
    assert_ne!(gateway.server("s")["state"], "ready");
    home.write("portmoot.toml", &table(&shown));
    gateway.wait_for("s", "ready");
    let client = Client::plain(&gateway);
    assert_eq!(
        client.call("echo", json!({ "text": "mutual" }))["content"][0]["text"],
        "mutual"
    );

    // A new certificate in the same files: the server is connected anew.
    let restarted = gateway
        .log()
        .matches("the configuration has changed")
        .count();
    clients.issue(&home, "gateway", &["gateway.example"]);
    until("it is read", || {
        (gateway
            .log()
            .matches("the configuration has changed")
            .count()
            > restarted)
            .then_some(())
    });
    gateway.wait_for("s", "ready");
    until("calls go on", || {
        let answer = client.ask(
            "tools/call",
            json!({ "name": "echo", "arguments": { "text": "again" } }),
        );
        (answer["result"]["content"][0]["text"] == "again").then_some(())
    });
}

/// Both origins ask for a certificate. A description at the API's own gets it, one at another
/// origin does not.
#[test]
fn a_description_at_another_origin_gets_no_certificate() {
    let home = Home::new();
    let (servers, clients) = (
        Authority::new(&home, "servers"),
        Authority::new(&home, "clients"),
    );
    let own = servers.issue_local(&home, "server");
    let description =
        json!({ "openapi": "3.1.0", "paths": { "/a": { "get": { "operationId": "a" } } } });
    let api = Stub::new(move |_| {
        (
            200,
            "Content-Type: application/json\r\n",
            description.to_string(),
        )
    });
    let address = format!("127.0.0.1:{}", api.port);
    let [here, other] = [(); 2].map(|()| TlsProxy::accepting(&address, requiring(&own, &clients)));
    let pair = clients.issue(&home, "gateway", &["gateway.example"]);
    let table = |name: &str, port: u16| {
        format!(
            "[servers.{name}]\nopenapi = \"https://localhost:{port}/api.json\"\nurl = \"https://localhost:{here}/\"\n\
             ca = {:?}\nclient_cert = {:?}\nclient_key = {:?}\n",
            servers.file, pair.cert, pair.key
        )
    };
    let gateway = Gateway::start(&home, &(table("near", here) + &table("far", other)));
    gateway.wait_for("near", "ready");
    until("the other origin wants a certificate", || {
        let far = gateway.server("far");
        let cause = far["cause"].as_str().unwrap_or_default();
        (far["state"] == "down" && cause.contains("CertificateRequired")).then_some(())
    });
    assert_eq!(Client::plain(&gateway).names("tools"), ["near_a"]);
}

#[test]
fn a_server_of_grpc_gets_the_certificate_over_tls_1_3() {
    let home = Home::new();
    let servers = Authority::new(&home, "servers");
    let clients = Authority::new(&home, "clients");
    let own = servers.issue_local(&home, "server");
    let path = |path: &std::path::Path| path.display().to_string();
    let [cert, key, ca] = [path(&own.cert), path(&own.key), path(&clients.file)];
    let running = listening("grpc", &["--cert", &cert, "--key", &key, "--ca", &ca]);
    let shown = clients.issue(&home, "gateway", &["gateway.example"]);
    let table = format!(
        "[servers.p]\ntype = \"grpc\"\nurl = {:?}\nca = {:?}\n",
        running.address(),
        servers.file
    );
    let with = format!(
        "{table}client_cert = {:?}\nclient_key = {:?}\n",
        shown.cert, shown.key
    );
    let gateway = Gateway::start(&home, &with);
    gateway.ready("p");
    let said = Client::plain(&gateway).call("p_echo", json!({ "q": "x" }));
    assert_eq!(said["structuredContent"], json!({ "q": "x" }));
    let without = Gateway::start(&Home::new(), &table);
    without.wait_for("p", "down");
}
