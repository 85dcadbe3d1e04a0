//! The gateway of these tests, and the sign-ins that its browsers begin.

use std::sync::atomic::Ordering;

use auth::PublicUrl;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use oauth::Trouble;
use oauth::person::{Asked, PersonError};
use serde_json::json;

use crate::account::RENEWED_BEFORE_MS;
use crate::home::{ConsoleHome as _, PlaceName};
use crate::routes::tests_support::{Reply, Stage, proposal, tokens};

/// Time for which tokens of the test's place are good, in milliseconds.
pub(super) const LIFETIME_MS: u64 = 600_000;
const ORIGIN: &str = "https://gw.example";

/// A gateway behind TLS, at which people sign in by `corp`.
pub(super) struct Site(pub(super) Stage);

/// A sign-in that a browser has begun.
pub(super) struct Begun {
    pub(super) cookie: String,
    pub(super) state: String,
    pub(super) set_cookie: String,
    pub(super) address: String,
}

impl Site {
    pub(super) fn new() -> Self {
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
    pub(super) fn gives(&self, by: &str, access: &str, refresh: &str) {
        let expires_ms = self.0.home.now_ms() + LIFETIME_MS;
        let given = tokens(access, refresh, expires_ms);
        let outcomes = &self.0.home.corp.outcomes;
        outcomes.lock().insert(by.to_owned(), Ok(given));
    }

    /// Has the place answer a code or a refresh token of ann with tokens that the gateway knows.
    pub(super) fn gives_ann(&self, by: &str, access: &str, refresh: &str) {
        self.gives(by, access, refresh);
        let tokens = &self.0.home.tokens;
        tokens.lock().insert(access.to_owned(), "ann".to_owned());
    }

    /// Has the place say when it asked who the person of this code is.
    pub(super) fn asked(&self, code: &str, asked: Asked) {
        let outcomes = &self.0.home.corp.outcomes;
        if let Some(Ok(given)) = outcomes.lock().get_mut(code) {
            given.asked = asked;
        }
    }

    pub(super) fn fails(&self, by: &str, error: PersonError) {
        let outcomes = &self.0.home.corp.outcomes;
        outcomes.lock().insert(by.to_owned(), Err(error));
    }

    pub(super) async fn get_from(&self, site: &str, path: &str, cookie: &str) -> Reply {
        let request = Request::builder()
            .uri(path)
            .header("host", "gw.example")
            .header("cookie", cookie)
            .header("sec-fetch-site", site);
        self.0.send(request.body(Body::empty()).unwrap()).await
    }

    pub(super) async fn get(&self, path: &str, cookie: &str) -> Reply {
        self.get_from("same-origin", path, cookie).await
    }

    pub(super) async fn post(&self, path: &str, cookie: &str, form: &[(&str, &str)]) -> Reply {
        let headers = [("host", "gw.example"), ("origin", ORIGIN)];
        self.0.post_from(path, cookie, form, &headers).await
    }

    pub(super) async fn begin(&self, more: &str) -> Begun {
        self.begin_in("", more).await
    }

    /// Begins a sign-in in a browser with these cookies.
    pub(super) async fn begin_in(&self, cookies: &str, more: &str) -> Begun {
        let path = format!("/console/sign-in?with=corp{more}");
        Begun::of(&self.get(&path, cookies).await)
    }

    /// The end of a sign-in with this answer, in a browser with these cookies.
    pub(super) async fn ends(&self, cookies: &str, answer: &str) -> Reply {
        let path = format!("/console/signed-in/corp/on?{answer}");
        self.get(&path, cookies).await
    }

    /// Signs in with this code of the place; returns the cookie of the session.
    pub(super) async fn signed_in(&self, code: &str) -> String {
        self.signed_in_over("", code).await
    }

    /// Signs in with this code, in a browser that has this session already; returns the cookie of
    /// the new session.
    pub(super) async fn signed_in_over(&self, session: &str, code: &str) -> String {
        let begun = self.begin("").await;
        let cookies = format!("{session}; {}", begun.cookie);
        let reply = self.ends(&cookies, &begun.answer(code)).await;
        assert_eq!(reply.status, StatusCode::SEE_OTHER, "{}", reply.body);
        reply.cookie()
    }

    /// Signs ann in, and lets time pass until her tokens are to be renewed; returns the cookie of the
    /// session.
    pub(super) async fn due(&self) -> String {
        let cookie = self.signed_in("c-ann").await;
        self.later(LIFETIME_MS - RENEWED_BEFORE_MS);
        cookie
    }

    /// Signs ann in again while the tokens of this session are renewed, and gets `t-3` and `r-3` for
    /// her; returns the cookie of the new session.
    pub(super) async fn signed_in_while_renewed(&self, cookie: &str) -> String {
        let busy = self.0.home.corp.busy.lock().await;
        self.get("/console", cookie).await;
        self.renewed(1).await;
        self.gives_ann("c-ann", "t-3", "r-3");
        let cookie = self.signed_in_over(cookie, "c-ann").await;
        drop(busy);
        settled().await;
        cookie
    }

    /// Lets time pass until the token that ann signed in with is good no more.
    pub(super) fn expires(&self) {
        self.later(LIFETIME_MS);
        self.0.home.tokens.lock().remove("t-ann");
    }

    /// Whether the console knows no one by this cookie.
    pub(super) async fn is_out(&self, cookie: &str) -> bool {
        !self.get("/console", cookie).await.body.contains("Sign out")
    }

    /// The token that the API gets for this session.
    pub(super) async fn bearer(&self, cookie: &str) -> String {
        let token = self.get("/console", cookie).await.field("token");
        let form = [("token", &*token), ("reason", "unclear")];
        self.post("/console/p/8/reject", cookie, &form).await;
        self.0.acts.lock().last().unwrap().1.clone()
    }

    pub(super) async fn signs_out(&self, cookie: &str) {
        let token = self.get("/console", cookie).await.field("token");
        self.post("/console/logout", cookie, &[("token", &token)])
            .await;
    }

    /// Refresh tokens with which the place was asked to renew, once there are so many.
    pub(super) async fn renewed(&self, count: usize) -> Vec<String> {
        let renewed = &self.0.home.corp.renewed;
        while renewed.lock().len() < count {
            tokio::task::yield_now().await;
        }
        renewed.lock().clone()
    }

    pub(super) fn later(&self, ms: u64) {
        self.0.home.clock_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Refresh tokens that were given up, once there are so many.
    pub(super) async fn given_up(&self, count: usize) -> Vec<String> {
        let given_up = &self.0.home.corp.given_up;
        while given_up.lock().len() < count {
            tokio::task::yield_now().await;
        }
        given_up.lock().clone()
    }
}

/// An issuer that has no time to answer.
pub(super) fn busy() -> PersonError {
    let trouble = Trouble::Busy {
        host: "idp.example".to_owned(),
        status: 503,
        retry_after: None,
    };
    trouble.into()
}

/// Lets all tasks that wait for nothing run to their ends.
pub(super) async fn settled() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

impl Begun {
    pub(super) fn of(reply: &Reply) -> Self {
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
    pub(super) fn on(&self, code: &str) -> String {
        format!("/console/signed-in/corp/on?{}", self.answer(code))
    }

    pub(super) fn answer(&self, code: &str) -> String {
        format!(
            "code={code}&state={}&iss=https%3A%2F%2Fidp.example",
            self.state
        )
    }
}

pub(super) fn is_in(reply: &Reply, who: &str) -> bool {
    reply.body.contains("Sign out") && reply.body.contains(&format!(">{who}<"))
}
