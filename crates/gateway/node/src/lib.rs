//! This process as a node of a cluster: the journal that the nodes share, and the ways of
//! connections to its home.
//!
//! The nodes of a cluster elect a *home* (`cluster`, run by `runner`), and only the home writes the
//! journal. That is the common log: [`HomeJournal`], which ends with the node's time as the home.
//! Every other node has a copy of that log, so that it can become the home. Its gateway is a *branch*,
//! which reads that copy ([`BranchJournal`]) and passes on to the home what it may not do itself.
//!
//! - [`ClusterNode`]: this process in the cluster: [`ClusterNode::join`], [`ClusterNode::standing`].
//! - [`HomeJournal`]: the journal, while this node is the home.
//! - [`BranchJournal`], [`HomeWord`]: what a branch knows of the home.
//! - [`TokenFlight`]: the use of a refresh token, one at a time in the cluster.
//! - [`Conveyed`]: a client's connection that another node conveys to this one.
//! - [`Observer`], [`NodesWatch`]: a program beside the nodes, which looks at them, and says a
//!   [`ClusterWord`] to one, or asks for its audit log.
//! - [`NodeLives`]: what the next life of the node has to know of this one.
//!
//! All that a node does for the cluster runs on threads of its own: a thread of the gateway that
//! waits for the journal never keeps the journal waiting.

mod audit_words;
mod branch;
mod conveyed;
mod copy;
mod flight;
mod group;
mod home_word;
mod journal;
mod lives;
mod node;
mod observer;
mod presence;
mod standing;
#[cfg(test)]
mod tests;
mod user;
mod words;

pub use audit_words::{AuditQuestion, NODE_ENTRIES_MAX, NodeEntries, NodeLog};
pub use branch::{BranchJournal, OnApplied};
pub use conveyed::{Conveyed, ConveyedEnds, NotConveyed};
pub use fabric::Tunnel;
pub use flight::{NoFlight, TokenFlight};
pub use home_word::{HOME_WORD_NAMES_MAX, HomeWord};
pub use journal::HomeJournal;
pub use lives::{NodeLives, NodeRecord};
pub use node::{ClusterNode, NodeError, NodeParts, OtherHome};
pub use observer::{ClusterView, HomeView, NodeView, NodesWatch, Observer, ObserverError};
pub use standing::NodeStanding;
pub use words::{ClusterWord, NodeAnswer};
