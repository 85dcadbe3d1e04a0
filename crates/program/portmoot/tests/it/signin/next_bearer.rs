//! A name that is revoked and issued again: what the former bearer's sign-ins left, in every store,
//! is out of the next one's reach.

use serde_json::{Value, json};

use super::browser::Browser;
use super::{Site, Tokens};

/// Where the client is on the web: a consent to a program on this machine is never remembered.
const WEB: (&str, &str) = ("redirect_uri", "https://app.example/cb");
const HERE: [(&str, &str); 1] = [("sec-fetch-site", "none")];

struct Scene {
    site: Site,
    client: String,
    /// The token of the present bearer of the name.
    token: String,
}

/// A try of the next bearer, or of the former one's browser, that fails.
type IsOutOfReach = Box<dyn Fn(&Scene)>;

/// The stores: each row has the former bearer own something, and reach it. The others are rows of
/// `oauth_client/next_bearer.rs`.
const STORES: &[(&str, fn(&Scene) -> IsOutOfReach)] = &[
    ("page sessions", page_session),
    ("forms of a page", form),
    ("remembered consents", remembered_consent),
    ("consents on record", consent_on_record),
    ("sign-ins", sign_in),
    ("authorization codes", authorization_code),
    ("one-time codes", one_time_code),
];

impl Scene {
    fn issue(&mut self) {
        let ran = self
            .site
            .home
            .run(&["token", "new", "tmp", "--capability", "mcp/*"])
            .expect(0);
        self.token = ran.stdout.trim().to_owned();
    }

    /// A browser in which the present bearer of the name has consented once.
    fn signed_in(&self, more: &[(&str, &str)]) -> (Browser, String) {
        let mut browser = Browser::default();
        let page = browser.authorize(&self.site, &self.client, &[WEB]);
        let asked = browser.submit(
            &self.site,
            &page,
            &[("code", &self.site.one_time_code("tmp"))],
        );
        let allowed = browser.submit(
            &self.site,
            &asked,
            &[&[("decision", "allow")], more].concat(),
        );
        (browser, allowed.parameter("code"))
    }

    fn listed(&self, what: &str) -> Value {
        let listed = self
            .site
            .gateway
            .get(&format!("/api/v1/{what}"), Some(&self.token));
        assert_eq!(listed.status, 200, "{listed:?}");
        listed.json()[what].clone()
    }
}

fn page_session(scene: &Scene) -> IsOutOfReach {
    let (browser, _) = scene.signed_in(&[]);
    assert!(
        browser
            .clone()
            .authorize(&scene.site, &scene.client, &[WEB])
            .has_field("who")
    );
    Box::new(move |scene| {
        let page = browser
            .clone()
            .authorize(&scene.site, &scene.client, &[WEB]);
        assert!(
            page.has_field("code") && !page.has_field("who"),
            "{:?}",
            page.reply
        );
    })
}

fn form(scene: &Scene) -> IsOutOfReach {
    let (mut browser, _) = scene.signed_in(&[]);
    let page = browser.authorize(&scene.site, &scene.client, &[WEB]);
    assert!(page.has_field("decision"));
    Box::new(move |scene| {
        let sent = browser
            .clone()
            .submit(&scene.site, &page, &[("decision", "allow")]);
        assert_eq!(sent.reply.status, 403, "{:?}", sent.reply);
    })
}

fn remembered_consent(scene: &Scene) -> IsOutOfReach {
    let (mut browser, _) = scene.signed_in(&[("remember", "1")]);
    let again = browser.authorize_with(&scene.site, &scene.client, &[WEB], &HERE);
    assert!(again.location().contains("code="), "{:?}", again.reply);
    Box::new(move |scene| {
        let mut browser = browser.clone();
        let page = browser.authorize_with(&scene.site, &scene.client, &[WEB], &HERE);
        assert!(page.has_field("code"), "{:?}", page.reply);
        // Nor does the next bearer consent by it, in the same browser.
        let code = scene.site.one_time_code("tmp");
        let asked = browser.submit(&scene.site, &page, &[("code", &code)]);
        assert!(asked.has_field("decision"), "{:?}", asked.reply);
        let again = browser.authorize_with(&scene.site, &scene.client, &[WEB], &HERE);
        assert!(again.has_field("decision"), "{:?}", again.reply);
    })
}

fn consent_on_record(scene: &Scene) -> IsOutOfReach {
    scene.signed_in(&[]);
    assert_eq!(scene.listed("consents").as_array().unwrap().len(), 1);
    Box::new(|scene| assert_eq!(scene.listed("consents"), json!([])))
}

fn sign_in(scene: &Scene) -> IsOutOfReach {
    let (_, code) = scene.signed_in(&[]);
    let tokens = Tokens::of(&scene.site.exchange(&scene.client, &code, &[WEB]));
    assert_eq!(scene.site.initialize("/mcp", &tokens.access), 200);
    assert_eq!(scene.listed("clients").as_array().unwrap().len(), 1);
    Box::new(move |scene| {
        assert_eq!(scene.site.initialize("/mcp", &tokens.access), 401);
        let renewed = scene.site.refresh(&scene.client, &tokens.refresh);
        assert_eq!(renewed.json()["error"], "invalid_grant", "{renewed:?}");
        assert_eq!(scene.listed("clients"), json!([]));
    })
}

fn authorization_code(scene: &Scene) -> IsOutOfReach {
    let (_, code) = scene.signed_in(&[]);
    Box::new(move |scene| {
        let exchanged = scene.site.exchange(&scene.client, &code, &[WEB]);
        assert_eq!(exchanged.json()["error"], "invalid_grant", "{exchanged:?}");
    })
}

fn one_time_code(scene: &Scene) -> IsOutOfReach {
    let code = scene.site.one_time_code("tmp");
    Box::new(move |scene| {
        let mut browser = Browser::default();
        let page = browser.authorize(&scene.site, &scene.client, &[WEB]);
        let typed = browser.submit(&scene.site, &page, &[("code", &code)]);
        assert!(!typed.has_field("decision"), "{:?}", typed.reply);
    })
}

#[test]
fn nothing_that_the_sign_ins_of_a_bearer_left_is_within_reach_of_the_next() {
    let site = Site::behind("https://mcp.example.com");
    let client = site.register(&[WEB.1]);
    let mut scene = Scene {
        site,
        client,
        token: String::new(),
    };
    scene.issue();
    let owned: Vec<(&str, IsOutOfReach)> = STORES
        .iter()
        .map(|(name, own)| (*name, own(&scene)))
        .collect();
    scene.site.home.run(&["token", "revoke", "tmp"]).expect(0);
    scene.issue();
    let check = |scene: &Scene, when: &str| {
        for (name, is_out_of_reach) in &owned {
            println!("{name}, {when}");
            is_out_of_reach(scene);
        }
    };
    check(&scene, "at once");
    let Scene {
        site,
        client,
        token,
    } = scene;
    check(
        &Scene {
            site: site.killed(),
            client,
            token,
        },
        "after a restart",
    );
}
