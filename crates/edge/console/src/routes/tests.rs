//! Tests of the console's handlers: signing in, forms, decisions.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use platform::unix_ms;
use serde_json::json;

use super::tests_support::{OWN, Stage, proposal};
use crate::arguments::LONG_TEXT_CHARS;
use crate::sign_in::CONSOLE_TRIES_PER_MINUTE;

#[tokio::test]
async fn a_browser_signs_in_with_a_code_or_a_token_once() {
    let stage = Stage::new(vec![]);
    let page = stage.get("/console", "").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.body.contains("portmoot console") && !page.body.contains("Sign out"));
    let code = stage.codes.issue("ann", Some("t-ann"), unix_ms()).unwrap();
    let entered = stage.post("/console/login", "", &[("code", &code)]).await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER);
    assert_eq!(entered.header("location"), "/console");
    let set = entered.header("set-cookie");
    assert!(
        set.starts_with("__Host-pm_console=") && set.contains("SameSite=Strict"),
        "{set}"
    );
    let inbox = stage.get("/console", &entered.cookie()).await;
    assert!(inbox.body.contains("Nothing waits for you") && inbox.body.contains(">ann<"));
    let again = stage.post("/console/login", "", &[("code", &code)]).await;
    assert_eq!(again.status, StatusCode::FORBIDDEN, "a code is good once");
    stage.sign_in("t-bob").await;
    let records = stage.home.records.lock().clone();
    let refused: Vec<_> = records.iter().filter(|(_, refused, _)| *refused).collect();
    assert_eq!((records.len(), refused.len()), (3, 1), "{records:?}");
}

#[tokio::test]
async fn a_page_that_was_wanted_comes_after_the_sign_in() {
    let stage = Stage::new(vec![]);
    let page = stage.get("/console/p/7?all=1", "").await;
    assert_eq!(page.field("next"), "/p/7?all=1");
    let form = [("code", "t-ann"), ("next", "/p/7?all=1")];
    let entered = stage.post("/console/login", "", &form).await;
    assert_eq!(entered.header("location"), "/console/p/7?all=1");
    let form = [("code", "t-ann"), ("next", "//evil.example")];
    let entered = stage.post("/console/login", "", &form).await;
    assert!(entered.header("location").starts_with("/console"));
}

