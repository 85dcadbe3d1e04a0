//! Styles of the screen, with and without colour.

use ratatui::style::{Color, Modifier, Style};

use crate::card::CardPart;
use crate::entry::Tone;

/// Colours of speakers.
const SPEAKERS: [Color; 6] = [
    Color::Cyan,
    Color::Green,
    Color::Blue,
    Color::Yellow,
    Color::LightCyan,
    Color::LightGreen,
];

/// Whether the screen has colours. Bold, dim and reversed text it has in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Whether it has.
    pub colour: bool,
}

impl Look {
    fn ink(self, colour: Color) -> Style {
        if self.colour {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    /// The styles of an entry's gutter and text.
    pub(crate) fn entry(self, tone: Tone, speaker: Option<&str>, me: &str) -> (Style, Style) {
        let name = match speaker {
            Some(speaker) if speaker == me => Style::new().add_modifier(Modifier::BOLD),
            Some(speaker) => self.ink(self.speaker(speaker)).add_modifier(Modifier::BOLD),
            None => self.note(),
        };
        match tone {
            Tone::Said | Tone::Own => (name, Style::new()),
            Tone::Private => {
                let ink = self.ink(Color::Magenta);
                (ink.add_modifier(Modifier::BOLD), ink)
            }
            Tone::Mention => (
                name.add_modifier(Modifier::REVERSED),
                Style::new().add_modifier(Modifier::BOLD),
            ),
            Tone::Note => (name, self.note()),
            Tone::Call => (name, self.note()),
            Tone::Proposal => (name, self.ink(Color::Yellow).add_modifier(Modifier::BOLD)),
            Tone::Outcome => (name, Style::new()),
            Tone::Trouble => (name, self.ink(Color::Red)),
        }
    }

    /// The colour of a speaker, by its name.
    fn speaker(self, name: &str) -> Color {
        let sum: usize = name.bytes().map(usize::from).sum();
        SPEAKERS
            .get(sum % SPEAKERS.len())
            .copied()
            .unwrap_or(Color::Reset)
    }

    /// The style of a part of a card.
    pub(crate) fn part(self, part: CardPart) -> Style {
        match part {
            CardPart::Head => Style::new().add_modifier(Modifier::BOLD),
            CardPart::Fact | CardPart::Heading | CardPart::Claimed => self.note(),
            CardPart::Mark => self.ink(Color::Yellow),
            CardPart::Asked => Style::new(),
        }
    }

    /// The style of its gutter.
    pub(crate) fn gutter(self, part: CardPart) -> Style {
        match part {
            CardPart::Asked => self.ink(Color::Cyan),
            CardPart::Head
            | CardPart::Fact
            | CardPart::Mark
            | CardPart::Heading
            | CardPart::Claimed => self.note(),
        }
    }

    /// The style of a part of a question.
    pub(crate) fn question(self, part: CardPart) -> Style {
        match part {
            CardPart::Asked | CardPart::Claimed => Style::new(),
            CardPart::Head | CardPart::Fact | CardPart::Mark | CardPart::Heading => {
                self.ink(Color::Yellow).add_modifier(Modifier::BOLD)
            }
        }
    }

    /// Notes.
    pub(crate) fn note(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Headings.
    pub(crate) fn heading(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The row at the top.
    pub(crate) fn bar(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Something that is wrong.
    pub(crate) fn trouble(self) -> Style {
        self.ink(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// The selected row of the inbox.
    pub(crate) fn selected(self, has_focus: bool) -> Style {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        if has_focus {
            bold.add_modifier(Modifier::REVERSED)
        } else {
            bold
        }
    }
}
