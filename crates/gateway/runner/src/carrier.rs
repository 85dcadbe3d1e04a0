//! Task that carries out the effects of a node's steps, in their order.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cluster::{AppendId, HomeEffect, HomeEvent, JournalHead, Shard, TICK_MS};
use fabric::{LogError, Mesh, SubjectName};
use platform::Mutex;
use tokio::task::JoinSet;

use crate::encoding::{write_beat, write_stored};
use crate::heads::HeadsFile;
use crate::journals::{Journals, WantedAppend, WantedPurge};
use crate::line::ShardLine;
use crate::shared::Shared;
use crate::user::{HomeUser, UserEffect, Whose};

/// The time in which the bus takes a message; it is lost after it.
const PUBLISH_MAX: Duration = Duration::from_millis(TICK_MS);
/// The pause before the heads are written again.
const DISK_RETRY: Duration = Duration::from_secs(1);

/// The task's own state.
pub(crate) struct Carrier {
    pub(crate) shared: Arc<Shared>,
    pub(crate) user: Arc<dyn HomeUser>,
    pub(crate) mesh: Arc<Mesh>,
    pub(crate) journals: Arc<Journals>,
    pub(crate) heads: Arc<Mutex<HeadsFile>>,
    pub(crate) beats: SubjectName,
    pub(crate) spreads: SubjectName,
    /// Requests to the log; they end with this.
    pub(crate) requests: JoinSet<()>,
    pub(crate) under_way: Arc<Mutex<UnderWay>>,
}

/// The requests to the log that have no answer yet. One that is repeated is not asked twice.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    appends: HashSet<AppendId>,
    /// Each question with the number under which it was asked first: the answer is of a reading that
    /// began then.
    questions: HashMap<Question, u64>,
    /// Shards of which old messages are being removed.
    purges: HashSet<Shard>,
}

/// A question to the log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Question {
    Look(Shard),
    Read(Shard, u64),
}

impl Carrier {
    /// Carries out effects until it is dropped, or a request fails as none should.
    pub(crate) async fn run(mut self) {
        loop {
            let effects = latest_beat_alone(self.shared.effects().await);
            self.keep_heads(&effects).await;
            for effect in effects {
                self.carry_out(effect).await;
            }
            while let Some(ended) = self.requests.try_join_next() {
                if let Err(why) = ended {
                    tracing::error!(%why, "a request to the log has ended without an answer");
                    return;
                }
            }
        }
    }

    /// Keeps the heads of these effects, before any of them is carried out. A disk that does not
    /// take them stops the node: nothing that was acknowledged takes place.
    async fn keep_heads(&self, effects: &[HomeEffect<ShardLine>]) {
        let heads: Vec<_> = effects.iter().filter_map(kept).collect();
        while !heads.is_empty() {
            let (file, heads) = (Arc::clone(&self.heads), heads.clone());
            let keep = move || file.lock().keep(heads);
            let kept = tokio::task::spawn_blocking(keep).await;
            let Err(why) = kept.map_err(io::Error::other).flatten() else {
                return;
            };
            tracing::error!(%why, "the places of journals cannot be kept: the node stands still");
            tokio::time::sleep(DISK_RETRY).await;
        }
    }

    async fn carry_out(&mut self, effect: HomeEffect<ShardLine>) {
        match Whose::of(effect) {
            Whose::User(effect) => {
                if let UserEffect::Admit(admission) = &effect {
                    self.shared.admit(*admission);
                }
                self.user.carry_out(effect);
            }
            Whose::Runner(own) => self.carry_out_own(own).await,
        }
    }

    async fn carry_out_own(&mut self, effect: HomeEffect<ShardLine>) {
        match effect {
            HomeEffect::Publish(beat) => self.publish(&self.beats, &write_beat(&beat)).await,
            HomeEffect::Spread(stored) => self.publish(&self.spreads, &write_stored(&stored)).await,
            HomeEffect::Look { shard, request } => self.ask(Question::Look(shard), request),
            HomeEffect::Read {
                shard,
                request,
                after,
            } => self.ask(Question::Read(shard, after), request),
            HomeEffect::Append {
                subject,
                expected,
                id,
                message,
            } => self.append(WantedAppend {
                subject,
                expected,
                id,
                message,
            }),
            HomeEffect::Purge {
                shard,
                epoch,
                before,
                end,
                end_sequence,
            } => self.purge(WantedPurge {
                shard,
                epoch,
                before,
                end,
                end_sequence,
            }),
            // All of them are kept already; others are none of the runner's.
            _ => {}
        }
    }

