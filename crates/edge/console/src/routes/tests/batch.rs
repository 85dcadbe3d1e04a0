//! Tests of proposals that are decided together.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::arguments::LONG_TEXT_CHARS;
use crate::batch::BATCH_MAX;
use crate::routes::tests_support::{Reply, Stage, proposal};

/// A reviewer in front of an inbox that she has been shown.
struct Reviewer {
    stage: Stage,
    cookie: String,
    token: String,
}

impl Reviewer {
    async fn of(proposals: Vec<Value>) -> Self {
        let stage = Stage::new(proposals);
        let (cookie, token) = stage.ann().await;
        Self {
            stage,
            cookie,
            token,
        }
    }

    async fn inbox(&self) -> String {
        self.stage.get("/console", &self.cookie).await.body
    }

    /// Sends the form with these fields.
    async fn send(&self, act: &str, fields: &[(&str, &str)]) -> Reply {
        let form = [&[("token", &*self.token)], fields].concat();
        let path = format!("/console/batch/{act}");
        self.stage.post(&path, &self.cookie, &form).await
    }

    /// The acts that the API was asked for, without who asks.
    fn acts(&self) -> Vec<(String, String)> {
        let acts = self.stage.acts.lock();
        let act = |(path, _, body): &(String, String, String)| (path.clone(), body.clone());
        acts.iter().map(act).collect()
    }
}

fn calls(count: usize) -> Vec<Value> {
    let call = |at: usize| proposal(&format!("{at:02}"), &json!({}));
    (0..count).map(call).collect()
}

#[tokio::test]
async fn calls_of_one_tool_and_proposer_are_chosen_at_their_cards() {
    let mut all = calls(2);
    all.push(proposal("w", &json!({ "by": "worker" })));
    all.push(proposal("r", &json!({ "context": "read_file" })));
    let reviewer = Reviewer::of(all).await;
    let page = reviewer.inbox().await;
    assert_eq!(page.matches("data-testid=\"batch\"").count(), 1, "{page}");
    assert_eq!(page.matches("data-testid=\"choose\"").count(), 2, "{page}");
    assert!(page.contains("name=\"p.00\" value=\"d-00\" form=\"b-"));
    let form = page.split("id=\"b-").nth(1).unwrap();
    let own = form.split('"').next().unwrap();
    assert!(page.contains(&format!("form=\"b-{own}\"")), "{page}");
    // Enter in the line for the agent presses the first button, which is no approval.
    let reject = form.find("Reject the chosen").unwrap();
    assert!(reject < form.find("Approve the chosen").unwrap());
}

#[tokio::test]
async fn a_batch_is_confirmed_and_each_of_it_decided_by_itself() {
    let reviewer = Reviewer::of(calls(3)).await;
    let fields = [("p.00", "d-00"), ("p.02", "d-02")];
    let asked = reviewer.send("approve", &fields).await.body;
    assert!(asked.contains("Approve these 2 calls?"), "{asked}");
    assert_eq!(asked.matches("data-testid=\"asked\"").count(), 2);
    assert!(asked.contains("name=\"p.00\" value=\"d-00\""), "{asked}");
    assert!(reviewer.acts().is_empty());
    let confirmed = [&fields[..], &[("confirmed", "1")]].concat();
    let done = reviewer.send("approve", &confirmed).await.body;
    assert!(done.contains("2 of 2 were decided"), "{done}");
    let act = |id: &str| {
        (
            format!("{id}/approve"),
            format!("{{\"digest\":\"d-{id}\"}}"),
        )
    };
    assert_eq!(reviewer.acts(), [act("00"), act("02")]);
}

#[tokio::test]
async fn a_batch_is_rejected_with_one_reason() {
    let reviewer = Reviewer::of(calls(2)).await;
    let fields = [
        ("p.00", "d-00"),
        ("p.01", "d-01"),
        ("code", "context"),
        ("reason", "not today"),
    ];
    let done = reviewer.send("reject", &fields).await.body;
    assert!(done.contains("2 of 2 were decided"), "{done}");
    let body = "{\"code\":\"context\",\"reason\":\"not today\"}";
    let act = |id: &str| (format!("{id}/reject"), body.to_owned());
    assert_eq!(reviewer.acts(), [act("00"), act("01")]);
}

