//! Arguments in a page: one row for each value, with where it lies, its type and its length.

use data_encoding::HEXLOWER;
use html::Hostile;
use maud::{Markup, html};
use review::{Leaf, LeafKind};
use sha2::{Digest as _, Sha256};

/// A longer text is shown by its beginning and its end until the reader asks for all of it, in
/// characters. As the chat marks it.
pub const LONG_TEXT_CHARS: usize = review::LONG_VALUE_CHARS;
/// More values than these are shown only when the reader asks for all.
pub const ROWS_SHOWN_MAX: usize = 200;
/// Characters that are shown of the beginning and of the end of a long text.
const ENDS_CHARS: usize = 300;

/// Rows of values.
pub(crate) struct Rows {
    pub(crate) markup: Markup,
    /// The number of values, shown or not.
    pub(crate) count: usize,
    /// The part that is not shown in full, in words.
    pub(crate) missing: Option<String>,
}

/// The table of values; `all` leaves out nothing.
pub(crate) fn table(leaves: &[Leaf], all: bool) -> Rows {
    let shown = if all { leaves.len() } else { ROWS_SHOWN_MAX };
    let is_cut = |leaf: &Leaf| !all && leaf.chars() > LONG_TEXT_CHARS;
    let rows = leaves.get(..shown.min(leaves.len())).unwrap_or_default();
    let markup = html! {
        table class="leaves" {
            thead class="vh" { tr { th { "Where" } th { "Type" } th { "Value" } } }
            tbody {
                @for leaf in rows { (row(leaf, is_cut(leaf))) }
            }
        }
    };
    let hidden_rows = leaves.len().saturating_sub(shown);
    let cut = rows.iter().find(|leaf| is_cut(leaf));
    let missing = match (cut, hidden_rows) {
        (None, 0) => None,
        (Some(leaf), 0) => Some(format!(
            "{} characters of one value",
            thousands(leaf.chars())
        )),
        (None, _) | (Some(_), _) => Some(format!("{} values", thousands(leaves.len()))),
    };
    Rows {
        markup,
        count: leaves.len(),
        missing,
    }
}

/// One value.
fn row(leaf: &Leaf, is_cut: bool) -> Markup {
    html! {
        tr {
            th scope="row" {
                @if leaf.pointer.is_empty() { span class="soft" { "(all)" } }
                @else { code { bdi dir="ltr" { (Hostile(&leaf.pointer)) } } }
            }
            td class="kind" {
                (leaf.kind.word())
                @if leaf.kind == LeafKind::Text { " " span class="soft" { (thousands(leaf.chars())) } }
            }
            td class="value" data-kind=(leaf.kind.word()) {
                @if is_cut { (ends(leaf)) }
                @else if leaf.text.is_empty() { span class="soft" { "(empty)" } }
                @else { (text(&leaf.text)) }
            }
        }
    }
}

/// A text of others as code, from left to right.
pub(crate) fn text(text: &str) -> Markup {
    html! { code { bdi dir="ltr" { (Hostile(text)) } } }
}

/// The beginning and the end of a long text, with its length and digest.
fn ends(leaf: &Leaf) -> Markup {
    let chars = leaf.chars();
    let at = |index: usize| {
        let found = leaf.text.char_indices().nth(index);
        found.map_or(leaf.text.len(), |(at, _)| at)
    };
    let begin = leaf.text.get(..at(ENDS_CHARS)).unwrap_or_default();
    let end = leaf.text.get(at(chars - ENDS_CHARS)..).unwrap_or_default();
    let digest = HEXLOWER.encode(&Sha256::digest(leaf.text.as_bytes()));
    let left_out = thousands(chars - 2 * ENDS_CHARS);
    html! {
        (text(begin))
        p class="gap" { (left_out) " characters are not shown here" }
        (text(end))
        p class="soft" { (thousands(chars)) " characters, SHA-256 " (digest.get(..16).unwrap_or_default()) }
    }
}

