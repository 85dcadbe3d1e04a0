//! Signing in at another place: an issuer, or the gateway's own authorization server.
//!
//! The browser leaves with a sealed cookie that alone can end the sign-in, and comes back to a page of
//! no content: that goes on by itself, so that the session's cookie, which no other site may have sent,
//! comes with the next request.

use std::sync::Arc;

use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use html::{Cookies, Validity};
use maud::html;
use oauth::LoginError;
use oauth::logins::LOGIN_MS_MAX;
use oauth::person::{Asked as AskedWho, PersonError, PersonSignIn, PersonTokens, PersonWish};
use platform::random;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::api_client::Problem;
use crate::asked::Asked;
use crate::entrances::PROVED;
use crate::home::{ConsoleSettings, ConsoleSignIn, TokenBearer};
use crate::page::{bare, mark, problem};
use crate::session::{CONSOLE_SESSION_MS, Person};
use crate::sign_in::{self, count_wrong, own_path, redirect, unsure, welcome};
use crate::state::{Console, Visit};

/// Sign-ins at other places that an address begins in a minute.
pub const CONSOLE_SIGN_INS_PER_MINUTE: u32 = 60;

/// The longest answer of a place, in bytes.
const ANSWER_BYTES_MAX: usize = 8 * 1024;
const COOKIE: &str = "console-signin";
const PURPOSE: &str = "console-signin";

/// A sign-in that a browser has begun, as its cookie has it.
#[derive(Serialize, Deserialize)]
struct Begun {
    /// The name of the place.
    place: String,
    /// The page of the console that follows.
    next: String,
    sign_in: PersonSignIn,
}

/// Answers requests that are about a sign-in at another place.
pub(crate) async fn answer(
    console: &Arc<Console>,
    settings: &ConsoleSettings,
    asked: &Asked,
) -> Option<Response> {
    if asked.method != Method::GET {
        return None;
    }
    let segments: Vec<&str> = asked.below.split('/').skip(1).collect();
    match segments.as_slice() {
        ["sign-in"] => Some(begin(console, settings, asked).await),
        ["signed-in", place] => Some(returned(settings, asked, place)),
        ["signed-in", place, "on"] => Some(end(console, settings, asked, place).await),
        _ => None,
    }
}

/// `GET /console/sign-in?with=PLACE`: leads the browser to the place.
async fn begin(console: &Arc<Console>, settings: &ConsoleSettings, asked: &Asked) -> Response {
    // Another site leads to the page alone: the person itself goes on from there.
    if !asked.browser.is_same_site() {
        return sign_in::page(settings, asked, StatusCode::OK, None);
    }
    match begun(console, settings, asked).await {
        Ok(Started { address, cookie }) => redirect(&address, &[cookie]),
        Err(why) => sign_in::page(settings, asked, why.status, Some(&why)),
    }
}

/// A sign-in that begins: where the browser goes, and with which cookie.
struct Started {
    address: String,
    cookie: String,
}

async fn begun(
    console: &Arc<Console>,
    settings: &ConsoleSettings,
    asked: &Asked,
) -> Result<Started, Problem> {
    let query = asked.query();
    let name = query.get("with");
    let place = console.home.place(name).zip(settings.public_url.as_ref());
    let no_place = || Problem::new(StatusCode::NOT_FOUND, "There is no such place to sign in.");
    let (place, public_url) = place.ok_or_else(no_place)?;
    let now_ms = console.home.now_ms();
    let started = console.starts.act(asked.browser.from, now_ms);
    started.map_err(too_many)?;
    let is_anew = query.some("anew").is_some();
    let wish = PersonWish {
        redirect_uri: &public_url.at(&format!("/console/signed-in/{name}")),
        resource: &settings.resource(),
        max_age_secs: if is_anew {
            0
        } else {
            CONSOLE_SESSION_MS / 1_000
        },
    };
    let begun = place.begin(wish).await;
    let begun = begun.map_err(|error| failed(settings.label(name), &error))?;
    let state = Begun {
        place: name.to_owned(),
        next: own_path(query.get("next")).unwrap_or_default().to_owned(),
        sign_in: begun.sign_in,
    };
    Ok(Started {
        address: begun.address,
        cookie: sealed(console, &state, now_ms),
    })
}

