//! Gateway of `serve`: one in this process, or this process as a node of a cluster.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use api::ConfigFile;
use config::Config;
use terminal::failure::Failure;
use terminal::output::Output;

use super::banner::ClusterPart;
use super::clustered::Clustered;
use super::program_file::this_program;
use super::running::Gateway;

/// The gateway of `serve`.
pub(super) enum Served {
    /// One in this process.
    Alone(Box<Gateway>),
    /// A node of a cluster, which has one while it is the home.
    Node(Box<Clustered>),
}

impl Served {
    /// Starts it; it listens on nothing yet. `file` is the configuration file that the API may
    /// change.
    ///
    /// # Errors
    /// When the data directory or the cluster cannot be used.
    pub(super) async fn start(
        config: Config,
        file: Option<Arc<ConfigFile>>,
        output: Output,
    ) -> Result<Self, Failure> {
        match config.cluster.clone() {
            None => {
                let gateway = Gateway::start(config, this_program(), file)?;
                Ok(Self::Alone(Box::new(gateway)))
            }
            Some(cluster) => {
                let node = Clustered::join(config, &cluster, file, output).await?;
                Ok(Self::Node(Box::new(node)))
            }
        }
    }

    /// Listens on the configured address, and serves until [`Served::stop`]. Returns the bound
    /// address.
    ///
    /// # Errors
    /// When listening there is refused or impossible.
    pub(super) async fn listen(&self) -> Result<SocketAddr, Failure> {
        match self {
            Self::Alone(gateway) => gateway.listen().await,
            Self::Node(node) => node.listen().await,
        }
    }

    /// Writes for commands which configuration files it reads, and why it did not take over what
    /// they say now.
    ///
    /// # Errors
    /// When the data directory cannot be written.
    pub(super) fn reads(&self, files: &[PathBuf], failed: Option<&Failure>) -> Result<(), Failure> {
        match self {
            Self::Alone(gateway) => gateway.reads(files, failed),
            Self::Node(node) => node.reads(files, failed),
        }
    }

    /// Takes over a new configuration, whole.
    pub(super) fn reload(&self, config: Config) {
        match self {
            Self::Alone(gateway) => gateway.reload(config),
            Self::Node(node) => node.reload(config),
        }
    }

    /// The participants to which tokens were issued, each once, as far as this process knows.
    pub(super) fn issued(&self) -> Vec<String> {
        match self {
            Self::Alone(gateway) => gateway.issued(),
            Self::Node(node) => node.gateway().map_or_else(Vec::new, |one| one.issued()),
        }
    }

    /// Whether callers need a token, as far as this process knows.
    pub(super) fn requires_token(&self) -> bool {
        match self {
            Self::Alone(gateway) => gateway.requires_token(),
            Self::Node(node) => node.gateway().is_none_or(|one| one.requires_token()),
        }
    }

    /// The part of this process in its cluster, if it is in one.
    pub(super) fn cluster(&self) -> Option<ClusterPart> {
        match self {
            Self::Alone(_) => None,
            Self::Node(node) => Some(node.part()),
        }
    }

    /// Why it cannot go on, once that is so.
    pub(super) async fn failed(&mut self) -> Failure {
        match self {
            Self::Alone(_) => std::future::pending().await,
            Self::Node(node) => node.failed().await,
        }
    }

    /// Drains, then ends sessions and servers.
    pub(super) async fn stop(&self) {
        match self {
            Self::Alone(gateway) => gateway.stop().await,
            Self::Node(node) => node.stop().await,
        }
    }
}
