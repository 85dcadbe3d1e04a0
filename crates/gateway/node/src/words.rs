//! Words of a person to a node: calls of commands, which run beside the nodes.
//!
//! A call is sealed for one life of one node, so no one can repeat a word to a later one.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use cluster::{NodeId, Shard};
use fabric::{Mesh, ServedCall};
use runner::Runner;
use serde::{Deserialize, Serialize};
use store::StoreError;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::audit_words::{self, AuditQuestion};

/// The most calls at a time; each stands until its caller is forgotten.
const CALLS_MAX: usize = 16;
/// The time in which a call is answered.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// The time in which a call about the audit log is answered: all of it is read.
pub(crate) const AUDIT_ANSWER_MAX: Duration = Duration::from_secs(60);
/// The most looks at the audit log at a time.
const AUDITS_MAX: usize = 2;
/// The time after which a caller is forgotten: it has its answer, and calls once.
const FORGET: Duration = Duration::from_secs(5);

/// A word to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "snake_case")]
pub enum ClusterWord {
    /// A question for what it knows.
    Tell,
    /// Consent to a loss: the home goes on with what there is.
    Accept,
    /// A question for the newest entries of its audit log that match.
    Audit(AuditQuestion),
    /// A question whether its audit log is whole.
    VerifyAudit,
    /// A person's word that the process of a member does not run any more.
    Remove {
        /// The member.
        name: String,
    },
}

/// The answer of a node, as it was before the word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeAnswer {
    /// The version of its program.
    pub version: String,
    /// The digest of its configuration.
    pub config: u64,
    /// The members that it knows.
    pub members: Vec<String>,
}

impl NodeAnswer {
    /// Whether a node of this name is a member.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member == name)
    }
}

/// A node, for the words to it.
#[derive(Clone)]
pub(crate) struct Words {
    me: NodeId,
    mesh: Arc<Mesh>,
    runner: Arc<OnceLock<Runner>>,
    config: Arc<AtomicU64>,
    /// The data directory.
    directory: Arc<Path>,
    places: Arc<Semaphore>,
    audits: Arc<Semaphore>,
}

impl Words {
    pub(crate) fn new(
        me: NodeId,
        mesh: Arc<Mesh>,
        runner: Arc<OnceLock<Runner>>,
        directory: &Path,
    ) -> Self {
        Self {
            me,
            mesh,
            runner,
            config: Arc::default(),
            directory: directory.into(),
            places: Arc::new(Semaphore::new(CALLS_MAX)),
            audits: Arc::new(Semaphore::new(AUDITS_MAX)),
        }
    }

    pub(crate) fn set_config(&self, digest: u64) {
        self.config.store(digest, Ordering::Relaxed);
    }

    /// Serves a call, beside the caller.
    pub(crate) fn serve(&self, mut call: ServedCall) {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return tracing::warn!("too many commands ask this node");
        };
        let words = self.clone();
        tokio::spawn(async move {
            let caller = call.peer();
            let answered = timeout(AUDIT_ANSWER_MAX, words.answer(&mut call)).await;
            if answered.is_ok() {
                // The caller may have left.
                let _ = call.finish().await;
            }
            sleep(FORGET).await;
            words.mesh.peer_ended(caller);
            drop(place);
        });
    }

    async fn answer(&self, call: &mut ServedCall) {
        let Ok(Ok(request)) = timeout(ANSWER_MAX, call.request()).await else {
            return;
        };
        let (Ok(word), Some(runner)) = (serde_json::from_slice(&request), self.runner.get()) else {
            return tracing::warn!("a command says what this version cannot read");
        };
        let answer = match word {
            ClusterWord::Audit(question) => self.audit(question).await,
            ClusterWord::VerifyAudit => self.verify().await,
            word => Some(self.obey(word, runner)),
        };
        if let Some(answer) = answer {
            let _ = call.answer(answer).await;
        }
    }

    /// Takes a word; the answer is what was known before.
    fn obey(&self, word: ClusterWord, runner: &Runner) -> Bytes {
        let members = runner.view(|homes| homes.members().map(ToString::to_string).collect());
        let answer = NodeAnswer {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            config: self.config.load(Ordering::Relaxed),
            members,
        };
        self.take(word, runner);
        written(&answer)
    }

    /// The newest entries of its log that match.
    async fn audit(&self, question: AuditQuestion) -> Option<Bytes> {
        let place = Arc::clone(&self.audits).acquire_owned().await.ok()?;
        let directory = Arc::clone(&self.directory);
        let read = spawn_blocking(move || {
            // Until the log is read, also if no one waits for it any more.
            let _place = place;
            audit_words::entries(&directory, &question)
        });
        let read = read.await;
        read.ok()?.inspect_err(unread).ok().as_ref().map(written)
    }

    /// The check of its log.
    async fn verify(&self) -> Option<Bytes> {
        let place = Arc::clone(&self.audits).acquire_owned().await.ok()?;
        let directory = Arc::clone(&self.directory);
        let read = spawn_blocking(move || {
            let _place = place;
            audit_words::check(&directory)
        });
        let read = read.await;
        read.ok()?.inspect_err(unread).ok().as_ref().map(written)
    }

    fn take(&self, word: ClusterWord, runner: &Runner) {
        match word {
            ClusterWord::Tell | ClusterWord::Audit(_) | ClusterWord::VerifyAudit => {}
            ClusterWord::Accept => {
                tracing::warn!(node = %self.me.name, "a person accepts what the cluster's log has lost");
                runner.accept(Shard::Common);
            }
            ClusterWord::Remove { name } => {
                tracing::warn!(node = %self.me.name, member = name, "a person takes a member out of the cluster");
                runner.remove(name.into());
            }
        }
    }
}

/// An answer as it is sent.
fn written(answer: &impl Serialize) -> Bytes {
    // Numbers and texts are always written.
    serde_json::to_vec(answer).unwrap_or_default().into()
}

fn unread(why: &StoreError) {
    tracing::error!(%why, "the audit log cannot be read for a command");
}
