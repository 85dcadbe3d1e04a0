//! What an upstream offers: its four lists as it wrote them.
//!
//! Owns the last known state. It must not know public names or callers.

use std::sync::Arc;

use bytes::Bytes;
use wire::mcp::ListKind;

use super::status::Quarantined;

/// What one session's server offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The server's capabilities, raw; `{}` until it said so.
    pub capabilities: Bytes,
    /// Its tools, without those that are quarantined.
    pub tools: Vec<Listed>,
    /// Its resources.
    pub resources: Vec<Listed>,
    /// Its resource templates.
    pub templates: Vec<Listed>,
    /// Its prompts.
    pub prompts: Vec<Listed>,
    /// Tools that are left out.
    pub quarantined: Vec<Quarantined>,
}

/// One item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// By what it is called: the name, the URI, or the URI template.
    pub key: Arc<str>,
    /// The whole item as the server wrote it.
    pub raw: Bytes,
}

impl Manifest {
    /// One of the lists.
    #[must_use]
    pub fn list(&self, kind: ListKind) -> &[Listed] {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
            ListKind::Prompts => &self.prompts,
        }
    }
}
