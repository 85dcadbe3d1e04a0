//! Takes secrets out of a payload before it is written: the values of members with certain names. Must not know what
//! else is in it.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};

/// Members whose values are never written, unless told otherwise. Case, `-` and `_` make no difference.
pub const REDACTED: [&str; 16] = [
    "authorization",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "client_secret",
    "token",
    "access_token",
    "refresh_token",
    "id_token",
    "api_key",
    "x-api-key",
    "private_key",
    "credentials",
    "cookie",
    "set_cookie",
];

const IN_ITS_PLACE: &[u8] = br#""[redacted]""#;

/// The names, as they are compared.
#[derive(Debug, Clone)]
pub(super) struct Redaction {
    names: Vec<String>,
    /// A bit for every ASCII character that names begin with: most keys begin with another.
    starts: u128,
}

impl Redaction {
    pub(super) fn new<S: AsRef<str>>(names: &[S]) -> Self {
        let names: Vec<String> = names.iter().map(|name| plain(name.as_ref())).collect();
        let starts = names.iter().filter_map(|name| name.bytes().next().filter(u8::is_ascii));
        let starts = starts.fold(0, |starts, byte| starts | 1 << byte);
        Self { names, starts }
    }

    /// The payload on one line, without the values of those members; `None` if it is no JSON. It is copied only if
    /// something is taken out.
    pub(super) fn apply<'p>(&self, payload: &'p [u8]) -> Option<Cow<'p, [u8]>> {
        is_json(payload).then(|| self.without(payload))
    }

    /// SHA-256 of that, or of the payload itself if it is no JSON.
    pub(super) fn digest(&self, payload: &[u8]) -> [u8; 32] {
        let short = match self.without(payload) {
            Cow::Owned(short) if is_json(payload) => Cow::Owned(short),
            // Whether it is JSON or not: nothing is to be taken out.
            Cow::Borrowed(_) | Cow::Owned(_) => Cow::Borrowed(payload),
        };
        Sha256::digest(short).into()
    }

    /// Takes out of JSON what does not belong into the log. Of anything else it makes something.
    fn without<'p>(&self, payload: &'p [u8]) -> Cow<'p, [u8]> {
        let mut out = Vec::new();
        // What lies between `from` and `at` stays and is not copied yet.
        let (mut from, mut at) = (0, 0);
        let stays = |from, to| payload.get(from..to).unwrap_or_default();
        while let Some(byte) = payload.get(at).copied() {
            match byte {
                b'"' => {
                    let end = string_end(payload, at);
                    let key = stays(at, end);
                    let colon = past_space(payload, end);
                    at = end;
                    if payload.get(colon) == Some(&b':') && self.names_it(key) {
                        out.extend_from_slice(stays(from, end));
                        out.push(b':');
                        out.extend_from_slice(IN_ITS_PLACE);
                        at = value_end(payload, past_space(payload, colon + 1));
                        from = at;
                    }
                }
                b'\n' | b'\r' | b'\t' | b' ' => {
                    out.extend_from_slice(stays(from, at));
                    at += 1;
                    from = at;
                }
                _ => at += 1,
            }
        }
        if from == 0 {
            return Cow::Borrowed(payload);
        }
        out.extend_from_slice(stays(from, at));
        Cow::Owned(out)
    }

    /// Whether a key, quotes included, is one of the names.
    fn names_it(&self, key: &[u8]) -> bool {
        let is_written = |byte: &u8| !matches!(byte, b'"' | b'-' | b'_');
        let name = key.iter().copied().filter(is_written).map(|byte| byte.to_ascii_lowercase());
        let start = name.clone().next();
        if start.is_some_and(|byte| byte.is_ascii() && byte != b'\\' && self.starts >> byte & 1 == 0) {
            return false;
        }
        if key.is_ascii() && !key.contains(&b'\\') {
            let mut likely = self.names.iter().filter(|known| known.bytes().next() == start);
            return likely.any(|known| known.bytes().eq(name.clone()));
        }
        let name = plain(&serde_json::from_slice::<String>(key).unwrap_or_default());
        self.names.contains(&name)
    }
}