/// The cookie with a sign-in.
fn sealed(console: &Console, state: &Begun, now_ms: u64) -> String {
    let validity = Validity {
        now_ms,
        valid_ms: LOGIN_MS_MAX,
    };
    let text = serde_json::to_vec(state).unwrap_or_default();
    Cookies::of_return(console.home.sealer()).set(COOKIE, PURPOSE, &text, random(), validity)
}

fn too_many(wait_ms: u64) -> Problem {
    let secs = wait_ms.div_ceil(1_000);
    let why = format!("Too many sign-ins begin at your address. Wait {secs} seconds.");
    Problem::new(StatusCode::TOO_MANY_REQUESTS, &why)
}

/// `GET /console/signed-in/PLACE`: the place leads back, from another site. Nothing is looked at yet.
fn returned(settings: &ConsoleSettings, asked: &Asked, place: &str) -> Response {
    let base = format!("{}/console", settings.prefix());
    let query = asked.raw_query();
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    let is_known = settings.places.iter().any(|known| known.name == place);
    if !is_known || query.len() > ANSWER_BYTES_MAX || !query.bytes().all(is_plain) {
        let why = Problem::new(StatusCode::BAD_REQUEST, "This is no answer to a sign-in.");
        return bare(why.status, &base, "Sign in", &problem(&why));
    }
    let to = format!("{base}/signed-in/{place}/on?{query}");
    let body = html! {
        h1 class="brand" { (mark(&base)) "Portmoot" }
        p { "You come from " (settings.label(place)) "." }
        div class="row" { a class="button main" href=(to) data-testid="on" { "Go on" } }
    };
    let mut page = bare(StatusCode::OK, &base, "Sign in", &body);
    if let Ok(refresh) = HeaderValue::try_from(format!("0; url={to}")) {
        page.headers_mut().insert("refresh", refresh);
    }
    page
}

/// `GET /console/signed-in/PLACE/on`: the answer of the place, with the browser's cookies.
async fn end(
    console: &Arc<Console>,
    settings: &ConsoleSettings,
    asked: &Asked,
    place: &str,
) -> Response {
    // Without the browser's own cookie nothing of the answer is looked at, or shown; and what others send
    // to this address ends no sign-in.
    let Some(begun) = own(console, asked, place) else {
        return not_signed_in(console, settings, asked, place, &not_begun());
    };
    let mut response = match ended(console, settings, asked, begun).await {
        Ok(Ended { person, next }) => welcome(console, asked, person, &next).await,
        Err(why) => not_signed_in(console, settings, asked, place, &why),
    };
    let over = Cookies::of_return(console.home.sealer()).end(COOKIE);
    if let Ok(over) = HeaderValue::try_from(over) {
        response.headers_mut().append(header::SET_COOKIE, over);
    }
    response
}

/// The sign-in of this browser that an answer of a place is about. It is used up with that.
fn own(console: &Console, asked: &Asked, place: &str) -> Option<Begun> {
    let cookies = Cookies::of_return(console.home.sealer());
    let now_ms = console.home.now_ms();
    let state = cookies.open(&asked.browser.cookies(), COOKIE, PURPOSE, now_ms)?;
    let begun: Begun = serde_json::from_slice(&state).ok()?;
    let is_own = begun.place == place && begun.sign_in.has_state(asked.query().get("state"));
    (is_own && console.used.use_up(begun.sign_in.state())).then_some(begun)
}

/// A person that has signed in, and the page that it wanted.
struct Ended {
    person: Person,
    next: String,
}

async fn ended(
    console: &Arc<Console>,
    settings: &ConsoleSettings,
    asked: &Asked,
    begun: Begun,
) -> Result<Ended, Problem> {
    let (place, now_ms) = (&*begun.place, console.home.now_ms());
    let at = console.home.place(place).ok_or_else(not_begun)?;
    let answer = format!("{}?{}", begun.sign_in.redirect_uri(), asked.raw_query());
    let tokens = at.end(&begun.sign_in, &answer).await;
    let tokens = tokens.map_err(|error| failed(settings.label(place), &error))?;
    let bearer = tokens.access.expose().to_owned();
    let proved_ms = proved_ms(&tokens, now_ms);
    let account = Arc::new(Account::new(place, at, tokens));
    match console
        .home
        .bearer_of(Some(&bearer), asked.browser.from)
        .await
    {
        TokenBearer::Participant(participant) => Ok(Ended {
            person: Person {
                participant,
                bearer: Some(bearer),
                account: Some(account),
                proved_ms,
            },
            next: begun.next,
        }),
        TokenBearer::Unknown(why) => {
            account.give_up();
            Err(Problem {
                hint: Some("Ask the operator of the gateway.".to_owned()),
                ..Problem::new(StatusCode::FORBIDDEN, &why)
            })
        }
        TokenBearer::Unsure => Err(unsure()),
    }
}

