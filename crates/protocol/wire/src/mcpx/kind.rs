//! Kinds of MCP messages: `mcp/request:METHOD[:CONTEXT]` and its two siblings (MCPx v0.1, 3.1, 3.2;
//! Decision 002).

use model::{KindError, KindRef, PROPOSAL, REQUEST};

/// The first part of an MCP message's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Head {
    /// A request or notification, for an addressee to carry out.
    Request,
    /// The answer to a request.
    Response,
    /// A call that another participant may make.
    Proposal,
}

impl Head {
    /// The head as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Request => REQUEST,
            Self::Response => "mcp/response",
            Self::Proposal => PROPOSAL,
        }
    }

    /// The head of a kind; `None` for chat and all others.
    #[must_use]
    pub fn of(kind: KindRef<'_>) -> Option<Self> {
        [Self::Request, Self::Response, Self::Proposal]
            .into_iter()
            .find(|head| head.as_str() == kind.head())
    }
}

/// The kind of an MCP message, with its context if it has one (Decision 002, guideline 1).
///
/// # Errors
/// [`KindError`] when the method is empty or holds `:` or `*`, or the context is empty.
pub fn kind_of(head: Head, method: &str, context: Option<&str>) -> Result<String, KindError> {
    // The rules of the parts are the same under each head.
    KindRef::request(method, context)?;
    let head = head.as_str();
    Ok(match context {
        Some(context) => format!("{head}:{method}:{context}"),
        None => format!("{head}:{method}"),
    })
}
