//! Clients that the gateway keeps nothing of: those that register themselves, and those with a
//! document on the web.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};

use harness::signs_in;
use serde_json::json;

use super::{Browser, REDIRECT, Site, config, free_port, serve};
use crate::authorization::flood::{Flood, resident, source};
use crate::home::Home;
use crate::support::until;
use crate::tls::TlsProxy;

/// Registrations that are made. `PORTMOOT_REGISTRATIONS` has another number.
const REGISTRATIONS: usize = 1_500;
/// Registrations of one address in a minute.
const OF_ONE_ADDRESS: usize = 10;
/// Bytes by which the gateway may grow from the first tenth of them to their end.
const GROWN_BYTES_MAX: usize = 4 << 20;
/// What tokens may do: echo at first, and all with another scope.
const SCOPES: &str = "[scopes.\"mcp:read\"]\nbaseline = true\ncapabilities = [\"mcp/request:tools/call:a_echo\"]\n\
    [scopes.\"mcp:write\"]\nimplies = [\"mcp:read\"]\ncapabilities = [\"mcp/request:tools/call:*\"]\n";

#[test]
fn clients_that_register_themselves_cost_no_memory() {
    let wanted = std::env::var("PORTMOOT_REGISTRATIONS")
        .map_or(REGISTRATIONS, |number| number.parse().unwrap());
    let site = Site::start("", "");
    let memory = || until("its memory", || resident(site.gateway.pid()));
    let (addresses, mut at_first) = (wanted / OF_ONE_ADDRESS, 0);
    for address in 0..addresses {
        let mut connection = Flood::from(site.gateway.address(), source(address));
        let name = format!("{} {address}", "a long name ".repeat(80));
        let body = json!({"client_name": name, "redirect_uris": [format!("https://c{address}.example/callback")]});
        for number in 0..=OF_ONE_ADDRESS {
            let (status, wait) = connection.post("/oauth/register", "", &body.to_string());
            let expected = if number < OF_ONE_ADDRESS {
                (201, false)
            } else {
                (429, true)
            };
            assert_eq!((status, wait.is_some()), expected, "{address} {number}");
        }
        if address == addresses / 10 {
            at_first = memory();
        }
    }
    let grown = memory().saturating_sub(at_first);
    println!(
        "{} registrations: {grown} bytes more",
        addresses * OF_ONE_ADDRESS
    );
    assert!(grown < GROWN_BYTES_MAX, "{grown} bytes more");
    assert_eq!(
        site.home
            .run(&["clients", "ls", "--json"])
            .expect(0)
            .stdout
            .matches("\"client\"")
            .count(),
        0
    );
}

/// A client's document behind TLS, with an authority of its own: its URL, and the authority's
/// certificate.
pub(crate) fn published(more: &[&str]) -> (String, TlsProxy) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let proxy = TlsProxy::of(&listener.local_addr().unwrap().to_string());
    let url = format!("https://localhost:{}/client.json", proxy.port);
    let uris: Vec<&str> = [REDIRECT].iter().chain(more).copied().collect();
    let document = json!({"client_id": url, "client_name": "Published", "redirect_uris": uris,
        "token_endpoint_auth_method": "none", "grant_types": ["authorization_code", "refresh_token"]});
    let document = document.to_string();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.read(&mut [0; 4096]);
            let length = document.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
            );
            let _ = socket.write_all(&[head.as_bytes(), document.as_bytes()].concat());
        }
    });
    (url, proxy)
}

/// A gateway that trusts this authority, or only the machine's.
fn site(authority: Option<&str>) -> Site {
    let (mut home, port) = (Home::new(), free_port());
    if let Some(pem) = authority {
        let file = home.write("authority.pem", pem).display().to_string();
        home = home.env("SSL_CERT_FILE", &file);
    }
    home.write("portmoot.toml", &config(port, "step_up = true\n", SCOPES));
    let gateway = serve(&home, port);
    gateway.ready("a");
    Site {
        home,
        gateway,
        port,
        front: None,
    }
}

