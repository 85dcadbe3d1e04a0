//! Uses of refresh tokens among several processes that have the same one.
//!
//! An authorization server that replaces refresh tokens takes a second use of one for theft, and
//! ends the sign-in (RFC 9700, section 4.14.2). So the nodes of a cluster use one at a time, and a
//! node whose time is over uses none.

use std::fmt::Debug;
use std::pin::Pin;
use std::time::Duration;

/// The uses of refresh tokens by this process and others.
pub trait TokenUses: Debug + Send + Sync {
    /// Waits until the refresh token of an account may be used by this process.
    fn begin<'u>(&'u self, account: &'u str) -> Beginning<'u>;
}

/// The wait for a use.
pub type Beginning<'u> =
    Pin<Box<dyn Future<Output = Result<Box<dyn TokenUse>, NotUsable>> + Send + 'u>>;

/// The use of a refresh token by this process. Dropping it says that nothing is known of its result.
pub trait TokenUse: Send {
    /// The time in which the request must be over. It is not sent without any left.
    fn time_left(&self) -> Duration;

    /// Ends the use, whose result is on disk.
    fn end(self: Box<Self>);
}

/// The cause for which a refresh token is not to be used now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotUsable {
    /// Another use of it is over: there may be new tokens.
    Used,
    /// Another process is to use it.
    Elsewhere,
}
