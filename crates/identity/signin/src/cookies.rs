//! Consents that a browser remembers, in a sealed cookie.

use html::{Cookies, Validity};
use sha2::{Digest as _, Sha256};

/// Time that a browser remembers a consent, in milliseconds.
pub const REMEMBERED_MS: u64 = 180 * 86_400_000;
/// The most consents that a browser remembers. Beyond it, the oldest is asked for again.
pub const REMEMBERED_MAX: usize = 32;

/// Name of the cookie with the session at the pages of signing in.
pub(crate) const SIGN_IN_SESSION: &str = "login";
/// Name of the cookie with the session at the connect pages.
pub(crate) const CONNECT_SESSION: &str = "connect";

const CONSENTS: &str = "consent";
const PURPOSE: &str = "login-consents";
const MARK_BYTES: usize = 12;

/// Digest of a consent in a cookie: participant, client and redirect URI.
pub(crate) type ConsentMark = [u8; MARK_BYTES];

fn remembered(cookies: Cookies<'_>, headers: &[&str], now_ms: u64) -> Vec<ConsentMark> {
    let state = cookies.open(headers, CONSENTS, PURPOSE, now_ms);
    state
        .unwrap_or_default()
        .chunks_exact(MARK_BYTES)
        .filter_map(|mark| mark.try_into().ok())
        .collect()
}

/// Whether a browser with these `Cookie` headers remembers a consent.
pub(crate) fn remembers(
    cookies: Cookies<'_>,
    headers: &[&str],
    mark: &ConsentMark,
    now_ms: u64,
) -> bool {
    remembered(cookies, headers, now_ms).contains(mark)
}

/// The `Set-Cookie` header that has a browser remember one more consent.
pub(crate) fn remember(
    cookies: Cookies<'_>,
    headers: &[&str],
    mark: ConsentMark,
    nonce: [u8; 24],
    now_ms: u64,
) -> String {
    let mut marks = remembered(cookies, headers, now_ms);
    marks.retain(|known| *known != mark);
    marks.push(mark);
    let late = marks.len().saturating_sub(REMEMBERED_MAX);
    let state: Vec<u8> = marks.into_iter().skip(late).flatten().collect();
    let validity = Validity {
        now_ms,
        valid_ms: REMEMBERED_MS,
    };
    cookies.set(CONSENTS, PURPOSE, &state, nonce, validity)
}

/// The mark of a consent.
pub(crate) fn mark(participant: &str, client_id: &str, redirect_uri: &str) -> ConsentMark {
    let mut hash = Sha256::new();
    for part in [participant, client_id, redirect_uri] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use auth::{PublicUrl, Sealer};

    use super::*;

    #[test]
    fn a_browser_remembers_the_latest_consents() {
        let sealer = Sealer::new(&[1; 32], None);
        let url = PublicUrl::parse("https://gw.example").unwrap();
        let cookies = Cookies::new(&sealer, &url);
        let mut sent = String::new();
        for number in 0..=REMEMBERED_MAX {
            let mark = mark("ann", &number.to_string(), "https://app.example/cb");
            let set = remember(cookies, &[&sent], mark, [3; 24], 0);
            sent = set.split(';').next().unwrap().to_owned();
        }
        let knows = |who: &str, client: &str, uri: &str| {
            remembers(cookies, &[&sent], &mark(who, client, uri), 1)
        };
        assert!(
            knows("ann", "32", "https://app.example/cb")
                && knows("ann", "1", "https://app.example/cb")
        );
        assert!(
            !knows("ann", "0", "https://app.example/cb"),
            "the oldest made way"
        );
        assert!(!knows("bob", "32", "https://app.example/cb"));
        assert!(!knows("ann", "32", "https://app.example/cc"));
        assert!(sent.len() < 1024);
    }
}