#[tokio::test]
async fn what_a_single_form_could_not_decide_a_batch_does_not() {
    let long = json!({ "params": { "name": "write_file", "arguments": { "text": "x".repeat(LONG_TEXT_CHARS + 1) } } });
    let mut all = calls(2);
    all.push(proposal("long", &long));
    let reviewer = Reviewer::of(all).await;
    let page = reviewer.inbox().await;
    assert_eq!(page.matches("Reject with others").count(), 1, "{page}");
    let fields = [
        ("p.00", "d-00"),
        ("p.01", "d-of-before"),
        ("p.long", "d-long"),
        ("p.gone", "d-gone"),
        ("confirmed", "1"),
    ];
    let done = reviewer.send("approve", &fields).await.body;
    for seen in [
        "1 of 4 were decided",
        "has changed since you looked",
        "Not every value was shown in full",
        "unknown",
    ] {
        assert!(done.contains(seen), "{seen}: {done}");
    }
    let paths: Vec<String> = reviewer.acts().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["00/approve"]);
    // A rejection is of what was chosen, too.
    let fields = [("p.01", "d-of-before"), ("p.long", "d-long")];
    let done = reviewer.send("reject", &fields).await.body;
    assert!(done.contains("1 of 2 were decided"), "{done}");
    assert_eq!(reviewer.acts()[1].0, "long/reject");
}

#[tokio::test]
async fn a_tool_that_may_destroy_is_named_by_hand_and_so_approved_alone() {
    let tool = json!({ "name": "write_file", "annotations": { "destructiveHint": true } });
    let all = ["7", "8"].map(|id| proposal(id, &json!({ "tool": tool })));
    let reviewer = Reviewer::of(all.into()).await;
    assert_eq!(
        reviewer.inbox().await.matches("Reject with others").count(),
        2
    );
    let fields = [
        ("p.7", "d-7"),
        ("p.8", "d-8"),
        ("confirmed", "1"),
        ("typed", "write_file"),
    ];
    let done = reviewer.send("approve", &fields).await.body;
    assert!(
        done.contains("0 of 2 were decided") && done.contains("Type the name"),
        "{done}"
    );
    assert!(reviewer.acts().is_empty());
}

#[tokio::test]
async fn different_tools_or_proposers_and_plans_are_not_decided_together() {
    let step = json!({ "id": "plan", "to": ["files"], "method": "tools/call", "context": "write_file", "params": {}, "state": "pending" });
    let all = vec![
        proposal("7", &json!({})),
        proposal("by", &json!({ "by": "worker" })),
        proposal("to", &json!({ "to": ["shop"] })),
        proposal("what", &json!({ "context": "read_file" })),
        proposal("plan", &json!({ "steps": [step] })),
    ];
    let reviewer = Reviewer::of(all).await;
    for other in ["by", "to", "what", "plan"] {
        let name = format!("p.{other}");
        let digest = format!("d-{other}");
        let fields = [("p.7", "d-7"), (&*name, &*digest), ("confirmed", "1")];
        for act in ["approve", "reject"] {
            let refused = reviewer.send(act, &fields).await;
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{other}");
            assert!(refused.body.contains("one by one"), "{}", refused.body);
        }
    }
    assert!(reviewer.acts().is_empty());
}

#[tokio::test]
async fn a_batch_has_at_least_one_and_is_bounded() {
    let reviewer = Reviewer::of(calls(BATCH_MAX + 1)).await;
    let names: Vec<(String, String)> = (0..=BATCH_MAX)
        .map(|at| (format!("p.{at:02}"), format!("d-{at:02}")))
        .collect();
    let mut fields: Vec<(&str, &str)> = names.iter().map(|(a, b)| (&**a, &**b)).collect();
    fields.push(("confirmed", "1"));
    let refused = reviewer.send("approve", &fields).await;
    assert!(
        refused.body.contains("At most 16 are decided together"),
        "{}",
        refused.body
    );
    let none = reviewer.send("reject", &[]).await;
    assert!(
        none.body.contains("Choose what to decide about"),
        "{}",
        none.body
    );
    let unknown = reviewer.send("paint", &fields).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert!(reviewer.acts().is_empty());
    let done = reviewer.send("approve", &fields[1..]).await.body;
    assert!(done.contains("16 of 16 were decided"), "{done}");
    assert_eq!(reviewer.acts().len(), BATCH_MAX);
}
