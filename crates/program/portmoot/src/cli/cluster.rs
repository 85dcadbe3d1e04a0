//! Grammar of `cluster ...`.

use clap::Subcommand;

use super::options::ConfigArgs;

/// `cluster ...`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show the nodes: which is the home, how far each is, which it hears
    ///
    /// It listens to the nodes for one and a half seconds. Exit code 1 when no node is the home, or
    /// the home has stopped.
    Status(ConfigArgs),
    /// Go on after the servers of NATS have lost messages: what is lost stays lost
    ///
    /// The home serves nothing from the moment in which it notices a loss until this command. Look
    /// first at what happened to the servers: a server that comes back with its disk may bring all
    /// back.
    Accept {
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Take out a member whose process does not run any more
    ///
    /// The others wait no longer for it. It joins again when it starts.
    Remove {
        /// Name of the node
        node: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        config: ConfigArgs,
    },
}
