//! Access tokens of issuers as JWTs: read and checked in one order (RFC 9068, section 4; RFC 8725).
//!
//! Nothing here fetches anything: keys and the time are arguments. The order is that of the
//! methods: [`Jwt::read`], [`Jwt::issuer`], [`Jwt::check_head`], [`Jwt::check_signature`],
//! [`Jwt::claims`], and [`Claims::check_audience`] for the endpoint at which the token was
//! presented.
//!
//! The crate `jsonwebtoken` (11.1) was compared and is not used. It would take over base64, the
//! header and the call of the signature, about 100 lines of these, and need as many for what
//! stands in the way:
//! - It has no cryptography on `ring`. Its own back ends are a second set of primitives (aws-lc, or
//!   the RustCrypto crates). A back end for `ring` would be installed for the whole process, and
//!   what it leaves out panics when it is called.
//! - Its `decode` takes the key before it looks at the claims, and the system's clock. Here the
//!   issuer is compared before a key is chosen, and the time is an argument: all claims would
//!   be read and checked here all the same, those of introspection by the same code.
//! - It reads `crit` and does not refuse it. It reads `jwk` and `x5c` as what they should be and
//!   refuses tokens over them, where they are not to be looked at.
//! - It does not know the name `Ed25519` (RFC 9864).
//! - Its key sets have no bounds, and it checks neither lengths of coordinates nor `use` and
//!   `key_ops`.

mod algorithm;
mod claims;
mod fault;
mod keys;

pub use algorithm::Algorithm;
pub use claims::{Claims, SubjectClaim, is_same_audience};
pub use fault::TokenFault;
pub use keys::{JWKS_BYTES_MAX, JWKS_KEYS_MAX, KeySet, KeySetError};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

/// The longest access token, in bytes.
pub const ACCESS_TOKEN_BYTES_MAX: usize = 8 * 1024;

/// Types of tokens that are never access tokens, whatever an issuer's list says.
const FOREIGN_TYPES: [&str; 4] = ["logout+jwt", "dpop+jwt", "oauth-id-jag+jwt", "secevent+jwt"];
/// Claims that only ID tokens have (OpenID Connect Core 1.0, sections 2 and 3.1.3.6).
const OF_ID_TOKENS: [&str; 4] = ["nonce", "at_hash", "c_hash", "s_hash"];
/// The claims in which a token names its own kind (`token_use` of Cognito, `typ` of Keycloak), for
/// kinds that are no access tokens.
const OTHER_USES: [&str; 5] = ["id", "refresh", "offline", "logout", "id_token"];
/// Claims that say what an access token is good for, or which client has it. ID tokens have none of
/// them.
const OF_ACCESS_TOKENS: [&str; 6] = ["scope", "scp", "client_id", "cid", "roles", "permissions"];

/// Rules that an issuer's tokens must keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The issuer, byte for byte as its tokens name it.
    pub issuer: String,
    /// The algorithms with which it may sign.
    pub algorithms: Vec<Algorithm>,
    /// The values of `typ` that its access tokens may have, in lower case, without `application/`.
    pub types: Vec<String>,
    /// Difference that its clock may have, in seconds.
    pub skew_secs: u64,
}

/// A token that was read, and of which nothing is known to be true yet.
pub struct Jwt<'t> {
    /// The signed part of the text.
    signed: &'t str,
    signature: Vec<u8>,
    algorithm: Algorithm,
    /// `typ` in lower case, without `application/`.
    kind: String,
    key_id: Option<String>,
    claims: Map<String, Value>,
}

