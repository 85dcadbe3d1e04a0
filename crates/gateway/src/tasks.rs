//! Tasks of servers: ids at the gateway, places, state, relay, and the way between the forms.

pub(crate) mod bridge;
pub(crate) mod follow;
pub(crate) mod id;
pub(crate) mod list;
mod look;
pub(crate) mod notices;
pub(crate) mod part;
pub(crate) mod places;
pub(crate) mod relay;
pub(crate) mod table;
pub(crate) mod task;

#[cfg(test)]
mod tests;
