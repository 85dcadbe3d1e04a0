//! Incoming: a request as its door decoded it, before it is a call.

use model::Request;
use schema::ToolSchema;
use telemetry::trace::CallerTrace;
use topic::{Interest, Logs};
use upstream::ClientProfile;
use wire::mcp::task::TaskWish;
use wire::rpc::Id;

/// The name that a client or a server gave its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// The instance number of the server's session; 0 for a client.
    session: u64,
    /// The name as its owner wrote it.
    pub id: Id,
}

impl Tag {
    /// The name of a client's request.
    pub fn of_client(id: Id) -> Self {
        Self { session: 0, id }
    }

    /// The name of a server's question.
    pub(crate) fn of_server(session: u64, id: Id) -> Self {
        Self { session, id }
    }
}

/// A request as its door decoded it.
pub struct Incoming {
    /// The request.
    pub request: Request,
    /// The name that the client gave it.
    pub tag: Option<Tag>,
    /// Client that the request declares, if it declares one.
    pub client: Option<ClientProfile>,
    /// Change that it makes to the link's notifications.
    pub interest: Interest,
    /// The log messages that the caller gets about it.
    pub logs: Logs,
    /// Answer for now that the caller gets while a proposal waits.
    pub parks: Parks,
    /// Wish of the caller about becoming a task.
    pub wish: TaskWish,
    /// The state with which a caller comes back (`requestState`).
    pub state: Option<String>,
    /// Whether its caller comes back from a link to a connect page that the person refused to open.
    pub declined: bool,
    /// The round in which its caller comes back to a paused call; 0 for any other request.
    pub round: u32,
    /// The messages of the tool that it calls, if it is written in protobuf.
    pub schema: Option<Box<ToolSchema>>,
    /// The trace that the headers of its HTTP request name, if they name one.
    pub trace: Option<Box<CallerTrace>>,
}

impl Incoming {
    /// A request that says nothing more.
    #[inline]
    pub fn plain(request: Request, tag: Option<Tag>) -> Self {
        let client = None;
        let interest = Interest::None;
        let logs = Logs::OfLink;
        let state = None;
        let parks = Parks::Words;
        let wish = TaskWish::None;
        let schema = None;
        let trace = None;
        let declined = false;
        let round = 0;
        Self {
            request,
            tag,
            client,
            interest,
            logs,
            parks,
            wish,
            state,
            schema,
            trace,
            declined,
            round,
        }
    }
}

/// Answer for now of a call that waits for a proposal (ARCHITECTURE.md, "A proposal"), by what its
/// caller can do: poll a task, come back with answers to questions, or neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parks {
    /// At once, with a task.
    Task,
    /// After a while, with a sealed state to come back with.
    Retry,
    /// After a while, in words: it does not come back.
    Words,
}

/// Spelling of names and URIs to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// As the topic's lists show them.
    Public,
    /// As the server has them.
    Own,
}

/// The tool, prompt or URI that a request names, as the topic looks it up.
pub(crate) fn named(request: &model::Request) -> Option<topic::PublicTarget<'_>> {
    Some(match request.target.as_ref()? {
        model::Target::Tool(name) => topic::PublicTarget::Tool(name),
        model::Target::Prompt(name) => topic::PublicTarget::Prompt(name),
        model::Target::Uri(uri) => topic::PublicTarget::Uri(uri),
        model::Target::Task(_) => return None,
    })
}
