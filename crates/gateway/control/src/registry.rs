//! Registry: servers, topics, identities and grants that are in force.

mod branch;
mod newcomers;
mod reload;
mod swaps;
mod switches;
mod visitors;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ::registry::Shelf;
use auth::Sealer;
use client::Guard;
use model::{ParticipantId, TopicName};
use oauth::ServerAccounts;
use platform::{Mutex, RwLock, Share, Shares, random};
use room::Close;
use store::{JournalWriter, StoreError};
use telemetry::{AuditExports, ExportCounts};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use upstream::{KeptManifests, Resolve, Starts, Upstream, config::ServerConfig};

pub use switches::Switch;
pub use visitors::{CallerLinks, Visitor};

use crate::in_force::InForce;
use store::recorder::Recorder;

use crate::{bounds::Bounds, pins::Pins, references};
use config::Config;
use gateway::{Context, Dispatch, Topic, TopicLedgers};
use identity::Standing;
use identity::bearers::Bearers;
use topic::BuiltinTool;

/// Time that open calls may take to end when the gateway stops.
pub const DRAIN: Duration = Duration::from_secs(5);
/// Time between two looks for open calls meanwhile.
const DRAIN_POLL: Duration = Duration::from_millis(20);

/// All guests together may have this part of a participant's share of the bytes that wait.
const GUESTS_PART: usize = 4;

/// Parts with which a registry starts.
pub struct RegistryParts {
    /// The configuration.
    pub config: Config,
    /// Standing of participants by configuration and journal.
    pub standing: Standing,
    /// Seals ids, cursors and states.
    pub sealer: Sealer,
    /// Ends child processes if the gateway is killed.
    pub guard: Option<Guard>,
    /// Journal of the gateway, if it keeps one.
    pub journal: Option<JournalWriter>,
    /// The audit log.
    pub audit: Recorder,
    /// Accounts at servers.
    pub accounts: Arc<ServerAccounts>,
    /// The slot of its node, if it is a branch: another process writes the journal, and has proposals
    /// and rooms.
    pub branch: Option<u16>,
}

/// What is in force in a gateway, and what runs by it.
pub struct Registry {
    /// Clock, ids and seal.
    pub context: Arc<Context>,
    /// The guard of child processes, if there is one.
    pub guard: Option<Guard>,
    /// The gate of all starts of servers.
    starts: Arc<Starts>,
    /// Lists of servers when they last ran, and the participants that used them.
    kept: Arc<KeptManifests>,
    /// Resolves references of servers, if that is configured.
    references: Option<Arc<dyn Resolve>>,
    /// The journal, if the gateway keeps one.
    pub journal: Option<JournalWriter>,
    /// The parts of the topics in the journal.
    ledgers: Option<TopicLedgers>,
    /// The audit log.
    pub audit: Recorder,
    /// Accounts at servers.
    pub accounts: Arc<ServerAccounts>,
    /// Trusted definitions of servers.
    pub pins: Arc<Pins>,
    /// Whether another process writes the journal, and has proposals and rooms.
    is_branch: bool,
    in_force: RwLock<Arc<InForce>>,
    /// Held while another value is made from the one in force.
    swapping: Mutex<()>,
    /// Access tokens of issuers, and their bearers.
    pub bearers: Arc<Bearers>,
    /// Moves with every change of what participants may do.
    epoch: Arc<AtomicU64>,
    /// The number of the next guest.
    guests: AtomicU64,
    /// Whether the local user is known beside the bearers of tokens.
    serves_pipe: AtomicBool,
    topics: RwLock<HashMap<TopicName, Arc<Dispatch>>>,
    upstreams: RwLock<Vec<(ServerConfig, Arc<Upstream>)>>,
    /// The servers that operators have disabled, by name.
    off: Mutex<BTreeSet<String>>,
    /// Held while a configuration is taken over.
    applying: Mutex<()>,
    /// Held by a branch while what the journal has of a topic is read and taken over.
    following: Mutex<()>,
    /// The bytes that wait, with a share for each participant.
    pub held: Arc<Shares>,
    /// The bytes of senders that are not known yet, with a share for each address.
    pub newcomers: Arc<Shares>,
    /// Number of legacy sessions that are open over HTTP. The doors write it, for the metrics.
    pub http_sessions: AtomicUsize,
    /// Numbers of messages to the collector of telemetry. The exporter writes them, for the metrics.
    pub exports: Arc<ExportCounts>,
    /// Progress of the export of the audit log.
    pub audit_exports: Arc<AuditExports>,
    /// The commits of tool schemas that the schema registry or a list has answered with.
    pub shelf: Shelf,
    /// Identities or grants have changed, and with them the next expiry.
    renewed: Arc<Notify>,
    /// Sends whenever something has expired.
    expired: watch::Sender<()>,
}

