//! What several commands take: where the configuration is, and which gateway to talk to.

use std::path::PathBuf;

use clap::Args;

/// Where the configuration is.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConfigArgs {
    /// Configuration file [default: ./portmoot.toml, else the one in your configuration directory]
    #[arg(
        long,
        value_name = "FILE",
        env = "PORTMOOT_CONFIG",
        hide_env_values = true,
        help_heading = "Configuration"
    )]
    pub(crate) config: Option<PathBuf>,
    /// A client's file with `mcpServers`, as it is; may be given more than once
    #[arg(long, value_name = "FILE.json", env = "PORTMOOT_MCP_CONFIG", hide_env_values = true, value_delimiter = None)]
    #[arg(help_heading = "Configuration")]
    pub(crate) mcp_config: Vec<PathBuf>,
    /// Where state is kept [default: the platform's state directory]
    #[arg(
        long,
        value_name = "DIR",
        env = "PORTMOOT_DATA_DIR",
        hide_env_values = true,
        help_heading = "Configuration"
    )]
    pub(crate) data_dir: Option<PathBuf>,
}

/// Which running gateway to talk to.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunningArgs {
    /// A running gateway, such as http://127.0.0.1:7070 [default: the one that runs here]
    #[arg(long, value_name = "URL", env = "PORTMOOT_URL", hide_env_values = true, help_heading = "Gateway")]
    pub(crate) url: Option<String>,
    /// The token to show to it
    #[arg(
        long,
        value_name = "TOKEN",
        env = "PORTMOOT_TOKEN",
        hide_env_values = true,
        help_heading = "Gateway"
    )]
    pub(crate) token: Option<String>,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

/// Which gateway to talk to: a running one, else one of the command's own.
#[derive(Debug, Clone, Default, Args)]
#[command(mut_arg("url", |url| url.help(OR_OWN)))]
pub(crate) struct GatewayArgs {
    #[command(flatten)]
    pub(crate) running: RunningArgs,
    /// Start servers from elsewhere without asking
    #[arg(long, short, help_heading = "Configuration")]
    pub(crate) yes: bool,
}

const OR_OWN: &str =
    "A running gateway, such as http://127.0.0.1:7070 [default: one that runs here, else the configuration]";
