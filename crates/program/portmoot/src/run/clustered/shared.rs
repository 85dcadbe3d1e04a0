//! State that the tasks of a node have in common.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use api::ConfigFile;
use auth::TokenHash;
use config::Config;
use node::{ClusterNode, NodeStanding};
use platform::Mutex;
use store::recorder::Recorder;
use store::{DirectoryOwner, JournalWriter};
use terminal::failure::Failure;
use tls::ServerTls;
use tokio::sync::{Notify, watch};

use super::super::running::Gateway;

/// The pause before a connection is conveyed again.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// The pause before a gateway that could not begin is begun again.
pub(super) const BEGIN_RETRY: Duration = Duration::from_secs(1);
/// The codes of failures that pass, with the log or with this node's time as the home.
pub(super) const PASSING: [&str; 3] = ["log_unavailable", "home_elsewhere", "overloaded"];

/// The gateway of this process, while it is the home.
pub(super) type AtHome = Option<Arc<Gateway>>;

/// The state.
pub(super) struct Shared {
    pub(super) node: ClusterNode,
    /// The journal of its own data directory, which holds the directory's lock.
    pub(super) local: JournalWriter,
    pub(super) audit: Recorder,
    pub(super) operator: Option<TokenHash>,
    pub(super) file: Option<Arc<ConfigFile>>,
    pub(super) config: Mutex<Config>,
    pub(super) gateway: watch::Sender<AtHome>,
    /// Whether the gateway of this process, if it was the home, has ended whole.
    pub(super) has_ended: watch::Sender<bool>,
    /// The gateway of this process, while it is a branch.
    pub(super) branch: Mutex<AtHome>,
    /// The digest of the configuration, as far as all nodes have it in common.
    pub(super) digest: AtomicU64,
    /// Notified when the home has another configuration.
    pub(super) reloaded: Notify,
    pub(super) socket: OnceLock<TcpListener>,
    /// Entry in the data directory that commands read.
    pub(super) announced: Mutex<DirectoryOwner>,
}

impl Shared {
    pub(super) fn gateway(&self) -> AtHome {
        self.gateway.borrow().clone()
    }

    /// Notes the configuration's digest, here and in the node's words.
    pub(super) fn set_digest(&self, digest: u64) {
        self.digest.store(digest, Ordering::Release);
        self.node.set_config(digest);
    }

    /// Writes what commands must know of this process into the data directory.
    pub(super) fn announce(&self) -> Result<(), Failure> {
        let tls = self.config.lock().doors.tls.clone();
        let certificate = tls.as_ref().map(ServerTls::fingerprint);
        let mut announced = self.announced.lock();
        announced.certificate = certificate.map(|sha256| model::Digest(sha256).to_string());
        Ok(self.local.announce(announced.clone())?)
    }

    /// Waits until the cluster has a home that serves, or has none before a person has looked.
    pub(super) async fn first_home(&self) {
        let (mut own, mut other) = (self.gateway.subscribe(), self.node.other_homes());
        let mut standing = self.node.standing();
        tokio::select! {
            _ = own.wait_for(Option::is_some) => {}
            _ = other.wait_for(Option::is_some) => {}
            _ = standing.wait_for(|now| matches!(now, NodeStanding::Lost)) => {}
        }
    }
}
