//! Chat messages (MCPx v0.1, 3.3).

use std::borrow::Cow;

use json::{JsonError, Span};

/// The kind of chat.
pub const CHAT: &str = "chat";

/// How a text is meant to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// As it stands.
    #[default]
    Plain,
    /// As Markdown.
    Markdown,
}

/// One thing said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chat<'a> {
    /// The text. It may hold control characters: whoever shows it must mind them.
    pub text: Cow<'a, str>,
    /// How it is meant.
    pub format: Format,
}

impl<'a> Chat<'a> {
    /// Reads the payload of a `chat`. Without `format`, or with one that is not known, it is plain.
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
        let text = text("text").ok_or_else(|| JsonError::Syntax("`text` must be a string".to_owned()))?;
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
