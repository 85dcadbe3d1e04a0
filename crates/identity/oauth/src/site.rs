//! Site: one MCP server as its accounts see it - address, configuration, what discovery found,
//! clients, notice of changes.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use client::AccountFault;
use model::GATEWAY;
use platform::{Mutex, RwLock, millis, unix_ms};
use store::audit::{AuditEntry, RecordedVerdict};
use store::recorder::{Recorder, entry};
use tls::ClientTls;
use tokio::sync::{Semaphore, watch};
use url::Url;

use crate::config::{AuthConfig, AuthorizationKind, Resource};
use crate::connect::Connects;
use crate::dialer::{AllowedAddresses, Dialer, Way, parse_url};
use crate::discovery::{Discovery, discover};
use crate::metadata::{AuthorizationServer, is_same_issuer};
use crate::registration::{
    CALLBACK_PATH, GATEWAY_CALLBACK_PATH, RegisteredClient, Use, by_document, configured,
    loopback_port, redirect_uris, register,
};
use crate::token::OAuthClient;
use crate::token_uses::TokenUses;
use crate::trouble::Trouble;
use crate::vault::{AccountPlace, Saved, Vault};

/// The kind under which sign-ins at servers are recorded.
pub const UPSTREAM: &str = "portmoot/upstream";
/// Discoveries at one time, of all servers.
pub const DISCOVERIES_MAX: usize = 4;

/// Notices that an account at this server has changed: that of a participant, or the shared one.
pub type OnChange = Box<dyn Fn(&str, Option<&str>) + Send + Sync>;

/// Services that all servers share.
pub struct Services {
    /// Store of tokens and clients.
    pub vault: Vault,
    /// The audit log.
    pub audit: Recorder,
    /// The URL under which others reach the gateway, without a slash at its end.
    pub public_url: Option<String>,
    /// The URL under which this machine reaches the gateway; empty while it does not listen.
    pub base_url: RwLock<String>,
    /// Callers that are to sign in.
    pub connects: Connects,
    /// Receiver of changes of accounts, if there is one.
    pub on_change: OnceLock<OnChange>,
    /// Uses of refresh tokens, where other processes have the same ones.
    pub token_uses: OnceLock<Arc<dyn TokenUses>>,
    /// Places for discoveries.
    pub discoveries: Semaphore,
}

impl Services {
    /// The address at which people's browsers reach the gateway for its connect pages and its
    /// callback, and how clients are registered for that callback; `None` if no authorization
    /// server could send a browser back to it.
    #[must_use]
    pub fn browser_url(&self) -> Option<(String, Use)> {
        const LOOPBACK: &str = "http://127.0.0.1";
        fn is_loopback(url: &str) -> bool {
            url.strip_prefix(LOOPBACK)
                .is_some_and(|port| !port.contains('/'))
        }
        match &self.public_url {
            Some(public) if is_loopback(public) => Some((public.clone(), Use::Native)),
            Some(public) => Some((public.clone(), Use::Web)),
            None => {
                let base = self.base_url.read().clone();
                is_loopback(&base).then_some((base, Use::Native))
            }
        }
    }

    /// The redirect URI of the gateway's own callback, and how clients are registered for it.
    #[must_use]
    pub fn callback(&self) -> Option<(String, Use)> {
        self.browser_url()
            .map(|(url, how)| (format!("{url}{GATEWAY_CALLBACK_PATH}"), how))
    }
}

/// One server.
pub struct Site {
    /// Its name.
    pub name: String,
    /// Its URL.
    pub url: Url,
    /// Its configuration.
    pub config: AuthConfig,
    /// Services that all servers share.
    pub services: Arc<Services>,
    /// Authorities that are trusted there, and the certificate that is shown.
    pub tls: ClientTls,
    /// Whether another configuration of the server is in force.
    replaced: AtomicBool,
    dialer: Dialer,
    reach: AllowedAddresses,
    found: Mutex<Option<Arc<Discovery>>>,
    /// Address of its metadata by the last challenge.
    named: Mutex<Option<String>>,
    clients: Mutex<Vec<(String, Use, RegisteredClient)>>,
    /// One registration at a time.
    registering: tokio::sync::Mutex<()>,
    changes: watch::Sender<u64>,
}

impl Site {
    /// A server, with the clients that are kept of it; `None` if its URL cannot be read.
    #[must_use]
    pub fn new(
        name: &str,
        url: &str,
        config: AuthConfig,
        tls: &ClientTls,
        services: &Arc<Services>,
    ) -> Option<Self> {
        // The place of keys may be a process.
        let url = if config.kind == AuthorizationKind::Key {
            Url::parse(url).ok()?
        } else {
            parse_url(url).ok()?
        };
        let clients = services.vault.clients(name, url.as_str());
        Some(Self {
            name: name.to_owned(),
            reach: AllowedAddresses::of(&url, &config.allow_private),
            url,
            config,
            services: Arc::clone(services),
            tls: tls.clone(),
            replaced: AtomicBool::new(false),
            dialer: Dialer::new(tls.clone()),
            found: Mutex::default(),
            named: Mutex::default(),
            clients: Mutex::new(clients),
            registering: tokio::sync::Mutex::default(),
            changes: watch::Sender::new(0),
        })
    }

