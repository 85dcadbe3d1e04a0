//! Open operations: the opener, the state and the target of each.

use std::{collections::VecDeque, sync::Arc};

use foldhash::{HashMap, HashMapExt};
use model::{
    Capabilities, LinkId, ListenFilter, LogLevel, Method, Narrowing, OperationId, ParticipantId,
};

use crate::{
    Handles, Logs,
    admission::{admits, admits_kind},
    event::End,
    interests::OwnResource,
    members::Seat,
    tasks::Right,
};

/// The state of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// A server has the call. It carries out the approved proposal on the approver's authority, if
    /// there is one.
    Delivered { proposal: Option<OperationId> },
    /// A call that waits for the decision about its proposal; no server has it yet, and its caller
    /// waits.
    Held { proposal: Option<OperationId> },
    /// A held call whose caller was answered for now: it is no longer among its link's open
    /// operations.
    Parked { proposal: OperationId },
    /// The gateway's own participant has it and waits for a proposal to end. Cancelling it
    /// withdraws the proposal if it is a resumption of the caller's own.
    Waiting {
        proposal: OperationId,
        withdraws: bool,
    },
    /// A server has the call and asked its caller, which was answered for now with the questions
    /// and comes back with the answers.
    Paused { proposal: Option<OperationId> },
    /// A paused call that its server has answered; the answer waits for the caller.
    Kept,
    /// A server's question to a caller, about an open call if it is about one.
    Asked { about: Option<OperationId> },
}

impl State {
    /// Whether a server has the call and owes the answer.
    pub(crate) fn is_at_server(self) -> bool {
        matches!(self, Self::Delivered { .. } | Self::Paused { .. })
    }

    /// Whether a server has the call and may answer: also a call that the gateway's own participant
    /// holds.
    pub(crate) fn is_served(self) -> bool {
        self.is_at_server() || matches!(self, Self::Waiting { .. })
    }

    /// Whether its caller was answered for now and has not come back, so that it is no longer open
    /// at a link.
    pub(crate) fn is_parked(self) -> bool {
        matches!(self, Self::Parked { .. })
    }

    /// Whether its caller was answered for now with questions and has not come back.
    pub(crate) fn is_paused(self) -> bool {
        matches!(self, Self::Paused { .. } | Self::Kept)
    }

    /// Whether its caller waits for a proposal that was made.
    pub(crate) fn waits_for_proposal(self) -> bool {
        matches!(
            self,
            Self::Held { proposal: Some(_) } | Self::Waiting { .. }
        )
    }

    /// Whether it is a question.
    pub(crate) fn is_ask(self) -> bool {
        matches!(self, Self::Asked { .. })
    }
}

/// The shell's handle of an operation.
#[derive(Debug, Clone)]
pub(crate) enum Handle<H: Handles> {
    Call(H::Call),
    Question(H::Question),
}

impl<H: Handles> Handle<H> {
    pub(crate) fn call(&self) -> Option<&H::Call> {
        match self {
            Self::Call(call) => Some(call),
            Self::Question(_) => None,
        }
    }

    pub(crate) fn question(&self) -> Option<&H::Question> {
        match self {
            Self::Call(_) => None,
            Self::Question(question) => Some(question),
        }
    }
}

/// State that few operations have.
#[derive(Debug)]
pub(crate) struct Rare<H: Handles> {
    /// A resource whose subscription is undone unless the server answers with a result.
    pub(crate) subscribes: Option<OwnResource>,
    /// The filter of a listen request.
    pub(crate) listens: Option<Listening>,
    /// The end at its server, which waits for the caller.
    pub(crate) kept: Option<End<H::Answer>>,
    /// Notifications of its server about the call while it was paused, oldest first.
    pub(crate) missed: VecDeque<H::Notice>,
    /// The task that it may become, or has become.
    pub(crate) becomes: Option<Becomes>,
    /// The task that it asks about.
    pub(crate) about: Option<Box<AboutTask>>,
}

/// A task that a call may become, or has become: it has the call's id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Becomes {
    /// The participant on whose account it has a place; none is needed for a task that the gateway
    /// follows.
    pub(crate) place: Option<ParticipantId>,
}

