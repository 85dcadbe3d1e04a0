use json::strategies::{object_of, value};
use proptest::prelude::*;

use super::*;

fn page(kind: ListKind, result: &str) -> Result<Page, JsonError> {
    let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    split(kind, &Message::read(Bytes::from(frame)).unwrap())
}

#[test]
fn splits_and_renders() {
    let result = r#"{"tools":[ {"inputSchema":{}, "name":"a\u0062","x":-0.0} , {"name":"c","inputSchema":{"n":1e400}} ],"nextCursor":"","_meta":{"k":1},"ttlMs":-5,"cacheScope":"public","resultType":"complete","v":null}"#;
    let page = page(ListKind::Tools, result).unwrap();
    let keys: Vec<_> = page.items.iter().map(|item| item.key.as_str()).collect();
    assert_eq!(keys, ["ab", "c"]);
    assert_eq!((page.next_cursor.as_deref(), page.ttl_ms, page.public), (Some(""), Some(0), true));
    assert_eq!(page.items[0].get("x").unwrap(), "-0.0");
    let extras: Vec<_> = page.extras.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(extras, ["_meta", "v"]);
    let items = [(&page.items[0], Some("gh_ab")), (&page.items[1], Some("c"))];
    let hints = Hints::Modern { ttl_ms: 7, public: false };
    assert_eq!(
        String::from_utf8(render(ListKind::Tools, items, Some("n"), &page.extras, hints)).unwrap(),
        r#"{"tools":[{"inputSchema":{}, "name":"gh_ab","x":-0.0},{"name":"c","inputSchema":{"n":1e400}}],"nextCursor":"n","_meta":{"k":1},"v":null,"resultType":"complete","ttlMs":7,"cacheScope":"private"}"#
    );
    assert_eq!(render(ListKind::Prompts, [], None, &[], Hints::Legacy), b"{\"prompts\":[]}");
}

#[test]
fn a_bad_item_costs_itself_only() {
    let result = r#"{"tools":[5,{"inputSchema":{}},{"name":"x"},{"name":"y","inputSchema":[]},{"name":"z","n\u0061me":"w","inputSchema":{}},{"name":"","inputSchema":{}},{"name":"ok","inputSchema":{}}]}"#;
    let page = page(ListKind::Tools, result).unwrap();
    assert_eq!(page.items.len(), 1);
    let bad: Vec<_> = page.bad.iter().map(|bad| (bad.at, bad.key.as_deref())).collect();
    assert_eq!(bad, [(0, None), (1, None), (2, Some("x")), (3, Some("y")), (4, None), (5, None)]);
}

#[test]
fn other_lists_have_their_own_keys() {
    assert_eq!(
        page(ListKind::Resources, r#"{"resources":[{"uri":"u","name":"n"}]}"#).unwrap().items[0].key,
        "u"
    );
    assert_eq!(
        page(ListKind::Templates, r#"{"resourceTemplates":[{"uriTemplate":"t/{x}","name":"n"}]}"#)
            .unwrap()
            .items[0]
            .key,
        "t/{x}"
    );
    assert_eq!(page(ListKind::Tools, r#"{"prompts":[]}"#), Err(JsonError::NotAnArray));
    assert_eq!(page(ListKind::Tools, r#"{"tools":{}}"#), Err(JsonError::NotAnArray));
    assert_eq!(page(ListKind::Tools, "[]"), Err(JsonError::NotAnObject));
}

proptest! {
    #[test]
    fn items_and_extras_survive(item in value(), extra in object_of(value())) {
        let tool = format!(r#"{{"x":{item},"name":"n","inputSchema":{{}},"y":{item}}}"#);
        let page = page(ListKind::Tools, &format!(r#"{{"tools":[{tool}],"_meta":{extra}}}"#)).unwrap();
        let out = render(ListKind::Tools, [(&page.items[0], Some("m"))], None, &page.extras, Hints::Legacy);
        let expect = tool.replace(r#""name":"n""#, r#""name":"m""#);
        prop_assert_eq!(String::from_utf8(out).unwrap(), format!(r#"{{"tools":[{expect}],"_meta":{extra}}}"#));
    }

    #[test]
    fn never_panics(result in "[\\[\\]{}\":,tolsname]{0,60}") {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":{result}}}}}"#);
        if let Ok(message) = Message::read(Bytes::from(frame)) {
            let _ = split(ListKind::Tools, &message);
        }
    }
}
