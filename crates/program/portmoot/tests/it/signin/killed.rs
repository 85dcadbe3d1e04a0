//! A gateway that is killed at every step of a sign-in and of a refresh.

use super::{Browser, REDIRECT, Site, Tokens};

#[test]
fn a_killed_gateway_loses_no_family_and_makes_no_half_consent() {
    let mut site = Site::start("", "");
    let client = site.register(&[REDIRECT]);
    let mut browser = Browser::default();
    // Ids and forms are sealed: they outlive the process. One-time codes do not, and are asked for
    // again.
    let page = browser.authorize(&site, &client, &[]);
    let lost = site.one_time_code("ann");
    site = site.killed();
    assert_eq!(
        browser
            .submit(&site, &page, &[("code", &lost)])
            .reply
            .status,
        403
    );
    let consent = browser.submit(&site, &page, &[("code", &site.one_time_code("ann"))]);
    site = site.killed();
    let consents = |site: &Site| {
        site.home
            .run(&["consents", "ls", "--json"])
            .expect(0)
            .stdout
            .matches("\"client\"")
            .count()
    };
    assert_eq!(consents(&site), 0, "nothing was consented yet");
    assert_eq!(
        browser
            .submit(&site, &consent, &[("decision", "allow")])
            .reply
            .status,
        403,
        "signed out"
    );
    let back = site.allowed(&mut browser, &client, "ann", &[]);
    site = site.killed();
    // The consent is on disk; its code was in memory, and gives nothing.
    assert_eq!(consents(&site), 1);
    assert_eq!(
        site.exchange(&client, &back.parameter("code"), &[]).json()["error"],
        "invalid_grant"
    );
    let clients = |site: &Site| {
        site.home
            .run(&["clients", "ls", "--json"])
            .expect(0)
            .stdout
            .matches("\"client\"")
            .count()
    };
    assert_eq!(clients(&site), 0);
    let again = site.allowed(&mut browser, &client, "ann", &[]);
    let tokens = Tokens::of(&site.exchange(&client, &again.parameter("code"), &[]));
    site = site.killed();
    assert_eq!(
        (clients(&site), site.initialize("/mcp", &tokens.access)),
        (1, 200),
        "the sign-in is there"
    );
    let next = Tokens::of(&site.refresh(&client, &tokens.refresh));
    site = site.killed();
    // The client may not have got the answer: it asks again, and gets the same successor.
    let repeated = Tokens::of(&site.refresh(&client, &tokens.refresh));
    assert_eq!(repeated.refresh, next.refresh);
    let last = Tokens::of(&site.refresh(&client, &next.refresh));
    site = site.killed();
    assert_eq!(site.initialize("/mcp", &last.access), 200);
    // What has ended stays ended.
    assert_eq!(
        site.refresh(&client, &tokens.refresh).json()["error"],
        "invalid_grant"
    );
    site = site.killed();
    assert_eq!(
        (clients(&site), site.initialize("/mcp", &last.access)),
        (0, 401)
    );
    assert_eq!(
        site.refresh(&client, &last.refresh).json()["error"],
        "invalid_grant"
    );
}
