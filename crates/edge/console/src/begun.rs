//! Sign-ins elsewhere that a browser has begun, each in a sealed cookie of its own: tabs do not disturb each
//! other.

use html::{Cookies, Validity};
use oauth::logins::LOGIN_MS_MAX;
use oauth::person::PersonSignIn;
use platform::random;
use serde::{Deserialize, Serialize};

use crate::asked::Asked;
use crate::state::Console;

/// Sign-ins elsewhere that a browser has under way; a further one takes the place of another.
pub const BROWSER_SIGN_INS_MAX: usize = 4;

const PURPOSE: &str = "console-signin";

/// A sign-in that a browser has begun, as its cookie has it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Begun {
    /// The name of the place.
    pub(crate) place: String,
    /// The page of the console that follows.
    pub(crate) next: String,
    pub(crate) sign_in: PersonSignIn,
}

/// A sign-in that an answer is about.
pub(crate) struct Own {
    pub(crate) begun: Begun,
    /// The `Set-Cookie` header that takes its cookie from the browser.
    pub(crate) over: String,
}

/// The cookie of this number.
fn cookie(number: usize) -> String {
    format!("console-signin-{number}")
}

/// The sign-in in the cookie of this number.
fn opened(console: &Console, asked: &Asked, number: usize) -> Option<Begun> {
    let cookies = Cookies::of_return(console.home.sealer());
    let (sent, now_ms) = (asked.browser.cookies(), console.home.now_ms());
    let state = cookies.open(&sent, &cookie(number), PURPOSE, now_ms)?;
    serde_json::from_slice(&state).ok()
}

/// The number of the cookie for a further sign-in.
fn free(console: &Console, asked: &Asked, begun: &Begun) -> usize {
    // By chance: two tabs can begin before the browser has either cookie.
    let chance = begun.sign_in.state().bytes().map(usize::from);
    let first = chance.sum::<usize>();
    let mut numbers = (first..first + BROWSER_SIGN_INS_MAX).map(|at| at % BROWSER_SIGN_INS_MAX);
    numbers
        .find(|number| opened(console, asked, *number).is_none())
        .unwrap_or(first % BROWSER_SIGN_INS_MAX)
}

/// The `Set-Cookie` header with a sign-in that begins.
pub(crate) fn set(console: &Console, asked: &Asked, begun: &Begun) -> String {
    let validity = Validity {
        now_ms: console.home.now_ms(),
        valid_ms: LOGIN_MS_MAX,
    };
    let text = serde_json::to_vec(begun).unwrap_or_default();
    let cookie = cookie(free(console, asked, begun));
    Cookies::of_return(console.home.sealer()).set(&cookie, PURPOSE, &text, random(), validity)
}

/// The sign-in of this browser that an answer of a place is about. It is used up with that.
pub(crate) fn own(console: &Console, asked: &Asked, place: &str) -> Option<Own> {
    let query = asked.query();
    let state = query.get("state");
    let is_own = |begun: &Begun| begun.place == place && begun.sign_in.has_state(state);
    let (number, begun) = (0..BROWSER_SIGN_INS_MAX).find_map(|number| {
        let begun = opened(console, asked, number).filter(is_own)?;
        Some((number, begun))
    })?;
    console.used.use_up(state).then(|| Own {
        begun,
        over: Cookies::of_return(console.home.sealer()).end(&cookie(number)),
    })
}
