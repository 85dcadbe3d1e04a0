//! Node that runs: its tasks, and what its user has of it.

use std::sync::Arc;
use std::time::Duration;

use cluster::{HomeEvent, Homes, HomesConfig, Shard, TICK_MS};
use fabric::{Broadcast, Broadcasts, BusError, ClusterKeys, Log, Mesh, SubjectError, SubjectName};
use platform::Mutex;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use crate::beats::beats_below;
use crate::carrier::{Carrier, HomeUser};
use crate::clock::NodeClock;
use crate::encoding::{read_beat, read_stored};
use crate::heads::HeadsFile;
use crate::journals::Journals;
use crate::line::{LINE_BYTES_MAX, ShardLine};
use crate::shared::Shared;

/// The parts of a node.
pub struct RunnerParts {
    /// Its configuration; its heads are those of the file.
    pub config: HomesConfig,
    /// The log.
    pub log: Arc<dyn Log>,
    /// The way to the other nodes.
    pub mesh: Arc<Mesh>,
    /// The keys that seal records.
    pub keys: ClusterKeys,
    /// The subject above all subjects of the cluster.
    pub root: SubjectName,
    /// The heads of former lives.
    pub heads: HeadsFile,
    /// The clock.
    pub clock: Arc<dyn NodeClock>,
    /// The user.
    pub user: Arc<dyn HomeUser>,
}

/// A node that cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// A subject of the cluster would be none.
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// The bus cannot be listened to.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// A line with more than [`LINE_BYTES_MAX`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line has {0} bytes, more than {LINE_BYTES_MAX}")]
pub struct LineTooLong(pub usize);

/// A node that runs. Dropping it ends it, without a word to the others: appends under way are
/// stored or not.
#[derive(Debug)]
pub struct Runner {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

impl Runner {
    /// Begins a life of a node.
    ///
    /// # Errors
    /// [`RunnerError`] when the other nodes cannot be listened to.
    pub async fn start(parts: RunnerParts) -> Result<Self, RunnerError> {
        let beats = beats_below(&parts.root)?;
        let spreads: SubjectName = format!("{}.spread", parts.root).parse()?;
        let journals = Journals::new(parts.log, parts.keys, &parts.root)?;
        let beats_of_others = parts.mesh.listen(&(&beats).into()).await?;
        let spreads_of_others = parts.mesh.listen(&(&spreads).into()).await?;
        let mut config = parts.config;
        config.heads = parts.heads.all();
        let shared = Arc::new(Shared::new(Homes::new(config), parts.clock));
        // The first event of all.
        shared.step(HomeEvent::Tick);
        let carrier = Carrier {
            shared: Arc::clone(&shared),
            user: parts.user,
            mesh: parts.mesh,
            journals: Arc::new(journals),
            heads: Arc::new(Mutex::new(parts.heads)),
            beats,
            spreads,
            requests: JoinSet::new(),
            under_way: Arc::default(),
        };
        let tasks = vec![
            tokio::spawn(carrier.run()),
            tokio::spawn(tick(Arc::clone(&shared))),
            tokio::spawn(listen(Arc::clone(&shared), beats_of_others, beat)),
            tokio::spawn(listen(Arc::clone(&shared), spreads_of_others, spread)),
        ];
        Ok(Self { shared, tasks })
    }

    /// Hands in an event of the user: lines, renewals, topics, a drain, a person's word.
    ///
    /// # Errors
    /// [`LineTooLong`] when it has a line that no record takes.
    pub fn hand_in(&self, event: HomeEvent<ShardLine>) -> Result<(), LineTooLong> {
        let line = match &event {
            HomeEvent::Store { line, .. } => Some(line),
            HomeEvent::Renewed { line, .. } => line.as_ref(),
            _ => None,
        };
        let bytes = line.map_or(0, |line| line.0.len());
        if bytes > LINE_BYTES_MAX {
            return Err(LineTooLong(bytes));
        }
        self.shared.step(event);
        Ok(())
    }

    /// Whether the node admits a request that comes now.
    #[must_use]
    pub fn admits(&self) -> bool {
        self.shared.admits()
    }

    /// Whether the node is the home of a shard at this moment.
    #[must_use]
    pub fn leads(&self, shard: &Shard) -> bool {
        self.shared.leads(shard)
    }

    /// Looks at the state of the rules: homes, members, the node's slot.
    pub fn view<T>(&self, look: impl FnOnce(&Homes<ShardLine>) -> T) -> T {
        self.shared.view(look)
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn tick(shared: Arc<Shared>) {
    let mut ticks = tokio::time::interval(Duration::from_millis(TICK_MS));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        shared.step_if_free(HomeEvent::Tick);
    }
}

/// The event of a content.
type Read = fn(&bytes::Bytes) -> Option<HomeEvent<ShardLine>>;

fn beat(content: &bytes::Bytes) -> Option<HomeEvent<ShardLine>> {
    read_beat(content).map(|beat| HomeEvent::Beat(Arc::new(beat)))
}

fn spread(content: &bytes::Bytes) -> Option<HomeEvent<ShardLine>> {
    read_stored(content).map(HomeEvent::Spread)
}

/// Hands in what other nodes send to all. What the bus drops comes again, or is read from the log.
async fn listen(shared: Arc<Shared>, mut messages: Broadcasts, read: Read) {
    while let Some(message) = messages.next().await {
        let Broadcast::From {
            sender, content, ..
        } = message
        else {
            continue;
        };
        match read(&content) {
            Some(event) => shared.step_if_free(event),
            None => tracing::warn!(%sender, "a node sends what this version cannot read"),
        }
    }
    tracing::error!("the bus has ended: this node is without contact");
}
