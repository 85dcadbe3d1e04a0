//! Spelling of texts: what would need normalising, and which texts look or read alike.

use json::visible::is_hidden;
use unicode_normalization::{UnicodeNormalization, is_nfc, is_nfkc};
use unicode_security::{MixedScript, skeleton};

/// Why a text can be read in several ways; `None` if it cannot: no hidden character but line feeds
/// and tabs, in normal form NFC, letters of one script.
pub(crate) fn oddity(text: &str) -> Option<&'static str> {
    if text.is_ascii() && !text.chars().any(is_unseen) {
        return None;
    }
    if text.chars().any(is_unseen) {
        return Some("it holds a character that is not seen");
    }
    if !is_nfc(text) {
        return Some("it is not in normal form NFC");
    }
    if !text.is_single_script() {
        return Some("it mixes scripts whose letters look alike");
    }
    None
}

fn is_unseen(symbol: char) -> bool {
    is_hidden(symbol) && !matches!(symbol, '\n' | '\t')
}

/// Whether a text is a compatibility form of another one.
pub(crate) fn is_compatibility_form(text: &str) -> bool {
    !text.is_ascii() && !is_nfkc(text)
}

/// A text as a careless reader may take it: without hidden characters and blanks at its ends, in
/// lower case, each character beyond ASCII replaced by the one that it looks like. Equal for texts
/// that some reader takes for each other.
pub(crate) fn likeness(text: &str) -> String {
    if text.is_ascii() {
        return ascii_likeness(text);
    }
    let seen: String = text.chars().filter(|symbol| !is_hidden(*symbol)).collect();
    let folded = seen.nfkc().collect::<String>().to_lowercase();
    let mut shown = String::with_capacity(folded.len());
    for symbol in folded.chars() {
        if symbol.is_ascii() {
            shown.push(symbol);
        } else {
            let alone = symbol.to_string();
            shown.extend(skeleton(&alone).flat_map(char::to_lowercase));
        }
    }
    shown.trim_matches(is_blank).to_owned()
}

/// A name of a member as a careless reader may take it: in lower case, without the signs between
/// words. Many servers read `userId`, `user_id` and `USERID` as one name.
#[must_use]
pub fn name_likeness(name: &str) -> String {
    let mut shown = likeness(name);
    shown.retain(|symbol| !matches!(symbol, '_' | '-' | ' '));
    shown
}

/// Whether two texts have one [`likeness`].
pub(crate) fn are_like(one: &str, other: &str) -> bool {
    if is_plain_ascii(one) && is_plain_ascii(other) {
        let (one, other) = (one.trim_matches(is_blank), other.trim_matches(is_blank));
        return one.eq_ignore_ascii_case(other);
    }
    likeness(one) == likeness(other)
}

/// Whether a text has characters of ASCII alone that are seen, and so one form but for case and blanks.
pub(crate) fn is_plain_ascii(text: &str) -> bool {
    // Without an early end, so that the compiler looks at many bytes at once.
    let plain = text.bytes().map(|byte| (b' '..=b'~').contains(&byte));
    plain.fold(true, |all, is_plain| all & is_plain)
}

/// [`likeness`] of a text in ASCII, which has one form only: most arguments are such texts, and each rule
/// asks for it.
fn ascii_likeness(text: &str) -> String {
    let mut shown = text.to_ascii_lowercase();
    if !is_plain_ascii(&shown) {
        shown.retain(|symbol| !is_hidden(symbol));
    }
    let kept = shown.trim_matches(is_blank);
    if kept.len() == shown.len() {
        shown
    } else {
        kept.to_owned()
    }
}

fn is_blank(symbol: char) -> bool {
    symbol.is_whitespace() || symbol == '.'
}

/// Whether a text is a name that needs no quotes in a sentence.
pub(crate) fn is_plain_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// A text as a sentence shows it: bare if it is a plain name, else quoted, with every hidden
/// character visible.
pub(crate) fn named(text: &str) -> String {
    if is_plain_name(text) {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// Several things in words: `a, b or c`.
pub(crate) fn either(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// A text in quotes, with every hidden character visible.
pub(crate) fn quoted(text: &str) -> String {
    json::quote(&json::visible::line(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_texts_are_known() {
        for fine in ["", "plain text", "ümlaut", "漢字", "Борис"] {
            assert_eq!(oddity(fine), None, "{fine}");
        }
        for odd in [
            "a\u{200b}b",
            "\u{202e}abc",
            "bell\u{7}",
            "e\u{301}",
            "pаypal",
            "\u{e0041}",
        ] {
            assert!(oddity(odd).is_some(), "{odd:?}");
        }
    }

    #[test]
    fn texts_that_readers_confuse_are_alike() {
        for (one, other) in [
            ("Boss", "boss"),
            ("boss", "bo\u{200b}ss"),
            ("boss", "ｂｏｓｓ"),
            ("boss", " boss "),
            ("boss", "boss."),
            ("boss", "bоss"),
        ] {
            assert_eq!(likeness(one), likeness(other), "{one:?} {other:?}");
        }
        assert_ne!(likeness("boss"), likeness("bass"));
    }

    #[test]
    fn names_of_members_are_read_without_the_signs_between_words() {
        for name in [
            "userId",
            "user_id",
            "USERID",
            "user-id",
            "User ID",
            " user_id",
            "user_id\u{200b}",
            "ｕser_id",
        ] {
            assert_eq!(name_likeness(name), "userid", "{name:?}");
        }
        assert_eq!(name_likeness("\u{430}ccount"), "account");
        assert_ne!(name_likeness("users"), "userid");
    }

    #[test]
    fn texts_in_ascii_are_read_as_others_are() {
        // One symbol more takes the long way, and stays as it is.
        let long_way = |text: &str| {
            let read = likeness(&format!("\u{4e2d}{text}\u{4e2d}"));
            let inner = read.trim_matches('\u{4e2d}');
            inner.trim_matches(is_blank).to_owned()
        };
        let all: String = (0..128_u8).map(char::from).collect();
        for text in [
            all.as_str(),
            " .A b. ",
            "\t.\n",
            "",
            "..",
            "A\u{0}B\u{7f}",
            "x\r\ny ",
        ] {
            assert_eq!(likeness(text), long_way(text), "{text:?}");
            for other in [text, ".a B", "a b", "x\r\ny", ""] {
                let expect = likeness(text) == likeness(other);
                assert_eq!(are_like(text, other), expect, "{text:?} {other:?}");
            }
        }
        for symbol in (0..128_u8).map(char::from) {
            let text = format!("{symbol}Q{symbol}");
            assert_eq!(likeness(&text), long_way(&text), "{text:?}");
        }
    }
}
