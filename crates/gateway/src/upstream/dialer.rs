//! Servers that dial in by themselves: whether they are here, and the link to whoever is. Must not know how they come in.

use std::sync::Arc;

use client::{Inbox, Link, LinkError};
use model::LinkId;
use tokio::sync::watch;

/// Gives the link to a server that comes and goes.
pub trait Dialer: Send + Sync {
    /// The link to it, for one session. An older one is of no use any more.
    ///
    /// # Errors
    /// [`LinkError::NotConnected`] when it is not here.
    fn dial(&self, inbox: Arc<dyn Inbox>) -> Result<Link, LinkError>;
    /// Under which link it is here now, and each change of that.
    fn presence(&self) -> watch::Receiver<Option<LinkId>>;
}
