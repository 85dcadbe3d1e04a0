//! Node that runs: its tasks, and what its user has of it.

use std::sync::Arc;
use std::time::Duration;

use cluster::{HomeEvent, Homes, HomesConfig, NODE_NAME_BYTES_MAX, Shard, TICK_MS, TOPICS_MAX};
use fabric::{Broadcasts, BusError, ClusterKeys, ClusterSubjects, Log, Mesh};
use model::TopicName;
use platform::Mutex;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use crate::beats::heartbeats;
use crate::carrier::Carrier;
use crate::clock::NodeClock;
use crate::heads::HeadsFile;
use crate::journals::Journals;
use crate::line::{LINE_BYTES_MAX, ShardLine};
use crate::listening::{Incoming, listen, read_beats, read_spreads};
use crate::shared::Shared;
use crate::user::HomeUser;

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
    /// The subjects of the cluster.
    pub subjects: ClusterSubjects,
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
    /// The bus cannot be listened to.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The name of the node is too long, or empty.
    #[error("a node's name has 1 to {NODE_NAME_BYTES_MAX} bytes, not {0}")]
    Name(usize),
    /// There are too many topics.
    #[error(transparent)]
    Topics(#[from] TooManyTopics),
}

/// More than [`TOPICS_MAX`] topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are {0} topics; nodes of a cluster have at most {TOPICS_MAX}")]
pub struct TooManyTopics(pub usize);

/// A line with more than [`LINE_BYTES_MAX`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line has {0} bytes, more than {LINE_BYTES_MAX}")]
pub struct LineTooLong(pub usize);

/// A node that runs. It ends without a word to the others: appends under way are stored or not.
#[derive(Debug)]
pub struct Runner {
    shared: Arc<Shared>,
    heads: Arc<Mutex<HeadsFile>>,
    /// Says when the tasks are to end.
    stop: watch::Sender<bool>,
    /// Says when they have ended.
    over: watch::Receiver<bool>,
    tasks: JoinHandle<()>,
}

impl Runner {
    /// Begins a life of a node.
    ///
    /// # Errors
    /// [`RunnerError`] when the other nodes cannot be listened to, or a limit is exceeded.
    pub async fn start(parts: RunnerParts) -> Result<Self, RunnerError> {
        let name_bytes = parts.config.node.name.len();
        if !(1..=NODE_NAME_BYTES_MAX).contains(&name_bytes) {
            return Err(RunnerError::Name(name_bytes));
        }
        check_topics(&parts.config.topics)?;
        let subjects = parts.subjects;
        let journals = Journals::new(parts.log, parts.keys, &subjects);
        let incoming = Incoming {
            beats: heartbeats(&parts.mesh, &subjects).await?,
            spreads: parts.mesh.listen(&subjects.spread().into()).await?,
        };
        let mut config = parts.config;
        config.heads = parts.heads.all();
        let shared = Arc::new(Shared::new(Homes::new(config), parts.clock));
        // The first event of all.
        shared.step(HomeEvent::Tick);
        let heads = Arc::new(Mutex::new(parts.heads));
        let carrier = Carrier {
            shared: Arc::clone(&shared),
            user: parts.user,
            mesh: parts.mesh,
            journals: Arc::new(journals),
            heads: Arc::clone(&heads),
            beats: subjects.heartbeats().clone(),
            spreads: subjects.spread().clone(),
            requests: JoinSet::new(),
            under_way: Arc::default(),
        };
        let (stop, stopped) = watch::channel(false);
        let (ends, over) = watch::channel(false);
        let tasks = tasks(&shared, carrier, incoming);
        let tasks = tokio::spawn(supervise(Arc::clone(&shared), tasks, stopped, ends));
        Ok(Self {
            shared,
            heads,
            stop,
            over,
            tasks,
        })
    }

    /// Has the home of a shard that is here store a line; the ticket is the user's number for the
    /// answer.
    ///
    /// # Errors
    /// [`LineTooLong`] when no record takes it.
    pub fn store(&self, shard: Shard, ticket: u64, line: ShardLine) -> Result<(), LineTooLong> {
        check_line(&line)?;
        self.shared.step(HomeEvent::Store {
            shard,
            ticket,
            line,
        });
        Ok(())
    }

    /// Has the home of a shard that is here write a snapshot with these lines, in place of all
    /// before; the ticket is the user's number for the answer. Each line that the user has handed in
    /// before has an answer.
    ///
    /// # Errors
    /// [`LineTooLong`] when no record takes one of them: then none is written.
    pub fn compact(
        &self,
        shard: Shard,
        ticket: u64,
        lines: Vec<ShardLine>,
    ) -> Result<(), LineTooLong> {
        lines.iter().try_for_each(check_line)?;
        self.shared.step(HomeEvent::Compact {
            shard,
            ticket,
            lines,
        });
        Ok(())
    }

