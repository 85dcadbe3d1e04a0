//! Redaction of payloads: the values of members with secret names, replaced before a payload is
//! logged.

use std::borrow::Cow;

use json::{Span, Token, Tokens};
use sha2::{Digest, Sha256};

/// Default names of members whose values the log never holds. Comparison ignores case, `-` and `_`.
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

const REPLACEMENT: &[u8] = br#""[redacted]""#;

/// Members whose values are not kept: their names, in the form for comparison.
#[derive(Debug, Clone)]
pub struct Redaction {
    /// Sorted.
    names: Vec<String>,
    /// One bit for each ASCII character with which a key of these names can begin, the closing
    /// quote included. Most keys begin with another character.
    starts: u128,
}

impl Default for Redaction {
    fn default() -> Self {
        Self::new(&REDACTED)
    }
}

impl Redaction {
    /// The redaction of members with these names.
    pub fn new<S: AsRef<str>>(names: &[S]) -> Self {
        let mut names: Vec<String> = names.iter().map(|name| plain(name.as_ref())).collect();
        names.sort_unstable();
        let first = names
            .iter()
            .filter_map(|name| name.bytes().next().filter(u8::is_ascii));
        let cases = first.flat_map(|byte| [byte, byte.to_ascii_uppercase()]);
        let starts = cases
            .chain(*b"-_\\\"")
            .fold(0, |starts, byte| starts | 1 << byte);
        Self { names, starts }
    }

    /// The payload on one line without the values of those members; `None` if it is not JSON.
    /// Copies only a payload that changes.
    pub fn apply<'p>(&self, payload: &'p [u8]) -> Option<Cow<'p, [u8]>> {
        json::check(payload).is_ok().then(|| self.without(payload))
    }

    /// SHA-256 of the redacted payload, or of the payload itself if it is not JSON.
    pub(super) fn digest(&self, payload: &[u8]) -> [u8; 32] {
        let short = match self.without(payload) {
            Cow::Owned(short) if json::check(payload).is_ok() => Cow::Owned(short),
            // Unchanged, or not JSON.
            Cow::Borrowed(_) | Cow::Owned(_) => Cow::Borrowed(payload),
        };
        Sha256::digest(short).into()
    }

    /// JSON on one line without the values of those members. The output for a payload that is not
    /// JSON has no meaning.
    fn without<'p>(&self, payload: &'p [u8]) -> Cow<'p, [u8]> {
        let bytes = |start, end| Span { start, end }.of(payload);
        let mut tokens = Tokens::new(payload);
        let mut out = Vec::new();
        let mut key = Span::default();
        // The bytes from `from` to `end` are kept but not yet copied.
        let mut from = 0;
        let mut end = 0;
        while let Some(token) = tokens.next() {
            let token_span = tokens.span();
            if token_span.start > end {
                out.extend_from_slice(bytes(from, end));
                from = token_span.start;
            }
            match token {
                Token::Text(_) => key = token_span,
                Token::Colon if self.is_redacted(key.of(payload)) => {
                    out.extend_from_slice(bytes(from, end));
                    out.push(b':');
                    out.extend_from_slice(REPLACEMENT);
                    tokens.skip_value();
                    from = tokens.span().end;
                }
                Token::Open(_)
                | Token::Close(_)
                | Token::Comma
                | Token::Colon
                | Token::Plain(_) => {}
            }
            end = tokens.span().end;
        }
        if from == 0 && end == payload.len() {
            return Cow::Borrowed(payload);
        }
        out.extend_from_slice(bytes(from, end));
        Cow::Owned(out)
    }

    /// Whether a key, quotes included, is one of the names.
    fn is_redacted(&self, key: &[u8]) -> bool {
        if key
            .get(1)
            .is_some_and(|byte| byte.is_ascii() && self.starts >> byte & 1 == 0)
        {
            return false;
        }
        if key.is_ascii() && !key.contains(&b'\\') {
            let first = key
                .iter()
                .find(|byte| counts(**byte))
                .map(u8::to_ascii_lowercase);
            let begin = |name: &String| name.as_bytes().first().copied();
            let from = self.names.partition_point(|name| begin(name) < first);
            let mut likely = self
                .names
                .iter()
                .skip(from)
                .take_while(|name| begin(name) == first);
            return likely.any(|name| equals_name(key, name.as_bytes()));
        }
        let name = plain(&json::text(key).unwrap_or_default());
        self.names.contains(&name)
    }
}

/// Whether an ASCII key, quotes included, equals this name.
fn equals_name(key: &[u8], name: &[u8]) -> bool {
    let mut rest = name;
    for byte in key.iter().filter(|byte| counts(**byte)) {
        match rest.split_first() {
            Some((first, after)) if byte.to_ascii_lowercase() == *first => rest = after,
            Some(_) | None => return false,
        }
    }
    rest.is_empty()
}

/// Whether a byte of a key, quotes included, counts for comparison.
fn counts(byte: u8) -> bool {
    !matches!(byte, b'"' | b'-' | b'_')
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '_'))
        .flat_map(char::to_lowercase)
        .collect()
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
    fn values_of_named_members_are_replaced() {
        let check = |payload: &str, expected: &str| {
            assert_eq!(redacted(payload).as_deref(), Some(expected), "{payload}");
        };
        check(r#"{"a":1.50}"#, r#"{"a":1.50}"#);
        check(r#"{"token":"x"}"#, r#"{"token":"[redacted]"}"#);
        check(
            "{ \"Pass-Word\" :\r\n 12 , \"b\" : [1, 2] }",
            r#"{"Pass-Word":"[redacted]","b":[1,2]}"#,
        );
        check(
            r#"{"secret":{"a":[1,"}"]},"b":true}"#,
            r#"{"secret":"[redacted]","b":true}"#,
        );
        check(
            r#"{"a":[{"API_KEY":null}],"c":"token"}"#,
            r#"{"a":[{"API_KEY":"[redacted]"}],"c":"token"}"#,
        );
        check(r#"{"\u0074oken":"x"}"#, r#"{"\u0074oken":"[redacted]"}"#);
        check(
            "{\"to\u{212a}en\":\"x\",\"\u{212a}\":1}",
            "{\"to\u{212a}en\":\"[redacted]\",\"\u{212a}\":1}",
        );
        check(r#"["token","x"]"#, r#"["token","x"]"#);
        check(r#"{"q":"a\"token\":\\"}"#, r#"{"q":"a\"token\":\\"}"#);
        check(r#"{"tokens":3}"#, r#"{"tokens":3}"#);
        let own = Redaction::new(&["Key", "\u{dc}ber"]);
        let payload =
            "{\"\u{212a}ey\":1,\"-\u{fc}_ber\":2,\"\\u002dkey\":3,\"ke\":4,\"b\u{212a}ey\":5}";
        let expected = "{\"\u{212a}ey\":\"[redacted]\",\"-\u{fc}_ber\":\"[redacted]\",\"\\u002dkey\":\"[redacted]\",\"ke\":4,\"b\u{212a}ey\":5}";
        assert_eq!(
            own.apply(payload.as_bytes()).as_deref(),
            Some(expected.as_bytes())
        );
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
        /// Also for bytes that are not JSON. No digest depends on a redacted value.
        #[test]
        fn the_digest_is_that_of_the_redacted_payload(
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
        fn redaction_equals_redaction_of_a_tree(value in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let found = redacted(&text.unwrap()).unwrap();
            prop_assert!(!found.contains('\n'));
            let mut expected = value;
            by_tree(&mut expected);
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&found).unwrap(), expected);
        }
    }
}
