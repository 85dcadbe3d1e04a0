//! Tests of people who sign in at an issuer: the way there and back, their tokens, and further proofs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api::CONSOLE_CODE_MS;
use auth::PublicUrl;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use oauth::Trouble;
use oauth::person::{Asked, PersonError};
use serde_json::json;

use crate::account::{RENEWED_BEFORE_MS, REST_MS};
use crate::begun::BROWSER_SIGN_INS_MAX;
use crate::elsewhere::{CONSOLE_SIGN_INS_PER_MINUTE, PLACE_ANSWER_BYTES_MAX};
use crate::home::{ConsoleHome, PlaceName};
use crate::keep::CONSOLE_SWEEP_MS;
use crate::routes::router;
use crate::routes::tests_support::{ISSUER, PROOF_MS, Reply, Stage, TestPlace, proposal, tokens};
use crate::session::{CONSOLE_IDLE_MS, REPLACED_SIGN_INS_MAX};
use crate::sign_in::CONSOLE_TRIES_PER_MINUTE;

/// Time for which tokens of the test's place are good, in milliseconds.
const LIFETIME_MS: u64 = 600_000;
const ORIGIN: &str = "https://gw.example";

/// A gateway behind TLS, at which people sign in by `corp`.
struct Site(Stage);

/// A sign-in that a browser has begun.
struct Begun {
    cookie: String,
    state: String,
    set_cookie: String,
    address: String,
}

impl Site {
    fn new() -> Self {
        let stage = Stage::new(vec![proposal("8", &json!({}))]);
        {
            let mut settings = stage.home.settings.lock();
            settings.enabled = Some(true);
            settings.public_url = Some(PublicUrl::parse(ORIGIN).unwrap());
            settings.places = vec![PlaceName {
                name: "corp".to_owned(),
                label: "corp".to_owned(),
            }];
        }
        let site = Self(stage);
        site.gives("c-ann", "t-ann", "r-1");
        site.gives("c-bob", "t-bob", "r-bob");
        site
    }

    /// Has the place answer a code or a refresh token with these tokens.
    fn gives(&self, by: &str, access: &str, refresh: &str) {
        let expires_ms = self.0.home.now_ms() + LIFETIME_MS;
        let given = tokens(access, refresh, expires_ms);
        let outcomes = &self.0.home.corp.outcomes;
        outcomes.lock().insert(by.to_owned(), Ok(given));
    }

    /// Has the place answer a code or a refresh token of ann with tokens that the gateway knows.
    fn gives_ann(&self, by: &str, access: &str, refresh: &str) {
        self.gives(by, access, refresh);
        let tokens = &self.0.home.tokens;
        tokens.lock().insert(access.to_owned(), "ann".to_owned());
    }

    /// Has the place say that it asked then who the person of this code is.
    fn asked(&self, code: &str, asked: Asked) {
        let outcomes = &self.0.home.corp.outcomes;
        if let Some(Ok(given)) = outcomes.lock().get_mut(code) {
            given.asked = asked;
        }
    }

    fn fails(&self, by: &str, error: PersonError) {
        let outcomes = &self.0.home.corp.outcomes;
        outcomes.lock().insert(by.to_owned(), Err(error));
    }

    async fn get_from(&self, site: &str, path: &str, cookie: &str) -> Reply {
        let request = Request::builder()
            .uri(path)
            .header("host", "gw.example")
            .header("cookie", cookie)
            .header("sec-fetch-site", site);
        self.0.send(request.body(Body::empty()).unwrap()).await
    }

    async fn get(&self, path: &str, cookie: &str) -> Reply {
        self.get_from("same-origin", path, cookie).await
    }

    async fn post(&self, path: &str, cookie: &str, form: &[(&str, &str)]) -> Reply {
        let headers = [("host", "gw.example"), ("origin", ORIGIN)];
        self.0.post_from(path, cookie, form, &headers).await
    }

    async fn begin(&self, more: &str) -> Begun {
        self.begin_in("", more).await
    }

    /// Begins a sign-in in a browser with these cookies.
    async fn begin_in(&self, cookies: &str, more: &str) -> Begun {
        let path = format!("/console/sign-in?with=corp{more}");
        Begun::of(&self.get(&path, cookies).await)
    }

    /// The end of a sign-in with this answer, in a browser with these cookies.
    async fn ends(&self, cookies: &str, answer: &str) -> Reply {
        let path = format!("/console/signed-in/corp/on?{answer}");
        self.get(&path, cookies).await
    }

    /// Signs in with this code of the place; returns the cookie of the session.
    async fn signed_in(&self, code: &str) -> String {
        self.signed_in_over("", code).await
    }

    /// The same in a browser with this session.
    async fn signed_in_over(&self, session: &str, code: &str) -> String {
        let begun = self.begin("").await;
        let cookies = format!("{session}; {}", begun.cookie);
        let reply = self.ends(&cookies, &begun.answer(code)).await;
        assert_eq!(reply.status, StatusCode::SEE_OTHER, "{}", reply.body);
        reply.cookie()
    }

