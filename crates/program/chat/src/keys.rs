//! The table of keys: what each does and where. The help screen, the documentation and the dispatch
//! read it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Context in which a key works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyContext {
    /// Everywhere.
    Anywhere,
    /// While a message is typed.
    Talk,
    /// While the inbox is open.
    Inbox,
    /// While suggested rules are shown.
    Suggestions,
    /// While a line is asked for: a reason, arguments.
    Line,
}

/// Act of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Deed {
    Help,
    OtherPane,
    Calls,
    Redraw,
    Interrupt,
    Leave,
    Send,
    Complete,
    Earlier,
    Later,
    PageUp,
    PageDown,
    Top,
    Bottom,
    Line(Edit),
    Back,
    Next,
    Previous,
    Decide(Decide),
    Suggestions,
    PutInForce,
    Refuse,
}

/// Act of a key in a line that is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Edit {
    Left,
    Right,
    Home,
    End,
    Backspace,
    Delete,
    WordBack,
    CutBefore,
    CutAfter,
}

/// Act of a key on the proposal whose card is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Decide {
    Approve,
    ApproveWithNote,
    Reject,
    Edit,
    EditOutside,
    Allow,
    Claim,
    Extend,
    Withdraw,
    Pause,
}

/// A row of the table.
#[derive(Debug)]
pub struct Binding {
    /// The names of the keys.
    pub keys: &'static [&'static str],
    /// Context in which the keys work.
    pub place: KeyContext,
    /// Act of the keys.
    pub deed: Deed,
    /// The act in words.
    pub words: &'static str,
}

const fn key(
    place: KeyContext,
    keys: &'static [&'static str],
    deed: Deed,
    words: &'static str,
) -> Binding {
    Binding {
        keys,
        place,
        deed,
        words,
    }
}

