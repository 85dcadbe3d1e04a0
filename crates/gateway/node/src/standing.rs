//! Standing: the part that this node has in the cluster.

use std::sync::Arc;

use crate::journal::HomeJournal;

/// The part that this node has in the cluster.
#[derive(Debug, Clone)]
pub enum NodeStanding {
    /// It is the home: it runs the gateway, over this journal.
    Home(Arc<HomeJournal>),
    /// Another node is, or will be: also of a node that cannot be, because the log has what its
    /// version cannot read.
    Away,
    /// The log has lost messages that it had acknowledged: nothing is served until a person has
    /// looked.
    Lost,
}
