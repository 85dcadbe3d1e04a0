//! Cookies of the pages: who has signed in in this browser, and which consents it remembers.
//!
//! Both are sealed, so that only the gateway makes them. Over TLS their names have the prefix
//! `__Host-`: no other host and no plain page can set them. Plain names are for loopback without
//! TLS alone, where browsers refuse the prefix. There a cookie says which browser it is and nothing
//! else: cookies know no ports (RFC 6265, section 8.5), so every program on the machine that the
//! browser visits gets it.

use auth::{PublicUrl, Sealer};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Time that a person stays signed in at the pages, in milliseconds.
pub const SESSION_MS: u64 = 1_800_000;
/// Time that a browser remembers a consent, in milliseconds.
pub const REMEMBERED_MS: u64 = 180 * 86_400_000;
/// The most consents that a browser remembers. Beyond it, the oldest is asked for again.
pub const REMEMBERED_MAX: usize = 32;

const SESSION: &str = "login";
const CONNECT: &str = "connect";
const CONSENTS: &str = "consent";
const MARK_BYTES: usize = 12;

/// A browser, and the participant that has signed in there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Unguessable. Forms are sealed for it.
    pub browser: String,
    /// The person that has signed in.
    pub person: Option<Person>,
}

/// A participant that has signed in at the pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The participant.
    pub name: String,
    /// Mark of the participant when it signed in. With another mark it is signed in no more.
    pub mark: String,
    /// When it is signed in no more, in Unix milliseconds. Views do not prolong it.
    pub until_ms: u64,
}

impl Person {
    /// A participant that signs in now.
    #[must_use]
    pub fn new(name: String, mark: String, now_ms: u64) -> Self {
        Self {
            name,
            mark,
            until_ms: now_ms.saturating_add(SESSION_MS),
        }
    }
}

/// Reads and makes cookies.
#[derive(Debug, Clone, Copy)]
pub struct Cookies<'c> {
    sealer: &'c Sealer,
    secure: bool,
    session: &'static str,
}

impl<'c> Cookies<'c> {
    /// Cookies of a gateway at this address.
    #[must_use]
    pub fn new(sealer: &'c Sealer, public_url: &PublicUrl) -> Self {
        Self {
            sealer,
            secure: public_url.is_secure(),
            session: SESSION,
        }
    }

    /// Cookies of the connect pages, whose sessions are others.
    #[must_use]
    pub fn of_connect(sealer: &'c Sealer, public_url: &PublicUrl) -> Self {
        Self {
            session: CONNECT,
            ..Self::new(sealer, public_url)
        }
    }

    fn name(self, what: &str) -> String {
        let prefix = if self.secure { "__Host-" } else { "" };
        format!("{prefix}pm_{what}")
    }

    /// The values of a cookie among the `Cookie` headers; a browser may send several of one name.
    fn values<'h>(self, headers: &[&'h str], what: &str) -> Vec<&'h str> {
        let name = self.name(what);
        let pairs = headers
            .iter()
            .flat_map(|header| header.split(';'))
            .filter_map(|pair| pair.split_once('='));
        pairs
            .filter(|(known, _)| known.trim() == name)
            .map(|(_, value)| value.trim())
            .collect()
    }

    fn set(self, what: &str, value: &str, valid_ms: u64) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        let name = self.name(what);
        format!(
            "{name}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}",
            valid_ms / 1000
        )
    }

    /// The session of a browser that sends these `Cookie` headers.
    #[must_use]
    pub fn session(self, headers: &[&str], now_ms: u64) -> Option<Session> {
        let open = |value: &str| {
            let state = self.sealer.open("login-session", "", now_ms, value).ok()?;
            serde_json::from_slice::<Session>(&state).ok()
        };
        let session = self
            .values(headers, self.session)
            .into_iter()
            .find_map(open)?;
        let person = session
            .person
            .filter(|person| self.secure && now_ms < person.until_ms);
        Some(Session { person, ..session })
    }

    /// Whether a cookie may say who has signed in: it travels to the gateway alone.
    #[must_use]
    pub fn keep_persons(self) -> bool {
        self.secure
    }

    /// The headers with which a browser leaves for another place: over plain HTTP its session ends.
    #[must_use]
    pub fn leave(self) -> Vec<String> {
        if self.secure {
            Vec::new()
        } else {
            vec![self.set(self.session, "", 0)]
        }
    }

    /// The header that sets a session.
    #[must_use]
    pub fn set_session(self, session: &Session, nonce: [u8; 24], now_ms: u64) -> String {
        let person = session.person.clone().filter(|_| self.secure);
        let session = Session {
            browser: session.browser.clone(),
            person,
        };
        let state = serde_json::to_vec(&session).unwrap_or_default();
        let until_ms = now_ms.saturating_add(SESSION_MS);
        self.set(
            self.session,
            &self
                .sealer
                .seal("login-session", "", until_ms, nonce, &state),
            SESSION_MS,
        )
    }

    fn remembered(self, headers: &[&str], now_ms: u64) -> Vec<[u8; MARK_BYTES]> {
        let open = |value: &str| self.sealer.open("login-consents", "", now_ms, value).ok();
        let state = self
            .values(headers, CONSENTS)
            .into_iter()
            .find_map(open)
            .unwrap_or_default();
        state
            .chunks_exact(MARK_BYTES)
            .filter_map(|mark| mark.try_into().ok())
            .collect()
    }

    /// Whether a browser remembers a consent.
    #[must_use]
    pub fn remembers(self, headers: &[&str], mark: &[u8; MARK_BYTES], now_ms: u64) -> bool {
        self.remembered(headers, now_ms).contains(mark)
    }

    /// The header that has a browser remember one more consent.
    #[must_use]
    pub fn remember(
        self,
        headers: &[&str],
        mark: [u8; MARK_BYTES],
        nonce: [u8; 24],
        now_ms: u64,
    ) -> String {
        let mut marks = self.remembered(headers, now_ms);
        marks.retain(|known| *known != mark);
        marks.push(mark);
        let late = marks.len().saturating_sub(REMEMBERED_MAX);
        let state: Vec<u8> = marks.into_iter().skip(late).flatten().collect();
        let until_ms = now_ms.saturating_add(REMEMBERED_MS);
        self.set(
            CONSENTS,
            &self
                .sealer
                .seal("login-consents", "", until_ms, nonce, &state),
            REMEMBERED_MS,
        )
    }
}

