//! Words of a text as rules compare them: lower case, compatibility forms, without hidden
//! characters, look-alike letters as Latin ones.

use json::visible;
use unicode_normalization::UnicodeNormalization;

/// A word and where it begins in the text.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) at: usize,
}

/// The words of a text. A word may have the marks of paths and addresses in it.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut is_open = false;
    for (at, c) in text.char_indices() {
        if visible::is_hidden(c) && !c.is_whitespace() {
            continue;
        }
        for c in std::iter::once(c).nfkc().flat_map(char::to_lowercase) {
            if !(c.is_alphanumeric() || "_~./:@-".contains(c)) {
                // An apostrophe is no end: "don't".
                is_open &= matches!(c, '\'' | '\u{2019}');
                continue;
            }
            if !is_open {
                words.push(Word {
                    text: String::new(),
                    at,
                });
                is_open = true;
            }
            if let Some(word) = words.last_mut() {
                word.text.push(c);
            }
        }
    }
    for word in &mut words {
        if !word.text.is_ascii() {
            word.text = unicode_security::skeleton(&word.text).collect();
        }
        let kept = word.text.trim_end_matches(['.', ':', '-']);
        word.text.truncate(kept.len());
    }
    words.retain(|word| !word.text.is_empty());
    words
}
