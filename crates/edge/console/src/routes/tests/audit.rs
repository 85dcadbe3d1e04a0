//! Tests of the pages of the audit log and of calls.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::routes::tests_support::{Reply, Stage};

const EVIL: &str = "</script><img src=x onerror=alert(1)>\u{202e}\"'";
const ID: &str = "00000000000000000000000000000007";

fn entry(seq: u64, more: &Value) -> Value {
    let mut all = json!({
        "seq": seq, "at_ms": 1_785_241_805_000_u64 + seq, "topic": "main", "from": "scout",
        "kind": "mcp/request:tools/call:write_file", "to": ["files"], "verdict": "held", "operation": ID, "mac": "0",
    });
    for (name, value) in more.as_object().unwrap() {
        all[name] = value.clone();
    }
    all
}

fn call(more: &Value) -> Value {
    let mut all = json!({
        "operation": ID, "proposal": "9", "at": "2026-07-28T12:30:05.000Z", "topic": "main", "by": "scout",
        "method": "tools/call", "target": "write_file", "to": ["files"], "verdict": "held",
        "outcome": "completed", "decided_by": "ann", "place": "1-0",
    });
    for (name, value) in more.as_object().unwrap() {
        all[name] = value.clone();
    }
    all
}

fn page(entries: &[Value], next: &Value, cut: bool) -> Value {
    json!({ "entries": entries, "next": next, "cut": cut })
}

fn calls(calls: &[Value], next: &Value, cut: bool) -> Value {
    json!({ "calls": calls, "next": next, "cut": cut, "later_cut": cut })
}

/// A page that ann is shown, when the API has one answer.
async fn shown(path: &str, asked: &str, answer: Value) -> Reply {
    let stage = Stage::new(vec![]);
    stage.answers(&format!("GET /api/v1/audit{asked}"), answer);
    let cookie = stage.sign_in("ann").await;
    stage.get(&format!("/console{path}"), &cookie).await
}

#[tokio::test]
async fn entries_are_rows_with_the_command_that_shows_the_same() {
    let path = "/audit?kinds=chat&participant=it%27s&after=1-9";
    let asked = "?kinds=chat&participant=it%27s&after=1-9&limit=50";
    let odd = json!({ "verdict": "refused", "topic": null, "operation": null, "why": "own", "own": "write" });
    let rows = [entry(8, &json!({})), entry(7, &odd)];
    let page = shown(path, asked, page(&rows, &json!("1-5"), false)).await;
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(page.body.matches("data-testid=\"entry\"").count(), 2);
    for part in [
        "aria-current=\"page\">Audit",
        "portmoot audit query chat --participant &#39;it&#39;\\&#39;&#39;s&#39; --last 50",
        &format!("href=\"/console/calls/{ID}\""),
        "href=\"/console/audit?kinds=chat&amp;participant=it%27s&amp;after=1-5\"",
        "href=\"/console/audit?kinds=chat&amp;participant=it%27s&amp;after=1-9&amp;verify=1\"",
        "value=\"it's\"",
    ] {
        let body = page.body.replace("&#39;", "'");
        assert!(
            body.contains(&part.replace("&#39;", "'")),
            "{part}: {}",
            page.body
        );
    }
    assert!(!page.body.contains("data-testid=\"cut\""));
}

#[tokio::test]
async fn what_was_not_looked_at_is_said_and_what_is_missing_too() {
    let cut = shown("/audit", "?limit=50", page(&[], &json!("1-5"), true)).await;
    assert!(cut.body.contains("Older entries were not looked at yet"));
    assert!(cut.body.contains("Look further back") && !cut.body.contains("data-testid=\"empty\""));
    let none = shown("/audit", "?limit=50", page(&[], &Value::Null, false)).await;
    assert!(none.body.contains("No entry matches"), "{}", none.body);
    let cut = shown("/calls", "/calls?limit=50", calls(&[], &json!("1-5"), true)).await;
    assert!(
        cut.body.contains("data-testid=\"cut\"") && cut.body.contains("data-testid=\"later-cut\"")
    );
    let none = shown("/calls", "/calls?limit=50", calls(&[], &Value::Null, false)).await;
    assert!(none.body.contains("No call was made yet") && none.body.contains("/console/tools"));
    let none = "/calls?outcome=held";
    let none = shown(
        none,
        "/calls?outcome=held&limit=50",
        calls(&[], &Value::Null, false),
    )
    .await;
    assert!(none.body.contains("No call matches"));
}

