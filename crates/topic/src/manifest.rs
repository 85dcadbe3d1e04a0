//! Manifests of servers: names and URIs, in the server's own order and spelling.

use std::sync::Arc;

use model::ListKind;

/// The method that acts on an entry of a list: a caller that may use it sees the entry.
pub(crate) fn method(list: ListKind) -> &'static str {
    match list {
        ListKind::Tools => "tools/call",
        ListKind::Prompts => "prompts/get",
        ListKind::Resources | ListKind::Templates => "resources/read",
    }
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Item {
    /// The server's own name, URI or URI template.
    pub own: Arc<str>,
    /// A digest of the whole definition, so that a changed description counts as a change. 0 if unknown.
    pub digest: u64,
}

impl From<&str> for Item {
    fn from(own: &str) -> Self {
        Self { own: own.into(), digest: 0 }
    }
}

impl From<Arc<str>> for Item {
    fn from(own: Arc<str>) -> Self {
        Self { own, digest: 0 }
    }
}

/// The lists of one server, each in the server's order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Tools, by name.
    pub tools: Vec<Item>,
    /// Prompts, by name.
    pub prompts: Vec<Item>,
    /// Resources, by URI.
    pub resources: Vec<Item>,
    /// Resource templates, by URI template.
    pub templates: Vec<Item>,
}

impl Manifest {
    /// One of its lists.
    pub fn list(&self, kind: ListKind) -> &[Item] {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
        }
    }
}
