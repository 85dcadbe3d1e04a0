//! References resolved at other registries: from allowed hosts only, each with its own token,
//! through a cache.

mod cache;
mod digests;
mod disk;
mod error;
mod fetch;
mod hosts;
mod rpc;
mod sources;
mod tokens;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use platform::Mutex;
use schema::Reference;
use tokio::task::spawn_blocking;

use crate::digest::is_commit;
use cache::{Cache, CacheEntry, SetKey};
use disk::Disk;
use fetch::fetch;
use rpc::{At, Fetched};

pub use cache::{LABELS_MAX, SETS_BYTES_MAX, SETS_MAX};
pub use digests::{BadDigest, Digests};
pub use error::ResolveError;
pub use fetch::{Http, SET_BYTES_MAX};
pub use hosts::{BadHost, Hosts};
pub use rpc::{Fetch, Fetching};
pub use sources::{MODULES_MAX, SOURCES_BYTES_MAX};
pub use tokens::{BadTokens, PUBLIC_HOST, RegistryTokens};

/// Time that a label's commit is kept unless it is configured, in milliseconds: an hour (proto-mcp,
/// "Caching").
pub const LABEL_KEPT_MS: u64 = 3_600_000;

/// [`References::retry`] unless it is configured.
pub const RETRY: Duration = Duration::from_secs(30);

/// The schema of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The commit: 32 hexadecimal digits.
    pub commit: String,
    /// A serialized `google.protobuf.FileDescriptorSet`, byte for byte: a typed one would lose the
    /// rules of `buf.validate`. If the reference names a tool, it is the whole module.
    pub set: Bytes,
}

/// Hosts, tokens and digests by which a resolver may fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolverSettings {
    /// The allowed hosts.
    pub hosts: Hosts,
    /// The tokens of hosts.
    pub tokens: RegistryTokens,
    /// The digests of commits, as far as they are known beforehand.
    pub digests: Digests,
    /// Time that a label's commit is kept, in milliseconds.
    pub label_kept_ms: u64,
}

/// References to schemas that are resolved: `[registry]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct References {
    /// The allowed hosts with their tokens, and how long a label is kept.
    pub settings: ResolverSettings,
    /// The certificates that are trusted.
    pub way: Http,
    /// The directory of the cache; `None` keeps it in memory alone.
    pub cache_dir: Option<PathBuf>,
    /// After what time a reference without an answer is resolved again at first.
    pub retry: Duration,
}

/// A resolver of references. Any number of callers may use it at one time: the same question is
/// asked once.
pub struct Resolver {
    settings: ResolverSettings,
    way: Box<dyn Fetch>,
    cache: Mutex<Cache>,
    disk: Option<Arc<Disk>>,
    /// Questions on their way.
    open: Mutex<HashMap<SetKey, Weak<tokio::sync::Mutex<()>>>>,
}

impl Resolver {
    /// A resolver with an empty cache.
    #[must_use]
    pub fn new(settings: ResolverSettings, way: impl Fetch + 'static) -> Self {
        let cache = Mutex::default();
        let open = Mutex::default();
        Self {
            settings,
            way: Box::new(way),
            cache,
            disk: None,
            open,
        }
    }

    /// The resolver with a cache that is in this directory too: what was resolved before is there.
    ///
    /// # Errors
    /// Errors of the directory.
    pub fn kept_in(self, dir: &Path) -> io::Result<Self> {
        let disk = Disk::open(dir)?;
        disk.read_into(&mut self.cache.lock())?;
        Ok(Self {
            disk: Some(Arc::new(disk)),
            ..self
        })
    }

    /// Resolves a reference; `now_ms` tells whether a cached label is still good.
    ///
    /// # Errors
    /// Why there is no schema. Errors are not cached.
    pub async fn resolve(
        &self,
        reference: &Reference,
        now_ms: u64,
    ) -> Result<Resolved, ResolveError> {
        let host = &reference.host;
        let url = self
            .settings
            .hosts
            .url(host)
            .ok_or_else(|| ResolveError::ForeignHost(host.clone()))?;
        let version = reference.version.as_deref().unwrap_or_default();
        if let Some(known) = self.known(reference, version, now_ms) {
            return Ok(known);
        }
        let question = key(reference, version);
        let turn = self.turn(&question);
        let _turn = turn.lock().await;
        // The one before may have asked the same.
        if let Some(known) = self.known(reference, version, now_ms) {
            return Ok(known);
        }
        let token = self.settings.tokens.of(host);
        let asked = self
            .commit(reference, version, now_ms)
            .unwrap_or_else(|| version.to_owned());
        let at = At {
            way: &*self.way,
            url: &url,
            token,
            digests: &self.settings.digests,
        };
        let Fetched { commit, set } = fetch(at, reference, &asked).await?;
        let is_other = is_commit(&asked) && asked != commit;
        if set.is_empty() || set.len() > SET_BYTES_MAX || !is_commit(&commit) || is_other {
            return Err(ResolveError::Malformed);
        }
        let of_commit = CacheEntry::Set(SetKey {
            commit: commit.clone(),
            ..question.clone()
        });
        let mut kept = vec![(of_commit, set.clone())];
        if !is_commit(&asked) {
            let of_label = CacheEntry::Label {
                module: question.module,
                label: version.to_owned(),
                commit: commit.clone(),
                at_ms: now_ms,
            };
            kept.push((of_label, Bytes::new()));
        }
        self.keep(kept).await;
        Ok(Resolved { commit, set })
    }

    /// Keeps what was fetched, on disk too if that is configured.
    async fn keep(&self, kept: Vec<(CacheEntry, Bytes)>) {
        let mut gone = Vec::new();
        for (kept, set) in &kept {
            gone.extend(self.cache.lock().restore(kept.clone(), set.clone()));
        }
        let Some(disk) = self.disk.clone() else {
            return;
        };
        let written = spawn_blocking(move || {
            for gone in &gone {
                disk.remove(gone);
            }
            for (kept, set) in &kept {
                disk.write(kept, set)?;
            }
            Ok::<_, io::Error>(())
        });
        if let Ok(Err(error)) = written.await {
            tracing::warn!(%error, "a schema was not written to the cache on disk");
        }
    }

    /// Schema of a reference that the cache has.
    fn known(&self, reference: &Reference, version: &str, now_ms: u64) -> Option<Resolved> {
        let commit = self.commit(reference, version, now_ms)?;
        let set = self.cache.lock().set(&key(reference, &commit))?;
        Some(Resolved { commit, set })
    }

    /// The commit of a version, if it is one or the cache has it.
    fn commit(&self, reference: &Reference, version: &str, now_ms: u64) -> Option<String> {
        if is_commit(version) {
            return Some(version.to_owned());
        }
        let module = key(reference, version).module;
        self.cache
            .lock()
            .commit(&module, version, now_ms, self.settings.label_kept_ms)
    }

    /// The lock of those who ask the same.
    fn turn(&self, question: &SetKey) -> Arc<tokio::sync::Mutex<()>> {
        let mut open = self.open.lock();
        if let Some(turn) = open.get(question).and_then(Weak::upgrade) {
            return turn;
        }
        open.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        open.insert(question.clone(), Arc::downgrade(&turn));
        turn
    }
}

/// The key of a reference at a version.
fn key(reference: &Reference, version: &str) -> SetKey {
    let Reference {
        host,
        owner,
        module,
        symbol,
        ..
    } = reference;
    SetKey {
        module: format!("{host}/{owner}/{module}"),
        commit: version.to_owned(),
        symbol: reference.symbol.contains('.').then(|| symbol.clone()),
    }
}

#[cfg(test)]
mod tests;
