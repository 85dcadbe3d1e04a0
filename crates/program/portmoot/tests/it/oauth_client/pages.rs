//! Attacks on connect pages: links of others, forgery, framing, cookies, replay, redirects,
//! guessing.

use serde_json::json;

use super::browser::path_of;
use super::{ANN, BOB, Browser, Service, Site, text};
use crate::home::Home;
use crate::html::form;
use crate::http::{Connection, Reply};
use crate::support::{Client, Gateway};

#[track_caller]
fn protected(reply: &Reply) {
    let policy = reply.header("content-security-policy").unwrap_or_default();
    assert!(
        policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"),
        "{reply:?}"
    );
    assert!(
        policy.contains("base-uri 'none'") && !policy.contains("script-src"),
        "{policy}"
    );
    assert_eq!(reply.header("x-frame-options"), Some("DENY"));
    assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("access-control-allow-origin"), None);
}

#[test]
fn a_page_names_everything_and_cannot_be_framed() {
    let site = Site::start();
    let ann = Client::of(&site.gateway, ANN);
    let link = site.link(&ann);
    let mut browser = Browser::default();
    let who = browser.open(site.address(), &link);
    protected(&who);
    let cookie = who.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("pm_connect=")
            && cookie.ends_with("; Path=/; Max-Age=1800; HttpOnly; SameSite=Lax"),
        "{cookie}"
    );
    // To a browser that has not shown whose it is, the page says nothing about the link.
    for secret in ["jira", "ann", "test"] {
        assert!(!who.body.contains(secret), "{secret}: {}", who.body);
    }
    let consent = browser.submit(site.address(), &who, &[("code", &site.code(ANN))]);
    protected(&consent);
    let host = site.service.origin().replace("http://", "");
    for shown in [
        "<dd>ann</dd>",
        "<code>test</code>",
        "<dd>jira</dd>",
        "<code>read</code>",
        &host,
        site.address(),
    ] {
        assert!(consent.body.contains(shown), "{shown}: {}", consent.body);
    }
    let policy = consent.header("content-security-policy").unwrap();
    assert!(
        policy.contains(&format!("form-action 'self' {};", site.service.origin())),
        "{policy}"
    );
    // Nothing has been asked of the authorization server before the consent.
    assert_eq!(
        (
            site.service.asked("/register"),
            site.service.asked("/token")
        ),
        (0, 0)
    );
    let sent = browser.submit(site.address(), &consent, &[("decision", "allow")]);
    assert_eq!(
        (
            sent.status,
            sent.header("cache-control"),
            sent.header("referrer-policy")
        ),
        (303, Some("no-store"), Some("no-referrer"))
    );
    assert!(
        sent.header("location")
            .unwrap()
            .starts_with(&format!("{}/authorize?", site.service.origin()))
    );
    // The link is used up.
    assert_eq!(browser.open(site.address(), &link).status, 404);
    assert_eq!(
        browser
            .submit(site.address(), &consent, &[("decision", "allow")])
            .status,
        404
    );
    // A refusal ends it, too.
    let mut other = Browser::default();
    let link = site.link(&ann);
    let page = site.consent(&mut other, &link, ANN);
    let denied = other.submit(site.address(), &page, &[("decision", "deny")]);
    protected(&denied);
    assert!(denied.body.contains("Denied"), "{denied:?}");
    assert_eq!(other.open(site.address(), &link).status, 404);
    site.recorded("ann", "refused", "the participant refused");
    assert_eq!(site.service.users(), Vec::<String>::new());
}

