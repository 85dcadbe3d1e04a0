//! Rest of an effect that could not wait: it goes on in its call's mailbox, if the call is still open
//! by then.

use std::sync::Arc;

use platform::Mutex;

use crate::call::Call;

type Rest = Box<dyn FnOnce(&Arc<Call>) + Send>;

/// The rest of an effect. It is carried out once, or dropped if its call is over.
#[derive(Clone)]
pub struct Work(Arc<Mutex<Option<Rest>>>);

impl Work {
    /// The rest of an effect with a call.
    pub(crate) fn new(rest: impl FnOnce(&Arc<Call>) + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::new(rest)))))
    }

    /// Carries it out.
    pub(crate) fn carry_out(&self, call: &Arc<Call>) {
        let rest = self.0.lock().take();
        if let Some(rest) = rest {
            rest(call);
        }
    }
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Work").finish_non_exhaustive()
    }
}