#[tokio::test]
async fn wrong_codes_are_limited_and_recorded() {
    let stage = Stage::new(vec![]);
    for _ in 0..CONSOLE_TRIES_PER_MINUTE {
        let wrong = stage.post("/console/login", "", &[("code", "wrong")]).await;
        assert_eq!(wrong.status, StatusCode::FORBIDDEN);
    }
    let limited = stage.post("/console/login", "", &[("code", "t-ann")]).await;
    assert_eq!(limited.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(limited.body.contains("Too many tries"));
    assert_eq!(
        stage.home.records.lock().len(),
        CONSOLE_TRIES_PER_MINUTE as usize
    );
}

#[tokio::test]
async fn without_participants_the_local_user_opens_it() {
    let stage = Stage::new(vec![]);
    let form = [("local", "1")];
    let refused = stage.post("/console/login", "", &form).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    stage.home.settings.lock().needs_token = false;
    stage
        .home
        .tokens
        .lock()
        .insert(String::new(), "local".to_owned());
    assert!(
        stage
            .get("/console", "")
            .await
            .body
            .contains("Open the console")
    );
    let entered = stage.post("/console/login", "", &form).await;
    let page = stage.get("/console", &entered.cookie()).await;
    assert!(page.body.contains(">local<"), "{}", page.body);
    // Once there are participants, no token is none.
    stage.home.tokens.lock().remove("");
    let page = stage.get("/console", &entered.cookie()).await;
    assert!(page.body.contains("session has ended"));
}

#[tokio::test]
async fn a_revoked_token_ends_its_sessions_and_so_does_its_next_bearer() {
    let stage = Stage::new(vec![]);
    let cookie = stage.sign_in("t-ann").await;
    stage.home.tokens.lock().remove("t-ann");
    let page = stage.get("/console", &cookie).await;
    assert!(page.body.contains("session has ended") && !page.body.contains("Sign out"));
    stage
        .home
        .tokens
        .lock()
        .insert("t-ann".to_owned(), "ann".to_owned());
    let page = stage.get("/console", &cookie).await;
    assert!(!page.body.contains("Sign out"), "it does not come back");
    let cookie = stage.sign_in("t-ann").await;
    stage
        .home
        .tokens
        .lock()
        .insert("t-ann".to_owned(), "eve".to_owned());
    assert!(
        !stage
            .get("/console", &cookie)
            .await
            .body
            .contains("Sign out")
    );
}

#[tokio::test]
async fn signing_out_ends_the_session_for_all_pages() {
    let stage = Stage::new(vec![]);
    let (cookie, token) = stage.ann().await;
    let left = stage
        .post("/console/logout", &cookie, &[("token", &token)])
        .await;
    assert_eq!(left.header("location"), "/console");
    assert!(left.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(left.header("clear-site-data"), "\"cache\"");
    assert!(
        !stage
            .get("/console", &cookie)
            .await
            .body
            .contains("Sign out")
    );
    assert_eq!(
        stage.get("/console/feed", &cookie).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn only_own_pages_send_forms() {
    let stage = Stage::new(vec![proposal("7", &json!({}))]);
    let (cookie, token) = stage.ann().await;
    let evil = "http://127.0.0.1:7070";
    for (headers, token, may) in [
        (vec![("origin", OWN)], &*token, true),
        (vec![("sec-fetch-site", "same-origin")], &*token, true),
        (vec![("origin", OWN)], "", false),
        (vec![("origin", OWN)], "forged", false),
        (vec![], &*token, false),
        (vec![("origin", "null")], &*token, false),
        (vec![("origin", evil)], &*token, false),
        (
            vec![("origin", "http://portmoot.localhost:7071")],
            &*token,
            false,
        ),
        (
            vec![("origin", OWN), ("sec-fetch-site", "same-site")],
            &*token,
            false,
        ),
        (vec![("sec-fetch-site", "cross-site")], &*token, false),
    ] {
        let before = stage.acts.lock().len();
        let form = [("token", token)];
        let reply = stage
            .post_from("/console/p/7/claim", &cookie, &form, &headers)
            .await;
        assert_eq!(stage.acts.lock().len() > before, may, "{headers:?} {token}");
        assert_eq!(reply.status == StatusCode::FORBIDDEN, !may, "{headers:?}");
        let login = stage
            .post_from("/console/login", "", &[("code", "t-bob")], &headers)
            .await;
        let is_own = token.is_empty() || token == "forged" || may;
        assert_eq!(login.status == StatusCode::SEE_OTHER, is_own, "{headers:?}");
    }
    // Another session's token is none.
    let other = stage.sign_in("t-bob").await;
    let reply = stage
        .post("/console/p/7/claim", &other, &[("token", &token)])
        .await;
    assert_eq!(reply.status, StatusCode::FORBIDDEN);
    // Nothing changes by GET.
    let before = stage.acts.lock().len();
    stage
        .get(&format!("/console/p/7/claim?token={token}"), &cookie)
        .await;
    assert_eq!(stage.acts.lock().len(), before);
}

#[tokio::test]
async fn an_approval_is_confirmed_and_names_the_digest_that_was_shown() {
    let stage = Stage::new(vec![proposal("7", &json!({}))]);
    let (cookie, token) = stage.ann().await;
    let form = |more: &[(&'static str, &'static str)]| {
        let mut form = vec![("token".to_owned(), token.clone())];
        form.extend(
            more.iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        form
    };
    let send = async |fields: Vec<(String, String)>| {
        let fields: Vec<(&str, &str)> = fields.iter().map(|(a, b)| (&**a, &**b)).collect();
        stage.post("/console/p/7/approve", &cookie, &fields).await
    };
    let asked = send(form(&[("digest", "d-7")])).await;
    assert!(
        asked.body.contains("data-testid=\"confirmation\""),
        "{}",
        asked.body
    );
    let stale = send(form(&[("digest", "d-6"), ("confirmed", "1")])).await;
    assert!(stale.body.contains("has changed since you looked"));
    assert!(stage.acts.lock().is_empty());
    let done = send(form(&[
        ("digest", "d-7"),
        ("confirmed", "1"),
        ("note", "fine"),
    ]))
    .await;
    assert_eq!(
        (done.status, done.header("location")),
        (StatusCode::SEE_OTHER, "/console/p/7")
    );
    let acts = stage.acts.lock().clone();
    let body = "{\"digest\":\"d-7\",\"note\":\"fine\"}";
    assert_eq!(
        acts,
        [(
            "7/approve".to_owned(),
            "Bearer t-ann".to_owned(),
            body.to_owned()
        )]
    );
}

#[tokio::test]
async fn a_value_that_was_not_shown_in_full_is_not_approved() {
    let long = "x".repeat(LONG_TEXT_CHARS + 1);
    let params = json!({ "name": "write_file", "arguments": { "text": long } });
    let stage = Stage::new(vec![proposal("7", &json!({ "params": params }))]);
    let (cookie, token) = stage.ann().await;
    let page = stage.get("/console", &cookie).await;
    assert!(page.body.contains("Show all 2,001 characters of one value"));
    let button = page.body.split("data-testid=\"approve\"").nth(1).unwrap();
    assert!(button.starts_with(" disabled"), "{button}");
    let form = [("token", &*token), ("digest", "d-7"), ("confirmed", "1")];
    let refused = stage.post("/console/p/7/approve", &cookie, &form).await;
    assert!(refused.body.contains("Show all of it first"));
    assert!(stage.acts.lock().is_empty());
    let page = stage.get("/console?all=7", &cookie).await;
    assert!(page.body.contains(&long) && !page.body.contains("data-testid=\"show-all\""));
    stage.post("/console/p/7/approve", &cookie, &form).await;
    assert_eq!(stage.acts.lock().len(), 1);
}

#[tokio::test]
async fn a_destructive_tool_is_named() {
    let tool = json!({ "name": "write_file", "annotations": { "destructiveHint": true } });
    let stage = Stage::new(vec![proposal("7", &json!({ "tool": tool }))]);
    let (cookie, token) = stage.ann().await;
    let page = stage.get("/console", &cookie).await;
    assert!(page.body.contains("data-testid=\"typed\""));
    for (typed, counts) in [("", 0), ("write", 0), ("write_file", 1)] {
        let form = [
            ("token", &*token),
            ("digest", "d-7"),
            ("confirmed", "1"),
            ("typed", typed),
        ];
        stage.post("/console/p/7/approve", &cookie, &form).await;
        assert_eq!(stage.acts.lock().len(), counts, "{typed}");
    }
}

/// A plan of two steps, of which the second may destroy something.
fn plan() -> serde_json::Value {
    let step = |id: &str, tool: &str, hints: serde_json::Value| {
        json!({
            "id": id, "state": "pending", "to": ["files"], "method": "tools/call", "context": tool,
            "params": { "name": tool, "arguments": { "path": format!("/srv/{id}") } },
            "tool": { "name": tool, "annotations": hints },
        })
    };
    let steps = [
        step("7", "write_file", json!({ "destructiveHint": false })),
        step("8", "remove_file", json!({ "destructiveHint": true })),
    ];
    let place = json!({ "id": "7", "step": 1, "of": 2 });
    proposal(
        "7",
        &json!({ "context": null, "params": null, "tool": null, "plan": place, "steps": steps }),
    )
}

#[tokio::test]
async fn a_plan_is_one_card_with_every_step_and_decided_as_one() {
    let later = json!({ "plan": { "id": "7", "step": 2, "of": 2 } });
    let stage = Stage::new(vec![plan(), proposal("8", &later)]);
    let (cookie, token) = stage.ann().await;
    let page = stage.get("/console", &cookie).await.body;
    assert_eq!(page.matches("data-testid=\"card\"").count(), 1, "{page}");
    assert_eq!(page.matches("data-testid=\"step\"").count(), 2);
    for seen in [
        "a plan of 2 steps",
        ">/srv/7<",
        ">/srv/8<",
        "not destructive, says its server",
        "DESTRUCTIVE, says its server",
    ] {
        assert!(page.contains(seen), "{seen}: {page}");
    }
    assert!(!page.contains("data-edit") && !page.contains("/p/8"));
    let edit = stage.get("/console/p/7?edit=1", &cookie).await.body;
    assert!(edit.contains("approved as it is, or not at all"), "{edit}");
    for (typed, count) in [("write_file", 0), ("", 0), ("remove_file", 1)] {
        let form = [("token", &*token), ("digest", "d-7"), ("typed", typed)];
        stage.post("/console/p/7/approve", &cookie, &form).await;
        assert_eq!(stage.acts.lock().len(), count, "{typed}");
    }
    let step = stage.get("/console/p/8", &cookie).await.body;
    assert!(step.contains("Step 2 of 2") && step.contains("href=\"/console/p/7\""));
    assert!(!step.contains("data-testid=\"approve\""), "{step}");
}

#[tokio::test]
async fn a_plan_is_approved_when_every_step_was_shown_in_full() {
    let mut plan = plan();
    plan["steps"][0]["params"]["arguments"]["path"] = json!("x".repeat(LONG_TEXT_CHARS + 1));
    let stage = Stage::new(vec![plan]);
    let (cookie, token) = stage.ann().await;
    let form = [
        ("token", &*token),
        ("digest", "d-7"),
        ("typed", "remove_file"),
    ];
    let refused = stage.post("/console/p/7/approve", &cookie, &form).await;
    assert!(refused.body.contains("Show all of it first"));
    stage.get("/console?all=7", &cookie).await;
    stage.post("/console/p/7/approve", &cookie, &form).await;
    assert_eq!(stage.acts.lock().len(), 1);
}

#[tokio::test]
async fn edited_arguments_are_compared_before_they_are_approved() {
    let stage = Stage::new(vec![proposal("7", &json!({}))]);
    let (cookie, token) = stage.ann().await;
    stage.get("/console/p/7?edit=1", &cookie).await;
    let edit = async |arguments: &str| {
        let form = [
            ("token", &*token),
            ("digest", "d-7"),
            ("arguments", arguments),
        ];
        stage.post("/console/p/7/edit", &cookie, &form).await
    };
    assert!(edit("{").await.body.contains("no JSON object"));
    assert!(
        edit("{\"a\":1,\"a\":2}")
            .await
            .body
            .contains("occurs twice")
    );
    let compared = edit("{\"path\":\"/b\"}").await.body;
    let compared = compared.split("data-testid=\"comparison\"").nth(1).unwrap();
    assert!(
        compared.contains(">/a<") && compared.contains(">/b<"),
        "{compared}"
    );
    let form = [
        ("token", &*token),
        ("digest", "d-7"),
        ("arguments", "{\"path\":\"/b\"}"),
    ];
    stage.post("/console/p/7/approve", &cookie, &form).await;
    let body = "{\"digest\":\"d-7\",\"arguments\":{\"path\":\"/b\"}}";
    assert_eq!(stage.acts.lock()[0].2, body);
}

#[tokio::test]
async fn a_rejection_has_a_reason_and_the_script_gets_the_card() {
    let stage = Stage::new(vec![proposal("7", &json!({}))]);
    let (cookie, token) = stage.ann().await;
    let form = [
        ("token", &*token),
        ("code", "context"),
        ("reason", "not today"),
    ];
    let headers = [("origin", OWN), ("x-portmoot-part", "1")];
    let part = stage
        .post_from("/console/p/7/reject", &cookie, &form, &headers)
        .await;
    assert_eq!(part.status, StatusCode::OK);
    assert!(part.body.starts_with("<p class=\"said\""), "{}", part.body);
    assert!(part.body.contains("<article") && !part.body.contains("<html"));
    let act = stage.acts.lock()[0].clone();
    let body = "{\"code\":\"context\",\"reason\":\"not today\"}";
    assert_eq!((&*act.0, &*act.2), ("7/reject", body));
}

#[tokio::test]
async fn own_proposals_are_withdrawn_and_not_decided() {
    let stage = Stage::new(vec![proposal("7", &json!({ "by": "ann" }))]);
    let (cookie, _) = stage.ann().await;
    let page = stage.get("/console", &cookie).await;
    assert!(page.body.contains("Waiting for others") && !page.body.contains("data-card"));
    let page = stage.get("/console/p/7", &cookie).await;
    assert!(page.body.contains("Withdraw") && !page.body.contains("data-testid=\"approve\""));
}

#[tokio::test]
async fn the_inbox_is_hostile_text_all_over_and_stays_itself() {
    let evil = "</title></script><img src=x onerror=alert(1)>\u{202e}\"'";
    let more = json!({
        "by": evil, "to": [evil], "context": evil, "method": "tools/call", "topic": evil,
        "params": { "name": evil, "arguments": { evil: evil } },
        "tool": { "name": evil, "description": evil },
        "claims": [{ "by": evil, "since": evil }], "would": [{ "words": evil }],
        "notes": [{ "by": evil, "note": evil }], "reason": evil, "approvals": 2, "approved_by": [evil],
    });
    let stage = Stage::new(vec![proposal("7", &more)]);
    let (cookie, _) = stage.ann().await;
    for path in ["/console", "/console/p/7", "/console/p/7?edit=1&all=1"] {
        let page = stage.get(path, &cookie).await;
        assert!(
            !page.body.contains("<img src=x") && !page.body.contains('\u{202e}'),
            "{path}"
        );
        assert_eq!(page.body.matches("</script>").count(), 1, "{path}");
        assert_eq!(page.body.matches("</title>").count(), 1, "{path}");
    }
}

#[tokio::test]
async fn a_browser_at_the_root_is_led_to_the_console() {
    let stage = Stage::new(vec![]);
    let ask = |accept: &'static str| {
        let request = Request::builder().uri("/").header("accept", accept);
        stage.send(request.body(Body::empty()).unwrap())
    };
    let led = ask("text/html,application/xhtml+xml,*/*;q=0.8").await;
    assert_eq!(
        (led.status, led.header("location")),
        (StatusCode::SEE_OTHER, "/console")
    );
    assert_eq!(ask("*/*").await.status, StatusCode::NOT_FOUND);
    stage.home.settings.lock().enabled = Some(false);
    assert_eq!(ask("text/html").await.status, StatusCode::NOT_FOUND);
    let off = stage.get("/console", "").await;
    assert!(off.body.contains("There is no console here"));
}

#[tokio::test]
async fn the_api_does_not_take_the_cookie() {
    let stage = Stage::new(vec![proposal("7", &json!({}))]);
    let (cookie, token) = stage.ann().await;
    stage.get("/console", &cookie).await;
    stage
        .post("/console/p/7/claim", &cookie, &[("token", &token)])
        .await;
    // The router of the console has no path of the API; that one reads no cookie.
    let direct = stage
        .post("/api/v1/proposals/7/claim", &cookie, &[("token", &token)])
        .await;
    assert_eq!(direct.status, StatusCode::NOT_FOUND);
    assert_eq!(stage.acts.lock().len(), 1);
}

#[tokio::test]
async fn a_form_beyond_the_bound_is_refused() {
    let stage = Stage::new(vec![]);
    let long = "x".repeat(crate::asked::FORM_BYTES_MAX);
    let reply = stage.post("/console/login", "", &[("code", &long)]).await;
    assert_eq!(reply.status, StatusCode::PAYLOAD_TOO_LARGE);
}
