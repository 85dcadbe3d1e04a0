//! Kind of an act: the grammar `HEAD[:METHOD[:CONTEXT]]`.

use std::fmt;

/// The head of a request on MCP wires.
pub const REQUEST: &str = "mcp/request";
/// The head of a proposal: a request for another participant to make.
pub const PROPOSAL: &str = "mcp/proposal";
/// The head of capabilities to decide about proposals of requests without the right to make them.
/// No envelope has it.
pub const APPROVE: &str = "mcp/approve";
/// The kind of an envelope that rejects a proposal, and the capability to send it.
pub const REJECT: &str = "portmoot/reject";
/// The kind under which a participant is paused, and the capability to pause and resume others.
pub const PAUSE: &str = "portmoot/pause";
/// The kind under which a participant is resumed.
pub const RESUME: &str = "portmoot/resume";

/// The head of a response.
pub(crate) const RESPONSE: &str = "mcp/response";

/// Why a text is no kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KindError {
    /// Nothing before the first colon, or nothing after `mcp/`.
    #[error("a kind needs a first part, such as `chat` or `mcp/request`")]
    NoHead,
    /// An `mcp/` kind without a method, or with an empty one.
    #[error("a kind under `mcp/` needs a method, as in `mcp/request:tools/call`")]
    NoMethod,
    /// A trailing colon: the context is there but empty.
    #[error("the part after the last colon is empty")]
    EmptyContext,
    /// A wildcard where only a capability may have one.
    #[error("a kind names one kind of message: `*` belongs in a capability")]
    Wildcard,
    /// A colon inside a method that was given as a separate part.
    #[error("a method cannot hold a colon")]
    Colon,
}

/// A kind in borrowed parts, so that admission allocates nothing.
///
/// Always well formed: it can only be made by [`KindRef::parse`], [`KindRef::request`],
/// [`KindRef::proposal`] and [`KindRef::approval`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KindRef<'a> {
    head: &'a str,
    method: Option<&'a str>,
    context: Option<&'a str>,
}

impl<'a> KindRef<'a> {
    /// Reads a kind, cutting at the first two colons only: a context keeps the colons of its URI.
    ///
    /// Outside `mcp/` there is no method and no context, so the whole text is the head.
    /// Source: MCPx v0.1 sections 3 and 4, Decision 002.
    ///
    /// # Errors
    /// The part that is missing, empty or not allowed.
    pub fn parse(text: &'a str) -> Result<Self, KindError> {
        if !text.starts_with("mcp/") {
            return Self::plain(text);
        }
        let mut parts = text.splitn(3, ':');
        let head = parts.next().unwrap_or_default();
        let method = parts.next().ok_or(KindError::NoMethod)?;
        Self::promised(head, method, parts.next())
    }

    /// The kind of a request: `mcp/request:METHOD[:CONTEXT]`.
    ///
    /// # Errors
    /// The method is empty or holds `:` or `*`, or the context is empty.
    pub fn request(method: &'a str, context: Option<&'a str>) -> Result<Self, KindError> {
        Self::promised(REQUEST, method, context)
    }

    /// The kind of a proposal: `mcp/proposal:METHOD[:CONTEXT]`.
    ///
    /// # Errors
    /// As [`KindRef::request`].
    pub fn proposal(method: &'a str, context: Option<&'a str>) -> Result<Self, KindError> {
        Self::promised(PROPOSAL, method, context)
    }

    /// The act of deciding about a proposed request: `mcp/approve:METHOD[:CONTEXT]`.
    ///
    /// # Errors
    /// As [`KindRef::request`].
    pub fn approval(method: &'a str, context: Option<&'a str>) -> Result<Self, KindError> {
        Self::promised(APPROVE, method, context)
    }

    fn plain(text: &'a str) -> Result<Self, KindError> {
        if text.is_empty() || text.starts_with(':') {
            return Err(KindError::NoHead);
        }
        if text.contains('*') {
            return Err(KindError::Wildcard);
        }
        Ok(Self {
            head: text,
            method: None,
            context: None,
        })
    }

    fn promised(
        head: &'a str,
        method: &'a str,
        context: Option<&'a str>,
    ) -> Result<Self, KindError> {
        if head == "mcp/" {
            return Err(KindError::NoHead);
        }
        if method.is_empty() {
            return Err(KindError::NoMethod);
        }
        if head.contains('*') {
            return Err(KindError::Wildcard);
        }
        for byte in method.bytes() {
            match byte {
                b'*' => return Err(KindError::Wildcard),
                b':' => return Err(KindError::Colon),
                _ => {}
            }
        }
        if context.is_some_and(str::is_empty) {
            return Err(KindError::EmptyContext);
        }
        Ok(Self {
            head,
            method: Some(method),
            context,
        })
    }

    /// The first part, such as `mcp/request` or `chat`.
    pub fn head(&self) -> &'a str {
        self.head
    }

    /// The second part, such as `tools/call`. Always there under `mcp/`, never elsewhere.
    pub fn method(&self) -> Option<&'a str> {
        self.method
    }

    /// The third part: a tool's or prompt's name, or a URI.
    pub fn context(&self) -> Option<&'a str> {
        self.context
    }

    /// Whether a response of this kind can answer a request of that method and context: the same
    /// method, and the same context unless one of them has none (Decision 002: both forms are
    /// valid).
    pub fn answers(&self, method: &str, context: Option<&str>) -> bool {
        self.head == RESPONSE
            && self.method == Some(method)
            && (self.context.is_none() || context.is_none() || self.context == context)
    }

    /// Whether only the gateway may send this kind, whatever capabilities exist: `system`,
    /// `presence` and all below them.
    pub fn is_reserved(&self) -> bool {
        reserved(self.head)
    }
}

impl fmt::Display for KindRef<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.head)?;
        for part in [self.method, self.context].into_iter().flatten() {
            write!(out, ":{part}")?;
        }
        Ok(())
    }
}

/// Whether a head, of a kind or of a capability, lies in the gateway's own space.
pub(crate) fn reserved(head: &str) -> bool {
    ["system", "presence"].iter().any(|own| {
        head.strip_prefix(own)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || rest.starts_with(':'))
    })
}

#[cfg(test)]
mod tests;
