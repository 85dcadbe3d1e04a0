//! The text that a gateway prints at its start: addresses, servers, callers, and what comes next.

use config::{Config, ConfigSources, Loaded};
use tls::ServerTls;

use super::console;
use crate::process::{env, program_name};

/// Callers of a gateway that starts.
pub(super) struct Callers {
    /// Whether they need a token.
    pub(super) need_token: bool,
    /// The names to which tokens are issued.
    pub(super) issued: Vec<String>,
    /// The part of this process in its cluster, if it is in one.
    pub(super) cluster: Option<ClusterPart>,
}

/// The part of a process in its cluster.
pub(super) struct ClusterPart {
    /// The cluster's name.
    pub(super) name: String,
    /// The name of this node.
    pub(super) node: String,
    /// The name of the other node that is the home; `None` if this one is, or none is known.
    pub(super) other_home: Option<String>,
    /// Whether this node is the home.
    pub(super) is_home: bool,
}

impl ClusterPart {
    fn line(&self) -> String {
        let Self { name, node, .. } = self;
        match &self.other_home {
            Some(home) => format!("{name}: this node is {node}; {home} is the home, which serves"),
            None if self.is_home => {
                format!("{name}: this node is {node}, and the home, which serves")
            }
            None => format!("{name}: this node is {node}; no node is the home yet"),
        }
    }
}

/// The text of a gateway that is reached at `own_url`.
pub(super) fn text(loaded: &Loaded, own_url: &str, callers: &Callers) -> String {
    let program = program_name();
    let config = &loaded.config;
    let url = url_flag(config, own_url);
    let version = env!("CARGO_PKG_VERSION");
    let mut lines = vec![
        format!("portmoot {version}"),
        format!("MCP      {own_url}/mcp     or on a pipe: {program} stdio{url}"),
        format!("servers  {}", servers(loaded, &program)),
        format!("callers  {}", who_calls(config, callers, &program)),
    ];
    if let Some(part) = &callers.cluster {
        lines.push(format!("cluster  {}", part.line()));
    }
    if !callers.need_token {
        lines.push(format!("agents   {program} token new agent --capability \"mcp/request:*/list\" --capability \"mcp/proposal:*\"     a name, and calls that wait for you"));
    }
    if console::settings(config, callers.need_token).is_enabled() {
        lines.push(format!(
            "decide   {program} console{url}     in the browser"
        ));
    }
    lines.push(format!("next     {}", next(loaded, &program)));
    lines.join("\n  ") + "\n"
}

/// The flag with which commands find the gateway: without it they find that of the default data
/// directory.
fn url_flag(config: &Config, own_url: &str) -> String {
    let is_default = ConfigSources::default().data_dir(&env) == config.data_dir;
    if is_default && config.data_dir.is_some() {
        String::new()
    } else {
        format!(" --url {own_url}")
    }
}

fn enabled(config: &Config) -> Vec<&str> {
    let servers = config.servers.iter().filter(|server| server.enabled);
    servers.map(|server| server.name.as_str()).collect()
}

fn servers(loaded: &Loaded, program: &str) -> String {
    match enabled(&loaded.config).as_slice() {
        [] => "none".to_owned(),
        _ if loaded.demo => {
            format!(
                "demo (nothing is configured); those of an MCP client's file: {}",
                own(program)
            )
        }
        names => names.join(", "),
    }
}

/// The command for servers of one's own.
fn own(program: &str) -> String {
    format!("{program} serve --mcp-config FILE.json")
}

fn next(loaded: &Loaded, program: &str) -> String {
    match enabled(&loaded.config).as_slice() {
        _ if loaded.demo => format!("{program} tools call demo_echo text=hello"),
        [] => format!(
            "{}     your own servers, from an MCP client's file",
            own(program)
        ),
        _ => format!("{program} servers ls"),
    }
}

fn who_calls(config: &Config, callers: &Callers, program: &str) -> String {
    if callers.cluster.as_ref().is_some_and(|part| !part.is_home) {
        return format!("as the home has it: {program} token ls");
    }
    if !callers.need_token {
        return "need no token: connections from this machine act as the local user".to_owned();
    }
    let tls = config.doors.tls.as_ref();
    let certificate = if tls.is_some_and(ServerTls::asks_clients) {
        "a client certificate, or "
    } else {
        ""
    };
    let issued = match callers.issued.as_slice() {
        [] => String::new(),
        [one] => format!(" (1 is issued: {one})"),
        all => format!(" ({} are issued: {})", all.len(), all.join(", ")),
    };
    let sign_in = match &config.identity.login {
        Some(_) => format!("; or sign in: {program} login code NAME"),
        None => String::new(),
    };
    format!("need {certificate}a token{issued}: {program} token new NAME{sign_in}")
}
