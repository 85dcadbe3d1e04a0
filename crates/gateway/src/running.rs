//! A gateway from its start to its end: journal, identities, listeners, reload.
//!
//! Owns the order in which things begin and end. Must not know command lines or configuration files.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use auth::{Participant, Sealer};
use client::Guard;
use model::{Refusal, TopicName};
use platform::{Mutex, random, unix_ms};
use store::{Journal, State, StoreError, Writer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::api;
use crate::audit::Recorder;
use crate::config::Config;
use crate::door::http::{self, Entrance};
use crate::door::stdio;
use crate::gate::Gate;
use crate::ground::Ground;
use crate::office::Office;
use crate::sealing;
use crate::tokens::{self};

/// Why a gateway does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Listening this widely is refused.
    #[error("{0}")]
    Refused(Refusal),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Which address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}

/// A running gateway.
pub struct Gateway {
    gate: Arc<Gate>,
    entrance: Arc<Entrance>,
    office: Arc<Office>,
    stop: watch::Sender<bool>,
    /// What listens.
    doors: Mutex<JoinSet<()>>,
}

impl Gateway {
    /// Starts upstreams and opens topics; listens on nothing yet. `exe` is this program, for the guard process of children;
    /// without it children are ended only when the gateway ends in order. Must be called inside a runtime.
    ///
    /// # Errors
    /// When the data directory cannot be used.
    pub fn start(config: Config, exe: Option<PathBuf>) -> Result<Self, StartError> {
        let mut journal = config.data_dir.as_deref().map(Journal::open).transpose()?;
        let sealer = match journal.as_mut() {
            Some(journal) => sealing::sealer(journal, &random(), unix_ms())?,
            None => Sealer::new(&random(), None),
        };
        let asks =
            journal.as_ref().is_some_and(|journal| tokens::tokens_configured(&config, journal.state()))
                || tokens::tokens_configured(&config, &State::default());
        let journal = journal.map(Writer::start).transpose()?;
        let audit = Recorder::open(&config, journal.as_ref())?;
        let office = Arc::new(Office::new(journal.clone(), asks));
        let identities = office.identities(&config);
        let guard = exe.and_then(|exe| match Guard::start(exe) {
            Ok(guard) => Some(guard),
            Err(error) => {
                tracing::warn!(%error, "the guard of child processes cannot be started");
                None
            }
        });
        let gate = Gate::start(config, identities, Ground::new(sealer), guard, journal, audit);
        gate.set_grants(office.grants(), None);
        let entrance = Entrance::new(Arc::clone(&gate), api::router(&gate, &office));
        Ok(Self { gate, entrance, office, stop: watch::Sender::new(false), doors: Mutex::default() })
    }

    /// Listens on the configured address and serves until [`Gateway::stop`]. Gives the address that was bound.
    ///
    /// # Errors
    /// When listening there is refused or impossible.
    pub async fn listen(&self) -> Result<SocketAddr, StartError> {
        let address = self.gate.config().listen;
        auth::may_listen(address, self.office.asks()).map_err(StartError::Refused)?;
        let listener = http::bind(address).map_err(|error| StartError::Listen { address, error })?;
        let bound = listener.local_addr().map_err(|error| StartError::Listen { address, error })?;
        self.office.announce(&bound.to_string())?;
        let door = http::serve(listener, Arc::clone(&self.entrance), self.stop.subscribe());
        self.doors.lock().spawn(door);
        Ok(bound)
    }

    /// Serves HTTP on one connection that is there already. Does not wait for a stream or WebSocket that the connection has
    /// become: that goes on by itself.
    pub async fn connection(&self, wire: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        http::connection(wire, Arc::clone(&self.entrance), self.stop.subscribe(), None).await;
    }

    /// Serves one client on a pipe, as the local user, until its side ends.
    ///
    /// # Errors
    /// When there is no such topic, or the pipe breaks.
    pub async fn stdio(
        &self,
        topic: &str,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<()> {
        let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("there is no topic `{topic}`"));
        let name = TopicName::new(topic).map_err(|_| unknown())?;
        let pump = self.gate.topic(&name).ok_or_else(unknown)?;
        let who = self.local();
        stdio::serve(&self.gate, &pump, &who, input, output).await
    }

    /// Waits until the first start of every server has ended, well or badly, but no longer than `bound`.
    pub async fn settled(&self, bound: Duration) {
        let all = async {
            for upstream in self.gate.upstreams() {
                upstream.settled().await;
            }
        };
        // What is still starting then shows as that.
        let _ = tokio::time::timeout(bound, all).await;
    }

    /// Whoever starts the process on a pipe is its user.
    fn local(&self) -> Arc<Participant> {
        let config = self.gate.config();
        tokens::local_user(&config)
    }

    /// Takes over a new configuration, whole. What it listens on and where it keeps its data need a restart.
    pub fn reload(&self, config: Config) {
        let with = config.clone();
        self.office.with_identities(&config, |identities| self.gate.reload(with, identities));
    }

    /// The whole, for status.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Whether callers need a token.
    pub fn asks_for_tokens(&self) -> bool {
        self.office.asks()
    }

    /// Stops listening, lets open requests finish for a bounded time, ends sessions and upstreams.
    pub async fn stop(&self) {
        self.gate.release_held();
        self.stop.send_replace(true);
        self.gate.stop().await;
        // Whoever is connected still hears why it ends, within the doors' own bound.
        let mut doors = std::mem::take(&mut *self.doors.lock());
        while doors.join_next().await.is_some() {}
    }
}