#[test]
fn a_link_that_another_participant_opens_binds_nothing() {
    let site = Site::start();
    let (ann, bob) = (
        Client::of(&site.gateway, ANN),
        Client::of(&site.gateway, BOB),
    );
    let link = site.link(&ann);
    // With the code of his own he is known as himself.
    let mut bobs = Browser::default();
    let page = bobs.open(site.address(), &link);
    let page = bobs.submit(site.address(), &page, &[("code", &site.code(BOB))]);
    assert_eq!(page.status, 403);
    protected(&page);
    assert!(
        page.body.contains("This link is for another participant"),
        "{page:?}"
    );
    assert!(
        !page.body.contains("ann") && !page.body.contains("decision"),
        "{page:?}"
    );
    site.recorded(
        "bob",
        "refused",
        "opened a link that was made for another participant",
    );
    // Also with a link of his own open in the same browser, whose consent does not count here.
    let own = site.link(&bob);
    let consent = site.consent(&mut bobs, &own, BOB);
    let mut crossed = consent.clone();
    crossed.body = crossed.body.replace(path_of(&own), path_of(&link));
    assert_eq!(
        bobs.submit(site.address(), &crossed, &[("decision", "allow")])
            .status,
        403
    );
    // A browser that ann has used is not his: what he copies of her page does not open in his.
    let mut anns = Browser::default();
    let page = site.consent(&mut anns, &link, ANN);
    assert_eq!(
        bobs.clone()
            .submit(site.address(), &page, &[("decision", "allow")])
            .status,
        403
    );
    assert_eq!(
        Browser::default()
            .submit(site.address(), &page, &[("decision", "allow")])
            .status,
        403
    );
    assert_eq!(site.service.asked("/register"), 0);
    // The cookie does not say that it is hers: other programs on the machine get it.
    let other = anns.clone().open(site.address(), &own);
    assert!(
        other.body.contains("name=\"code\"") && !other.body.contains("decision"),
        "{other:?}"
    );
    // The link is still good for her, and binds her account to her.
    let sent = anns.submit(site.address(), &page, &[("decision", "allow")]);
    let back = site
        .service
        .approve(sent.header("location").unwrap(), "user-a");
    // He cannot bring the answer, and it is not used up by that.
    for mut thief in [bobs, Browser::default()] {
        let refused = thief.open(site.address(), &back);
        assert!((400..=403).contains(&refused.status), "{refused:?}");
        protected(&refused);
    }
    assert!(anns.open(site.address(), &back).body.contains("Connected"));
    assert_eq!(
        text(&ann.call("jira_whoami", json!({}))),
        "user-a with read"
    );
    assert_eq!(site.link(&bob), own);
}

#[test]
fn forms_of_other_sites_and_forged_cookies_count_for_nothing() {
    let site = Site::start();
    let ann = Client::of(&site.gateway, ANN);
    let link = site.link(&ann);
    let mut browser = Browser::default();
    let page = site.consent(&mut browser, &link, ANN);
    for headers in [
        [("sec-fetch-site", "cross-site")],
        [("sec-fetch-site", "same-site")],
        [("origin", "https://evil.example")],
        [("origin", "http://localhost:3000")],
    ] {
        let refused =
            browser
                .clone()
                .submit_with(site.address(), &page, &[("decision", "allow")], &headers);
        assert_eq!(refused.status, 403, "{headers:?}");
    }
    let mut forged = browser.clone();
    forged
        .cookies
        .insert("pm_connect".to_owned(), "AAAA".to_owned());
    assert_eq!(
        forged
            .submit(site.address(), &page, &[("decision", "allow")])
            .status,
        403
    );
    let (action, hidden) = form(&page);
    // By GET nothing is allowed, and without the form's seal nothing either.
    let query = format!("{action}?decision=allow&form={}", hidden[0].1);
    let got = browser
        .clone()
        .visit(site.address(), "GET", &query, &[], "");
    assert!(got.body.contains("name=\"code\"") && got.header("location").is_none());
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("sec-fetch-site", "same-origin"),
    ];
    assert_eq!(
        browser
            .clone()
            .visit(site.address(), "POST", &action, &headers, "decision=allow")
            .status,
        403
    );
    let json = [("content-type", "application/json")];
    assert_eq!(
        browser
            .clone()
            .visit(
                site.address(),
                "POST",
                &action,
                &json,
                &format!("form={}&decision=allow", hidden[0].1)
            )
            .status,
        403
    );
    // Other hosts are not served at all.
    let foreign = Connection::open(site.address()).exchange(
        "GET",
        path_of(&link),
        &[("host", "evil.example")],
        "",
    );
    assert!((400..=403).contains(&foreign.status), "{foreign:?}");
    assert_eq!(site.service.asked("/register"), 0);
    assert_eq!(
        browser
            .submit(site.address(), &page, &[("decision", "allow")])
            .status,
        303
    );
}