fn is_json(payload: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(payload).is_ok()
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

fn past_space(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Where the string that begins at `at` ends, past its quotation mark.
fn string_end(text: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', text.get(end..).unwrap_or_default()) {
        end += found + 1;
        if text.get(end - 1) == Some(&b'"') {
            return end;
        }
        end += 1;
    }
    text.len()
}

/// Where the value that begins at `at` ends.
fn value_end(text: &[u8], at: usize) -> usize {
    let (mut end, mut depth) = (at, 0_usize);
    loop {
        match text.get(end) {
            Some(b'"') => end = string_end(text, end),
            Some(b'{' | b'[') => {
                depth += 1;
                end += 1;
            }
            // What follows a number, `true` or the like.
            Some(b',' | b'}' | b']') if depth == 0 => return end,
            Some(b'}' | b']') => {
                depth -= 1;
                end += 1;
            }
            Some(_) => {
                end += 1;
                continue;
            }
            None => return text.len(),
        }
        if depth == 0 {
            return end;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn redacted(payload: &str) -> Option<String> {
        let out = Redaction::new(&REDACTED).apply(payload.as_bytes())?;
        Some(String::from_utf8(out.into_owned()).unwrap())
    }

    #[test]
    fn values_of_named_members_are_taken_out() {
        let check = |payload: &str, expected: &str| {
            assert_eq!(redacted(payload).as_deref(), Some(expected), "{payload}");
        };
        check(r#"{"a":1.50}"#, r#"{"a":1.50}"#);
        check(r#"{"token":"x"}"#, r#"{"token":"[redacted]"}"#);
        check("{ \"Pass-Word\" :\r\n 12 , \"b\" : [1, 2] }", r#"{"Pass-Word":"[redacted]","b":[1,2]}"#);
        check(r#"{"secret":{"a":[1,"}"]},"b":true}"#, r#"{"secret":"[redacted]","b":true}"#);
        check(r#"{"a":[{"API_KEY":null}],"c":"token"}"#, r#"{"a":[{"API_KEY":"[redacted]"}],"c":"token"}"#);
        check(r#"{"\u0074oken":"x"}"#, r#"{"\u0074oken":"[redacted]"}"#);
        check("{\"to\u{212a}en\":\"x\",\"\u{212a}\":1}", "{\"to\u{212a}en\":\"[redacted]\",\"\u{212a}\":1}");
        check(r#"["token","x"]"#, r#"["token","x"]"#);
        check(r#"{"q":"a\"token\":\\"}"#, r#"{"q":"a\"token\":\\"}"#);
        check(r#"{"tokens":3}"#, r#"{"tokens":3}"#);
        let own = Redaction::new(&["Key", "\u{dc}ber"]);
        let payload = "{\"\u{212a}ey\":1,\"-\u{fc}_ber\":2,\"\\u002dkey\":3,\"ke\":4,\"b\u{212a}ey\":5}";
        let expected = "{\"\u{212a}ey\":\"[redacted]\",\"-\u{fc}_ber\":\"[redacted]\",\"\\u002dkey\":\"[redacted]\",\"ke\":4,\"b\u{212a}ey\":5}";
        assert_eq!(own.apply(payload.as_bytes()).as_deref(), Some(expected.as_bytes()));
        assert_eq!(redacted(r#"{"token":"x""#), None);
        assert_eq!(redacted(""), None);
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<i64>().prop_map(Into::into),
            "[a-z\"\\\\{}\\[\\]:, \n]{0,8}".prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
                prop::collection::btree_map("token|Secret|[a-c\"\\\\]", inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn by_tree(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Array(items) => items.iter_mut().for_each(by_tree),
            serde_json::Value::Object(members) => {
                for (name, value) in members {
                    match name.as_str() {
                        "token" | "Secret" => *value = "[redacted]".into(),
                        _ => by_tree(value),
                    }
                }
            }
            _ => {}
        }
    }

    proptest! {
        /// Of whatever bytes: no digest depends on what is never written, where that can be told.
        #[test]
        fn the_digest_is_that_of_what_would_be_written(
            payload in prop_oneof![
                any_json().prop_map(|value| value.to_string()),
                any_json().prop_map(|value| format!("{value:#}")),
                "[token\":{}\\[\\], \n\\\\1]{0,40}",
            ],
            cut: prop::sample::Index,
        ) {
            let redaction = Redaction::new(&["token", "Secret", "a", ""]);
            for payload in [payload.as_bytes(), &payload.as_bytes()[..cut.index(payload.len() + 1)]] {
                let written = redaction.apply(payload).unwrap_or(Cow::Borrowed(payload));
                prop_assert_eq!(redaction.digest(payload), <[u8; 32]>::from(Sha256::digest(&*written)));
            }
        }

        #[test]
        fn the_same_as_on_a_tree(value in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let found = redacted(&text.unwrap()).unwrap();
            prop_assert!(!found.contains('\n'));
            let mut expected = value;
            by_tree(&mut expected);
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&found).unwrap(), expected);
        }
    }
}
