//! Grammar of `rules`.

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
}