/// A number with a comma between thousands.
pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Values that differ between two texts, by place: as proposed, and as edited.
pub(crate) fn difference(proposed: &[Leaf], edited: &[Leaf]) -> Markup {
    let find = |leaves: &[Leaf], pointer: &str| {
        let found = leaves.iter().find(|leaf| leaf.pointer == pointer);
        found.map(|leaf| (leaf.kind, leaf.text.clone()))
    };
    let mut places: Vec<&str> = Vec::new();
    for leaf in proposed.iter().chain(edited) {
        if !places.contains(&leaf.pointer.as_str()) {
            places.push(&leaf.pointer);
        }
    }
    places.retain(|place| find(proposed, place) != find(edited, place));
    html! {
        table class="leaves" data-testid="difference" {
            thead { tr { th { "Where" } th { "As proposed" } th { "As edited" } } }
            tbody {
                @for place in &places {
                    tr {
                        th scope="row" { (text(place)) }
                        @for side in [proposed, edited] {
                            td class="value" {
                                @match find(side, place) {
                                    Some((_, value)) => { (text(&value)) }
                                    None => { span class="soft" { "(not there)" } }
                                }
                            }
                        }
                    }
                }
                @if places.is_empty() { tr { td colspan="3" { "Nothing differs." } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use review::leaves;

    use super::*;

    fn shown(json: &str, all: bool) -> (String, bool) {
        let rows = table(&leaves(json), all);
        (rows.markup.into_string(), rows.missing.is_none())
    }

    #[test]
    fn hostile_values_are_rows_that_hide_nothing() {
        let evil = serde_json::json!({
            "bidi": "abc\u{202e}txt.exe",
            "tags": "\u{e0041}\u{e0042}",
            "script": "</script><script>alert(1)</script>",
            "json": "{\"approved\": true}",
            "card": "<article class=\"card\" data-state=\"approved\"><button>Approve</button>",
            "key\u{200b}\"<b>": 1,
        });
        let (page, is_full) = shown(&evil.to_string(), false);
        assert!(is_full);
        for hidden in ['\u{202e}', '\u{e0041}', '\u{200b}'] {
            assert!(!page.contains(hidden));
        }
        for markup in ["<script", "<article", "<button", "<b>"] {
            assert!(!page.contains(markup), "{markup}");
        }
        assert!(page.contains("\\u{202e}") && page.contains("\\u{200b}"));
        assert!(page.contains("{&quot;approved&quot;: true}"));
        assert_eq!(page.matches("<tr>").count(), 7);
    }

    #[test]
    fn a_long_value_is_in_full_only_when_asked_for() {
        let of = |count: usize| serde_json::json!({ "a": "x".repeat(count) }).to_string();
        assert!(shown(&of(LONG_TEXT_CHARS), false).1);
        let (page, is_full) = shown(&of(LONG_TEXT_CHARS + 1), false);
        assert!(!is_full);
        assert!(page.contains("2,001 characters, SHA-256"), "{page}");
        assert!(page.contains("1,401 characters are not shown here"));
        assert!(page.len() < 2_000);
        let (page, is_full) = shown(&of(1 << 20), true);
        assert!(is_full && page.len() > 1 << 20);
    }

    #[test]
    fn many_values_are_in_full_only_when_asked_for() {
        let of = |count: usize| serde_json::json!((0..count).collect::<Vec<_>>()).to_string();
        assert!(shown(&of(ROWS_SHOWN_MAX), false).1);
        let (page, is_full) = shown(&of(10_000), false);
        assert!(!is_full);
        assert_eq!(page.matches("<tr>").count(), ROWS_SHOWN_MAX + 1);
        assert!(shown(&of(10_000), true).1);
    }

    #[test]
    fn an_edit_shows_what_differs() {
        let page = difference(
            &leaves(r#"{"a":1,"b":"x","c":true}"#),
            &leaves(r#"{"a":1.0,"b":"x","d":null}"#),
        )
        .into_string();
        for place in ["/a", "/c", "/d"] {
            assert!(page.contains(&format!(">{place}<")), "{place} {page}");
        }
        assert!(!page.contains(">/b<"));
        assert!(page.contains("(not there)"));
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, words) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (18_204, "18,204"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(thousands(number), words);
        }
    }
}