#[tokio::test]
async fn a_refusal_stands_in_place_of_the_rows() {
    for path in ["/audit", "/calls", "/calls/7"] {
        // The API has no answer, and refuses.
        let refused = shown(path, "", Value::Null).await;
        assert_eq!(refused.status, StatusCode::OK, "{path}");
        assert!(refused.body.contains("data-testid=\"refused\""), "{path}");
        assert!(refused.body.contains("you may not GET"), "{path}");
        assert!(!refused.body.contains("data-testid=\"verify\""), "{path}");
    }
}

#[tokio::test]
async fn the_chain_is_checked_when_it_is_asked_for() {
    let stage = Stage::new(vec![]);
    stage.answers("GET /api/v1/audit?limit=50", page(&[], &Value::Null, false));
    let cookie = stage.sign_in("ann").await;
    let report = |intact: bool, findings: &[&str], count: u64| json!({ "intact": intact, "entries": 1_234, "head": "1234:ab", "unfinished_bytes": 3, "findings": findings, "findings_count": count });
    let verify = "GET /api/v1/audit/verify";
    stage.answers(verify, report(true, &[], 0));
    let before = stage.get("/console/audit", &cookie).await.body;
    assert!(before.contains("Check the chain") && !before.contains("data-testid=\"report\""));
    let whole = stage.get("/console/audit?verify=1", &cookie).await.body;
    assert!(
        whole.contains("intact: 1,234 entries") && whole.contains("1234:ab"),
        "{whole}"
    );
    assert!(whole.contains("3 bytes of an unfinished entry"));
    assert!(!whole.contains("data-testid=\"removed\""));
    let mut kept = report(true, &[], 0);
    kept["removed"] = json!({ "entries": 77, "head": "77:cd", "from": "2026-08-01T10:00:00Z", "until": "2026-08-02T10:00:00Z", "at": "2026-11-01T10:00:00Z", "entry": 1_200 });
    stage.answers(verify, kept);
    let kept = stage.get("/console/audit?verify=1", &cookie).await.body;
    assert!(
        kept.contains("77 older entries were removed by retention"),
        "{kept}"
    );
    stage.answers(verify, report(false, &[EVIL], 101));
    let broken = stage.get("/console/audit?verify=1", &cookie).await.body;
    assert!(
        broken.contains("NOT intact") && broken.contains("and 100 more"),
        "{broken}"
    );
    assert!(!broken.contains("<img src=x") && broken.contains("\\u{202e}"));
}

#[tokio::test]
async fn calls_lead_to_their_timelines_from_their_places() {
    let envelope = json!({ "operation": null, "proposal": null, "target": "", "topic": "other", "outcome": "admitted" });
    let rows = [call(&json!({})), call(&envelope)];
    let path = "/calls?tool=write_*&participant=scout";
    let asked = "/calls?participant=scout&tool=write_%2A&limit=50";
    let page = shown(path, asked, calls(&rows, &json!("1-5"), false))
        .await
        .body;
    for part in [
        &format!("href=\"/console/calls/{ID}?place=1-0\""),
        "href=\"/console/p/9\"",
        ">completed</bdi></span>",
        "--participant scout --last 50",
        "href=\"/console/calls?participant=scout&amp;tool=write_%2A&amp;after=1-5\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(page.matches("data-testid=\"call\"").count(), 2);
    assert_eq!(page.matches("/console/calls/").count(), 1, "one has no id");
}

