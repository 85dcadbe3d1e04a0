//! Signing in and out.

use std::sync::Arc;

use api::TooManyConsoleCodes;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use html::parts::hidden;
use html::{Hostile, see_other};
use maud::{Markup, html};

use crate::api_client::{Problem, encoded};
use crate::asked::Asked;
use crate::entrances::{PROVED, buttons};
use crate::home::{ConsoleSettings, ConsoleSignIn, TokenBearer};
use crate::kept::Kept;
use crate::page::{bare, mark, problem, respond};
use crate::session::{Person, Session, Sessions};
use crate::state::{At, Console, Visit};

/// Wrong codes and tokens of one address in a minute.
pub const CONSOLE_TRIES_PER_MINUTE: u32 = 10;

/// The refusal of a code or a token, in words.
pub(crate) const WRONG: &str = "that code or token is wrong, was used before, or is too old";

/// The longest address that is gone back to after a sign-in, in bytes.
const NEXT_BYTES_MAX: usize = 512;

/// The page at which a person signs in, under what was wrong before.
pub(crate) fn page(
    settings: &ConsoleSettings,
    asked: &Asked,
    status: StatusCode,
    wrong: Option<&Problem>,
) -> Response {
    let base = format!("{}/console", settings.prefix());
    let body = html! {
        h1 class="brand" { (mark(&base)) "Portmoot" }
        @if let Some(wrong) = wrong { (problem(wrong)) }
        (buttons(settings, asked, &next(asked)))
        form method="post" action={ (base) "/login" } data-enter {
            (hidden("next", &next(asked)))
            // A browser that keeps the token names it so.
            input type="text" name="username" autocomplete="username" value="Portmoot" hidden;
            label for="code" { "Code or token" }
            input type="password" id="code" name="code" required autocomplete="current-password"
                autocapitalize="off" spellcheck="false" aria-describedby="hint";
            p class="soft" id="hint" {
                "Run " code { "portmoot console" } " on the machine of the gateway: it opens this page with a code. A participant’s token works too."
            }
            div class="row" { button class="main" type="submit" { "Sign in" } }
        }
        @if has_local_user(settings, asked) { (local_user(&base, asked)) }
    };
    bare(status, &base, "Sign in", &body)
}

/// Whether the person at the browser is the local user: it works on the gateway's machine, and the
/// gateway has no participants.
fn has_local_user(settings: &ConsoleSettings, asked: &Asked) -> bool {
    !settings.needs_token && asked.is_local
}

/// The way in to a gateway without participants: everyone on the machine is its operator.
fn local_user(base: &str, asked: &Asked) -> Markup {
    html! {
        form method="post" action={ (base) "/login" } class="local" {
            p { "This gateway has no participants yet: who works on this machine is its operator." }
            (hidden("local", "1"))
            (hidden("next", &next(asked)))
            div class="row" { button type="submit" { "Open the console" } }
        }
    }
}

/// The port of an origin, with its colon.
fn port(origin: &str) -> String {
    origin
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(String::new(), |(_, port)| format!(":{port}"))
}

/// The page that the person wanted: that of the request, or the one that a form has carried on.
fn next(asked: &Asked) -> String {
    let carried = match asked.below.as_str() {
        "/login" => Some(asked.form().get("next").to_owned()),
        "/entered" | "/sign-in" => Some(asked.query().get("next").to_owned()),
        PROVED => Some(PROVED.to_owned()),
        _ => None,
    };
    let wanted = carried.unwrap_or_else(|| At::read(&asked.below, &asked.query()).address());
    own_path(&wanted).unwrap_or_default().to_owned()
}

/// A path below the console's to which a browser may be led.
pub(crate) fn own_path(path: &str) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~%?=&+".contains(&byte);
    let is_own = path.is_empty() || path.starts_with('/') || path.starts_with('?');
    let is_page = !["/login", "/logout", "/feed", "/entered", "/sign", "/-"]
        .iter()
        .any(|one| path.starts_with(one));
    (path.len() <= NEXT_BYTES_MAX && is_own && is_page && path.bytes().all(is_plain))
        .then_some(path)
}