impl Registry {
    /// Starts the configured servers and opens the topics. Must be called inside a runtime.
    ///
    /// # Errors
    /// When the journal has a record of topics or pins that cannot be read.
    pub fn start(start: RegistryParts) -> Result<Arc<Self>, StoreError> {
        let RegistryParts {
            config,
            standing,
            sealer,
            guard,
            journal,
            audit,
            accounts,
            branch,
        } = start;
        let held = Shares::new(
            config.limits.held_bytes_max,
            config.limits.participant_held_bytes_max,
        );
        let epoch = Arc::new(AtomicU64::new(1));
        let incarnations = standing.identities.incarnations();
        sealer.incarnations().set(incarnations.clone());
        let builtin = BuiltinTool::ALL.iter().map(|tool| tool.name()).collect();
        let pins = journal.as_ref().map(JournalWriter::ledger).transpose()?;
        let ledgers = journal.as_ref().map(TopicLedgers::open).transpose()?;
        let starts = config.starts;
        let numbers = gateway::field_numbers(journal.as_ref(), config.data_dir.as_deref())?;
        let kept = KeptManifests::open(config.data_dir.as_deref());
        let references = references::resolver(config.references.as_ref());
        let in_force = InForce::new(Arc::new(config), standing);
        let context = Context::new(sealer, numbers, Arc::clone(&accounts));
        let context = context.of_branch(branch.unwrap_or_default());
        let registry = Arc::new(Self {
            pins: Arc::new(Pins::open(pins, &audit, builtin)),
            context: Arc::new(context),
            guard,
            starts: Arc::new(Starts::new(starts.starts_at_once, starts.probes_at_once)),
            kept,
            references,
            is_branch: branch.is_some(),
            journal,
            ledgers,
            audit,
            accounts,
            in_force: RwLock::new(Arc::new(in_force)),
            swapping: Mutex::default(),
            bearers: Bearers::new(Arc::clone(&epoch)),
            epoch,
            // No guest of another process has the same name.
            guests: AtomicU64::new(u64::from_le_bytes(random()) >> 16),
            serves_pipe: AtomicBool::new(false),
            topics: RwLock::default(),
            upstreams: RwLock::default(),
            off: Mutex::default(),
            applying: Mutex::default(),
            following: Mutex::default(),
            held,
            newcomers: newcomers::accounts(),
            http_sessions: AtomicUsize::new(0),
            exports: Arc::default(),
            audit_exports: Arc::default(),
            shelf: Shelf::default(),
            renewed: Arc::default(),
            expired: watch::Sender::new(()),
        });
        let me = Arc::downgrade(&registry);
        // Set once: these accounts are this registry's.
        let _ = registry
            .accounts
            .services()
            .on_change
            .set(Box::new(move |server, participant| {
                if let Some(registry) = me.upgrade() {
                    registry.account_changed(server, participant);
                }
            }));
        registry.open();
        registry.watch_expiries();
        let me = Arc::downgrade(&registry);
        let topics = move || {
            me.upgrade()
                .map_or_else(Vec::new, |registry| registry.topics())
        };
        gateway::notify_reviewers(&registry.context.notifications, Box::new(topics));
        Ok(registry)
    }

    /// A participant's share of the bytes that wait. All guests together have a smaller one.
    pub fn held_of(&self, participant: &ParticipantId) -> Arc<Share> {
        let part = if participant.is_guest() {
            GUESTS_PART
        } else {
            1
        };
        self.held
            .limited(participant.account(), self.held.share() / part)
    }

    /// The bounds of a participant's new streams.
    pub fn bounds(&self, participant: &ParticipantId) -> Bounds {
        Bounds {
            limits: self.limits(),
            held: self.held_of(participant),
        }
    }

    /// Whether another process writes the journal, and has proposals and rooms.
    pub fn is_branch(&self) -> bool {
        self.is_branch
    }