    /// Records that another configuration of the server is in force: no account of this one asks
    /// for tokens from now on.
    pub fn replace(&self) {
        self.replaced.store(true, Ordering::SeqCst);
    }

    /// Whether another configuration of the server is in force.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        self.replaced.load(Ordering::SeqCst)
    }

    /// Whether an account that is kept for it is of use as it is configured.
    #[must_use]
    pub fn takes(&self, kept: &Saved) -> bool {
        !self.is_machine()
            && kept.is_key() == (self.config.kind == AuthorizationKind::Key)
            && self
                .config
                .issuer
                .as_ref()
                .is_none_or(|issuer| is_same_issuer(issuer, &kept.issuer))
    }

    /// The way to its authorization server.
    #[must_use]
    pub fn way(&self) -> Way<'_> {
        Way {
            dialer: &self.dialer,
            reach: &self.reach,
        }
    }

    /// Place of the records of this participant's account.
    #[must_use]
    pub fn place(&self, participant: Option<&str>) -> AccountPlace {
        AccountPlace {
            server: self.name.clone(),
            url: self.url.as_str().to_owned(),
            participant: participant.map(str::to_owned),
        }
    }

    /// Findings of the last discovery.
    #[must_use]
    pub fn found(&self) -> Option<Arc<Discovery>> {
        self.found.lock().clone()
    }

    /// Discovers the authorization server anew. `named` is where a challenge says that the metadata
    /// is; without a challenge the last one counts.
    ///
    /// # Errors
    /// [`Trouble`]; what was found before stays.
    pub async fn discover(&self, named: Option<&str>) -> Result<Arc<Discovery>, Trouble> {
        // The semaphore is never closed.
        let _place = self.services.discoveries.acquire().await.ok();
        let named = named
            .map(str::to_owned)
            .or_else(|| self.named.lock().clone());
        let found =
            Arc::new(discover(self.way(), &self.url, &self.config, named.as_deref()).await?);
        *self.named.lock() = named;
        *self.found.lock() = Some(Arc::clone(&found));
        Ok(found)
    }

    /// The `resource` parameter of its requests.
    #[must_use]
    pub fn resource(&self, found: Option<&Discovery>) -> Option<String> {
        match &self.config.resource {
            Resource::Omitted => None,
            Resource::Uri(uri) => Some(uri.clone()),
            Resource::Own => {
                if let Some(document) = found.and_then(|found| found.resource.as_ref()) {
                    return Some(document.resource.clone());
                }
                let url = self.url.as_str();
                // The canonical form has no slash at the end of an empty path.
                let is_bare = self.url.path() == "/" && self.url.query().is_none();
                let resource = if is_bare {
                    url.trim_end_matches('/')
                } else {
                    url
                };
                Some(resource.to_owned())
            }
        }
    }

    /// Whether there is, or could be registered, a client at this authorization server.
    #[must_use]
    pub fn has_client(&self, server: &AuthorizationServer) -> bool {
        self.config.client_id.is_some()
            || by_document(&self.config, server, self.services.public_url.as_deref()).is_some()
            || server.registration_endpoint.is_some()
    }

    /// The client at this authorization server: configured, by a document, or registered, now if it
    /// was not before or not with this redirect URI, which many authorization servers compare with
    /// its port.
    ///
    /// # Errors
    /// [`Trouble`]; [`Trouble::NoRegistration`] where one has to be registered by hand.
    pub async fn client(
        &self,
        server: &AuthorizationServer,
        how: Use,
        redirect_uri: Option<&str>,
    ) -> Result<OAuthClient, Trouble> {
        if let Some(client) = configured(&self.config, server)? {
            return Ok(client);
        }
        let public_url = self.services.public_url.as_deref();
        if let Some(client) = by_document(&self.config, server, public_url) {
            return Ok(client);
        }
        let _turn = self.registering.lock().await;
        let known = self.registered(&server.issuer, how);
        if let Some(known) = &known
            && known.serves(redirect_uri, unix_ms())
        {
            return Ok(known.client.clone());
        }
        let uris = self.redirect_uris(how, redirect_uri, known.as_ref());
        let registered = register(self.way(), server, how, uris).await?;
        let place = self.place(None);
        let vault = &self.services.vault;
        if let Err(error) = vault
            .keep_client(&place, &server.issuer, how, Some(&registered))
            .await
        {
            tracing::warn!(server = self.name, %error, "a registration is not kept");
        }
        let mut clients = self.clients.lock();
        clients.retain(|(issuer, usage, _)| (issuer.as_str(), *usage) != (&server.issuer, how));
        let client = registered.client.clone();
        clients.push((server.issuer.clone(), how, registered));
        Ok(client)
    }

    /// The client that was registered at an authorization server for a use.
    fn registered(&self, issuer: &str, how: Use) -> Option<RegisteredClient> {
        let clients = self.clients.lock();
        let (.., registered) = clients
            .iter()
            .find(|(known, usage, _)| known == issuer && *usage == how)?;
        Some(registered.clone())
    }

    /// The redirect URIs to register a client with: the one that is used now, the gateway's own,
    /// those of the loopback interface without a port, and of the client before the one at another
    /// path, so that two ways to sign in share a client.
    fn redirect_uris(
        &self,
        how: Use,
        wanted: Option<&str>,
        before: Option<&RegisteredClient>,
    ) -> Vec<String> {
        let mut uris: Vec<String> = Vec::new();
        uris.extend(wanted.map(str::to_owned));
        if let Some((uri, usage)) = self.services.callback()
            && usage == how
        {
            uris.push(uri);
        }
        for path in [CALLBACK_PATH, GATEWAY_CALLBACK_PATH] {
            let is_taken = uris.iter().any(|uri| loopback_port(uri, path).is_some());
            let port = before.and_then(|before| before.port_of(path));
            if !is_taken && let Some(port) = port {
                uris.push(format!("http://127.0.0.1:{port}{path}"));
            }
        }
        uris.extend(redirect_uris(how, self.services.public_url.as_deref()));
        let mut seen = HashSet::new();
        uris.retain(|uri| seen.insert(uri.clone()));
        uris
    }

    /// The port on which a command on the same machine waits for the browser: the configured one,
    /// else the one with which a client was registered.
    #[must_use]
    pub fn callback_port(&self) -> Option<u16> {
        if self.config.callback_port.is_some() {
            return self.config.callback_port;
        }
        let clients = self.clients.lock();
        clients
            .iter()
            .find_map(|(.., registered)| registered.port_of(CALLBACK_PATH))
    }

    /// Forgets the client that was registered on the spot: the authorization server does not know
    /// it any more.
    pub async fn forget_client(&self, issuer: &str, how: Use) {
        self.clients
            .lock()
            .retain(|(known, usage, _)| (known.as_str(), *usage) != (issuer, how));
        let place = self.place(None);
        if let Err(error) = self
            .services
            .vault
            .keep_client(&place, issuer, how, None)
            .await
        {
            tracing::warn!(server = self.name, %error, "a registration is not forgotten on disk");
        }
    }

    /// Whether its tokens are asked for without a person.
    #[must_use]
    pub fn is_machine(&self) -> bool {
        match self.config.kind {
            AuthorizationKind::ClientCredentials | AuthorizationKind::Exchange => true,
            AuthorizationKind::OAuth
            | AuthorizationKind::Key
            | AuthorizationKind::Headers
            | AuthorizationKind::None => false,
        }
    }

    /// Announces that the account of a participant, or the shared one, has changed.
    pub fn changed(&self, participant: Option<&str>) {
        self.changes.send_modify(|count| *count += 1);
        if let Some(notice) = self.services.on_change.get() {
            notice(&self.name, participant);
        }
    }

    /// Moves with every change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Records an act about an account of this server.
    pub fn record(&self, by: Option<&str>, verdict: RecordedVerdict, what: &str) {
        let to = [self.name.as_str()];
        let entry = entry(None, by.unwrap_or(GATEWAY), UPSTREAM, verdict);
        self.services.audit.reserve_or_count().write(&AuditEntry {
            to: &to,
            why: Some(what),
            ..entry
        });
    }
}

