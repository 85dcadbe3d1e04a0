//! Escaping of untrusted text for terminals: no character of it stays hidden, moves other text or colours it.

/// Whether a character has no shape of its own, or changes how others are shown: controls, direction marks, zero-width
/// and tag characters, variation selectors.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0xAD | 0x34F | 0x61C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
            | 0x2028..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB
            | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF)
}

/// Escapes text that is shown on one line: every hidden character, line feeds and tabs too, becomes `\u{...}`.
#[must_use]
pub fn line(text: &str) -> String {
    escape(text, |_| false)
}

/// Escapes text that may span lines: as [`line()`], but line feeds and tabs stay.
#[must_use]
pub fn lines(text: &str) -> String {
    escape(text, |c| c == '\n' || c == '\t')
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) && !keep(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hidden_character_becomes_visible() {
        for (text, expect) in [
            ("plain, ümlaut, 漢字", "plain, ümlaut, 漢字"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("a\nb\tc\r", "a\\u{a}b\\u{9}c\\u{d}"),
            ("abc\u{202e}txt.exe", "abc\\u{202e}txt.exe"),
            ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
            ("\u{2066}\u{e0041}\u{9b}", "\\u{2066}\\u{e0041}\\u{9b}"),
        ] {
            assert_eq!(line(text), expect);
        }
        assert_eq!(lines("a\nb\tc\r"), "a\nb\tc\\u{d}");
    }
}
