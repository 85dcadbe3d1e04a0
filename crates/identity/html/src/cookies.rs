//! Sealed cookies, which only the gateway can make.
//!
//! Over TLS their names have the prefix `__Host-`: no other host and no plain page can set them.
//! Plain names are for loopback without TLS alone, where browsers refuse the prefix. There a cookie
//! must not say who a person is: cookies know no ports (RFC 6265, section 8.5), so every program on
//! the machine that the browser visits gets it.

use auth::{PublicUrl, Sealer};

/// Reads and makes cookies.
#[derive(Debug, Clone, Copy)]
pub struct Cookies<'c> {
    sealer: &'c Sealer,
    is_secure: bool,
    same_site: &'static str,
}

impl<'c> Cookies<'c> {
    /// Cookies of a gateway at this address.
    #[must_use]
    pub fn new(sealer: &'c Sealer, public_url: &PublicUrl) -> Self {
        Self {
            sealer,
            is_secure: public_url.is_secure(),
            same_site: "Lax",
        }
    }

    /// Cookies that travel to one host alone, and only from its own pages. Browsers take them over
    /// TLS, and from names that always mean this machine, such as `localhost`.
    #[must_use]
    pub fn of_host(sealer: &'c Sealer) -> Self {
        Self {
            sealer,
            is_secure: true,
            same_site: "Strict",
        }
    }

    /// Cookies that travel to one host alone, also when another site leads back to its pages.
    #[must_use]
    pub fn of_return(sealer: &'c Sealer) -> Self {
        Self {
            same_site: "Lax",
            ..Self::of_host(sealer)
        }
    }

    /// Whether cookies travel to the gateway alone.
    #[must_use]
    pub fn is_secure(self) -> bool {
        self.is_secure
    }

    fn name(self, what: &str) -> String {
        let prefix = if self.is_secure { "__Host-" } else { "" };
        format!("{prefix}pm_{what}")
    }

    /// The `Set-Cookie` header of a cookie.
    fn header(self, what: &str, value: &str, valid_ms: u64) -> String {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let name = self.name(what);
        format!(
            "{name}={value}; Path=/; Max-Age={}; HttpOnly; SameSite={}{secure}",
            valid_ms / 1000,
            self.same_site
        )
    }

    /// The state that was sealed into a cookie for this purpose, if a browser with these `Cookie`
    /// headers has it. It may send several of one name, as others set them: the first that opens
    /// counts.
    #[must_use]
    pub fn open(self, headers: &[&str], what: &str, purpose: &str, now_ms: u64) -> Option<Vec<u8>> {
        let name = self.name(what);
        let pairs = headers.iter().flat_map(|header| header.split(';'));
        for pair in pairs {
            let Some((known, value)) = pair.split_once('=') else {
                continue;
            };
            if known.trim() != name {
                continue;
            }
            if let Ok(state) = self.sealer.open(purpose, "", now_ms, value.trim()) {
                return Some(state);
            }
        }
        None
    }

    /// The `Set-Cookie` header with a state, sealed for this purpose and time. `nonce` is 24 fresh
    /// random bytes.
    #[must_use]
    pub fn set(
        self,
        what: &str,
        purpose: &str,
        state: &[u8],
        nonce: [u8; 24],
        validity: Validity,
    ) -> String {
        let sealed = self
            .sealer
            .seal(purpose, "", validity.until_ms(), nonce, state);
        self.header(what, &sealed, validity.valid_ms)
    }

    /// The `Set-Cookie` header that ends a cookie.
    #[must_use]
    pub fn end(self, what: &str) -> String {
        self.header(what, "", 0)
    }
}

/// Time that a cookie is good.
#[derive(Debug, Clone, Copy)]
pub struct Validity {
    /// Now, in Unix milliseconds.
    pub now_ms: u64,
    /// Milliseconds from now on.
    pub valid_ms: u64,
}

impl Validity {
    fn until_ms(self) -> u64 {
        self.now_ms.saturating_add(self.valid_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_of_a_host_comes_from_its_own_pages_alone() {
        let sealer = Sealer::new(&[1; 32], None);
        let set = Cookies::of_host(&sealer).set("a", "purpose", b"state", [3; 24], VALIDITY);
        assert!(set.starts_with("__Host-pm_a="), "{set}");
        assert!(
            set.ends_with("; Path=/; Max-Age=5; HttpOnly; SameSite=Strict; Secure"),
            "{set}"
        );
        let set = Cookies::of_return(&sealer).set("a", "purpose", b"state", [3; 24], VALIDITY);
        assert!(
            set.starts_with("__Host-pm_a=") && set.ends_with("; SameSite=Lax; Secure"),
            "{set}"
        );
    }

    const VALIDITY: Validity = Validity {
        now_ms: 0,
        valid_ms: 5000,
    };

    #[test]
    fn a_cookie_opens_for_its_name_and_purpose_until_it_expires() {
        let sealer = Sealer::new(&[1; 32], None);
        let url = PublicUrl::parse("https://gw.example").unwrap();
        let cookies = Cookies::new(&sealer, &url);
        let set = cookies.set("a", "purpose", b"state", [3; 24], VALIDITY);
        assert!(
            set.ends_with("; Path=/; Max-Age=5; HttpOnly; SameSite=Lax; Secure"),
            "{set}"
        );
        let sent = set.split(';').next().unwrap();
        let open = |headers: &[&str], what: &str, purpose: &str, now_ms: u64| {
            cookies.open(headers, what, purpose, now_ms)
        };
        let state = Some(b"state".to_vec());
        assert_eq!(open(&[sent], "a", "purpose", 4999), state);
        assert_eq!(
            open(&["x; __Host-pm_a=forged", sent], "a", "purpose", 1),
            state
        );
        assert_eq!(open(&[sent], "a", "purpose", 5000), None);
        assert_eq!(open(&[sent], "b", "purpose", 1), None);
        assert_eq!(open(&[sent], "a", "another", 1), None);
        assert_eq!(open(&["__Host-pm_a=forged"], "a", "purpose", 1), None);
        assert_eq!(
            cookies.end("a"),
            "__Host-pm_a=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure"
        );
    }
}
