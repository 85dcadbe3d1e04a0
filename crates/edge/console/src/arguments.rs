//! Arguments in a page: one row for each value, with where it lies, its type and its length. A page has
//! room for so many, and says what it leaves out.

use std::collections::{HashMap, HashSet};

use data_encoding::HEXLOWER;
use html::Hostile;
use maud::{Markup, html};
use review::{Leaf, LeafKind, leaves};
use sha2::{Digest as _, Sha256};

/// A longer text is shown by its beginning and its end until the reader asks for all of it, in
/// characters. As the chat marks it.
pub const LONG_TEXT_CHARS: usize = review::LONG_VALUE_CHARS;
/// More values than these are shown only when the reader asks for all.
pub const ROWS_SHOWN_MAX: usize = 200;
/// The most values of a proposal that a page shows at all.
pub const ROWS_MAX: usize = 10_000;
/// Bytes of HTML that the texts of a card take, until the reader asks for all.
pub const CARD_BYTES_MAX: usize = 64 * 1024;
/// Bytes of HTML that the texts of a proposal take at most.
pub const FULL_BYTES_MAX: usize = 4 << 20;
/// Bytes of all the places that are compared with each other at most.
const COMPARED_BYTES_MAX: usize = 1 << 20;
/// Characters that are shown of the beginning and of the end of a long text.
const ENDS_CHARS: usize = 300;
/// Characters of a longer place, whose beginning and end are shown until the reader asks for all, and
/// of these.
const PLACE_CHARS: usize = 300;
const PLACE_ENDS_CHARS: usize = 100;

/// Room for the values of one proposal in a page. What finds none is missing.
pub(crate) struct Room {
    /// Whether the reader has asked for all.
    all: bool,
    rows: usize,
    bytes: usize,
}

impl Room {
    pub(crate) fn new(all: bool) -> Self {
        Self {
            all,
            rows: ROWS_MAX,
            bytes: if all { FULL_BYTES_MAX } else { CARD_BYTES_MAX },
        }
    }

    /// Takes room for a text, if there is enough.
    fn take(&mut self, bytes: usize) -> Option<()> {
        self.bytes = self.bytes.checked_sub(bytes)?;
        Some(())
    }

    /// A text by itself; the beginning and the end of one for which there is no room.
    pub(crate) fn words(&mut self, words: &str) -> Markup {
        let is_long = !self.all && words.chars().count() > LONG_TEXT_CHARS;
        if is_long || self.take(Hostile(words).bytes_at_most()).is_none() {
            return ends(words, ENDS_CHARS);
        }
        text(words)
    }

    /// The row of a value; `None` if there is no room for it.
    fn row(&mut self, leaf: &Leaf<'_>, marked: Option<&Marked<'_>>) -> Option<Row> {
        self.rows = self.rows.checked_sub(1)?;
        let is_long_place = !self.all && leaf.place.len() > PLACE_CHARS;
        let is_cut = !self.all && leaf.chars() > LONG_TEXT_CHARS;
        // The place alone may be longer than all that a page has room for.
        if self.all && leaf.place.len() > self.bytes {
            return None;
        }
        let place = leaf.place.to_string();
        if !is_long_place {
            self.take(Hostile(&place).bytes_at_most())?;
        }
        if !is_cut {
            self.take(Hostile(&leaf.text).bytes_at_most())?;
        }
        let cut_chars = if is_cut {
            leaf.chars()
        } else {
            place.chars().count()
        };
        let mark = marked.filter(|marked| marked.places.contains(&place));
        Some(Row {
            markup: row(leaf, &place, is_long_place, is_cut, mark),
            cut: (is_cut || is_long_place).then_some(cut_chars),
        })
    }
}

/// A value of a table.
struct Row {
    markup: Markup,
    /// Its length in characters, if it is not shown in full.
    cut: Option<usize>,
}

/// The part of a text that is not shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Its size.
    pub(crate) words: String,
    /// Whether no page has room for it.
    pub(crate) is_too_large: bool,
}

/// Rows of values.
pub(crate) struct Rows {
    pub(crate) markup: Markup,
    /// The number of values, shown or not.
    pub(crate) count: usize,
    /// The part that is not shown in full.
    pub(crate) missing: Option<Missing>,
}

impl Rows {
    /// No value at all.
    pub(crate) fn none() -> Self {
        Self {
            markup: Markup::default(),
            count: 0,
            missing: None,
        }
    }
}

