//! The command line's grammar and help texts. Must not know what a command does.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

/// Many MCP servers behind one endpoint, each caller with its own capabilities
#[derive(Debug, Parser)]
#[command(name = "portmoot", version, arg_required_else_help = true, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
Results go to stdout, talk to stderr. NO_COLOR is honoured.

Exit codes: 0 ok, 1 failed, 2 usage, 3 refused by policy, 4 needs authentication,
5 not found, 6 held as a proposal.";

/// How to print; every command takes these.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct TalkArgs {
    /// Print results and errors as JSON
    #[arg(long, global = true, help_heading = "Printing")]
    pub(crate) json: bool,
    /// Print results and errors only
    #[arg(long, short, global = true, help_heading = "Printing")]
    pub(crate) quiet: bool,
    /// Log more; twice for everything
    #[arg(long, short, global = true, action = clap::ArgAction::Count, help_heading = "Printing")]
    pub(crate) verbose: u8,
    /// Print without colours
    #[arg(long, global = true, help_heading = "Printing")]
    pub(crate) no_color: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the gateway
    ///
    /// Without any configuration it starts on 127.0.0.1:7070 with a small demo server.
    Serve(ServeArgs),
    /// Serve one MCP client on stdin and stdout
    ///
    /// With --url it is a door to a running gateway; without, a gateway of its own that keeps
    /// nothing on disk unless --data-dir is given.
    Stdio(StdioArgs),
    /// Look at the MCP servers behind the gateway
    #[command(subcommand)]
    Servers(ServersCommand),
    /// Look at tools and call them
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// Take part in a topic from the terminal
    ///
    /// Lines are said to everybody. /tools, /call, /proposals, /approve, /reject and /who do the rest; /help explains
    /// them. With --json every envelope that is heard is printed as it came.
    Chat {
        /// Topic to enter
        #[arg(long, default_value = crate::config::MAIN_TOPIC)]
        topic: String,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Look at who takes part, and change what they may do
    #[command(subcommand)]
    Participants(ParticipantsCommand),
    /// Look at what others propose, and decide about it
    ///
    /// Asks a gateway that runs. What may be seen and decided is what the token shown to it could do itself.
    #[command(subcommand)]
    Proposals(ProposalsCommand),
    /// Issue and revoke tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Ask the audit log what happened, and check that nobody changed it
    ///
    /// Works on the data directory, also while a gateway runs.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Find out what is wrong, and how to mend it
    Doctor(DoctorArgs),
    /// Check and show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page, or write all pages into a directory
    Man {
        /// Write one page for every command into this directory
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

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

/// Which gateway to talk to.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GatewayArgs {
    /// A running gateway, such as http://127.0.0.1:7070 [default: one that runs here, else the configuration]
    #[arg(long, value_name = "URL", env = "PORTMOOT_URL", hide_env_values = true, help_heading = "Gateway")]
    pub(crate) url: Option<String>,
    /// The token to show to it
    #[arg(
        long,
        value_name = "TOKEN",
        env = "PORTMOOT_TOKEN",
        hide_env_values = true,
        hide_env_values = true,
        help_heading = "Gateway"
    )]
    pub(crate) token: Option<String>,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Start servers from elsewhere without asking
    #[arg(long, short, help_heading = "Configuration")]
    pub(crate) yes: bool,
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

/// `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR", env = "PORTMOOT_LISTEN", hide_env_values = true)]
    pub(crate) listen: Option<String>,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Start servers from elsewhere without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// `stdio`.
#[derive(Debug, Args)]
pub(crate) struct StdioArgs {
    /// Topic to enter
    #[arg(long, default_value = crate::config::MAIN_TOPIC)]
    pub(crate) topic: String,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
}