/// When a person has proved who it is, in Unix milliseconds; 0 if that is not known.
fn proved_ms(tokens: &PersonTokens, now_ms: u64) -> u64 {
    match tokens.asked {
        AskedWho::Now => now_ms,
        AskedWho::At(at_ms) => at_ms.min(now_ms),
        AskedWho::Unknown => 0,
    }
}

fn not_begun() -> Problem {
    Problem {
        status: StatusCode::FORBIDDEN,
        message: "This sign-in was not begun in this browser, has ended already, or took longer than ten minutes.".to_owned(),
        hint: Some("Begin again below.".to_owned()),
    }
}

/// The failure of a step at a place. Words of the place are text of others, and bounded. Why it cannot be
/// asked is for operators, in the log: that may name addresses of the gateway's network.
fn failed(label: &str, error: &PersonError) -> Problem {
    let (status, words, hint) = match error {
        PersonError::Step(LoginError::Unknown) => return not_begun(),
        PersonError::Step(LoginError::Trouble(trouble)) if !trouble.is_refusal() => (
            StatusCode::BAD_GATEWAY,
            "it cannot be asked now".to_owned(),
            Some("Try again soon. The operator finds the reason in the gateway’s log.".to_owned()),
        ),
        PersonError::NoTime => (
            StatusCode::FORBIDDEN,
            error.to_string(),
            Some(format!(
                "Use a code instead: portmoot console. The operator can have {label} name auth_time, or leave openid out of console_scopes."
            )),
        ),
        PersonError::Step(_) | PersonError::IdToken(_) | PersonError::NotAsked => {
            (StatusCode::FORBIDDEN, error.to_string(), None)
        }
    };
    Problem {
        hint,
        ..Problem::new(status, &format!("Not signed in at {label}: {words}."))
    }
}

/// A sign-in that has failed, which the audit log has.
fn not_signed_in(
    console: &Arc<Console>,
    settings: &ConsoleSettings,
    asked: &Asked,
    place: &str,
    why: &Problem,
) -> Response {
    if let Err(limited) = count_wrong(console, asked, console.home.now_ms()) {
        return sign_in::page(settings, asked, limited.status, Some(&limited));
    }
    // The place is a word of the address until it is known.
    let place = settings.places.iter().find(|known| known.name == place);
    let place = place.map_or("an unknown place", |place| &place.name);
    let words = format!("a sign-in by {place}: {}", why.message);
    console.home.record(&ConsoleSignIn {
        participant: None,
        from: asked.browser.from,
        is_refused: true,
        why: &words,
    });
    sign_in::page(settings, asked, why.status, Some(why))
}

/// `GET /console/proved`: the end of a further proof, in a tab of its own.
pub(crate) fn proved(visit: &Visit) -> Response {
    let session = &visit.session;
    let proof_ms = visit.console.home.settings().proof_ms;
    let is_proved = session.unproved_ms(visit.now_ms()) < proof_ms;
    let base = &visit.base;
    let body = html! {
        h1 class="brand" { (mark(base)) "Portmoot" }
        @if is_proved {
            p role="status" data-testid="proved" { "It is you. Press “Go on” in the tab before; this one can be closed." }
        } @else {
            form method="post" action={ (base) "/login" } data-enter {
                (html::parts::hidden("next", PROVED))
                label for="code" { "Code" }
                input type="password" id="code" name="code" required autocomplete="off" aria-describedby="hint";
                p class="soft" id="hint" { "The code that the page before has shown." }
                div class="row" { button class="main" type="submit" { "Go on" } }
            }
        }
    };
    bare(StatusCode::OK, base, "Proof", &body)
}
