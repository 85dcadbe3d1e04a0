//! Method table of MCP's revisions: eras and targets.
//!
//! A method outside the table is unknown to the gateway, yet the gateway may relay it.

use model::ListKind;

use super::version::Era;

/// The member of params that names the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// None.
    None,
    /// `name`: a tool or a prompt.
    Name,
    /// `uri`: a resource.
    Uri,
    /// `ref`: a prompt by `name` or a resource template by `uri`.
    Ref,
    /// `taskId`: a task.
    Task,
}

impl TargetKind {
    /// The member of params that is the target itself.
    pub(crate) fn key(self) -> Option<&'static str> {
        match self {
            Self::Name => Some("name"),
            Self::Uri => Some("uri"),
            Self::Task => Some("taskId"),
            Self::Ref | Self::None => None,
        }
    }
}

/// Names of the parts of a list in MCP.
#[derive(Debug, Clone, Copy)]
pub struct ListNames {
    /// The member of the result that holds the items.
    pub items: &'static str,
    /// The member of an item that identifies it.
    pub key: &'static str,
    /// The method that reads the list.
    pub method: &'static str,
    /// The notification that the list has changed.
    pub changed: &'static str,
}

impl ListNames {
    /// The names of a list.
    #[must_use]
    pub fn of(list: ListKind) -> Self {
        let (items, key, method, changed) = match list {
            ListKind::Tools => (
                "tools",
                "name",
                "tools/list",
                "notifications/tools/list_changed",
            ),
            ListKind::Prompts => (
                "prompts",
                "name",
                "prompts/list",
                "notifications/prompts/list_changed",
            ),
            ListKind::Resources => (
                "resources",
                "uri",
                "resources/list",
                "notifications/resources/list_changed",
            ),
            ListKind::Templates => (
                "resourceTemplates",
                "uriTemplate",
                "resources/templates/list",
                "notifications/resources/list_changed",
            ),
            ListKind::Skills => (
                "skills",
                "uri",
                "skills/list",
                "notifications/resources/list_changed",
            ),
        };
        Self {
            items,
            key,
            method,
            changed,
        }
    }
}

/// One row of the method table.
#[derive(Debug, PartialEq, Eq)]
pub struct MethodRow {
    /// Its name.
    pub name: &'static str,
    /// Whether revisions up to 2025-11-25 have it as a message.
    pub legacy: bool,
    /// Whether 2026-07-28 (or an extension of it) has it as a message.
    pub modern: bool,
    /// Its target.
    pub target: TargetKind,
    /// The list that it reads.
    pub list: Option<ListKind>,
    /// Whether modern results of it carry `ttlMs` and `cacheScope` (2026-07-28, caching).
    pub cached: bool,
}

impl MethodRow {
    /// Whether this era has the method.
    #[must_use]
    pub fn is_in(&self, era: Era) -> bool {
        match era {
            Era::Legacy => self.legacy,
            Era::Modern => self.modern,
        }
    }
}

/// The row of the method of this name.
#[must_use]
pub fn lookup(name: &str) -> Option<&'static MethodRow> {
    TABLE.iter().find(|method| method.name == name)
}

/// All rows.
pub fn all() -> impl Iterator<Item = &'static MethodRow> {
    TABLE.iter()
}

const fn row(name: &'static str, eras: &str) -> MethodRow {
    let (legacy, modern) = match eras.as_bytes() {
        b"both" => (true, true),
        b"legacy" => (true, false),
        _ => (false, true),
    };
    MethodRow {
        name,
        legacy,
        modern,
        target: TargetKind::None,
        list: None,
        cached: false,
    }
}

const fn aimed(name: &'static str, eras: &str, target: TargetKind) -> MethodRow {
    MethodRow {
        target,
        ..row(name, eras)
    }
}

const fn listing(name: &'static str, list: ListKind) -> MethodRow {
    MethodRow {
        list: Some(list),
        cached: true,
        ..row(name, "both")
    }
}

/// Ordered by how often clients use a method.
static TABLE: [MethodRow; 39] = [
    aimed("tools/call", "both", TargetKind::Name),
    listing("tools/list", ListKind::Tools),
    MethodRow {
        cached: true,
        ..aimed("resources/read", "both", TargetKind::Uri)
    },
    aimed("prompts/get", "both", TargetKind::Name),
    row("notifications/progress", "both"),
    row("notifications/message", "both"),
    row("initialize", "legacy"),
    row("notifications/initialized", "legacy"),
    row("ping", "legacy"),
    MethodRow {
        cached: true,
        ..row("server/discover", "modern")
    },
    row("subscriptions/listen", "modern"),
    row("notifications/subscriptions/acknowledged", "modern"),
    listing("prompts/list", ListKind::Prompts),
    listing("resources/list", ListKind::Resources),
    listing("resources/templates/list", ListKind::Templates),
    aimed("resources/subscribe", "legacy", TargetKind::Uri),
    aimed("resources/unsubscribe", "legacy", TargetKind::Uri),
    aimed("completion/complete", "both", TargetKind::Ref),
    row("logging/setLevel", "legacy"),
    row("sampling/createMessage", "legacy"),
    row("elicitation/create", "legacy"),
    row("roots/list", "legacy"),
    row("notifications/cancelled", "both"),
    row("notifications/tools/list_changed", "both"),
    row("notifications/prompts/list_changed", "both"),
    row("notifications/resources/list_changed", "both"),
    aimed("notifications/resources/updated", "both", TargetKind::Uri),
    row("notifications/roots/list_changed", "legacy"),
    row("notifications/elicitation/complete", "legacy"),
    aimed("tasks/get", "both", TargetKind::Task),
    aimed("tasks/result", "legacy", TargetKind::Task),
    row("tasks/list", "legacy"),
    aimed("tasks/cancel", "both", TargetKind::Task),
    aimed("tasks/update", "modern", TargetKind::Task),
    row("notifications/tasks/status", "legacy"),
    row("notifications/tasks", "modern"),
    // Skills are specified for 2026-07-28; servers and clients of earlier revisions have them as
    // well.
    listing("skills/list", ListKind::Skills),
    MethodRow {
        cached: true,
        ..aimed("skills/get", "both", TargetKind::Uri)
    },
    aimed("resources/directory/read", "both", TargetKind::Uri),
];
