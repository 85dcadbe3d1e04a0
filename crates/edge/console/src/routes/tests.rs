//! Tests of the console's handlers: signing in, forms, decisions.

mod access;
mod audit;
mod batch;
mod elsewhere;
mod proof;
mod servers;
mod sessions;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use super::tests_support::{Stage, proposal};
use crate::arguments::LONG_TEXT_CHARS;
use crate::home::ConsoleHome as _;
use crate::sign_in::CONSOLE_TRIES_PER_MINUTE;

#[tokio::test]
async fn a_browser_signs_in_with_a_code_or_a_token_once() {
    let stage = Stage::new(vec![]);
    let page = stage.get("/console", "").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.body.contains("portmoot console") && !page.body.contains("Sign out"));
    let code = stage
        .codes
        .issue("ann", Some("t-ann"), stage.home.now_ms())
        .unwrap();
    let entered = stage.post("/console/login", "", &[("code", &code)]).await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER);
    assert_eq!(entered.header("location"), "/console/entered");
    let set = entered.header("set-cookie");
    assert!(
        set.starts_with("__Host-pm_console=") && set.contains("SameSite=Strict"),
        "{set}"
    );
    let led = stage.get("/console/entered", &entered.cookie()).await;
    assert_eq!(led.header("location"), "/console");
    let inbox = stage.get("/console", &entered.cookie()).await;
    assert!(inbox.body.contains("Nothing waits for you") && inbox.body.contains(">ann<"));
    let again = stage.post("/console/login", "", &[("code", &code)]).await;
    assert_eq!(again.status, StatusCode::FORBIDDEN, "a code is good once");
    stage.sign_in("bob").await;
    let records = stage.home.records.lock().clone();
    let refused: Vec<_> = records.iter().filter(|(_, refused, _)| *refused).collect();
    assert_eq!((records.len(), refused.len()), (3, 1), "{records:?}");
}

#[tokio::test]
async fn a_page_that_was_wanted_comes_after_the_sign_in() {
    let stage = Stage::new(vec![]);
    let page = stage.get("/console/p/7?all=1", "").await;
    assert_eq!(page.field("next"), "/p/7?all=1");
    for (next, expect) in [("/p/7?all=1", "/p/7?all=1"), ("/login", ""), (".evil", "")] {
        let form = [("code", "t-ann"), ("next", next)];
        let entered = stage.post("/console/login", "", &form).await;
        let to = entered.header("location").to_owned();
        assert!(to.starts_with("/console/entered"), "{to}");
        let led = stage.get(&to, &entered.cookie()).await;
        assert_eq!(led.header("location"), format!("/console{expect}"));
    }
    // An act after the end of a session: the page of the proposal comes, not that of the act.
    let form = [("token", "x"), ("confirmed", "1")];
    let page = stage.post("/console/p/7/approve", "", &form).await;
    assert_eq!(page.status, StatusCode::UNAUTHORIZED);
    assert_eq!(page.field("next"), "/p/7");
}

#[tokio::test]
async fn a_browser_that_keeps_no_cookie_is_not_asked_again_without_a_word() {
    let stage = Stage::new(vec![]);
    let form = [("code", "t-ann"), ("next", "/overview")];
    let entered = stage.post("/console/login", "", &form).await;
    let page = stage.get(entered.header("location"), "").await;
    assert!(
        page.body.contains("did not keep the cookie"),
        "{}",
        page.body
    );
    assert_eq!(page.field("next"), "/overview");
}

#[tokio::test]
async fn the_cookie_is_good_under_the_participants_own_name_alone() {
    let stage = Stage::new(vec![]);
    let cookie = stage.sign_in("ann").await;
    let at = async |host: &str| {
        let request = Request::builder()
            .uri("/console")
            .header("host", host)
            .header("cookie", &cookie);
        stage.send(request.body(Body::empty()).unwrap()).await.body
    };
    assert!(at(&stage.host("ann")).await.contains("Sign out"));
    let made_up = format!("pm-{:032x}.localhost:7070", 7);
    for other in [
        "localhost:7070",
        "127.0.0.1:7070",
        &*stage.host("bob"),
        &*made_up,
    ] {
        assert!(!at(other).await.contains("Sign out"), "{other}");
    }
}

