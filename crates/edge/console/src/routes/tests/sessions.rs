//! Tests of the sessions of a participant at the console.

use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use serde_json::json;

use crate::routes::tests_support::{PROOF_MS, Stage};

fn stage() -> Stage {
    let stage = Stage::new(vec![]);
    stage.answers("GET /api/v1/participants", json!({ "participants": [] }));
    stage
}

async fn is_in(stage: &Stage, cookie: &str) -> bool {
    stage
        .get("/console", cookie)
        .await
        .body
        .contains("Sign out")
}

#[tokio::test]
async fn own_sessions_are_listed_and_ended_one_by_one_and_all_others() {
    let stage = stage();
    let first = stage.sign_in("ann").await;
    stage.home.clock_ms.fetch_add(60_000, Ordering::Relaxed);
    let second = stage.sign_in("ann").await;
    let third = stage.sign_in("ann").await;
    let of_bob = stage.sign_in("bob").await;
    let page = stage.get("/console/access", &third).await;
    assert_eq!(page.body.matches("data-testid=\"session\"").count(), 3);
    assert_eq!(page.body.matches("this one").count(), 1, "{}", page.body);
    assert!(page.body.contains("127.0.0.1"), "{}", page.body);
    let token = page.field("token");
    // The oldest stands last.
    let label = page
        .body
        .rsplit_once("name=\"session\" value=\"")
        .unwrap()
        .1;
    let label = label.split('"').next().unwrap();
    let form = [("token", &*token), ("session", label)];
    let ended = stage.post("/console/sessions/end", &third, &form).await;
    assert!(
        ended.body.contains("That session has ended"),
        "{}",
        ended.body
    );
    assert!(!is_in(&stage, &first).await);
    assert_eq!(
        stage.get("/console/feed", &first).await.status,
        StatusCode::UNAUTHORIZED
    );
    assert!(is_in(&stage, &second).await && is_in(&stage, &third).await);
    let again = stage.post("/console/sessions/end", &third, &form).await;
    assert!(again.body.contains("No such session"), "{}", again.body);
    let form = [("token", &*token)];
    stage
        .post("/console/sessions/end-others", &third, &form)
        .await;
    assert!(!is_in(&stage, &second).await && is_in(&stage, &third).await);
    let request = axum::http::Request::builder()
        .uri("/console")
        .header("host", stage.host("bob"));
    let request = request
        .header("cookie", of_bob)
        .body(axum::body::Body::empty());
    assert!(
        stage.send(request.unwrap()).await.body.contains("Sign out"),
        "bob stays"
    );
    let ended = stage.home.records.lock().clone().into_iter();
    let ended = ended.filter(|(_, _, why)| why.contains("ended another session"));
    assert_eq!(ended.count(), 2);
}

#[tokio::test]
async fn no_session_of_another_participant_is_listed_or_ended() {
    let stage = stage();
    let cookie = stage.sign_in("ann").await;
    let page = stage.get("/console/access", &cookie).await;
    let of_bob = stage.sign_in("bob").await;
    stage.answers("GET /api/v1/participants", json!({ "participants": [] }));
    let request = axum::http::Request::builder()
        .uri("/console/access")
        .header("host", stage.host("bob"));
    let request = request
        .header("cookie", &of_bob)
        .body(axum::body::Body::empty());
    let seen = stage.send(request.unwrap()).await;
    assert_eq!(seen.body.matches("data-testid=\"session\"").count(), 1);
    stage.sign_in("ann").await;
    let listed = stage.get("/console/access", &cookie).await.body;
    let label = listed.split_once("name=\"session\" value=\"").unwrap().1;
    let label = label.split('"').next().unwrap();
    let form = [("token", &*seen.field("token")), ("session", label)];
    let refused = stage
        .post_as("bob", "/console/sessions/end", &of_bob, &form)
        .await;
    assert!(refused.body.contains("No such session"), "{}", refused.body);
    // A form of another session counts for nothing, and no form at all neither.
    for token in [&*seen.field("token"), ""] {
        let form = [("token", token)];
        let refused = stage
            .post("/console/sessions/end-others", &cookie, &form)
            .await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
    }
    let after = stage.get("/console/access", &cookie).await.body;
    assert_eq!(after.matches("data-testid=\"session\"").count(), 2);
    assert!(is_in(&stage, &cookie).await, "{}", page.body);
}

#[tokio::test]
async fn the_next_bearer_of_a_name_sees_no_session_of_the_former_one() {
    let stage = stage();
    stage.sign_in("ann").await;
    {
        let mut tokens = stage.home.tokens.lock();
        tokens.remove("t-ann");
        tokens.insert("t-next".to_owned(), "ann".to_owned());
    }
    let entered = stage
        .post("/console/login", "", &[("code", "t-next")])
        .await;
    let looks = || {
        let looks = stage.home.looks.lock();
        looks.iter().filter(|token| *token == "t-ann").count()
    };
    let before = looks();
    for _ in 0..2 {
        let page = stage.get("/console/access", &entered.cookie()).await.body;
        assert_eq!(page.matches("data-testid=\"session\"").count(), 1, "{page}");
    }
    assert_eq!(looks(), before + 1, "it has ended with the first look");
}

#[tokio::test]
async fn sessions_end_without_a_further_proof() {
    let stage = stage();
    let (cookie, token) = stage.ann().await;
    let other = stage.sign_in("ann").await;
    stage.home.clock_ms.fetch_add(PROOF_MS, Ordering::Relaxed);
    let form = [("token", &*token)];
    stage
        .post("/console/sessions/end-others", &cookie, &form)
        .await;
    assert!(!is_in(&stage, &other).await);
}
