//! Tables `[server]`, `[server.limits]`, `[console]` and `[registry]`.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::checked::{CONSOLE_PROOF, Config, ConsoleConfig, DoorsConfig};
use crate::limits::GatewayLimits;
use ::auth::PublicUrl;
use identity::config::IdentityConfig;
use platform::default_share;
use topic::section::TopicLimits;
use upstream::config::ServerLimits;
use upstream::{PROBES_AT_ONCE, STARTS_AT_ONCE, StartLimits};

use crate::reader::Table;
use crate::references;
use crate::servers::auth;
use crate::tls_files;
use crate::values::{Env, plain_path_at};

/// Reads `[server]`, `[audit]`, `[registry]` and `[cluster]`, all else by default; `None` if the listen address
/// is not valid.
pub(crate) fn read(root: &Table<'_>, env: Env<'_>) -> Option<Config> {
    let table = root.table("server")?;
    let listen = listen(&table);
    let data_dir = plain_path_at(&table, "data_dir", env);
    let mut hosts = table.plain_texts("hosts");
    for host in &mut hosts {
        host.make_ascii_lowercase();
    }
    let public_url = public_url(&table);
    // Its host is the gateway's, with its port or the scheme's.
    hosts.extend(public_url.iter().map(|url| url.authority().to_owned()));
    let legacy_sse = table.flag("legacy_sse").unwrap_or(false);
    let operator_key = table.flag("operator_key").unwrap_or(true);
    let tls = tls_files::server(&table, env);
    let starts_at_once = count(&table, "starts_at_once", STARTS_AT_ONCE);
    // Unlike the others it may be 0: then no server is asked before its first use.
    let probes_at_once = table
        .count("probes_at_once")
        .map_or(PROBES_AT_ONCE, in_memory);
    // The tables of servers read them: here they are only known.
    for key in [
        "env_pass",
        "sandbox",
        "pins",
        "pins_first",
        "sessions",
        "start",
        "idle_stop",
    ] {
        let _ = table.get(key);
    }
    let key = auth::key(&table, env);
    let limits = Arc::new(
        table
            .table("limits")
            .map(|table| limits(table))
            .unwrap_or_default(),
    );
    table.finish();
    let audit = crate::audit::read(root);
    let console = console(root);
    let references = references::read(root, env);
    let cluster = crate::cluster::read(root, env).map(Arc::new);
    let listen = listen?;
    let doors = DoorsConfig {
        listen,
        tls,
        hosts,
        legacy_sse,
    };
    let starts = StartLimits {
        starts_at_once,
        probes_at_once,
    };
    let identity = IdentityConfig {
        public_url,
        operator_key,
        login: crate::login::read(root),
        ..IdentityConfig::default()
    };
    Some(Config {
        doors,
        console,
        data_dir,
        key,
        cluster,
        starts,
        limits,
        audit,
        references,
        identity: Arc::new(identity),
        ..Config::default()
    })
}

fn console(root: &Table<'_>) -> ConsoleConfig {
    let Some(table) = root.table("console") else {
        return ConsoleConfig::default();
    };
    let enabled = table.flag("enabled");
    let proof = time(&table, "proof", CONSOLE_PROOF);
    table.finish();
    ConsoleConfig { enabled, proof }
}

/// Parses the listen address. `localhost:PORT` and `:PORT` mean loopback; no name is looked up.
fn listen(table: &Table<'_>) -> Option<SocketAddr> {
    let written = table.text("listen")?;
    let port_of_loopback = written
        .strip_prefix("localhost:")
        .or_else(|| written.strip_prefix(':'));
    let parsed = match port_of_loopback.map(str::parse::<u16>) {
        Some(Ok(port)) => Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Some(Err(_)) => None,
        None => written.parse().ok(),
    };
    if parsed.is_none() {
        let message = format!(
            "`{}` must be an address and a port, not \"{written}\"",
            table.full("listen")
        );
        table.note_value(
            "listen",
            message,
            "for example \"127.0.0.1:7070\", or \"[::]:7070\" for all interfaces",
        );
    }
    parsed
}

/// The address under which clients outside reach the gateway.
fn public_url(table: &Table<'_>) -> Option<PublicUrl> {
    match PublicUrl::parse(table.text("public_url")?) {
        Ok(url) => Some(url),
        Err(error) => {
            let message = format!("`{}` {error}", table.full("public_url"));
            table.note_value(
                "public_url",
                message,
                "for example \"https://mcp.example.com\"",
            );
            None
        }
    }
}

