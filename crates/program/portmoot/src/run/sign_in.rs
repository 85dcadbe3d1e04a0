//! The gateway's own authorization server and its connect pages within a running gateway.

use std::sync::Arc;

use auth::Participant;
use control::{Concerned, Registry};
use identity::AccessJournal;
use identity::config::IdentityConfig;
use model::ParticipantId;
use oauth::dialer::Dialer;
use signin::{Connect, Home, SignIn};
use store::recorder::Recorder;
use tls::ClientTls;

/// A registry as the home of an authorization server.
struct InRegistry {
    registry: Arc<Registry>,
    access: Arc<AccessJournal>,
}

impl Home for InRegistry {
    fn config(&self) -> Arc<IdentityConfig> {
        Arc::clone(&self.registry.config().identity)
    }

    fn audit(&self) -> &Recorder {
        &self.registry.audit
    }

    fn sign_ins_changed(&self, participant: &str, ended: bool) {
        let id = ParticipantId::new(participant).ok();
        let concerned = match &id {
            Some(id) if ended => Concerned::SignedOut(id),
            Some(id) => Concerned::One(id),
            None => Concerned::Everybody,
        };
        self.registry.renew(&self.access, concerned);
    }

    fn knows(&self, participant: &str) -> bool {
        ParticipantId::new(participant).is_ok_and(|id| self.registry.known(&id).is_some())
    }

    fn bearer(&self, token: &str) -> Option<Arc<Participant>> {
        self.registry.sender(Some(token))
    }
}

/// The connect pages of a gateway.
pub(super) fn connect(
    registry: &Arc<Registry>,
    access: &Arc<AccessJournal>,
    sign_in: Option<&Arc<SignIn>>,
) -> Arc<Connect> {
    let home = InRegistry {
        registry: Arc::clone(registry),
        access: Arc::clone(access),
    };
    let accounts = Arc::clone(&registry.accounts);
    Connect::new(
        Arc::new(home),
        Arc::clone(access),
        accounts,
        sign_in.cloned(),
    )
}

/// The authorization server of a gateway, if it is enabled.
pub(super) fn sign_in(
    registry: &Arc<Registry>,
    access: &Arc<AccessJournal>,
) -> Option<Arc<SignIn>> {
    registry.config().identity.login.as_ref()?;
    let home = InRegistry {
        registry: Arc::clone(registry),
        access: Arc::clone(access),
    };
    SignIn::new(
        Arc::new(home),
        Arc::clone(access),
        Dialer::new(ClientTls::of_machine()),
    )
}
