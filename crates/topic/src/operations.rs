//! Owns the open operations: who opened each, who has it, and what it is about.
//! Must not know effects; what is removed here is settled by whoever removed it.

use std::sync::Arc;

use model::{KindRef, LinkId, OperationId};

use crate::{idmap::IdMap, members::Seat};

/// The methods that nearly every request has, so that keeping one copies nothing.
const COMMON: [&str; 12] = [
    "tools/call",
    "resources/read",
    "prompts/get",
    "completion/complete",
    "resources/subscribe",
    "resources/unsubscribe",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
    "logging/setLevel",
    "tasks/get",
    "tasks/result",
];

/// A method, kept.
#[derive(Debug, Clone)]
pub(crate) enum Method {
    Common(&'static str),
    Other(Box<str>),
}

impl Method {
    pub(crate) fn new(method: &str) -> Self {
        match COMMON.into_iter().find(|common| *common == method) {
            Some(common) => Self::Common(common),
            None => Self::Other(method.into()),
        }
    }

    /// Whether its context is a name in a list, with a public spelling of its own.
    pub(crate) fn names_an_entry(&self) -> bool {
        matches!(self.as_str(), "tools/call" | "prompts/get")
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Common(method) => method,
            Self::Other(method) => method,
        }
    }
}

/// In which direction an operation goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// A caller's request to an upstream.
    Call,
    /// A call that is held until its proposal is decided; nobody has it yet.
    Held { proposal: Option<OperationId> },
    /// A call that carries out an approved proposal, on the approver's authority.
    Run { proposal: OperationId },
    /// An upstream's question to a caller, about an open call if it is about one.
    Ask { about: Option<OperationId> },
}

impl Way {
    /// Whether an upstream has it and owes the answer.
    pub(crate) fn is_call(self) -> bool {
        matches!(self, Self::Call | Self::Run { .. })
    }

    /// Whether an upstream asks it.
    pub(crate) fn is_ask(self) -> bool {
        matches!(self, Self::Ask { .. })
    }
}

/// One open operation.
#[derive(Debug)]
pub(crate) struct Open {
    /// Its number in the order of opening.
    pub(crate) order: u64,
    pub(crate) way: Way,
    /// The caller's link: it opened the call, or has the ask.
    pub(crate) link: LinkId,
    /// The upstream: it has the call, or opened the ask.
    pub(crate) upstream: Seat,
    pub(crate) method: Method,
    /// The public name or URI.
    pub(crate) context: Option<Arc<str>>,
    /// How many asks are open about this call.
    pub(crate) asks: u32,
}

impl Open {
    /// The kind under which it was admitted.
    pub(crate) fn kind(&self) -> Option<KindRef<'_>> {
        KindRef::request(self.method.as_str(), self.context.as_deref()).ok()
    }
}

/// All open operations of the topic.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    open: IdMap<OperationId, Open>,
    opened: u64,
}

impl Operations {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn contains(&self, id: OperationId) -> bool {
        self.open.contains_key(&id)
    }

    pub(crate) fn get(&self, id: OperationId) -> Option<&Open> {
        self.open.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: OperationId) -> Option<&mut Open> {
        self.open.get_mut(&id)
    }

    /// Opens one and numbers it.
    pub(crate) fn insert(&mut self, id: OperationId, mut open: Open) {
        open.order = self.opened;
        self.opened += 1;
        self.open.insert(id, open);
    }

    pub(crate) fn remove(&mut self, id: OperationId) -> Option<Open> {
        self.open.remove(&id)
    }

    /// Those that fit, in the order of opening.
    pub(crate) fn which(&self, fits: impl Fn(&Open) -> bool) -> Vec<OperationId> {
        let mut found: Vec<(u64, OperationId)> =
            self.open.iter().filter(|(_, open)| fits(open)).map(|(id, open)| (open.order, *id)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, id)| id).collect()
    }

    /// These, in the order of opening.
    pub(crate) fn in_order(&self, ids: &[OperationId]) -> Vec<OperationId> {
        let mut found: Vec<(u64, OperationId)> =
            ids.iter().filter_map(|id| Some((self.open.get(id)?.order, *id))).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, id)| id).collect()
    }
}
