//! Signing in and out by the commands of an operator.

use serde_json::json;

use super::{Person, Site};
use crate::http::Connection;
use crate::support::Client;

/// Signs in, and checks that a connected client learns of the tools and that no output has a token.
fn signs_in(way: &[&str], act: impl FnOnce(&Site, &[&str])) -> Site {
    let site = Site::start();
    let client = Client::plain(&site.gateway);
    let events = client.listen();
    let before = site.wait_for("needs_login");
    assert_eq!(
        (&before["issuer"], &before["renews"]),
        (&json!(null), &json!(false))
    );
    assert!(!client.names("tools").contains(&"jira_search".to_owned()));
    // Probes see that a person has to act, and that the gateway is ready without that.
    let ready = site.gateway.get("/readyz", None);
    assert_eq!(
        (ready.status, &ready.json()["servers_need_login"]),
        (200, &json!(1)),
        "{ready:?}"
    );
    assert_eq!(ready.json()["servers"][0]["state"], "needs_login");
    let metric = |state: &str| {
        let line = format!("portmoot_server_account{{server=\"jira\",state=\"{state}\"}} 1\n");
        site.gateway.get("/metrics", None).body.contains(&line)
    };
    assert!(metric("needs_login"));
    act(&site, &[&["servers", "login", "jira"], way].concat());
    events.next_of("notifications/tools/list_changed");
    let client = site.wait_listed();
    assert_eq!(site.call(&client), Ok("found".to_owned()));
    let after = site.account();
    assert_eq!(after["state"], "ready");
    assert!(metric("ready") && !metric("needs_login"));
    assert_eq!(
        site.gateway.get("/readyz", None).json()["servers_need_login"],
        0
    );
    assert_eq!(
        (&after["issuer"], &after["renews"]),
        (&json!(site.provider.issuer()), &json!(true))
    );
    assert_eq!(after["scopes"], json!(["mcp:read", "mcp:write"]));
    let shown = site.home.run(&["servers", "auth"]).expect(0);
    assert!(
        shown.stdout.contains("ready") && shown.stdout.contains("mcp:read mcp:write"),
        "{}",
        shown.stdout
    );
    let secrets = site.secrets();
    assert!(secrets.len() >= 3, "{secrets:?}");
    for secret in &secrets {
        assert!(
            !shown.stdout.contains(secret) && !after.to_string().contains(secret),
            "{secret}"
        );
    }
    site
}

#[test]
fn by_pasting_once_and_out_again() {
    let site = signs_in(&["--paste"], |site, args| {
        let asking = site.begin(args);
        assert_eq!(site.account()["state"], "pending");
        let back = Person::default().open(&asking.url);
        let ran = asking.paste(&back).expect(0);
        assert!(
            ran.stderr
                .contains("signed in at `jira` with the scopes mcp:read mcp:write"),
            "{}",
            ran.stderr
        );
        // An answer counts once.
        let second = site.begin(args).paste(&back).expect(3);
        assert!(
            second.stderr.contains("it was used already"),
            "{}",
            second.stderr
        );
        let code = url::Url::parse(&back).unwrap();
        let code = code
            .query_pairs()
            .find(|(name, _)| name == "code")
            .unwrap()
            .1
            .into_owned();
        assert!(!ran.stderr.contains(&code) && !second.stderr.contains(&code));
    });
    let client = Client::plain(&site.gateway);
    let client_id = site.account()["client_id"].as_str().unwrap().to_owned();
    site.home.run(&["servers", "logout", "jira"]).expect(0);
    assert_eq!(site.provider.asked("/token/revocation"), 1);
    let ended = site.account();
    // The second sign-in is still under way.
    assert_eq!(
        (&ended["state"], &ended["issuer"]),
        (&json!("pending"), &json!(null))
    );
    assert_eq!(site.call(&client), Err("upstream_login_needed".to_owned()));
    // It is dead at the provider, which would renew it otherwise.
    let [token] = &site.all_issued("refresh_token")[..] else {
        panic!("{:?}", site.issued())
    };
    assert_eq!(
        site.renew_as_gateway(&client_id, token)["error"],
        "invalid_grant"
    );
}

#[test]
fn by_a_browser_on_the_same_machine() {
    signs_in(&["--no-browser"], |site, args| {
        let asking = site.begin(args);
        let back = Person::default().open(&asking.url);
        let back = url::Url::parse(&back).unwrap();
        let address = format!("127.0.0.1:{}", back.port().unwrap());
        // Something else asks first.
        let lost = Connection::open(&address).exchange("GET", "/favicon.ico", &[], "");
        assert_eq!(lost.status, 404);
        let path = &back[url::Position::BeforePath..url::Position::AfterQuery];
        let page = Connection::open(&address).exchange("GET", path, &[], "");
        assert!(page.body.contains("You are signed in"), "{page:?}");
        assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
        asking.end().expect(0);
    });
}

#[test]
fn on_another_device() {
    signs_in(&["--device"], |site, args| {
        let asking = site.begin(args);
        let code = asking.said.trim().rsplit(' ').next().unwrap().to_owned();
        let page = Person::default().open(&format!("{}?user_code={code}", asking.url));
        assert!(page.contains("Sign-in Success"), "{page}");
        asking.end().expect(0);
    });
}
