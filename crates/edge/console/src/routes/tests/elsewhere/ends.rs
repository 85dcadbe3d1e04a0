//! Ends of sessions and of sign-ins that lead to none: their tokens are given up.

use std::time::Duration;

use api::CONSOLE_CODE_MS;
use axum::http::StatusCode;
use serde_json::json;

use super::site::{Site, settled};
use crate::keep::CONSOLE_SWEEP_MS;
use crate::session::{CONSOLE_IDLE_MS, REPLACED_SIGN_INS_MAX};

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
    assert!(site.is_out(&unsure).await);
}

#[tokio::test]
async fn tokens_of_a_session_that_was_idle_for_long_are_given_up() {
    let site = Site::new();
    let cookie = site.signed_in("c-ann").await;
    site.later(CONSOLE_IDLE_MS);
    assert!(site.is_out(&cookie).await);
    assert_eq!(site.given_up(1).await, ["r-1"]);
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
        assert!(site.is_out(&cookie).await);
    }
}
