//! Tests of the pages of participants, their tokens and rights, and of the coverage by rules.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::coverage::COVERAGE_PARTICIPANTS_MAX;
use crate::rights::RIGHTS_SHOWN_MAX;
use crate::routes::tests_support::Stage;

const EVIL: &str = "</script><img src=x onerror=alert(1)>\u{202e}\"'";

fn participant(id: &str, links: usize, grants: &Value) -> Value {
    json!({
        "id": id, "topic": "main", "role": "caller", "links": links, "clients": ["claude-code 2.1"],
        "capabilities": ["mcp/request:*/list", "mcp/proposal:*", "chat"], "grants": grants,
    })
}

fn grant() -> Value {
    json!([{
        "capability": "chat", "given": true, "by": "boss", "reason": "for today",
        "at": "2026-07-28T12:30:00.000Z", "expires": "2099-07-28T12:30:00.000Z",
    }])
}

fn token(name: &str) -> Value {
    json!({ "name": name, "capabilities": ["chat"], "topics": null, "configured": false, "created_ms": 0, "expires_ms": 86_400_000 })
}

fn right(name: &str, verdict: &str) -> Value {
    let way = json!({ "verdict": verdict, "capability": "mcp/proposal:*" });
    let way = if verdict.is_empty() { Value::Null } else { way };
    json!({ "topic": "main", "server": "files", "method": "tools/call", "name": name, "own": name, "rules": "ask", "mcp": way, "ws": null })
}

fn rights(entries: &[Value]) -> Value {
    let topic = json!({ "topic": "main", "capabilities": ["mcp/proposal:*"], "shadow": { "words": "of 2 acts 1 refused" } });
    json!({ "participant": "scout", "wires": ["mcp"], "topics": [topic], "entries": entries })
}

/// A stage on which scout and worker may come in.
fn stage() -> Stage {
    let stage = Stage::new(vec![]);
    let all = [
        participant("scout", 2, &grant()),
        participant("worker", 0, &json!([])),
    ];
    stage.answers("GET /api/v1/participants", json!({ "participants": all }));
    stage.answers(
        "GET /api/v1/tokens",
        json!({ "tokens": [token("scout"), token("other")] }),
    );
    let entries = [right("write_file", "may propose"), right("remove_file", "")];
    stage.answers("GET /api/v1/participants/scout/can", rights(&entries));
    stage
}

#[tokio::test]
async fn participants_are_listed_with_what_the_api_says_of_them() {
    let stage = stage();
    let (cookie, _) = stage.ann().await;
    let page = stage.get("/console/access", &cookie).await.body;
    for seen in [
        "yes, 2 connections",
        ">no<",
        "claude-code 2.1",
        "1 capabilities",
        "href=\"/console/access/scout\"",
        "1970-01-02 00:00 UTC",
        "portmoot participants ls",
        "portmoot token ls",
    ] {
        assert!(page.contains(seen), "{seen}: {page}");
    }
    assert_eq!(page.matches("data-testid=\"token\"").count(), 2);
    // Without the right to see tokens the page has the refusal in their place.
    stage.answers.lock().remove("GET /api/v1/tokens");
    let page = stage.get("/console/access", &cookie).await.body;
    assert!(page.contains("you may not GET /api/v1/tokens"), "{page}");
    assert!(page.contains("data-testid=\"participant\""));
}

#[tokio::test]
async fn a_participant_has_a_page_with_its_rights_tokens_and_changes() {
    let stage = stage();
    let (cookie, _) = stage.ann().await;
    let page = stage.get("/console/access/scout", &cookie).await.body;
    for seen in [
        "may propose",
        "mcp/proposal:*",
        "What it may not do: 1",
        "of 2 acts 1 refused",
        "for today",
        "portmoot participants can scout",
        "Revoke its tokens",
        "Undo all changes",
    ] {
        assert!(page.contains(seen), "{seen}: {page}");
    }
    assert_eq!(page.matches("data-testid=\"token\"").count(), 1);
    // Each part has the refusal in its place.
    stage
        .answers
        .lock()
        .retain(|asked, _| !asked.ends_with("/can"));
    let page = stage.get("/console/access/scout", &cookie).await.body;
    assert!(page.contains("you may not GET /api/v1/participants/scout/can"));
    assert!(page.contains("Revoke its tokens"), "{page}");
}

