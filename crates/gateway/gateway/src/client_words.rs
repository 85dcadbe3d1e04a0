//! The name of a client in records.

use bytes::Bytes;

/// Characters of a client's name and version that a record has.
pub const CLIENT_WORDS_CHARS_MAX: usize = 64;

/// Name and version of a client, of its `clientInfo`.
pub(crate) struct ClientWords {
    /// The `clientInfo`, raw JSON.
    pub(crate) info: Bytes,
    /// Both in words: `claude-code 2.1.0`.
    pub(crate) words: Option<Box<str>>,
}

impl ClientWords {
    pub(crate) fn of(info: &Bytes) -> Self {
        Self {
            info: info.clone(),
            words: words(info),
        }
    }
}

fn words(info: &[u8]) -> Option<Box<str>> {
    let member = |name| json::text(json::at(info, &[name])?);
    let name = member("name").filter(|name| !name.trim().is_empty())?;
    let version = member("version").filter(|version| !version.trim().is_empty());
    let all = name.chars().chain(version.iter().flat_map(|version| {
        let spaced = std::iter::once(' ');
        spaced.chain(version.chars())
    }));
    let words: String = all.take(CLIENT_WORDS_CHARS_MAX).collect();
    Some(words.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_named_with_its_version_and_not_for_ever() {
        let of = |info: &str| words(info.as_bytes());
        let named = |words: &str| Some(Box::from(words));
        assert_eq!(
            of(r#"{"name":"claude-code","version":"2.1.0"}"#),
            named("claude-code 2.1.0")
        );
        assert_eq!(
            of(r#"{"version":"1","name":"a \"b\""}"#),
            named("a \"b\" 1")
        );
        assert_eq!(of(r#"{"name":"x","version":" "}"#), named("x"));
        for none in [
            "{}",
            r#"{"version":"1"}"#,
            r#"{"name":""}"#,
            r#"{"name":7}"#,
            "[]",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
        let long = format!(r#"{{"name":"{}","version":"1"}}"#, "\u{e4}".repeat(100));
        assert_eq!(of(&long).unwrap().chars().count(), CLIENT_WORDS_CHARS_MAX);
    }
}
