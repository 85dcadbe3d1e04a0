//! Owns what an upstream says it has: names and URIs, in its own order and spelling.
//! Must not know public names (see `names`) or who may see what.

use std::sync::Arc;

/// The four lists of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListKind {
    /// Tools, by name.
    Tools,
    /// Prompts, by name.
    Prompts,
    /// Resources, by URI.
    Resources,
    /// Resource templates, by RFC 6570 URI template.
    Templates,
}

impl ListKind {
    /// All four, in the order of their definition.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// The method that acts on an entry: whoever may call it sees the entry listed.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/call",
            Self::Prompts => "prompts/get",
            Self::Resources | Self::Templates => "resources/read",
        }
    }
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Item {
    /// The upstream's own name, URI or URI template.
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

/// What one upstream has, each list in the upstream's order.
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
