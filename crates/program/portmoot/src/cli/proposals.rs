//! Grammar of `proposals`.

use clap::{Args, Subcommand};

use super::options::RunningArgs;

/// `proposals`, alone or with a command.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ProposalsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ProposalsCommand>,
    /// Only in this topic
    #[arg(long, value_name = "TOPIC")]
    pub(crate) topic: Option<String>,
    #[command(flatten)]
    pub(crate) gateway: RunningArgs,
}

/// `proposals ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ProposalsCommand {
    /// List open proposals, oldest first
    ///
    /// Ids are shortened; every command takes the beginning of an id. With --json, ids and
    /// arguments are whole.
    Ls {
        /// Include closed proposals
        #[arg(long)]
        all: bool,
        /// Print those that come or change their state too, until interrupted; with --json, one
        /// object a line
        #[arg(long)]
        watch: bool,
        /// Only in this topic
        #[arg(long, value_name = "TOPIC")]
        topic: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Show all details of a proposal, with hidden characters made visible
    Show {
        /// Proposal id, or its beginning
        id: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Approve a proposal; it runs once, with your authority
    ///
    /// The approval is bound to the digest of the proposal as it was shown. Without --digest, the
    /// command shows the proposal, who asks for what last, and asks at the terminal. Then it waits up to a minute for the
    /// answer and prints it. Exit code 1 when the call has failed, 3 when the proposal is already
    /// decided, is your own, or does not match the digest.
    Approve {
        /// Proposal id, or its beginning
        id: String,
        /// Replacement arguments, a JSON object
        #[arg(long, value_name = "JSON")]
        arguments: Option<String>,
        /// Note for the proposer, which goes with the answer
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// Edit the arguments in $VISUAL or $EDITOR before you are asked
        #[arg(long, conflicts_with_all = ["arguments", "digest", "yes"])]
        edit: bool,
        /// Digest of the proposal as it was shown to you
        #[arg(long, value_name = "HEX")]
        digest: Option<String>,
        /// Approve the current version without showing it
        #[arg(long, short, conflicts_with = "digest")]
        yes: bool,
        /// Show the whole definition of the tool before you are asked, as its server wrote it
        #[arg(long, conflicts_with_all = ["digest", "yes"])]
        full: bool,
        /// Do not wait for the answer
        #[arg(long)]
        no_wait: bool,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Reject a proposal; it does not run
    ///
    /// At a terminal, without --reason, the command asks for the reason.
    Reject {
        /// Proposal id, or its beginning
        id: String,
        /// Reason from a list: the call itself, as its arguments show it, or the moment or context
        #[arg(long, value_name = "CODE", value_parser = ["arguments", "context"])]
        code: Option<String>,
        /// Reason, sent to the proposer
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Show others that you look at a proposal
    ///
    /// It ends after five minutes, unless you claim again, and stops no participant from deciding.
    Claim {
        /// Proposal id, or its beginning
        id: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Give ten minutes more to decide about a proposal
    ///
    /// A proposal can be given more time ten times.
    Extend {
        /// Proposal id, or its beginning
        id: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Replace the arguments of one of your own proposals
    ///
    /// Reviewers look at it again: approvals of the former arguments are void.
    Amend {
        /// Proposal id, or its beginning
        id: String,
        /// Arguments that replace all proposed ones, a JSON object
        #[arg(value_name = "JSON")]
        arguments: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Withdraw one of your own proposals
    Withdraw {
        /// Proposal id, or its beginning
        id: String,
        /// Reason
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
}
