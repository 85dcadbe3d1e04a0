//! The rules of cookies over the wire: their prefix and flags, when each is set, and that no other
//! place may set one.

use super::{Browser, Site};
use crate::http::Reply;

/// The cookies that an answer sets: names, and whether each has all flags that it must have.
fn set(reply: &Reply) -> Vec<(String, bool)> {
    let headers = reply
        .headers
        .iter()
        .filter(|(name, _)| name == "set-cookie");
    let read = |(_, cookie): &(String, String)| {
        let mut parts = cookie.split("; ");
        let name = parts.next().unwrap().split('=').next().unwrap().to_owned();
        let flags: Vec<&str> = parts.collect();
        let wanted = ["Path=/", "HttpOnly", "SameSite=Lax"];
        let has_wanted = wanted.iter().all(|flag| flags.contains(flag));
        let is_secure = flags.contains(&"Secure") == name.starts_with("__Host-");
        let has_domain = flags
            .iter()
            .any(|flag| flag.to_lowercase().starts_with("domain"));
        (name, has_wanted && is_secure && !has_domain)
    };
    headers.map(read).collect()
}

fn names(reply: &Reply) -> Vec<String> {
    set(reply).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn cookies_are_secure_and_a_consent_is_remembered_only_once_it_is_given() {
    let web = ("redirect_uri", "https://app.example/cb");
    for (site, prefix) in [
        (Site::start("", ""), ""),
        (Site::behind("https://mcp.example.com"), "__Host-"),
        (Site::behind("https://mcp.example.com/gw"), "__Host-"),
    ] {
        let (login, consent) = (format!("{prefix}pm_login"), format!("{prefix}pm_consent"));
        let client = site.register(&[web.1]);
        let mut browser = Browser::default();
        let page = browser.authorize(&site, &client, &[web]);
        assert_eq!(names(&page.reply), [login.as_str()], "{prefix}");
        let asked = browser.submit(&site, &page, &[("code", &site.one_time_code("ann"))]);
        assert!(
            !names(&asked.reply).contains(&consent),
            "no consent was given yet"
        );
        let denied =
            browser
                .clone()
                .submit(&site, &asked, &[("decision", "deny"), ("remember", "1")]);
        assert!(!names(&denied.reply).contains(&consent), "it was refused");
        let once = browser
            .clone()
            .submit(&site, &asked, &[("decision", "allow")]);
        assert!(
            !names(&once.reply).contains(&consent),
            "it was given for once"
        );
        let allowed = browser.submit(&site, &asked, &[("decision", "allow"), ("remember", "1")]);
        assert!(
            allowed
                .location()
                .starts_with("https://app.example/cb?code=")
        );
        // Over plain HTTP there is no session for which a consent could be remembered, and its
        // cookie goes.
        let expected = if prefix.is_empty() { &login } else { &consent };
        assert_eq!(names(&allowed.reply), [expected.as_str()]);
        for reply in [
            &page.reply,
            &asked.reply,
            &denied.reply,
            &once.reply,
            &allowed.reply,
        ] {
            assert!(
                set(reply).iter().all(|(_, is_right)| *is_right),
                "{:?}",
                reply.headers
            );
        }
        // Where the prefix can be had, a cookie without it is another host's or a plain page's, and
        // counts for nothing.
        let mut tossed = Browser::default();
        for (name, value) in &browser.cookies {
            let bare = name.strip_prefix("__Host-").unwrap_or("other");
            tossed.cookies.insert(bare.to_owned(), value.clone());
        }
        let page = tossed.authorize(&site, &client, &[web]);
        assert!(
            page.has_field("code"),
            "the other browser's person is not signed in: {}",
            page.reply.body
        );
        assert_eq!(
            tossed
                .submit(&site, &asked, &[("decision", "allow")])
                .reply
                .status,
            403
        );
    }
}

#[test]
fn a_participant_has_few_unused_codes_and_takes_none_from_others() {
    let web = ("redirect_uri", "https://app.example/cb");
    let site = Site::behind("https://mcp.example.com");
    let client = site.register(&[web.1]);
    let of_bob = site
        .allowed(&mut Browser::default(), &client, "bob", &[web])
        .parameter("code");
    let mut browser = Browser::default();
    let page = browser.authorize(&site, &client, &[web]);
    let asked = browser.submit(&site, &page, &[("code", &site.one_time_code("ann"))]);
    let allowed = browser.submit(&site, &asked, &[("decision", "allow"), ("remember", "1")]);
    let mut of_ann = vec![allowed.parameter("code")];
    for _ in 0..10 {
        let again = browser.authorize_with(&site, &client, &[web], &[("sec-fetch-site", "none")]);
        of_ann.push(again.parameter("code"));
    }
    let exchanged = |code: &str| site.exchange(&client, code, &[web]);
    assert_eq!(
        exchanged(&of_ann[0]).json()["error"],
        "invalid_grant",
        "eleven are one too many"
    );
    for code in of_ann.iter().skip(1).chain([&of_bob]) {
        assert_eq!(exchanged(code).status, 200);
    }
}
