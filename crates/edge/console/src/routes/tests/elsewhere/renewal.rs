//! Renewals of the tokens of a session, and sessions that go on or end with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use serde_json::json;

use super::site::{LIFETIME_MS, Site, busy, is_in, settled};
use crate::account::{RENEWED_BEFORE_MS, REST_MS};
use crate::home::ConsoleHome;
use crate::routes::router;
use crate::routes::tests_support::{ISSUER, Stage, TestPlace, tokens};

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
    site.expires();
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
    let cookie = site.due().await;
    site.gives_ann("r-1", "t-2", "r-2");
    let cookie = site.signed_in_while_renewed(&cookie).await;
    assert_eq!(site.bearer(&cookie).await, "Bearer t-3");
    site.signs_out(&cookie).await;
    assert_eq!(site.given_up(2).await, ["r-2", "r-3"]);
}

#[tokio::test]
async fn a_refusal_of_tokens_of_before_ends_no_later_sign_in() {
    let site = Site::new();
    let cookie = site.due().await;
    let cookie = site.signed_in_while_renewed(&cookie).await;
    assert!(is_in(&site.get("/console", &cookie).await, "ann"));
}

#[tokio::test]
async fn tokens_of_a_renewal_that_outlives_its_session_are_given_up() {
    let site = Site::new();
    let cookie = site.due().await;
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
    site.expires();
    let over = site.get("/console", &cookie).await;
    assert!(over.body.contains("session has ended"), "{}", over.body);
    assert_eq!(site.given_up(1).await, ["r-1"], "at the place of before");
    let last = site.0.home.records.lock().last().cloned().unwrap();
    assert_eq!(last.2, "corp is no place to sign in any more");
}

#[tokio::test]
async fn a_renewal_that_is_refused_ends_the_session() {
    let site = Site::new();
    let cookie = site.signed_in("c-ann").await;
    site.expires();
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
    assert!(site.is_out(&cookie).await);
}

#[tokio::test]
async fn an_issuer_that_does_not_answer_ends_no_session() {
    let site = Site::new();
    let cookie = site.signed_in("c-ann").await;
    site.fails("r-1", busy());
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
