//! Properties of any envelope and of any bytes.

use bytes::Bytes;
use json::quote;
use proptest::prelude::*;

use crate::mcpx::envelope::ID_BYTES_MAX;
use crate::mcpx::{Draft, Envelope, KIND_BYTES_MAX, envelope};

/// Any text of 1 to `max` letters, quotes, backslashes and controls among them.
fn text(max: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![
            any::<char>(),
            Just('"'),
            Just('\\'),
            Just('\u{1}'),
            Just('é')
        ],
        1..max,
    )
    .prop_map(|letters| letters.into_iter().collect())
}

/// Some JSON object, with white space between tokens.
fn object() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("-0.0".to_owned()),
        Just("1e400".to_owned()),
        Just("12345678901234567890".to_owned()),
        text(6).prop_map(|text| quote(&text)),
    ];
    let value = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|list| format!("[ {} ]", list.join(" ,"))),
            prop::collection::vec((text(4), inner), 0..4).prop_map(|list| join(&list)),
        ]
    });
    prop::collection::vec((text(4), value), 0..4).prop_map(|list| join(&list))
}

fn join(members: &[(String, String)]) -> String {
    let members: Vec<_> = members
        .iter()
        .map(|(key, raw)| format!("{}: {raw}", quote(key)))
        .collect();
    format!("{{{}}}", members.join(", "))
}

proptest! {
    #[test]
    fn written_envelopes_are_read_back(
        [id, from] in [text(30), text(30)],
        to in prop::collection::vec(text(30), 0..5),
        kind in text(60),
        ts in prop::option::of(text(8)),
        correlation_id in prop::option::of(text(30)),
        payload in object(),
    ) {
        let to: Vec<&str> = to.iter().map(String::as_str).collect();
        let (ts, correlation_id) = (ts.as_deref(), correlation_id.as_deref());
        let draft = Draft { id: &id, ts, from: &from, to: &to, kind: &kind, correlation_id, payload: payload.as_bytes() };
        let frame = envelope(&draft);
        let read = Envelope::read(frame.clone()).unwrap();
        prop_assert_eq!(&Envelope::write(&draft), &read, "the writer knows the places that a reader finds");
        let back: Vec<&str> = read.to().collect();
        let again = Draft {
            id: read.id(),
            ts: read.ts(),
            from: read.from(),
            to: &back,
            kind: read.kind(),
            correlation_id: read.correlation_id(),
            payload: read.payload(),
        };
        prop_assert_eq!(&again, &draft);
        prop_assert_eq!(envelope(&again), frame);
        prop_assert_eq!(&read.payload_bytes()[..], payload.as_bytes());
    }

    #[test]
    fn unknown_members_survive_in_any_place(
        unknown in prop::collection::vec((text(12), object()), 1..6),
        at in 0usize..6,
    ) {
        let mut members = vec![
            ("protocol".to_owned(), quote("mcpx/v0.1")),
            ("id".to_owned(), quote("e")),
            ("from".to_owned(), quote("a")),
            ("kind".to_owned(), quote("chat")),
            ("payload".to_owned(), "{}".to_owned()),
        ];
        let known: Vec<_> = ["ts", "to", "correlation_id"].map(str::to_owned).to_vec();
        for (place, (key, raw)) in unknown.into_iter().enumerate() {
            if !known.contains(&key) && members.iter().all(|(other, _)| *other != key) {
                members.insert((at + place).min(members.len()), (key, raw));
            }
        }
        let frame = Bytes::from(join(&members));
        let read = Envelope::read(frame.clone()).unwrap();
        prop_assert_eq!(read.frame(), &frame);
        prop_assert_eq!((read.id(), read.kind(), read.payload()), ("e", "chat", &b"{}"[..]));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Envelope::read(Bytes::from(bytes));
    }

    #[test]
    fn a_damaged_envelope_is_read_or_refused(at in 0usize..300, byte: u8, cut in 0usize..300) {
        let mut bytes = include_bytes!("../../../tests-data/mcpx/3.2.1-fulfilment.json").to_vec();
        bytes.truncate(bytes.len().saturating_sub(cut));
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        match Envelope::receive(Bytes::from(bytes)) {
            Ok(read) => prop_assert!(read.id().len() <= ID_BYTES_MAX && read.kind().len() <= KIND_BYTES_MAX),
            Err(breach) => prop_assert!(!breach.message.is_empty()),
        }
    }
}
