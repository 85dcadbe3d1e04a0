//! Table of methods: what each method of MCP is to the topic and to the gateway.
//!
//! A method outside the table, of an extension or of a later revision, has [`MethodFacts::UNKNOWN`]:
//! it needs a capability, and it can neither be proposed nor paused. Eras and the members of params
//! are facts of the protocol, in `wire`.

use crate::ListKind;

/// What a method is to the topic and to the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodFacts {
    /// Its name; empty if it is in no row.
    pub name: &'static str,
    /// The list of whose entries a request names one.
    pub acts_on: Option<ListKind>,
    /// Whether a request that is not admitted may be proposed instead: its caller can wait for the
    /// answer.
    pub is_proposable: bool,
    /// Whether its result may be questions to the caller (MCP 2026-07-28, "Multi Round-Trip
    /// Requests").
    pub is_pausable: bool,
    /// Whether its result is that of a tool, or has one.
    pub has_tool_result: bool,
    /// Whether servers carry it out for a room; the gateway answers all others in their place.
    pub is_for_rooms: bool,
    /// Whether a request without a target needs no capability: handshake, ping, lists, which are
    /// filtered, and what is about the caller's own operations.
    pub is_free: bool,
    /// Whether it begins or ends a subscription to a resource.
    pub is_of_subscription: bool,
    /// Whether it only ends what its caller has begun.
    pub is_ending: bool,
    /// Whether it reads what may belong to a skill.
    pub reads_skills: bool,
    /// The methods of which a caller must have the right to one as well.
    pub also_needs: &'static [&'static str],
    /// The method whose right is one to this method, too.
    pub implied_by: Option<&'static str>,
}

impl MethodFacts {
    /// The facts of a method that the table does not have.
    pub const UNKNOWN: Self = Self {
        name: "",
        acts_on: None,
        is_proposable: false,
        is_pausable: false,
        has_tool_result: false,
        is_for_rooms: false,
        is_free: false,
        is_of_subscription: false,
        is_ending: false,
        reads_skills: false,
        also_needs: &[],
        implied_by: None,
    };

    /// The facts of the method of this name.
    pub fn of(method: &str) -> &'static Self {
        let known = TABLE.iter().find(|row| row.name == method);
        known.unwrap_or(if method.starts_with(TASKS) {
            &UNKNOWN_TASK
        } else {
            &Self::UNKNOWN
        })
    }

    /// The method that acts on an entry of a list: a caller that may use it sees the entry.
    pub fn acting_on(list: ListKind) -> &'static Self {
        match list {
            ListKind::Tools => &CALL_TOOL,
            ListKind::Prompts => &GET_PROMPT,
            ListKind::Resources | ListKind::Templates => &READ_RESOURCE,
            ListKind::Skills => &GET_SKILL,
        }
    }

    /// Whether it calls a tool.
    pub fn calls_tool(&self) -> bool {
        self.acts_on == Some(ListKind::Tools)
    }

    /// The list of whose entries a request names one by its name, not by its URI.
    pub fn names_in(&self) -> Option<ListKind> {
        self.acts_on.filter(|list| list.has_names())
    }
}

/// Whether a message of this method is a notification.
pub fn is_notification(method: &str) -> bool {
    method.starts_with("notifications/")
}

/// The beginning of the methods about the caller's own operations.
const TASKS: &str = "tasks/";

/// Calls a tool.
pub const CALL_TOOL: MethodFacts = MethodFacts {
    has_tool_result: true,
    ..using("tools/call", ListKind::Tools)
};
/// Gets a prompt.
pub const GET_PROMPT: MethodFacts = using("prompts/get", ListKind::Prompts);
/// Reads a resource.
pub const READ_RESOURCE: MethodFacts = MethodFacts {
    reads_skills: true,
    ..using("resources/read", ListKind::Resources)
};
/// Gets a skill (SEP-2640).
pub const GET_SKILL: MethodFacts = MethodFacts {
    acts_on: Some(ListKind::Skills),
    reads_skills: true,
    ..row("skills/get")
};
/// Subscribes to updates of a resource (2025-11-25).
pub const SUBSCRIBE: MethodFacts = MethodFacts {
    is_of_subscription: true,
    ..row("resources/subscribe")
};
/// Ends a subscription to updates of a resource (2025-11-25).
pub const UNSUBSCRIBE: MethodFacts = MethodFacts {
    is_of_subscription: true,
    is_ending: true,
    implied_by: Some(SUBSCRIBE.name),
    ..row("resources/unsubscribe")
};
/// Completes an argument of a prompt or template. It shows that the prompt or template exists.
pub const COMPLETE: MethodFacts = MethodFacts {
    is_for_rooms: true,
    also_needs: &[GET_PROMPT.name, READ_RESOURCE.name],
    ..row("completion/complete")
};
/// Waits for the result of a task (2025-11-25).
pub const TASK_RESULT: MethodFacts = MethodFacts {
    has_tool_result: true,
    ..free("tasks/result")
};
/// Looks at a task, which in the tasks extension has its result.
pub const GET_TASK: MethodFacts = MethodFacts {
    has_tool_result: true,
    ..free("tasks/get")
};
/// Any other method about the caller's own operations.
static UNKNOWN_TASK: MethodFacts = free("");