#[tokio::test]
async fn more_rights_than_a_page_has_are_counted() {
    let stage = stage();
    let (cookie, _) = stage.ann().await;
    let many = |count: usize| {
        let entries: Vec<Value> = (0..count)
            .map(|at| right(&format!("t{at}"), "may"))
            .collect();
        rights(&entries)
    };
    for (count, is_more) in [(RIGHTS_SHOWN_MAX, false), (RIGHTS_SHOWN_MAX + 1, true)] {
        stage.answers("GET /api/v1/participants/scout/can", many(count));
        let page = stage.get("/console/access/scout", &cookie).await.body;
        let rows = page.matches("data-testid=\"right\"").count();
        assert_eq!(rows, RIGHTS_SHOWN_MAX);
        assert_eq!(page.contains("1 more are not listed here"), is_more);
    }
}

#[tokio::test]
async fn every_act_about_a_participant_is_confirmed_and_goes_to_the_api() {
    let stage = stage();
    let (cookie, token) = stage.ann().await;
    let grants = "/api/v1/participants/scout/grants";
    for (request, answer) in [
        ("DELETE /api/v1/tokens/scout".to_owned(), json!({})),
        (format!("DELETE {grants}"), Value::Null),
        (format!("POST {grants}?topic=main"), json!({})),
    ] {
        stage.answers(&request, answer);
    }
    let give = [
        ("capability", "chat"),
        ("for", "3600"),
        ("in", "main"),
        ("reason", "why"),
    ];
    let given = "{\"add\":[\"chat\"],\"expires_in_seconds\":3600,\"reason\":\"why\"}";
    let endless = [("capability", "chat"), ("for", "never"), ("in", "main")];
    let without_end = "{\"add\":[\"chat\"],\"expires_in_seconds\":null,\"reason\":null}";
    let take = [("capability", "chat"), ("in", "main")];
    let taken = "{\"reason\":null,\"remove\":[\"chat\"]}";
    for (act, fields, request, body) in [
        (
            "revoke-tokens",
            &[][..],
            "DELETE /api/v1/tokens/scout".to_owned(),
            "",
        ),
        ("undo", &[], format!("DELETE {grants}"), ""),
        ("give", &give, format!("POST {grants}?topic=main"), given),
        (
            "give",
            &endless,
            format!("POST {grants}?topic=main"),
            without_end,
        ),
        ("take", &take, format!("POST {grants}?topic=main"), taken),
    ] {
        let form = [&[("token", &*token)], fields].concat();
        let path = format!("/console/access/scout/{act}");
        let asked = stage.post(&path, &cookie, &form).await;
        assert!(
            asked.body.contains("data-testid=\"confirm\""),
            "{act}: {}",
            asked.body
        );
        assert!(stage.acts.lock().is_empty(), "{act}");
        let form = [&form[..], &[("confirmed", "1")]].concat();
        let done = stage.post(&path, &cookie, &form).await;
        assert!(
            done.body.contains("data-testid=\"done\""),
            "{act}: {}",
            done.body
        );
        assert!(done.body.contains("data-at=\"/access/scout\""));
        let act = stage.acts.lock().pop().unwrap();
        assert_eq!(act, (request, "Bearer t-ann".to_owned(), body.to_owned()));
    }
}

#[tokio::test]
async fn what_the_api_refuses_about_a_participant_is_said_in_words() {
    let stage = stage();
    let (cookie, token) = stage.ann().await;
    let form = [("token", &*token), ("confirmed", "1")];
    let path = "/console/access/scout/revoke-tokens";
    let refused = stage.post(path, &cookie, &form).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(
        refused
            .body
            .contains("you may not DELETE /api/v1/tokens/scout")
    );
    // Without a span of the page nothing is given.
    let form = [
        ("token", &*token),
        ("confirmed", "1"),
        ("capability", "chat"),
    ];
    let refused = stage
        .post("/console/access/scout/give", &cookie, &form)
        .await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let nowhere = stage
        .post("/console/access/scout/paint", &cookie, &form)
        .await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND);
    assert!(stage.acts.lock().is_empty());
}

