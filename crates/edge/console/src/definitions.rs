//! Definitions of a server that differ from what is pinned: old against new, word by word; approving them.

use html::Hostile;
use html::parts::hidden;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use crate::api_client::{Problem, encoded};
use crate::arguments::text;
use crate::confirm::{self, Question};
use crate::outcome::Outcome;
use crate::page::{Content, Tab, command};
use crate::proof;
use crate::state::{At, Visit, decoded};

/// Bytes of the texts of definitions that a page shows. What has no room is not shown in part.
pub const DEFINITIONS_BYTES_MAX: usize = 256 * 1024;
/// The most words of a text of which those that differ are marked; a longer one is marked as a whole.
pub const MARKED_WORDS_MAX: usize = 1_000;
/// Bytes for which each change counts beside its texts.
const CHANGE_BYTES: usize = 128;

#[derive(Deserialize)]
struct PinList {
    pins: Vec<PinRow>,
}

/// A definition as the API shows it.
#[derive(Deserialize)]
struct PinRow {
    /// `tool`, `prompt` or `instructions`.
    part: String,
    name: String,
    /// `pinned`, `changed`, `new` or `gone`.
    state: String,
    /// The digest of the definition that waits for an approval.
    waiting: Option<String>,
    #[serde(default)]
    changes: Vec<Change>,
}

/// A member that differs, as JSON.
#[derive(Deserialize)]
struct Change {
    path: String,
    before: Option<String>,
    after: Option<String>,
}

impl PinRow {
    fn bytes(&self) -> usize {
        let of = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let changes = self.changes.iter();
        let bytes = |one: &Change| CHANGE_BYTES + one.path.len() + of(&one.before) + of(&one.after);
        changes.map(bytes).sum::<usize>() + self.name.len()
    }
}

/// `GET /console/servers/NAME/definitions`.
pub(crate) async fn content(visit: &Visit, name: &str) -> Result<Content, Problem> {
    let list: PinList = visit.api.get(&path_of(name)).await?;
    let (token, base) = (visit.token(), visit.base.clone());
    let server = name.to_owned();
    let write = move || Ok(page_of(&list, &server, &base, &token));
    let body = visit.console.write(write).await?;
    Ok(Content {
        tab: Tab::Servers,
        title: "Changed definitions".to_owned(),
        body,
        command: command("portmoot pins show", name),
    })
}

fn path_of(server: &str) -> String {
    format!("/api/v1/pins/{}", encoded(server))
}

fn page_of(list: &PinList, server: &str, base: &str, token: &Markup) -> Markup {
    let mut room = DEFINITIONS_BYTES_MAX;
    let mut left_out = 0;
    let mut cards = Vec::new();
    for pin in list.pins.iter().filter(|pin| pin.state != "pinned") {
        match room.checked_sub(pin.bytes()) {
            Some(rest) => {
                room = rest;
                cards.push(card(pin, server, base, token));
            }
            None => left_out += 1,
        }
    }
    html! {
        h1 { "Changed definitions of " (Hostile(server)) }
        p class="soft" { "The server writes these texts, and models read them. What is pinned stands first, then what the server lists now." }
        @if cards.is_empty() && left_out == 0 { p class="empty" { "It lists what is pinned." } }
        div class="cards" { @for card in &cards { (card) } }
        @if left_out > 0 {
            p class="said wrong" data-testid="left-out" { (left_out) " more are too long for this page. At a terminal: " code { (Hostile(&command("portmoot pins show", server))) } }
        }
        p { a href={ (base) "/servers/" (encoded(server)) } { "The server" } }
    }
}

fn card(pin: &PinRow, server: &str, base: &str, token: &Markup) -> Markup {
    html! {
        article class="card" data-testid="definition" {
            h2 { (Hostile(&pin.part)) " " (text(&pin.name)) ": " (Hostile(&pin.state)) }
            @if !pin.changes.is_empty() {
                div class="wide" tabindex="0" role="region" aria-label="What differs" {
                    table class="leaves" {
                        thead { tr { th { "Where" } th { "Pinned" } th { "Now" } } }
                        tbody { @for one in &pin.changes { (row(one)) } }
                    }
                }
            }
            @if pin.state == "gone" { p { "The server does not list it any more." } }
            @if let Some(digest) = &pin.waiting {
                form method="post" action={ (base) "/servers/" (encoded(server)) "/approve" } {
                    (token) (hidden("digest", digest)) (hidden("part", &pin.part)) (hidden("name", &pin.name)) (hidden("confirmed", ""))
                    div class="row" { button type="submit" class="main" data-arm data-testid="approve-definition" { "Approve this definition" } }
                }
            }
        }
    }
}

fn row(change: &Change) -> Markup {
    let (before, after) = sides(change);
    html! {
        tr {
            th scope="row" { @if change.path.is_empty() { span class="soft" { "(all)" } } @else { (text(&change.path)) } }
            td class="value" { (before) }
            td class="value" { (after) }
        }
    }
}

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    /// Whether it is on one side alone.
    differs: bool,
    text: String,
}

impl Piece {
    fn differing(text: &str) -> Self {
        Self {
            differs: true,
            text: text.to_owned(),
        }
    }
}

