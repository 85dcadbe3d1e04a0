//! Checks of tokens in all steps, for people.

use std::sync::Arc;

use auth::jwt::{Jwt, KeySet, SubjectClaim, TokenFault, is_jwt};
use auth::{Participant, TokenHash};
use oauth::issuer::{Condition, Issuer};
use platform::unix_ms;

use super::{Bearers, Known, KnownIssuer};

/// The step that looks at the audiences of a token.
const FOR_US: &str = "it is for this gateway";

/// A token that was checked for people.
#[derive(Debug)]
pub struct ExplainedToken {
    /// The steps that were taken, in order. Only the last one may have a fault.
    pub steps: Vec<Step>,
    /// The bearer of the token, if all steps are good.
    pub bearer: Option<Arc<Participant>>,
}

/// One step of a check, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Subject of the step.
    pub what: &'static str,
    /// The fault, if it has one.
    pub fault: Option<String>,
}

/// The steps that were taken so far.
#[derive(Default)]
struct Steps(Vec<Step>);

impl Steps {
    /// Notes a step. Returns what it has found, if it is good.
    fn take<T>(&mut self, what: &'static str, found: Result<T, impl ToString>) -> Option<T> {
        let (found, fault) = match found {
            Ok(found) => (Some(found), None),
            Err(fault) => (None, Some(fault.to_string())),
        };
        self.0.push(Step { what, fault });
        found
    }
}

impl Bearers {
    /// Checks a token in all steps, for people, as [`Bearers::admit`] would.
    pub async fn explain(&self, token: &str, topic: Option<&str>) -> ExplainedToken {
        let known = self.known();
        let mut steps = Steps::default();
        let bearer = match Jwt::read(token) {
            Err(_) if !is_jwt(token) => self.explain_opaque(&known, token, topic, &mut steps).await,
            read => match steps.take("size, form and algorithm", read) {
                Some(jwt) => {
                    self.explain_jwt(&known, jwt, token, topic, &mut steps)
                        .await
                }
                None => None,
            },
        };
        ExplainedToken {
            steps: steps.0,
            bearer,
        }
    }

    /// Checks a token about which issuers are asked.
    async fn explain_opaque(
        &self,
        known: &Arc<Known>,
        token: &str,
        topic: Option<&str>,
        steps: &mut Steps,
    ) -> Option<Arc<Participant>> {
        let asked = self.ask(known, token, TokenHash::of(token)).await;
        let asked = asked.map_err(|refused| refused.refusal(token).message);
        let what = match asked.as_ref().map(|checked| checked.named_by) {
            Ok(SubjectClaim::Username) => {
                "its issuer says that it is active, and names its subject by `username`"
            }
            Ok(SubjectClaim::ClientId) => {
                "its issuer says that it is active, and names its client alone"
            }
            Ok(SubjectClaim::Sub) | Err(_) => "its issuer says that it is active",
        };
        let checked = steps.take(what, asked)?;
        steps.take(FOR_US, known.check_audience(&checked, topic))?;
        Some(Arc::clone(&checked.participant))
    }

    /// Checks a token that an issuer has signed.
    async fn explain_jwt(
        &self,
        known: &Arc<Known>,
        jwt: Jwt<'_>,
        token: &str,
        topic: Option<&str>,
        steps: &mut Steps,
    ) -> Option<Arc<Participant>> {
        let at = steps.take("its issuer is configured", known.issuer_of(&jwt))?;
        let KnownIssuer { config, issuer, .. } = known.issuers.get(at)?;
        let head = jwt.check_head(&config.rules).map_err(|fault| match fault {
            TokenFault::Type => format!("{fault}{}", jwt.type_advice(&config.name, &config.rules)),
            fault => fault.to_string(),
        });
        steps.take("algorithm and type are the issuer's", head)?;
        let keys = steps.take("the issuer's keys are there", keys_for(&jwt, issuer).await)?;
        steps.take("its signature", jwt.check_signature(&keys))?;
        let claims = steps.take("times, subject", jwt.claims(&config.rules, unix_ms()))?;
        let own = known.audiences(config, topic);
        let audience = claims.check_audience(own.iter().map(String::as_str));
        let audience =
            audience.map_err(|fault| format!("{fault}: {:?}, not {own:?}", claims.audiences));
        steps.take(FOR_US, audience)?;
        let entered = self.enter(known, at, TokenHash::of(token), &claims, unix_ms());
        let entered = entered.map_err(|refused| refused.refusal(token).message);
        let checked = steps.take("its subject has a place here", entered)?;
        Some(Arc::clone(&checked.participant))
    }
}

/// The keys of an issuer, which are looked for if that of the token is not among them.
async fn keys_for(jwt: &Jwt<'_>, issuer: &Issuer) -> Result<Arc<KeySet>, String> {
    let keys = issuer.keys();
    let has_key = keys
        .as_ref()
        .is_some_and(|keys| jwt.check_signature(keys) != Err(TokenFault::UnknownKey));
    if !has_key {
        issuer.look_for_key(keys.as_ref()).await;
    }
    issuer.keys().ok_or_else(|| match issuer.condition() {
        Condition::Unreachable(why) | Condition::Stale(why) => why,
        Condition::Ready => "they were not fetched yet".to_owned(),
    })
}
