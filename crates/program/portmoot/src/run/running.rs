//! A gateway from its start to its end: journal, identities, doors, reload.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use api::ConfigFile;
use auth::{Sealer, TokenHash, encode_token};
use axum::Router;
use client::Guard;
use config::Config;
use control::{Registry, RegistryParts};
use doors::{Doors, OtherNodes};
use exporter::Exporter;
use identity::grants::{Grants, NOT_APPLIED};
use identity::identities::tokens_configured;
use identity::sign_ins::make_login_key;
use identity::{AccessJournal, AccessState};
use model::{Refusal, RefusalCode, TopicName};
use oauth::{ServerAccounts, token_uses::TokenUses, vault::Vault};
use platform::{Mutex, random, unix_ms};
use store::recorder::Recorder;
use store::{DirectoryOwner, Entry, JournalWriter, Ledger, StoreError};
use tls::ServerTls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::console::console;
use super::descriptors::Descriptors;
use super::sign_in::{connect, sign_in};
use crate::remote::broken_pipe;
use terminal::address::url_of;
use terminal::exit::Exit;
use terminal::failure::Failure;
use terminal::output::LOG_TARGET;

/// A running gateway.
pub(crate) struct Gateway {
    registry: Arc<Registry>,
    doors: Doors,
    exporter: Exporter,
    access: Arc<AccessJournal>,
    descriptors: Descriptors,
    /// Address on which it listens, if it does.
    bound: OnceLock<SocketAddr>,
    /// Entry in the data directory that commands read.
    announced: Mutex<DirectoryOwner>,
}

/// What a gateway is made of: its configuration, and what outlives it in the process.
pub(crate) struct GatewayParts {
    /// The configuration.
    pub(crate) config: Config,
    /// This program, for the guard process of children; without it children end only when the
    /// gateway ends in order.
    pub(crate) exe: Option<PathBuf>,
    /// The configuration file that the API may change.
    pub(crate) file: Option<Arc<ConfigFile>>,
    /// The journal; `None` without a data directory.
    pub(crate) journal: Option<JournalWriter>,
    /// The audit log.
    pub(crate) audit: Recorder,
    /// The hash of the operator's key, if there is one.
    pub(crate) operator: Option<TokenHash>,
    /// The other nodes of the cluster, if the gateway is of one.
    pub(crate) nodes: Option<Arc<dyn OtherNodes>>,
    /// The slot of the node, if the gateway is a branch: it makes plain calls, writes nothing into the
    /// journal, and passes everything else on to the home.
    pub(crate) branch: Option<u16>,
}

impl GatewayParts {
    /// Those of a gateway that is the only one with its data directory.
    fn alone(
        config: Config,
        exe: Option<PathBuf>,
        file: Option<Arc<ConfigFile>>,
    ) -> Result<Self, Failure> {
        let data_dir = config.data_dir.as_ref();
        let journal = data_dir.map(|dir| JournalWriter::open(dir)).transpose()?;
        let operator = match data_dir {
            Some(dir) => operator_key(&config, dir, &encode_token(&random()))?,
            None => None,
        };
        Ok(Self {
            audit: audit(&config, journal.as_ref())?,
            config,
            exe,
            file,
            journal,
            operator,
            nodes: None,
            branch: None,
        })
    }
}

/// The audit log of a data directory.
pub(crate) fn audit(
    config: &Config,
    directory: Option<&JournalWriter>,
) -> Result<Recorder, Failure> {
    let audit = Recorder::open(config.audit.policy(), directory, config.audit.files)?;
    Ok(audit.redacting(config.audit.redaction()))
}

/// The state that the journal had at the start, and what depends on it.
struct OpenedJournal {
    /// The part of tokens, grants and sign-ins in it.
    ledger: Option<Ledger<AccessState>>,
    sealer: Sealer,
    /// Whether callers need a token.
    requires_token: bool,
}