    /// The token that the API gets for this session.
    async fn bearer(&self, cookie: &str) -> String {
        let token = self.get("/console", cookie).await.field("token");
        let form = [("token", &*token), ("reason", "unclear")];
        self.post("/console/p/8/reject", cookie, &form).await;
        self.0.acts.lock().last().unwrap().1.clone()
    }

    async fn signs_out(&self, cookie: &str) {
        let token = self.get("/console", cookie).await.field("token");
        self.post("/console/logout", cookie, &[("token", &token)])
            .await;
    }

    /// Refresh tokens with which the place was asked to renew, once there are so many.
    async fn renewed(&self, count: usize) -> Vec<String> {
        let renewed = &self.0.home.corp.renewed;
        while renewed.lock().len() < count {
            tokio::task::yield_now().await;
        }
        renewed.lock().clone()
    }

    fn later(&self, ms: u64) {
        self.0.home.clock_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Refresh tokens that were given up, once there are so many.
    async fn given_up(&self, count: usize) -> Vec<String> {
        let given_up = &self.0.home.corp.given_up;
        while given_up.lock().len() < count {
            tokio::task::yield_now().await;
        }
        given_up.lock().clone()
    }
}

/// Lets all tasks that wait for nothing run to their ends.
async fn settled() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

impl Begun {
    fn of(reply: &Reply) -> Self {
        assert_eq!(reply.status, StatusCode::SEE_OTHER, "{}", reply.body);
        let address = reply.header("location").to_owned();
        let url = url::Url::parse(&address).unwrap();
        let state = url.query_pairs().find(|(name, _)| name == "state");
        Self {
            cookie: reply.cookie(),
            set_cookie: reply.header("set-cookie").to_owned(),
            state: state.unwrap().1.into_owned(),
            address,
        }
    }

    /// The path to which the place leads back with this code.
    fn on(&self, code: &str) -> String {
        format!("/console/signed-in/corp/on?{}", self.answer(code))
    }

    fn answer(&self, code: &str) -> String {
        format!(
            "code={code}&state={}&iss=https%3A%2F%2Fidp.example",
            self.state
        )
    }
}

fn is_in(reply: &Reply, who: &str) -> bool {
    reply.body.contains("Sign out") && reply.body.contains(&format!(">{who}<"))
}

#[tokio::test]
async fn a_person_signs_in_at_an_issuer_and_comes_to_its_page() {
    let site = Site::new();
    let page = site.get("/console/p/8?all=1", "").await;
    let link = "href=\"/console/sign-in?with=corp&amp;next=%2Fp%2F8%3Fall%3D1\"";
    assert!(page.body.contains(link), "{}", page.body);
    let begun = site.begin("&next=%2Fp%2F8%3Fall%3D1").await;
    assert!(begun.address.starts_with("https://idp.example/authorize?"));
    let redirect = "redirect_uri=https%3A%2F%2Fgw.example%2Fconsole%2Fsigned-in%2Fcorp&";
    assert!(begun.address.contains(redirect), "{}", begun.address);
    let set = &begun.set_cookie;
    assert!(set.starts_with("__Host-pm_console-signin-"), "{set}");
    assert!(
        set.ends_with("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"),
        "{set}"
    );
    // From another site, without the session's cookie: nothing happens yet.
    let answer = begun.answer("c-ann");
    let back = format!("/console/signed-in/corp?{answer}");
    let back = site.get_from("cross-site", &back, &begun.cookie).await;
    assert_eq!(
        (back.status, back.header("set-cookie")),
        (StatusCode::OK, "")
    );
    let on = back.header("refresh").strip_prefix("0; url=").unwrap();
    assert_eq!(on, format!("/console/signed-in/corp/on?{answer}"));
    assert!(back.body.contains("data-testid=\"on\""), "without a script");
    let entered = site.get(on, &begun.cookie).await;
    assert_eq!(
        entered.header("location"),
        "/console/entered?next=%2Fp%2F8%3Fall%3D1"
    );
    let cookies: Vec<&str> = entered
        .headers
        .get_all("set-cookie")
        .iter()
        .map(|one| one.to_str().unwrap())
        .collect();
    assert!(cookies[0].contains("__Host-pm_console=") && cookies[0].contains("SameSite=Strict"));
    let name = set.split_once('=').unwrap().0;
    let over = format!("{name}=; Path=/; Max-Age=0");
    assert!(cookies[1].starts_with(&over), "{}", cookies[1]);
    let led = site
        .get(entered.header("location"), &entered.cookie())
        .await;
    assert_eq!(led.header("location"), "/console/p/8?all=1");
    let inbox = site.get("/console", &entered.cookie()).await;
    assert!(is_in(&inbox, "ann"), "{}", inbox.body);
    assert!(!inbox.body.contains("t-ann") && !inbox.body.contains("r-1"));
    let last = site.0.home.records.lock().last().cloned().unwrap();
    assert_eq!(last.2, "signed in at the console by corp");
}

#[tokio::test]
async fn an_answer_counts_once_in_the_browser_that_began() {
    let site = Site::new();
    let begun = site.begin("").await;
    let other = site.begin("").await;
    let answer = begun.answer("c-ann");
    let foreign = answer.replace("idp.example", "evil.example");
    let not_begun = "was not begun in this browser";
    for (cookie, answer, says) in [
        ("", &answer, not_begun),
        ("__Host-pm_console-signin-0=forged", &answer, not_begun),
        // That of another sign-in: its state is another one.
        (&other.cookie, &answer, not_begun),
        (
            &begun.cookie,
            &foreign,
            "not from the authorization server that was asked",
        ),
        (&begun.cookie, &answer, not_begun),
    ] {
        let refused = site.ends(cookie, answer).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{answer}");
        assert!(refused.body.contains(says), "{answer}: {}", refused.body);
        assert!(!refused.header("set-cookie").contains("pm_console="));
    }
    // What others send to the address ends no sign-in.
    let entered = site.ends(&other.cookie, &other.answer("c-ann")).await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER, "{}", entered.body);
    let begun = site.begin("").await;
    let elsewhere = format!("/console/signed-in/portmoot/on?{}", begun.answer("c-ann"));
    assert!(
        site.get(&elsewhere, &begun.cookie)
            .await
            .body
            .contains(not_begun)
    );
    let entered = site.ends(&begun.cookie, &begun.answer("c-ann")).await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER, "{}", entered.body);
    let replayed = site.ends(&begun.cookie, &begun.answer("c-ann")).await;
    assert!(replayed.body.contains(not_begun), "{}", replayed.body);
    let late = site.begin("").await;
    site.later(600_000);
    assert!(
        site.ends(&late.cookie, &late.answer("c-ann"))
            .await
            .body
            .contains(not_begun)
    );
}

