//! Texts of others within a page: escaped, and every hidden character visible as a mark of the page.

use json::visible::is_hidden;
use maud::{Render, html};
use unicode_normalization::char::is_combining_mark;

/// The shortest run of blanks that is counted, in characters. A shorter one stays as it is.
pub const COUNTED_BLANKS: usize = 4;
/// The most marks that are shown on one letter. Each further one is a chip with its code point, so
/// that none is drawn over other lines.
pub const COMBINED_MARKS: usize = 3;

/// Bytes of the longest chip, of the longest escaped character, and of what is around a text.
const CHIP_BYTES: usize = 48;
const ESCAPED_BYTES: usize = 6;
const FRAME_BYTES: usize = 64;

/// A text of others. It cannot become markup, it keeps its own direction, and no character of it hides,
/// moves or pads others: a hidden one becomes a mark with its code point, a long run of blanks one with
/// its length, a line feed one that also begins a line.
#[derive(Debug, Clone, Copy)]
pub struct Hostile<'t>(pub &'t str);

impl Hostile<'_> {
    /// The most bytes that it takes in a page.
    #[must_use]
    pub fn bytes_at_most(&self) -> usize {
        let bytes = |c: char| match c {
            '<' | '>' | '&' | '"' => ESCAPED_BYTES,
            c if is_blank(c) => CHIP_BYTES / COUNTED_BLANKS,
            c if is_hidden(c) || is_combining_mark(c) => CHIP_BYTES,
            c => c.len_utf8(),
        };
        FRAME_BYTES + self.0.chars().map(bytes).sum::<usize>()
    }
}

impl Render for Hostile<'_> {
    fn render_to(&self, out: &mut String) {
        out.push_str("<bdi dir=\"ltr\">");
        write(self.0, out);
        out.push_str("</bdi>");
    }
}

fn write(text: &str, out: &mut String) {
    let mut rest = text;
    let mut combined = 0;
    while let Some(first) = rest.chars().next() {
        combined = if is_combining_mark(first) {
            combined + 1
        } else {
            0
        };
        let taken = if is_blank(first) {
            blanks(rest, out)
        } else if is_hidden(first) || combined > COMBINED_MARKS {
            mark(first, out);
            first.len_utf8()
        } else if combined > 0 {
            out.push(first);
            first.len_utf8()
        } else {
            plain(rest, out)
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
}

/// Whether a character is empty space: blanks of every width, and the Braille pattern without dots.
fn is_blank(c: char) -> bool {
    c == '\u{2800}' || (c.is_whitespace() && !c.is_control() && !is_hidden(c))
}

/// Writes the characters up to the next one that is not plain; their length in bytes.
fn plain(text: &str, out: &mut String) -> usize {
    let is_special = |c: char| is_blank(c) || is_hidden(c) || is_combining_mark(c);
    let end = text
        .char_indices()
        .find(|(_, c)| is_special(*c))
        .map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default().render_to(out);
    end
}

/// Writes a run of blanks; its length in bytes.
fn blanks(text: &str, out: &mut String) -> usize {
    let end = text.find(|c| !is_blank(c)).unwrap_or(text.len());
    let run = text.get(..end).unwrap_or_default();
    let count = run.chars().count();
    if count < COUNTED_BLANKS {
        out.push_str(run);
    } else {
        let seen = format!("{count} blanks");
        html! { span class="chip" { (seen) } }.render_to(out);
    }
    end
}

fn mark(hidden: char, out: &mut String) {
    let seen: String = match hidden {
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '\r' => "\\r".to_owned(),
        other => other.escape_unicode().collect(),
    };
    html! { span class="chip" { (seen) } }.render_to(out);
    if hidden == '\n' {
        html! { br; }.render_to(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let page = html! { (Hostile(text)) }.into_string();
        let own = page.strip_prefix("<bdi dir=\"ltr\">").unwrap();
        own.strip_suffix("</bdi>").unwrap().to_owned()
    }

    #[test]
    fn a_text_of_others_is_no_markup() {
        assert_eq!(shown("plain, ümlaut"), "plain, ümlaut");
        assert_eq!(
            shown("</script><img src=x onerror=\"a()\">&amp;"),
            "&lt;/script&gt;&lt;img src=x onerror=&quot;a()&quot;&gt;&amp;amp;"
        );
    }

    #[test]
    fn nothing_in_it_hides_moves_or_pads() {
        let chip = |seen: &str| format!("<span class=\"chip\">{seen}</span>");
        for (text, seen) in [
            ("a\u{202e}b", format!("a{}b", chip("\\u{202e}"))),
            ("\u{e0041}", chip("\\u{e0041}")),
            ("\u{200b}\u{feff}", chip("\\u{200b}") + &chip("\\u{feff}")),
            ("a\nb", format!("a{}<br>b", chip("\\n"))),
            ("\t\r\u{0}", chip("\\t") + &chip("\\r") + &chip("\\u{0}")),
            ("a   b", "a   b".to_owned()),
            ("a    b", format!("a{}b", chip("4 blanks"))),
            ("a\u{2003}\u{a0}b", "a\u{2003}\u{a0}b".to_owned()),
            (
                "a \u{2003}\u{a0}\u{2800}\u{3000}b",
                format!("a{}b", chip("5 blanks")),
            ),
            ("e\u{301}\u{302}b", "e\u{301}\u{302}b".to_owned()),
            (
                "e\u{301}\u{301}\u{301}\u{301}\u{302}b",
                format!(
                    "e\u{301}\u{301}\u{301}{}b",
                    chip("\\u{301}") + &chip("\\u{302}")
                ),
            ),
            ("", String::new()),
        ] {
            assert_eq!(shown(text), seen, "{text:?}");
            let all = text.repeat(20);
            assert!(
                shown(&all).len() <= Hostile(&all).bytes_at_most(),
                "{text:?}"
            );
        }
    }
}