/// A task that a request asks about.
#[derive(Debug)]
pub(crate) struct AboutTask {
    /// The task, if the topic has it.
    pub(crate) task: Option<OperationId>,
    /// The right by which its caller has it.
    pub(crate) right: Right,
    /// Whether its server cannot be asked any more.
    pub(crate) lost: bool,
}

impl<H: Handles> Default for Rare<H> {
    fn default() -> Self {
        Self {
            subscribes: None,
            listens: None,
            kept: None,
            missed: VecDeque::new(),
            becomes: None,
            about: None,
        }
    }
}

/// The filter of a listen request.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) filter: ListenFilter,
    /// Its resources.
    pub(crate) at: Vec<OwnResource>,
    /// The narrowing of the request: it gets notifications about tasks for as long as it is open.
    pub(crate) narrowing: Option<Narrowing>,
}

/// One open operation.
#[derive(Debug)]
pub(crate) struct Operation<H: Handles> {
    /// Its number in the order of opening.
    pub(crate) order: u64,
    pub(crate) state: State,
    /// The caller's link: it opened the call, or is asked.
    pub(crate) link: LinkId,
    /// The server: it has the call, or asks.
    pub(crate) server: Seat,
    pub(crate) method: Method,
    /// The public name or URI, as capabilities judge it: a name is the server's own behind the
    /// prefix.
    pub(crate) context: Option<Arc<str>>,
    /// The server's own name or URI, if it differs.
    pub(crate) own_name: Option<Arc<str>>,
    /// The name that the opener gave it.
    pub(crate) tag: Option<H::Tag>,
    /// The time at which its caller is answered for now.
    pub(crate) until_ms: Option<u64>,
    /// Open questions about this call.
    pub(crate) asks: u32,
    /// The number of times that its caller was answered for now with questions.
    pub(crate) rounds: u32,
    /// Whether watchers have seen it.
    pub(crate) mirrored: bool,
    /// Whether its caller was answered for now, so that no notification or question reaches the
    /// caller through it.
    pub(crate) answered: bool,
    /// Whether its caller is asked by answers for now.
    pub(crate) pauses: bool,
    /// Whether it is a request in the room: an envelope asked for it, or an approval.
    pub(crate) in_room: bool,
    /// The log messages that its caller gets about it.
    pub(crate) logs: Logs,
    pub(crate) rare: Option<Box<Rare<H>>>,
    pub(crate) handle: Handle<H>,
}

impl<H: Handles> Operation<H> {
    /// One that names nothing.
    pub(crate) fn new(
        state: State,
        link: LinkId,
        server: Seat,
        method: Method,
        handle: Handle<H>,
    ) -> Self {
        Self {
            order: 0,
            state,
            link,
            server,
            method,
            context: None,
            own_name: None,
            tag: None,
            until_ms: None,
            asks: 0,
            rounds: 0,
            mirrored: false,
            answered: false,
            pauses: false,
            in_room: false,
            logs: Logs::OfLink,
            rare: None,
            handle,
        }
    }

    /// Whether capabilities admit it at its server: a request in the room by its kind alone, like
    /// the envelope that asked for it.
    pub(crate) fn is_admitted(&self, capabilities: &Capabilities, server: &str) -> bool {
        let method = self.method.as_str();
        let context = self.context.as_deref();
        if self.in_room {
            admits_kind(capabilities, method, context, server)
        } else {
            admits(capabilities, method, context, server)
        }
    }

    /// Whether it has a place for the task that it may become.
    pub(crate) fn becomes_with_place(&self) -> bool {
        let becomes = self.rare.as_ref().and_then(|rare| rare.becomes.as_ref());
        becomes.is_some_and(|becomes| becomes.place.is_some())
    }

    /// Whether it is a listen request.
    pub(crate) fn listens(&self) -> bool {
        self.rare
            .as_ref()
            .is_some_and(|rare| rare.listens.is_some())
    }

    /// Whether it carries out a proposal that an envelope approved.
    pub(crate) fn is_approved_in_room(&self) -> bool {
        let proposal = match self.state {
            State::Delivered { proposal } | State::Paused { proposal } => proposal,
            State::Held { .. } | State::Parked { .. } | State::Waiting { .. } => None,
            State::Kept | State::Asked { .. } => None,
        };
        self.in_room && proposal.is_some()
    }

