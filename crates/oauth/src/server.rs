//! Accounts at one server, and of all servers: what sessions ask for tokens, and what the API and pages act on.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use client::{AccountFault, Authorize};
use model::ParticipantId;
use platform::{Mutex, RwLock, unix_ms};
use tls::ClientTls;
use tokio::sync::{Semaphore, watch};

use crate::account::session::SessionAccount;
use crate::account::{Account, AccountState, Flight};
use crate::config::{Account as Whose, AuthConfig, Kind};
use crate::connect::{Asked, Connects};
use crate::jwt::SigningKey;
use crate::logins::Logins;
use crate::secret::Secret;
use crate::site::{DISCOVERIES_MAX, Services, Site};
use crate::vault::Vault;
use store::recorder::Recorder;

/// Accounts at one server: of the participants that were here since the start, and those that are kept.
pub const SERVER_ACCOUNTS_MAX: usize = 100_000;

/// The flights of accounts, by participant.
type Flights = HashMap<Option<String>, Flight>;

/// One server with its accounts.
pub struct Server {
    /// The server.
    pub site: Arc<Site>,
    accounts: Mutex<HashMap<Option<String>, Arc<Account>>>,
}

impl Server {
    /// A server with the accounts that are kept, and those of the configuration before that ask for tokens now.
    fn new(site: Site, mut flights: Flights) -> Self {
        let site = Arc::new(site);
        let url = site.url.as_str();
        let kept = site.services.vault.accounts(&site.name, url, site.config.private_key.as_ref());
        let is_callers = site.config.account == Whose::Caller;
        let kept = kept.into_iter().filter(|(who, saved)| who.is_some() == is_callers && site.takes(saved));
        let kept = kept.map(|(who, saved)| {
            let flight = flights.remove(&who);
            (who.clone(), Account::new(&site, who, Some(saved), flight))
        });
        let mut accounts: HashMap<_, _> = kept.collect();
        let others = flights.into_iter().filter(|(who, _)| who.is_some() == is_callers);
        let other =
            |(who, flight): (Option<String>, _)| (who.clone(), Account::new(&site, who, None, Some(flight)));
        accounts.extend(others.map(other));
        Self { accounts: Mutex::new(accounts), site }
    }

    /// Ends the use of this configuration, and returns the flights of the accounts that ask for tokens now. No other begins.
    fn end(&self) -> Flights {
        self.site.replace();
        let accounts = self.accounts.lock();
        accounts.iter().filter_map(|(who, account)| Some((who.clone(), account.flight()?))).collect()
    }

    /// The account of a participant here, or the one that all share: as the configuration has it.
    #[must_use]
    pub fn of(&self, participant: Option<&str>) -> Arc<Account> {
        let participant = participant.filter(|_| self.is_of_callers()).map(str::to_owned);
        let mut accounts = self.accounts.lock();
        if accounts.len() >= SERVER_ACCOUNTS_MAX && !accounts.contains_key(&participant) {
            accounts.retain(|_, account| account.is_ready() || Arc::strong_count(account) > 1);
        }
        let new = || Account::new(&self.site, participant.clone(), None, None);
        Arc::clone(accounts.entry(participant.clone()).or_insert_with(new))
    }

    /// Takes a participant's account out. The next that is asked for is a new one.
    fn take(&self, participant: &str) -> Option<Arc<Account>> {
        self.accounts.lock().remove(&Some(participant.to_owned()))
    }

    /// Whether each caller has an account of its own.
    #[must_use]
    pub fn is_of_callers(&self) -> bool {
        self.site.config.account == Whose::Caller
    }

    /// The accounts, the shared one first, then by participant.
    #[must_use]
    pub fn all(&self, logins: &Logins) -> Vec<(Option<String>, AccountState)> {
        let accounts: BTreeMap<_, _> = self.accounts.lock().clone().into_iter().collect();
        let state = |(who, account): (Option<String>, Arc<Account>)| {
            let mut state = account.state();
            if !matches!(state.state, "ready" | "refreshing" | "open") && logins.is_pending(&account) {
                state.state = "pending";
            }
            (who, state)
        };
        accounts.into_iter().map(state).collect()
    }
}

impl client::Accounts for Server {
    fn account(&self, caller: Option<&ParticipantId>) -> Arc<dyn Authorize> {
        Arc::new(SessionAccount::new(self.of(caller.map(ParticipantId::as_str))))
    }

    fn blocked(&self, caller: Option<&ParticipantId>) -> Option<AccountFault> {
        match (self.is_of_callers(), caller) {
            // There is no shared session that could be blocked.
            (true, None) => None,
            (_, caller) => self.of(caller.map(ParticipantId::as_str)).blocked(),
        }
    }

    fn are_of_callers(&self) -> bool {
        self.is_of_callers()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.site.changes()
    }
}

/// A server as the configuration has it.
pub struct Configured<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its URL.
    pub url: &'a str,
    /// What is trusted there.
    pub tls: &'a ClientTls,
    /// Its accounts.
    pub auth: &'a AuthConfig,
}

/// A connect request as a page shows it.
#[derive(Debug, Clone)]
pub struct ConnectRequest {
    /// Its id.
    pub id: String,
    /// The account that is asked for.
    pub account: Arc<Account>,
    /// The scopes that the server named; empty leaves the choice to the configuration and to metadata.
    pub scopes: Vec<String>,
    /// The clients that asked, as they call themselves.
    pub clients: Vec<String>,
}

