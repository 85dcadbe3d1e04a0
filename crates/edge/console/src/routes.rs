//! Routes of the console, and the beginning and the end of each request of a browser.

use std::convert::Infallible;
use std::sync::Arc;

use api::ConsoleCodes;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::Response;
use axum::routing::any;
use maud::{Markup, html};
use model::ParticipantId;
use platform::Limiter;
use tokio::sync::Semaphore;
use tower::{ServiceExt as _, service_fn};

use crate::api_client::{ApiClient, Problem};
use crate::asked::{Asked, Entrance, below, entrance};
use crate::entrances::PROVED;
use crate::home::{ConsoleHome, ConsoleSettings};
use crate::kept::Kept;
use crate::outcome::Outcome;
use crate::page::{Content, Frame, Tab, bare, problem, respond};
use crate::passes::Passes;
use crate::places::Places;
use crate::samples::Samples;
use crate::session::Sessions;
use crate::state::{At, Console, PAGES_WRITTEN_MAX, Visit};
use crate::used::UsedSignIns;
use crate::{
    assets, batch, decide, definitions, elsewhere, feed, inbox, like, own_sessions, pages, people,
    rights, rules, server_accounts, servers, sign_in, tools,
};

/// The routes of the console, which speaks to these handlers of the API, and takes these codes. A
/// browser that asks for `/` is led to the console; any other client gets what the API answers.
pub fn router(home: Arc<dyn ConsoleHome>, api: Router, codes: Arc<ConsoleCodes>) -> Router {
    let console = Arc::new(Console {
        home,
        api,
        codes,
        sessions: Sessions::default(),
        tries: Limiter::new(sign_in::CONSOLE_TRIES_PER_MINUTE),
        starts: Limiter::new(elsewhere::CONSOLE_SIGN_INS_PER_MINUTE),
        used: UsedSignIns::default(),
        passes: Passes::default(),
        feeds: Places::default(),
        samples: Samples::default(),
        writers: Semaphore::new(PAGES_WRITTEN_MAX),
    });
    console.keep_swept();
    // A service below the path, and no routes with parameters: these would go on to the API in the
    // extensions of the request.
    let below = Arc::clone(&console);
    let pages = service_fn(move |request| {
        let console = Arc::clone(&below);
        async move { Ok::<_, Infallible>(answer(&console, request).await) }
    });
    Router::new()
        .route("/", any(root))
        .nest_service("/console", pages)
        .with_state(console)
}