/// Ordered by how often clients use a method.
static TABLE: [MethodFacts; 19] = [
    CALL_TOOL,
    READ_RESOURCE,
    GET_PROMPT,
    free("tools/list"),
    free("prompts/list"),
    free("resources/list"),
    free("resources/templates/list"),
    free("skills/list"),
    free("initialize"),
    free("server/discover"),
    free("ping"),
    free("subscriptions/listen"),
    SUBSCRIBE,
    UNSUBSCRIBE,
    GET_TASK,
    TASK_RESULT,
    COMPLETE,
    GET_SKILL,
    MethodFacts {
        reads_skills: true,
        ..row("resources/directory/read")
    },
];

const fn row(name: &'static str) -> MethodFacts {
    MethodFacts {
        name,
        ..MethodFacts::UNKNOWN
    }
}

/// A method that needs no capability.
const fn free(name: &'static str) -> MethodFacts {
    MethodFacts {
        is_free: true,
        ..row(name)
    }
}

/// A method that uses an entry of a list: its caller can wait for the answer.
const fn using(name: &'static str, list: ListKind) -> MethodFacts {
    MethodFacts {
        acts_on: Some(list),
        is_proposable: true,
        is_pausable: true,
        is_for_rooms: true,
        ..row(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(has: impl Fn(&MethodFacts) -> bool) -> Vec<&'static str> {
        let rows = TABLE.iter().filter(|row| has(row));
        rows.map(|row| row.name).collect()
    }

    #[test]
    fn each_fact_names_its_methods() {
        let used = ["tools/call", "resources/read", "prompts/get"];
        assert_eq!(names(|row| row.is_proposable), used);
        assert_eq!(names(|row| row.is_pausable), used);
        assert_eq!(
            names(|row| row.is_for_rooms),
            [&used[..], &["completion/complete"]].concat()
        );
        assert_eq!(
            names(|row| row.has_tool_result),
            ["tools/call", "tasks/get", "tasks/result"]
        );
        assert_eq!(
            names(|row| row.is_of_subscription),
            ["resources/subscribe", "resources/unsubscribe"]
        );
        assert_eq!(names(|row| row.is_ending), ["resources/unsubscribe"]);
        assert_eq!(
            names(|row| row.reads_skills),
            ["resources/read", "skills/get", "resources/directory/read"]
        );
    }

    #[test]
    fn what_acts_on_something_is_never_free() {
        assert_eq!(
            names(|row| row.is_free && (row.acts_on.is_some() || row.is_of_subscription)),
            [""; 0]
        );
        for list in ListKind::ALL {
            let acting = MethodFacts::acting_on(list);
            assert_eq!(MethodFacts::of(acting.name), acting, "{list:?}");
        }
    }

    #[test]
    fn each_method_has_one_row_and_others_are_unknown() {
        for row in &TABLE {
            assert_eq!(names(|other| other.name == row.name).len(), 1);
            assert_eq!(MethodFacts::of(row.name), row);
        }
        for unknown in [
            "",
            "tools",
            "tools/call ",
            "tasks",
            "acme/run",
            "logging/setLevel",
        ] {
            assert_eq!(*MethodFacts::of(unknown), MethodFacts::UNKNOWN, "{unknown}");
        }
        // An extension of tasks is about the caller's own operations as well.
        for of_tasks in ["tasks/list", "tasks/cancel", "tasks/update", "tasks/later"] {
            assert!(MethodFacts::of(of_tasks).is_free, "{of_tasks}");
        }
    }

    #[test]
    fn notifications_are_told_by_their_names() {
        assert!(is_notification("notifications/cancelled"));
        assert!(!is_notification("tools/call"));
    }
}