    /// Whether the journal can be written; true without one, as nothing must be written then.
    pub fn keeps_journal(&self) -> bool {
        self.journal
            .as_ref()
            .is_none_or(|journal| journal.failure().is_none())
    }

    /// Moves with every change of tokens, grants and configuration, and with every expiry. A door
    /// may keep what it learnt about a token for as long as the epoch stays.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// A topic.
    pub fn topic(&self, name: &TopicName) -> Option<Arc<Dispatch>> {
        self.topics.read().get(name).cloned()
    }

    /// All topics.
    pub fn topics(&self) -> Vec<Arc<Dispatch>> {
        self.topics.read().values().cloned().collect()
    }

    /// Some of the topics, by name.
    pub fn sorted_topics(&self, wanted: impl Fn(&TopicName) -> bool) -> Vec<Arc<Dispatch>> {
        let mut topics = self.topics();
        topics.retain(|dispatch| wanted(dispatch.name()));
        topics.sort_by(|one, other| one.name().cmp(other.name()));
        topics
    }

    /// The configured servers, in the order of the configuration.
    pub fn upstreams(&self) -> Vec<Arc<Upstream>> {
        self.upstreams
            .read()
            .iter()
            .map(|(_, upstream)| Arc::clone(upstream))
            .collect()
    }

    /// Has a server list everything again, because what is approved of it has changed.
    pub fn list_again(&self, server: &str) {
        let named = |upstream: &Arc<Upstream>| upstream.spec().name() == server;
        self.upstreams()
            .iter()
            .filter(|upstream| named(upstream))
            .for_each(|upstream| upstream.list_again());
    }

    /// Takes that the account of a participant at a server has changed.
    fn account_changed(&self, server: &str, participant: Option<&str>) {
        let id = |name: &str| ParticipantId::new(name).ok();
        let Some(id_of_server) = id(server) else {
            return;
        };
        if let Some(participant) = participant.and_then(id) {
            self.topics()
                .iter()
                .for_each(|dispatch| dispatch.account_changed(&id_of_server, &participant));
        } else if participant.is_none()
            && self
                .accounts
                .server(server)
                .is_some_and(|server| server.of(None).is_ready())
        {
            self.topics()
                .iter()
                .for_each(|dispatch| dispatch.shared_account_changed(&id_of_server));
        }
    }

    /// Waits until a server that has just been signed in at has started or failed to, within its
    /// `start_timeout`.
    pub async fn wait_for_start(&self, server: &str) {
        let upstream = self
            .upstreams()
            .into_iter()
            .find(|upstream| upstream.spec().name() == server);
        if let Some(upstream) = upstream {
            let _ = timeout(upstream.spec().start_timeout(), upstream.settled()).await;
        }
    }

    /// Answers all callers of held calls for now, so that their proposals outlast this process.
    pub fn release_held(&self) {
        for dispatch in self.topics() {
            dispatch.release_held();
        }
    }

    /// Waits until no server has an open call, within a bound; then refuses those that are left.
    pub async fn drain(&self) {
        let open = || {
            self.topics()
                .iter()
                .map(|dispatch| dispatch.with(Topic::calls_len))
                .sum::<usize>()
        };
        let deadline = Instant::now() + DRAIN;
        while open() > 0 && Instant::now() < deadline {
            sleep(DRAIN_POLL).await;
        }
        let left = open();
        if left > 0 {
            tracing::info!(target: "portmoot::run", calls = left, "open calls are refused: the gateway stops");
        }
        // Their callers go with this process.
        for dispatch in self.topics() {
            dispatch.cancel_passing_tasks().await;
        }
        self.upstreams()
            .iter()
            .for_each(|upstream| upstream.refuse_calls());
    }

    /// Closes every socket and every server, and waits until every audit entry is durable. The
    /// doors end their streams first.
    pub async fn stop(&self) {
        self.release_held();
        for dispatch in self.topics() {
            let links = dispatch.with(Topic::links);
            links
                .iter()
                .for_each(|(link, _, _)| dispatch.cut(*link, Close::GoingAway));
        }
        let mut closing = tokio::task::JoinSet::new();
        for upstream in self.upstreams() {
            closing.spawn(async move { upstream.close().await });
        }
        while closing.join_next().await.is_some() {}
        let audit = self.audit.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || audit.flush()).await {
            tracing::error!(%error, "the end of the audit log may not be written");
        }
    }
}
