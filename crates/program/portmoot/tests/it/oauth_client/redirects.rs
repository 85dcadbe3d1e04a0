//! Redirects of a server and of its authorization server: none leads a request, a code or a token
//! to another place.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::{ANN, Browser, Service, Site, text};
use crate::home::Home;
use crate::http::Reply;
use crate::support::{Client, until};

const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
const ISSUER: &str = "/.well-known/oauth-authorization-server";
/// Places of the service that lead on.
const HOPS: [&str; 4] = ["/hop/1", "/hop/2", "/hop/3", "/hop/4"];
/// Redirects within an origin that are followed for metadata.
const REDIRECTS_MAX: usize = 3;

/// A listener to which the gateway must not connect.
struct Target {
    address: SocketAddr,
    /// Who has connected.
    peers: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Target {
    fn start(host: &str) -> Target {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let peers: Arc<Mutex<Vec<SocketAddr>>> = Arc::default();
        let seen = Arc::clone(&peers);
        std::thread::spawn(move || {
            while let Ok((_, peer)) = listener.accept() {
                seen.lock().unwrap().push(peer);
            }
        });
        Target { address, peers }
    }

    /// Connects, and returns who has connected before.
    fn seen(&self) -> Vec<SocketAddr> {
        let own = TcpStream::connect(self.address)
            .unwrap()
            .local_addr()
            .unwrap();
        until("the target accepts", || {
            let mut peers = self.peers.lock().unwrap();
            let at = peers.iter().position(|peer| *peer == own)?;
            peers.remove(at);
            Some(peers.clone())
        })
    }
}

/// Other origins: of the same address, of an address inside, and of ones where nothing is.
struct Elsewhere(Vec<Target>);

impl Elsewhere {
    fn start() -> Elsewhere {
        let inside = if cfg!(target_os = "linux") {
            "127.0.0.2"
        } else {
            "127.0.0.1"
        };
        Elsewhere(["127.0.0.1", inside].map(Target::start).into())
    }

    /// What `location` says.
    fn places(&self) -> Vec<String> {
        let of = |target: &Target| {
            ["http", "https"].map(|scheme| format!("{scheme}://{}/x", target.address))
        };
        let mut places: Vec<String> = self.0.iter().flat_map(of).collect();
        places.push(format!("//{}/x", self.0[0].address));
        places.extend(
            [
                "http://169.254.169.254/latest",
                "http://10.0.0.1/x",
                "file:///x",
                "http://",
            ]
            .map(str::to_owned),
        );
        places
    }

