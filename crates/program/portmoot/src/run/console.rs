//! The console within a running gateway.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use api::ConsoleCodes;
use auth::Sealer;
use axum::Router;
use config::Config;
use console::{ConsoleHome, ConsoleSettings, ConsoleSignIn};
use control::Registry;
use store::audit::{AuditEntry, RecordedVerdict};
use store::recorder::{UNKNOWN_PARTICIPANT, entry};

/// The kind under which sign-ins at the console are recorded.
const CONSOLE: &str = "portmoot/console";

/// The settings of the console of a gateway with this configuration.
pub(super) fn settings(config: &Config, needs_token: bool) -> ConsoleSettings {
    ConsoleSettings {
        enabled: config.console.enabled,
        proof_ms: platform::millis(config.console.proof),
        listen: config.doors.listen,
        has_tls: config.doors.tls.is_some(),
        public_url: config.identity.public_url.clone(),
        needs_token,
    }
}

/// A registry as the home of a console.
struct InRegistry(Arc<Registry>);

impl ConsoleHome for InRegistry {
    fn settings(&self) -> ConsoleSettings {
        settings(&self.0.config(), self.participant(None).is_none())
    }

    fn sealer(&self) -> &Sealer {
        &self.0.context.sealer
    }

    fn participant(&self, bearer: Option<&str>) -> Option<String> {
        Some(self.0.sender(bearer)?.id.to_string())
    }

    fn now_ms(&self) -> u64 {
        platform::unix_ms()
    }

    fn stopped(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let topic = self.0.topics().into_iter().next();
        Box::pin(async move {
            match topic {
                Some(topic) => topic.stopped().await,
                None => std::future::pending().await,
            }
        })
    }

    fn record(&self, sign_in: &ConsoleSignIn<'_>) {
        let verdict = if sign_in.is_refused {
            RecordedVerdict::Refused
        } else {
            RecordedVerdict::Admitted
        };
        let from = sign_in.participant.unwrap_or(UNKNOWN_PARTICIPANT);
        let address = sign_in.from.as_ref().map(IpAddr::to_string);
        let why = match &address {
            Some(address) => format!("{}, from {address}", sign_in.why),
            None => sign_in.why.to_owned(),
        };
        let permit = self.0.audit.reserve_or_count();
        self.0.audit.write_counted(
            permit,
            &AuditEntry {
                why: Some(&why),
                ..entry(None, from, CONSOLE, verdict)
            },
        );
    }
}

/// The pages of the console, which speaks to these handlers of the API.
pub(super) fn console(registry: &Arc<Registry>, api: Router, codes: Arc<ConsoleCodes>) -> Router {
    console::router(Arc::new(InRegistry(Arc::clone(registry))), api, codes)
}
