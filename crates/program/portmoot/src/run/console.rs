//! The console within a running gateway.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use api::ConsoleCodes;
use auth::Sealer;
use axum::Router;
use config::Config;
use console::{ConsoleHome, ConsoleSettings, ConsoleSignIn, PlaceName, TokenBearer};
use control::Registry;
use model::{Refusal, RefusalCode};
use oauth::person::{Awaited, SignInPlace};
use signin::{OWN_PLACE, OwnPlace, SignIn};
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
        places: Vec::new(),
    }
}

/// A registry as the home of a console.
struct InRegistry {
    registry: Arc<Registry>,
    /// The gateway's own authorization server.
    sign_in: Option<Arc<SignIn>>,
}

impl InRegistry {
    /// The places at which people sign in: issuers, and the gateway's own authorization server.
    fn places(&self) -> Vec<PlaceName> {
        let issuers = self.registry.bearers.page_names().into_iter();
        let issuers = issuers.map(|name| PlaceName {
            label: name.clone(),
            name,
        });
        let own = self.own().map(|_| PlaceName {
            name: OWN_PLACE.to_owned(),
            label: "this gateway".to_owned(),
        });
        issuers.chain(own).collect()
    }

    fn own(&self) -> Option<&Arc<SignIn>> {
        self.registry.config().identity.login.as_ref()?;
        self.sign_in.as_ref()
    }
}

impl ConsoleHome for InRegistry {
    fn settings(&self) -> ConsoleSettings {
        ConsoleSettings {
            places: self.places(),
            ..settings(&self.registry.config(), self.participant(None).is_none())
        }
    }

    fn sealer(&self) -> &Sealer {
        &self.registry.context.sealer
    }

    fn participant(&self, bearer: Option<&str>) -> Option<String> {
        Some(self.registry.sender(bearer)?.id.to_string())
    }

    fn bearer_of<'a>(
        &'a self,
        bearer: Option<&'a str>,
        from: Option<IpAddr>,
    ) -> Awaited<'a, TokenBearer> {
        Box::pin(async move {
            if let Some(token) = bearer
                && let Err(refusal) = self.registry.admit(token, from).await
            {
                return unknown(&refusal);
            }
            match self.registry.known_sender(bearer) {
                Ok(sender) => TokenBearer::Participant(sender.id.to_string()),
                Err(refusal) => unknown(&refusal),
            }
        })
    }

    fn place(&self, name: &str) -> Option<Arc<dyn SignInPlace>> {
        if name == OWN_PLACE {
            return Some(Arc::new(OwnPlace(Arc::clone(self.own()?))));
        }
        Some(self.registry.bearers.page(name)?)
    }

    fn now_ms(&self) -> u64 {
        platform::unix_ms()
    }

    fn stopped(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let topic = self.registry.topics().into_iter().next();
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
        let permit = self.registry.audit.reserve_or_count();
        let permit = permit.from_address(sign_in.from);
        self.registry.audit.write_counted(
            permit,
            &AuditEntry {
                why: Some(sign_in.why),
                ..entry(None, from, CONSOLE, verdict)
            },
        );
    }
}

/// The bearer of a token that is refused.
fn unknown(refusal: &Refusal) -> TokenBearer {
    let codes = [RefusalCode::IssuerUnreachable, RefusalCode::RateLimited];
    if codes.contains(&refusal.code) {
        return TokenBearer::Unsure;
    }
    TokenBearer::Unknown(refusal.message.to_string())
}

/// The pages of the console, which speaks to these handlers of the API.
pub(super) fn console(
    registry: &Arc<Registry>,
    sign_in: Option<&Arc<SignIn>>,
    api: Router,
    codes: Arc<ConsoleCodes>,
) -> Router {
    let home = InRegistry {
        registry: Arc::clone(registry),
        sign_in: sign_in.cloned(),
    };
    console::router(Arc::new(home), api, codes)
}
