//! Kinds of lists that a server has, and what a listen request listens for.

use std::sync::Arc;

/// A kind of list.
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
    /// Skills, by the URI of their `SKILL.md` (SEP-2640).
    Skills,
}

impl ListKind {
    /// All of them, in the order of their definition.
    pub const ALL: [Self; 5] = [
        Self::Tools,
        Self::Prompts,
        Self::Resources,
        Self::Templates,
        Self::Skills,
    ];

    /// Whether its entries have names, which the gateway prefixes; else they have URIs.
    pub fn has_names(self) -> bool {
        match self {
            Self::Tools | Self::Prompts => true,
            Self::Resources | Self::Templates | Self::Skills => false,
        }
    }

    /// The list whose change a client is notified of: templates and skills change with resources.
    pub fn notified(self) -> Self {
        match self {
            Self::Tools => Self::Tools,
            Self::Prompts => Self::Prompts,
            Self::Resources | Self::Templates | Self::Skills => Self::Resources,
        }
    }
}

/// The notifications that a listen request subscribes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListenFilter {
    /// Changes of these lists.
    pub lists: Vec<ListKind>,
    /// Updates of these resources, by public URI.
    pub resources: Vec<Arc<str>>,
    /// States of these tasks, by their ids at the gateway's door (tasks extension).
    pub tasks: Vec<Arc<str>>,
}
