//! This process as a node of a cluster: it runs the gateway while it is the home, and a branch while
//! another node is, which makes plain calls and passes all other requests on to the home.

mod branch;
mod front;
mod shared;
mod token_uses;
mod ways;

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use api::ConfigFile;
use auth::encode_token;
use config::{ClusterConfig, Config};
use doors::Doors;
use fabric::nats::{NatsConfig, UserFiles};
use node::{ClusterNode, HomeJournal, HomeWord, NodeParts, NodeStanding};
use platform::Mutex;
use store::JournalWriter;
use store::recorder::Gate;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::{LOG_TARGET, Output};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, block_in_place, spawn_blocking};
use zeroize::Zeroizing;

use super::banner::ClusterPart;
use super::program_file::this_program;
use super::running::{Gateway, GatewayParts, audit, cannot_listen, operator_key};
use branch::BranchEnd;
use shared::{AtHome, BEGIN_RETRY, PASSING, Shared};
use token_uses::ClusterUses;
use ways::NodeWays;

/// The time in which a node that stops hands over what it is the home of.
const HAND_OVER_MAX: Duration = Duration::from_secs(5);
/// The time in which the gateway of a node that stops ends, once another node is the home.
const END_MAX: Duration = Duration::from_secs(15);
/// The time that a node that begins waits for the cluster to have a home.
const FIRST_HOME_MAX: Duration = Duration::from_secs(15);
/// The pause between two looks whether a new home may serve.
const LEADS_LOOK: Duration = Duration::from_millis(10);

/// A node of a cluster.
pub(super) struct Clustered {
    shared: Arc<Shared>,
    /// Ends with the node's tasks.
    failure: JoinHandle<Failure>,
    tasks: Mutex<Vec<JoinHandle<Infallible>>>,
}

impl Clustered {
    /// Joins the cluster. `file` is the configuration file that the API may change.
    ///
    /// # Errors
    /// When NATS, the key or the data directory cannot be used.
    pub(super) async fn join(
        config: Config,
        cluster: &ClusterConfig,
        file: Option<Arc<ConfigFile>>,
        output: Output,
    ) -> Result<Self, Failure> {
        let directory = config.data_dir.clone().unwrap_or_default();
        let local = JournalWriter::open(&directory)?;
        let key = cluster_key(cluster).await?;
        let operator = fabric::derived_key(&key, "operator");
        let operator = operator_key(&config, &directory, &encode_token(&operator))?;
        output.message(&format!(
            "joining the cluster {} as {}",
            cluster.name, cluster.node
        ));
        let parts = NodeParts {
            nats: nats_config(cluster),
            replicas: cluster.replicas,
            key,
            name: cluster.node.clone(),
            cut_off: cluster.cut_off,
            directory,
            local: local.clone(),
        };
        let node = join(parts).await?;
        let digest = config_digest(&config);
        let shared = Arc::new(Shared {
            node,
            audit: audit(&config, Some(&local))?,
            local,
            operator,
            file,
            config: Mutex::new(config),
            gateway: watch::Sender::new(None),
            has_ended: watch::Sender::new(true),
            branch: Mutex::default(),
            digest: AtomicU64::new(0),
            reloaded: Notify::new(),
            socket: OnceLock::new(),
            announced: Mutex::default(),
        });
        shared.set_digest(digest);
        let failure = tokio::spawn(serve_in_turn(Arc::clone(&shared)));
        Ok(Self {
            shared,
            failure,
            tasks: Mutex::default(),
        })
    }

    /// Listens on the configured address, and serves clients from then on. Returns the bound
    /// address.
    ///
    /// # Errors
    /// When listening there is impossible.
    pub(super) async fn listen(&self) -> Result<SocketAddr, Failure> {
        let shared = &self.shared;
        let address = shared.config.lock().doors.listen;
        let bind = || {
            let socket = Doors::bind(address)?;
            let bound = socket.local_addr()?;
            Ok((socket, bound))
        };
        let (socket, bound) = bind().map_err(|error| cannot_listen(address, &error))?;
        let _ = shared.socket.set(socket);
        self.tasks.lock().extend([
            tokio::spawn(front::accept(Arc::clone(shared))),
            tokio::spawn(front::take_conveyed(Arc::clone(shared))),
            tokio::spawn(say_as_home(Arc::clone(shared))),
        ]);
        shared.announced.lock().listen = Some(bound.to_string());
        shared.announce()?;
        let _ = tokio::time::timeout(FIRST_HOME_MAX, shared.first_home()).await;
        Ok(bound)
    }

    /// Writes for commands which configuration files it reads, and why it did not take over what
    /// they say now.
    ///
    /// # Errors
    /// When the data directory cannot be written.
    pub(super) fn reads(&self, files: &[PathBuf], failed: Option<&Failure>) -> Result<(), Failure> {
        let here = std::env::current_dir().unwrap_or_default();
        let files = files.iter().map(|file| here.join(file));
        {
            let mut announced = self.shared.announced.lock();
            announced.files = files.map(|file| file.display().to_string()).collect();
            announced.reload_failed = failed.map(Failure::lines);
        }
        self.shared.announce()
    }

