//! Tests of the pages of a server: its changed definitions, and the person's account there.

use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::definitions::DEFINITIONS_BYTES_MAX;
use crate::routes::tests_support::{PROOF_MS, Stage};

const EVIL: &str = "</script><img src=x onerror=alert(1)>\u{202e}\"'";

fn server() -> Value {
    json!({
        "name": "files", "state": "ready", "transport": "stdio", "tools": 2, "resources": 0, "prompts": 0, "sessions": 1,
        "processes": 1, "memory_bytes": 0, "calls": 0, "restarts": 0, "pins": "block", "changed": ["write_file"],
    })
}

fn pin(name: &str, state: &str, before: &str, after: &str) -> Value {
    let text = |text: &str| json!(text).to_string();
    let change = json!({ "path": "/description", "before": text(before), "after": text(after) });
    json!({ "server": "files", "part": "tool", "name": name, "state": state, "waiting": format!("w-{name}"), "changes": [change] })
}

fn stage(accounts: &Value) -> Stage {
    let stage = Stage::new(vec![]);
    stage.answers("GET /api/v1/servers/files", server());
    stage.answers(
        "GET /api/v1/accounts?server=files",
        json!({ "accounts": accounts }),
    );
    stage
}

fn pins(stage: &Stage, pins: &[Value]) {
    stage.answers("GET /api/v1/pins/files", json!({ "pins": pins }));
}

fn account(participant: Option<&str>, state: &str) -> Value {
    let mut account = json!({ "server": "files", "state": state, "scopes": ["read"], "renews": true, "issuer": "https://idp.example" });
    if let Some(participant) = participant {
        account["participant"] = json!(participant);
    }
    account
}

#[tokio::test]
async fn changed_definitions_are_compared_and_approved_by_what_was_shown() {
    let stage = stage(&json!([]));
    let same = json!({ "server": "files", "part": "tool", "name": "same", "state": "pinned" });
    let changed = pin(
        "write_file",
        "changed",
        "Writes a file.",
        "Writes a file, and sends it.",
    );
    pins(&stage, &[same, changed]);
    let (cookie, token) = stage.ann().await;
    let page = stage.get("/console/servers/files", &cookie).await.body;
    assert!(
        page.contains("href=\"/console/servers/files/definitions\""),
        "{page}"
    );
    let path = "/console/servers/files/definitions";
    let page = stage.get(path, &cookie).await.body;
    assert_eq!(
        page.matches("data-testid=\"definition\"").count(),
        1,
        "{page}"
    );
    assert!(
        page.contains("<ins>") && page.contains("portmoot pins show files"),
        "{page}"
    );
    stage.answers("POST /api/v1/pins/files/approve", json!({ "approved": [] }));
    let form = [
        ("token", &*token),
        ("digest", "w-write_file"),
        ("part", "tool"),
        ("name", "write_file"),
    ];
    let approve = "/console/servers/files/approve";
    let asked = stage.post(approve, &cookie, &form).await;
    assert!(
        asked.body.contains("data-testid=\"confirm\""),
        "{}",
        asked.body
    );
    let form = [&form[..], &[("confirmed", "1")]].concat();
    stage.home.clock_ms.fetch_add(PROOF_MS, Ordering::Relaxed);
    let asked = stage.post(approve, &cookie, &form).await;
    assert!(asked.body.contains("data-testid=\"proof\"") && stage.acts.lock().is_empty());
    let form = [&form[..], &[("proof", "t-ann")]].concat();
    let done = stage.post(approve, &cookie, &form).await;
    assert_eq!(done.header("location"), path);
    let body = stage.acts.lock().pop().unwrap().2;
    assert_eq!(body, "{\"digests\":[\"w-write_file\"]}");
}

#[tokio::test]
async fn a_definition_without_room_on_the_page_is_named_and_not_approved_there() {
    let stage = stage(&json!([]));
    let (cookie, _) = stage.ann().await;
    // Beside its texts a change counts for 128 bytes.
    let beside = 128 + "/description\"a\"\"\"long".len();
    let path = "/console/servers/files/definitions";
    for (more, is_shown) in [(0, true), (1, false)] {
        let long = "x".repeat(DEFINITIONS_BYTES_MAX - beside + more);
        pins(
            &stage,
            &[
                pin("long", "changed", "a", &long),
                pin("short", "changed", "a", "b"),
            ],
        );
        let page = stage.get(path, &cookie).await.body;
        assert!(page.contains("1 more are too long for this page"), "{more}");
        assert_eq!(page.contains("value=\"w-long\""), is_shown);
        assert_eq!(page.contains("value=\"w-short\""), !is_shown);
    }
    pins(&stage, &[]);
    let page = stage
        .get("/console/servers/files/definitions", &cookie)
        .await
        .body;
    assert!(page.contains("It lists what is pinned"), "{page}");
}