/// `servers ...`.
#[derive(Debug, Subcommand)]
pub(crate) enum ServersCommand {
    /// List the servers with their states
    Ls {
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Show everything about one server
    Show {
        /// Its configured name
        name: String,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

/// `tools ...`.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools that you may call
    Ls {
        /// Topic to look into
        #[arg(long, default_value = crate::config::MAIN_TOPIC)]
        topic: String,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Show a tool with its schema
    Show {
        /// Its public name
        name: String,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Call a tool
    ///
    /// Forms that the server asks for are filled in at the terminal, and declined without one. URLs are printed in full
    /// and never opened. Exit code 1 when the tool answers with an error.
    Call {
        /// Its public name
        name: String,
        /// Arguments: key=text or key:=json
        #[arg(value_name = "KEY=VALUE")]
        arguments: Vec<String>,
        /// All arguments as one JSON object; single ones are laid over it
        #[arg(long, value_name = "JSON")]
        args: Option<String>,
        /// Topic to call it in
        #[arg(long, default_value = crate::config::MAIN_TOPIC)]
        topic: String,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

/// `participants ...`.
#[derive(Debug, Subcommand)]
pub(crate) enum ParticipantsCommand {
    /// List who is in your topics, and what they may do
    Ls {
        /// Only this topic
        #[arg(long, value_name = "TOPIC")]
        topic: Option<String>,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Give capabilities to a participant, at once and for good, or for a time
    ///
    /// Needs the capability portmoot/grants. Nobody can give what they do not have.
    Grant {
        /// The participant
        id: String,
        /// What to give, such as mcp/request:tools/call:read_*
        #[arg(value_name = "CAPABILITY", required = true)]
        capabilities: Vec<String>,
        /// Only in this topic
        #[arg(long, value_name = "TOPIC")]
        topic: Option<String>,
        /// For how long, such as 30m or 2h [default: for good]
        #[arg(long = "for", value_name = "TIME")]
        time: Option<String>,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Take capabilities from a participant; its calls that need them end at once
    Revoke {
        /// The participant
        id: String,
        /// What to take, spelled as it is listed
        #[arg(value_name = "CAPABILITY", required = true)]
        capabilities: Vec<String>,
        /// Only in this topic
        #[arg(long, value_name = "TOPIC")]
        topic: Option<String>,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

/// `proposals ...`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProposalsCommand {
    /// List what waits for a decision, the oldest first
    Ls {
        /// Those that are over as well
        #[arg(long)]
        all: bool,
        /// Only in this topic
        #[arg(long, value_name = "TOPIC")]
        topic: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Show everything about one proposal; nothing in it stays hidden
    Show {
        /// Its id
        id: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Approve a proposal: it runs once, on your authority
    ///
    /// Bound to what was shown. Without --digest the proposal is shown and the question put at the terminal. Exit code 3
    /// when it was decided already, was yours, or is not what the digest says.
    Approve {
        /// Its id
        id: String,
        /// Run it with these arguments instead, a JSON object
        #[arg(long, value_name = "JSON")]
        arguments: Option<String>,
        /// The digest of what you were shown
        #[arg(long, value_name = "HEX")]
        digest: Option<String>,
        /// Approve it as it stands, without being shown it
        #[arg(long, short, conflicts_with = "digest")]
        yes: bool,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Reject a proposal: it never runs
    Reject {
        /// Its id
        id: String,
        /// Why, in words that its proposer can act on
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Take back what you have proposed yourself
    Withdraw {
        /// Its id
        id: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
}

/// `token ...`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Issue a token; it is printed once
    New {
        /// The participant that it makes of its bearer
        name: String,
        /// A capability, such as mcp/request:tools/call:read_*; may be given more than once
        #[arg(long = "capability", value_name = "CAPABILITY")]
        capabilities: Vec<String>,
        /// A topic that it may enter; may be given more than once
        #[arg(long = "topic", value_name = "TOPIC")]
        topics: Vec<String>,
        /// For how long it is valid, such as 12h or 90d [default: until revoked]
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// List the tokens that were issued
    Ls {
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Revoke a participant's tokens; what it has open ends at once
    Revoke {
        /// The participant
        name: String,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

/// `audit ...`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List what happened, oldest first
    Query {
        /// Only these kinds, such as chat, mcp/request:tools/call:read_* or system/*
        kinds: Option<String>,
        /// Only from or to this participant
        #[arg(long, value_name = "NAME")]
        participant: Option<String>,
        /// Only in this topic
        #[arg(long, value_name = "TOPIC")]
        topic: Option<String>,
        /// Only what was admitted, refused, held, approved, rejected, withdrawn, expired, completed or failed
        #[arg(long, value_name = "VERDICT")]
        verdict: Option<String>,
        /// Only this operation or proposal
        #[arg(long, value_name = "ID")]
        operation: Option<String>,
        /// Not before this: 2h (ago), 2026-07-28 or 2026-07-28T12:30:00Z
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Before this, in the same words
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
        /// Only the last so many of them
        #[arg(long, value_name = "COUNT")]
        last: Option<usize>,
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Find any entry that was changed, removed, moved or cut off
    ///
    /// Prints the log's head. Note it down elsewhere and hand it in later: then it also shows if the log and the head
    /// beside it were put back together.
    Verify {
        /// A head that was printed earlier, and must be part of the log
        #[arg(long, value_name = "SEQ:HEX")]
        head: Option<String>,
        #[command(flatten)]
        config: ConfigArgs,
    },
}

/// `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR", env = "PORTMOOT_LISTEN", hide_env_values = true)]
    pub(crate) listen: Option<String>,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

/// `config ...`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say what is wrong with the configuration, if anything
    Check {
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Print the configuration with all its layers, variables unexpanded
    Show {
        /// Say where every value comes from
        #[arg(long)]
        origin: bool,
        #[command(flatten)]
        config: ConfigArgs,
    },
}