/// The session of a browser, under a name to which its cookie may go.
pub(crate) fn present(console: &Console, asked: &Asked, now_ms: u64) -> Option<Arc<Session>> {
    let cookies = asked.browser.cookies();
    let session = console.sessions.find(&*console.home, &cookies, now_ms)?;
    console
        .is_own_name(asked, &session.participant)
        .then_some(session)
}

/// `POST /console/login`: a code or a token was sent.
pub(crate) async fn enter(
    console: &Arc<Console>,
    settings: &ConsoleSettings,
    asked: &Asked,
    now_ms: u64,
) -> Response {
    if !asked.browser.is_of_origin(&asked.origin) {
        let why = "a form of another site";
        return refused(console, settings, asked, StatusCode::FORBIDDEN, why);
    }
    // A right one passes, however many wrong ones came before: behind a proxy all come from there.
    let Some(person) = identified(console, settings, asked, now_ms).await else {
        return wrong(console, settings, asked, now_ms);
    };
    welcome(console, asked, person, &next(asked)).await
}

/// Signs a person in, in whose browser this was asked for, and leads it to this page of the console.
pub(crate) async fn welcome(
    console: &Arc<Console>,
    asked: &Asked,
    person: Person,
    next: &str,
) -> Response {
    let settings = &console.home.settings();
    let now_ms = console.home.now_ms();
    if !console.is_own_name(asked, &person.participant) {
        return led(console, settings, asked, &person, next);
    }
    let before = present(console, asked, now_ms);
    let other = before
        .as_ref()
        .filter(|before| before.participant != person.participant);
    if let Some(other) = other
        && asked.form().get("instead") != "1"
    {
        let change = Change {
            person: &person,
            other,
        };
        return instead(console, settings, asked, &change, next);
    }
    let why = match &person.account {
        Some(account) => format!("signed in at the console by {}", account.place),
        None => "signed in at the console".to_owned(),
    };
    console.home.record(&ConsoleSignIn {
        participant: Some(&person.participant),
        from: asked.browser.from,
        is_refused: false,
        why: &why,
    });
    let cookie = opened(console, person, before.as_ref(), now_ms).await;
    redirect(&after(settings, next), &[cookie])
}

/// The cookie of a person that has signed in. A session of the same participant goes on: forms that it has
/// filled in stay good. One of another participant, or of a former bearer of the name, ends.
async fn opened(
    console: &Arc<Console>,
    person: Person,
    before: Option<&Arc<Session>>,
    now_ms: u64,
) -> String {
    let (home, sessions) = (&*console.home, &console.sessions);
    if let Some(before) = before {
        if before.participant == person.participant && console.keep(before).await == Kept::Good {
            return sessions.renew(home, before, person, now_ms);
        }
        sessions.end(before);
    }
    sessions.open(home, person, now_ms)
}

/// The address that a browser is led to after a sign-in: it sees whether the cookie was kept.
fn after(settings: &ConsoleSettings, next: &str) -> String {
    let query = match next {
        "" => String::new(),
        next => format!("?next={}", encoded(next)),
    };
    format!("{}/console/entered{query}", settings.prefix())
}

/// `GET /console/entered` with the cookie: on to the page that the person wanted.
pub(crate) fn entered(visit: &Visit) -> Response {
    redirect(&format!("{}{}", visit.base, next(&visit.asked)), &[])
}

/// The failure of `GET /console/entered` without the cookie.
pub(crate) fn no_cookie() -> Problem {
    Problem {
        status: StatusCode::FORBIDDEN,
        message: "You were signed in, but your browser did not keep the cookie.".to_owned(),
        hint: Some("The code is used up. Allow cookies for this page, take Chromium or Firefox, or give the gateway TLS; then run portmoot console again.".to_owned()),
    }
}

/// The failure while it is not known whether a token is good.
pub(crate) fn unsure() -> Problem {
    Problem {
        status: StatusCode::SERVICE_UNAVAILABLE,
        message: "Your sign-in cannot be checked now: its issuer does not answer.".to_owned(),
        hint: Some("Try again soon: you stay signed in until it says otherwise.".to_owned()),
    }
}

