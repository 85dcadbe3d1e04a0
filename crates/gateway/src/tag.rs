//! Name that a client or a server gave its request.

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