/// All keys.
pub const KEYS: &[Binding] = &[
    key(
        KeyContext::Anywhere,
        &["F1"],
        Deed::Help,
        "this help; any key but those that scroll closes it",
    ),
    key(
        KeyContext::Anywhere,
        &["F2"],
        Deed::OtherPane,
        "the inbox, and back to the talk",
    ),
    key(
        KeyContext::Anywhere,
        &["F3"],
        Deed::Calls,
        "show the calls of others, or stop showing them",
    ),
    key(
        KeyContext::Anywhere,
        &["Ctrl-L"],
        Deed::Redraw,
        "draw the screen again",
    ),
    key(
        KeyContext::Anywhere,
        &["Ctrl-C"],
        Deed::Interrupt,
        "drop what is typed or asked; with nothing to drop, leave",
    ),
    key(
        KeyContext::Talk,
        &["Enter"],
        Deed::Send,
        "send the line, or run the command that begins with /",
    ),
    key(
        KeyContext::Talk,
        &["Tab"],
        Deed::Complete,
        "complete the word; on an empty line, open the inbox",
    ),
    key(
        KeyContext::Talk,
        &["Up"],
        Deed::Earlier,
        "the line that was typed before",
    ),
    key(
        KeyContext::Talk,
        &["Down"],
        Deed::Later,
        "the line that was typed after it",
    ),
    key(KeyContext::Talk, &["PgUp"], Deed::PageUp, "scroll back"),
    key(KeyContext::Talk, &["PgDn"], Deed::PageDown, "scroll on"),
    key(
        KeyContext::Talk,
        &["Ctrl-Home"],
        Deed::Top,
        "the oldest entry that is kept",
    ),
    key(
        KeyContext::Talk,
        &["Ctrl-End", "Esc"],
        Deed::Bottom,
        "the newest entry",
    ),
    key(
        KeyContext::Talk,
        &["Ctrl-D"],
        Deed::Leave,
        "leave, if the line is empty",
    ),
    key(
        KeyContext::Line,
        &["Left", "Ctrl-B"],
        Deed::Line(Edit::Left),
        "one character to the left",
    ),
    key(
        KeyContext::Line,
        &["Right", "Ctrl-F"],
        Deed::Line(Edit::Right),
        "one character to the right",
    ),
    key(
        KeyContext::Line,
        &["Home", "Ctrl-A"],
        Deed::Line(Edit::Home),
        "the beginning of the line",
    ),
    key(
        KeyContext::Line,
        &["End", "Ctrl-E"],
        Deed::Line(Edit::End),
        "the end of the line",
    ),
    key(
        KeyContext::Line,
        &["Backspace"],
        Deed::Line(Edit::Backspace),
        "delete the character before the cursor",
    ),
    key(
        KeyContext::Line,
        &["Delete"],
        Deed::Line(Edit::Delete),
        "delete the character under the cursor",
    ),
    key(
        KeyContext::Line,
        &["Ctrl-W"],
        Deed::Line(Edit::WordBack),
        "delete the word before the cursor",
    ),
    key(
        KeyContext::Line,
        &["Ctrl-U"],
        Deed::Line(Edit::CutBefore),
        "delete everything before the cursor",
    ),
    key(
        KeyContext::Line,
        &["Ctrl-K"],
        Deed::Line(Edit::CutAfter),
        "delete everything after the cursor",
    ),
    key(
        KeyContext::Inbox,
        &["j", "Down"],
        Deed::Next,
        "the next proposal",
    ),
    key(
        KeyContext::Inbox,
        &["k", "Up"],
        Deed::Previous,
        "the one before",
    ),
    key(
        KeyContext::Inbox,
        &["Space", "PgDn"],
        Deed::PageDown,
        "read on in the card",
    ),
    key(KeyContext::Inbox, &["b", "PgUp"], Deed::PageUp, "read back"),
    key(
        KeyContext::Inbox,
        &["g", "Home"],
        Deed::Top,
        "the beginning of the card",
    ),
    key(KeyContext::Inbox, &["G", "End"], Deed::Bottom, "its end"),
    key(
        KeyContext::Inbox,
        &["a"],
        Deed::Decide(Decide::Approve),
        "approve; what may be destructive needs y as a second key",
    ),
    key(
        KeyContext::Inbox,
        &["A"],
        Deed::Decide(Decide::ApproveWithNote),
        "approve, with a note for the proposer",
    ),
    key(
        KeyContext::Inbox,
        &["r"],
        Deed::Decide(Decide::Reject),
        "reject, with a reason for the proposer",
    ),
    key(
        KeyContext::Inbox,
        &["e"],
        Deed::Decide(Decide::Edit),
        "edit the arguments here, then approve; of your own proposal: amend it",
    ),
    key(
        KeyContext::Inbox,
        &["E"],
        Deed::Decide(Decide::EditOutside),
        "edit them in $VISUAL or $EDITOR, then the same",
    ),
    key(
        KeyContext::Inbox,
        &["h"],
        Deed::Decide(Decide::Allow),
        "approve, and the like of it for 15 minutes, 1 hour or 8 hours, by a rule",
    ),
    key(
        KeyContext::Inbox,
        &["c"],
        Deed::Decide(Decide::Claim),
        "show others for five minutes that you look at it",
    ),
    key(
        KeyContext::Inbox,
        &["t"],
        Deed::Decide(Decide::Extend),
        "give ten minutes more to decide",
    ),
    key(
        KeyContext::Inbox,
        &["w"],
        Deed::Decide(Decide::Withdraw),
        "withdraw a proposal of your own, with a reason",
    ),
    key(
        KeyContext::Inbox,
        &["p"],
        Deed::Decide(Decide::Pause),
        "pause its proposer, with a reason: its calls wait until /resume",
    ),
    key(
        KeyContext::Inbox,
        &["s"],
        Deed::Suggestions,
        "the rules that are suggested to you, learned from your approvals",
    ),
    key(KeyContext::Inbox, &["?"], Deed::Help, "this help"),
    key(
        KeyContext::Inbox,
        &["Esc", "q", "Tab"],
        Deed::Back,
        "back to the talk",
    ),
    key(
        KeyContext::Suggestions,
        &["j", "Down"],
        Deed::Next,
        "the next one",
    ),
    key(
        KeyContext::Suggestions,
        &["k", "Up"],
        Deed::Previous,
        "the one before",
    ),
    key(
        KeyContext::Suggestions,
        &["Space", "PgDn"],
        Deed::PageDown,
        "read on",
    ),
    key(
        KeyContext::Suggestions,
        &["b", "PgUp"],
        Deed::PageUp,
        "read back",
    ),
    key(
        KeyContext::Suggestions,
        &["a"],
        Deed::PutInForce,
        "put the rule in force, on your authority; y as a second key",
    ),
    key(
        KeyContext::Suggestions,
        &["r"],
        Deed::Refuse,
        "refuse it for good; y as a second key",
    ),
    key(KeyContext::Suggestions, &["?"], Deed::Help, "this help"),
    key(
        KeyContext::Suggestions,
        &["Esc", "q", "s"],
        Deed::Back,
        "back to the proposals",
    ),
];

