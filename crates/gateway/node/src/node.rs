//! Node: this process in the cluster, from joining to its end.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cluster::{HomesConfig, NodeId, Shard, Slot};
use fabric::nats::{Nats, NatsConfig, NatsError};
use fabric::{
    Bus, BusError, ClusterKeys, ClusterSubjects, Incarnation, Log, Mesh, PeerChannel, Tunnel,
};
use platform::Mutex;
use runner::{HeadsError, HeadsFile, MachineClock, NodeClock, Runner, RunnerError, RunnerParts};
use store::{JournalWriter, Ledger, StoreError};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;
use zeroize::Zeroizing;

use crate::branch::BranchJournal;
use crate::conveyed::{Conveyed, ConveyedEnds, NotConveyed, convey};
use crate::copy::JournalCopy;
use crate::home_word::HomeWord;
use crate::lives::{self, NextLife, NodeLives};
use crate::presence::{self, Presences};
use crate::standing::NodeStanding;
use crate::user::NodeUser;
use crate::words::Words;

/// The threads of a node: so many as let one carry out effects while another one encrypts.
const THREADS: usize = 2;
/// Connections that other nodes convey and that no gateway has taken yet.
const CONVEYED_WAITING_MAX: usize = 1_024;
/// Replicas that are asked for where none are configured, and the servers form a cluster.
const REPLICAS: u8 = 3;
/// The pause before the stream is asked for again, while the servers have no leader.
const STREAM_RETRY: Duration = Duration::from_millis(200);
/// The time in which the servers have to elect a leader.
const STREAM_MAX: Duration = Duration::from_secs(30);
/// The time between two looks at the other nodes.
const LOOK: Duration = Duration::from_millis(100);
/// The folder of a data directory for what a node keeps beside its journal.
const FOLDER: &str = "cluster";

/// The parts of a node.
#[derive(Debug)]
pub struct NodeParts {
    /// The way to the servers of NATS.
    pub nats: NatsConfig,
    /// Servers that keep each record; `None` is 3 where the servers form a cluster, else 1.
    pub replicas: Option<u8>,
    /// The key that all nodes of the cluster have.
    pub key: Zeroizing<[u8; 32]>,
    /// The node's name.
    pub name: String,
    /// The time without contact after which it serves nothing.
    pub cut_off: Duration,
    /// The data directory.
    pub directory: PathBuf,
    /// The journal of that directory, which is this node's alone.
    pub local: JournalWriter,
}

