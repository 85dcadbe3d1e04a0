use bytes::Bytes;
use json::JsonError;
use json::strategies::{object_of, value};
use model::ListKind;
use proptest::prelude::*;

use super::*;
use crate::rpc::Message;

fn page(kind: ListKind, result: &str) -> Result<ListPage, JsonError> {
    let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    split(kind, &Message::read(Bytes::from(frame)).unwrap())
}

#[test]
fn splits_and_renders() {
    let result = r#"{"tools":[ {"inputSchema":{}, "name":"a\u0062","x":-0.0} , {"name":"c","inputSchema":{"n":1e400}} ],"nextCursor":"","_meta":{"k":1},"ttlMs":-5,"cacheScope":"public","resultType":"complete","v":null}"#;
    let page = page(ListKind::Tools, result).unwrap();
    let keys: Vec<_> = page.items.iter().map(|item| item.key.as_str()).collect();
    assert_eq!(keys, ["ab", "c"]);
    assert_eq!(
        (page.next_cursor.as_deref(), page.ttl_ms, page.public),
        (Some(""), Some(0), true)
    );
    assert_eq!(page.items[0].get("x").unwrap(), "-0.0");
    let extras: Vec<_> = page.extras.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(extras, ["_meta", "v"]);
    let items = [(&page.items[0], Some("gh_ab")), (&page.items[1], Some("c"))];
    let hints = Hints::Modern {
        ttl_ms: 7,
        public: false,
    };
    assert_eq!(
        String::from_utf8(render(
            ListKind::Tools,
            items,
            Some("n"),
            &page.extras,
            hints
        ))
        .unwrap(),
        r#"{"tools":[{"inputSchema":{}, "name":"gh_ab","x":-0.0},{"name":"c","inputSchema":{"n":1e400}}],"nextCursor":"n","_meta":{"k":1},"v":null,"resultType":"complete","ttlMs":7,"cacheScope":"private"}"#
    );
    assert_eq!(
        render(ListKind::Prompts, [], None, &[], Hints::Legacy),
        b"{\"prompts\":[]}"
    );
}

#[test]
fn a_bad_item_affects_no_other() {
    let result = r#"{"tools":[5,{"inputSchema":{}},{"name":"x"},{"name":"y","inputSchema":[]},{"name":"z","n\u0061me":"w","inputSchema":{}},{"name":"","inputSchema":{}},{"name":"ok","inputSchema":{}}]}"#;
    let page = page(ListKind::Tools, result).unwrap();
    assert_eq!(page.items.len(), 1);
    let bad: Vec<_> = page
        .bad
        .iter()
        .map(|bad| (bad.at, bad.key.as_deref()))
        .collect();
    assert_eq!(
        bad,
        [
            (0, None),
            (1, None),
            (2, Some("x")),
            (3, Some("y")),
            (4, None),
            (5, None)
        ]
    );
}

#[test]
fn other_lists_have_their_own_keys() {
    assert_eq!(
        page(
            ListKind::Resources,
            r#"{"resources":[{"uri":"u","name":"n"}]}"#
        )
        .unwrap()
        .items[0]
            .key,
        "u"
    );
    assert_eq!(
        page(
            ListKind::Templates,
            r#"{"resourceTemplates":[{"uriTemplate":"t/{x}","name":"n"}]}"#
        )
        .unwrap()
        .items[0]
            .key,
        "t/{x}"
    );
    assert_eq!(
        page(ListKind::Tools, r#"{"prompts":[]}"#),
        Err(JsonError::NotAnArray)
    );
    assert_eq!(
        page(ListKind::Tools, r#"{"tools":{}}"#),
        Err(JsonError::NotAnArray)
    );
    assert_eq!(page(ListKind::Tools, "[]"), Err(JsonError::NotAnObject));
}

fn check_pages(items: &[Item], keys: &[Option<&str>], page_len: usize, hints: Hints) {
    let extras = [("_meta".to_owned(), Bytes::from_static(b"{}"))];
    let mut joined = RenderedList::with_capacity(1, 1);
    items
        .iter()
        .zip(keys)
        .for_each(|(item, key)| joined.push(item, *key));
    assert_eq!(
        (joined.len(), joined.is_empty()),
        (items.len(), items.is_empty())
    );
    // One page beyond the last item.
    for start in (0..=items.len() + page_len).step_by(page_len) {
        let some = items
            .iter()
            .zip(keys.iter().copied())
            .skip(start)
            .take(page_len);
        let next = (start < items.len()).then_some("next");
        let expected = render(ListKind::Tools, some, next, &extras, hints);
        let page = joined.page(
            ListKind::Tools,
            start..start + page_len,
            next,
            &extras,
            hints,
        );
        assert_eq!(
            String::from_utf8(page),
            String::from_utf8(expected),
            "{start}"
        );
    }
}

#[test]
fn pages_of_a_joined_list_equal_rendered_ones() {
    let item = |name: &str| {
        let raw = format!(r#"{{"x":1, "name":"{name}","inputSchema":{{}}}}"#);
        Item::read(ListKind::Tools, raw.into()).unwrap()
    };
    let items: Vec<Item> = ["a", "b", "c", "d", "e"].map(item).into();
    let keys = [None, Some("gh_b"), Some("c"), Some("q\"\n"), None];
    for page_len in 1..7 {
        check_pages(&items, &keys, page_len, Hints::Legacy);
        check_pages(
            &items[..1],
            &keys,
            page_len,
            Hints::Modern {
                ttl_ms: 0,
                public: false,
            },
        );
        check_pages(&[], &[], page_len, Hints::Legacy);
    }
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