#[test]
fn an_answer_counts_once_with_its_state_cookie_and_issuer() {
    let site = Site::start();
    let ann = Client::of(&site.gateway, ANN);
    let mut browser = Browser::default();
    let page = site.consent(&mut browser, &site.link(&ann), ANN);
    let sent = browser.submit(site.address(), &page, &[("decision", "allow")]);
    let back = site
        .service
        .approve(sent.header("location").unwrap(), "user-a");
    let mut refused = |url: &str| {
        let reply = browser.open(site.address(), url);
        assert_eq!(reply.status, 400, "{url}: {reply:?}");
        protected(&reply);
        assert!(
            reply.header("location").is_none() && !reply.body.contains("evil"),
            "{reply:?}"
        );
    };
    let start = back.split('?').next().unwrap();
    let (state, other) = (
        back.split("state=")
            .nth(1)
            .unwrap()
            .split('&')
            .next()
            .unwrap(),
        "A".repeat(43),
    );
    refused(&back.replace(state, &other));
    refused(start);
    refused(&format!("{start}?code=x"));
    refused(&format!("{back}&state={other}"));
    assert_eq!(site.service.asked("/token"), 0);
    // Programs that look at links use nothing up.
    let head = Connection::open(site.address()).exchange("HEAD", path_of(&back), &[], "");
    assert_eq!(head.status, 405);
    assert!(
        browser
            .open(site.address(), &back)
            .body
            .contains("Connected")
    );
    let again = browser.open(site.address(), &back);
    assert_eq!(
        (again.status, site.service.asked("/token")),
        (403, 1),
        "its cookie has gone: {again:?}"
    );
    // Of another issuer: used up, and the code is sent nowhere. The text of an error of it is not
    // shown.
    let bob = Client::of(&site.gateway, BOB);
    for (wrong, words) in [("&iss=https://evil.example", "evil"), ("", "x")] {
        let mut browser = Browser::default();
        let page = site.consent(&mut browser, &site.link(&bob), BOB);
        let sent = browser.submit(site.address(), &page, &[("decision", "allow")]);
        let back = site
            .service
            .approve(sent.header("location").unwrap(), "user-b");
        let mixed = format!("{}{wrong}&error=evil", back.split("&iss=").next().unwrap());
        let reply = browser.open(site.address(), &mixed);
        assert_eq!(
            (
                reply.status,
                reply.body.contains("not from the authorization server")
            ),
            (400, true),
            "{reply:?}"
        );
        assert!(!reply.body.contains(words) || words == "x", "{reply:?}");
        assert_eq!(browser.open(site.address(), &back).status, 400, "used up");
    }
    assert_eq!(
        (site.service.asked("/token"), site.service.users()),
        (1, vec!["user-a".to_owned()])
    );
}

#[test]
fn codes_are_good_once_and_five_wrong_ones_void_them() {
    let site = Site::start();
    let ann = Client::of(&site.gateway, ANN);
    let link = site.link(&ann);
    let code = site.code(ANN);
    assert!(
        code.len() == 9 && code.bytes().filter(u8::is_ascii_digit).count() == 8,
        "{code}"
    );
    let mut browser = Browser::default();
    let mut page = browser.open(site.address(), &link);
    // The token itself is no code.
    for typed in ["0000-0000", "", "1", ANN, "9999 9999"] {
        page = browser.submit(site.address(), &page, &[("code", typed)]);
        assert_eq!(page.status, 403, "{typed}");
        protected(&page);
    }
    assert_eq!(
        browser
            .submit(site.address(), &page, &[("code", &code)])
            .status,
        403,
        "void"
    );
    let code = site.code(ANN);
    let consent = browser.submit(site.address(), &page, &[("code", &code)]);
    assert!(consent.body.contains("name=\"decision\""), "{consent:?}");
    let mut other = Browser::default();
    let page = other.open(site.address(), &link);
    assert_eq!(
        other
            .submit(site.address(), &page, &[("code", &code)])
            .status,
        403,
        "used"
    );
    site.recorded("system:nobody", "refused", "a wrong code at a link");
    // Unknown links, of any spelling.
    for id in [
        "",
        "x",
        &"0".repeat(32),
        &"a".repeat(5_000),
        "%2e%2e%2foauth",
    ] {
        assert_eq!(
            browser
                .open(site.address(), &format!("/connect/{id}"))
                .status,
            404,
            "{id}"
        );
    }
    let without =
        Connection::open(site.address()).exchange("POST", "/api/v1/connect-code", &[], "{}");
    assert_eq!(without.status, 401);
}

#[test]
fn a_gateway_without_participants_serves_the_local_user() {
    let site = Site::of("", "", "");
    let local = Client::plain(&site.gateway);
    let mut browser = Browser::default();
    let link = site.link(&local);
    let page = browser.open(site.address(), &link);
    protected(&page);
    assert!(
        page.body.contains("name=\"decision\""),
        "no code is asked for: {page:?}"
    );
    let sent = browser.submit(site.address(), &page, &[("decision", "allow")]);
    let back = site
        .service
        .approve(sent.header("location").unwrap(), "user-a");
    assert_eq!(
        Browser::default().open(site.address(), &back).status,
        403,
        "in this browser alone"
    );
    assert!(
        browser
            .open(site.address(), &back)
            .body
            .contains("Connected")
    );
    assert_eq!(
        text(&local.call("jira_whoami", json!({}))),
        "user-a with read"
    );
}

#[test]
fn a_person_that_has_signed_in_at_the_gateway_needs_no_code_over_tls() {
    for public in ["https://mcp.example.com", ""] {
        check_signed_in(public);
    }
}

