//! Tasks of servers: ids at the gateway, relay, lists, and the way between the forms. Whose each is
//! and who waits for it, `topic` has in its book; what its server says of it, `upstream::tasks`.

pub(crate) mod awaiting;
pub(crate) mod book;
pub(crate) mod bridge;
pub(crate) mod follow;
pub(crate) mod journal;
pub(crate) mod kept;
pub(crate) mod list;
pub(crate) mod notices;
pub(crate) mod relay;
pub(crate) mod task_id;
mod waiting;
