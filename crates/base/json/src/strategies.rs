//! Proptest strategies: JSON texts with the spellings that decoders lose. With feature `proptest`.

use proptest::prelude::*;

/// JSON values as text: escapes, exponents, negative zero and long integers among them.
pub fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("-0.0".to_owned()),
        Just("1e400".to_owned()),
        Just("12345678901234567890".to_owned()),
        Just("\"\\u00e9\\/\\ud83d\\ude00\"".to_owned()),
        Just("true".to_owned()),
        "[a-z \u{e9}]{0,8}".prop_map(|text| format!("\"{text}\"")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|list| format!("[{}]", list.join(" , "))),
            object_of(inner),
        ]
    })
}

/// Objects of such values, with distinct keys that no protocol knows: `kx0`, `kx1` and so on,
/// written with an escape.
pub fn object_of(inner: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::collection::vec((0..3u8, inner), 0..4).prop_map(|list| {
        let members: Vec<_> = list
            .iter()
            .enumerate()
            .map(|(at, (space, raw))| {
                format!("{}\"k\\u0078{at}\" :{raw}", " ".repeat(usize::from(*space)))
            })
            .collect();
        format!("{{{}}}", members.join(","))
    })
}