    /// Takes over a new configuration, whole; a gateway that begins later has it too.
    pub(super) fn reload(&self, config: Config) {
        *self.shared.config.lock() = config.clone();
        // What the branch has in force meanwhile is no other node's.
        self.shared.set_digest(0);
        let branch = self.shared.branch.lock().clone();
        if let Some(branch) = branch {
            branch.reload(config.clone().of_branch());
        }
        self.shared.set_digest(config_digest(&config));
        if let Some(gateway) = self.gateway() {
            gateway.reload(config);
            self.shared.reloaded.notify_one();
        }
        // The certificate may be another one.
        if let Err(failure) = self.shared.announce() {
            tracing::warn!(target: LOG_TARGET, error = failure.message, "commands may not find this gateway");
        }
    }

    /// The gateway, while this node is the home.
    pub(super) fn gateway(&self) -> AtHome {
        self.shared.gateway()
    }

    /// Its part in the cluster.
    pub(super) fn part(&self) -> ClusterPart {
        let node = &self.shared.node;
        let cluster = self.shared.config.lock().cluster.clone();
        ClusterPart {
            name: cluster.map_or_else(String::new, |cluster| cluster.name.clone()),
            node: node.id().name.to_string(),
            other_home: node.other_home().map(|home| home.node.name.to_string()),
            is_home: self.gateway().is_some(),
        }
    }

    /// Why the node cannot go on, once that is so.
    pub(super) async fn failed(&mut self) -> Failure {
        let failed = |why: String| Failure::new(Exit::Failed, "node_failed", why);
        tokio::select! {
            failure = &mut self.failure => match failure {
                Ok(failure) => failure,
                Err(panicked) => failed(panicked.to_string()),
            },
            () = self.shared.node.failed() => failed("this node of the cluster has failed: its log says why".to_owned()),
        }
    }

    /// Ends the gateway, if there is one, and hands over to another node.
    pub(super) async fn stop(&self) {
        let branch = self.shared.branch.lock().take();
        if let Some(branch) = branch {
            branch.stop().await;
        }
        if let Some(gateway) = self.gateway() {
            gateway.drain().await;
        }
        self.shared.node.drain(HAND_OVER_MAX).await;
        // Its task ends it once it is no home. Clients learn then why their connections end.
        let mut has_ended = self.shared.has_ended.subscribe();
        let ended = has_ended.wait_for(|has_ended| *has_ended);
        if tokio::time::timeout(END_MAX, ended).await.is_err() {
            tracing::warn!("the gateway of this node did not end in time");
        }
        let audit = self.shared.audit.clone();
        let _ = spawn_blocking(move || audit.flush()).await;
        for task in self.tasks.lock().drain(..) {
            task.abort();
        }
    }
}

impl Drop for Clustered {
    fn drop(&mut self) {
        self.failure.abort();
        self.tasks.lock().iter().for_each(JoinHandle::abort);
    }
}

/// Runs the gateway whenever this node is the home, and a branch while another one is. Returns why it
/// cannot.
async fn serve_in_turn(shared: Arc<Shared>) -> Failure {
    let mut standing = shared.node.standing();
    loop {
        let now = standing.borrow_and_update().clone();
        let former = branch::end(&shared);
        match now {
            NodeStanding::Home(journal) => match begin_when_possible(&shared, &journal).await {
                Ok(gateway) => {
                    if let Some(gateway) = &gateway {
                        tokio::spawn(export_after(former, Arc::downgrade(gateway)));
                    }
                    shared.has_ended.send_replace(gateway.is_none());
                    shared.gateway.send_replace(gateway);
                }
                Err(failure) => return failure,
            },
            NodeStanding::Away => tokio::select! {
                // A node's tasks live as long as it does.
                _ = standing.changed() => {
                    standing.mark_changed();
                }
                () = branch::keep(&shared) => {}
            },
            NodeStanding::Lost => {}
        }
        let _ = standing.changed().await;
        // The latest standing alone counts; whatever it is, the former time as the home is over.
        let ended = shared.gateway.send_replace(None);
        if let Some(gateway) = ended {
            gateway.end().await;
        }
        shared.has_ended.send_replace(true);
    }
}

/// Has a gateway export once the former one has ended.
async fn export_after(former: BranchEnd, gateway: Weak<Gateway>) {
    branch::ended(former).await;
    if let Some(gateway) = gateway.upgrade() {
        gateway.export();
    }
}