/// A refused sign-in, which the audit log has.
pub(crate) fn refused(
    console: &Console,
    settings: &ConsoleSettings,
    asked: &Asked,
    status: StatusCode,
    why: &str,
) -> Response {
    console.home.record(&ConsoleSignIn {
        participant: None,
        from: asked.browser.from,
        is_refused: true,
        why,
    });
    let problem = Problem::new(status, &capital(why));
    page(settings, asked, status, Some(&problem))
}

/// A wrong code or token.
fn wrong(console: &Console, settings: &ConsoleSettings, asked: &Asked, now_ms: u64) -> Response {
    if let Err(why) = count_wrong(console, asked, now_ms) {
        return page(settings, asked, why.status, Some(&why));
    }
    refused(console, settings, asked, StatusCode::FORBIDDEN, WRONG)
}

/// Counts a wrong code or token. After so many of one address the log has no more of them for a while.
///
/// # Errors
/// There were so many.
pub(crate) fn count_wrong(console: &Console, asked: &Asked, now_ms: u64) -> Result<(), Problem> {
    let Some(from) = asked.browser.from else {
        return Ok(());
    };
    if let Some(wait_ms) = console.tries.wait_ms(from, now_ms) {
        let why = format!("Too many tries. Wait {} seconds.", wait_ms.div_ceil(1_000));
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, &why));
    }
    console.tries.count(from, now_ms);
    Ok(())
}

/// A further code for a person, whose first one is used up.
fn further_code(console: &Console, person: &Person, now_ms: u64) -> Result<String, Problem> {
    let code = console
        .codes
        .issue(&person.participant, person.bearer.as_deref(), now_ms);
    let code = code.map_err(|TooManyConsoleCodes| {
        let why = "Too many one-time codes wait to be used. Try again in a minute.";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, why)
    })?;
    console.passes.give(&code, person, now_ms);
    Ok(code)
}

/// Leads a person to its own name of this machine: cookies of the name under which it came go to other
/// programs too. The code is in the fragment, which no server sees.
fn led(
    console: &Console,
    settings: &ConsoleSettings,
    asked: &Asked,
    person: &Person,
    next: &str,
) -> Response {
    let code = match further_code(console, person, console.home.now_ms()) {
        Ok(code) => code,
        Err(why) => return page(settings, asked, why.status, Some(&why)),
    };
    let base = format!("{}/console", settings.prefix());
    let host = console.codes.host(&person.participant);
    let to = format!("http://{host}{}{base}{next}#{code}", port(&asked.origin));
    let body = html! {
        h1 class="brand" { (mark(&base)) "Portmoot" }
        p { "Your console has an address of its own on this machine, which no other program knows." }
        div class="row" { a class="button main" href=(to) data-testid="led" { "Go on" } }
        p class="soft" { "If it asks for a code: " code { (code) } }
    };
    let mut page = bare(StatusCode::OK, &base, "Sign in", &body);
    if let Ok(refresh) = HeaderValue::try_from(format!("0; url={to}")) {
        page.headers_mut().insert("refresh", refresh);
    }
    page
}

/// A person that has signed in, and the session of another participant in its browser.
struct Change<'c> {
    person: &'c Person,
    other: &'c Session,
}

/// Asks a person whether it is another participant from now on: a link of others may have led here.
fn instead(
    console: &Console,
    settings: &ConsoleSettings,
    asked: &Asked,
    change: &Change<'_>,
    next: &str,
) -> Response {
    let Change { person, other } = change;
    let code = match further_code(console, person, console.home.now_ms()) {
        Ok(code) => code,
        Err(why) => return page(settings, asked, why.status, Some(&why)),
    };
    let base = format!("{}/console", settings.prefix());
    let body = html! {
        h1 { "Sign in as " (Hostile(&person.participant)) " instead of " (Hostile(&other.participant)) "?" }
        p { "A link or a code has asked for this. If it was not yours, stay who you are." }
        form method="post" action={ (base) "/login" } data-testid="instead" {
            (hidden("code", &code)) (hidden("instead", "1")) (hidden("next", next))
            div class="row" {
                a class="button main" href=(base) { "Stay " (Hostile(&other.participant)) }
                button type="submit" { "Sign in as " (Hostile(&person.participant)) }
            }
        }
    };
    bare(StatusCode::OK, &base, "Sign in", &body)
}