/// A node that cannot join.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The servers of NATS cannot be used.
    #[error(transparent)]
    Nats(#[from] NatsError),
    /// The bus cannot be used.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The data directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file of known places cannot be used.
    #[error(transparent)]
    Heads(#[from] HeadsError),
    /// The runner cannot begin.
    #[error(transparent)]
    Runner(#[from] RunnerError),
    /// The system gives no threads or folders.
    #[error("the node cannot begin: {0}")]
    System(#[from] io::Error),
}

/// Another node that is the home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherHome {
    /// The node.
    pub node: NodeId,
    /// The epoch of its time as the home.
    pub epoch: u64,
}

/// This process in the cluster. Dropping it ends that without a word to the others.
pub struct ClusterNode {
    life: Arc<NodeTasks>,
    standing: watch::Receiver<NodeStanding>,
    conveyed: Mutex<Option<mpsc::Receiver<Conveyed>>>,
    /// `None` once it is dropped.
    runtime: Option<Runtime>,
}

/// What the tasks of a node share.
struct NodeTasks {
    me: NodeId,
    mesh: Arc<Mesh>,
    runner: Arc<OnceLock<Runner>>,
    presences: Arc<Presences>,
    words: Words,
    homes: watch::Sender<Option<OtherHome>>,
    /// This node's word as the home.
    said: watch::Sender<Option<HomeWord>>,
    branch: Arc<Mutex<Option<Arc<BranchJournal>>>>,
    copy: Arc<Mutex<JournalCopy>>,
}

impl NodeTasks {
    fn other_home(&self) -> Option<OtherHome> {
        let runner = self.runner.get()?;
        let home = runner.view(|homes| {
            let (node, epoch) = homes.home_of(&Shard::Common)?;
            let node = node.clone();
            Some(OtherHome { node, epoch })
        });
        home.filter(|home| home.node != self.me)
    }
}

impl ClusterNode {
    /// Joins the cluster: from then on this node may become its home.
    ///
    /// # Errors
    /// [`NodeError`] when NATS or the data directory cannot be used.
    pub async fn join(parts: NodeParts) -> Result<Self, NodeError> {
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(THREADS).thread_name("portmoot-node");
        let runtime = runtime.enable_all().build()?;
        let joined = runtime.spawn(connect(parts));
        // A task that panicked has said so.
        let joined = joined.await.map_err(io::Error::other);
        match joined.map_err(NodeError::from).flatten() {
            Ok(joined) => Ok(Self {
                life: joined.life,
                standing: joined.standing,
                conveyed: Mutex::new(Some(joined.conveyed)),
                runtime: Some(runtime),
            }),
            Err(why) => {
                runtime.shutdown_background();
                Err(why)
            }
        }
    }

    /// A node whose tasks run on the caller's threads.
    #[cfg(test)]
    pub(crate) fn of(joined: Joined) -> Self {
        Self {
            life: joined.life,
            standing: joined.standing,
            conveyed: Mutex::new(Some(joined.conveyed)),
            runtime: None,
        }
    }

    /// The number of entries in its copy of the common journal.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> usize {
        self.life.copy.lock().entries().len()
    }

    /// This node's part in the cluster, and each change of it.
    #[must_use]
    pub fn standing(&self) -> watch::Receiver<NodeStanding> {
        self.standing.clone()
    }

    /// This node.
    #[must_use]
    pub fn id(&self) -> &NodeId {
        &self.life.me
    }

    /// Whether this node is the home at this moment, by the clock too: a process that was stopped
    /// for a while is not.
    #[must_use]
    pub fn leads(&self) -> bool {
        let runner = self.life.runner.get();
        runner.is_some_and(Runner::leads)
    }

    /// Whether this node may serve clients at this moment: it has all that the home has confirmed.
    #[must_use]
    pub fn admits(&self) -> bool {
        let runner = self.life.runner.get();
        runner.is_some_and(Runner::admits)
    }

    /// The journal for a gateway of this node that is a branch: it follows what the home writes. The
    /// former one is over. `None` while this node is not as new as the others.
    #[must_use]
    pub fn branch(&self) -> Option<Arc<BranchJournal>> {
        let is_readable = self.life.copy.lock().fault().is_none();
        if !is_readable || !self.admits() {
            return None;
        }
        let journal = BranchJournal::new(Arc::clone(&self.life.copy));
        let former = self.life.branch.lock().replace(Arc::clone(&journal));
        if let Some(former) = former {
            former.end();
        }
        Some(journal)
    }

    /// Says something to the other nodes as the home, in this epoch, now and from now on; `None` ends
    /// that.
    pub fn say_as_home(&self, word: Option<HomeWord>) {
        self.life.said.send_if_modified(|said| {
            let is_new = *said != word;
            *said = word;
            is_new
        });
    }

    /// The epoch of this node's time as the home, if it is.
    #[must_use]
    pub fn home_epoch(&self) -> Option<u64> {
        let runner = self.life.runner.get()?;
        runner.view(|homes| {
            let (node, epoch) = homes.home_of(&Shard::Common)?;
            (*node == self.life.me).then_some(epoch)
        })
    }

    /// The latest word of another node that is the home, or was, and each new one.
    #[must_use]
    pub fn home_words(&self) -> watch::Receiver<Option<HomeWord>> {
        self.life.presences.home_words()
    }

    /// The names of the members of the cluster, as far as this node knows.
    #[cfg(test)]
    pub(crate) fn members(&self) -> Vec<Arc<str>> {
        let runner = self.life.runner.get();
        runner.map_or_else(Vec::new, |runner| {
            runner.view(|homes| homes.members().cloned().collect())
        })
    }

    /// The other node that is the home, as far as this one knows.
    #[must_use]
    pub fn other_home(&self) -> Option<OtherHome> {
        self.life.other_home()
    }

    /// The other node that is the home, and each change.
    #[must_use]
    pub fn other_homes(&self) -> watch::Receiver<Option<OtherHome>> {
        self.life.homes.subscribe()
    }

    /// Conveys a client's connection to a home: the bytes of the tunnel are those of the
    /// connection from then on.
    ///
    /// # Errors
    /// [`NotConveyed`]: then another try, at the next home, loses nothing.
    pub async fn convey(
        &self,
        home: &OtherHome,
        ends: ConveyedEnds,
    ) -> Result<Tunnel, NotConveyed> {
        let at = self.life.presences.of(&home.node);
        let tunnel = self.life.mesh.tunnel(at.ok_or(NotConveyed::NoHome)?)?;
        convey(tunnel, ends).await
    }

    /// Conveys a client's connection to the node of this slot, whose requests are for it.
    ///
    /// # Errors
    /// As [`ClusterNode::convey`].
    pub async fn convey_to(&self, slot: u16, ends: ConveyedEnds) -> Result<Tunnel, NotConveyed> {
        let runner = self.life.runner.get();
        let name = runner
            .and_then(|runner| runner.view(|homes| homes.member_of(Slot(slot)).map(Arc::clone)));
        let at = name.and_then(|name| self.life.presences.named(&name));
        let tunnel = self.life.mesh.tunnel(at.ok_or(NotConveyed::NoHome)?)?;
        let is_for_node = true;
        convey(
            tunnel,
            ConveyedEnds {
                is_for_node,
                ..ends
            },
        )
        .await
    }

    /// The number of this node in what clients send back, once it is a member.
    #[must_use]
    pub fn slot(&self) -> Option<u16> {
        let runner = self.life.runner.get()?;
        runner.view(|homes| homes.slot().map(|slot| slot.0))
    }

    /// The numbers of the other members.
    #[must_use]
    pub fn other_slots(&self) -> Vec<u16> {
        let runner = self.life.runner.get();
        runner.map_or_else(Vec::new, |runner| {
            runner.view(|homes| homes.other_slots().map(|slot| slot.0).collect())
        })
    }

    /// The connections that other nodes convey to this one, for the one who takes them; `None` once
    /// they are taken. Each waits for [`Conveyed::take`], or is dropped.
    pub fn conveyed(&self) -> Option<mpsc::Receiver<Conveyed>> {
        self.conveyed.lock().take()
    }

    /// Hands what this node is the home of over to others, and takes nothing any more. Returns once
    /// it is no home, or after `within`.
    pub async fn drain(&self, within: Duration) {
        if let Some(runner) = self.life.runner.get() {
            runner.drain();
        }
        let mut standing = self.standing.clone();
        let away = standing.wait_for(|standing| !matches!(standing, NodeStanding::Home(_)));
        let _ = tokio::time::timeout(within, away).await;
    }

    /// Waits until the node is over, because a part of it has failed; the log says why. Its process
    /// should end.
    pub async fn failed(&self) {
        match self.life.runner.get() {
            Some(runner) => runner.ended().await,
            None => std::future::pending().await,
        }
    }

    /// Notes the digest of the configuration, for a person who compares nodes.
    pub fn set_config(&self, digest: u64) {
        self.life.words.set_config(digest);
    }
}

impl Drop for ClusterNode {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for ClusterNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({})", self.life.me.name)
    }
}

