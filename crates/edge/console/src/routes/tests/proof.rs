//! Tests of acts that ask again for a proof of who a person is.

use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::home::ConsoleHome as _;
use crate::routes::tests_support::{PROOF_MS, Reply, Stage, proposal};
use crate::sign_in::CONSOLE_TRIES_PER_MINUTE;

/// A form with its fields, in their order.
type Form<'f> = Vec<(&'f str, &'f str)>;

/// A stage with a proposal that may destroy something, an offered rule, and a participant.
fn stage() -> Stage {
    let tool = json!({ "name": "write_file", "annotations": { "destructiveHint": true } });
    let stage = Stage::new(vec![
        proposal("7", &json!({ "tool": tool })),
        proposal("8", &json!({})),
    ]);
    for (request, answer) in [
        (
            "POST /api/v1/topics/main/rules/offers/d-1/accept",
            json!({}),
        ),
        (
            "POST /api/v1/topics/main/rules",
            json!({ "rule": "like-8.1", "sentence": "scout may call" }),
        ),
        ("GET /api/v1/participants", json!({ "participants": [] })),
        ("POST /api/v1/participants/scout/grants", json!({})),
        ("DELETE /api/v1/participants/scout/grants", Value::Null),
        ("DELETE /api/v1/tokens/scout", json!({})),
    ] {
        stage.answers(request, answer);
    }
    stage
}

/// Lets time pass until the proof of a sign-in counts no more.
fn later(stage: &Stage) {
    stage.home.clock_ms.fetch_add(PROOF_MS, Ordering::Relaxed);
}

fn is_asked(reply: &Reply) -> bool {
    reply.body.contains("data-testid=\"proof\"")
}

/// Acts that ask for a proof, by path and form.
fn acts() -> Vec<(&'static str, Form<'static>)> {
    vec![
        (
            "/console/p/7/approve",
            vec![
                ("digest", "d-7"),
                ("typed", "write_file"),
                ("note", "a \"b\""),
            ],
        ),
        (
            "/console/rules/accept",
            vec![("topic", "main"), ("named", "d-1")],
        ),
        (
            "/console/access/scout/give",
            vec![("capability", "chat"), ("for", "900"), ("reason", "r")],
        ),
        ("/console/access/scout/take", vec![("capability", "chat")]),
        ("/console/access/scout/undo", vec![]),
        ("/console/access/scout/revoke-tokens", vec![]),
    ]
}

#[tokio::test]
async fn what_matters_most_asks_for_a_proof_and_goes_on_as_it_was_asked() {
    for (path, fields) in acts() {
        let stage = stage();
        let (cookie, token) = stage.ann().await;
        let form = [&[("token", &*token), ("confirmed", "1")], &*fields].concat();
        let young = stage.post(path, &cookie, &form).await;
        assert!(!is_asked(&young), "{path}: {}", young.body);
        let expected = stage.acts.lock().drain(..).collect::<Vec<_>>();
        assert_eq!(expected.len(), 1, "{path}: {}", young.body);
        later(&stage);
        let asked = stage.post(path, &cookie, &form).await;
        assert!(is_asked(&asked), "{path}: {}", asked.body);
        assert!(stage.acts.lock().is_empty(), "{path}");
        // All that was written stands in the form that asks.
        for (name, value) in &fields {
            let value = value.replace('"', "&quot;");
            let field = format!("name=\"{name}\" value=\"{value}\"");
            assert!(asked.body.contains(&field), "{path}: {}", asked.body);
        }
        assert!(asked.body.contains(&format!("action=\"{path}\"")));
        let code = stage
            .codes
            .issue("ann", Some("t-ann"), stage.home.now_ms())
            .unwrap();
        let proved = [&form[..], &[("proof", &*code)]].concat();
        stage.post(path, &cookie, &proved).await;
        assert_eq!(*stage.acts.lock(), expected, "{path}: as before");
        // The next one is not asked again.
        stage.post(path, &cookie, &form).await;
        assert_eq!(stage.acts.lock().len(), 2, "{path}");
    }
}

#[tokio::test]
async fn a_proof_counts_for_its_time_and_no_longer() {
    let stage = stage();
    let (cookie, token) = stage.ann().await;
    let path = "/console/access/scout/undo";
    let send = async |proof: &str| {
        let form = [("token", &*token), ("confirmed", "1"), ("proof", proof)];
        stage.post(path, &cookie, &form).await
    };
    let clock = &stage.home.clock_ms;
    clock.fetch_add(PROOF_MS - 1, Ordering::Relaxed);
    assert!(!is_asked(&send("").await));
    clock.fetch_add(1, Ordering::Relaxed);
    assert!(is_asked(&send("").await));
    assert!(!is_asked(&send("t-ann").await));
    clock.fetch_add(PROOF_MS - 1, Ordering::Relaxed);
    assert!(!is_asked(&send("").await));
    clock.fetch_add(1, Ordering::Relaxed);
    assert!(is_asked(&send("").await));
}