pub(crate) fn capital(words: &str) -> String {
    let (first, rest) = words.split_at_checked(1).unwrap_or_default();
    format!("{}{rest}.", first.to_uppercase())
}

/// The participant that a form identifies, and its token.
async fn identified(
    console: &Console,
    settings: &ConsoleSettings,
    asked: &Asked,
    now_ms: u64,
) -> Option<Person> {
    let form = asked.form();
    if form.some("local").is_some() && has_local_user(settings, asked) {
        return person_of(console, asked, None, now_ms).await;
    }
    shown(console, asked, form.some("code")?, now_ms).await
}

/// The person that has typed a code or a token, or pasted the address with a code.
pub(crate) async fn shown(
    console: &Console,
    asked: &Asked,
    typed: &str,
    now_ms: u64,
) -> Option<Person> {
    let code = match typed.rsplit_once("/console") {
        Some((_, rest)) => rest.rsplit_once('#').map_or(typed, |(_, code)| code),
        None => typed,
    };
    match console.codes.redeem(code, now_ms) {
        Some(bearer) => {
            let person = person_of(console, asked, bearer, now_ms).await?;
            Some(console.passes.take(code, person, now_ms))
        }
        // An issuer is asked about no code that was used before.
        None if is_code(code) => None,
        None => person_of(console, asked, Some(typed.to_owned()), now_ms).await,
    }
}

/// Whether a text has the form of a one-time code.
fn is_code(text: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == 32 && text.bytes().all(is_digit)
}

/// The person whose token is this.
async fn person_of(
    console: &Console,
    asked: &Asked,
    bearer: Option<String>,
    now_ms: u64,
) -> Option<Person> {
    let from = asked.browser.from;
    match console.home.bearer_of(bearer.as_deref(), from).await {
        TokenBearer::Participant(participant) => Some(Person {
            participant,
            bearer,
            account: None,
            from,
            proved_ms: now_ms,
        }),
        TokenBearer::Unknown(_) | TokenBearer::Unsure => None,
    }
}

/// `POST /console/logout`.
pub(crate) fn leave(visit: &Visit) -> Response {
    let console = &visit.console;
    console.sessions.end(&visit.session);
    console.home.record(&ConsoleSignIn {
        participant: Some(&visit.session.participant),
        from: visit.asked.browser.from,
        is_refused: false,
        why: "signed out of the console",
    });
    let mut left = redirect(&visit.base, &[Sessions::end_cookie(&*console.home)]);
    // Pages that the browser keeps for its back button go too.
    let cache = axum::http::HeaderValue::from_static("\"cache\"");
    left.headers_mut().insert("clear-site-data", cache);
    left
}

/// A redirect by `GET`.
pub(crate) fn redirect(location: &str, cookies: &[String]) -> Response {
    see_other(location, cookies)
        .unwrap_or_else(|| respond(StatusCode::BAD_REQUEST, String::new(), &[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_led_to_pages_of_the_console_alone() {
        for (path, is_own) in [
            ("", true),
            ("/p/12-34", true),
            ("/topic?topic=main", true),
            ("?all=1", true),
            (".evil.example", false),
            ("/\r\nset-cookie: a=b", false),
            ("/\\evil", false),
            ("/login", false),
        ] {
            assert_eq!(own_path(path).is_some(), is_own, "{path:?}");
        }
        assert!(own_path(&("/".to_owned() + &"x".repeat(NEXT_BYTES_MAX))).is_none());
    }

    #[test]
    fn the_port_of_an_origin_is_kept() {
        assert_eq!(port("http://localhost:7070"), ":7070");
        assert_eq!(port("http://localhost"), "");
    }
}