/// Begins the gateway once this node may serve; `None` if it is the home no more. A log that takes
/// nothing for a while is waited for.
async fn begin_when_possible(
    shared: &Arc<Shared>,
    journal: &Arc<HomeJournal>,
) -> Result<AtHome, Failure> {
    while leads(&shared.node, journal).await {
        // Its first records wait for the log.
        let failure = match block_in_place(|| begin(shared, journal)) {
            Ok(gateway) => return Ok(Some(gateway)),
            Err(failure) => failure,
        };
        if !PASSING.contains(&failure.code.as_str()) {
            return Err(failure);
        }
        tracing::warn!(target: LOG_TARGET, error = failure.message, "the gateway of this node cannot begin yet");
        tokio::time::sleep(BEGIN_RETRY).await;
    }
    Ok(None)
}

/// Waits until a node that is the home may serve; false if it is the home no more.
async fn leads(node: &ClusterNode, journal: &HomeJournal) -> bool {
    while !node.leads() {
        if journal.is_over() {
            return false;
        }
        tokio::time::sleep(LEADS_LOOK).await;
    }
    true
}

fn begin(shared: &Arc<Shared>, journal: &Arc<HomeJournal>) -> Result<Arc<Gateway>, Failure> {
    let of_gate = Arc::clone(shared);
    let gate = Gate::new(move || of_gate.node.leads());
    let gateway = Gateway::of(GatewayParts {
        config: shared.config.lock().clone(),
        exe: this_program(),
        file: shared.file.clone(),
        journal: Some(journal.writer()?),
        audit: shared.audit.gated_by(gate),
        operator: shared.operator,
        nodes: Some(Arc::new(NodeWays::of(shared))),
        branch: None,
    })?;
    gateway.use_tokens_by(Arc::new(ClusterUses(Arc::clone(journal))));
    tracing::info!(target: LOG_TARGET, node = %shared.node.id().name, "this node is the home: it runs the gateway");
    Ok(Arc::new(gateway))
}

/// Says to the other nodes what they need to know of this one, whenever it is the home.
async fn say_as_home(shared: Arc<Shared>) -> Infallible {
    let mut gateway = shared.gateway.subscribe();
    loop {
        let at_home = gateway.borrow_and_update().clone();
        let Some(at_home) = at_home else {
            shared.node.say_as_home(None);
            let _ = gateway.changed().await;
            continue;
        };
        shared.node.say_as_home(home_word(&shared, &at_home));
        tokio::select! {
            () = at_home.news() => {}
            () = shared.reloaded.notified() => {}
            _ = gateway.changed() => {}
        }
    }
}

/// The word of this home to the other nodes.
fn home_word(shared: &Shared, gateway: &Gateway) -> Option<HomeWord> {
    let word = HomeWord {
        epoch: shared.node.home_epoch()?,
        config: shared.digest.load(Ordering::Acquire),
        watched: gateway.watched_topics(),
        off: gateway.disabled_servers(),
    };
    // Without one no other node makes calls.
    word.fits().then_some(word)
}

/// Reads the key of a cluster.
///
/// # Errors
/// When it cannot be had, or is none.
pub(crate) async fn cluster_key(cluster: &ClusterConfig) -> Result<Zeroizing<[u8; 32]>, Failure> {
    let source = cluster.key.clone();
    let read = spawn_blocking(move || oauth::key::read(&source)).await;
    let unusable = |why: String| {
        Failure::new(Exit::Failed, "key_unusable", format!("[cluster]: {why}"))
            .hint("all nodes have one: openssl rand -hex 32 > cluster.key; chmod 600 cluster.key")
    };
    match read {
        Ok(Ok(key)) => Ok(key),
        Ok(Err(why)) => Err(unusable(why.to_string())),
        Err(panicked) => Err(unusable(panicked.to_string())),
    }
}

/// The way to the servers of a cluster.
pub(crate) fn nats_config(cluster: &ClusterConfig) -> NatsConfig {
    NatsConfig {
        cluster: cluster.name.clone(),
        servers: cluster.servers.clone(),
        credentials: cluster.credentials.clone(),
        ca: cluster.ca.clone(),
        client: cluster.client.as_ref().map(|files| UserFiles {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
        }),
    }
}

/// A digest of what all nodes have in common in their configurations, as far as it can be shown: no
/// secrets, and nothing of the node itself.
fn config_digest(config: &Config) -> u64 {
    let common = Config {
        doors: Default::default(),
        data_dir: None,
        key: None,
        cluster: None,
        audit: Default::default(),
        references: None,
        ..config.clone()
    };
    let mut hasher = DefaultHasher::new();
    format!("{common:?}").hash(&mut hasher);
    // A token that was replaced on one node is still good on another. Only nodes see this.
    for participant in &config.identity.participants {
        for credential in &participant.credentials {
            credential.hash.digest().0.hash(&mut hasher);
        }
    }
    hasher.finish()
}

async fn join(parts: NodeParts) -> Result<ClusterNode, Failure> {
    ClusterNode::join(parts).await.map_err(|error| {
        Failure::new(
            Exit::Failed,
            "cluster_unreachable",
            format!("the cluster cannot be joined: {error}"),
        )
        .hint("portmoot doctor says what is wrong with it")
    })
}
