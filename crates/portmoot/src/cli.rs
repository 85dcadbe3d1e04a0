//! The command line's grammar and help texts. Must not know what a command does.

mod options;
mod verbs;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use options::{ConfigArgs, GatewayArgs, RunningArgs};
pub(crate) use verbs::{
    AuditCommand, ConfigCommand, ParticipantsCommand, ProposalsCommand, ServersCommand, TokenCommand,
    ToolsCommand,
};

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
        gateway: RunningArgs,
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

/// `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR", env = "PORTMOOT_LISTEN", hide_env_values = true)]
    pub(crate) listen: Option<String>,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}