#[tokio::test]
async fn a_name_that_others_know_leads_on_and_gets_no_cookie() {
    let stage = Stage::new(vec![]);
    for host in ["localhost:7070", "127.0.0.1:7070", &*stage.host("bob")] {
        let origin = format!("http://{host}");
        let headers = [("host", host), ("origin", &*origin)];
        let form = [("code", "t-ann"), ("next", "/p/7")];
        let led = stage.post_from("/console/login", "", &form, &headers).await;
        assert_eq!((led.status, led.header("set-cookie")), (StatusCode::OK, ""));
        let to = led
            .header("refresh")
            .strip_prefix("0; url=")
            .unwrap()
            .to_owned();
        let (page, code) = to.split_once('#').unwrap();
        assert_eq!(page, format!("{}/console/p/7", stage.origin("ann")));
        let entered = stage.post("/console/login", "", &[("code", code)]).await;
        assert_eq!(entered.status, StatusCode::SEE_OTHER, "{}", entered.body);
        assert!(entered.header("set-cookie").contains("pm_console="));
        assert!(led.body.contains(code), "without a script it is typed");
    }
}

#[tokio::test]
async fn another_participant_does_not_take_over_a_browser_without_a_word() {
    let stage = Stage::new(vec![]);
    stage.home.settings.lock().has_tls = true;
    let headers = [("host", "gw.example"), ("origin", "https://gw.example")];
    let send = async |cookie: &str, form: &[(&str, &str)]| {
        stage
            .post_from("/console/login", cookie, form, &headers)
            .await
    };
    let cookie = send("", &[("code", "t-ann")]).await.cookie();
    let code = stage
        .codes
        .issue("bob", Some("t-bob"), stage.home.now_ms())
        .unwrap();
    let asked = send(&cookie, &[("code", &code)]).await;
    assert_eq!(
        (asked.status, asked.header("set-cookie")),
        (StatusCode::OK, "")
    );
    assert!(
        asked.body.contains("data-testid=\"instead\""),
        "{}",
        asked.body
    );
    let get = async |cookie: &str| {
        let request = Request::builder()
            .uri("/console")
            .header("host", "gw.example");
        let request = request.header("cookie", cookie).body(Body::empty());
        stage.send(request.unwrap()).await.body
    };
    assert!(get(&cookie).await.contains(">ann<"), "she stays who she is");
    let further = asked.field("code");
    let entered = send(&cookie, &[("code", &further), ("instead", "1")]).await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER);
    assert!(get(&entered.cookie()).await.contains(">bob<"));
    assert!(
        !get(&cookie).await.contains("Sign out"),
        "her session has ended"
    );
}