#[tokio::test]
async fn words_of_an_issuer_are_text_and_those_of_a_stranger_are_not_shown() {
    let site = Site::new();
    let begun = site.begin("").await;
    let words = format!("%3Cb%3E{}", "x".repeat(1_000));
    let answer = format!(
        "error=access_denied&error_description={words}&state={}&iss=https%3A%2F%2Fidp.example",
        begun.state
    );
    let stranger = site.ends("", &answer).await;
    assert!(!stranger.body.contains("xxx") && !stranger.body.contains("access_denied"));
    let denied = site.ends(&begun.cookie, &answer).await;
    assert_eq!(denied.status, StatusCode::FORBIDDEN);
    assert!(
        denied.body.contains("access_denied (&lt;b&gt;xxx"),
        "{}",
        denied.body
    );
    assert!(!denied.body.contains(&"x".repeat(300)));
    let records = site.0.home.records.lock().clone();
    let (who, refused, why) = records.last().unwrap();
    assert!(
        who.is_none() && *refused && why.contains("by corp") && why.len() < 600,
        "{why}"
    );
    // Any site can lead here: that is no guess of the person, and is not noted.
    for _ in 0..=CONSOLE_TRIES_PER_MINUTE {
        let stranger = site.ends("", &answer).await;
        assert_eq!(stranger.status, StatusCode::FORBIDDEN);
    }
    assert_eq!(site.0.home.records.lock().len(), records.len());
}

#[tokio::test]
async fn what_is_no_answer_of_a_place_leads_nowhere() {
    let site = Site::new();
    let back = |query: &str| format!("/console/signed-in/corp?{query}");
    for path in [
        back("a={b}"),
        back("a=\\b"),
        back(&"x".repeat(PLACE_ANSWER_BYTES_MAX + 1)),
        "/console/signed-in/evil?code=1".to_owned(),
    ] {
        let reply = site.get_from("cross-site", &path, "").await;
        assert_eq!(
            (reply.status, reply.header("refresh")),
            (StatusCode::BAD_REQUEST, ""),
            "{path}"
        );
    }
    let longest = back(&"x".repeat(PLACE_ANSWER_BYTES_MAX));
    let led = site.get_from("cross-site", &longest, "").await;
    assert_eq!(led.status, StatusCode::OK);
}

#[tokio::test]
async fn codes_that_a_place_refuses_count_as_guesses_and_its_troubles_do_not() {
    let site = Site::new();
    let busy = Trouble::Busy {
        host: "idp.example".to_owned(),
        status: 503,
        retry_after: None,
    };
    site.fails("c-busy", busy.into());
    for (code, expect) in [
        ("c-busy", StatusCode::BAD_GATEWAY),
        ("c-wrong", StatusCode::FORBIDDEN),
    ] {
        for _ in 0..CONSOLE_TRIES_PER_MINUTE {
            let begun = site.begin("").await;
            let refused = site.ends(&begun.cookie, &begun.answer(code)).await;
            assert_eq!(refused.status, expect, "{code}");
        }
    }
    let begun = site.begin("").await;
    let limited = site.ends(&begun.cookie, &begun.answer("c-wrong")).await;
    assert_eq!(limited.status, StatusCode::TOO_MANY_REQUESTS);
    // A right one passes.
    site.signed_in("c-ann").await;
}