impl OpenedJournal {
    /// That of a journal which another process writes.
    ///
    /// # Errors
    /// When that process has written nothing yet, or what it wrote cannot be read.
    fn of_branch(config: &Config, writer: &JournalWriter) -> Result<Self, Failure> {
        let ledger: Ledger<AccessState> = writer.ledger()?;
        let sealer = identity::kept_sealer(writer)?.ok_or(StoreError::Elsewhere)?;
        let requires_token = ledger.state(|state| tokens_configured(&config.identity, state));
        Ok(Self {
            ledger: Some(ledger),
            sealer,
            requires_token,
        })
    }

    fn of(config: &Config, journal: Option<&JournalWriter>) -> Result<Self, Failure> {
        let Some(writer) = journal else {
            return Ok(Self {
                ledger: None,
                // Nothing that it seals is read after the end of the process.
                sealer: Sealer::new(&random(), None),
                requires_token: tokens_configured(&config.identity, &AccessState::default()),
            });
        };
        let ledger: Ledger<AccessState> = writer.ledger()?;
        let sealer = identity::sealer(writer, &random(), unix_ms())?;
        if config.identity.login.is_some() {
            make_login_key(&ledger, &random(), unix_ms())?;
        }
        let requires_token = ledger.state(|state| tokens_configured(&config.identity, state));
        writer.on_uncompacted(|error| tracing::error!(%error, "the journal cannot be compacted"));
        Ok(Self {
            ledger: Some(ledger),
            sealer,
            requires_token,
        })
    }
}

/// The process that ends children of a gateway that was killed. The gateway runs without it too.
fn start_guard(exe: PathBuf) -> Option<Guard> {
    match Guard::start(exe) {
        Ok(guard) => Some(guard),
        Err(error) => {
            tracing::warn!(%error, "the guard of child processes cannot be started");
            None
        }
    }
}

/// Writes the operator key into the data directory, unless the configuration has none; its hash.
pub(crate) fn operator_key(
    config: &Config,
    dir: &Path,
    key: &str,
) -> Result<Option<TokenHash>, Failure> {
    if !config.identity.operator_key {
        store::remove_operator_key(dir)?;
        return Ok(None);
    }
    store::write_operator_key(dir, key)?;
    Ok(Some(TokenHash::of(key)))
}

/// Accounts at servers, sealed with the operator's key if there is one.
fn accounts(
    config: &Config,
    journal: Option<&JournalWriter>,
    audit: &Recorder,
) -> Result<Arc<ServerAccounts>, Failure> {
    let key = config.key.as_ref().map(oauth::key::read).transpose();
    let key = key.map_err(|error| Failure::new(Exit::Failed, "key_unusable", error.to_string()))?;
    let vault = Vault::new(
        key.as_deref(),
        journal.map(JournalWriter::ledger).transpose()?,
    );
    let public_url = config.identity.public_url.as_ref().map(ToString::to_string);
    // It does not listen yet, and with a client on a pipe it may never do.
    Ok(Arc::new(ServerAccounts::new(
        vault,
        audit.clone(),
        public_url,
        String::new(),
    )))
}

/// Warns of changes of capabilities that configured participants do not get.
fn log_not_applied(grants: &Grants) {
    let names: Vec<&str> = grants.not_applied().collect();
    if !names.is_empty() {
        let participants = names.join(", ");
        tracing::warn!(target: LOG_TARGET, participants, "{}", NOT_APPLIED);
    }
}

/// The pages beside MCP: the API, the console, sign-ins.
fn pages(
    registry: &Arc<Registry>,
    access: &Arc<AccessJournal>,
    file: Option<Arc<ConfigFile>>,
) -> Router {
    let sign_in = sign_in(registry, access);
    let connect = connect(registry, access, sign_in.as_ref());
    let codes = Arc::default();
    let api = api::router(registry, access, sign_in.clone(), &connect, file, &codes);
    let pages = console(registry, sign_in.as_ref(), api.clone(), codes).merge(api);
    let pages = pages.merge(signin::connect_router(connect));
    match sign_in {
        Some(sign_in) => pages.merge(signin::router(sign_in)),
        None => pages,
    }
}

