//! Grammar of `rules`.

use std::path::PathBuf;

use clap::Subcommand;

use super::options::RunningArgs;

/// `rules ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum RulesCommand {
    /// List the rules of a topic: what each decides, its state, its uses, its end
    ///
    /// Shows your own rules, and those that decide only what you could decide yourself.
    Ls {
        /// The topic
        #[arg(long, value_name = "TOPIC", default_value = config::MAIN_TOPIC)]
        topic: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Show why rules decide a proposal, or do not, and the digests that a rule for it names
    Explain {
        /// Proposal id, or its beginning
        proposal: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Approve the like of a call that waits, for some hours and calls, by a rule of yours
    ///
    /// The rule approves calls of the same proposer with the same arguments, this one first. `--when`
    /// writes a condition in place of a value, as in a file of rules. The rule is shown before it
    /// decides anything.
    Like {
        /// Proposal id, or its beginning
        proposal: String,
        /// For how long: from 10m to 8h
        #[arg(long = "for", value_name = "TIME", default_value = "1h")]
        term: String,
        /// The number of calls, from 1 to 20
        #[arg(long, default_value_t = 20)]
        uses: u32,
        /// A condition in place of a value, such as '"/amount" = { integer = [1, 100] }'; may be repeated
        #[arg(long, value_name = "CONDITION")]
        when: Vec<String>,
        /// The tool's own name, to say that you mean it: where the tool may destroy something
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Put a rule of yours that approves in force, from a file
    ///
    /// Where you have added an earlier version of it, it takes its place. Rules that reject or ask stand
    /// in the topic's file, which is the operator's.
    Add {
        /// The file with the text of one rule
        file: PathBuf,
        /// The topic
        #[arg(long, value_name = "TOPIC", default_value = config::MAIN_TOPIC)]
        topic: String,
        /// The tool's own name, to say that you mean it: where the tool may destroy something
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Show the rules that were learned from what you approved by hand, for you to accept
    ///
    /// None of them decides anything. Each shows what it rests on, what it would have decided of the
    /// past, and calls that it would approve and that were never seen. A rule of yours that is near its
    /// end, or near that of its budget, is offered again as its next version, with what differs.
    Offers {
        /// The topic
        #[arg(long, value_name = "TOPIC", default_value = config::MAIN_TOPIC)]
        topic: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Accept a rule that is offered to you: it decides from now on, on your authority
    ///
    /// A next version takes the place of the present one, with a budget and an end of its own.
    Accept {
        /// Digest of the offer as you were shown it, or its beginning
        digest: String,
        /// The topic
        #[arg(long, value_name = "TOPIC", default_value = config::MAIN_TOPIC)]
        topic: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Dismiss a rule that is offered to you: what it rests on makes no offer any more
    Dismiss {
        /// Digest of the offer as you were shown it, or its beginning
        digest: String,
        /// The topic
        #[arg(long, value_name = "TOPIC", default_value = config::MAIN_TOPIC)]
        topic: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// End a rule that was learned or added, for ever
    ///
    /// Its author may, and each participant that could decide itself all that it decides. A rule of a
    /// topic's file ends when it is removed from the file.
    End {
        /// The rule, as `rules ls` shows it
        rule: String,
        /// The topic
        #[arg(long, value_name = "TOPIC", default_value = config::MAIN_TOPIC)]
        topic: String,
        #[command(flatten)]
        gateway: RunningArgs,
    },
    /// Try rules on the past: what they would have decided of the proposals that you may see
    ///
    /// Decides nothing, and spends nothing. The gateway keeps decisions for 90 days.
    Replay {
        /// The file of rules, which no topic need name
        file: PathBuf,
        /// The topic
        #[arg(long, value_name = "TOPIC", default_value = config::MAIN_TOPIC)]
        topic: String,
        /// Only decisions at or after this time: 30d (ago), 2026-07-28 or 2026-07-28T12:30:00Z
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        #[command(flatten)]
        gateway: RunningArgs,
    },
}