    /// The level from which on its caller wants log messages, of a link that has set this one.
    pub(crate) fn log_level(&self, of_link: Option<LogLevel>) -> Option<LogLevel> {
        match self.logs {
            Logs::OfLink => of_link,
            Logs::None => None,
            Logs::From(level) => Some(level),
        }
    }

    /// Whether this server has the call, and its caller is reached through it.
    pub(crate) fn is_with(&self, server: Seat) -> bool {
        self.state.is_at_server() && self.server == server && !self.answered
    }
}

/// All open operations of a topic.
#[derive(Debug)]
pub(crate) struct Operations<H: Handles> {
    open: HashMap<OperationId, Operation<H>>,
    opened: u64,
    /// The parked ones among them.
    parked: usize,
}

impl<H: Handles> Default for Operations<H> {
    fn default() -> Self {
        Self {
            open: HashMap::new(),
            opened: 0,
            parked: 0,
        }
    }
}

impl<H: Handles> Operations<H> {
    /// The number of open operations, without the parked ones.
    pub(crate) fn len(&self) -> usize {
        self.open.len() - self.parked
    }

    pub(crate) fn parked(&self) -> usize {
        self.parked
    }

    pub(crate) fn contains(&self, id: OperationId) -> bool {
        self.open.contains_key(&id)
    }

    pub(crate) fn get(&self, id: OperationId) -> Option<&Operation<H>> {
        self.open.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: OperationId) -> Option<&mut Operation<H>> {
        self.open.get_mut(&id)
    }

    /// Opens one and numbers it.
    pub(crate) fn insert(&mut self, id: OperationId, mut operation: Operation<H>) {
        operation.order = self.opened;
        self.opened += 1;
        self.open.insert(id, operation);
    }

    /// Changes the state of one.
    pub(crate) fn turn(&mut self, id: OperationId, state: State) {
        let Some(operation) = self.open.get_mut(&id) else {
            return;
        };
        self.parked += usize::from(state.is_parked());
        self.parked -= usize::from(operation.state.is_parked());
        // A parked call that is released stays answered: its caller comes back with another one.
        operation.answered |= state.is_parked() || state.is_paused();
        operation.state = state;
    }

    pub(crate) fn remove(&mut self, id: OperationId) -> Option<Operation<H>> {
        let removed = self.open.remove(&id)?;
        self.parked -= usize::from(removed.state.is_parked());
        Some(removed)
    }

    /// The operations for which `fits` holds, in the order of opening.
    pub(crate) fn which(&self, fits: impl Fn(&Operation<H>) -> bool) -> Vec<OperationId> {
        let mut found = Vec::new();
        for (id, operation) in &self.open {
            if fits(operation) {
                found.push(Numbered {
                    order: operation.order,
                    id: *id,
                });
            }
        }
        sorted(found)
    }

    /// The youngest of these for which `fits` holds.
    pub(crate) fn youngest(
        &self,
        ids: &[OperationId],
        fits: impl Fn(&Operation<H>) -> bool,
    ) -> Option<OperationId> {
        let mut youngest: Option<Numbered> = None;
        for id in ids {
            let Some(operation) = self.open.get(id) else {
                continue;
            };
            let order = operation.order;
            if fits(operation) && youngest.as_ref().is_none_or(|other| other.order < order) {
                youngest = Some(Numbered { order, id: *id });
            }
        }
        youngest.map(|one| one.id)
    }

    /// These, in the order of opening.
    pub(crate) fn in_order(&self, ids: &[OperationId]) -> Vec<OperationId> {
        // One needs no order.
        if let [only] = ids {
            return vec![*only];
        }
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            if let Some(operation) = self.open.get(id) {
                found.push(Numbered {
                    order: operation.order,
                    id: *id,
                });
            }
        }
        sorted(found)
    }
}

/// An operation with its number in the order of opening.
struct Numbered {
    order: u64,
    id: OperationId,
}

fn sorted(mut found: Vec<Numbered>) -> Vec<OperationId> {
    found.sort_unstable_by_key(|one| one.order);
    found.into_iter().map(|one| one.id).collect()
}
