//! Command-line grammar and help texts.

mod options;
mod subcommands;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use options::{CheckArgs, ConfigArgs, GatewayArgs, RunningArgs, TokensArgs};
pub(crate) use subcommands::{
    AuditCommand, AuthCommand, ConfigCommand, ParticipantsCommand, PromptsCommand, ProposalsCommand,
    ProtoCommand, ProtoStyle, ResourcesCommand, ServersCommand, TokenCommand, ToolsCommand,
};

/// Many MCP servers behind one endpoint, each caller with its own capabilities
#[derive(Debug, Parser)]
#[command(name = "portmoot", version, arg_required_else_help = true, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
Results go to stdout, messages to stderr. NO_COLOR is honoured.

Exit codes: 0 ok, 1 failed, 2 usage, 3 refused by policy, 4 needs authentication,
5 not found, 6 held as a proposal.";

/// Output options, accepted by every command.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Printing")]
pub(crate) struct OutputArgs {
    /// Print results and errors as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print results and errors only
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Log more; give it twice to log everything
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print without colours
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the gateway
    ///
    /// Without any configuration, it listens on 127.0.0.1:7070 and offers a small demo server.
    Serve(ServeArgs),
    /// Serve one MCP client on stdin and stdout
    ///
    /// It connects the client to the gateway of --url, else to the one that is running with the data directory. If none is
    /// running, or --config or --mcp-config is given without --data-dir, the command runs a gateway of its own, which stores
    /// nothing on disk unless --data-dir is given.
    Stdio(StdioArgs),
    /// Show the running gateway: address, version, servers, open proposals
    ///
    /// Exit code 1 when it is not ready.
    Status(RunningArgs),
    /// Show the MCP servers behind the gateway
    #[command(subcommand)]
    Servers(ServersCommand),
    /// Print what a server has written to stderr
    ///
    /// The running gateway keeps the last 1,000 lines of each server, at most 256 KiB. Needs the capability portmoot/servers.
    /// Control characters are printed as escapes; with --json, each line is one object.
    Logs {
        /// Configured name of the server
        server: String,
        /// Wait for further lines until interrupted
        #[arg(long, short)]
        follow: bool,
        /// Number of earlier lines to print
        #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 100)]
        lines: usize,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// List, show and call tools
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// List and read resources
    #[command(subcommand)]
    Resources(ResourcesCommand),
    /// List and get prompts
    #[command(subcommand)]
    Prompts(PromptsCommand),
    /// Take part in a topic from the terminal
    ///
    /// Needs the capability chat to send. Each line is sent to all participants. Commands: /tools, /call, /proposals, /approve, /reject, /who; /help explains
    /// them. With --json, every received envelope is printed unchanged.
    Chat {
        /// Topic to join
        #[arg(long, default_value = config::MAIN_TOPIC)]
        topic: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// List participants, show what they may do, grant and revoke their capabilities
    #[command(subcommand)]
    Participants(ParticipantsCommand),
    /// Review proposals: list, show, approve, reject, withdraw
    ///
    /// Works with a running gateway. A token can see and decide proposals for operations that it may perform itself.
    #[command(subcommand)]
    Proposals(ProposalsCommand),
    /// Issue, rotate and revoke tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Find out why an access token is refused, and what clients find that want to sign in
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Search the audit log, and verify that it was not changed
    ///
    /// Reads the data directory, also while a gateway runs.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Check the installation and suggest fixes
    ///
    /// Starts nothing. If a gateway runs with the data directory, the states of its servers are checked too.
    Doctor(CheckArgs),
    /// Check and show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Count what the list of tools costs, on the wire and in a model's context
    ///
    /// Tokens are of cl100k_base, as a stand-in: other models count otherwise.
    Tokens(TokensArgs),
    /// Turn tool schemas into protobuf
    #[command(subcommand)]
    Proto(ProtoCommand),
    /// Print the version and the revisions of MCP that it speaks
    Version,
    /// Print a shell completion script
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Print the manual page, or write all manual pages to a directory
    Man {
        /// Write one page per command to this directory
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR", env = "PORTMOOT_LISTEN", hide_env_values = true)]
    pub(crate) listen: Option<String>,
    /// Consent without being asked to a portmoot.toml that was found in this directory
    #[arg(long, short)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

/// `stdio`.
#[derive(Debug, Args)]
pub(crate) struct StdioArgs {
    /// Topic to join
    #[arg(long, default_value = config::MAIN_TOPIC)]
    pub(crate) topic: String,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
}