/// The name of a key, as the table spells it. Characters are their own names.
#[must_use]
pub fn name(key: KeyEvent) -> String {
    let plain = match key.code {
        KeyCode::Char(' ') => "Space".to_owned(),
        KeyCode::Char(c) if key.modifiers.contains(KeyModifiers::CONTROL) => {
            c.to_ascii_uppercase().to_string()
        }
        KeyCode::Char(c) => c.to_string(),
        KeyCode::PageUp => "PgUp".to_owned(),
        KeyCode::PageDown => "PgDn".to_owned(),
        KeyCode::F(number) => format!("F{number}"),
        other => format!("{other:?}"),
    };
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        format!("Ctrl-{plain}")
    } else {
        plain
    }
}

/// Act of a key in a place.
#[must_use]
pub fn deed(place: KeyContext, pressed: KeyEvent) -> Option<Deed> {
    let name = name(pressed);
    let works = |binding: &&Binding| {
        (binding.place == place || binding.place == KeyContext::Anywhere)
            && binding.keys.contains(&name.as_str())
    };
    KEYS.iter().find(works).map(|binding| binding.deed)
}

/// The table as text: for the help screen, and for the documentation, which a test compares.
#[must_use]
pub fn table() -> Vec<(KeyContext, Vec<(String, &'static str)>)> {
    [
        KeyContext::Anywhere,
        KeyContext::Talk,
        KeyContext::Line,
        KeyContext::Inbox,
        KeyContext::Suggestions,
    ]
    .map(|place| {
        let here = KEYS.iter().filter(|binding| binding.place == place);
        (
            place,
            here.map(|binding| (binding.keys.join(", "), binding.words))
                .collect(),
        )
    })
    .into()
}

impl KeyContext {
    /// The heading of its keys.
    #[must_use]
    pub fn heading(self) -> &'static str {
        match self {
            Self::Anywhere => "Everywhere",
            Self::Talk => "In the talk",
            Self::Line => "In every line that is typed",
            Self::Inbox => "In the inbox",
            Self::Suggestions => "At suggested rules",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_key_has_two_meanings_in_one_place() {
        let mut seen = HashSet::new();
        for binding in KEYS {
            for key in binding.keys {
                let places = match binding.place {
                    KeyContext::Anywhere => {
                        vec![
                            KeyContext::Talk,
                            KeyContext::Line,
                            KeyContext::Inbox,
                            KeyContext::Suggestions,
                        ]
                    }
                    KeyContext::Line => vec![KeyContext::Line, KeyContext::Talk],
                    place => vec![place],
                };
                for place in places {
                    assert!(seen.insert((format!("{place:?}"), *key)), "{place:?} {key}");
                }
            }
        }
    }

    #[test]
    fn keys_have_the_names_of_the_table() {
        let of = |code, modifiers| name(KeyEvent::new(code, modifiers));
        for (code, modifiers, expect) in [
            (KeyCode::Char('a'), KeyModifiers::NONE, "a"),
            (KeyCode::Char('G'), KeyModifiers::SHIFT, "G"),
            (KeyCode::Char('c'), KeyModifiers::CONTROL, "Ctrl-C"),
            (KeyCode::Char(' '), KeyModifiers::NONE, "Space"),
            (KeyCode::PageUp, KeyModifiers::NONE, "PgUp"),
            (KeyCode::Home, KeyModifiers::CONTROL, "Ctrl-Home"),
            (KeyCode::F(1), KeyModifiers::NONE, "F1"),
            (KeyCode::Enter, KeyModifiers::NONE, "Enter"),
        ] {
            assert_eq!(of(code, modifiers), expect);
        }
    }
}