/// Fault of an account after a trouble, if it is one that waits for another configuration or for a
/// person.
#[must_use]
pub fn fault_of(trouble: &Trouble, retry_after_ms: u64) -> AccountFault {
    match trouble {
        Trouble::NoRegistration(host) => AccountFault::ClientNeeded(host.clone()),
        trouble if trouble.is_transient() => {
            let after = match trouble {
                Trouble::Busy {
                    retry_after: Some(after),
                    ..
                } => millis(*after).min(RETRY_AFTER_MS_MAX),
                Trouble::Busy { .. }
                | Trouble::Dial(_)
                | Trouble::Metadata(_)
                | Trouble::NoRegistration(_)
                | Trouble::Elsewhere
                | Trouble::Refused { .. } => 0,
            };
            AccountFault::Waiting {
                why: trouble.to_string(),
                retry_after_ms: retry_after_ms.max(after),
            }
        }
        Trouble::Refused { .. } => AccountFault::Refused(trouble.to_string()),
        Trouble::Dial(_) | Trouble::Metadata(_) | Trouble::Busy { .. } | Trouble::Elsewhere => {
            AccountFault::MetadataRefused(trouble.to_string())
        }
    }
}

/// The longest wait that an authorization server can ask for, milliseconds.
const RETRY_AFTER_MS_MAX: u64 = 300_000;