/// Signs in at the gateway, behind a proxy for TLS or on plain loopback, and opens connect links in
/// the same browser.
fn check_signed_in(public: &str) {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let (home, service) = (
        Home::new().env("ANN", ANN).env("BOB", BOB),
        Service::start(),
    );
    let key = home.write("key", &"5ea1ed0f".repeat(8));
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let loopback = format!("http://127.0.0.1:{port}");
    let (is_secure, public) = (
        !public.is_empty(),
        if public.is_empty() { &loopback } else { public },
    );
    home.write(
        "portmoot.toml",
        &format!(
            "[server]\nkey_file = {key:?}\npublic_url = \"{public}\"\n[login]\nenabled = true\n[topics.main]\n\
             [participants.ann]\ntoken_env = \"ANN\"\ncapabilities = [\"mcp/*\"]\n\
             [participants.bob]\ntoken_env = \"BOB\"\ncapabilities = [\"mcp/*\"]\n\
             [servers.jira]\nurl = {:?}\nera = \"legacy\"\n[servers.jira.auth]\naccount = \"caller\"\n",
            service.url()
        ),
    );
    let listen = format!("127.0.0.1:{port}");
    let gateway =
        Gateway::serve(home.command(&["serve", "--listen", &listen, "--config", "portmoot.toml"]));
    let site = Site {
        home,
        gateway,
        service,
    };
    let client =
        json!({ "client_name": "Editor", "redirect_uris": ["http://127.0.0.1:5/cb"] }).to_string();
    let headers = [("content-type", "application/json")];
    let registered = Connection::open(site.address())
        .exchange("POST", "/oauth/register", &headers, &client)
        .json();
    let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    let query = format!(
        "/oauth/authorize?response_type=code&client_id={}&redirect_uri=http%3A%2F%2F127.0.0.1%3A5%2Fcb&code_challenge={challenge}\
         &code_challenge_method=S256",
        registered["client_id"].as_str().unwrap()
    );
    let mut browser = Browser::default();
    let page = browser.open(site.address(), &query);
    let printed = site
        .home
        .run(&["login", "code", "bob", "--json"])
        .expect(0)
        .stdout;
    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let code = printed["code"].as_str().unwrap();
    assert!(
        browser
            .submit(site.address(), &page, &[("code", code)])
            .body
            .contains("name=\"decision\"")
    );
    // Signed in as bob: his link needs no code, ann's is refused.
    let (ann, bob) = (
        Client::of(&site.gateway, ANN),
        Client::of(&site.gateway, BOB),
    );
    let link = |client: &Client| {
        let answer = client.call("jira_whoami", json!({}));
        let text = answer["content"][0]["text"].as_str().unwrap().to_owned();
        text.split(' ')
            .find(|word| word.contains("/connect/"))
            .unwrap()
            .to_owned()
    };
    let refused = browser.open(site.address(), &link(&ann));
    let is_refused = refused.status == 403 && refused.body.contains("for another participant");
    let asks = |page: &Reply| page.body.contains("name=\"code\"");
    assert_eq!(
        (is_refused, asks(&refused)),
        (is_secure, !is_secure),
        "{refused:?}"
    );
    let page = browser.open(site.address(), &link(&bob));
    assert_eq!(
        (page.body.contains("name=\"decision\""), asks(&page)),
        (is_secure, !is_secure),
        "{page:?}"
    );
    // Without a sign-in the codes of the sign-in page do, too.
    let mut other = Browser::default();
    let page = other.open(site.address(), &link(&ann));
    let printed = site
        .home
        .run(&["login", "code", "ann", "--json"])
        .expect(0)
        .stdout;
    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let page = other.submit(
        site.address(),
        &page,
        &[("code", printed["code"].as_str().unwrap())],
    );
    assert!(page.body.contains("<dd>ann</dd>"), "{page:?}");
}

#[test]
fn a_server_that_cannot_be_asked_is_named_to_operators_alone() {
    let site = Site::start();
    let ann = Client::of(&site.gateway, ANN);
    let link = site.link(&ann);
    site.service.fail("/.well-known/oauth-authorization-server");
    let mut browser = Browser::default();
    let page = browser.open(site.address(), &link);
    let page = browser.submit(site.address(), &page, &[("code", &site.code(ANN))]);
    protected(&page);
    assert_eq!(page.status, 502, "{page:?}");
    assert!(
        !page
            .body
            .contains(&site.service.origin().replace("http://", "")),
        "{page:?}"
    );
    site.recorded("ann", "refused", "127.0.0.1");
    // The link is still good.
    site.service.fail("");
    let page = site.consent(&mut browser, &link, ANN);
    // Nor does the server's part in what follows.
    let sent = browser.submit(site.address(), &page, &[("decision", "allow")]);
    let back = site
        .service
        .approve(sent.header("location").unwrap(), "user-a");
    site.service.fail("/token");
    let page = browser.open(site.address(), &back);
    assert_eq!(page.status, 400, "{page:?}");
    assert!(
        page.body.contains("did not do its part") && !page.body.contains("503"),
        "{page:?}"
    );
    assert!(site.link(&ann) != link, "the next one");
}
