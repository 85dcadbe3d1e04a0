//! Notifications about proposals that wait, by the routes in force.
//!
//! What waits is read from the topics, which have it: a look finds the proposals that are undecided
//! now, and a route's plan says which of them it is to be notified of. No topic waits for a route.
//! What a route was sent is kept in memory: after a restart what still waits is sent once more.

mod errand;
pub(crate) mod look;
pub(crate) mod routes;
pub(crate) mod runner;