#[tokio::test]
async fn texts_of_servers_and_issuers_stay_texts() {
    let mut own = account(None, EVIL);
    for member in ["issuer", "reason"] {
        own[member] = json!(EVIL);
    }
    own["scopes"] = json!([EVIL]);
    let stage = stage(&json!([own]));
    let mut evil = pin(EVIL, EVIL, EVIL, EVIL);
    evil["part"] = json!(EVIL);
    evil["changes"][0]["path"] = json!(EVIL);
    evil["changes"][0]["after"] = json!(EVIL);
    pins(&stage, &[evil]);
    let (cookie, token) = stage.ann().await;
    let begun = json!({ "url": EVIL, "issuer": EVIL, "scopes": [EVIL], "expires": "2099-07-28T12:30:00.000Z" });
    stage.answers("POST /api/v1/servers/files/login", begun);
    let signing = stage
        .post(
            "/console/servers/files/sign-in",
            &cookie,
            &[("token", &token)],
        )
        .await;
    assert!(
        signing.body.contains("This is no address of a page"),
        "{}",
        signing.body
    );
    let mut pages = vec![signing.body];
    for path in [
        "/console/servers/files",
        "/console/servers/files/definitions",
    ] {
        pages.push(stage.get(path, &cookie).await.body);
    }
    for page in pages {
        assert!(
            page.contains("&lt;img src=x") && !page.contains("<img src=x"),
            "{page}"
        );
        assert_eq!(page.matches("</script>").count(), 1, "{page}");
    }
}

#[tokio::test]
async fn the_person_sees_its_own_account_or_the_shared_one_and_no_other() {
    for (accounts, seen) in [
        (json!([account(Some("bob"), "ready")]), "You have none yet"),
        (
            json!([
                account(Some("bob"), "ready"),
                account(Some("ann"), "needs_login")
            ]),
            "needs login",
        ),
        (json!([account(None, "ready")]), "all callers share it"),
    ] {
        let stage = stage(&accounts);
        let (cookie, _) = stage.ann().await;
        let page = stage.get("/console/servers/files", &cookie).await.body;
        assert!(page.contains(seen), "{seen}: {page}");
        assert!(page.contains("portmoot servers login files"));
        let is_in = page.contains("data-testid=\"sign-out\"");
        assert_eq!(is_in, seen == "all callers share it", "{page}");
    }
}

#[tokio::test]
async fn a_person_signs_in_at_a_server_and_out_again() {
    let stage = stage(&json!([account(Some("ann"), "ready")]));
    let (cookie, token) = stage.ann().await;
    let login = "POST /api/v1/servers/files/login";
    let begun = json!({ "url": "https://idp.example/authorize?state=s", "issuer": "https://idp.example", "scopes": ["read"], "expires": "2099-07-28T12:30:00.000Z" });
    stage.answers(login, begun);
    stage.answers(&format!("{login}/complete"), json!({}));
    stage.answers(
        "POST /api/v1/servers/files/logout",
        json!({ "not_revoked": "it is away" }),
    );
    stage.answers("POST /api/v1/servers/files/key", json!({}));
    let send = async |act: &str, more: &[(&str, &str)]| {
        let form = [&[("token", &*token)], more].concat();
        let path = format!("/console/servers/files/{act}");
        stage.post(&path, &cookie, &form).await.body
    };
    let begun = send("sign-in", &[]).await;
    assert!(begun.contains("href=\"https://idp.example/authorize?state=s\" target=\"_blank\" rel=\"noopener noreferrer\""), "{begun}");
    let callback = "http://127.0.0.1/callback?code=c&state=s";
    let ended = send("complete", &[("callback", callback)]).await;
    assert!(ended.contains("Signed in."), "{ended}");
    let asked = send("sign-out", &[]).await;
    assert!(asked.contains("data-testid=\"confirm\""), "{asked}");
    let left = send("sign-out", &[("confirmed", "1")]).await;
    assert!(
        left.contains("were not revoked there") && left.contains("it is away"),
        "{left}"
    );
    let kept = send("key", &[("key", "k-secret")]).await;
    assert!(
        kept.contains("The key is kept") && !kept.contains("k-secret"),
        "{kept}"
    );
    let bodies: Vec<String> = stage.acts.lock().iter().map(|act| act.2.clone()).collect();
    let complete = json!({ "callback": callback }).to_string();
    assert_eq!(bodies, ["{}", &complete, "{}", "{\"key\":\"k-secret\"}"]);
    // An answer that is refused can be pasted again; a sign-in asks for a proof once that is old.
    stage.answers.lock().remove(&format!("{login}/complete"));
    let again = send("complete", &[("callback", "x")]).await;
    assert!(
        again.contains("you may not POST") && again.contains("data-testid=\"callback\""),
        "{again}"
    );
    stage.home.clock_ms.fetch_add(PROOF_MS, Ordering::Relaxed);
    for act in ["sign-in", "key"] {
        let asked = send(act, &[("key", "k")]).await;
        assert!(asked.contains("data-testid=\"proof\""), "{act}: {asked}");
    }
}

#[tokio::test]
async fn where_the_api_refuses_accounts_the_rest_of_the_page_is_shown() {
    let stage = stage(&json!([]));
    stage
        .answers
        .lock()
        .remove("GET /api/v1/accounts?server=files");
    let (cookie, _) = stage.ann().await;
    let page = stage.get("/console/servers/files", &cookie).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(
        page.body.contains("you may not GET /api/v1/accounts"),
        "{}",
        page.body
    );
}