/// Rows that have a mark, with its word.
pub(crate) struct Marked<'m> {
    pub(crate) places: &'m HashSet<String>,
    pub(crate) word: &'static str,
}

/// The table of the values of a JSON text, as far as there is room.
pub(crate) fn table(json: &str, room: &mut Room) -> Rows {
    marked_table(json, room, None)
}

/// The table of the values of a JSON text, some of them marked.
pub(crate) fn marked_table(json: &str, room: &mut Room, marked: Option<&Marked<'_>>) -> Rows {
    let most = if room.all { ROWS_MAX } else { ROWS_SHOWN_MAX };
    let mut rows = Vec::new();
    let mut all = leaves(json);
    let mut count = 0;
    for leaf in all.by_ref() {
        count += 1;
        let row = (rows.len() < most)
            .then(|| room.row(&leaf, marked))
            .flatten();
        let Some(row) = row else { break };
        rows.push(row);
    }
    count += all.count();
    let markup = html! {
        table class="leaves" {
            thead class="vh" { tr { th { "Where" } th { "Type" } th { "Value" } } }
            tbody { @for row in &rows { (row.markup) } }
        }
    };
    Rows {
        markup,
        count,
        missing: missing(&rows, count, room.all),
    }
}

fn missing(rows: &[Row], count: usize, is_too_large: bool) -> Option<Missing> {
    let words = if rows.len() < count {
        format!("{} values", thousands(count))
    } else {
        let cut = rows.iter().find_map(|row| row.cut)?;
        format!("{} characters of one value", thousands(cut))
    };
    Some(Missing {
        words,
        is_too_large,
    })
}

/// One value.
fn row(
    leaf: &Leaf<'_>,
    place: &str,
    is_long_place: bool,
    is_cut: bool,
    mark: Option<&Marked<'_>>,
) -> Markup {
    html! {
        tr class=[mark.map(|mark| mark.word)] {
            th scope="row" {
                @if place.is_empty() { span class="soft" { "(all)" } }
                @else if is_long_place { (ends(place, PLACE_ENDS_CHARS)) }
                @else { (text(place)) }
                @if let Some(mark) = mark { " " span class="mark care" { (mark.word) } }
            }
            td class="kind" {
                (leaf.kind.word())
                @if leaf.kind == LeafKind::Text { " " span class="soft" { (thousands(leaf.chars())) } }
            }
            td class="value" data-kind=(leaf.kind.word()) {
                @if is_cut { (ends(&leaf.text, ENDS_CHARS)) }
                @else if leaf.text.is_empty() { span class="soft" { "(empty)" } }
                @else { (text(&leaf.text)) }
            }
        }
    }
}

/// A text of others as code, from left to right.
pub(crate) fn text(text: &str) -> Markup {
    html! { code { (Hostile(text)) } }
}

/// A text in a row of a table: the beginning and the end of a long one.
pub(crate) fn shortened(words: &str) -> Markup {
    if words.chars().count() > PLACE_CHARS {
        ends(words, PLACE_ENDS_CHARS)
    } else {
        text(words)
    }
}

/// The beginning and the end of a long text, with its length and digest.
fn ends(long: &str, shown: usize) -> Markup {
    let chars = long.chars().count();
    let at = |index: usize| {
        let found = long.char_indices().nth(index);
        found.map_or(long.len(), |(at, _)| at)
    };
    let shown = shown.min(chars / 2);
    let begin = long.get(..at(shown)).unwrap_or_default();
    let end = long.get(at(chars - shown)..).unwrap_or_default();
    let digest = HEXLOWER.encode(&Sha256::digest(long.as_bytes()));
    let left_out = thousands(chars - 2 * shown);
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

/// A number with its noun.
pub(crate) fn counted(number: usize, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        thousands(number),
        if number == 1 { one } else { many }
    )
}

/// The values at one place: as proposed, and as edited. A key that occurs twice has two.
#[derive(Default)]
struct Compared<'j> {
    sides: [Vec<Leaf<'j>>; 2],
}

impl Compared<'_> {
    fn differs(&self) -> bool {
        let [proposed, edited] = &self.sides;
        let same =
            |(one, other): (&Leaf<'_>, &Leaf<'_>)| one.kind == other.kind && one.text == other.text;
        proposed.len() != edited.len() || !proposed.iter().zip(edited).all(same)
    }
}