#[tokio::test]
async fn tabs_of_a_browser_that_sign_in_at_once_do_not_disturb_each_other() {
    let site = Site::new();
    let mut cookies = String::new();
    let mut all = Vec::new();
    for _ in 0..BROWSER_SIGN_INS_MAX {
        let begun = site.begin_in(&cookies, "").await;
        let name = begun.cookie.split_once('=').unwrap().0;
        assert!(!cookies.contains(name), "{name}: {cookies}");
        cookies = format!("{cookies}; {}", begun.cookie);
        all.push(begun);
    }
    for begun in &all {
        let entered = site.ends(&cookies, &begun.answer("c-ann")).await;
        assert_eq!(entered.status, StatusCode::SEE_OTHER, "{}", entered.body);
    }
    // A further one takes the place of one of them.
    let further = site.begin_in(&cookies, "").await;
    let name = further.cookie.split_once('=').unwrap().0;
    assert!(cookies.contains(name), "{name}: {cookies}");
}

#[tokio::test]
async fn another_site_begins_no_sign_in_and_leads_nowhere() {
    let site = Site::new();
    let path = "/console/sign-in?with=corp&next=%2Faudit&anew=1";
    let page = site.get_from("cross-site", path, "").await;
    assert_eq!(
        (page.status, page.header("set-cookie")),
        (StatusCode::OK, "")
    );
    // What was wished for stays wished for.
    let link = "/console/sign-in?with=corp&amp;next=%2Faudit&amp;anew=1";
    assert!(page.body.contains(link), "{}", page.body);
    assert!(site.0.home.corp.ages.lock().is_empty());
    let unknown = site.get("/console/sign-in?with=evil", "").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    for next in [
        "%2F%2Fevil.example",
        "https%3A%2F%2Fevil.example",
        "%2F%5Cevil",
        "%2Fsign-in",
    ] {
        let begun = site.begin(&format!("&next={next}")).await;
        let entered = site.ends(&begun.cookie, &begun.answer("c-ann")).await;
        let led = site
            .get(entered.header("location"), &entered.cookie())
            .await;
        let to = led.header("location");
        assert!(
            to == "/console" || to.starts_with("/console/"),
            "{next}: {to}"
        );
    }
}

