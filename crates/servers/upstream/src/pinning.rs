//! Pinning of what a server lists: how its definitions are judged.

use vetting::{Part, PartDefinition, Withheld};

use crate::config::ServerConfig;

/// Judges the definitions of servers. The gateway has one for all of them.
pub trait Pinning: Send + Sync {
    /// Whether definitions of a session with this server are judged at all.
    fn wants(&self, server: &ServerConfig, is_shared: bool) -> bool;

    /// Takes all definitions of one kind that a session with this server lists, and returns those
    /// that callers do not get as they are. Must not block.
    fn judge(
        &self,
        server: &ServerConfig,
        part: Part,
        definitions: Vec<PartDefinition>,
        is_shared: bool,
    ) -> Vec<Withheld>;
}
