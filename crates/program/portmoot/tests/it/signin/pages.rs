//! Attacks on the pages: forgery, framing, open redirects, guessing, deputies.

use super::{Browser, REDIRECT, Site, VERIFIER};
use crate::http::Reply;

pub(super) fn protected(reply: &Reply) {
    let policy = reply.header("content-security-policy").unwrap_or_default();
    assert!(
        policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"),
        "{reply:?}"
    );
    assert_eq!(reply.header("x-frame-options"), Some("DENY"));
    assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("access-control-allow-origin"), None);
}

#[test]
fn every_page_is_protected_and_asks_for_consent_by_post() {
    let site = Site::start("", "");
    let client = site.register(&[REDIRECT]);
    let mut browser = Browser::default();
    let sign_in = browser.authorize(&site, &client, &[]);
    protected(&sign_in.reply);
    let cookie = sign_in.reply.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("pm_login=") && cookie.contains("HttpOnly; SameSite=Lax"),
        "{cookie}"
    );
    let wrong = browser.submit(&site, &sign_in, &[("code", "00000-00000")]);
    protected(&wrong.reply);
    assert_eq!(wrong.reply.status, 403);
    let consent = browser.submit(&site, &sign_in, &[("code", &site.one_time_code("ann"))]);
    protected(&consent.reply);
    for shown in [
        "Editor",
        "ann",
        "a program on your computer (127.0.0.1:33418)",
        "not verified",
    ] {
        assert!(
            consent.reply.body.contains(shown),
            "{shown}: {}",
            consent.reply.body
        );
    }
    // The same code again, in another browser.
    let mut other = Browser::default();
    let page = other.authorize(&site, &client, &[]);
    assert_eq!(
        other
            .submit(&site, &page, &[("code", "12345-67890")])
            .reply
            .status,
        403
    );
    let denied = browser.submit(&site, &consent, &[("decision", "deny")]);
    assert_eq!(
        (denied.parameter("error"), denied.parameter("iss")),
        ("access_denied".to_owned(), site.url())
    );
    assert_eq!(denied.parameter("state"), "the state");
    protected_redirect(&denied.reply);
}

/// Over TLS the next client asks for consent at once, and each time. Over plain HTTP each asks who
/// it is.
#[test]
fn a_browser_stays_signed_in_only_where_its_cookies_go_to_the_gateway_alone() {
    for (site, stays) in [
        (Site::behind("https://mcp.example.com"), true),
        (Site::start("", ""), false),
    ] {
        let mut browser = Browser::default();
        let first = site.register(&[REDIRECT]);
        let back = site.allowed(&mut browser, &first, "ann", &[]);
        assert!(!back.parameter("code").is_empty());
        // What another program on this machine gets of the browser.
        let mut program = browser.clone();
        let second = site.register(&[REDIRECT]);
        for _ in 0..2 {
            let page = program.authorize(&site, &second, &[]);
            assert_eq!(
                (page.has_field("code"), page.has_field("who")),
                (!stays, stays),
                "{}",
                page.reply.body
            );
            if stays {
                let back =
                    program.submit(&site, &page, &[("decision", "allow"), ("remember", "1")]);
                assert!(!back.parameter("code").is_empty());
            }
        }
        let cookie = back.reply.header("set-cookie").unwrap_or_default();
        assert_eq!(
            cookie.starts_with("pm_login=; Path=/; Max-Age=0"),
            !stays,
            "{cookie}"
        );
    }
}

/// In the middle of a sign-in other programs on the machine get the cookie too.
#[test]
fn over_plain_http_no_cookie_says_who_has_signed_in() {
    let site = Site::start("", "");
    let (client, other) = (site.register(&[REDIRECT]), site.register(&[REDIRECT]));
    let mut browser = Browser::default();
    let page = browser.authorize(&site, &client, &[]);
    let consent = browser.submit(&site, &page, &[("code", &site.one_time_code("ann"))]);
    let mut program = browser.clone();
    let own = program.authorize(&site, &other, &[]);
    assert!(
        own.has_field("code") && !own.has_field("who"),
        "{}",
        own.reply.body
    );
    // The person's consent is to one request: it does not fit another form of the same browser.
    let field = |page: &super::Visit, name: &str| {
        page.form()
            .1
            .into_iter()
            .find(|(known, _)| known == name)
            .unwrap()
            .1
    };
    let mut mixed = consent.clone();
    mixed.reply.body = mixed
        .reply
        .body
        .replace(&field(&consent, "request"), &field(&own, "request"));
    assert_eq!(
        program
            .submit(&site, &mixed, &[("decision", "allow")])
            .reply
            .status,
        403
    );
    assert!(
        !browser
            .submit(&site, &consent, &[("decision", "allow")])
            .parameter("code")
            .is_empty()
    );
}