#[tokio::test]
async fn an_address_begins_so_many_sign_ins_in_a_minute() {
    let site = Site::new();
    for _ in 0..CONSOLE_SIGN_INS_PER_MINUTE {
        site.begin("").await;
    }
    let limited = site.get("/console/sign-in?with=corp", "").await;
    assert_eq!(limited.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(limited.header("set-cookie"), "");
    site.later(60_000);
    site.begin("").await;
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends_and_given_up_with_the_session() {
    let site = Site::new();
    let cookie = site.signed_in("c-ann").await;
    let renewed = || site.0.home.corp.renewed.lock().clone();
    site.get("/console", &cookie).await;
    assert!(renewed().is_empty(), "it is good for long");
    site.later(LIFETIME_MS - RENEWED_BEFORE_MS);
    site.gives_ann("r-1", "t-2", "r-2");
    let busy = site.0.home.corp.busy.lock().await;
    let (one, two) = tokio::join!(
        site.get("/console", &cookie),
        site.get("/console/past", &cookie)
    );
    assert!(is_in(&one, "ann") && is_in(&two, "ann"), "no page waits");
    assert_eq!(site.bearer(&cookie).await, "Bearer t-ann");
    drop(busy);
    assert_eq!(site.renewed(1).await, ["r-1"], "once for all");
    settled().await;
    assert_eq!(site.bearer(&cookie).await, "Bearer t-2");
    assert_eq!(renewed(), ["r-1"]);
    site.signs_out(&cookie).await;
    assert_eq!(site.given_up(1).await, ["r-2"]);
}

#[tokio::test]
async fn requests_with_a_token_that_has_ended_wait_for_one_renewal() {
    let site = Site::new();
    let cookie = site.signed_in("c-ann").await;
    site.later(LIFETIME_MS);
    site.0.home.tokens.lock().remove("t-ann");
    site.gives_ann("r-1", "t-2", "r-2");
    // Were it asked twice, it would refuse the second time, and end the session.
    let (one, two) = tokio::join!(
        site.get("/console", &cookie),
        site.get("/console/past", &cookie)
    );
    assert!(is_in(&one, "ann") && is_in(&two, "ann"));
    assert_eq!(*site.0.home.corp.renewed.lock(), ["r-1"]);
}

#[tokio::test]
async fn a_renewal_under_way_leaves_a_later_sign_in_alone() {
    let site = Site::new();
    let cookie = site.signed_in("c-ann").await;
    site.later(LIFETIME_MS - RENEWED_BEFORE_MS);
    site.gives_ann("r-1", "t-2", "r-2");
    let busy = site.0.home.corp.busy.lock().await;
    site.get("/console", &cookie).await;
    site.renewed(1).await;
    site.gives_ann("c-ann", "t-3", "r-3");
    let cookie = site.signed_in_over(&cookie, "c-ann").await;
    drop(busy);
    settled().await;
    assert_eq!(site.bearer(&cookie).await, "Bearer t-3");
    site.signs_out(&cookie).await;
    assert_eq!(site.given_up(2).await, ["r-2", "r-3"]);
}

#[tokio::test]
async fn a_refusal_of_tokens_of_before_ends_no_later_sign_in() {
    let site = Site::new();
    let cookie = site.signed_in("c-ann").await;
    site.later(LIFETIME_MS - RENEWED_BEFORE_MS);
    let busy = site.0.home.corp.busy.lock().await;
    site.get("/console", &cookie).await;
    site.renewed(1).await;
    site.gives_ann("c-ann", "t-3", "r-3");
    let cookie = site.signed_in_over(&cookie, "c-ann").await;
    drop(busy);
    settled().await;
    assert!(is_in(&site.get("/console", &cookie).await, "ann"));
}

#[tokio::test]
async fn tokens_of_a_renewal_that_outlives_its_session_are_given_up() {
    let site = Site::new();
    let cookie = site.signed_in("c-ann").await;
    site.later(LIFETIME_MS - RENEWED_BEFORE_MS);
    site.gives_ann("r-1", "t-2", "r-2");
    let busy = site.0.home.corp.busy.lock().await;
    site.signs_out(&cookie).await;
    assert_eq!(site.renewed(1).await, ["r-1"]);
    assert_eq!(site.given_up(1).await, ["r-1"]);
    drop(busy);
    assert_eq!(site.given_up(2).await, ["r-1", "r-2"]);
}

#[tokio::test]
async fn a_session_goes_on_at_its_place_as_that_is_configured_now() {
    for (issuer, goes_on) in [(ISSUER, true), ("https://other.example", false)] {
        let site = Site::new();
        let cookie = site.signed_in("c-ann").await;
        let reloaded = Arc::new(TestPlace::of(issuer));
        let expires_ms = site.0.home.now_ms() + 2 * LIFETIME_MS;
        let given = tokens("t-bob", "r-2", expires_ms);
        let given = Ok(given);
        reloaded.outcomes.lock().insert("r-1".to_owned(), given);
        *site.0.home.reloaded.lock() = Some(Arc::clone(&reloaded));
        site.later(LIFETIME_MS);
        {
            let mut tokens = site.0.home.tokens.lock();
            tokens.remove("t-ann");
            tokens.insert("t-bob".to_owned(), "ann".to_owned());
        }
        let page = site.get("/console", &cookie).await;
        assert_eq!(is_in(&page, "ann"), goes_on, "{issuer}: {}", page.body);
        assert_eq!(reloaded.renewed.lock().len(), usize::from(goes_on));
        assert!(site.0.home.corp.renewed.lock().is_empty());
    }
    let site = Site::new();
    let cookie = site.signed_in("c-ann").await;
    site.0.home.settings.lock().places.clear();
    site.later(LIFETIME_MS);
    site.0.home.tokens.lock().remove("t-ann");
    let over = site.get("/console", &cookie).await;
    assert!(over.body.contains("session has ended"), "{}", over.body);
    assert_eq!(site.given_up(1).await, ["r-1"], "at the place of before");
    let last = site.0.home.records.lock().last().cloned().unwrap();
    assert_eq!(last.2, "corp is no place to sign in any more");
}

#[tokio::test]
async fn tokens_of_sign_ins_that_were_replaced_end_with_the_session() {
    let site = Site::new();
    let mut cookie = site.signed_in("c-ann").await;
    for at in 0..=REPLACED_SIGN_INS_MAX {
        site.gives_ann("c-ann", "t-ann", &format!("again-{at}"));
        cookie = site.signed_in_over(&cookie, "c-ann").await;
    }
    // At an issuer all of them can be one grant: but so many are enough.
    assert_eq!(site.given_up(1).await, ["r-1"]);
    settled().await;
    assert_eq!(site.0.home.corp.given_up.lock().len(), 1);
    site.signs_out(&cookie).await;
    site.given_up(1 + 1 + REPLACED_SIGN_INS_MAX).await;
}

#[tokio::test(start_paused = true)]
async fn tokens_of_a_session_that_has_lapsed_are_given_up_without_a_further_request() {
    let site = Site::new();
    site.signed_in("c-ann").await;
    site.later(CONSOLE_IDLE_MS);
    settled().await;
    tokio::time::advance(Duration::from_millis(CONSOLE_SWEEP_MS)).await;
    assert_eq!(site.given_up(1).await, ["r-1"]);
}

#[tokio::test(start_paused = true)]
async fn tokens_of_sign_ins_that_lead_to_no_session_are_given_up() {
    let site = Site::new();
    // The code of the question whether he takes over her browser is not used.
    let cookie = site.signed_in("c-ann").await;
    let begun = site.begin("").await;
    let both = format!("{cookie}; {}", begun.cookie);
    let asked = site.ends(&both, &begun.answer("c-bob")).await;
    assert!(asked.body.contains("data-testid=\"instead\""));
    settled().await;
    assert!(site.0.home.corp.given_up.lock().is_empty());
    site.later(CONSOLE_CODE_MS);
    tokio::time::advance(Duration::from_millis(CONSOLE_SWEEP_MS)).await;
    assert_eq!(site.given_up(1).await, ["r-bob"]);
    // It is not known who this is.
    let begun = site.begin("").await;
    site.gives("c-eve", "t-eve", "r-eve");
    site.0.home.unsure.lock().insert("t-eve".to_owned());
    let unsure = site.ends(&begun.cookie, &begun.answer("c-eve")).await;
    assert_eq!(unsure.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(site.given_up(2).await, ["r-bob", "r-eve"]);
}

#[tokio::test]
async fn own_sessions_that_cannot_be_checked_are_listed_and_end_and_those_that_are_over_are_asked_about_once()
 {
    let site = Site::new();
    site.0
        .answers("GET /api/v1/participants", json!({ "participants": [] }));
    let unsure = site.signed_in("c-ann").await;
    site.gives_ann("c-ann", "t-over", "r-over");
    site.signed_in("c-ann").await;
    site.gives_ann("c-ann", "t-3", "r-3");
    let cookie = site.signed_in("c-ann").await;
    site.0.home.unsure.lock().insert("t-ann".to_owned());
    site.0.home.tokens.lock().remove("t-over");
    let page = site.get("/console/access", &cookie).await;
    assert_eq!(page.body.matches("data-testid=\"session\"").count(), 2);
    assert_eq!(page.body.matches("cannot be checked now").count(), 1);
    assert_eq!(site.given_up(1).await, ["r-over"]);
    let looks = || {
        let looks = site.0.home.looks.lock();
        looks.iter().filter(|token| *token == "t-over").count()
    };
    let before = looks();
    site.get("/console/access", &cookie).await;
    assert_eq!(looks(), before, "it has ended");
    let form = [("token", &*page.field("token"))];
    site.post("/console/sessions/end-others", &cookie, &form)
        .await;
    assert_eq!(site.given_up(2).await, ["r-over", "r-1"]);
    site.0.home.unsure.lock().clear();
    assert!(
        !site
            .get("/console", &unsure)
            .await
            .body
            .contains("Sign out")
    );
}

#[tokio::test]
async fn tokens_of_a_session_that_was_idle_for_long_are_given_up() {
    let site = Site::new();
    let cookie = site.signed_in("c-ann").await;
    site.later(CONSOLE_IDLE_MS);
    assert!(
        !site
            .get("/console", &cookie)
            .await
            .body
            .contains("Sign out")
    );
    assert_eq!(site.given_up(1).await, ["r-1"]);
}

#[tokio::test]
async fn a_renewal_that_is_refused_ends_the_session() {
    let site = Site::new();
    let cookie = site.signed_in("c-ann").await;
    site.later(LIFETIME_MS);
    site.0.home.tokens.lock().remove("t-ann");
    let over = site.get("/console", &cookie).await;
    assert!(over.body.contains("session has ended"), "{}", over.body);
    assert_eq!(site.given_up(1).await, ["r-1"]);
    let last = site.0.home.records.lock().last().cloned().unwrap();
    assert_eq!(
        last,
        (
            Some("ann".to_owned()),
            true,
            "corp did not renew a sign-in at the console".to_owned()
        )
    );
    assert!(
        !site
            .get("/console", &cookie)
            .await
            .body
            .contains("Sign out")
    );
}

#[tokio::test]
async fn an_issuer_that_does_not_answer_ends_no_session() {
    let site = Site::new();
    let cookie = site.signed_in("c-ann").await;
    let busy = Trouble::Busy {
        host: "idp.example".to_owned(),
        status: 503,
        retry_after: None,
    };
    site.fails("r-1", busy.into());
    site.later(LIFETIME_MS - 1);
    assert!(
        is_in(&site.get("/console", &cookie).await, "ann"),
        "the token serves still"
    );
    site.renewed(1).await;
    // It is not asked again at once.
    site.get("/console", &cookie).await;
    settled().await;
    assert_eq!(site.0.home.corp.renewed.lock().len(), 1);
    site.later(REST_MS);
    site.0.home.tokens.lock().remove("t-ann");
    let unsure = site.get("/console", &cookie).await;
    assert_eq!(unsure.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(unsure.body.contains("does not answer"), "{}", unsure.body);
    site.gives_ann("r-1", "t-2", "r-2");
    site.later(REST_MS);
    assert!(is_in(&site.get("/console", &cookie).await, "ann"));
    // One whose issuer cannot say whether its token is good.
    site.0.home.is_asked.store(false, Ordering::Relaxed);
    let unsure = site.get("/console", &cookie).await;
    assert_eq!(unsure.status, StatusCode::SERVICE_UNAVAILABLE);
    site.0.home.is_asked.store(true, Ordering::Relaxed);
    assert!(is_in(&site.get("/console", &cookie).await, "ann"));
}

#[tokio::test]
async fn a_participant_that_is_revoked_or_another_one_has_no_session() {
    let site = Site::new();
    for (access, expect) in [("t-3", None), ("t-bob", Some("bob"))] {
        site.0
            .home
            .tokens
            .lock()
            .insert("t-ann".to_owned(), "ann".to_owned());
        let cookie = site.signed_in("c-ann").await;
        site.0.home.tokens.lock().remove("t-ann");
        // The issuer still renews.
        site.gives("r-1", access, "r-2");
        let over = site.get("/console", &cookie).await;
        assert!(
            over.body.contains("session has ended"),
            "{expect:?}: {}",
            over.body
        );
        assert!(
            !site
                .get("/console", &cookie)
                .await
                .body
                .contains("Sign out")
        );
    }
}

#[tokio::test]
async fn a_person_without_a_place_here_learns_why() {
    let site = Site::new();
    site.gives("c-eve", "t-eve", "r-eve");
    let begun = site.begin("").await;
    let refused = site.ends(&begun.cookie, &begun.answer("c-eve")).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(
        refused.body.contains("`eve` has no place here"),
        "{}",
        refused.body
    );
    assert_eq!(site.given_up(1).await, ["r-eve"]);
}

#[tokio::test]
async fn who_is_asked_again_signs_in_anew_and_goes_on_in_the_first_tab() {
    let site = Site::new();
    let cookie = site.signed_in("c-ann").await;
    site.0
        .answers("POST /api/v1/participants/scout/grants", json!({}));
    site.0
        .answers("GET /api/v1/participants", json!({ "participants": [] }));
    site.0.answers(
        "DELETE /api/v1/participants/scout/grants",
        serde_json::Value::Null,
    );
    let token = site.get("/console", &cookie).await.field("token");
    site.later(PROOF_MS);
    site.gives("r-1", "t-ann", "r-2");
    let form = [("token", &*token), ("confirmed", "1")];
    let act = "/console/access/scout/undo";
    let asked = site.post(act, &cookie, &form).await;
    let link = "/console/sign-in?with=corp&amp;next=%2Fproved&amp;anew=1\" target=\"_blank\" rel=\"noopener\"";
    assert!(asked.body.contains(link), "{}", asked.body);
    let not_yet = site.get("/console/proved", &cookie).await;
    assert!(not_yet.body.contains("data-enter") && !not_yet.body.contains("It is you"));
    let begun = site.begin("&next=%2Fproved&anew=1").await;
    assert_eq!(site.0.home.corp.ages.lock().last(), Some(&0));
    let both = format!("{cookie}; {}", begun.cookie);
    site.gives("c-ann", "t-ann", "r-3");
    // The place says when it asked: then.
    site.asked("c-ann", Asked::At(site.0.home.now_ms()));
    let entered = site.ends(&both, &begun.answer("c-ann")).await;
    assert_eq!(
        entered.header("location"),
        "/console/entered?next=%2Fproved"
    );
    let proved = site.get("/console/proved", &entered.cookie()).await;
    assert!(proved.body.contains("It is you"), "{}", proved.body);
    assert!(site.0.acts.lock().is_empty());
    site.post(act, &entered.cookie(), &form).await;
    assert_eq!(site.0.acts.lock().len(), 1);
    // At an issuer those of before and those of now can be one grant: they end together.
    settled().await;
    assert!(site.0.home.corp.given_up.lock().is_empty());
    site.signs_out(&entered.cookie()).await;
    assert_eq!(site.given_up(2).await, ["r-1", "r-3"]);
}

#[tokio::test]
async fn a_sign_in_proves_no_more_than_its_issuer_knows() {
    for (asked, is_proof) in [
        (Asked::At(u64::MAX), true),
        (Asked::Unknown, false),
        (Asked::At(5), false),
    ] {
        let site = Site::new();
        site.asked("c-ann", asked);
        let cookie = site.signed_in("c-ann").await;
        let proved = site.get("/console/proved", &cookie).await;
        assert_eq!(proved.body.contains("It is you"), is_proof, "{asked:?}");
    }
    // Addresses of the gateway's network are for operators.
    let site = Site::new();
    let trouble = Trouble::Metadata("`10.0.0.7` is no place".to_owned());
    site.fails("c-ann", trouble.into());
    let begun = site.begin("").await;
    let refused = site.ends(&begun.cookie, &begun.answer("c-ann")).await;
    assert_eq!(refused.status, StatusCode::BAD_GATEWAY);
    assert!(!refused.body.contains("10.0.0.7") && refused.body.contains("cannot be asked now"));
    let site = Site::new();
    site.fails("c-ann", PersonError::NoTime);
    let begun = site.begin("&anew=1").await;
    let refused = site.ends(&begun.cookie, &begun.answer("c-ann")).await;
    let says = "does not say when it asked who you are";
    assert!(refused.body.contains(says), "{}", refused.body);
}

#[tokio::test]
async fn another_participant_of_an_issuer_takes_over_no_browser_without_a_word() {
    let site = Site::new();
    let cookie = site.signed_in("c-ann").await;
    let begun = site.begin("&next=%2Faudit").await;
    let both = format!("{cookie}; {}", begun.cookie);
    let asked = site.ends(&both, &begun.answer("c-bob")).await;
    assert_eq!(asked.status, StatusCode::OK);
    assert!(
        asked.body.contains("data-testid=\"instead\""),
        "{}",
        asked.body
    );
    assert!(
        is_in(&site.get("/console", &cookie).await, "ann"),
        "she stays who she is"
    );
    let form = [
        ("code", &*asked.field("code")),
        ("instead", "1"),
        ("next", "/audit"),
    ];
    let entered = site.post("/console/login", &cookie, &form).await;
    assert_eq!(entered.header("location"), "/console/entered?next=%2Faudit");
    assert_eq!(site.given_up(1).await, ["r-1"], "her session has ended");
    // His goes on when his token ends.
    site.later(LIFETIME_MS);
    site.gives("r-bob", "t-bob", "r-2");
    assert!(is_in(&site.get("/console", &entered.cookie()).await, "bob"));
}

#[tokio::test]
async fn on_plain_loopback_a_person_is_led_to_its_own_name_with_its_tokens() {
    let site = Site::new();
    let public = "http://127.0.0.1:7070";
    site.0.home.settings.lock().public_url = Some(PublicUrl::parse(public).unwrap());
    // From its own name the way leads over the public one, to which the issuer leads back.
    let page = site.0.get("/console/p/8", "").await;
    let link = format!("href=\"{public}/console/sign-in?with=corp&amp;next=%2Fp%2F8\"");
    assert!(page.body.contains(&link), "{}", page.body);
    let at_public = async |path: &str, cookie: &str| {
        let request = Request::builder()
            .uri(path)
            .header("host", "127.0.0.1:7070");
        let request = request
            .header("cookie", cookie)
            .header("sec-fetch-site", "same-origin");
        site.0.send(request.body(Body::empty()).unwrap()).await
    };
    let begun = at_public("/console/sign-in?with=corp&next=%2Fp%2F8", "").await;
    let begun = Begun::of(&begun);
    let led = at_public(&begun.on("c-ann"), &begun.cookie).await;
    assert!(!led.header("set-cookie").contains("pm_console="));
    let to = led.header("refresh").strip_prefix("0; url=").unwrap();
    let (page, code) = to.split_once('#').unwrap();
    assert_eq!(page, format!("{}/console/p/8", site.0.origin("ann")));
    let entered = site.0.post("/console/login", "", &[("code", code)]).await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER, "{}", entered.body);
    site.later(LIFETIME_MS);
    site.gives("r-1", "t-ann", "r-2");
    let inbox = site.0.get("/console", &entered.cookie()).await;
    assert!(is_in(&inbox, "ann"), "{}", inbox.body);
    assert_eq!(site.renewed(1).await, ["r-1"]);
    settled().await;
    // Without a script the code of a further sign-in is typed as the proof; its tokens are used from then on.
    site.0
        .answers("GET /api/v1/participants", json!({ "participants": [] }));
    let undo = "/api/v1/participants/scout/grants";
    site.0
        .answers(&format!("DELETE {undo}"), serde_json::Value::Null);
    site.later(PROOF_MS - LIFETIME_MS);
    site.gives("c-ann", "t-ann", "r-3");
    site.asked("c-ann", Asked::At(site.0.home.now_ms()));
    let begun = at_public("/console/sign-in?with=corp&next=%2Fproved&anew=1", "").await;
    let begun = Begun::of(&begun);
    let led = at_public(&begun.on("c-ann"), &begun.cookie).await;
    let code = led.header("refresh").split_once('#').unwrap().1.to_owned();
    let token = inbox.field("token");
    let form = [("token", &*token), ("confirmed", "1"), ("proof", &*code)];
    let act = "/console/access/scout/undo";
    site.0.post(act, &entered.cookie(), &form).await;
    assert_eq!(site.0.acts.lock().len(), 1);
    site.later(LIFETIME_MS);
    site.gives("r-3", "t-ann", "r-4");
    assert!(is_in(
        &site.0.get("/console", &entered.cookie()).await,
        "ann"
    ));
    assert_eq!(site.renewed(2).await, ["r-1", "r-3"]);
}

#[tokio::test]
async fn no_issuer_is_asked_about_a_code_that_was_used() {
    let stage = Stage::new(vec![]);
    let code = stage
        .codes
        .issue("ann", Some("t-ann"), stage.home.now_ms())
        .unwrap();
    stage.post("/console/login", "", &[("code", &code)]).await;
    stage.post("/console/login", "", &[("code", &code)]).await;
    assert!(!stage.home.looks.lock().contains(&code));
    stage
        .post("/console/login", "", &[("code", "an-opaque-token")])
        .await;
    assert!(
        stage
            .home
            .looks
            .lock()
            .contains(&"an-opaque-token".to_owned())
    );
}

/// An API that has forgotten what it knew of tokens, so many times.
fn forgetful(times: usize) -> (Router, Arc<AtomicUsize>) {
    let left = Arc::new(AtomicUsize::new(times));
    let counted = Arc::clone(&left);
    let api = Router::new().fallback(move || async move {
        let forgets = counted
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .is_ok();
        if forgets {
            let why = json!({ "message": "this token is not valid" });
            return (StatusCode::UNAUTHORIZED, axum::Json(why));
        }
        let empty = json!({ "proposals": [], "next": null });
        (StatusCode::OK, axum::Json(empty))
    });
    (api, left)
}

#[tokio::test]
async fn a_session_outlives_what_the_gateway_knew_of_its_token_when_a_request_began() {
    for (times, goes_on) in [(1, true), (100, false)] {
        let mut stage = Stage::new(vec![]);
        let (api, left) = forgetful(times);
        stage.router = router(
            Arc::clone(&stage.home) as Arc<dyn ConsoleHome>,
            api,
            Arc::clone(&stage.codes),
        );
        let cookie = stage.sign_in("ann").await;
        let page = stage.get("/console", &cookie).await;
        assert_eq!(is_in(&page, "ann"), goes_on, "{}", page.body);
        assert_eq!(left.load(Ordering::Relaxed) == 0, goes_on);
    }
}
