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

/// Whether the entries of a list have names, which the gateway prefixes; else they have URIs.
pub(crate) fn is_named(list: ListKind) -> bool {
    matches!(list, ListKind::Tools | ListKind::Prompts)
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
pub type Manifest = PerList<Vec<Item>>;

/// One value for each list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PerList<T> {
    /// Of tools, which have names.
    pub tools: T,
    /// Of prompts, which have names.
    pub prompts: T,
    /// Of resources, which have URIs.
    pub resources: T,
    /// Of resource templates, which are URI templates.
    pub templates: T,
}

impl<T> PerList<T> {
    /// Makes one for each list.
    pub fn new(mut of: impl FnMut(ListKind) -> T) -> Self {
        Self {
            tools: of(ListKind::Tools),
            prompts: of(ListKind::Prompts),
            resources: of(ListKind::Resources),
            templates: of(ListKind::Templates),
        }
    }

    /// The value for one list.
    pub fn list(&self, list: ListKind) -> &T {
        match list {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
        }
    }
}