#[tokio::test]
async fn what_matters_less_asks_for_no_proof() {
    let stage = stage();
    let (cookie, token) = stage.ann().await;
    stage.get("/console", &cookie).await;
    later(&stage);
    for (path, fields) in [
        (
            "/console/p/8/approve",
            vec![("digest", "d-8"), ("confirmed", "1")],
        ),
        ("/console/p/7/reject", vec![]),
        ("/console/p/7/claim", vec![]),
    ] {
        let form = [&[("token", &*token)], &*fields].concat();
        let reply = stage.post(path, &cookie, &form).await;
        assert!(!is_asked(&reply), "{path}: {}", reply.body);
    }
    assert_eq!(stage.acts.lock().len(), 3);
}

#[tokio::test]
async fn a_rule_of_a_call_is_put_in_force_after_a_proof() {
    let stage = stage();
    let (cookie, token) = stage.ann().await;
    stage.get("/console/p/8/like", &cookie).await;
    let wish = [("seconds", "900"), ("uses", "3"), ("digest", "d-8")];
    let form = [&[("token", &*token)], &wish[..]].concat();
    stage.post("/console/p/8/like", &cookie, &form).await;
    stage.acts.lock().clear();
    later(&stage);
    let rule = ("rule", "id = \"like-8\"\r\nversion = 1\r\n");
    let form = [&form[..], &[rule, ("confirmed", "1")]].concat();
    let asked = stage.post("/console/p/8/rule", &cookie, &form).await;
    assert!(
        is_asked(&asked) && stage.acts.lock().is_empty(),
        "{}",
        asked.body
    );
    let form = [&form[..], &[("proof", "t-ann")]].concat();
    let added = stage.post("/console/p/8/rule", &cookie, &form).await;
    let said = "The rule is in force";
    assert!(added.body.contains(said), "{}", added.body);
    assert_eq!(stage.acts.lock().len(), 1);
}

#[tokio::test]
async fn a_proof_is_the_participants_own_and_wrong_ones_are_counted_with_sign_ins() {
    let stage = stage();
    let (cookie, token) = stage.ann().await;
    later(&stage);
    let path = "/console/access/scout/undo";
    let send = async |proof: &str| {
        let form = [("token", &*token), ("confirmed", "1"), ("proof", proof)];
        stage.post(path, &cookie, &form).await
    };
    let now_ms = stage.home.now_ms();
    let of_bob = stage.codes.issue("bob", Some("t-bob"), now_ms).unwrap();
    let mut wrong = vec!["t-bob".to_owned(), of_bob, "no-such-proof".to_owned()];
    let used = stage.codes.issue("ann", Some("t-ann"), now_ms).unwrap();
    stage.codes.redeem(&used, now_ms).unwrap();
    wrong.push(used);
    for proof in &wrong {
        let refused = send(proof).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{proof}");
        assert!(
            is_asked(&refused) && !refused.body.contains(proof),
            "{proof}"
        );
    }
    // A sign-in counts at the same address.
    for _ in wrong.len()..CONSOLE_TRIES_PER_MINUTE as usize {
        stage.post("/console/login", "", &[("code", "wrong")]).await;
    }
    let limited = send("x").await;
    assert_eq!(limited.status, StatusCode::TOO_MANY_REQUESTS);
    let records = stage.home.records.lock().clone();
    let of_ann = records
        .iter()
        .filter(|(who, refused, _)| *refused && who.as_deref() == Some("ann"));
    assert_eq!(of_ann.count(), wrong.len(), "{records:?}");
    assert!(stage.acts.lock().is_empty());
    // A right one passes all the same, and is noted.
    send("t-ann").await;
    assert_eq!(stage.acts.lock().len(), 1);
    let last = stage.home.records.lock().last().cloned().unwrap();
    assert_eq!(
        last,
        (
            Some("ann".to_owned()),
            false,
            "proved again who it is at the console".to_owned()
        )
    );
}