#[test]
fn a_browser_is_signed_out_when_anything_of_its_participant_is_revoked() {
    let site = Site::behind("https://mcp.example.com");
    let client = site.register(&[REDIRECT]);
    let issue = || {
        site.home
            .run(&["token", "new", "tmp", "--capability", "chat"])
            .expect(0)
    };
    let is_signed_in = |browser: &Browser| {
        browser
            .clone()
            .authorize(&site, &client, &[])
            .has_field("who")
    };
    issue();
    let mut former = Browser::default();
    site.allowed(&mut former, &client, "tmp", &[]);
    assert!(is_signed_in(&former));
    let page = former.authorize(&site, &client, &[]);
    let code = site.one_time_code("tmp");
    let granted = former
        .clone()
        .submit(&site, &page, &[("decision", "allow")])
        .parameter("code");
    // The next bearer of the name is another participant.
    site.home.run(&["token", "revoke", "tmp"]).expect(0);
    assert!(!is_signed_in(&former));
    site.home
        .run(&["token", "new", "tmp", "--capability", "mcp/*"])
        .expect(0);
    assert!(!is_signed_in(&former));
    assert_eq!(
        former
            .clone()
            .submit(&site, &page, &[("decision", "allow")])
            .reply
            .status,
        403
    );
    assert_eq!(
        site.exchange(&client, &granted, &[]).json()["error"],
        "invalid_grant"
    );
    let mut fresh = Browser::default();
    let asked = fresh.authorize(&site, &client, &[]);
    assert_eq!(
        fresh.submit(&site, &asked, &[("code", &code)]).reply.status,
        403,
        "a code of before"
    );
    // A client that is revoked ends the session that it was begun in.
    let mut browser = Browser::default();
    site.allowed(&mut browser, &client, "ann", &[]);
    let page = browser.authorize(&site, &client, &[]);
    let code = browser
        .clone()
        .submit(&site, &page, &[("decision", "allow")])
        .parameter("code");
    assert_eq!(site.exchange(&client, &code, &[]).status, 200);
    assert!(is_signed_in(&browser));
    let listed = site.home.run(&["clients", "ls", "--json"]).expect(0).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    site.home
        .run(&[
            "clients",
            "revoke",
            listed["clients"][0]["client"].as_str().unwrap(),
        ])
        .expect(0);
    assert!(!is_signed_in(&browser));
    // A restart ends it, too.
    site.allowed(&mut browser, &client, "ann", &[]);
    assert!(is_signed_in(&browser));
    let site = site.killed();
    assert!(!browser.authorize(&site, &client, &[]).has_field("who"));
}

fn protected_redirect(reply: &Reply) {
    assert_eq!(
        (reply.status, reply.header("cache-control")),
        (303, Some("no-store"))
    );
    assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
}