#[tokio::test]
async fn a_timeline_says_what_happened_in_order() {
    let proposal = |verdict: &str, from: &str, seq| {
        let kind = "mcp/proposal:tools/call:write_file";
        entry(
            seq,
            &json!({ "kind": kind, "verdict": verdict, "from": from, "operation": "9", "digest": "dd" }),
        )
    };
    let entries = [
        entry(1, &json!({ "trace": "4bf92f3577b34da6a3ce929d0e0e4736" })),
        proposal("held", "scout", 2),
        proposal("approved", "ann", 61_001),
        proposal("completed", "scout", 61_002),
    ];
    let asked = format!("/calls/{ID}?place=1-0");
    let answer = json!({ "entries": entries, "cut": true });
    let page = shown(&asked, &asked, answer).await.body;
    assert_eq!(page.matches("data-testid=\"step\"").count(), 4);
    for part in [
        "the call waits for a decision; asked by",
        "after 1 ms",
        "after 1 min 1 s",
        "4bf92f3577b34da6a3ce929d0e0e4736",
        "href=\"/console/p/9\"",
        "There may be more entries",
        &format!("portmoot audit query --operation {ID}"),
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("needed no decision"));
    let direct = json!({ "entries": [entry(1, &json!({ "verdict": "admitted" }))], "cut": false });
    let page = shown(&asked, &asked, direct).await.body;
    assert!(page.contains("no answers of servers to calls that needed no decision"));
    assert!(!page.contains("data-testid=\"trace\"") && !page.contains("data-testid=\"cut\""));
}

#[tokio::test]
async fn hostile_entries_stay_texts_and_long_ones_are_short() {
    let long = "l".repeat(4_000);
    let evil = json!({ "from": EVIL, "kind": EVIL, "to": [EVIL, &long], "why": EVIL, "verdict": EVIL, "topic": EVIL, "own": EVIL, "operation": EVIL, "trace": EVIL, "digest": EVIL });
    let rows = [entry(1, &evil), entry(2, &json!({ "why": &long }))];
    let seen = [
        shown("/audit", "?limit=50", page(&rows, &json!(EVIL), false)).await,
        shown("/calls/7", "/calls/7", json!({ "entries": rows, "cut": false })).await,
        shown(
            "/calls",
            "/calls?limit=50",
            calls(
                &[call(&json!({ "by": EVIL, "target": EVIL, "to": [EVIL], "why": EVIL, "outcome": EVIL, "decided_by": EVIL, "operation": EVIL, "proposal": EVIL, "place": EVIL, "topic": EVIL }))],
                &json!(EVIL),
                false,
            ),
        )
        .await,
    ];
    for (at, page) in seen.iter().enumerate() {
        assert_eq!(page.status, StatusCode::OK, "{at}");
        assert!(!page.body.contains("<img src=x"), "{at}: {}", page.body);
        assert!(!page.body.contains('\u{202e}'), "{at}");
        assert!(page.body.contains("\\u{202e}"), "{at}");
    }
    assert!(!seen[0].body.contains(&long));
    assert!(seen[0].body.contains("characters are not shown here"));
    assert!(seen[1].body.contains(&long), "a timeline has all of it");
}

#[tokio::test]
async fn the_newest_rows_follow_the_log_and_older_ones_do_not() {
    use crate::asked::Form;
    use crate::state::At;
    let looks = |path: &str| {
        let (below, query) = path.split_once('?').unwrap_or((path, ""));
        At::read(below, &Form::parse(query.as_bytes()))
            .look_ms()
            .is_some()
    };
    for path in ["/audit", "/calls", "/calls?tool=x", "/calls/7?place=1-2"] {
        assert!(looks(path), "{path}");
    }
    for path in [
        "/audit?after=1-2",
        "/audit?verify=1",
        "/calls?after=1-2",
        "/calls/7",
    ] {
        assert!(!looks(path), "{path}");
    }
}
