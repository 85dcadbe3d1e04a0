//! Method table of MCP's revisions: senders, eras and targets.
//!
//! A method outside the table is unknown to the gateway, yet the gateway may relay it.

use model::{Form, ListKind};

use super::version::Era;

/// The sender of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The client only.
    Client,
    /// The server only.
    Server,
    /// Either side.
    Both,
}

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

/// Names of the parts of a list in MCP.
pub trait ListFields {
    /// The member of the result that holds the items.
    fn items(self) -> &'static str;
    /// The member of an item that identifies it.
    fn key(self) -> &'static str;
    /// The method that reads the list.
    fn method(self) -> &'static str;
    /// The notification that the list has changed.
    fn changed(self) -> &'static str;
}

impl ListFields for ListKind {
    /// The member of the result that holds the items.
    fn items(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The member of an item that identifies it.
    fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// The method that reads the list.
    fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// The notification that the list has changed.
    fn changed(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources | Self::Templates => "notifications/resources/list_changed",
        }
    }
}

/// One row of the method table.
#[derive(Debug, PartialEq, Eq)]
pub struct MethodRow {
    /// Its name.
    pub name: &'static str,
    /// Its sender.
    pub origin: Origin,
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
    /// Whether it may be answered with `input_required` (2026-07-28, multi round-trip requests).
    pub asks: bool,
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

    /// Whether payloads of this method may have this form.
    #[must_use]
    pub fn is_in_form(&self, form: Form) -> bool {
        self.is_in(Era::of(form))
    }
}

/// The row of the method of this name.
#[must_use]
pub fn lookup(name: &str) -> Option<&'static MethodRow> {
    TABLE.iter().find(|method| method.name == name)
}

const fn row(name: &'static str, origin: Origin, eras: &str) -> MethodRow {
    let (legacy, modern) = match eras.as_bytes() {
        b"both" => (true, true),
        b"legacy" => (true, false),
        _ => (false, true),
    };
    MethodRow {
        name,
        origin,
        legacy,
        modern,
        target: TargetKind::None,
        list: None,
        cached: false,
        asks: false,
    }
}

const fn aimed(name: &'static str, eras: &str, target: TargetKind) -> MethodRow {
    MethodRow { target, ..row(name, Origin::Client, eras) }
}

const fn listing(name: &'static str, list: ListKind) -> MethodRow {
    MethodRow { list: Some(list), cached: true, ..row(name, Origin::Client, "both") }
}

/// Ordered by how often clients use a method.
static TABLE: [MethodRow; 39] = [
    MethodRow { asks: true, ..aimed("tools/call", "both", TargetKind::Name) },
    listing("tools/list", ListKind::Tools),
    MethodRow { asks: true, cached: true, ..aimed("resources/read", "both", TargetKind::Uri) },
    MethodRow { asks: true, ..aimed("prompts/get", "both", TargetKind::Name) },
    row("notifications/progress", Origin::Both, "both"),
    row("notifications/message", Origin::Server, "both"),
    row("initialize", Origin::Client, "legacy"),
    row("notifications/initialized", Origin::Client, "legacy"),
    row("ping", Origin::Both, "legacy"),
    MethodRow { cached: true, ..row("server/discover", Origin::Client, "modern") },
    row("subscriptions/listen", Origin::Client, "modern"),
    row("notifications/subscriptions/acknowledged", Origin::Server, "modern"),
    listing("prompts/list", ListKind::Prompts),
    listing("resources/list", ListKind::Resources),
    listing("resources/templates/list", ListKind::Templates),
    aimed("resources/subscribe", "legacy", TargetKind::Uri),
    aimed("resources/unsubscribe", "legacy", TargetKind::Uri),
    aimed("completion/complete", "both", TargetKind::Ref),
    row("logging/setLevel", Origin::Client, "legacy"),
    row("sampling/createMessage", Origin::Server, "legacy"),
    row("elicitation/create", Origin::Server, "legacy"),
    row("roots/list", Origin::Server, "legacy"),
    row("notifications/cancelled", Origin::Both, "both"),
    row("notifications/tools/list_changed", Origin::Server, "both"),
    row("notifications/prompts/list_changed", Origin::Server, "both"),
    row("notifications/resources/list_changed", Origin::Server, "both"),
    MethodRow { origin: Origin::Server, ..aimed("notifications/resources/updated", "both", TargetKind::Uri) },
    row("notifications/roots/list_changed", Origin::Client, "legacy"),
    row("notifications/elicitation/complete", Origin::Server, "legacy"),
    MethodRow { origin: Origin::Both, ..aimed("tasks/get", "both", TargetKind::Task) },
    MethodRow { origin: Origin::Both, ..aimed("tasks/result", "legacy", TargetKind::Task) },
    row("tasks/list", Origin::Both, "legacy"),
    MethodRow { origin: Origin::Both, ..aimed("tasks/cancel", "both", TargetKind::Task) },
    aimed("tasks/update", "modern", TargetKind::Task),
    row("notifications/tasks/status", Origin::Both, "legacy"),
    row("notifications/tasks", Origin::Server, "modern"),
    MethodRow { cached: true, ..row("skills/list", Origin::Client, "modern") },
    MethodRow { cached: true, ..aimed("skills/get", "modern", TargetKind::Uri) },
    aimed("resources/directory/read", "modern", TargetKind::Uri),
];
