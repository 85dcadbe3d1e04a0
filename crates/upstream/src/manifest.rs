//! What an upstream offers: its four lists as it wrote them.
//!
//! Owns the last known state. It must not know public names or callers.

use std::collections::HashMap;

use bytes::Bytes;
use wire::mcp::ListKind;
use wire::mcp::header::HeaderParam;
use wire::mcp::list::Item;

use super::status::Quarantined;

/// What one session's server offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The server's capabilities, raw; empty until it said so.
    pub capabilities: Bytes,
    /// Its tools, without those that are quarantined.
    pub tools: List,
    /// Its resources.
    pub resources: List,
    /// Its resource templates.
    pub templates: List,
    /// Its prompts.
    pub prompts: List,
    /// Tools that are left out.
    pub quarantined: Vec<Quarantined>,
    /// Arguments that a tool wants mirrored in headers, by the tool's own name; only tools that have some.
    pub annotations: HashMap<String, Vec<HeaderParam>>,
}

/// One list, all pages joined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// The items in the server's order.
    pub items: Vec<Item>,
    /// Other members of the first page's result, raw.
    pub extras: Vec<(String, Bytes)>,
    /// How long the server lets it be reused, in milliseconds: the least of all pages; modern only.
    pub ttl_ms: Option<u64>,
    /// Whether the server lets it be shared between callers.
    pub public: bool,
}

impl Manifest {
    /// One of the lists.
    #[must_use]
    pub fn list(&self, kind: ListKind) -> &List {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
            ListKind::Prompts => &self.prompts,
        }
    }

    pub(super) fn set(&mut self, kind: ListKind, list: List) {
        match kind {
            ListKind::Tools => self.tools = list,
            ListKind::Resources => self.resources = list,
            ListKind::Templates => self.templates = list,
            ListKind::Prompts => self.prompts = list,
        }
    }
}