/// What joining has made.
pub(crate) struct Joined {
    life: Arc<NodeTasks>,
    standing: watch::Receiver<NodeStanding>,
    conveyed: mpsc::Receiver<Conveyed>,
}

/// The ways to other nodes.
pub(crate) struct Ways {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) subjects: ClusterSubjects,
    pub(crate) clock: Arc<dyn NodeClock>,
}

async fn connect(parts: NodeParts) -> Result<Joined, NodeError> {
    let nats = Arc::new(Nats::connect(&parts.nats).await?);
    make_stream(&nats, parts.replicas).await?;
    let ways = Ways {
        subjects: nats.subjects().clone(),
        log: nats.clone(),
        bus: nats,
        clock: Arc::new(MachineClock),
    };
    begin(parts, ways).await
}

/// Makes the stream, once the servers have a leader. Servers that form no cluster keep one replica.
async fn make_stream(nats: &Nats, replicas: Option<u8>) -> Result<(), NodeError> {
    let start = tokio::time::Instant::now();
    let mut wish = replicas.unwrap_or(REPLICAS);
    loop {
        match nats.make_stream(wish).await {
            Ok(facts) => {
                tracing::info!(replicas = facts.replicas, "the cluster's log is there");
                return Ok(());
            }
            Err(NatsError::Alone) if replicas.is_none() && wish > 1 => wish = 1,
            Err(NatsError::Stream(why)) if start.elapsed() < STREAM_MAX => {
                tracing::debug!(%why, "the cluster's log is not there yet");
                tokio::time::sleep(STREAM_RETRY).await;
            }
            Err(why) => return Err(why.into()),
        }
    }
}

