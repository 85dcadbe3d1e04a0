//! Pages in frames and under other names: clickjacking, and other hosts that resolve to the
//! gateway.

use super::pages::protected;
use super::{Browser, REDIRECT, Site};
use crate::http::Connection;

/// All pages that a browser can be shown, and none of them in a frame, from a cache, or open to
/// scripts of other sites.
#[test]
fn no_page_is_framed_kept_or_read_by_other_sites() {
    let site = Site::start("", "");
    let client = site.register(&[REDIRECT]);
    let stranger = site.register(&["https://app.example/cb"]);
    let web = ("redirect_uri", "https://app.example/cb");
    let mut browser = Browser::default();
    let sign_in = browser.authorize(&site, &client, &[]);
    let consent = browser.submit(&site, &sign_in, &[("code", &site.one_time_code("ann"))]);
    let forged = browser.clone().submit_with(
        &site,
        &consent,
        &[("decision", "allow")],
        &[("sec-fetch-site", "cross-site")],
    );
    let mut guessing = Browser::default();
    let page = guessing.authorize(&site, &client, &[]);
    let mut wrong = page.clone();
    for _ in 0..11 {
        wrong = guessing.submit(&site, &page, &[("code", "00000-00000")]);
    }
    assert!(wrong.reply.body.contains("Too many tries"));
    let back_by_hand = browser.authorize(&site, &stranger, &[web, ("code_challenge", "")]);
    let unknown = browser.authorize(&site, "unknown", &[]);
    let too_long = browser.open(&site, &format!("/oauth/authorize?x={}", "y".repeat(70_000)));
    let empty = browser.open(&site, "/oauth/authorize");
    let pages = [
        ("signing in", sign_in, 200),
        ("consent", consent, 200),
        ("forged", forged, 403),
        ("locked", wrong, 403),
        ("a way back by hand", back_by_hand, 400),
        ("unknown client", unknown, 400),
        ("no client", empty, 400),
    ];
    for (what, page, status) in &pages {
        assert_eq!(page.reply.status, *status, "{what}: {:?}", page.reply);
        assert!(page.reply.body.contains("<html"), "{what}");
        protected(&page.reply);
    }
    assert!(
        [400, 414, 431].contains(&too_long.reply.status) && !too_long.reply.body.contains("<form")
    );
}

#[test]
fn no_host_of_a_redirect_uri_writes_a_policy() {
    let site = Site::start("", "");
    for host in [
        "*",
        "*.example",
        "x;sandbox",
        "a,b.example",
        "'unsafe-inline'",
        "$x",
        "x!y",
    ] {
        let body = serde_json::json!({ "client_name": "E", "redirect_uris": [format!("https://{host}/cb")] });
        let headers = [("content-type", "application/json")];
        let reply = site.request("POST", "/oauth/register", &headers, &body.to_string());
        assert_eq!(reply.status, 400, "{host}: {reply:?}");
    }
}

#[test]
fn pages_and_forms_are_served_under_the_names_of_the_gateway_alone() {
    let site = Site::start("", "");
    let client = site.register(&[REDIRECT]);
    let mut browser = Browser::default();
    let page = browser.authorize(&site, &client, &[]);
    let (action, hidden) = page.form();
    let ask = |host: &str, method: &str, path: &str, body: &str| {
        // The harness sends a name of the gateway; the connection is written to by hand.
        let mut connection = std::net::TcpStream::connect(site.gateway.address()).unwrap();
        let kind = "content-type: application/x-www-form-urlencoded";
        let text = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\n{kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        std::io::Write::write_all(&mut connection, text.as_bytes()).unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut connection, &mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    let query = format!("/oauth/authorize?client_id={client}");
    let fields: Vec<(&str, &str)> = hidden
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let form = crate::html::encoded(&fields);
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example:80",
    ] {
        for (method, path, body) in [
            ("GET", query.as_str(), ""),
            ("POST", action.as_str(), form.as_str()),
            ("POST", "/oauth/consent", form.as_str()),
            ("POST", "/oauth/token", "grant_type=refresh_token"),
            ("POST", "/oauth/register", "{}"),
        ] {
            assert_eq!(
                ask(host, method, path, body),
                403,
                "{method} {path} at {host}"
            );
        }
    }
    assert_ne!(ask("localhost", "GET", &query, ""), 403);
    // What everyone may read is served to every site.
    let metadata = "/.well-known/oauth-authorization-server";
    let headers = [("origin", "https://evil.example")];
    let reply = Connection::open(site.gateway.address()).exchange("GET", metadata, &headers, "");
    assert_eq!(
        (reply.status, reply.header("access-control-allow-origin")),
        (200, Some("*"))
    );
}