/// The pages of a branch, of which its doors show those that are each node's own.
fn own_pages(registry: &Arc<Registry>, access: &Arc<AccessJournal>) -> Router {
    let connect = connect(registry, access, None);
    api::router(registry, access, None, &connect, None, &Arc::default())
}

/// That an address cannot be listened on.
pub(crate) fn cannot_listen(address: SocketAddr, error: &io::Error) -> Failure {
    Failure::new(
        Exit::Failed,
        "cannot_listen",
        format!("cannot listen on {address}: {error}"),
    )
    .hint("another program may be using the port; choose one with --listen 127.0.0.1:PORT")
}

impl Gateway {
    /// Starts servers and opens topics; listens on nothing yet. `exe` is this program, for the
    /// guard process of children; without it children end only when the gateway ends in order.
    /// `file` is the configuration file that the API may change. Must be called inside a runtime.
    ///
    /// # Errors
    /// When the data directory cannot be used.
    pub(crate) fn start(
        config: Config,
        exe: Option<PathBuf>,
        file: Option<Arc<ConfigFile>>,
    ) -> Result<Self, Failure> {
        Self::of(GatewayParts::alone(config, exe, file)?)
    }

    /// As [`Gateway::start`], over a journal and an audit log that are open.
    ///
    /// # Errors
    /// When the journal cannot be read or written.
    pub(crate) fn of(parts: GatewayParts) -> Result<Self, Failure> {
        let GatewayParts {
            mut config,
            exe,
            file,
            journal,
            audit,
            operator,
            nodes,
            branch,
        } = parts;
        let is_of_cluster = nodes.is_some();
        // First: limits that the process cannot keep would be in all that follows.
        let descriptors = Descriptors::fit(&mut config);
        let OpenedJournal {
            ledger,
            sealer,
            requires_token,
        } = match (branch, &journal) {
            (Some(_), Some(followed)) => OpenedJournal::of_branch(&config, followed)?,
            (_, journal) => OpenedJournal::of(&config, journal.as_ref())?,
        };
        let access = AccessJournal::new(ledger, requires_token).with_operator(operator);
        let access = Arc::new(access);
        let standing = access.standing(&config.identity);
        log_not_applied(&standing.grants);
        let guard = exe.and_then(start_guard);
        let accounts = accounts(&config, journal.as_ref(), &audit)?;
        if config.identity.login.is_some() && journal.is_none() {
            tracing::warn!(target: LOG_TARGET, "clients cannot sign in: the gateway has no data_dir");
        }
        let start = RegistryParts {
            config,
            standing,
            sealer,
            guard,
            journal,
            audit,
            accounts,
            branch,
        };
        let registry = Registry::start(start)?;
        let pages = match branch {
            Some(_) => own_pages(&registry, &access),
            None => pages(&registry, &access, file),
        };
        let doors = Doors::of_node(Arc::clone(&registry), pages, nodes)?;
        let exporter = Exporter::new(&registry);
        let gateway = Self {
            registry,
            doors,
            exporter,
            access,
            descriptors,
            bound: OnceLock::new(),
            announced: Mutex::default(),
        };
        if !is_of_cluster {
            gateway.export();
        }
        Ok(gateway)
    }

    /// Begins to export what is measured, and the audit log. Of a node, once its former gateway has
    /// ended: two at once would export entries twice.
    pub(crate) fn export(&self) {
        let config = self.registry.config();
        self.exporter.put_in_force(config.telemetry.as_ref());
        if let Some(words) = &config.audit.export {
            self.exporter.give_to(words.clone());
        }
    }

    /// Listens on the configured address and serves until [`Gateway::stop`]. Returns the bound
    /// address.
    ///
    /// # Errors
    /// When listening there is refused or impossible.
    pub(crate) async fn listen(&self) -> Result<SocketAddr, Failure> {
        let address = self.registry.config().doors.listen;
        self.check_address(address)?;
        let bound = self.doors.listen(address);
        let bound = bound.map_err(|error| cannot_listen(address, &error))?;
        self.listens_at(bound);
        self.announce()?;
        Ok(bound)
    }