/// Reads `[server.limits]`, each limit by default if its key is not written.
fn limits(table: Table<'_>) -> GatewayLimits {
    let standard = GatewayLimits::default();
    let body_bytes_max = bytes(&table, "body_bytes_max", standard.body_bytes_max);
    let held_bytes_max = bytes(&table, "held_bytes_max", standard.held_bytes_max);
    // A share always has room for one whole body.
    let held_share = default_share(held_bytes_max).max(body_bytes_max);
    let connections_max = count(&table, "connections_max", standard.connections_max);
    let sessions_max = count(&table, "sessions_max", standard.sessions_max);
    let limits = GatewayLimits {
        topics: topics(&table, body_bytes_max, standard.topics),
        servers: servers(&table, standard.servers),
        body_bytes_max,
        header_bytes_max: bytes(&table, "header_bytes_max", standard.header_bytes_max),
        held_bytes_max,
        participant_held_bytes_max: bytes(&table, "participant_held_bytes_max", held_share)
            .min(held_bytes_max),
        connections_max,
        participant_connections_max: share(&table, "participant_connections_max", connections_max),
        sessions_max,
        participant_sessions_max: share(&table, "participant_sessions_max", sessions_max),
        session_idle: time(&table, "session_idle", standard.session_idle),
        resume_events_max: count(&table, "resume_events_max", standard.resume_events_max),
        resume_bytes_max: bytes(&table, "resume_bytes_max", standard.resume_bytes_max),
        batch_len_max: count(&table, "batch_len_max", standard.batch_len_max),
    };
    table.finish();
    limits
}

/// The limits of topics. A participant's share of proposals has room for one whole body.
fn topics(table: &Table<'_>, body_bytes_max: usize, standard: TopicLimits) -> TopicLimits {
    let proposal_bytes_max = bytes(table, "proposal_bytes_max", standard.proposal_bytes_max);
    let proposal_share = default_share(proposal_bytes_max)
        .max(body_bytes_max)
        .min(proposal_bytes_max);
    TopicLimits {
        participants_max: count(table, "topic_participants_max", standard.participants_max),
        participant_calls_max: count(
            table,
            "participant_calls_max",
            standard.participant_calls_max,
        ),
        envelope_bytes_max: bytes(table, "envelope_bytes_max", standard.envelope_bytes_max),
        proposal_bytes_max,
        participant_proposal_bytes_max: bytes(
            table,
            "participant_proposal_bytes_max",
            proposal_share,
        )
        .min(proposal_bytes_max),
        away: time(table, "away", standard.away),
        keep_alive: time(table, "keep_alive", standard.keep_alive),
        hold: time(table, "hold", standard.hold),
        pause: time(table, "pause", standard.pause),
    }
}

/// The limits of servers. Those of lines and queues hold for clients too.
fn servers(table: &Table<'_>, standard: ServerLimits) -> ServerLimits {
    let calls_max = count(table, "upstream_calls_max", standard.calls_max);
    let caller_sessions_max = count(table, "upstream_sessions_max", standard.caller_sessions_max);
    ServerLimits {
        line_bytes_max: bytes(table, "line_bytes_max", standard.line_bytes_max),
        queue_len_max: count(table, "queue_len_max", standard.queue_len_max),
        calls_max,
        participant_calls_max: share(table, "participant_upstream_calls_max", calls_max),
        caller_sessions_max,
        participant_sessions_max: share(
            table,
            "participant_upstream_sessions_max",
            caller_sessions_max,
        ),
        caller_idle: time(table, "upstream_session_idle", standard.caller_idle),
        ..standard
    }
}

fn bytes(table: &Table<'_>, key: &'static str, standard: usize) -> usize {
    above_zero(table, key, table.bytes(key), standard)
}

fn count(table: &Table<'_>, key: &'static str, standard: usize) -> usize {
    above_zero(table, key, table.count(key).map(in_memory), standard)
}

/// One participant's share of a limit, which is no larger than the limit.
fn share(table: &Table<'_>, key: &'static str, of: usize) -> usize {
    count(table, key, default_share(of)).min(of)
}

fn time(table: &Table<'_>, key: &'static str, standard: Duration) -> Duration {
    table.duration(key).unwrap_or(standard)
}

/// A count of things in memory: more than can be addressed are never reached.
fn in_memory(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn above_zero(
    table: &Table<'_>,
    key: &'static str,
    value: Option<usize>,
    standard: usize,
) -> usize {
    if value == Some(0) {
        let message = format!("`{}` must be more than 0", table.full(key));
        table.note_value(key, message, "remove it for the default");
    }
    value.unwrap_or(standard)
}