#[test]
fn forms_count_only_in_the_browser_that_got_them() {
    let site = Site::start("", "");
    let client = site.register(&[REDIRECT]);
    let mut victim = Browser::default();
    let page = victim.authorize(&site, &client, &[]);
    let consent = victim.submit(&site, &page, &[("code", &site.one_time_code("ann"))]);
    let mut attacker = Browser::default();
    let theirs = attacker.authorize(&site, &client, &[]);
    let theirs_consent = attacker.submit(&site, &theirs, &[("code", &site.one_time_code("bob"))]);
    let allow = [("decision", "allow")];
    let own = [("sec-fetch-site", "same-origin")];
    // The attacker's form in the victim's browser, without a cookie, and from another site.
    assert_eq!(
        victim
            .clone()
            .submit(&site, &theirs_consent, &allow)
            .reply
            .status,
        403
    );
    assert_eq!(
        victim
            .clone()
            .submit(&site, &theirs, &[("code", "1")])
            .reply
            .status,
        403
    );
    assert_eq!(
        Browser::default()
            .submit(&site, &consent, &allow)
            .reply
            .status,
        403
    );
    for headers in [
        [("sec-fetch-site", "cross-site")],
        [("sec-fetch-site", "same-site")],
        [("origin", "https://evil.example")],
        [("origin", "http://localhost:3000")],
    ] {
        let refused = victim
            .clone()
            .submit_with(&site, &consent, &allow, &headers);
        assert_eq!(refused.reply.status, 403, "{headers:?}");
    }
    // A forged cookie, the consent of one participant by another, and a form that was changed.
    let mut forged = victim.clone();
    forged
        .cookies
        .insert("pm_login".to_owned(), "AAAA".to_owned());
    assert_eq!(forged.submit(&site, &consent, &allow).reply.status, 403);
    let mut mixed = consent.clone();
    let who = |page: &super::Visit| {
        page.form()
            .1
            .into_iter()
            .find(|(name, _)| name == "who")
            .unwrap()
            .1
    };
    mixed.reply.body = mixed
        .reply
        .body
        .replace(&who(&consent), &who(&theirs_consent));
    assert_eq!(
        victim.clone().submit(&site, &mixed, &allow).reply.status,
        403
    );
    mixed.reply.body = consent
        .reply
        .body
        .replace("/oauth/consent", "/oauth/authorize");
    assert!(
        victim
            .clone()
            .submit(&site, &mixed, &allow)
            .reply
            .header("location")
            .is_none()
    );
    // By GET nothing is allowed.
    assert_eq!(
        site.request("GET", "/oauth/consent?decision=allow", &[], "")
            .status,
        405
    );
    let back = victim.submit_with(&site, &consent, &allow, &own);
    assert!(!back.parameter("code").is_empty());
}

#[test]
fn the_gateway_is_no_open_redirector() {
    let site = Site::start("", "");
    let evil = site.register(&["https://evil.example/cb"]);
    let good = site.register(&[REDIRECT]);
    let mut browser = Browser::default();
    let mut visit = |client: &str, more: &[(&str, &str)]| browser.authorize(&site, client, more);
    let to_evil = ("redirect_uri", "https://evil.example/cb");
    // Without consent no stranger's address is redirected to, whatever is wrong with the request.
    for wrong in [
        ("response_type", "token"),
        ("code_challenge", ""),
        ("resource", "https://other.example/mcp"),
    ] {
        let page = visit(&evil, &[to_evil, wrong]);
        assert_eq!(
            (page.reply.status, page.reply.header("location")),
            (400, None),
            "{wrong:?}"
        );
        assert!(
            page.reply.body.contains("Go back to evil.example"),
            "{}",
            page.reply.body
        );
    }
    for near in [
        "https://evil.example/cb",
        "http://127.0.0.1:33418/callback/",
        "http://127.0.0.1:33418/callback?x=1",
        "http://localhost:33418/callback",
        "http://127.0.0.1:33418@evil.example/callback",
        "javascript:alert(1)",
        "//evil.example/cb",
    ] {
        let page = visit(&good, &[("redirect_uri", near)]);
        assert_eq!(
            (page.reply.status, page.reply.header("location")),
            (400, None),
            "{near}"
        );
    }
    for client in [
        "",
        "unknown",
        "pm_cl_AAAA",
        "https://127.0.0.1/client.json",
        "https://localhost/client.json",
        "http://a.example/c",
    ] {
        let page = visit(client, &[]);
        assert_eq!(
            (page.reply.status, page.reply.header("location")),
            (400, None),
            "{client}"
        );
    }
    // A program on the person's own computer receives errors, with the issuer.
    for (wrong, error) in [
        (("response_type", "token"), "unsupported_response_type"),
        (("code_challenge_method", "plain"), "invalid_request"),
        // Without a method a challenge is plain (RFC 7636, section 4.3), and without a challenge
        // there is no proof.
        (("code_challenge_method", ""), "invalid_request"),
        (("code_challenge", ""), "invalid_request"),
        (("resource", "https://other.example/mcp"), "invalid_target"),
    ] {
        let back = visit(&good, &[wrong]);
        assert!(back.location().starts_with(REDIRECT), "{}", back.location());
        assert_eq!(
            (back.parameter("error"), back.parameter("iss")),
            (error.to_owned(), site.url())
        );
    }
}