pub(crate) async fn begin(parts: NodeParts, ways: Ways) -> Result<Joined, NodeError> {
    let lives: Ledger<NodeLives> = parts.local.ledger()?;
    let next = lives::begin(&lives, u64::from_le_bytes(platform::random()))?;
    let me = NodeId {
        name: parts.name.into(),
        incarnation: next.life,
    };
    let keys = ClusterKeys::new(&parts.key);
    let nodes = ways.subjects.nodes().clone();
    let mesh = Mesh::join(ways.bus, nodes, keys.clone(), Incarnation::random()).await?;
    let mesh = Arc::new(mesh);
    let at = ways.subjects.presence().clone();
    let words = mesh.listen(&(&at).into()).await?;
    let (standing, of_standing) = watch::channel(NodeStanding::Away);
    let runner = Arc::<OnceLock<Runner>>::default();
    let copy = Arc::<Mutex<JournalCopy>>::default();
    let branch = Arc::<Mutex<Option<Arc<BranchJournal>>>>::default();
    let user = NodeUser {
        copy: Arc::clone(&copy),
        runner: Arc::clone(&runner),
        home: Mutex::default(),
        branch: Arc::clone(&branch),
        standing,
        lives,
    };
    let started = Runner::start(RunnerParts {
        config: homes_config(&me, next, parts.cut_off),
        log: ways.log,
        mesh: Arc::clone(&mesh),
        keys,
        subjects: ways.subjects,
        heads: heads(&parts.directory)?,
        clock: ways.clock,
        user: Arc::new(user),
    });
    let _ = runner.set(started.await?);
    let presences = Arc::<Presences>::default();
    let (sender, conveyed) = mpsc::channel(CONVEYED_WAITING_MAX);
    let said = watch::Sender::new(None);
    tokio::spawn(presence::say(
        Arc::clone(&mesh),
        at,
        me.clone(),
        said.subscribe(),
    ));
    tokio::spawn(presence::hear(
        Arc::clone(&presences),
        Arc::clone(&mesh),
        words,
    ));
    let words = Words::new(
        me.clone(),
        Arc::clone(&mesh),
        Arc::clone(&runner),
        &parts.directory,
    );
    tokio::spawn(accept(Arc::clone(&mesh), sender, words.clone()));
    let life = Arc::new(NodeTasks {
        me,
        mesh,
        runner,
        presences,
        words,
        homes: watch::Sender::new(None),
        said,
        branch,
        copy,
    });
    tokio::spawn(watch_nodes(Arc::clone(&life)));
    Ok(Joined {
        life,
        standing: of_standing,
        conveyed,
    })
}

fn homes_config(me: &NodeId, next: NextLife, cut_off: Duration) -> HomesConfig {
    let mut config = HomesConfig::new(me.clone(), Vec::new());
    config.former_homes = next.was_home.then_some(Shard::Common).into_iter().collect();
    config.cut_off_ms = platform::millis(cut_off);
    config
}

fn heads(directory: &Path) -> Result<HeadsFile, NodeError> {
    let folder = directory.join(FOLDER);
    std::fs::create_dir_all(&folder)?;
    Ok(HeadsFile::open(&folder)?)
}

/// Notes who is the home, and ends the channels with nodes that say nothing any more.
async fn watch_nodes(life: Arc<NodeTasks>) {
    let mut times = tokio::time::interval(LOOK);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        for silent in life.presences.forget_silent() {
            life.mesh.peer_lost(silent);
        }
        let now = life.other_home();
        life.homes.send_if_modified(|known| {
            let is_new = *known != now;
            *known = now;
            is_new
        });
    }
}

async fn read_conveyed(tunnel: Tunnel, place: mpsc::OwnedPermit<Conveyed>) {
    if let Some(conveyed) = Conveyed::read(tunnel).await {
        place.send(conveyed);
    }
}

/// Takes up the tunnels that other nodes open, and the calls of commands. One tunnel more than may
/// wait is closed.
async fn accept(mesh: Arc<Mesh>, conveyed: mpsc::Sender<Conveyed>, words: Words) {
    loop {
        match mesh.accept().await {
            PeerChannel::Tunnel(tunnel) => match conveyed.clone().try_reserve_owned() {
                // Beside the others: a node that says nothing more keeps no other one waiting.
                Ok(place) => drop(tokio::spawn(read_conveyed(tunnel, place))),
                Err(_) => tracing::debug!("too many conveyed connections wait"),
            },
            // Of commands: this version has no calls between nodes.
            PeerChannel::Call(call) => words.serve(call),
        }
    }
}