async fn root(State(console): State<Arc<Console>>, request: Request) -> Response {
    let settings = console.home.settings();
    let accepts = request.headers().get(header::ACCEPT);
    let accepts = accepts.and_then(|accepts| accepts.to_str().ok());
    let is_browser = request.method() == Method::GET
        && accepts.is_some_and(|accepts| accepts.contains("text/html"));
    if is_browser && settings.is_enabled() {
        return sign_in::redirect(&format!("{}/console", settings.prefix()), &[]);
    }
    match console.api.clone().oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// Answers a request below the console's path.
async fn answer(console: &Arc<Console>, request: Request) -> Response {
    if let Some(file) = below(request.uri()).strip_prefix("/assets/") {
        return assets::asset(file);
    }
    let settings = console.home.settings();
    let asked = match arrived(&settings, request).await {
        Ok(asked) => asked,
        Err(response) => return *response,
    };
    if asked.method == Method::POST && asked.below == "/login" {
        return sign_in::enter(console, &settings, &asked, console.home.now_ms()).await;
    }
    if let Some(response) = elsewhere::answer(console, &settings, &asked).await {
        return response;
    }
    let visit = match visit(console, &settings, asked).await {
        Ok(visit) => Arc::new(visit),
        Err(response) => return *response,
    };
    match visit.asked.below.as_str() {
        "/feed" => return on_account_of(&visit, feed::open(Arc::clone(&visit))),
        "/entered" => return sign_in::entered(&visit),
        PROVED => return elsewhere::proved(&visit),
        _ => {}
    }
    Sessions::touch(&visit.session, visit.now_ms());
    let response = match visit.asked.method {
        Method::GET | Method::HEAD => show(&visit, &visit.at(), StatusCode::OK, None).await,
        Method::POST => {
            let outcome = act(&visit).await;
            end(&visit, outcome).await
        }
        _ => respond(StatusCode::METHOD_NOT_ALLOWED, String::new(), &[]),
    };
    on_account_of(&visit, response)
}

/// Names the person to the door, which knows no cookies: what is not read yet is on the person's account.
fn on_account_of(visit: &Visit, mut response: Response) -> Response {
    if let Ok(participant) = ParticipantId::new(&visit.session.participant) {
        response.extensions_mut().insert(participant);
    }
    response
}

/// A request that may go on here.
async fn arrived(settings: &ConsoleSettings, request: Request) -> Result<Asked, Box<Response>> {
    let (parts, body) = request.into_parts();
    let base = format!("{}/console", settings.prefix());
    let refuse =
        |refused: &Problem, title| Box::new(bare(refused.status, &base, title, &problem(refused)));
    match entrance(settings, &parts) {
        Entrance::Open(name) => Asked::read(Request::from_parts(parts, body), name)
            .await
            .map_err(|refused| refuse(&refused, "Too long")),
        Entrance::Refused(refused) => Err(refuse(&refused, "The console")),
    }
}

/// The visit of a person that has signed in.
async fn visit(
    console: &Arc<Console>,
    settings: &ConsoleSettings,
    asked: Asked,
) -> Result<Visit, Box<Response>> {
    let Some(session) = sign_in::present(console, &asked, console.home.now_ms()) else {
        let lost = (asked.below == "/entered").then(sign_in::no_cookie);
        return Err(Box::new(signed_out(settings, &asked, lost.as_ref())));
    };
    let visit = Visit {
        api: ApiClient::new(
            Arc::clone(&console.home),
            console.api.clone(),
            Arc::clone(&session),
            asked.extensions.clone(),
        ),
        console: Arc::clone(console),
        asked,
        session,
        base: format!("{}/console", settings.prefix()),
    };
    // A revoked token, or one of the next bearer of the name, ends the session.
    match visit.keep().await {
        Kept::Good => Ok(visit),
        Kept::Over => Err(Box::new(lost(&visit))),
        Kept::Unsure => Err(Box::new(not_now(&visit))),
    }
}

/// The answer while it is not known whether a session goes on.
fn not_now(visit: &Visit) -> Response {
    let why = sign_in::unsure();
    if visit.asked.is_part || visit.asked.below == "/feed" {
        return respond(why.status, problem(&why).into_string(), &[]);
    }
    bare(
        why.status,
        &visit.base,
        "Not now",
        &html! { h1 { "Not now" } (problem(&why)) },
    )
}

/// Ends a session whose token is good no more.
fn lost(visit: &Visit) -> Response {
    visit.console.sessions.end(&visit.session);
    let why = "Your token is not valid any more, so this session has ended.";
    let ended = Problem::new(StatusCode::UNAUTHORIZED, why);
    let settings = visit.console.home.settings();
    signed_out(&settings, &visit.asked, Some(&ended))
}

/// The answer to a browser in which no person has signed in: the script loads the page anew.
fn signed_out(settings: &ConsoleSettings, asked: &Asked, why: Option<&Problem>) -> Response {
    if asked.is_part || asked.below == "/feed" {
        return respond(StatusCode::UNAUTHORIZED, String::new(), &[]);
    }
    let status = match asked.method {
        Method::GET | Method::HEAD => StatusCode::OK,
        _ => StatusCode::UNAUTHORIZED,
    };
    sign_in::page(settings, asked, status, why)
}

/// Carries out the form of a page.
async fn act(visit: &Arc<Visit>) -> Outcome {
    let form = visit.asked.form();
    let is_own = visit.asked.browser.is_of_origin(&visit.asked.origin)
        && visit.session.has_token(form.get("token"));
    if !is_own {
        let why = "This form was not sent by a page of this session.";
        let mut refused = Problem::new(StatusCode::FORBIDDEN, why);
        refused.hint = Some("Open the page again, and send it once more.".to_owned());
        return Outcome::fail(At::inbox(), refused);
    }
    let segments: Vec<&str> = visit.asked.below.split('/').skip(1).collect();
    match segments.as_slice() {
        ["logout"] => Outcome::Left,
        ["keys"] => {
            visit.session.set_keys(form.get("keys") == "on");
            Outcome::Led(String::new())
        }
        ["batch", act] => batch::decide(visit, act).await,
        ["access", name, act] => rights::act(visit, name, act).await,
        ["p", id, act @ ("like" | "rule")] => like::act(visit, id, act).await,
        ["p", id, act] => decide::decide(visit, id, act).await,
        ["sessions", act] => own_sessions::act(visit, act),
        ["servers", name, "approve"] => definitions::approve(visit, name).await,
        [
            "servers",
            name,
            act @ ("sign-in" | "complete" | "sign-out" | "key"),
        ] => server_accounts::act(visit, name, act).await,
        ["servers", name, act] => servers::act(visit, name, act).await,
        ["topic", act] => people::act(visit, act).await,
        ["tools", name, "call"] => tools::call(visit, name).await,
        ["rules", act] => rules::act(visit, act).await,
        _ => Outcome::no_page(At::inbox()),
    }
}

/// The answer to a form.
async fn end(visit: &Arc<Visit>, outcome: Outcome) -> Response {
    match outcome {
        Outcome::Part(part) => respond(StatusCode::OK, part.into_string(), &[]),
        Outcome::Led(path) => sign_in::redirect(&format!("{}{path}", visit.base), &[]),
        Outcome::Page { content, wrong } => {
            let status = wrong.as_ref().map_or(StatusCode::OK, |wrong| wrong.status);
            let said = html! { @if let Some(wrong) = &wrong { (problem(wrong)) } };
            page(visit, &At::Unknown, status, &content, &said).await
        }
        Outcome::Show { at, said } => show(visit, &at, StatusCode::OK, Some(said)).await,
        Outcome::Fail { problem: why, .. } if why.ends_session() => lost(visit),
        Outcome::Fail { problem: why, .. } if visit.asked.is_part => {
            respond(why.status, problem(&why).into_string(), &[])
        }
        Outcome::Fail { at, problem: why } => {
            show(visit, &at, why.status, Some(problem(&why))).await
        }
        Outcome::Left => sign_in::leave(visit),
    }
}

/// A page, under what happened before.
async fn show(visit: &Arc<Visit>, at: &At, status: StatusCode, said: Option<Markup>) -> Response {
    let said = said.unwrap_or_default();
    match pages::content(visit, at).await {
        Ok(content) => page(visit, at, status, &content, &said).await,
        Err(refused) if refused.ends_session() => lost(visit),
        Err(refused) => {
            let nothing = Content {
                tab: Tab::Inbox,
                title: "Not shown".to_owned(),
                body: html! { h1 { "Not shown" } (problem(&refused)) },
                command: "portmoot status".to_owned(),
            };
            page(visit, at, refused.status, &nothing, &said).await
        }
    }
}

/// A page with this content.
async fn page(
    visit: &Visit,
    at: &At,
    status: StatusCode,
    content: &Content,
    said: &Markup,
) -> Response {
    let frame = Frame {
        base: &visit.base,
        session: &visit.session,
        waiting: inbox::count(visit).await,
        at: &at.address(),
        now_ms: visit.now_ms(),
    };
    frame.page(status, content, said)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod tests_support;
