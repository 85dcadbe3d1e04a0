//! Options shared by several commands: configuration files, gateway address.

use std::path::PathBuf;

use clap::Args;
use platform::unix_ms;
use tls::{ClientFiles, ClientTls, Oldest};

use terminal::exit::Exit;
use terminal::failure::Failure;

/// Configuration files and data directory.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct ConfigArgs {
    /// Configuration file [default: ./portmoot.toml, else the one in your configuration directory]
    #[arg(
        long,
        value_name = "FILE",
        env = "PORTMOOT_CONFIG",
        hide_env_values = true
    )]
    pub(crate) config: Option<PathBuf>,
    /// Configuration file of an MCP client, with `mcpServers`; repeatable
    #[arg(long, value_name = "FILE.json", env = "PORTMOOT_MCP_CONFIG", hide_env_values = true, value_delimiter = None)]
    pub(crate) mcp_config: Vec<PathBuf>,
    /// Directory for state [default: the platform's state directory]
    #[arg(
        long,
        value_name = "DIR",
        env = "PORTMOOT_DATA_DIR",
        hide_env_values = true
    )]
    pub(crate) data_dir: Option<PathBuf>,
}

/// `doctor` and `config check`: the configuration as `serve` would use it.
#[derive(Debug, Clone, Args)]
pub(crate) struct CheckArgs {
    /// Address and port to listen on
    #[arg(
        long,
        value_name = "ADDR",
        env = "PORTMOOT_LISTEN",
        hide_env_values = true
    )]
    pub(crate) listen: Option<String>,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

/// Listing again and again.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WatchArgs {
    /// List again every TIME, 2s if none is given, until interrupted
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "2s")]
    pub(crate) watch: Option<String>,
}

/// Address of a running gateway.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Gateway")]
pub(crate) struct RunningArgs {
    /// URL of a running gateway, such as http://127.0.0.1:7070 [default: the gateway of this data
    /// directory]
    #[arg(long, value_name = "URL", env = "PORTMOOT_URL", hide_env_values = true)]
    pub(crate) url: Option<String>,
    /// Token for the gateway. Other users of the machine see it in the list of processes; in the
    /// environment they do not
    #[arg(
        long,
        value_name = "TOKEN",
        env = "PORTMOOT_TOKEN",
        hide_env_values = true
    )]
    pub(crate) token: Option<String>,
    /// Certificates of the authorities to trust with an https URL [default: those that this machine
    /// trusts]
    #[arg(long, value_name = "FILE", env = "PORTMOOT_CA", hide_env_values = true)]
    pub(crate) ca: Option<PathBuf>,
    /// Client certificate to show to the gateway
    #[arg(
        long,
        value_name = "FILE",
        env = "PORTMOOT_CLIENT_CERT",
        hide_env_values = true,
        requires = "client_key"
    )]
    pub(crate) client_cert: Option<PathBuf>,
    /// Key of the client certificate
    #[arg(
        long,
        value_name = "FILE",
        env = "PORTMOOT_CLIENT_KEY",
        hide_env_values = true,
        requires = "client_cert"
    )]
    pub(crate) client_key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

impl RunningArgs {
    /// What is trusted and shown where the gateway speaks TLS.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub(crate) fn tls(&self) -> Result<ClientTls, Failure> {
        let files = ClientFiles {
            ca: self.ca.clone(),
            cert: self.client_cert.clone(),
            key: self.client_key.clone(),
        };
        ClientTls::read(files, Oldest::Tls13, unix_ms()).map_err(|error| {
            Failure::new(Exit::Usage, "bad_certificate", error.to_string()).hint(error.hint())
        })
    }
}

/// Address of a running gateway; without one, the command starts its own.
#[derive(Debug, Clone, Default, Args)]
#[command(mut_arg("url", |url| url.help(OR_OWN)))]
pub(crate) struct GatewayArgs {
    #[command(flatten)]
    pub(crate) running: RunningArgs,
    /// Consent without being asked to a portmoot.toml that was found in this directory
    #[arg(long, short, help_heading = "Configuration")]
    pub(crate) yes: bool,
}

/// `tokens`.
#[derive(Debug, Clone, Args)]
pub(crate) struct TokensArgs {
    /// Topic whose tools to count
    #[arg(long, default_value = config::MAIN_TOPIC)]
    pub(crate) topic: String,
    /// List the tools that were not called for some time, and the commands that hide them
    ///
    /// A running gateway counts calls from the day on which it first saw a tool. Needs the
    /// capability portmoot/servers.
    #[arg(long)]
    pub(crate) unused: bool,
    /// Days without a call after which a tool counts as unused [default: 30]
    #[arg(long, value_name = "N", requires = "unused", value_parser = clap::value_parser!(u64).range(1..=3650))]
    pub(crate) days: Option<u64>,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
}

const OR_OWN: &str = "URL of a running gateway, such as http://127.0.0.1:7070 [default: the gateway of this data directory, else one started for this command]";