#[test]
fn a_remembered_consent_counts_in_its_browser_and_for_no_other_site() {
    let site = Site::behind("https://mcp.example.com");
    let (web, local) = (
        ("redirect_uri", "https://app.example/cb"),
        ("redirect_uri", REDIRECT),
    );
    let client = site.register(&["https://app.example/cb", REDIRECT]);
    let mut browser = Browser::default();
    let page = browser.authorize(&site, &client, &[web]);
    let consent = browser.submit(&site, &page, &[("code", &site.one_time_code("ann"))]);
    let back = browser.submit(&site, &consent, &[("decision", "allow"), ("remember", "1")]);
    assert!(back.location().starts_with("https://app.example/cb?code="));
    let asks = |browser: &Browser, more: &[(&str, &str)], site_header: &str| {
        let headers = [("sec-fetch-site", site_header)];
        browser
            .clone()
            .authorize_with(&site, &client, more, &headers)
            .reply
            .header("location")
            .is_none()
    };
    assert!(!asks(&browser, &[web], "none") && !asks(&browser, &[web], "same-origin"));
    assert!(
        asks(&browser, &[web], "cross-site"),
        "another site must not use the consent"
    );
    let without = browser.clone().authorize(&site, &client, &[web]);
    assert!(
        without.reply.header("location").is_none(),
        "an old browser does not say who asks"
    );
    assert!(
        asks(&browser, &[local], "none"),
        "a program is always asked about"
    );
    let mut other = browser.clone();
    other.cookies.remove("__Host-pm_consent");
    assert!(asks(&other, &[web], "none"), "another browser");
    // Withdrawn: asked again, and signed out.
    let printed = site
        .home
        .run(&["consents", "ls", "--json"])
        .expect(0)
        .stdout;
    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let id = printed["consents"][0]["client"].as_str().unwrap();
    site.home.run(&["consents", "revoke", id]).expect(0);
    assert!(asks(&browser, &[web], "none"));
}

#[test]
fn guesses_are_bounded() {
    let site = Site::start("", "");
    let client = site.register(&[REDIRECT]);
    let mut browser = Browser::default();
    let page = browser.authorize(&site, &client, &[]);
    let mut last = page.clone();
    for _ in 0..11 {
        last = browser.submit(&site, &page, &[("code", "00000-00000")]);
    }
    assert!(
        last.reply.body.contains("Too many tries"),
        "{}",
        last.reply.body
    );
    let code = site.one_time_code("ann");
    let locked = browser.submit(&site, &page, &[("code", &code)]);
    assert!(
        locked.reply.body.contains("Too many tries"),
        "also the right one has to wait"
    );
}