    /// Listens on a socket of the process, as [`Gateway::listen`].
    ///
    /// # Errors
    /// As [`Gateway::listen`].
    pub(crate) fn listen_on(&self, socket: TcpListener) -> Result<(), Failure> {
        let bound = socket.local_addr();
        let address = self.registry.config().doors.listen;
        self.check_address(address)?;
        let bound = bound.and_then(|bound| self.doors.listen_on(socket).map(|()| bound));
        self.listens_at(bound.map_err(|error| cannot_listen(address, &error))?);
        Ok(())
    }

    fn check_address(&self, address: SocketAddr) -> Result<(), Failure> {
        let checked = auth::check_listen_address(address, self.access.requires_token());
        checked.map_err(|refusal| Failure {
            exit: Exit::Refused,
            ..Failure::from(refusal)
        })
    }

    /// Whether clients may be served that have reached another node at an address: as if this one
    /// listened there.
    fn may_listen(&self, at: SocketAddr) -> Result<(), Refusal> {
        auth::check_listen_address(at, self.access.requires_token())?;
        let doors = &self.registry.config().doors;
        let has_tls = doors.tls.is_some();
        // The doors themselves refuse proto-mcp by the address of the home.
        match auth::check_proto_listen(doors.listen, has_tls) {
            Ok(()) => auth::check_proto_listen(at, has_tls),
            Err(_) => Ok(()),
        }
    }

    /// Has other processes with the same refresh tokens asked before one is used.
    pub(crate) fn use_tokens_by(&self, uses: Arc<dyn TokenUses>) {
        let _ = self.registry.accounts.services().token_uses.set(uses);
    }

    /// Notes where it listens.
    fn listens_at(&self, bound: SocketAddr) {
        self.descriptors.log();
        let _ = self.bound.set(bound);
        let has_tls = self.registry.config().doors.tls.is_some();
        *self.registry.accounts.services().base_url.write() = url_of(&bound.to_string(), has_tls);
    }

    /// Serves a connection whose client has reached another node of the cluster, at the address
    /// `at`.
    pub(crate) async fn conveyed(
        &self,
        wire: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        client: SocketAddr,
        at: SocketAddr,
    ) {
        // Another node may listen where the home may not.
        if let Err(refusal) = self.may_listen(at) {
            tracing::warn!(target: LOG_TARGET, %at, why = %refusal.message, "a connection of another node is refused");
            return;
        }
        if let Err(error) = self.doors.conveyed(wire, client.ip(), at).await {
            tracing::warn!(%error, "a connection of another node cannot be served");
        }
    }

    /// Serves a connection that this node has accepted at the address `at`, as a branch.
    pub(crate) async fn accepted(&self, socket: TcpStream, client: SocketAddr, at: SocketAddr) {
        if let Err(refusal) = self.may_listen(at) {
            tracing::warn!(target: LOG_TARGET, %at, why = %refusal.message, "a connection is refused");
            return;
        }
        self.doors.accepted(socket, client.ip(), at).await;
    }

    /// Puts in force what the home has written, as a branch: these entries, or all.
    pub(crate) fn follow(&self, entries: Option<&[Entry]>) {
        match entries {
            Some(entries) => {
                self.registry.follow_entries(&self.access, entries);
                self.doors.follow(entries);
            }
            None => {
                self.registry.follow_all(&self.access);
                self.doors.follow_all();
            }
        }
    }

    /// The topics whose calls are shown to participants.
    pub(crate) fn watched_topics(&self) -> Vec<String> {
        let topics = self.registry.topics();
        let watched = topics.iter().filter(|dispatch| dispatch.shows_calls());
        watched
            .map(|dispatch| dispatch.name().to_string())
            .collect()
    }

