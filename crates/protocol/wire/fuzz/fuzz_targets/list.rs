//! Any bytes as the page of a list; the items of a page must survive rendering.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use wire::mcp::ListKind;
use wire::mcp::list::{Hints, render, split};
use wire::rpc::{Id, Message, result};

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = Message::read(Bytes::copy_from_slice(bytes)) else {
        return;
    };
    for kind in ListKind::ALL {
        let Ok(page) = split(kind, &message) else {
            continue;
        };
        let items = page.items.iter().map(|item| (item, None));
        let raw = render(
            kind,
            items,
            page.next_cursor.as_deref(),
            &page.extras,
            Hints::Legacy,
        );
        let again =
            Message::read(result(&Id::number(1), &raw)).expect("a rendered page is a result");
        let again = split(kind, &again).expect("a rendered page is a page");
        assert_eq!(
            (again.items, again.next_cursor),
            (page.items, page.next_cursor)
        );
    }
});