    /// Has the home of the common journal, if it is here, use the refresh token of an account.
    pub fn renew(&self, account: Arc<str>, ticket: u64) {
        self.shared.step(HomeEvent::Renew { account, ticket });
    }

    /// Hands in what came of a use of a refresh token; at the home of the common journal it is
    /// stored, else it is given back.
    ///
    /// # Errors
    /// [`LineTooLong`] when no record takes the line.
    pub fn renewed(
        &self,
        account: Arc<str>,
        flight: u64,
        line: Option<ShardLine>,
    ) -> Result<(), LineTooLong> {
        line.as_ref().map_or(Ok(()), check_line)?;
        self.shared.step(HomeEvent::Renewed {
            account,
            flight,
            line,
        });
        Ok(())
    }

    /// Says which topics are configured from now on.
    ///
    /// # Errors
    /// [`TooManyTopics`]; those before stay.
    pub fn set_topics(&self, topics: Vec<TopicName>) -> Result<(), TooManyTopics> {
        check_topics(&topics)?;
        self.shared.step(HomeEvent::Topics(topics));
        Ok(())
    }

    /// Has this node hand over its homes, and take no others: it is about to stop.
    pub fn drain(&self) {
        self.shared.step(HomeEvent::Drain);
    }

    /// Has a shard of which messages are lost go on: a person has looked.
    pub fn accept(&self, shard: Shard) {
        self.shared.step(HomeEvent::Accept { shard });
    }

    /// Takes a member out that does not run any more, as a person says; at the home of the common
    /// journal.
    pub fn remove(&self, name: Arc<str>) {
        self.shared.step(HomeEvent::Remove { name });
    }

    /// Whether the node admits a request that comes now.
    #[must_use]
    pub fn admits(&self) -> bool {
        self.shared.admits()
    }

    /// Whether the node is the home of the common shard at this moment, and admits requests.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.shared.leads()
    }

    /// Looks at the state of the rules: homes, members, the node's slot.
    pub fn view<T>(&self, look: impl FnOnce(&Homes<ShardLine>) -> T) -> T {
        self.shared.view(look)
    }

    /// Waits until the node is over: it was stopped, or one of its tasks has ended, which the log
    /// says. It admits nothing any more, and its process should end.
    pub async fn ended(&self) {
        let mut over = self.over.clone();
        // Without a sender the tasks have ended too.
        let _ = over.wait_for(|is_over| *is_over).await;
    }

    /// Ends the node. When this returns, nothing of it runs, and its folder is free.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        self.ended().await;
        let heads = Arc::clone(&self.heads);
        // A write that is under way has the file.
        let _ = tokio::task::spawn_blocking(move || heads.lock().close()).await;
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.shared.end();
        self.tasks.abort();
    }
}

fn check_line(line: &ShardLine) -> Result<(), LineTooLong> {
    let bytes = line.0.len();
    if bytes > LINE_BYTES_MAX {
        return Err(LineTooLong(bytes));
    }
    Ok(())
}

fn check_topics(topics: &[TopicName]) -> Result<(), TooManyTopics> {
    if topics.len() > TOPICS_MAX {
        return Err(TooManyTopics(topics.len()));
    }
    Ok(())
}

/// The tasks of a node. Each runs until the node is over.
fn tasks(shared: &Arc<Shared>, carrier: Carrier, incoming: Incoming<Broadcasts>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(carrier.run());
    tasks.spawn(tick(Arc::clone(shared)));
    tasks.spawn(listen(Arc::clone(shared), incoming.beats, read_beats));
    tasks.spawn(listen(Arc::clone(shared), incoming.spreads, read_spreads));
    tasks
}

/// Ends the node when it is to stop, or when one of its tasks has ended.
async fn supervise(
    shared: Arc<Shared>,
    mut tasks: JoinSet<()>,
    mut stopped: watch::Receiver<bool>,
    ends: watch::Sender<bool>,
) {
    tokio::select! {
        _ = stopped.wait_for(|is_stopped| *is_stopped) => {}
        ended = tasks.join_next() => {
            let why = ended.and_then(Result::err).map(|why| why.to_string());
            let why = why.unwrap_or_else(|| "it has nothing more to do".to_owned());
            tracing::error!(why, "a task of the cluster's node has ended: this node is over");
        }
    }
    shared.end();
    tasks.shutdown().await;
    ends.send_replace(true);
}

async fn tick(shared: Arc<Shared>) {
    let mut ticks = tokio::time::interval(Duration::from_millis(TICK_MS));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        shared.step_if_free(HomeEvent::Tick);
    }
}
