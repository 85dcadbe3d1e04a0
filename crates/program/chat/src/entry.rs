//! Entries of the talk: one message, call, proposal or note each, as both modes show it.

use crate::clock::Zone;
use crate::rows::Rows;

/// Kind of an entry, which decides its colour and where plain lines print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Words of another participant to all.
    Said,
    /// The person's own words.
    Own,
    /// Words that name their addressees.
    Private,
    /// Words that name the person.
    Mention,
    /// A note of the program: presence, the course of a proposal.
    Note,
    /// A proposal.
    Proposal,
    /// A call of others.
    Call,
    /// The outcome of a command.
    Outcome,
    /// A failure, a refusal, a lost connection.
    Trouble,
}

impl Tone {
    /// Whether plain lines print it to stdout: messages, and what a command was asked for. All else
    /// goes to stderr.
    #[must_use]
    pub fn is_result(self) -> bool {
        match self {
            Self::Said | Self::Own | Self::Private | Self::Mention | Self::Outcome => true,
            Self::Note | Self::Proposal | Self::Call | Self::Trouble => false,
        }
    }
}

/// One entry. Hidden characters in its texts are visible already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatEntry {
    /// When it happened, in Unix milliseconds.
    pub at_ms: u64,
    /// Kind of the entry.
    pub tone: Tone,
    /// The participant that speaks, if one does; every row names it.
    pub speaker: Option<String>,
    /// The text.
    pub text: String,
    /// Whether it comes from the topic, not from a command.
    pub of_topic: bool,
}

impl ChatEntry {
    /// Words of a participant.
    pub(crate) fn said(tone: Tone, speaker: String, text: String) -> Self {
        Self {
            at_ms: 0,
            tone,
            speaker: Some(speaker),
            text,
            of_topic: true,
        }
    }

    /// Anything else.
    pub(crate) fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self {
            at_ms: 0,
            tone,
            speaker: None,
            text: text.into(),
            of_topic: false,
        }
    }

    /// The entry, marked as one of the topic.
    pub(crate) fn of_topic(self) -> Self {
        Self {
            of_topic: true,
            ..self
        }
    }

    /// Its rows, with the time of day.
    #[must_use]
    pub fn rows(&self, zone: Zone) -> Rows {
        let rows = match &self.speaker {
            Some(speaker) => Rows::said(speaker.clone(), self.text.clone()),
            None => Rows::new(self.text.clone()),
        };
        rows.at(zone.minute(self.at_ms))
    }
}
