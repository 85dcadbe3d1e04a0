//! Signing in at another place: an issuer, or the gateway's own authorization server.
//!
//! The browser leaves with a sealed cookie that alone can end the sign-in, and comes back to a page of
//! no content: that goes on by itself, so that the session's cookie, which no other site may have sent,
//! comes with the next request.

use std::sync::Arc;

use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use identity::login::{CONSOLE_SESSION_MS, console_callback};
use maud::html;
use oauth::LoginError;
use oauth::logins::LOGIN_MS_MAX;
use oauth::person::{Asked as AskedWho, PersonError, PersonTokens, PersonWish};

use crate::account::Account;
use crate::api_client::Problem;
use crate::asked::Asked;
use crate::begun::{self, Begun};
use crate::entrances::PROVED;
use crate::home::{ConsoleSettings, ConsoleSignIn, TokenBearer};
use crate::page::{bare, mark, problem};
use crate::session::Person;
use crate::sign_in::{self, count_wrong, own_path, redirect, unsure, welcome};
use crate::state::{Console, Visit};

/// Sign-ins at other places that an address begins in a minute.
pub const CONSOLE_SIGN_INS_PER_MINUTE: u32 = 60;

/// The longest answer of a place, in bytes.
pub const PLACE_ANSWER_BYTES_MAX: usize = 8 * 1024;

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
        redirect_uri: &public_url.at(&console_callback(name)),
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
        cookie: begun::set(console, asked, &state),
    })
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
    if !is_known || query.len() > PLACE_ANSWER_BYTES_MAX || !query.bytes().all(is_plain) {
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
    // Without the browser's own cookie nothing of the answer is looked at, shown or noted, for any site can
    // lead here; and what others send to this address ends no sign-in.
    let Some(own) = begun::own(console, asked, place) else {
        let why = not_begun();
        return sign_in::page(settings, asked, why.status, Some(&why));
    };
    let mut response = match ended(console, settings, asked, own.begun).await {
        Ok(Ended { person, next }) => welcome(console, asked, person, &next).await,
        Err(failure) => not_signed_in(console, settings, asked, place, &failure),
    };
    if let Ok(over) = HeaderValue::try_from(own.over) {
        response.headers_mut().append(header::SET_COOKIE, over);
    }
    response
}

/// A person that has signed in, and the page that it wanted.
struct Ended {
    person: Person,
    next: String,
}

/// A sign-in that has failed at its end.
struct Failure {
    why: Problem,
    /// Whether it may have been a guess, which counts with wrong codes.
    is_guess: bool,
}

impl From<Problem> for Failure {
    fn from(why: Problem) -> Self {
        Self {
            why,
            is_guess: false,
        }
    }
}

async fn ended(
    console: &Arc<Console>,
    settings: &ConsoleSettings,
    asked: &Asked,
    begun: Begun,
) -> Result<Ended, Failure> {
    let (place, from) = (&*begun.place, asked.browser.from);
    let at = console.home.place(place).ok_or_else(not_begun)?;
    let answer = format!("{}?{}", begun.sign_in.redirect_uri(), asked.raw_query());
    let tokens = at.end(&begun.sign_in, &answer).await;
    let tokens = tokens.map_err(|error| Failure {
        why: failed(settings.label(place), &error),
        is_guess: error.is_refusal(),
    })?;
    let bearer = tokens.access.expose().to_owned();
    let proved_ms = proved_ms(&tokens, console.home.now_ms());
    // Without a person they are given up with it.
    let account = Arc::new(Account::new(place, at, tokens));
    match console.home.bearer_of(Some(&bearer), from).await {
        TokenBearer::Participant(participant) => Ok(Ended {
            person: Person {
                participant,
                bearer: Some(bearer),
                account: Some(account),
                from,
                proved_ms,
            },
            next: begun.next,
        }),
        TokenBearer::Unknown(why) => Err(Failure {
            why: Problem {
                hint: Some("Ask the operator of the gateway.".to_owned()),
                ..Problem::new(StatusCode::FORBIDDEN, &why)
            },
            is_guess: true,
        }),
        TokenBearer::Unsure => Err(unsure().into()),
    }
}

/// When a person has proved who it is, in Unix milliseconds; 0 if that is not known.
fn proved_ms(tokens: &PersonTokens, now_ms: u64) -> u64 {
    match tokens.asked {
        AskedWho::At(at_ms) => at_ms.min(now_ms),
        AskedWho::Unknown => 0,
    }
}

fn not_begun() -> Problem {
    Problem {
        status: StatusCode::FORBIDDEN,
        message: format!(
            "This sign-in was not begun in this browser, has ended already, or took longer than {} minutes.",
            LOGIN_MS_MAX / 60_000
        ),
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
            Some("Type a code instead: portmoot console --no-browser prints one.".to_owned()),
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

/// The end of a sign-in that has failed, which the audit log has.
fn not_signed_in(
    console: &Arc<Console>,
    settings: &ConsoleSettings,
    asked: &Asked,
    place: &str,
    failure: &Failure,
) -> Response {
    if failure.is_guess
        && let Err(limited) = count_wrong(console, asked, console.home.now_ms())
    {
        return sign_in::page(settings, asked, limited.status, Some(&limited));
    }
    let why = &failure.why;
    console.home.record(&ConsoleSignIn {
        participant: None,
        from: asked.browser.from,
        is_refused: true,
        why: &format!("a sign-in by {place}: {}", why.message),
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
