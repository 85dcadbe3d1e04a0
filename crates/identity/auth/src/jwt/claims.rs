//! Claims of an access token, checked: of a JWT (RFC 9068), or of what its issuer answers about it
//! (RFC 7662).

use serde_json::{Map, Value};

use super::TokenFault;

/// Members of an issuer's answer that machines' tokens do not have, or only with the id of their
/// client.
const OF_PERSONS: [&str; 10] = [
    "username",
    "user_name",
    "preferred_username",
    "user_id",
    "uid",
    "email",
    "name",
    "given_name",
    "family_name",
    "upn",
];

/// The claim by which a subject is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectClaim {
    /// `sub`.
    Sub,
    /// `username`, of an issuer's answer without `sub`.
    Username,
    /// `client_id`, of an issuer's answer about a machine's token.
    ClientId,
}

impl SubjectClaim {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sub => "sub",
            Self::Username => "username",
            Self::ClientId => "client_id",
        }
    }
}

/// The claims of a token that is its issuer's and valid now. For which endpoint is still to be
/// checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Claims {
    /// The person or program, unique within the issuer among those that are named by the same
    /// claim.
    pub subject: String,
    /// The claim that names it.
    pub named_by: SubjectClaim,
    /// `aud`: the resources for which the token was issued. Empty if it does not say.
    pub audiences: Vec<String>,
    /// `scope` or `scp`.
    pub scopes: Vec<String>,
    /// `exp`, in Unix milliseconds; `None` if the issuer did not say so about an opaque token.
    pub expires_ms: Option<u64>,
    /// All of them.
    pub all: Map<String, Value>,
}

impl Claims {
    /// Checks the claims of a JWT: `exp` is required.
    pub(super) fn of_token(
        all: Map<String, Value>,
        skew_secs: u64,
        now_ms: u64,
    ) -> Result<Self, TokenFault> {
        let claims = Self::read(all, skew_secs, now_ms)?;
        if claims.expires_ms.is_none() {
            Err(TokenFault::NoExpiry)
        } else {
            Ok(claims)
        }
    }

