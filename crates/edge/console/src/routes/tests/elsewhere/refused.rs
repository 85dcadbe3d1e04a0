//! Refusals: answers, codes and requests that lead to no session.

use axum::http::StatusCode;

use super::site::{Site, busy};
use crate::elsewhere::{CONSOLE_SIGN_INS_PER_MINUTE, PLACE_ANSWER_BYTES_MAX};
use crate::home::ConsoleHome as _;
use crate::routes::tests_support::Stage;
use crate::sign_in::CONSOLE_TRIES_PER_MINUTE;

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
    site.fails("c-busy", busy());
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
