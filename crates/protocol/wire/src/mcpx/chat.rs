//! Chat messages (MCPx v0.1, 3.3).

use std::borrow::Cow;

use json::{JsonError, Span};

/// The kind of chat.
pub const CHAT: &str = "chat";

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Plain text.
    #[default]
    Plain,
    /// Markdown.
    Markdown,
}

/// A chat message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chat<'a> {
    /// The text. It may contain control characters: a program that displays it must escape them.
    pub text: Cow<'a, str>,
    /// Its format.
    pub format: Format,
}

impl<'a> Chat<'a> {
    /// Reads the payload of a `chat`. Without `format`, or with an unknown one, it is plain.
    ///
    /// # Errors
    /// [`JsonError`] when it is no object, has a member twice, or has no string `text`.
    pub fn read(payload: &'a [u8]) -> Result<Self, JsonError> {
        let members = json::members(payload, Span::all(payload))?;
        let text = |key: &str| members.get(key).and_then(|member| json::text(member.raw));
        let format = match text("format").as_deref() {
            Some("markdown") => Format::Markdown,
            Some(_) | None => Format::Plain,
        };
        let text =
            text("text").ok_or_else(|| JsonError::Syntax("`text` must be a string".to_owned()))?;
        Ok(Self { text, format })
    }

    /// Writes the payload of a `chat`.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        let format = match self.format {
            Format::Plain => "plain",
            Format::Markdown => "markdown",
        };
        json::object(|payload| {
            payload.text("text", &self.text).text("format", format);
        })
    }
}