#[tokio::test]
async fn wrong_codes_are_limited_and_recorded() {
    let stage = Stage::new(vec![]);
    for _ in 0..CONSOLE_TRIES_PER_MINUTE {
        let wrong = stage.post("/console/login", "", &[("code", "wrong")]).await;
        assert_eq!(wrong.status, StatusCode::FORBIDDEN);
    }
    let limited = stage.post("/console/login", "", &[("code", "wrong")]).await;
    assert_eq!(limited.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(limited.body.contains("Too many tries"));
    assert_eq!(
        stage.home.records.lock().len(),
        CONSOLE_TRIES_PER_MINUTE as usize
    );
    // A right one passes: behind a proxy all people have one address.
    stage.sign_in("ann").await;
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
    let entered = stage.post_as("local", "/console/login", "", &form).await;
    let get = async || {
        let request = Request::builder().uri("/console");
        let request = request.header("host", stage.host("local"));
        let request = request
            .header("cookie", entered.cookie())
            .body(Body::empty());
        stage.send(request.unwrap()).await.body
    };
    assert!(get().await.contains(">local<"));
    // Once there are participants, no token is none.
    stage.home.tokens.lock().remove("");
    assert!(get().await.contains("session has ended"));
}

#[tokio::test]
async fn behind_a_public_address_no_one_is_the_local_user() {
    let stage = Stage::new(vec![]);
    {
        let mut settings = stage.home.settings.lock();
        settings.needs_token = false;
        settings.public_url = Some(auth::PublicUrl::parse("https://gw.example").unwrap());
    }
    let tokens = &stage.home.tokens;
    tokens.lock().insert(String::new(), "local".to_owned());
    let headers = [("host", "gw.example"), ("origin", "https://gw.example")];
    let off = stage
        .post_from("/console/login", "", &[("local", "1")], &headers)
        .await;
    assert!(
        off.body.contains("There is no console here"),
        "{}",
        off.body
    );
    stage.home.settings.lock().enabled = Some(true);
    for host in ["gw.example", "localhost:7070"] {
        let request = Request::builder().uri("/console").header("host", host);
        let page = stage.send(request.body(Body::empty()).unwrap()).await.body;
        assert!(page.contains("Code or token") && !page.contains("Open the console"));
    }
    let refused = stage
        .post_from("/console/login", "", &[("local", "1")], &headers)
        .await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_revoked_token_ends_its_sessions_and_so_does_its_next_bearer() {
    let stage = Stage::new(vec![]);
    let cookie = stage.sign_in("ann").await;
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
    let cookie = stage.sign_in("ann").await;
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
    let own = &*stage.origin("ann");
    let other_port = &*own.replace(":7070", ":7071");
    for (headers, token, may) in [
        (vec![("origin", own)], &*token, true),
        (vec![("sec-fetch-site", "same-origin")], &*token, true),
        (vec![("origin", own)], "", false),
        (vec![("origin", own)], "forged", false),
        (vec![], &*token, false),
        (vec![("origin", "null")], &*token, false),
        (vec![("origin", evil)], &*token, false),
        (vec![("origin", other_port)], &*token, false),
        (
            vec![("origin", own), ("sec-fetch-site", "same-site")],
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
            .post_from("/console/login", "", &[("code", "t-ann")], &headers)
            .await;
        let is_own = token.is_empty() || token == "forged" || may;
        assert_eq!(login.status == StatusCode::SEE_OTHER, is_own, "{headers:?}");
    }
    // Another session's token is none.
    let other = stage.sign_in("bob").await;
    let reply = stage
        .post_as("bob", "/console/p/7/claim", &other, &[("token", &token)])
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
async fn nothing_but_what_was_compared_is_approved_beside_an_edit() {
    let long = "x".repeat(LONG_TEXT_CHARS + 1);
    let params = json!({ "name": "write_file", "arguments": { "text": long, "n": "1" } });
    let stage = Stage::new(vec![proposal("7", &json!({ "params": params }))]);
    let (cookie, token) = stage.ann().await;
    let edit = stage.get("/console/p/7?edit=1", &cookie).await.body;
    assert!(!edit.contains("data-testid=\"approve\""), "{edit}");
    let form = |arguments: &'static str, digest: &'static str| {
        [
            ("token", token.clone()),
            ("digest", digest.to_owned()),
            ("arguments", arguments.to_owned()),
        ]
    };
    let send = async |act: &str, form: &[(&str, String)]| {
        let form: Vec<(&str, &str)> = form.iter().map(|(a, b)| (*a, &**b)).collect();
        stage
            .post(&format!("/console/p/7/{act}"), &cookie, &form)
            .await
            .body
    };
    let compared = send("edit", &form("{\"n\":1}", "d-7")).await;
    assert_eq!(compared.matches("data-testid=\"approve\"").count(), 1);
    assert!(!compared.contains("data-card"), "{compared}");
    assert_eq!(compared.matches("id=\"n-p-7\"").count(), 0);
    for kind in [">text<", ">number<"] {
        assert!(
            compared.contains(kind),
            "a type is a difference: {compared}"
        );
    }
    // Other arguments than those that were compared, and an older digest: compared again, not lost.
    for (arguments, digest, why) in [
        ("{\"n\":2}", "d-7", "Not every value was shown"),
        ("{\"n\":1}", "d-6", "has changed since"),
    ] {
        let refused = send("approve", &form(arguments, digest)).await;
        assert!(refused.contains(why), "{refused}");
        assert!(refused.contains("data-testid=\"comparison\""));
        let kept = arguments.replace('"', "&quot;");
        assert!(refused.contains(&format!("value=\"{kept}\"")), "{refused}");
        assert!(stage.acts.lock().is_empty());
    }
    send("approve", &form("{\"n\":1}", "d-7")).await;
    assert_eq!(stage.acts.lock().len(), 1);
}

#[tokio::test]
async fn what_is_too_large_or_over_is_not_compared() {
    let many: Vec<u32> = (0..100_000).collect();
    let params = json!({ "name": "write_file", "arguments": { "many": many } });
    let large = proposal("7", &json!({ "params": params }));
    let stage = Stage::new(vec![large, proposal("8", &json!({ "state": "rejected" }))]);
    let (cookie, token) = stage.ann().await;
    let all = stage.get("/console/p/7?all=1", &cookie).await.body;
    assert!(all.contains("Too large for the console: 100,000 values"));
    assert!(all.contains("portmoot proposals approve 7") && all.len() < 8 << 20);
    assert!(!all.contains("data-testid=\"show-all\""));
    for (id, why) in [("7", "too long to edit"), ("8", "waits for no decision")] {
        let form = [("token", &*token), ("digest", "d-7"), ("arguments", "{}")];
        let path = format!("/console/p/{id}/edit");
        let refused = stage.post(&path, &cookie, &form).await;
        assert_eq!(refused.status, StatusCode::CONFLICT);
        assert!(refused.body.contains(why), "{}", refused.body);
    }
}

#[tokio::test]
async fn an_api_that_fails_is_no_empty_inbox() {
    let stage = Stage::new(vec![]);
    let (cookie, _) = stage.ann().await;
    *stage.proposals.lock() = None;
    for path in ["/console", "/console/topic", "/console/past"] {
        let page = stage.get(path, &cookie).await.body;
        assert!(page.contains("too much"), "{path}: {page}");
        assert!(!page.contains("Nothing waits"), "{path}");
        assert!(page.contains("data-testid=\"count\">?<"), "{path}: {page}");
    }
}

#[tokio::test]
async fn the_api_learns_what_was_shown_in_full_once_and_nothing_else() {
    let long = "x".repeat(LONG_TEXT_CHARS + 1);
    let params = json!({ "name": "write_file", "arguments": { "text": long } });
    let cut = proposal("8", &json!({ "params": params }));
    let stage = Stage::new(vec![proposal("7", &json!({})), cut]);
    let (cookie, _) = stage.ann().await;
    stage.get("/console", &cookie).await;
    assert_eq!(*stage.looked.lock(), ["7"]);
    stage.get("/console?all=8", &cookie).await;
    assert_eq!(*stage.looked.lock(), ["7", "8"]);
}

#[tokio::test]
async fn the_inbox_has_the_proposals_of_all_pages_of_the_api_and_fetches_what_they_leave_out() {
    let mut all: Vec<Value> = (0..100)
        .map(|at| proposal(&format!("{at:03}"), &json!({ "by": "scout" })))
        .collect();
    let long = json!({ "name": "write_file", "arguments": { "text": "y".repeat(9 << 10) } });
    let expires = "2020-01-01T00:00:00.000Z";
    all.push(proposal(
        "last",
        &json!({ "params": long, "expires": expires }),
    ));
    let stage = Stage::new(all);
    let (cookie, _) = stage.ann().await;
    let page = stage.get("/console", &cookie).await;
    assert!(page.body.contains("data-testid=\"count\">101<"));
    assert!(
        page.body.contains("yyyy"),
        "the card of the last page has its arguments"
    );
    assert!(
        stage.looked.lock().iter().all(|id| id != "last"),
        "it is not shown in full"
    );
    assert_eq!(
        page.participant.as_deref(),
        Some("ann"),
        "the door has an account for the answer"
    );
}

#[tokio::test]
async fn acts_that_a_script_arms_are_asked_about_without_one() {
    let stage = Stage::new(vec![]);
    let (cookie, token) = stage.ann().await;
    for (path, question) in [
        ("/console/servers/files/disable", "Disable "),
        ("/console/rules/accept", "Accept this rule?"),
        ("/console/rules/end", "End this rule?"),
    ] {
        let form = [
            ("token", &*token),
            ("topic", "main"),
            ("named", "r1"),
            ("sentence", "Calls of <b>scout</b>"),
        ];
        let asked = stage.post(path, &cookie, &form).await;
        assert_eq!(asked.status, StatusCode::OK, "{}", asked.body);
        assert!(asked.body.contains(question) && asked.body.contains("data-testid=\"confirm\""));
        assert!(
            asked.body.contains(&format!("action=\"{path}\"")),
            "{}",
            asked.body
        );
        assert!(asked.body.contains("name=\"named\" value=\"r1\""));
        assert!(asked.body.contains("data-at=\"/-\"") && !asked.body.contains("<b>"));
        let form = [form.to_vec(), vec![("confirmed", "1")]].concat();
        let sent = stage.post(path, &cookie, &form).await;
        // The API of this test has no such path.
        assert!(
            !sent.body.contains("data-testid=\"confirm\""),
            "{}",
            sent.body
        );
    }
}

#[tokio::test]
async fn after_an_act_the_stream_is_of_its_page() {
    let stage = Stage::new(vec![proposal("7", &json!({}))]);
    let (cookie, token) = stage.ann().await;
    let form = [("token", &*token), ("digest", "d-7")];
    let asked = stage.post("/console/p/7/approve", &cookie, &form).await;
    assert!(asked.body.contains("data-at=\"/p/7\""), "{}", asked.body);
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
    let own = &*stage.origin("ann");
    let headers = [("origin", own), ("x-portmoot-part", "1")];
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
async fn a_form_beyond_the_bound_is_refused() {
    let stage = Stage::new(vec![]);
    let long = "x".repeat(crate::asked::FORM_BYTES_MAX);
    let reply = stage.post("/console/login", "", &[("code", &long)]).await;
    assert_eq!(reply.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn the_like_of_a_call_is_approved_by_a_rule_that_was_read() {
    let long = json!({ "name": "write_file", "arguments": { "path": "/a".repeat(2_000) } });
    let stage = Stage::new(vec![proposal("7", &json!({ "params": long }))]);
    let (cookie, token) = stage.ann().await;
    let in_force = json!({ "rule": "like-7.1", "sentence": "scout may <b>call</b>", "expires": "2099-07-28T12:35:00.000Z" });
    stage.answers("POST /api/v1/topics/main/rules", in_force);
    let send = async |act: &str, more: &[(&str, &str)]| {
        let form = [&[("token", &*token), ("digest", "d-7")], more].concat();
        let path = format!("/console/p/7/{act}");
        stage.post(&path, &cookie, &form).await
    };
    let wish = [
        ("seconds", "900"),
        ("uses", "3"),
        ("when", "\"/path\" = { under = \"/srv/a\" }"),
    ];
    let unseen = send("like", &wish).await;
    assert!(
        unseen.body.contains("Not every value was shown"),
        "{}",
        unseen.body
    );
    let page = stage.get("/console/p/7/like", &cookie).await.body;
    assert!(page.contains("data-testid=\"draft\""), "{page}");
    // The tool says nothing of what it destroys.
    assert!(page.contains("data-testid=\"typed\""), "{page}");
    let none = send(
        "like",
        &[("seconds", "900"), ("uses", "21"), ("when", "kept")],
    )
    .await
    .body;
    assert!(
        none.contains("1 to 20") && none.contains(">kept<"),
        "{none}"
    );
    // As browsers send the ends of lines.
    let rule = ("rule", "id = \"like-7\"\r\nversion = 1\r\n");
    let unread = send("rule", &[rule]).await.body;
    assert!(unread.contains("You were not shown this rule"), "{unread}");
    assert_eq!(stage.acts.lock().len(), 0);
    let shown = send("like", &wish).await.body;
    assert!(shown.contains("scout may &lt;b&gt;call"), "{shown}");
    let other = send("rule", &[("rule", "id = \"other\"")]).await.body;
    assert!(other.contains("You were not shown this rule"), "{other}");
    let added = send("rule", &[rule, ("typed", "write_file")]).await;
    let said = added.body.split("data-testid=\"done\"").nth(1).unwrap();
    for seen in [
        "The rule is in force",
        "scout may &lt;b&gt;call",
        "2099-07-28 12:35 UTC",
        "/console/rules?topic=main",
    ] {
        assert!(said.contains(seen), "{seen}: {said}");
    }
    let bodies = stage.acts.lock().clone().into_iter().map(|act| act.2);
    let asked: Vec<serde_json::Value> = bodies
        .map(|body| serde_json::from_str(&body).unwrap())
        .collect();
    let expected = [
        json!({ "for_seconds": 900, "uses": 3, "when": "\"/path\" = { under = \"/srv/a\" }", "tool": null }),
        json!({ "rule": "id = \"like-7\"\nversion = 1\n", "tool": "write_file" }),
    ];
    assert_eq!(asked, expected);
}
