//! Lists of proposals over the REST API: pages, what a list leaves out, and clients that read all
//! pages.

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::stage::pages_of;
use crate::support::{Gateway, fixture};
use crate::ws::{people, token};

/// A length of which a list leaves out a part.
const LONG: usize = 20 << 10;
/// Bytes that end a page.
const PAGE_BYTES: usize = 1 << 20;

fn gateway() -> (Home, Gateway) {
    let (home, config) = people(&[
        ("agent", &["mcp/request:*/list", "mcp/proposal:*"]),
        ("boss", &["mcp/*"]),
    ]);
    let gateway = Gateway::start(&home, &(fixture("tools", &[]) + &config));
    gateway.ready("tools");
    (home, gateway)
}

/// The ids of so many proposals of the agent, each with another text of this length.
#[track_caller]
fn propose_some(gateway: &Gateway, number: usize, bytes: usize) -> Vec<String> {
    (0..number)
        .map(|number| propose(gateway, &format!("{number}{}", "x".repeat(bytes - 1))))
        .collect()
}

/// The id of a proposal of the agent with a text.
#[track_caller]
fn propose(gateway: &Gateway, text: &str) -> String {
    let bearer = format!("Bearer {}", token("agent"));
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let body = json!({ "arguments": { "text": text } }).to_string();
    let path = "/api/v1/tools/tools_echo/call";
    let held = Connection::open(gateway.address()).exchange("POST", path, &headers, &body);
    assert_eq!(held.status, 202, "{held:?}");
    held.json()["proposal"].as_str().unwrap().to_owned()
}

fn list(gateway: &Gateway, query: &str) -> Reply {
    gateway.get(&format!("/api/v1/proposals?{query}"), Some(&token("boss")))
}

fn ids(page: &Value) -> Vec<&str> {
    let all = page["proposals"].as_array().unwrap();
    all.iter().map(|one| one["id"].as_str().unwrap()).collect()
}

#[test]
fn a_list_of_proposals_has_pages_without_gaps() {
    let (_home, gateway) = gateway();
    let made = propose_some(&gateway, 5, 1);
    let first = list(&gateway, "limit=2").json();
    assert_eq!(ids(&first), made[..2]);
    let next = first["next"].as_str().unwrap();
    assert_eq!(next, made[1]);
    // One that is over since the page before is the place where the next one begins all the same.
    let path = format!("/api/v1/proposals/{next}/reject");
    let bearer = format!("Bearer {}", token("boss"));
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let rejected = Connection::open(gateway.address()).exchange("POST", &path, &headers, "{}");
    assert_eq!(rejected.status, 200, "{rejected:?}");
    let second = list(&gateway, &format!("limit=2&after={next}")).json();
    assert_eq!(ids(&second), made[2..4]);
    let last = list(&gateway, &format!("limit=2&after={}", made[3])).json();
    assert_eq!((ids(&last), last.get("next")), (vec![&*made[4]], None));
    let all = pages_of(|query| list(&gateway, &format!("all=true&{query}")).json());
    assert_eq!(all.len(), 5);
    for (query, status, code) in [
        ("limit=0", 400, "malformed"),
        ("limit=x", 400, "malformed"),
        ("after=x", 404, "unknown_target"),
        (
            "after=00000000000000000000000000000007",
            404,
            "unknown_target",
        ),
    ] {
        let refused = list(&gateway, query);
        assert_eq!(refused.status, status, "{query}: {refused:?}");
        assert_eq!(refused.json()["code"], code, "{query}");
    }
}

#[test]
fn a_list_leaves_out_long_parts_and_one_that_is_shown_does_not() {
    let (_home, gateway) = gateway();
    let (long, short) = (propose(&gateway, &"x".repeat(LONG)), propose(&gateway, "x"));
    let listed = list(&gateway, "").json();
    let [first, second] = &listed["proposals"].as_array().unwrap()[..] else {
        panic!("{listed}")
    };
    assert_eq!(
        (&first["params"], &first["in_full"]),
        (&json!(null), &json!(false))
    );
    assert!(first["tool"].is_object(), "its definition is short");
    assert_eq!(second["id"], short);
    assert_eq!(second["params"]["arguments"], json!({ "text": "x" }));
    assert_eq!(second["in_full"], true);
    let shown = list(&gateway, "shown=true").json()["proposals"][0].clone();
    let path = format!("/api/v1/proposals/{long}");
    let alone = gateway.get(&path, Some(&token("boss"))).json();
    for whole in [shown, alone] {
        let text = whole["params"]["arguments"]["text"].as_str().unwrap();
        assert_eq!(text.len(), LONG);
        assert_eq!(whole["in_full"], true);
        assert_eq!(whole["digest"], first["digest"]);
    }
}

#[test]
fn a_page_ends_after_a_mebibyte() {
    let (_home, gateway) = gateway();
    let made = propose_some(&gateway, 5, PAGE_BYTES / 2);
    let first = list(&gateway, "shown=true").json();
    assert_eq!(ids(&first), made[..2]);
    let all = pages_of(|query| list(&gateway, &format!("shown=true&{query}")).json());
    assert_eq!(all.len(), 5);
    assert!(list(&gateway, "").json().get("next").is_none());
}

#[test]
fn the_command_lists_the_proposals_of_all_pages() {
    let (home, gateway) = gateway();
    // Just short enough for a list, so that 150 of them are more than a page.
    let made = propose_some(&gateway, 150, 8_000);
    propose(&gateway, &"x".repeat(LONG));
    assert!(list(&gateway, "limit=500").json()["next"].is_string());
    let url = gateway.url();
    let boss = token("boss");
    let run = |words: &[&str]| {
        let words = [words, &["--url", &url, "--token", &boss]].concat();
        home.run(&words).expect(0).stdout
    };
    let listed: Value = serde_json::from_str(&run(&["proposals", "ls", "--json"])).unwrap();
    assert_eq!(ids(&listed).len(), 151);
    assert_eq!(ids(&listed)[..150], made);
    let table = run(&["proposals", "ls"]);
    assert_eq!(table.matches("(long)").count(), 1, "{table}");
    // The end of an id of the last page is found.
    let last = made.last().unwrap();
    let shown = run(&["proposals", "show", &last[..31], "--json"]);
    assert!(shown.contains(last.as_str()), "{shown}");
}
