//! `kill -9` of the gateway while a connect page is open, and while the person is at the
//! authorization server.

use super::{ANN, Browser, Site, text};
use crate::support::Client;

/// Checks that no account exists, then connects one with a fresh link.
#[track_caller]
fn nothing_is_bound(site: &Site, used: &str) {
    assert_eq!(site.service.users(), Vec::<String>::new());
    let ann = Client::of(&site.gateway, ANN);
    let link = site.link(&ann);
    assert_ne!(
        link.rsplit('/').next(),
        used.rsplit('/').next(),
        "a link of before is not given again"
    );
    assert!(
        site.service.bearers().is_empty(),
        "{:?}",
        site.service.bearers()
    );
    assert_eq!(site.service.calls(), 0);
    site.connect(&link, ANN, "user-a");
    assert_eq!(
        text(&ann.call("jira_whoami", serde_json::json!({}))),
        "user-a with read"
    );
    assert_eq!(site.service.users(), ["user-a"]);
    assert!(
        site.service.wrong().is_empty(),
        "{:?}",
        site.service.wrong()
    );
}

#[test]
fn a_consent_page_of_before_a_kill_binds_nothing() {
    let mut site = Site::start();
    let link = site.link(&Client::of(&site.gateway, ANN));
    let mut browser = Browser::default();
    let page = site.consent(&mut browser, &link, ANN);
    site.restart();
    for mut browser in [browser, Browser::default()] {
        let allowed = browser.submit(site.address(), &page, &[("decision", "allow")]);
        assert_eq!(
            (allowed.status, allowed.header("location")),
            (403, None),
            "{allowed:?}"
        );
        assert!(allowed.body.contains("This page is too old"), "{allowed:?}");
        let opened = browser.open(site.address(), &link);
        assert_eq!(
            (opened.status, opened.header("location")),
            (404, None),
            "{opened:?}"
        );
    }
    assert_eq!(
        (
            site.service.asked("/register"),
            site.service.asked("/token")
        ),
        (0, 0)
    );
    nothing_is_bound(&site, &link);
}

#[test]
fn an_answer_to_a_sign_in_of_before_a_kill_binds_nothing() {
    let mut site = Site::start();
    let link = site.link(&Client::of(&site.gateway, ANN));
    let mut browser = Browser::default();
    let page = site.consent(&mut browser, &link, ANN);
    let sent = browser.submit(site.address(), &page, &[("decision", "allow")]);
    assert_eq!(sent.status, 303, "{sent:?}");
    let back = site
        .service
        .approve(sent.header("location").unwrap(), "user-a");
    site.restart();
    for mut browser in [browser, Browser::default()] {
        let answered = browser.open(site.address(), &back);
        assert_eq!(
            (answered.status, answered.header("location")),
            (403, None),
            "{answered:?}"
        );
        assert!(
            answered
                .body
                .contains("No sign-in was begun in this browser"),
            "{answered:?}"
        );
        assert_eq!(browser.open(site.address(), &link).status, 404);
        assert!(
            (403..=404).contains(
                &browser
                    .submit(site.address(), &page, &[("decision", "allow")])
                    .status
            )
        );
    }
    assert_eq!(site.service.asked("/token"), 0, "the code was sent nowhere");
    nothing_is_bound(&site, &link);
}