/// The servers with accounts.
pub struct Accounts {
    services: Arc<Services>,
    servers: RwLock<BTreeMap<String, Arc<Server>>>,
    /// By server: what asked for tokens when its configuration ended.
    flights: Mutex<HashMap<String, Flights>>,
    /// Sign-ins under way.
    pub logins: Logins,
}

impl Accounts {
    /// Accounts in this vault. `base_url` is the gateway's address on this machine, empty while it does not listen; `public_url` the one
    /// for others.
    #[must_use]
    pub fn new(vault: Vault, audit: Recorder, public_url: Option<String>, base_url: String) -> Self {
        let discoveries = Semaphore::new(DISCOVERIES_MAX);
        let (base_url, connects, on_change) = (RwLock::new(base_url), Connects::default(), OnceLock::new());
        let services = Services { vault, audit, public_url, base_url, connects, on_change, discoveries };
        let (servers, flights) = (RwLock::default(), Mutex::default());
        Self { services: Arc::new(services), servers, flights, logins: Logins::default() }
    }

    /// Accounts of which nothing is kept, without an audit log.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::new(Vault::new(None, None), Recorder::default(), None, String::new())
    }

    /// What all servers share.
    #[must_use]
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Takes over a server from the configuration. One that has not changed keeps its accounts. Returns it, unless its requests
    /// need no tokens; the flag says whether it is as it was.
    pub fn configure(&self, server: &Configured<'_>) -> (Option<Arc<Server>>, bool) {
        let has_accounts = match server.auth.kind {
            Kind::None | Kind::Headers => false,
            Kind::OAuth | Kind::ClientCredentials | Kind::Exchange => true,
        };
        let mut servers = self.servers.write();
        let known = servers.get(server.name).filter(|known| {
            known.site.config == *server.auth
                && known.site.tls == *server.tls
                && Some(known.site.url.clone()) == url::Url::parse(server.url).ok()
        });
        if let Some(known) = known.filter(|_| has_accounts) {
            return (Some(Arc::clone(known)), true);
        }
        let before = servers.remove(server.name);
        before.iter().for_each(|before| self.end(before));
        if !has_accounts {
            return (None, before.is_none());
        }
        let site = Site::new(server.name, server.url, server.auth.clone(), server.tls, &self.services);
        let flights = self.flights.lock().remove(server.name).unwrap_or_default();
        let new = site.map(|site| Arc::new(Server::new(site, flights)));
        servers.extend(new.iter().map(|new| (server.name.to_owned(), Arc::clone(new))));
        (new, false)
    }

    /// Forgets the servers that are not among these.
    pub fn retain(&self, names: &[&str]) {
        self.servers.write().retain(|name, server| {
            let stays = names.contains(&name.as_str());
            if !stays {
                self.end(server);
            }
            stays
        });
    }

    /// Ends the use of a server as it was configured. The next configuration of its name waits for what asks for tokens now.
    fn end(&self, server: &Server) {
        let flights = server.end();
        if !flights.is_empty() {
            self.flights.lock().entry(server.site.name.clone()).or_default().extend(flights);
        }
    }

    /// A server, if its requests may need tokens.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<Arc<Server>> {
        self.servers.read().get(name).cloned()
    }

    /// All of them, by name.
    #[must_use]
    pub fn servers(&self) -> Vec<Arc<Server>> {
        self.servers.read().values().cloned().collect()
    }

    /// A connect request that can be used: its server is still configured, at the same URL.
    #[must_use]
    pub fn connect_request(&self, id: &str) -> Option<ConnectRequest> {
        let Asked { id, place, scopes, clients } = self.services.connects.find(id, unix_ms())?;
        let account = self.server(&place.server)?.of(place.participant.as_deref());
        (account.place() == place).then(|| ConnectRequest { id, account, scopes, clients })
    }

    /// Ends all accounts of a participant whose name has another bearer from now on, and revokes their tokens in the background. Must
    /// be called inside a runtime.
    pub fn end_all_of(&self, participant: &str, by: &str) {
        for server in self.servers() {
            let Some(account) = server.take(participant) else { continue };
            server.site.changed(Some(participant));
            let by = by.to_owned();
            tokio::spawn(async move {
                if let Err(error) = account.sign_out(&by).await {
                    tracing::warn!(%error, "an account of a participant that is no more could not be ended");
                }
            });
        }
    }

    /// The keys with which the gateway signs as a client, each once.
    #[must_use]
    pub fn keys(&self) -> Vec<Arc<SigningKey>> {
        let mut keys: Vec<Arc<SigningKey>> = Vec::new();
        for key in self.servers().iter().filter_map(|server| server.site.config.private_key.clone()) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// Takes the token with which a participant came in, for the servers at which it is exchanged, and for no other purpose. The token
    /// was checked.
    pub fn set_subject(&self, participant: &str, token: &str) {
        for server in self.servers.read().values() {
            if server.site.config.kind == Kind::Exchange && server.is_of_callers() {
                server.of(Some(participant)).set_subject(Secret::new(token.to_owned()));
            }
        }
    }
}
