//! Descriptors of the process: the limit is raised at start, and connections leave enough for
//! files, children and servers.

use std::sync::Arc;

use config::{Config, GatewayLimits};
use platform::default_share;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use upstream::config::{ProtoConfig, Transport};

/// Descriptors for the listener, the journal, the audit log, and whatever the gateway opens for a
/// moment.
const FILES: usize = 128;
/// Descriptors of one child process: its three pipes, and its process.
const CHILD: usize = 4;
/// Descriptors of one connection over TLS: its socket, and the pair through which a WebSocket is
/// pumped.
const TLS_CONNECTION: usize = 3;
/// Sessions with a server that all callers share: one in each era.
const SHARED_SESSIONS: usize = 2;

/// Descriptors and connections that were found at a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptors {
    /// Descriptors that the process may have.
    limit: usize,
    /// Descriptors of one connection.
    each: usize,
    /// Connections that were configured, and those that fit.
    wanted: usize,
    connections: usize,
}

impl Descriptors {
    /// Raises the limit of the process as far as this configuration needs it, and lowers its
    /// connections to what fits.
    pub(super) fn fit(config: &mut Config) -> Self {
        let reserve = reserve(config);
        let wanted = config.limits.connections_max;
        let each = if config.doors.tls.is_some() {
            TLS_CONNECTION
        } else {
            1
        };
        let limit = raise(wanted.saturating_mul(each).saturating_add(reserve));
        let connections = wanted.min((limit - reserve.min(limit / 2)) / each);
        lower(Arc::make_mut(&mut config.limits), connections);
        Self {
            limit,
            each,
            wanted,
            connections,
        }
    }

    /// Raises the limit for the servers of another configuration; the connections stay as they are.
    pub(super) fn grow(self, config: &Config) {
        let connections = self.connections;
        let wanted = connections
            .saturating_mul(self.each)
            .saturating_add(reserve(config));
        let limit = raise(wanted);
        if limit < wanted {
            tracing::warn!(
                "this process may open {limit} files, and these servers with {connections} connections may need {wanted}: raise the hard limit, or lower `connections_max` and restart"
            );
        }
    }

    /// Logs that fewer connections fit than were configured.
    pub(super) fn log(self) {
        let Self {
            limit,
            wanted,
            connections,
            ..
        } = self;
        if connections < wanted {
            tracing::warn!(
                "this process may open {limit} files, so that {connections} connections are accepted instead of {wanted} (`connections_max`): raise the hard limit (`ulimit -Hn`, `LimitNOFILE=` of a systemd service)"
            );
        }
    }
}

fn lower(limits: &mut GatewayLimits, connections: usize) {
    if connections < limits.connections_max {
        limits.connections_max = connections;
        limits.participant_connections_max = limits
            .participant_connections_max
            .min(default_share(connections));
    }
}

/// Descriptors that are not for connections.
fn reserve(config: &Config) -> usize {
    let servers = config.servers.iter().filter(|server| server.enabled);
    servers.fold(FILES, |sum, server| {
        sum.saturating_add(match &server.transport {
            Transport::Stdio(_) | Transport::Proto(ProtoConfig::Child { .. }) => config
                .limits
                .servers
                .caller_sessions_max
                .saturating_add(SHARED_SESSIONS)
                .saturating_mul(CHILD),
            // Each call may have a connection of its own.
            Transport::Http(_) | Transport::Sse(_) | Transport::OpenApi(_) => {
                config.limits.servers.calls_max
            }
            // One connection for each session.
            Transport::Proto(
                ProtoConfig::Tcp(_) | ProtoConfig::WebSocket(_) | ProtoConfig::Grpc(_),
            ) => config
                .limits
                .servers
                .caller_sessions_max
                .saturating_add(SHARED_SESSIONS),
            Transport::Demo | Transport::Participant | Transport::Unusable { .. } => 0,
        })
    })
}

/// Raises the soft limit to this, at most to the hard limit, and returns the limit that is in
/// force. Not further than needed: child processes inherit it, and some close every possible
/// descriptor when they start.
fn raise(wanted: usize) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
    let raised = maximum.map_or(wanted, |maximum| wanted.min(maximum));
    let current = match current {
        Some(current) if current < raised => {
            let limit = Rlimit {
                current: Some(raised),
                maximum,
            };
            if setrlimit(Resource::Nofile, limit).is_ok() {
                raised
            } else {
                current
            }
        }
        Some(current) => current,
        None => u64::MAX,
    };
    usize::try_from(current).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_connections_have_smaller_shares() {
        let mut limits = GatewayLimits::default();
        lower(&mut limits, 20_000);
        assert_eq!(limits, GatewayLimits::default());
        lower(&mut limits, 100);
        assert_eq!(
            (limits.connections_max, limits.participant_connections_max),
            (100, 25)
        );
    }
}
