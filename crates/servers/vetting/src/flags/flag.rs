//! Flag: the reason for which a text is worth a look.

/// Why a text was flagged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Flag {
    /// Characters that are not seen or move others: invisible ones, direction marks, tags,
    /// controls, long blanks.
    HiddenCharacters,
    /// A comment of HTML or Markdown, which a person does not see where it is rendered.
    Comment,
    /// Marks of a system prompt or of another speaker.
    PromptMarkup,
    /// "Ignore previous instructions", a new role.
    OverridesInstructions,
    /// "Do not tell the user".
    KeepsSecret,
    /// Files or values that hold keys, or the conversation itself, are asked for.
    AsksForSecrets,
    /// Something is to be sent to an address.
    SendsAway,
    /// Other tools are to be used otherwise, or this one first or always.
    SteersTools,
    /// A command that a shell is to run.
    RunsCommand,
    /// Text in Base64 or hexadecimal digits.
    EncodedText,
    /// A name that looks like another server's or the gateway's.
    ImitatesName,
}

impl Flag {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