/// Whether a token is written like a JWT: three parts. Anything else can only be introspected.
#[must_use]
pub fn is_jwt(token: &str) -> bool {
    token.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl<'t> Jwt<'t> {
    /// Reads a token: its size and form, its algorithm, that it claims nothing which must be
    /// understood, and that it is of no type which is never an access token. Keys in its header
    /// (`jwk`, `jku`, `x5u`, `x5c`) are not looked at.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(token: &'t str) -> Result<Self, TokenFault> {
        if token.len() > ACCESS_TOKEN_BYTES_MAX {
            return Err(TokenFault::TooLong);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenFault::Malformed)?;
        let (head, claims) = signed.split_once('.').ok_or(TokenFault::Malformed)?;
        if claims.contains('.') {
            return Err(TokenFault::Malformed);
        }
        let head = object(head)?;
        let text = |name: &str| head.get(name).and_then(Value::as_str);
        let algorithm = text("alg").ok_or(TokenFault::Malformed)?;
        let algorithm = Algorithm::parse(algorithm).ok_or(TokenFault::Algorithm)?;
        if head.contains_key("crit") || head.get("b64").is_some_and(|b64| *b64 != Value::Bool(true))
        {
            return Err(TokenFault::Critical);
        }
        let kind = text("typ").unwrap_or_default().to_ascii_lowercase();
        let kind = kind
            .strip_prefix("application/")
            .unwrap_or(&kind)
            .to_owned();
        if FOREIGN_TYPES.contains(&kind.as_str()) {
            return Err(TokenFault::Type);
        }
        let key_id = text("kid").map(str::to_owned);
        let signature = URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| TokenFault::Malformed)?;
        Ok(Self {
            signed,
            signature,
            algorithm,
            kind,
            key_id,
            claims: object(claims)?,
        })
    }

    /// The issuer that the token names; empty if it names none.
    #[must_use]
    pub fn issuer(&self) -> &str {
        self.claims
            .get("iss")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The id of the key with which it says it was signed.
    #[must_use]
    pub fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    /// Checks algorithm and type by the rules of its issuer. A token without a type is a `jwt`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_head(&self, rules: &Rules) -> Result<(), TokenFault> {
        if self.issuer() != rules.issuer {
            return Err(TokenFault::Issuer);
        }
        if !rules.algorithms.contains(&self.algorithm) {
            return Err(TokenFault::Algorithm);
        }
        let kind = if self.kind.is_empty() {
            "jwt"
        } else {
            &self.kind
        };
        if !rules.types.iter().any(|known| known == kind) {
            return Err(TokenFault::Type);
        }
        let is_other = self.is_of_another_use() || (kind != "at+jwt" && self.is_like_id_token());
        if is_other {
            Err(TokenFault::Type)
        } else {
            Ok(())
        }
    }

    /// Advice to an operator about [`TokenFault::Type`], as the rest of a sentence; `name` is the
    /// issuer's in the configuration.
    #[must_use]
    pub fn type_advice(&self, name: &str, rules: &Rules) -> String {
        let kind = if self.kind.is_empty() {
            "jwt"
        } else {
            &self.kind
        };
        if rules.types.iter().any(|known| known == kind) {
            return ": it looks like an ID token; the client must send its access token".to_owned();
        }
        let types: Vec<String> = rules
            .types
            .iter()
            .map(String::as_str)
            .chain([kind])
            .map(|one| format!("{one:?}"))
            .collect();
        format!(
            ": its type is {kind:?}. If the issuer gives its access tokens that type, as Keycloak does, write types = [{}] in [issuers.{name}]",
            types.join(", ")
        )
    }

    /// Whether its claims call it an ID token, or another one that is no access token.
    fn is_of_another_use(&self) -> bool {
        let named = ["token_use", "typ"]
            .into_iter()
            .filter_map(|name| self.claims.get(name)?.as_str());
        named
            .map(str::to_ascii_lowercase)
            .any(|named| OTHER_USES.contains(&named.as_str()))
    }

    /// Whether it has a claim that only ID tokens have; or is good for nothing that it names, and
    /// is for the client to which it was given, as far as can be seen: for the one in `azp`, or,
    /// where no client is named, for one that has an id and no address.
    fn is_like_id_token(&self) -> bool {
        let has = |claims: &[&str]| claims.iter().any(|claim| self.claims.contains_key(*claim));
        if has(&OF_ID_TOKENS) || has(&OF_ACCESS_TOKENS) {
            return has(&OF_ID_TOKENS);
        }
        let audiences: Vec<&Value> = match self.claims.get("aud") {
            Some(Value::Array(all)) => all.iter().collect(),
            audience => audience.into_iter().collect(),
        };
        let has_address = |one: &&Value| one.as_str().is_some_and(|one| one.contains(':'));
        match (
            self.claims.get("azp").or_else(|| self.claims.get("appid")),
            audiences.as_slice(),
        ) {
            (Some(client), [audience]) => *audience == client,
            (Some(_), _) | (None, []) => false,
            (None, audiences) => !audiences.iter().any(has_address),
        }
    }

    /// Checks the signature with the key that the token names; if it names none, with the only one
    /// that fits.
    ///
    /// # Errors
    /// [`TokenFault::UnknownKey`] if there is no such key, or what is wrong.
    pub fn check_signature(&self, keys: &KeySet) -> Result<(), TokenFault> {
        keys.verify(
            self.key_id(),
            self.algorithm,
            self.signed.as_bytes(),
            &self.signature,
        )
    }

    /// Checks times, that the token is bound to no key of its client, and that it has a subject.
    /// The time is in Unix milliseconds.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn claims(self, rules: &Rules, now_ms: u64) -> Result<Claims, TokenFault> {
        Claims::of_token(self.claims, rules.skew_secs, now_ms)
    }
}

/// A part of a token: base64url of a JSON object.
fn object(part: &str) -> Result<Map<String, Value>, TokenFault> {
    let bytes = URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| TokenFault::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| TokenFault::Malformed)
}

#[cfg(test)]
mod tests;