    /// Checks what an issuer answered about an opaque token: `active`, and `iss`, `exp` and `nbf`
    /// if they are there. A person without `sub` is named by `username`, and a machine by its
    /// `client_id`. With `audience_of_client` a token without an audience is for its client.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_answer(
        mut all: Map<String, Value>,
        issuer: &str,
        audience_of_client: bool,
        (skew_secs, now_ms): (u64, u64),
    ) -> Result<Self, TokenFault> {
        if all.get("active") != Some(&Value::Bool(true)) {
            return Err(TokenFault::Inactive);
        }
        if all
            .get("iss")
            .is_some_and(|named| named.as_str() != Some(issuer))
        {
            return Err(TokenFault::Issuer);
        }
        if all
            .get("token_type")
            .and_then(Value::as_str)
            .is_some_and(|kind| kind.eq_ignore_ascii_case("DPoP"))
        {
            return Err(TokenFault::Bound);
        }
        let client = all.get("client_id").cloned();
        let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        let is_absent = |name: &str| all.get(name).is_none_or(Value::is_null);
        let mut named_by = SubjectClaim::Sub;
        if is_absent("sub") {
            named_by = if !is_absent("username") {
                SubjectClaim::Username
            } else if OF_PERSONS
                .into_iter()
                .all(|name| is_absent(name) || all.get(name) == client.as_ref())
            {
                SubjectClaim::ClientId
            } else {
                return Err(TokenFault::Nameless);
            };
            let name = all
                .get(named_by.name())
                .filter(|name| is_text(name))
                .cloned();
            all.insert("sub".to_owned(), name.ok_or(TokenFault::NoSubject)?);
        }
        if audience_of_client
            && !all.contains_key("aud")
            && let Some(client) = client
        {
            all.insert("aud".to_owned(), client);
        }
        Ok(Self {
            named_by,
            ..Self::read(all, skew_secs, now_ms)?
        })
    }

    fn read(all: Map<String, Value>, skew_secs: u64, now_ms: u64) -> Result<Self, TokenFault> {
        let expires_ms = time_ms(&all, "exp")?;
        let skew_ms = skew_secs.saturating_mul(1000);
        if expires_ms.is_some_and(|end| end.saturating_add(skew_ms) <= now_ms) {
            return Err(TokenFault::Expired);
        }
        let latest = now_ms.saturating_add(skew_ms);
        if time_ms(&all, "nbf")?.is_some_and(|from| from > latest)
            || time_ms(&all, "iat")?.is_some_and(|at| at > latest)
        {
            return Err(TokenFault::NotYet);
        }
        if all.contains_key("cnf") {
            return Err(TokenFault::Bound);
        }
        let subject = match all.get("sub").and_then(Value::as_str) {
            Some(subject) if !subject.is_empty() => subject.to_owned(),
            _ => return Err(TokenFault::NoSubject),
        };
        // Some issuers write `scp` for it.
        let scopes = all.get("scope").or_else(|| all.get("scp"));
        Ok(Self {
            subject,
            named_by: SubjectClaim::Sub,
            audiences: texts(all.get("aud"), false),
            scopes: texts(scopes, true),
            expires_ms,
            all,
        })
    }

    /// Checks that the token is for one of these audiences.
    ///
    /// # Errors
    /// It is for none of them.
    pub fn check_audience<'a>(
        &self,
        own: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), TokenFault> {
        if self.audiences.is_empty() {
            return Err(TokenFault::NoAudience);
        }
        for accepted in own {
            let mut audiences = self.audiences.iter();
            if audiences.any(|audience| is_same_audience(audience, accepted)) {
                return Ok(());
            }
        }
        Err(TokenFault::Foreign)
    }

    /// The texts at a path of names with dots between them (`realm_access.roles`): one text, a
    /// list, or a text with blanks. A claim whose own name has the dots counts first.
    #[must_use]
    pub fn texts(&self, path: &str) -> Vec<String> {
        texts(self.at(path), true)
    }

    /// Whether the text at a path is this one, or the list there has it.
    #[must_use]
    pub fn has(&self, path: &str, value: &str) -> bool {
        texts(self.at(path), false).iter().any(|text| text == value)
    }

    /// The single text or number at a path.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<String> {
        match self.at(path)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Whether the issuer left a claim out of the token because it is too long for it (OpenID
    /// Connect Core 1.0, section 5.6.2): what it would say is unknown.
    #[must_use]
    pub fn is_elsewhere(&self, path: &str) -> bool {
        let named = self.all.get("_claim_names").and_then(Value::as_object);
        named.is_some_and(|named| named.contains_key(path.split('.').next().unwrap_or_default()))
    }

    fn at(&self, path: &str) -> Option<&Value> {
        if let Some(whole) = self.all.get(path) {
            return Some(whole);
        }
        let mut names = path.split('.');
        let first = self.all.get(names.next()?)?;
        names.try_fold(first, |value, name| value.get(name))
    }
}

/// The time in a claim, if there is one.
fn time_ms(all: &Map<String, Value>, name: &str) -> Result<Option<u64>, TokenFault> {
    let value = match all.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value,
    };
    match value.as_f64().and_then(unix_ms) {
        Some(time_ms) => Ok(Some(time_ms)),
        None => Err(TokenFault::Malformed),
    }
}

/// Seconds since 1970 as milliseconds, if they are a time.
fn unix_ms(seconds: f64) -> Option<u64> {
    // Until the year 9999.
    const SECONDS_MAX: f64 = 253_402_300_799.0;
    let is_time = (0.0..=SECONDS_MAX).contains(&seconds);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is in the range"
    )]
    is_time.then_some((seconds * 1000.0) as u64)
}

/// A text or a list of texts.
fn texts(value: Option<&Value>, blanks: bool) -> Vec<String> {
    match value {
        Some(Value::String(text)) if blanks => text.split_whitespace().map(str::to_owned).collect(),
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Vec::new()
        }
    }
}

/// Whether two audiences are the same: scheme and host in any case, one slash at the end more or
/// less, all else byte for byte.
#[must_use]
pub fn is_same_audience(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let (Some((scheme, rest)), Some((other_scheme, other_rest))) =
        (one.split_once("://"), other.split_once("://"))
    else {
        return false;
    };
    let parts = |rest: &str| {
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let host_len = rest.find('/').unwrap_or(rest.len());
        rest.split_at_checked(host_len)
            .map(|(host, path)| (host.to_ascii_lowercase(), path.to_owned()))
    };
    scheme.eq_ignore_ascii_case(other_scheme) && parts(rest) == parts(other_rest)
}
