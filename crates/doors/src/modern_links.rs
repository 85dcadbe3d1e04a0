//! Modern links over HTTP: one for all requests of a participant in a topic.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gateway::{Dispatch, Link};
use model::{ParticipantId, TopicName};
use platform::{Mutex, MutexGuard};

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

    fn is_usable(&self, dispatch: &Arc<Dispatch>, now_ms: u64) -> bool {
        Arc::ptr_eq(&self.dispatch, dispatch) && self.home.liveness.touch(now_ms)
    }

    fn is_idle(&self) -> bool {
        !self.dispatch.with(|topic| topic.is_busy(self.link.id))
    }
}

/// The modern links of all topics.
#[derive(Default)]
pub(crate) struct ModernLinks {
    table: Mutex<HashMap<(TopicName, ParticipantId), Arc<ModernLink>>>,
    joining: Mutex<()>,
}

impl ModernLinks {
    /// The link of a participant. Notes the sign of life.
    pub(crate) fn find(
        &self,
        dispatch: &Arc<Dispatch>,
        participant: &ParticipantId,
        now_ms: u64,
    ) -> Option<Arc<ModernLink>> {
        let links = self.table.lock();
        let known = links.get(&(dispatch.name().clone(), participant.clone()))?;
        known.is_usable(dispatch, now_ms).then(|| Arc::clone(known))
    }

    /// Keeps others from joining meanwhile, so that a participant has one modern link over HTTP.
    pub(crate) fn join_alone(&self) -> MutexGuard<'_, ()> {
        self.joining.lock()
    }

    /// Enters a link that has joined.
    pub(crate) fn enter(&self, link: &Arc<ModernLink>) {
        let key = (link.dispatch.name().clone(), link.link.participant.id.clone());
        self.table.lock().insert(key, Arc::clone(link));
    }

    /// Takes out the links that have ended or are idle. The latter have yet to leave.
    pub(crate) fn sweep(&self, now_ms: u64) -> Vec<Arc<ModernLink>> {
        let mut expired = Vec::new();
        self.table.lock().retain(|_, link| {
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