/// Digest of a consent in a cookie: participant, client and redirect URI.
#[must_use]
pub fn mark(participant: &str, client_id: &str, redirect_uri: &str) -> [u8; MARK_BYTES] {
    let mut hash = Sha256::new();
    for part in [participant, client_id, redirect_uri] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().first_chunk().copied().unwrap_or_default()
}

/// A new browser. `random` are 18 fresh random bytes.
#[must_use]
pub fn new_browser(random: [u8; 18]) -> Session {
    Session {
        browser: URL_SAFE_NO_PAD.encode(random),
        person: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_have_the_prefix_of_their_host_unless_on_plain_loopback() {
        let sealer = Sealer::new(&[1; 32], None);
        let person = Some(Person {
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
            let cookies = Cookies::new(&sealer, &url);
            // Over plain HTTP other ports of the host get it too.
            let session = Session {
                browser: "b".into(),
                person: person.clone().filter(|_| secure),
            };
            let set = cookies.set_session(
                &Session {
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
                cookies.session(&["other=1", &format!("x=y; {sent}")], 1),
                Some(session.clone())
            );
            assert!(
                cookies
                    .session(&[&format!("pm_login=forged; {sent}")], 1)
                    .is_some()
            );
            assert_eq!(cookies.session(&[sent], SESSION_MS), None, "it has expired");
            let later = cookies.session(&[sent], SESSION_MS / 2).unwrap();
            assert_eq!(later.person, None, "who it was ends before");
            assert_eq!(cookies.leave().len(), usize::from(!secure));
            // A cookie without the prefix counts for nothing where the prefix can be had.
            let bare = sent.strip_prefix("__Host-").unwrap_or("x=y");
            assert_eq!(cookies.session(&[bare], 1), None);
        }
    }

    #[test]
    fn a_browser_remembers_the_latest_consents() {
        let sealer = Sealer::new(&[1; 32], None);
        let url = PublicUrl::parse("https://gw.example").unwrap();
        let cookies = Cookies::new(&sealer, &url);
        let mut sent = String::new();
        for number in 0..=REMEMBERED_MAX {
            let mark = mark("ann", &number.to_string(), "https://app.example/cb");
            let set = cookies.remember(&[&sent], mark, [3; 24], 0);
            sent = set.split(';').next().unwrap().to_owned();
        }
        let remembers = |who: &str, client: &str, uri: &str| {
            cookies.remembers(&[&sent], &mark(who, client, uri), 1)
        };
        assert!(
            remembers("ann", "32", "https://app.example/cb")
                && remembers("ann", "1", "https://app.example/cb")
        );
        assert!(
            !remembers("ann", "0", "https://app.example/cb"),
            "the oldest made way"
        );
        assert!(!remembers("bob", "32", "https://app.example/cb"));
        assert!(!remembers("ann", "32", "https://app.example/cc"));
        assert!(sent.len() < 1024);
    }
}