#[test]
fn registrations_are_bounded_and_say_what_is_wrong() {
    let site = Site::start("", "");
    let register = |body: &str| {
        site.request(
            "POST",
            "/oauth/register",
            &[("content-type", "application/json")],
            body,
        )
    };
    let answer = register(
        r#"{"client_name":"x","redirect_uris":["https://a.example/","cursor://other"],"scope":"mcp:read","token_endpoint_auth_method":"client_secret_basic"}"#,
    );
    assert_eq!(answer.status, 201);
    let answer = answer.json();
    assert_eq!(
        answer["redirect_uris"],
        serde_json::json!(["https://a.example/"])
    );
    assert_eq!(
        (&answer["token_endpoint_auth_method"], &answer["scope"]),
        (&"none".into(), &"mcp:read".into())
    );
    assert!(answer.get("client_secret").is_none());
    assert_eq!(
        register(r#"{"redirect_uris":["http://a.example/"]}"#).json()["error"],
        "invalid_redirect_uri"
    );
    assert_eq!(register("x").json()["error"], "invalid_client_metadata");
    let long = format!(
        "{{\"redirect_uris\":[\"https://a.example/\"],\"client_name\":\"{}\"}}",
        "x".repeat(17_000)
    );
    assert_eq!(register(&long).json()["error"], "invalid_client_metadata");
    assert_eq!(register(&" ".repeat(70_000)).status, 413);
    let mut last = 201;
    for _ in 0..10 {
        last = register(r#"{"redirect_uris":["https://a.example/"]}"#).status;
    }
    assert_eq!(last, 429);
}

#[test]
fn tokens_may_be_pasted_only_where_the_operator_allows_it() {
    for (login, works) in [("", false), ("paste_tokens = true", true)] {
        let site = Site::start(login, "");
        let issued = site
            .home
            .run(&["token", "new", "eve", "--json"])
            .expect(0)
            .stdout;
        let issued: serde_json::Value = serde_json::from_str(&issued).unwrap();
        let client = site.register(&[REDIRECT]);
        let mut browser = Browser::default();
        let page = browser.authorize(&site, &client, &[]);
        let next = browser.submit(&site, &page, &[("code", issued["token"].as_str().unwrap())]);
        assert_eq!(next.has_field("who"), works, "{login}: {}", next.reply.body);
        if works {
            let back = browser.submit(&site, &next, &[("decision", "allow")]);
            let tokens = super::Tokens::of(&site.exchange(&client, &back.parameter("code"), &[]));
            assert_eq!(site.initialize("/mcp", &tokens.access), 200);
            // With the token, what was given for it ends.
            site.home.run(&["token", "revoke", "eve"]).expect(0);
            assert_eq!(site.initialize("/mcp", &tokens.access), 401);
            assert_eq!(
                site.refresh(&client, &tokens.refresh).json()["error"],
                "invalid_grant"
            );
        }
    }
}

#[test]
fn who_is_to_be_asked_anew_is_although_the_browser_is_known() {
    let site = Site::behind("https://mcp.example.com");
    let mut browser = Browser::default();
    let client = site.register(&[REDIRECT]);
    site.allowed(&mut browser, &client, "ann", &[]);
    let known = browser.authorize(&site, &client, &[]);
    assert!(known.has_field("who") && !known.has_field("code"));
    let anew = browser.authorize(&site, &client, &[("prompt", "login")]);
    assert!(anew.has_field("code"), "{}", anew.reply.body);
    let asked = browser.submit(&site, &anew, &[("code", &site.one_time_code("ann"))]);
    assert!(asked.has_field("who"), "{}", asked.reply.body);
}

/// Tokens of the console are asked for in the gateway itself alone, and its codes go to its own page alone.
#[test]
fn the_consoles_own_client_gets_no_tokens_from_outside() {
    const CONSOLE: &str = "portmoot-console";
    let site = Site::start("clients = \"configured\"", "");
    let mut browser = Browser::default();
    let elsewhere = browser.authorize(&site, CONSOLE, &[]);
    assert_eq!(elsewhere.reply.status, 400, "{:?}", elsewhere.reply);
    let own = format!("{}/console/signed-in/portmoot", site.url());
    let mut allowed = || {
        let page = browser.authorize(&site, CONSOLE, &[("redirect_uri", &own)]);
        let page = browser.submit(&site, &page, &[("code", &site.one_time_code("ann"))]);
        browser.submit(&site, &page, &[("decision", "allow")])
    };
    let back = allowed();
    assert!(back.reply.header("location").unwrap().starts_with(&own));
    for form in [
        [
            ("grant_type", "authorization_code"),
            ("code", &*back.parameter("code")),
        ],
        [
            ("grant_type", "refresh_token"),
            ("refresh_token", "pm_rt_x"),
        ],
    ] {
        let proof = [("client_id", CONSOLE), ("code_verifier", VERIFIER)];
        let refused = site.form("/oauth/token", &[&form[..], &proof].concat());
        assert_eq!(refused.status, 401, "{refused:?}");
        assert_eq!(refused.json()["error"], "invalid_client");
    }
}
