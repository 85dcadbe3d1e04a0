//! Access tokens of the gateway's own authorization server: opaque to clients, sealed, and checked
//! without a table of them.

use crate::seal::{SealError, SealKey, Sealer};

/// Prefix of every access token, so that secret scanners find a leaked one, and the gateway knows
/// its own.
pub const ACCESS_TOKEN_PREFIX: &str = "pm_at_";

const PURPOSE: &str = "access-token";
/// Seals of access tokens name no principal: whom one is for is inside.
const UNNAMED: &str = "";
const ID_BYTES: usize = 16;
const TIME_BYTES: usize = 8;

/// Id of a family of refresh tokens. An access token is valid as long as its family is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FamilyId(pub u128);

impl std::fmt::Display for FamilyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FamilyId {
    /// Reads 32 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        digits
            .then(|| u128::from_str_radix(text, 16).ok().map(FamilyId))
            .flatten()
    }
}

/// An access token that was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessToken {
    /// Its family.
    pub family: FamilyId,
    /// The URL of the endpoint for which it is.
    pub resource: String,
    /// Its scopes.
    pub scopes: Vec<String>,
    /// When it expires, in Unix milliseconds.
    pub expires_ms: u64,
}

/// Seals and opens access tokens.
#[derive(Debug, Clone)]
pub struct AccessTokens(Sealer);

impl AccessTokens {
    /// With the key of the authorization server.
    #[must_use]
    pub fn new(key: &SealKey) -> Self {
        Self(Sealer::new(key, None))
    }

    /// The text of a token. `nonce` is 24 fresh random bytes.
    #[must_use]
    pub fn seal(&self, token: &AccessToken, nonce: [u8; 24]) -> String {
        let mut state = Vec::with_capacity(ID_BYTES + TIME_BYTES + token.resource.len() + 64);
        state.extend_from_slice(&token.family.0.to_be_bytes());
        state.extend_from_slice(&token.expires_ms.to_be_bytes());
        state.extend_from_slice(token.resource.as_bytes());
        for scope in &token.scopes {
            // A URL has no line ends, a scope neither.
            state.push(b'\n');
            state.extend_from_slice(scope.as_bytes());
        }
        let sealed = self
            .0
            .seal(PURPOSE, UNNAMED, token.expires_ms, nonce, &state);
        format!("{ACCESS_TOKEN_PREFIX}{sealed}")
    }

    /// Opens the text of a token.
    ///
    /// # Errors
    /// [`SealError::Expired`] when it is authentic and too old; [`SealError::Invalid`] for anything
    /// else.
    pub fn open(&self, text: &str, now_ms: u64) -> Result<AccessToken, SealError> {
        let sealed = text
            .strip_prefix(ACCESS_TOKEN_PREFIX)
            .ok_or(SealError::Invalid)?;
        let state = self.0.open(PURPOSE, UNNAMED, now_ms, sealed)?;
        let (family, rest) = state
            .split_first_chunk::<ID_BYTES>()
            .ok_or(SealError::Invalid)?;
        let (expires, rest) = rest
            .split_first_chunk::<TIME_BYTES>()
            .ok_or(SealError::Invalid)?;
        let mut texts = std::str::from_utf8(rest)
            .map_err(|_| SealError::Invalid)?
            .split('\n');
        Ok(AccessToken {
            family: FamilyId(u128::from_be_bytes(*family)),
            expires_ms: u64::from_be_bytes(*expires),
            resource: texts.next().unwrap_or_default().to_owned(),
            scopes: texts.map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_until_it_expires_and_with_its_key_alone() {
        let tokens = AccessTokens::new(&[1; 32]);
        for scopes in [vec![], vec!["mcp:read".to_owned(), "mcp:write".to_owned()]] {
            let token = AccessToken {
                family: FamilyId(7),
                resource: "https://gw.example/mcp".to_owned(),
                scopes,
                expires_ms: 100,
            };
            let text = tokens.seal(&token, [3; 24]);
            assert!(
                text.starts_with("pm_at_") && !text.contains("gw.example"),
                "{text}"
            );
            assert_eq!(tokens.open(&text, 99), Ok(token));
            assert_eq!(tokens.open(&text, 100), Err(SealError::Expired));
            assert_eq!(
                AccessTokens::new(&[2; 32]).open(&text, 99),
                Err(SealError::Invalid)
            );
            assert_eq!(
                tokens.open(text.strip_prefix("pm_at_").unwrap(), 99),
                Err(SealError::Invalid)
            );
        }
        assert_eq!(tokens.open("pm_at_", 0), Err(SealError::Invalid));
    }

    #[test]
    fn ids_print_and_parse_back() {
        let id = FamilyId(0xab);
        assert_eq!(FamilyId::parse(&id.to_string()), Some(id));
        for text in [
            "",
            "ab",
            "0000000000000000000000000000000g",
            "+0000000000000000000000000000000",
        ] {
            assert_eq!(FamilyId::parse(text), None, "{text}");
        }
    }
}
