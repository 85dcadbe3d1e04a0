//! Modern links over HTTP: one for all requests of a participant in a topic.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use model::{ParticipantId, TopicName};
use platform::{Mutex, MutexGuard};

use crate::outlet::{Joined, Visitor};

/// A link whose participant sends no requests ends after this time.
const IDLE: Duration = Duration::from_secs(300);

/// The modern links of all topics.
#[derive(Default)]
pub(crate) struct ModernLinks {
    table: Mutex<HashMap<(TopicName, ParticipantId), Arc<Joined>>>,
    joining: Mutex<()>,
}

impl ModernLinks {
    /// The link of a participant. Notes the sign of life.
    pub(crate) fn find(&self, visitor: &Visitor, now_ms: u64) -> Option<Arc<Joined>> {
        let Visitor { dispatch, participant } = visitor;
        let links = self.table.lock();
        let known = links.get(&(dispatch.name().clone(), participant.id.clone()))?;
        let is_usable = Arc::ptr_eq(&known.dispatch, dispatch) && known.home.liveness.touch(now_ms);
        is_usable.then(|| Arc::clone(known))
    }

    /// Keeps others from joining meanwhile, so that a participant has one modern link over HTTP.
    pub(crate) fn join_alone(&self) -> MutexGuard<'_, ()> {
        self.joining.lock()
    }

    /// Enters a link that has joined.
    pub(crate) fn enter(&self, link: &Arc<Joined>) {
        let key = (link.dispatch.name().clone(), link.link.participant.id.clone());
        self.table.lock().insert(key, Arc::clone(link));
    }

    /// Takes out the links that have ended or are idle. The latter have yet to leave.
    pub(crate) fn sweep(&self, now_ms: u64) -> Vec<Arc<Joined>> {
        let mut expired = Vec::new();
        self.table.lock().retain(|_, link| {
            let liveness = &link.home.liveness;
            let is_over = !link.is_busy() && liveness.expire(now_ms, IDLE);
            if is_over {
                expired.push(Arc::clone(link));
            }
            !is_over && !liveness.has_ended()
        });
        expired
    }
}
