//! Readings of the gateway's lists.

use std::collections::VecDeque;

use platform::Mutex;
use serde_json::json;

use super::*;

/// Pages of a gateway, and the queries for them.
#[derive(Default)]
struct Pages {
    left: Mutex<VecDeque<String>>,
    asked: Mutex<Vec<Vec<(&'static str, String)>>>,
}

impl Api for Pages {
    fn get(&self, _: Vec<String>, query: Vec<(&'static str, String)>) -> ApiReply<String> {
        self.asked.lock().push(query);
        let page = self.left.lock().pop_front().unwrap();
        Box::pin(async move { Ok(page) })
    }

    fn post(&self, _: Vec<String>, _: Vec<(&'static str, String)>, _: String) -> ApiReply<String> {
        unreachable!("lists are read")
    }
}

fn listed(id: &str) -> Value {
    json!({
        "id": id, "topic": "main", "state": "pending", "by": "scout", "to": [], "method": "tools/call",
        "context": "echo", "envelope": "e", "params": null, "tool": null, "digest": "d", "held": false,
        "at": "2026-07-28T12:30:00Z", "expires": "2026-07-28T12:35:00Z",
        "decided_by": null, "edited": null, "reason": null, "answer": null,
    })
}

#[tokio::test]
async fn the_inbox_has_the_proposals_of_all_pages() {
    let pages = Pages::default();
    pages.left.lock().extend([
        json!({ "proposals": [listed("a"), listed("b")], "next": "b" }).to_string(),
        json!({ "proposals": [listed("c")] }).to_string(),
    ]);
    let found = waiting(&pages, "main").await.unwrap();
    let ids: Vec<&str> = found.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    let asked = pages.asked.lock();
    let common = [("topic", "main".to_owned()), ("shown", "true".to_owned())];
    assert_eq!(asked[0], common);
    assert_eq!(
        asked[1],
        [&common[..], &[("after", "b".to_owned())]].concat()
    );
}