#[tokio::test]
async fn names_of_others_stay_texts_where_access_and_coverage_are_shown() {
    let stage = stage();
    let mut evil = participant(EVIL, 1, &grant());
    for key in ["role", "topic"] {
        evil[key] = json!(EVIL);
    }
    evil["clients"] = json!([EVIL]);
    evil["capabilities"] = json!([EVIL]);
    evil["grants"][0]["reason"] = json!(EVIL);
    let all = json!({ "participants": [evil] });
    stage.answers("GET /api/v1/participants", all.clone());
    stage.answers("GET /api/v1/participants?topic=main", all);
    stage.answers("GET /api/v1/topics/main/rules", json!({ "rules": [] }));
    let mut entry = right(EVIL, "may");
    entry["server"] = json!(EVIL);
    let name = crate::api_client::encoded(EVIL);
    for query in ["", "?topic=main"] {
        let asked = format!("GET /api/v1/participants/{name}/can{query}");
        stage.answers(&asked, rights(&[entry.clone()]));
    }
    let (cookie, _) = stage.ann().await;
    let own = format!("/console/access/{name}");
    for path in ["/console/access", &*own, "/console/rules/coverage"] {
        let page = stage.get(path, &cookie).await.body;
        assert!(page.contains("&lt;img src=x"), "{path}: {page}");
        assert!(!page.contains("<img src=x"), "{path}: {page}");
        // A field that is not shown brings the name back as it is.
        let shown: String = page
            .split("value=\"")
            .map(|part| part.split_once('"').map_or(part, |(_, shown)| shown))
            .collect();
        assert!(!shown.contains('\u{202e}'), "{path}: {shown}");
        assert_eq!(page.matches("</script>").count(), 1, "{path}");
    }
}

#[tokio::test]
async fn the_coverage_page_says_what_no_rule_and_no_approval_covers() {
    let stage = stage();
    let all = [
        participant("scout", 2, &grant()),
        participant("worker", 0, &json!([])),
    ];
    stage.answers(
        "GET /api/v1/participants?topic=main",
        json!({ "participants": all }),
    );
    let rule = json!({
        "rule": "r1.1", "author": "ann", "decision": "approve", "method": "tools/call", "target": "write_file", "to": "files",
        "proposers": ["scout"], "sentence": "s", "state": "in force", "used": 0, "origin": "file",
    });
    stage.answers("GET /api/v1/topics/main/rules", json!({ "rules": [rule] }));
    let entries = [
        right("write_file", "may propose"),
        right("read_file", "may"),
    ];
    stage.answers(
        "GET /api/v1/participants/scout/can?topic=main",
        rights(&entries),
    );
    let (cookie, _) = stage.ann().await;
    let rules = stage.get("/console/rules", &cookie).await.body;
    assert!(
        rules.contains("href=\"/console/rules/coverage?topic=main\""),
        "{rules}"
    );
    let page = stage.get("/console/rules/coverage", &cookie).await.body;
    for seen in [
        "1 of 2 tools may be called at once by one of the 1 participants",
        "not covered",
        "(<bdi dir=\"ltr\">r1.1</bdi>)",
        // Ann herself and worker, of whom this API says nothing.
        "You may not know of all participants",
        "Of them 2 are here now",
        "portmoot rules ls --topic main",
    ] {
        assert!(page.contains(seen), "{seen}: {page}");
    }
    assert!(page.find("read_file") < page.find("write_file"), "{page}");
}

#[tokio::test]
async fn participants_beyond_the_bound_are_said_not_to_count() {
    let stage = Stage::new(vec![]);
    stage.answers("GET /api/v1/topics/main/rules", json!({ "rules": [] }));
    let (cookie, _) = stage.ann().await;
    for (count, is_left_out) in [
        (COVERAGE_PARTICIPANTS_MAX - 1, false),
        (COVERAGE_PARTICIPANTS_MAX, true),
    ] {
        let all: Vec<Value> = (0..count)
            .map(|at| participant(&format!("p{at}"), 0, &json!([])))
            .collect();
        let list = json!({ "participants": all });
        stage.answers("GET /api/v1/participants?topic=main", list);
        let page = stage.get("/console/rules/coverage", &cookie).await.body;
        assert!(page.contains("0 of 0 tools"), "{page}");
        assert_eq!(page.contains("1 more are not counted here"), is_left_out);
    }
}