/// Both sides of a change, with marks where they differ.
fn sides(change: &Change) -> (Markup, Markup) {
    let none = || html! { span class="soft" { "(not there)" } };
    let (before, after) = (change.before.as_deref(), change.after.as_deref());
    if let (Some(before), Some(after)) = (before, after) {
        let (old, new) = pieces(&plain(before), &plain(after));
        return (marked(&old, Side::Before), marked(&new, Side::After));
    }
    let whole = |json: &str, side| marked(&[Piece::differing(&plain(json))], side);
    (
        before.map_or_else(none, |json| whole(json, Side::Before)),
        after.map_or_else(none, |json| whole(json, Side::After)),
    )
}

/// The characters of a JSON string; any other JSON as it is.
fn plain(json: &str) -> String {
    serde_json::from_str(json).unwrap_or_else(|_| json.to_owned())
}

/// The pieces of two texts.
fn pieces(before: &str, after: &str) -> (Vec<Piece>, Vec<Piece>) {
    let is_long = |text: &str| text.split_whitespace().nth(MARKED_WORDS_MAX).is_some();
    if is_long(before) || is_long(after) {
        return (
            vec![Piece::differing(before)],
            vec![Piece::differing(after)],
        );
    }
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for change in TextDiff::from_words(before, after).iter_all_changes() {
        match change.tag() {
            ChangeTag::Equal => {
                append(&mut old, false, change.value());
                append(&mut new, false, change.value());
            }
            ChangeTag::Delete => append(&mut old, true, change.value()),
            ChangeTag::Insert => append(&mut new, true, change.value()),
        }
    }
    (old, new)
}

fn append(pieces: &mut Vec<Piece>, differs: bool, text: &str) {
    match pieces.last_mut() {
        Some(last) if last.differs == differs => last.text.push_str(text),
        Some(_) | None => pieces.push(Piece {
            differs,
            text: text.to_owned(),
        }),
    }
}

/// A side of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

fn marked(pieces: &[Piece], side: Side) -> Markup {
    html! {
        @for piece in pieces {
            @match (piece.differs, side) {
                (false, _) => { (text(&piece.text)) }
                (true, Side::Before) => { del { span class="vh" { "removed: " } (text(&piece.text)) } }
                (true, Side::After) => { ins { span class="vh" { "added: " } (text(&piece.text)) } }
            }
        }
    }
}

/// `POST /console/servers/NAME/approve`: a definition is pinned as it was shown.
pub(crate) async fn approve(visit: &Visit, name: &str) -> Outcome {
    let name = decoded(name);
    let at = At::Definitions { name: name.clone() };
    let form = visit.asked.form();
    if !confirm::is_confirmed(visit) {
        let question = Question {
            tab: Tab::Servers,
            title: html! { "Approve this definition of " (Hostile(&name)) "?" },
            about: html! { p { (Hostile(form.get("part"))) " " (text(form.get("name"))) ": callers get it as the server lists it now." } },
            yes: "Yes, approve it",
            back: at.address(),
        };
        return confirm::ask(visit, question);
    }
    if let Some(asked) = proof::wanted(visit, Tab::Servers).await {
        return asked;
    }
    let body = json!({ "digests": [form.get("digest")] }).to_string();
    let path = format!("{}/approve", path_of(&name));
    let sent: Result<Value, Problem> = visit.api.post(&path, body).await;
    match sent {
        Ok(_) => Outcome::Led(at.address()),
        Err(refused) => Outcome::fail(at, refused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> (String, String) {
        let json = |text: &str| Some(serde_json::to_string(text).unwrap());
        let change = Change {
            path: "/description".to_owned(),
            before: json(before),
            after: json(after),
        };
        let (old, new) = sides(&change);
        (old.into_string(), new.into_string())
    }

    #[test]
    fn words_that_differ_are_marked_on_their_side() {
        let (old, new) = shown("Reads a file.", "Reads and sends a file.");
        assert!(!old.contains("<del>"), "{old}");
        assert_eq!(new.matches("<ins>").count(), 1, "{new}");
        let (_, inserted) = new.split_once("<ins>").unwrap();
        let (inserted, _) = inserted.split_once("</ins>").unwrap();
        assert!(inserted.contains("and sends"), "{new}");
        assert!(!inserted.contains("file"), "{new}");
        let (old, new) = shown("one two", "one three");
        assert!(
            old.contains("<del>") && new.contains("<ins>"),
            "{old} {new}"
        );
    }

    #[test]
    fn texts_of_a_server_stay_texts_in_a_comparison() {
        let evil = "</ins><img src=x onerror=alert(1)>\u{202e} \"'";
        let (old, new) = shown(&format!("same {evil}"), &format!("other {evil} {evil}"));
        for side in [old, new] {
            assert!(
                !side.contains("<img") && !side.contains('\u{202e}'),
                "{side}"
            );
            assert_eq!(
                side.matches("</ins>").count(),
                side.matches("<ins>").count()
            );
        }
        // Values that are no strings are shown as they are written.
        assert_eq!(plain("[1,\"a\"]"), "[1,\"a\"]");
        assert_eq!(plain("\"a\\nb\""), "a\nb");
    }

    #[test]
    fn a_text_of_many_words_is_marked_as_a_whole() {
        let words = |count: usize, last: &str| "a ".repeat(count - 1) + last;
        let (old, _) = pieces(&words(MARKED_WORDS_MAX, "x"), &words(MARKED_WORDS_MAX, "y"));
        assert_eq!(old.len(), 2, "{old:?}");
        let long = words(MARKED_WORDS_MAX + 1, "x");
        let (old, new) = pieces(&long, "a");
        assert_eq!(
            (old, new),
            (vec![Piece::differing(&long)], vec![Piece::differing("a")])
        );
    }
}
