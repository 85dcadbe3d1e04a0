//! Texts of others within a page: escaped, and every hidden character visible as a mark of the page.

use json::visible::is_hidden;
use maud::{Render, html};

/// The shortest run of blanks that is counted, in characters. A shorter one stays as it is.
pub const COUNTED_BLANKS: usize = 4;

/// A text of others. It cannot become markup, and no character of it hides, moves or pads others: a
/// hidden one becomes a mark with its code point, a long run of blanks one with its length, a line
/// feed one that also begins a line.
#[derive(Debug, Clone, Copy)]
pub struct Hostile<'t>(pub &'t str);

impl Render for Hostile<'_> {
    fn render_to(&self, out: &mut String) {
        let mut rest = self.0;
        while let Some(first) = rest.chars().next() {
            let taken = if first == ' ' {
                blanks(rest, out)
            } else if is_hidden(first) {
                mark(first, out);
                first.len_utf8()
            } else {
                plain(rest, out)
            };
            rest = rest.get(taken..).unwrap_or_default();
        }
    }
}

/// Writes the characters up to the next blank or hidden one; their length in bytes.
fn plain(text: &str, out: &mut String) -> usize {
    let end = text
        .char_indices()
        .find(|(_, c)| *c == ' ' || is_hidden(*c))
        .map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default().render_to(out);
    end
}

/// Writes a run of blanks; its length.
fn blanks(text: &str, out: &mut String) -> usize {
    let count = text.bytes().take_while(|byte| *byte == b' ').count();
    if count < COUNTED_BLANKS {
        out.extend(std::iter::repeat_n(' ', count));
    } else {
        let seen = format!("{count} blanks");
        html! { span class="chip" { (seen) } }.render_to(out);
    }
    count
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
        html! { (Hostile(text)) }.into_string()
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
            ("", String::new()),
        ] {
            assert_eq!(shown(text), seen, "{text:?}");
        }
    }
}
