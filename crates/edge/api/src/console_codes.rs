//! One-time codes with which a browser opens the console: `/api/v1/console-codes`.

use std::collections::HashMap;
use std::sync::Arc;

use auth::LOCAL_USER;
use axum::http::request::Parts;
use axum::{Extension, Json, http::StatusCode};
use data_encoding::HEXLOWER;
use model::{Refusal, RefusalCode};
use platform::{Mutex, random, unix_ms};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
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

/// Codes that wait to be used, by code, and the names of this machine to which they lead. A code has
/// 128 random bits, and so has a name: guessing finds none. A restart forgets them.
pub struct ConsoleCodes {
    codes: Mutex<HashMap<String, Waiting>>,
    secret: [u8; 32],
}

impl Default for ConsoleCodes {
    fn default() -> Self {
        Self {
            codes: Mutex::default(),
            secret: random(),
        }
    }
}

/// Beginning and end of a participant's name of this machine.
const HOST_ENDS: (&str, &str) = ("pm-", ".localhost");

/// Whether a host has the form of a participant's name of this machine.
#[must_use]
pub fn is_console_host(host: &str) -> bool {
    let (begin, end) = HOST_ENDS;
    let digits = host
        .strip_prefix(begin)
        .and_then(|rest| rest.strip_suffix(end));
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.is_some_and(|digits| digits.len() == 32 && digits.bytes().all(is_hex))
}

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
        let mut codes = self.codes.lock();
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

    /// The participant's own name of this machine, which browsers resolve themselves. Cookies know no
    /// ports, so another program of the machine gets those of any name that it knows: this one is known
    /// to the participant alone, and to its browser.
    #[must_use]
    pub fn host(&self, participant: &str) -> String {
        let mut hash = Sha256::new();
        hash.update(self.secret);
        hash.update(participant);
        let (begin, end) = HOST_ENDS;
        let digits = HEXLOWER.encode(hash.finalize().get(..16).unwrap_or_default());
        [begin, &digits, end].concat()
    }

    /// Uses a code. Returns the token with which it was asked for, if it is good now; the token may
    /// have been revoked since.
    pub fn redeem(&self, code: &str, now_ms: u64) -> Option<Option<String>> {
        let waiting = self.codes.lock().remove(code)?;
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
            host: codes.host(by.id.as_str()),
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
    /// The name under which the gateway's machine opens the console without TLS. It is the
    /// participant's own, until the gateway starts anew.
    host: String,
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
    fn each_participant_has_a_name_of_this_machine_that_no_other_knows() {
        let codes = ConsoleCodes::default();
        let own = codes.host("ann");
        assert!(is_console_host(&own), "{own}");
        assert_eq!(own, codes.host("ann"));
        assert_ne!(own, codes.host("bob"));
        assert_ne!(
            own,
            ConsoleCodes::default().host("ann"),
            "of another gateway"
        );
        for other in [
            "localhost",
            "pm-.localhost",
            "evil.localhost",
            "pm-0.localhost",
        ] {
            assert!(!is_console_host(other), "{other}");
        }
        assert!(!is_console_host(&format!("{own}.evil.example")));
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