#[tokio::test]
async fn a_proof_needs_a_form_of_the_session_like_any_act() {
    let stage = stage();
    let (cookie, _) = stage.ann().await;
    later(&stage);
    let path = "/console/access/scout/undo";
    let form = [("token", "forged"), ("confirmed", "1"), ("proof", "t-ann")];
    let refused = stage.post(path, &cookie, &form).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(
        refused
            .body
            .contains("was not sent by a page of this session")
    );
    assert!(stage.acts.lock().is_empty());
}

#[tokio::test]
async fn who_signs_in_again_goes_on_with_the_form_that_was_filled_in() {
    let stage = stage();
    let (cookie, token) = stage.ann().await;
    later(&stage);
    let path = "/console/access/scout/undo";
    let form = [("token", &*token), ("confirmed", "1"), ("proof", "")];
    assert!(is_asked(&stage.post(path, &cookie, &form).await));
    // As `portmoot console` does, in another tab.
    let code = stage.codes.issue("ann", Some("t-ann"), stage.home.now_ms());
    let headers = [
        ("host", &*stage.host("ann")),
        ("origin", &*stage.origin("ann")),
    ]
    .map(|(name, value)| (name, value.to_owned()));
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, &**value))
        .collect();
    let code = code.unwrap();
    let entered = stage
        .post_from("/console/login", &cookie, &[("code", &code)], &headers)
        .await;
    let again = entered.cookie();
    assert_ne!(again, cookie);
    assert!(
        !stage
            .get("/console", &cookie)
            .await
            .body
            .contains("Sign out")
    );
    stage.post(path, &again, &form).await;
    assert_eq!(stage.acts.lock().len(), 1);
}

#[tokio::test]
async fn the_next_bearer_of_a_name_does_not_go_on_with_a_session() {
    let stage = stage();
    let (cookie, token) = stage.ann().await;
    {
        let mut tokens = stage.home.tokens.lock();
        tokens.remove("t-ann");
        tokens.insert("t-next".to_owned(), "ann".to_owned());
    }
    let entered = stage
        .post("/console/login", &cookie, &[("code", "t-next")])
        .await;
    let page = stage.get("/console", &entered.cookie()).await;
    assert!(page.body.contains(">ann<"), "{}", page.body);
    assert_ne!(page.field("token"), token);
}

#[tokio::test]
async fn the_script_is_asked_at_its_card() {
    let stage = stage();
    let (cookie, token) = stage.ann().await;
    stage.get("/console", &cookie).await;
    later(&stage);
    let (host, origin) = (stage.host("ann"), stage.origin("ann"));
    let headers = [
        ("host", &*host),
        ("origin", &*origin),
        ("x-portmoot-part", "1"),
    ];
    let form = [
        ("token", &*token),
        ("digest", "d-7"),
        ("typed", "write_file"),
    ];
    let send = async |proof: &str| {
        let form = [&form[..], &[("proof", proof)]].concat();
        stage
            .post_from("/console/p/7/approve", &cookie, &form, &headers)
            .await
    };
    let asked = send("").await;
    assert!(
        is_asked(&asked) && !asked.body.contains("<html"),
        "{}",
        asked.body
    );
    let wrong = send("x").await;
    assert!(is_asked(&wrong) && wrong.body.contains("data-testid=\"problem\""));
    let done = send("t-ann").await;
    assert!(done.body.contains("Approved."), "{}", done.body);
    assert_eq!(stage.acts.lock().len(), 1);
}

#[tokio::test]
async fn while_callers_need_no_token_there_is_nothing_to_prove() {
    let stage = stage();
    stage
        .home
        .tokens
        .lock()
        .insert(String::new(), "local".to_owned());
    stage.home.settings.lock().needs_token = false;
    let entered = stage
        .post_as("local", "/console/login", "", &[("local", "1")])
        .await;
    let cookie = entered.cookie();
    let page = stage
        .post_as("local", "/console/rules/accept", &cookie, &[])
        .await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    later(&stage);
    let (host, origin) = (stage.host("local"), stage.origin("local"));
    let request = axum::http::Request::builder()
        .uri("/console")
        .header("host", &host);
    let request = request.header("cookie", &cookie).header("origin", &origin);
    let page = stage
        .send(request.body(axum::body::Body::empty()).unwrap())
        .await;
    let token = page.field("token");
    let form = [
        ("token", &*token),
        ("confirmed", "1"),
        ("topic", "main"),
        ("named", "none"),
    ];
    let refused = stage
        .post_as("local", "/console/rules/accept", &cookie, &form)
        .await;
    assert!(
        refused.body.contains("you may not POST"),
        "{}",
        refused.body
    );
}
