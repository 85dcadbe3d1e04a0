//! What can be done with each thing: `servers ls`, `token new`, ...

use clap::Subcommand;

use super::options::{ConfigArgs, GatewayArgs, RunningArgs};

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
        gateway: RunningArgs,
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
        gateway: RunningArgs,
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
        gateway: RunningArgs,
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

/// `config ...`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say what is wrong with the configuration, if anything, and note what does nothing
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
