//! Tasks of servers: ids at the gateway, relay, lists, and the way between the forms. Their state: `upstream::tasks`.

pub(crate) mod bridge;
pub(crate) mod follow;
pub(crate) mod id;
pub(crate) mod list;
mod look;
pub(crate) mod notices;
pub(crate) mod relay;