    #[track_caller]
    fn saw_nothing(&self, what: &str) {
        for target in &self.0 {
            assert_eq!(target.seen(), [], "{what}: {}", target.address);
        }
    }
}

/// A browser that has shown to be ann's, so that no page asks it for a code.
#[track_caller]
fn anns(site: &Site, client: &Client) -> Browser {
    let mut browser = Browser::default();
    let page = site.consent(&mut browser, &site.link(client), ANN);
    // The link keeps what it has found out: later ones begin anew.
    assert!(
        browser
            .submit(site.address(), &page, &[("decision", "deny")])
            .body
            .contains("Denied")
    );
    browser
}

/// Opens a link at a gateway that has found out nothing yet, while requests for the first place are
/// sent along the others.
#[track_caller]
fn page_of(site: &Site, status: u16, places: &[&str]) -> Reply {
    let ann = Client::of(&site.gateway, ANN);
    site.service.redirect(status, places);
    let (mut browser, link) = (Browser::default(), site.link(&ann));
    let page = browser.open(site.address(), &link);
    let page = browser.submit(site.address(), &page, &[("code", &site.code(ANN))]);
    assert!(site.service.asked(places[0]) > 0, "{places:?}");
    assert_eq!(page.header("location"), None, "{places:?}: {page:?}");
    assert_eq!(
        (
            site.service.asked("/register"),
            site.service.asked("/token")
        ),
        (0, 0)
    );
    page
}

#[test]
fn metadata_that_redirects_is_followed_within_its_origin_alone() {
    let elsewhere = Elsewhere::start();
    let places = elsewhere.places();
    for path in [RESOURCE, ISSUER] {
        let check = |status: u16, to: &[&str], expected: u16| {
            let site = Site::start();
            let page = page_of(&site, status, &[&[path], to].concat());
            let what = format!("{path} {status} {to:?}");
            assert_eq!(page.status, expected, "{what}: {page:?}");
            let own = site.service.origin().replace("http://", "");
            assert_eq!(
                page.body.contains(&format!("<dd>{own}</dd>")),
                expected == 200,
                "{what}: {page:?}"
            );
            elsewhere.saw_nothing(&what);
            site
        };
        for (place, status) in places
            .iter()
            .zip([302, 301, 303, 307, 308].into_iter().cycle())
        {
            check(status, &[place], 502);
        }
        // A chain whose last place has the metadata, and one that leads elsewhere at its end.
        for hops in 1..=HOPS.len() {
            let is_followed = hops <= REDIRECTS_MAX;
            let site = check(302, &HOPS[..hops], if is_followed { 200 } else { 502 });
            assert_eq!(
                site.service.asked(HOPS[hops - 1]) > 0,
                is_followed,
                "{path} {hops}"
            );
        }
        check(302, &[HOPS[0], HOPS[1], &places[0]], 502);
    }
}

#[test]
fn no_redirect_takes_a_code_or_a_token_along() {
    let (site, elsewhere) = (Site::start(), Elsewhere::start());
    let ann = Client::of(&site.gateway, ANN);
    let mut browser = anns(&site, &ann);
    let mut places = elsewhere.places();
    // Another path of the same origin is no better: no request with a secret is repeated.
    places.push(HOPS[0].to_owned());
    // Each page asks for a code, of which an address may type ten in a minute.
    let chosen = [&places[0], &places[4], &places[places.len() - 1]];
    let rows = || [302, 307, 308].into_iter().zip(chosen);
    let mut asked = 0;
    // The registration.
    for (status, place) in rows() {
        let what = format!("{status} {place}");
        site.service.redirect(status, &["/register", place]);
        let page = site.consent(&mut browser, &site.link(&ann), ANN);
        let sent = browser.submit(site.address(), &page, &[("decision", "allow")]);
        assert_eq!(sent.header("location"), None, "{what}: {sent:?}");
        assert!(sent.status >= 400, "{what}: {sent:?}");
        assert!(site.service.asked("/register") > asked, "{what}");
        asked = site.service.asked("/register");
        elsewhere.saw_nothing(&what);
    }
    assert_eq!(site.service.asked("/token"), 0);
    // The code.
    asked = 0;
    for (status, place) in rows() {
        let what = format!("{status} {place}");
        site.service.redirect(status, &["/token", place]);
        let page = site.consent(&mut browser, &site.link(&ann), ANN);
        let sent = browser.submit(site.address(), &page, &[("decision", "allow")]);
        let back = site
            .service
            .approve(sent.header("location").unwrap(), "user-a");
        let page = browser.open(site.address(), &back);
        asked += 1;
        assert_eq!(
            (page.status, page.header("location")),
            (400, None),
            "{what}: {page:?}"
        );
        assert!(!page.body.contains("Connected"), "{what}: {page:?}");
        assert_eq!(site.service.asked("/token"), asked, "{what}");
        elsewhere.saw_nothing(&what);
    }
    assert_eq!(
        (site.service.asked(HOPS[0]), site.service.users()),
        (0, Vec::new())
    );
    assert!(site.service.bearers().is_empty());
    // The access token, in a call.
    site.service.redirect(302, &[]);
    let ann = site.connected(ANN, "user-a");
    assert_eq!(
        text(&ann.call("jira_whoami", json!({}))),
        "user-a with read"
    );
    for status in [301, 302, 303, 307, 308] {
        for place in elsewhere.places() {
            let asked = site.service.asked("/mcp");
            site.service.redirect(status, &["/mcp", &place]);
            let answer = ann.ask(
                "tools/call",
                json!({ "name": "jira_whoami", "arguments": {} }),
            );
            assert!(
                answer["error"].is_object() || answer["result"]["isError"] == true,
                "{status} {place}: {answer}"
            );
            assert!(site.service.asked("/mcp") > asked, "{status} {place}");
            elsewhere.saw_nothing(&format!("/mcp {status} {place}"));
        }
    }
    // The token that is given back.
    site.service
        .redirect(308, &["/revoke", &elsewhere.places()[0]]);
    site.logout(ANN);
    until("the revocation", || {
        (site.service.asked("/revoke") > 0).then_some(())
    });
    elsewhere.saw_nothing("/revoke");
}

#[test]
fn no_redirect_leads_from_https_to_http() {
    let target = Target::start("127.0.0.1");
    let folder = Home::new();
    let start = || {
        let (service, pem) = Service::start_secure();
        let file = folder.write("trusted.pem", &pem);
        let may = "[participants.ann]\ntoken_env = \"ANN\"\ncapabilities = [\"mcp/*\"]\n";
        Site::at(
            service,
            &[("SSL_CERT_FILE", file.to_str().unwrap())],
            "",
            "",
            may,
        )
    };
    let places = |site: &Site| {
        let port = target.address.port();
        // The last one differs in the scheme alone.
        [
            format!("http://localhost:{port}/x"),
            format!("http://{}/x", target.address),
            site.service.origin().replace("https://", "http://") + "/x",
        ]
    };
    for path in [RESOURCE, ISSUER] {
        for at in 0..3 {
            let site = start();
            let place = &places(&site)[at];
            let page = page_of(&site, 302, &[path, place]);
            assert_eq!(page.status, 502, "{path} {place}: {page:?}");
            assert_eq!(target.seen(), [], "{path} {place}");
        }
    }
    let site = start();
    let ann = Client::of(&site.gateway, ANN);
    let mut browser = anns(&site, &ann);
    for place in places(&site) {
        site.service.redirect(307, &["/token", &place]);
        let page = site.consent(&mut browser, &site.link(&ann), ANN);
        let sent = browser.submit(site.address(), &page, &[("decision", "allow")]);
        let back = site
            .service
            .approve(sent.header("location").unwrap(), "user-a");
        assert_eq!(browser.open(site.address(), &back).status, 400, "{place}");
        assert_eq!(
            (target.seen(), site.service.users()),
            (Vec::new(), Vec::new()),
            "{place}"
        );
    }
    // Without redirects the same site connects.
    site.service.redirect(307, &[]);
    let ann = site.connected(ANN, "user-a");
    assert_eq!(
        text(&ann.call("jira_whoami", json!({}))),
        "user-a with read"
    );
}
