//! One-time codes with which a browser opens the console: `/api/v1/console-codes`.

use std::collections::HashMap;
use std::sync::Arc;

use auth::LOCAL_USER;
use axum::http::request::Parts;
use axum::{Extension, Json, http::StatusCode};
use model::{Refusal, RefusalCode};
use platform::{Mutex, random, unix_ms};
use serde::Serialize;
use utoipa::ToSchema;
use wire::time::rfc3339;

use crate::error::{ApiResult, Problem};
use crate::state::{Api, Caller, presented};

/// Time that a code is good, in milliseconds.
pub const CONSOLE_CODE_MS: u64 = 60_000;
/// The most codes that wait to be used. A participant has one at most.
pub const CONSOLE_CODES_MAX: usize = 1_000;

/// A code that waits to be used.
struct Waiting {
    /// The participant that asked for it.
    participant: String,
    /// The token with which it asked; none for the local user of a gateway without tokens.
    bearer: Option<String>,
    until_ms: u64,
}

/// Codes that wait to be used, by code. A code has 128 random bits, so guessing finds none. A restart
/// forgets them.
#[derive(Default)]
pub struct ConsoleCodes(Mutex<HashMap<String, Waiting>>);

/// There are too many codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyConsoleCodes;

impl ConsoleCodes {
    /// A new code for a participant with this token, in place of the one that it had.
    ///
    /// # Errors
    /// [`TooManyConsoleCodes`].
    pub fn issue(
        &self,
        participant: &str,
        bearer: Option<&str>,
        now_ms: u64,
    ) -> Result<String, TooManyConsoleCodes> {
        let mut codes = self.0.lock();
        codes.retain(|_, waiting| now_ms < waiting.until_ms && waiting.participant != participant);
        if codes.len() >= CONSOLE_CODES_MAX {
            return Err(TooManyConsoleCodes);
        }
        let code = format!("{:032x}", u128::from_be_bytes(random()));
        let waiting = Waiting {
            participant: participant.to_owned(),
            bearer: bearer.map(str::to_owned),
            until_ms: now_ms.saturating_add(CONSOLE_CODE_MS),
        };
        codes.insert(code.clone(), waiting);
        Ok(code)
    }

    /// Uses a code. Returns the token with which it was asked for, if it is good now; the token may
    /// have been revoked since.
    pub fn redeem(&self, code: &str, now_ms: u64) -> Option<Option<String>> {
        let waiting = self.0.lock().remove(code)?;
        (now_ms < waiting.until_ms).then_some(waiting.bearer)
    }
}

/// The token of a request. A certificate alone is no token: no page can come back with it.
pub(crate) struct OwnToken(Option<String>);

impl axum::extract::FromRequestParts<Api> for OwnToken {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Self::Rejection> {
        Ok(Self(presented(parts).bearer.map(str::to_owned)))
    }
}

/// Makes a one-time code with which a browser opens the console as the caller: good once, for a
/// minute. The browser's session ends with the caller's token.
#[utoipa::path(
    post,
    path = "/api/v1/console-codes",
    responses((status = 201, body = ConsoleCode), (status = "4XX", body = Problem))
)]
pub(crate) async fn console_code(
    Caller(by): Caller,
    Extension(codes): Extension<Arc<ConsoleCodes>>,
    OwnToken(bearer): OwnToken,
) -> ApiResult<(StatusCode, Json<ConsoleCode>)> {
    if bearer.is_none() && by.id.as_str() != LOCAL_USER {
        let why = "a certificate opens no console";
        let hint = "use a token: portmoot token new NAME";
        return Err(Refusal::new(RefusalCode::Forbidden, why).hint(hint).into());
    }
    let now_ms = unix_ms();
    let code = codes.issue(by.id.as_str(), bearer.as_deref(), now_ms);
    let code = code.map_err(|TooManyConsoleCodes| {
        let why = "too many one-time codes wait to be used";
        Refusal::new(RefusalCode::Overloaded, why).hint("try again in a minute")
    })?;
    Ok((
        StatusCode::CREATED,
        Json(ConsoleCode {
            code,
            participant: by.id.to_string(),
            expires: rfc3339(now_ms.saturating_add(CONSOLE_CODE_MS)),
        }),
    ))
}

/// A one-time code for the console.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConsoleCode {
    /// The code: the fragment of the console's address.
    code: String,
    /// The participant as which it opens the console.
    participant: String,
    /// When it is good no more, RFC 3339.
    expires: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_opens_the_console_once_within_a_minute() {
        let codes = ConsoleCodes::default();
        let code = codes.issue("ann", Some("t"), 0).unwrap();
        assert_eq!(code.len(), 32);
        assert_eq!(codes.redeem("0", 1), None);
        assert_eq!(codes.redeem(&code, 1), Some(Some("t".to_owned())));
        assert_eq!(codes.redeem(&code, 1), None, "it was used");
        let code = codes.issue("local", None, 0).unwrap();
        assert_eq!(codes.redeem(&code, CONSOLE_CODE_MS), None, "it is too old");
        let old = codes.issue("ann", Some("t"), 0).unwrap();
        let new = codes.issue("ann", Some("u"), 0).unwrap();
        assert_eq!(codes.redeem(&old, 1), None, "a new one replaces it");
        assert_eq!(codes.redeem(&new, 1), Some(Some("u".to_owned())));
    }

    #[test]
    fn codes_are_bounded_and_a_participant_has_one() {
        let codes = ConsoleCodes::default();
        for number in 0..CONSOLE_CODES_MAX {
            codes.issue(&number.to_string(), None, 0).unwrap();
        }
        assert_eq!(codes.issue("ann", None, 1), Err(TooManyConsoleCodes));
        assert!(codes.issue("5", None, 1).is_ok());
        assert!(codes.issue("ann", None, CONSOLE_CODE_MS).is_ok());
    }
}
