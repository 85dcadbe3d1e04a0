//! Options of the commands that set up: `init`, `add`, `rm`, `import`, `connect`, `disconnect`,
//! `search`.

use std::path::PathBuf;

use clap::Args;

/// The configuration file that a command changes.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OwnFileArgs {
    /// Configuration file [default: ./portmoot.toml if it is there, else the one in your
    /// configuration directory]
    #[arg(
        long,
        value_name = "FILE",
        env = "PORTMOOT_CONFIG",
        hide_env_values = true
    )]
    pub(crate) config: Option<PathBuf>,
}

/// How a change is made.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ChangeArgs {
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Change without being asked
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// `init`.
#[derive(Debug, Clone, Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) file: OwnFileArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `add`.
#[derive(Debug, Clone, Args)]
pub(crate) struct AddArgs {
    /// Name of the server
    pub(crate) name: String,
    /// URL of the server; of an HTTP API, if its description does not say it
    #[arg(conflicts_with_all = ["command", "from_registry"])]
    pub(crate) url: Option<String>,
    /// What stands behind a URL: a command without the `--` before it
    #[arg(hide = true)]
    pub(crate) surplus: Vec<String>,
    /// Command that starts the server
    #[arg(last = true, conflicts_with = "from_registry")]
    pub(crate) command: Vec<String>,
    /// Environment variable of the server; repeatable. 'KEY=${NAME}' takes the value from the
    /// gateway's environment
    #[arg(long, short, value_name = "KEY=VALUE")]
    pub(crate) env: Vec<String>,
    /// Header of requests to the server; repeatable
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// OpenAPI description of an HTTP API, a file or a URL: its operations are the tools
    #[arg(long, value_name = "FILE_OR_URL", conflicts_with_all = ["command", "from_registry", "sse"])]
    pub(crate) openapi: Option<String>,
    /// Key of the API, sent where its description says, under the name that it has there. '${NAME}'
    /// takes it from the gateway's environment
    #[arg(long, value_name = "KEY", requires = "openapi")]
    pub(crate) key: Option<String>,
    /// Parameter in the query of requests to the API; repeatable
    #[arg(long, value_name = "NAME=VALUE", requires = "openapi")]
    pub(crate) query: Vec<String>,
    /// Directory in which the command starts
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// Beginning of the tools' names [default: the name of the server]
    #[arg(long, value_name = "PREFIX")]
    pub(crate) prefix: Option<String>,
    /// The URL speaks HTTP+SSE of 2024-11-05
    #[arg(long)]
    pub(crate) sse: bool,
    /// Replace a server of the same name
    #[arg(long)]
    pub(crate) replace: bool,
    /// Name of a server in the MCP registry, as `portmoot search` shows it
    #[arg(long, value_name = "NAME")]
    pub(crate) from_registry: Option<String>,
    /// Value of an argument that the server needs; repeatable
    #[arg(long, value_name = "NAME=VALUE", requires = "from_registry")]
    pub(crate) set: Vec<String>,
    /// Which of the registry's ways to use: npm, pypi, oci, nuget, http or sse [default: the first]
    #[arg(long, value_name = "KIND", requires = "from_registry")]
    pub(crate) via: Option<String>,
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
    #[command(flatten)]
    pub(crate) file: OwnFileArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `rm`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RmArgs {
    /// Names of the servers
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) file: OwnFileArgs,
}

/// Which file of a client.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ClientFileArgs {
    /// The client's file of this project, in the current directory
    #[arg(long, conflicts_with = "file")]
    pub(crate) project: bool,
    /// The client's file in another place
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// `import`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ImportArgs {
    /// Client; without one, those that are there are listed
    pub(crate) client: Option<String>,
    /// Write secrets as ${NAME}, to be set where the gateway starts
    #[arg(long)]
    pub(crate) hide_secrets: bool,
    /// Replace servers of the same names
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) of: ClientFileArgs,
    #[command(flatten)]
    pub(crate) own: OwnFileArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `connect`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConnectArgs {
    /// Client; without one, all are listed with their states
    pub(crate) client: Option<String>,
    /// Import the client's servers into the configuration file, and take them out of the client's
    #[arg(long = "move")]
    pub(crate) moves: bool,
    /// Name of the entry in the client's file
    #[arg(long, value_name = "NAME", default_value = model::GATEWAY)]
    pub(crate) name: String,
    /// Connect to the gateway at this URL, not by a command that joins the one that is running
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Token for the gateway, written into the client's file
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Topic to join
    #[arg(long, value_name = "TOPIC")]
    pub(crate) topic: Option<String>,
    #[command(flatten)]
    pub(crate) of: ClientFileArgs,
    #[command(flatten)]
    pub(crate) own: OwnFileArgs,
    /// Directory for state, with the copies of clients' files [default: the platform's state
    /// directory]
    #[arg(
        long,
        value_name = "DIR",
        env = "PORTMOOT_DATA_DIR",
        hide_env_values = true
    )]
    pub(crate) data_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// `disconnect`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DisconnectArgs {
    /// Client
    pub(crate) client: String,
    #[command(flatten)]
    pub(crate) of: ClientFileArgs,
    /// Directory for state, with the copies of clients' files [default: the platform's state
    /// directory]
    #[arg(
        long,
        value_name = "DIR",
        env = "PORTMOOT_DATA_DIR",
        hide_env_values = true
    )]
    pub(crate) data_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// An MCP registry.
#[derive(Debug, Clone, Args)]
pub(crate) struct RegistryArgs {
    /// URL of an MCP registry
    #[arg(long, value_name = "URL", default_value = setup::REGISTRY)]
    pub(crate) registry: String,
}

/// `search`.
#[derive(Debug, Clone, Args)]
pub(crate) struct SearchArgs {
    /// Part of the servers' names
    pub(crate) word: String,
    /// Most servers to list, at most 100
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) limit: u8,
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}
