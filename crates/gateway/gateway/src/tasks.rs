//! Tasks of servers: ids at the gateway, relay, lists, and the way between the forms. Their state:
//! `upstream::tasks`.

pub(crate) mod awaiting;
pub(crate) mod bridge;
pub(crate) mod follow;
mod holder;
pub(crate) mod journal;
pub(crate) mod kept;
pub(crate) mod list;
pub(crate) mod notices;
pub(crate) mod relay;
mod waiting;