#[test]
fn a_document_over_tls_is_fetched_from_a_host_with_a_trusted_certificate_alone() {
    let (url, proxy) = published(&[]);
    let untrusting = site(None);
    let page = Browser::default().authorize(&untrusting, &url, &[]);
    assert_eq!(
        (page.reply.status, page.reply.header("location")),
        (400, None),
        "{:?}",
        page.reply
    );
    assert!(page.reply.body.contains("document"), "{}", page.reply.body);
    drop(untrusting);
    let trusting = site(Some(&proxy.pem));
    let mut browser = Browser::default();
    let back = trusting.allowed(&mut browser, &url, "ann", &[]);
    let tokens = trusting.exchange(&url, &back.parameter("code"), &[]);
    assert_eq!(tokens.status, 200, "{tokens:?}");
    let listed = trusting
        .home
        .run(&["clients", "ls", "--json"])
        .expect(0)
        .stdout;
    assert!(
        listed.contains("Published") && listed.contains(&url),
        "{listed}"
    );
    // A document of another client, and an address that it does not list.
    let other = url.replace("client.json", "other.json");
    assert_eq!(browser.authorize(&trusting, &other, &[]).reply.status, 400);
    let elsewhere = browser.authorize(
        &trusting,
        &url,
        &[("redirect_uri", "https://evil.example/cb")],
    );
    assert_eq!(
        (elsewhere.reply.status, elsewhere.reply.header("location")),
        (400, None)
    );
}

#[test]
fn why_a_document_cannot_be_fetched_is_for_operators_alone() {
    let site = site(None);
    let hosts = [
        "10.1.2.3",
        "169.254.169.254",
        "nowhere.invalid",
        "localhost:1",
        "metadata.google.internal",
    ];
    let mut pages = Vec::new();
    for host in hosts {
        let page = Browser::default().authorize(&site, &format!("https://{host}/client.json"), &[]);
        assert_eq!(page.reply.status, 400, "{host}");
        pages.push(page.reply.body);
    }
    assert!(
        pages.iter().all(|page| page == &pages[0]) && !pages[0].contains("10.1.2.3"),
        "{pages:#?}"
    );
    assert!(
        pages[0].contains("document cannot be fetched"),
        "{}",
        pages[0]
    );
    for why in ["10.1.2.3 is", "`nowhere.invalid` cannot be"] {
        until(why, || {
            let reasons = site.reasons();
            reasons
                .iter()
                .any(|reason| reason.contains(why))
                .then_some(())
        });
    }
}

#[test]
fn the_python_sdk_steps_up_however_it_is_registered() {
    let (url, proxy) = published(&["http://127.0.0.1/callback"]);
    let site = site(Some(&proxy.pem));
    let endpoint = format!("{}/mcp", site.url());
    for registered in [&["--client-metadata-url", url.as_str()][..], &[]] {
        // Over plain HTTP the browser is asked for a code each time.
        let code = site.codes("ann");
        let calls = [
            "--call",
            "a_echo",
            r#"{"text":"hello"}"#,
            "--call",
            "a_add",
            r#"{"a":1,"b":2}"#,
        ];
        let report = signs_in(&[&[endpoint.as_str(), &code], registered, &calls[..]].concat());
        assert_eq!(report["calls"][0], "hello", "{report:#}");
        assert!(
            report["calls"][1]
                .as_str()
                .is_some_and(|text| text.contains('3')),
            "{report:#}"
        );
        let visits = report["authorized"].as_array().unwrap();
        let asked = |at: usize, scope: &str| {
            visits[at]
                .as_str()
                .unwrap()
                .split(' ')
                .any(|one| one == scope)
        };
        assert!(
            visits.len() == 2 && asked(0, "mcp:read") && asked(1, "mcp:write"),
            "{report:#}"
        );
    }
    site.recorded("ann", "admitted", "stepped up: ");
}