/// Values that differ between two JSON texts, by place; `None` if there are too many to compare.
pub(crate) fn difference(proposed: &str, edited: &str) -> Option<Markup> {
    let mut at: HashMap<String, usize> = HashMap::new();
    let mut places: Vec<(String, Compared<'_>)> = Vec::new();
    let mut bytes = COMPARED_BYTES_MAX;
    for (side, json) in [proposed, edited].into_iter().enumerate() {
        for leaf in leaves(json) {
            bytes = bytes.checked_sub(leaf.place.len() + leaf.text.len() + 1)?;
            let place = leaf.place.to_string();
            let index = *at.entry(place.clone()).or_insert(places.len());
            if index == places.len() {
                places.push((place, Compared::default()));
            }
            if let Some(same) = places
                .get_mut(index)
                .and_then(|(_, one)| one.sides.get_mut(side))
            {
                same.push(leaf);
            }
        }
    }
    places.retain(|(_, one)| one.differs());
    Some(html! {
        table class="leaves" data-testid="difference" {
            thead { tr { th { "Where" } th { "As proposed" } th { "As edited" } } }
            tbody {
                @for (place, one) in &places {
                    tr {
                        th scope="row" { (text(place)) }
                        @for side in &one.sides { td class="value" { (compared(side)) } }
                    }
                }
                @if places.is_empty() { tr { td colspan="3" { "Nothing differs." } } }
            }
        }
    })
}

/// The values of one side of a comparison, with their types.
fn compared(side: &[Leaf<'_>]) -> Markup {
    html! {
        @for leaf in side { p { (text(&leaf.text)) " " span class="soft" { (leaf.kind.word()) } } }
        @if side.is_empty() { span class="soft" { "(not there)" } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(json: &str, all: bool) -> (String, bool) {
        let rows = table(json, &mut Room::new(all));
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
        assert!(shown(&of(ROWS_MAX), true).1);
        let beyond = table(&of(ROWS_MAX + 1), &mut Room::new(true));
        let expect = Missing {
            words: "10,001 values".to_owned(),
            is_too_large: true,
        };
        assert_eq!(beyond.missing, Some(expect));
    }

    #[test]
    fn a_page_is_bounded_whatever_is_proposed() {
        // 65,536 values with a place of 64 KiB each: a row for each would take 4 GiB.
        let deep = format!(
            r#"{{"{}":[{}0]}}"#,
            "k".repeat(1 << 16),
            "0,".repeat(1 << 16)
        );
        let hidden = serde_json::json!({ "a": "\u{202e}".repeat(1 << 20) }).to_string();
        for json in [deep, hidden] {
            let (page, is_full) = shown(&json, false);
            assert!(
                !is_full && page.len() < 3 * CARD_BYTES_MAX,
                "{}",
                page.len()
            );
            let mut room = Room::new(true);
            let rows = table(&json, &mut room);
            assert!(rows.missing.is_some_and(|missing| missing.is_too_large));
            assert!(rows.markup.into_string().len() < 2 * FULL_BYTES_MAX);
        }
        let mut room = Room::new(false);
        assert!(room.words(&"\u{202e}".repeat(1 << 20)).into_string().len() < CARD_BYTES_MAX);
        // Tables of one card share its room.
        let some = serde_json::json!({ "a": "x".repeat(LONG_TEXT_CHARS) }).to_string();
        let mut room = Room::new(false);
        let full = (0..100).filter(|_| table(&some, &mut room).missing.is_none());
        let full = full.count();
        assert!(
            (20..=CARD_BYTES_MAX / LONG_TEXT_CHARS).contains(&full),
            "{full}"
        );
    }

    #[test]
    fn an_edit_shows_what_differs() {
        let page = difference(
            r#"{"a":1,"b":"x","c":true,"e":"1"}"#,
            r#"{"a":1.0,"b":"x","d":null,"e":1}"#,
        )
        .unwrap()
        .into_string();
        for place in ["/a", "/c", "/d", "/e"] {
            assert!(page.contains(&format!(">{place}<")), "{place} {page}");
        }
        assert!(!page.contains(">/b<"));
        assert!(page.contains("(not there)"));
        let of_e = page.split(">/e<").nth(1).unwrap();
        let types = of_e.find(">text<").zip(of_e.find(">number<"));
        assert!(types.is_some_and(|(text, number)| text < number), "{of_e}");
        let many = serde_json::json!((0..1_000_000).collect::<Vec<_>>()).to_string();
        assert!(difference(&many, "[]").is_none());
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
        assert_eq!(counted(1, "time", "times"), "1 time");
        assert_eq!(counted(0, "time", "times"), "0 times");
    }
}
