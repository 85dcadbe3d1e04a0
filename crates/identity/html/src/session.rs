//! Sessions of browsers: which browser it is, and who has signed in there.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::cookies::{Cookies, Validity};

/// Time that a person stays signed in at the pages, in milliseconds.
pub const SESSION_MS: u64 = 1_800_000;

/// A browser, and the participant that has signed in there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrowserSession {
    /// Unguessable. Forms are sealed for it.
    pub browser: String,
    /// The person that has signed in.
    pub person: Option<SignedInPerson>,
}

/// A participant that has signed in at the pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedInPerson {
    /// The participant.
    pub name: String,
    /// Mark of the participant when it signed in. With another mark it is signed in no more.
    pub mark: String,
    /// When it is signed in no more, in Unix milliseconds. Views do not prolong it.
    pub until_ms: u64,
}

impl SignedInPerson {
    /// A participant that signs in now.
    #[must_use]
    pub fn new(name: String, mark: String, now_ms: u64) -> Self {
        Self {
            name,
            mark,
            until_ms: now_ms.saturating_add(SESSION_MS),
        }
    }

    /// When it signed in, in Unix milliseconds.
    #[must_use]
    pub fn since_ms(&self) -> u64 {
        self.until_ms.saturating_sub(SESSION_MS)
    }
}

/// A new browser. `random` are 18 fresh random bytes.
#[must_use]
pub fn new_browser(random: [u8; 18]) -> BrowserSession {
    BrowserSession {
        browser: URL_SAFE_NO_PAD.encode(random),
        person: None,
    }
}

/// The cookie with the session of a browser.
///
/// Over plain HTTP it says which browser it is and nothing else: other programs on the machine get
/// it too.
#[derive(Debug, Clone, Copy)]
pub struct BrowserSessions<'c> {
    cookies: Cookies<'c>,
    /// Name of the cookie.
    name: &'static str,
}

impl<'c> BrowserSessions<'c> {
    /// Sessions in cookies of this name: pages with different names have sessions of their own.
    #[must_use]
    pub fn new(cookies: Cookies<'c>, name: &'static str) -> Self {
        Self { cookies, name }
    }

    fn purpose(self) -> String {
        format!("{}-session", self.name)
    }

    /// Whether a session may say who has signed in: its cookie travels to the gateway alone.
    #[must_use]
    pub fn keep_persons(self) -> bool {
        self.cookies.is_secure()
    }

    /// The session of a browser that sends these `Cookie` headers.
    #[must_use]
    pub fn find(self, headers: &[&str], now_ms: u64) -> Option<BrowserSession> {
        let state = self
            .cookies
            .open(headers, self.name, &self.purpose(), now_ms)?;
        let session: BrowserSession = serde_json::from_slice(&state).ok()?;
        let person = session
            .person
            .filter(|person| self.keep_persons() && now_ms < person.until_ms);
        Some(BrowserSession { person, ..session })
    }

    /// The `Set-Cookie` header of a session. `nonce` is 24 fresh random bytes.
    #[must_use]
    pub fn set(self, session: &BrowserSession, nonce: [u8; 24], now_ms: u64) -> String {
        let mut session = session.clone();
        if !self.keep_persons() {
            session.person = None;
        }
        let state = serde_json::to_vec(&session).unwrap_or_default();
        let validity = Validity {
            now_ms,
            valid_ms: SESSION_MS,
        };
        self.cookies
            .set(self.name, &self.purpose(), &state, nonce, validity)
    }

    /// The `Set-Cookie` headers with which a browser leaves for another place: over plain HTTP its
    /// session ends.
    #[must_use]
    pub fn leave(self) -> Vec<String> {
        if self.keep_persons() {
            Vec::new()
        } else {
            vec![self.cookies.end(self.name)]
        }
    }
}

#[cfg(test)]
mod tests {
    use auth::{PublicUrl, Sealer};

    use super::*;

    #[test]
    fn cookies_have_the_prefix_of_their_host_unless_on_plain_loopback() {
        let sealer = Sealer::new(&[1; 32], None);
        let person = Some(SignedInPerson {
            name: "ann".into(),
            mark: "m".into(),
            until_ms: SESSION_MS / 2,
        });
        for (url, name, secure) in [
            ("https://gw.example", "__Host-pm_login=", true),
            ("https://gw.example/a", "__Host-pm_login=", true),
            ("https://127.0.0.1:7070", "__Host-pm_login=", true),
            ("http://127.0.0.1:7070", "pm_login=", false),
        ] {
            let url = PublicUrl::parse(url).unwrap();
            let sessions = BrowserSessions::new(Cookies::new(&sealer, &url), "login");
            // Over plain HTTP other ports of the host get it too.
            let session = BrowserSession {
                browser: "b".into(),
                person: person.clone().filter(|_| secure),
            };
            let set = sessions.set(
                &BrowserSession {
                    person: person.clone(),
                    ..session.clone()
                },
                [3; 24],
                0,
            );
            assert!(
                set.starts_with(name) && set.ends_with("; Secure") == secure,
                "{set}"
            );
            assert!(
                set.contains("; Path=/; Max-Age=1800; HttpOnly; SameSite=Lax"),
                "{set}"
            );
            assert!(!set.contains("Domain"), "{set}");
            let sent = set.split(';').next().unwrap();
            assert_eq!(
                sessions.find(&["other=1", &format!("x=y; {sent}")], 1),
                Some(session.clone())
            );
            assert!(
                sessions
                    .find(&[&format!("pm_login=forged; {sent}")], 1)
                    .is_some()
            );
            assert_eq!(sessions.find(&[sent], SESSION_MS), None, "it has expired");
            let later = sessions.find(&[sent], SESSION_MS / 2).unwrap();
            assert_eq!(later.person, None, "who it was ends before");
            assert_eq!(sessions.leave().len(), usize::from(!secure));
            // A cookie without the prefix counts for nothing where the prefix can be had.
            let bare = sent.strip_prefix("__Host-").unwrap_or("x=y");
            assert_eq!(sessions.find(&[bare], 1), None);
            // Nor does the session of other pages.
            let others = BrowserSessions::new(Cookies::new(&sealer, &url), "connect");
            let renamed = sent.replace("pm_login", "pm_connect");
            assert_eq!(others.find(&[sent, &renamed], 1), None);
        }
    }
}