    /// Sends a message to all nodes. One that cannot be sent is lost, like one that the bus drops.
    async fn publish(&self, subject: &SubjectName, content: &[u8]) {
        let sent = self.mesh.broadcast(subject, content);
        match tokio::time::timeout(PUBLISH_MAX, sent).await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => tracing::debug!(%subject, %why, "a message to all nodes is lost"),
            Err(_) => tracing::warn!(%subject, "the bus takes no message"),
        }
    }

    /// Tries once to append: without an answer the rules ask again.
    fn append(&mut self, wanted: WantedAppend) {
        let id = wanted.id;
        if !self.under_way.lock().appends.insert(id) {
            return;
        }
        let (shared, journals) = (Arc::clone(&self.shared), Arc::clone(&self.journals));
        let under_way = Arc::clone(&self.under_way);
        self.requests.spawn(async move {
            let shard = wanted.subject.shard.clone();
            let result = journals.append(wanted).await;
            under_way.lock().appends.remove(&id);
            shared.step(HomeEvent::Appended { shard, id, result });
        });
    }

    /// Tries once to remove old messages. Nothing depends on it: the rules ask again.
    fn purge(&mut self, wanted: WantedPurge) {
        if !self.under_way.lock().purges.insert(wanted.shard.clone()) {
            return;
        }
        let (shared, journals) = (Arc::clone(&self.shared), Arc::clone(&self.journals));
        let under_way = Arc::clone(&self.under_way);
        self.requests.spawn(async move {
            let purged = journals.purge(&wanted).await;
            let WantedPurge { shard, before, .. } = wanted;
            under_way.lock().purges.remove(&shard);
            match purged {
                Ok(()) => shared.step(HomeEvent::Purged { shard, before }),
                Err(why @ LogError::Behind { .. }) => tracing::debug!(%why, "a purge waits"),
                Err(why) => tracing::warn!(
                    %why,
                    shard = shard.as_str(),
                    "old messages cannot be removed from the log, which grows"
                ),
            }
        });
    }

    fn ask(&mut self, question: Question, request: u64) {
        let questions = &mut self.under_way.lock().questions;
        if questions.contains_key(&question) {
            return;
        }
        questions.insert(question.clone(), request);
        let (shared, journals) = (Arc::clone(&self.shared), Arc::clone(&self.journals));
        let under_way = Arc::clone(&self.under_way);
        self.requests.spawn(async move {
            let answer = answered(&journals, &question).await;
            let request = under_way.lock().questions.remove(&question);
            // Without an answer the rules ask again.
            if let (Some(answer), Some(request)) = (answer, request) {
                shared.step(answer(request));
            }
        });
    }
}

/// These effects without the heartbeats that a later one of them makes needless.
pub(crate) fn latest_beat_alone(
    mut effects: Vec<HomeEffect<ShardLine>>,
) -> Vec<HomeEffect<ShardLine>> {
    let is_beat = |effect: &HomeEffect<ShardLine>| matches!(effect, HomeEffect::Publish(_));
    let latest = effects.iter().rposition(is_beat);
    let mut at = 0;
    effects.retain(|effect| {
        at += 1;
        !is_beat(effect) || Some(at - 1) == latest
    });
    effects
}

fn kept(effect: &HomeEffect<ShardLine>) -> Option<(Shard, JournalHead)> {
    match effect {
        HomeEffect::KeepHead { shard, head } => Some((shard.clone(), *head)),
        _ => None,
    }
}

/// The answer to a question, for the number of the request.
type Answer = Box<dyn FnOnce(u64) -> HomeEvent<ShardLine> + Send>;

async fn answered(journals: &Journals, question: &Question) -> Option<Answer> {
    let answer: Result<Answer, _> = match question.clone() {
        Question::Look(shard) => journals.look(&shard).await.map(|last| {
            Box::new(move |request| HomeEvent::Looked {
                shard,
                request,
                last,
            }) as Answer
        }),
        Question::Read(shard, after) => journals.read(&shard, after).await.map(|messages| {
            Box::new(move |request| HomeEvent::Read {
                shard,
                request,
                messages,
            }) as Answer
        }),
    };
    if let Err(why) = &answer {
        tracing::warn!(%why, ?question, "a journal cannot be read");
    }
    answer.ok()
}
