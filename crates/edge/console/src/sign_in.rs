//! Signing in and out.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use html::see_other;
use maud::{Markup, html};

use crate::api_client::Problem;
use crate::asked::{Asked, OWN_NAME};
use crate::home::{ConsoleSettings, ConsoleSignIn};
use crate::page::{bare, mark, problem, respond};
use crate::session::Sessions;
use crate::state::{Console, Visit};

/// Wrong codes and tokens of one address in a minute.
pub const CONSOLE_TRIES_PER_MINUTE: u32 = 10;

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
        form method="post" action={ (base) "/login" } data-enter {
            input type="hidden" name="next" value=(next(asked));
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
        @if !settings.needs_token { (local_user(&base)) }
        @if is_shared_name(&asked.origin) {
            p class="soft" {
                "Under this name, other programs of this machine can get the page’s cookie. If your browser finds it, use "
                a href={ "http://" (OWN_NAME) (port(&asked.origin)) (base) } { (OWN_NAME) } " instead."
            }
        }
    };
    bare(status, &base, "Sign in", &body)
}

/// The way in to a gateway without participants: everyone on the machine is its operator.
fn local_user(base: &str) -> Markup {
    html! {
        form method="post" action={ (base) "/login" } class="local" {
            p { "This gateway has no participants yet: who works on this machine is its operator." }
            input type="hidden" name="local" value="1";
            div class="row" { button type="submit" { "Open the console" } }
        }
    }
}

/// Whether cookies of this origin go to other ports of the machine.
fn is_shared_name(origin: &str) -> bool {
    origin.starts_with("http://localhost")
}

fn port(origin: &str) -> String {
    origin
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(String::new(), |(_, port)| format!(":{port}"))
}

/// The page that the person wanted: a path below the console's.
fn next(asked: &Asked) -> String {
    let wanted = asked.address();
    own_path(&wanted).unwrap_or_default().to_owned()
}

/// A path below the console's to which a browser may be led.
fn own_path(path: &str) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~%?=&+".contains(&byte);
    let is_own = path.is_empty() || path.starts_with('/') || path.starts_with('?');
    let is_page = !["/login", "/logout", "/feed"]
        .iter()
        .any(|one| path.starts_with(one));
    (path.len() <= NEXT_BYTES_MAX && is_own && is_page && path.bytes().all(is_plain))
        .then_some(path)
}

/// `POST /console/login`: a code or a token was sent.
pub(crate) fn enter(
    console: &Arc<Console>,
    settings: &ConsoleSettings,
    asked: &Asked,
    now_ms: u64,
) -> Response {
    let from = asked.browser.from;
    let refused = |status, why: &str| {
        console.home.record(&ConsoleSignIn {
            participant: None,
            from,
            is_refused: true,
            why,
        });
        page(
            settings,
            asked,
            status,
            Some(&Problem::new(status, &capital(why))),
        )
    };
    if !asked.browser.is_of_origin(&asked.origin) {
        return refused(StatusCode::FORBIDDEN, "a form of another site");
    }
    if let Some(wait_ms) = from.and_then(|from| console.tries.wait_ms(from, now_ms)) {
        let why = format!("Too many tries. Wait {} seconds.", wait_ms.div_ceil(1_000));
        let status = StatusCode::TOO_MANY_REQUESTS;
        return page(settings, asked, status, Some(&Problem::new(status, &why)));
    }
    let Some((participant, bearer)) = identified(console, settings, asked, now_ms) else {
        if let Some(from) = from {
            console.tries.count(from, now_ms);
        }
        let why = "that code or token is wrong, was used before, or is too old";
        return refused(StatusCode::FORBIDDEN, why);
    };
    console.home.record(&ConsoleSignIn {
        participant: Some(&participant),
        from,
        is_refused: false,
        why: "signed in at the console",
    });
    let cookie = console
        .sessions
        .open(&*console.home, participant, bearer, now_ms);
    let next = own_path(asked.form().get("next")).unwrap_or_default();
    let location = format!("{}/console{next}", settings.prefix());
    redirect(&location, &[cookie])
}

fn capital(words: &str) -> String {
    let (first, rest) = words.split_at_checked(1).unwrap_or_default();
    format!("{}{rest}.", first.to_uppercase())
}

/// The participant that a form identifies, and its token.
fn identified(
    console: &Console,
    settings: &ConsoleSettings,
    asked: &Asked,
    now_ms: u64,
) -> Option<(String, Option<String>)> {
    let form = asked.form();
    let bearer = if form.some("local").is_some() && !settings.needs_token {
        None
    } else {
        let typed = form.some("code")?;
        console
            .codes
            .redeem(typed, now_ms)
            .unwrap_or_else(|| Some(typed.to_owned()))
    };
    let participant = console.home.participant(bearer.as_deref())?;
    Some((participant, bearer))
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
