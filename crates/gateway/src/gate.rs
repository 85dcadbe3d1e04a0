//! The gateway as a whole: what it is made of. `rights` says who may do what, `callers` lets in and sees off, `reload` puts
//! in force what is configured; each builds on those before it.
//!
//! Owns what is in force at this moment. Must not know HTTP, pipes or files.

mod callers;
mod reload;
mod rights;
mod sink;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

use auth::{Identities, Participant};
use client::Guard;
use model::{ParticipantId, Refusal, TopicName};
use platform::{Mutex, RwLock, unix_ms};
use store::Writer;
use tokio::sync::Notify;
use upstream::Upstream;
use upstream::config::ServerConfig;

use crate::audit::Recorder;
use crate::bounds::{Bounds, Held};
use crate::caller::Caller;
use crate::config::{Config, Limits};
use crate::grants::Grants;
use crate::ground::Ground;
use crate::pump::Pump;
use crate::sessions::Sessions;

/// One running gateway.
pub struct Gate {
    ground: Arc<Ground>,
    guard: Option<Guard>,
    journal: Option<Writer>,
    audit: Recorder,
    config: RwLock<Arc<Config>>,
    identities: RwLock<Arc<Identities>>,
    grants: RwLock<Arc<Grants>>,
    /// The number of the next guest.
    guests: AtomicU64,
    topics: RwLock<HashMap<TopicName, Arc<Pump>>>,
    upstreams: RwLock<Vec<(ServerConfig, Arc<Upstream>)>>,
    sessions: Sessions,
    held: Arc<Held>,
    bounds: RwLock<Arc<Bounds>>,
    modern: Mutex<HashMap<(TopicName, ParticipantId), Seen>>,
    /// There are other identities now.
    renewed: Arc<Notify>,
    this: Weak<Gate>,
}

/// A modern caller, and when it last asked.
struct Seen {
    caller: Arc<Caller>,
    at_ms: u64,
}

impl Gate {
    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read())
    }

    /// The limits in force.
    pub fn limits(&self) -> Limits {
        self.config().limits
    }

    /// The bounds of a new stream.
    pub fn bounds(&self) -> Arc<Bounds> {
        Arc::clone(&self.bounds.read())
    }

    /// The account of what waits.
    pub fn held(&self) -> &Arc<Held> {
        &self.held
    }

    /// The audit log.
    pub fn audit(&self) -> &Recorder {
        &self.audit
    }

    /// Whether what must be written down can be; where nothing is, nothing must.
    pub fn keeps_its_journal(&self) -> bool {
        self.journal.as_ref().is_none_or(|journal| journal.trouble().is_none())
    }

    /// The clock and ids.
    pub fn ground(&self) -> &Arc<Ground> {
        &self.ground
    }

    /// Who shows this token.
    ///
    /// # Errors
    /// The refusal for whoever shows none, or a wrong one.
    fn identify(&self, bearer: Option<&str>) -> Result<Arc<Participant>, Refusal> {
        let identities = Arc::clone(&self.identities.read());
        identities.identify(bearer, unix_ms())
    }

    /// A topic.
    pub fn topic(&self, name: &TopicName) -> Option<Arc<Pump>> {
        self.topics.read().get(name).cloned()
    }

    /// All topics.
    pub fn topics(&self) -> Vec<Arc<Pump>> {
        self.topics.read().values().cloned().collect()
    }

    /// The upstreams, in the order of the configuration.
    pub fn upstreams(&self) -> Vec<Arc<Upstream>> {
        let upstreams = self.upstreams.read();
        upstreams.iter().map(|(_, upstream)| Arc::clone(upstream)).collect()
    }

    /// The legacy sessions over HTTP.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }
}
