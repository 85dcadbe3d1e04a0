//! Modern links over HTTP: one for all requests of a participant in a topic.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gateway::{Dispatch, Link};
use model::{ParticipantId, TopicName};
use platform::Mutex;

use crate::outlet::Home;

/// A link whose participant sends no requests ends after this time.
const IDLE: Duration = Duration::from_secs(300);

/// A modern link.
pub(crate) struct ModernLink {
    dispatch: Arc<Dispatch>,
    link: Arc<Link>,
    home: Arc<Home>,
}

impl ModernLink {
    /// A link that has joined.
    pub(crate) fn new(dispatch: &Arc<Dispatch>, link: Arc<Link>, home: Arc<Home>) -> Arc<Self> {
        Arc::new(Self { dispatch: Arc::clone(dispatch), link, home })
    }

    /// Its topic.
    pub(crate) fn dispatch(&self) -> &Arc<Dispatch> {
        &self.dispatch
    }

    /// The link.
    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Its client's side.
    pub(crate) fn home(&self) -> &Arc<Home> {
        &self.home
    }

    fn is_idle(&self) -> bool {
        !self.dispatch.with(|topic| topic.is_busy(self.link.id))
    }
}

/// The modern links of all topics.
#[derive(Default)]
pub(crate) struct ModernLinks(Mutex<HashMap<(TopicName, ParticipantId), Arc<ModernLink>>>);

impl ModernLinks {
    /// The link of a participant, or the one that `join` makes.
    ///
    /// # Errors
    /// Those of `join`.
    pub(crate) fn find_or_join<E>(
        &self,
        dispatch: &Arc<Dispatch>,
        participant: &ParticipantId,
        now_ms: u64,
        join: impl FnOnce() -> Result<Arc<ModernLink>, E>,
    ) -> Result<Arc<ModernLink>, E> {
        let mut links = self.0.lock();
        let key = (dispatch.name().clone(), participant.clone());
        if let Some(known) = links.get(&key)
            && Arc::ptr_eq(known.dispatch(), dispatch)
            && known.home.liveness.touch(now_ms)
        {
            return Ok(Arc::clone(known));
        }
        let link = join()?;
        links.insert(key, Arc::clone(&link));
        Ok(link)
    }

    /// Takes out the links that have ended or are idle. The latter have yet to leave.
    pub(crate) fn sweep(&self, now_ms: u64) -> Vec<Arc<ModernLink>> {
        let mut expired = Vec::new();
        self.0.lock().retain(|_, link| {
            let liveness = &link.home.liveness;
            let is_over = link.is_idle() && liveness.expire(now_ms, IDLE);
            if is_over {
                expired.push(Arc::clone(link));
            }
            !is_over && !liveness.has_ended()
        });
        expired
    }
}
