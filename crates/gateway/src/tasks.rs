//! Tasks of servers: ids at the gateway, places, state, relay.

pub(crate) mod id;
pub(crate) mod list;
pub(crate) mod places;
pub(crate) mod relay;
pub(crate) mod table;
pub(crate) mod task;

#[cfg(test)]
mod tests;