    /// The servers that operators have disabled.
    pub(crate) fn disabled_servers(&self) -> Vec<String> {
        self.registry.disabled_servers()
    }

    /// Waits until other nodes need to know something else of this home than before.
    pub(crate) async fn news(&self) {
        self.registry.context.home_news.notified().await;
    }

    /// Writes what commands must know of it into the data directory.
    fn announce(&self) -> Result<(), Failure> {
        let certificate = self
            .registry
            .config()
            .doors
            .tls
            .as_ref()
            .map(ServerTls::fingerprint);
        let mut announced = self.announced.lock();
        announced.certificate = certificate.map(|sha256| model::Digest(sha256).to_string());
        announced.listen = self.bound.get().map(ToString::to_string);
        Ok(self.access.announce(announced.clone())?)
    }

    /// Writes for commands which configuration files it reads, and why it did not take over what
    /// they say now.
    ///
    /// # Errors
    /// When the data directory cannot be written.
    pub(crate) fn reads(&self, files: &[PathBuf], failed: Option<&Failure>) -> Result<(), Failure> {
        let here = std::env::current_dir().unwrap_or_default();
        let files = files
            .iter()
            .map(|file| here.join(file).display().to_string())
            .collect();
        {
            let mut announced = self.announced.lock();
            announced.files = files;
            announced.reload_failed = failed.map(Failure::lines);
        }
        self.announce()
    }

    /// Serves HTTP on one connection. Does not wait for a stream or WebSocket that the connection
    /// becomes.
    pub(crate) async fn connection(
        &self,
        wire: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) {
        self.doors.connection(wire).await;
    }

    /// Serves one client on a pipe, as the local user, until its side ends.
    ///
    /// # Errors
    /// When there is no such topic, or the pipe breaks.
    pub(crate) async fn stdio(
        &self,
        topic: &str,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Result<(), Failure> {
        let name = TopicName::new(topic).ok();
        let dispatch = name
            .and_then(|name| self.registry.topic(&name))
            .ok_or_else(|| {
                let code = RefusalCode::UnknownTarget.as_str();
                Failure::new(Exit::NotFound, code, format!("there is no topic `{topic}`"))
            })?;
        // The process that starts the gateway on a pipe is its user.
        let user = self.registry.pipe_user();
        self.doors
            .stdio(&dispatch, &user, input, output)
            .await
            .map_err(broken_pipe)
    }

    /// Takes over a new configuration, whole. What needs a restart is the same in it.
    pub(crate) fn reload(&self, config: Config) {
        self.descriptors.grow(&config);
        self.registry.reload(config, &self.access);
        let telemetry = self.registry.config().telemetry.clone();
        self.exporter.put_in_force(telemetry.as_ref());
        log_not_applied(&self.registry.grants());
        // The certificate may be another one.
        if let Err(failure) = self.announce() {
            tracing::warn!(target: LOG_TARGET, error = failure.message, "commands may not find this gateway");
        }
    }

    /// The participants to which tokens were issued, each once.
    pub(crate) fn issued(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .access
            .issued_tokens()
            .into_iter()
            .map(|token| token.name)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether callers need a token.
    pub(crate) fn requires_token(&self) -> bool {
        self.access.requires_token()
    }

    /// Stops listening, and lets open calls finish for a bounded time; then refuses them.
    pub(crate) async fn drain(&self) {
        self.registry.release_held();
        self.doors.stop_listening();
        self.registry.drain().await;
    }

    /// Drains, then ends sessions and servers.
    pub(crate) async fn stop(&self) {
        self.drain().await;
        self.end().await;
    }

    /// Ends sessions and servers, without a time for open calls.
    pub(crate) async fn end(&self) {
        self.registry.release_held();
        // While the servers that it measures are there.
        let exported = self.exporter.end();
        let closed = self.doors.close();
        tokio::join!(exported, self.registry.stop());
        self.exporter.end_of_log().await;
        // Clients still receive why their connections end, within the doors' own bound.
        closed.await;
    }
}
