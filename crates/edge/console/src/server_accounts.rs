//! The person's account at a server: its state, signing in there and out, a key.

use axum::http::StatusCode;
use html::Hostile;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::access::refused;
use crate::api_client::{Problem, encoded};
use crate::arguments::text;
use crate::confirm::{self, Question};
use crate::outcome::Outcome;
use crate::page::{self, Content, Tab, command, done, problem};
use crate::proof;
use crate::state::{At, Visit, decoded};
use crate::times;

#[derive(Deserialize)]
struct AccountList {
    accounts: Vec<Account>,
}

/// An account as the API shows it: without its tokens.
#[derive(Deserialize)]
struct Account {
    participant: Option<String>,
    state: String,
    reason: Option<String>,
    issuer: Option<String>,
    #[serde(default)]
    scopes: Vec<String>,
    #[serde(default)]
    wanted: Vec<String>,
    expires: Option<String>,
    renews: bool,
    since: Option<String>,
}

/// A sign-in that has begun.
#[derive(Deserialize)]
struct Begun {
    url: String,
    issuer: String,
    scopes: Vec<String>,
    expires: String,
}

#[derive(Deserialize)]
struct LoggedOut {
    not_revoked: Option<String>,
}

/// The account of the person at a server, with what it can do about it; nothing for a server without
/// accounts.
pub(crate) async fn section(visit: &Visit, server: &str) -> Markup {
    let path = format!("/api/v1/accounts?server={}", encoded(server));
    let list: Result<AccountList, Problem> = visit.api.get(&path).await;
    let list = match list {
        Ok(list) => list,
        Err(why) if why.status == StatusCode::CONFLICT => return Markup::default(),
        Err(why) => return html! { section { h2 { "Your account there" } (refused(&why)) } },
    };
    let me = &*visit.session.participant;
    let is_own = |one: &&Account| one.participant.as_deref().is_none_or(|who| who == me);
    let own = list.accounts.iter().find(is_own);
    html! {
        section {
            h2 { "Your account there" }
            div id="account" data-live data-testid="account" { (state(own)) }
            (acts(visit, server, own))
            p class="soft" { "At a terminal: " code { (Hostile(&command("portmoot servers login", server))) } }
        }
    }
}

fn state(own: Option<&Account>) -> Markup {
    let Some(own) = own else {
        return html! { p { "You have none yet. Each participant has its own account there." } };
    };
    html! {
        dl class="pairs" {
            dt { "Whose" } dd { @if let Some(who) = &own.participant { (Hostile(who)) ", and no other" } @else { "all callers share it" } }
            dt { "State" } dd { (page::state(&own.state)) @if let Some(reason) = &own.reason { " " (Hostile(reason)) } }
            @if let Some(issuer) = &own.issuer { dt { "Signed in at" } dd { (text(issuer)) } }
            @if let Some(since) = &own.since { dt { "Since" } dd { (times::day(since)) } }
            @if let Some(end) = &own.expires { dt { "Token until" } dd { (times::day(end)) @if own.renews { ", then renewed by itself" } } }
            @if !own.scopes.is_empty() { dt { "Scopes" } dd { (Hostile(&own.scopes.join(" "))) } }
            @if !own.wanted.is_empty() { dt { "It asked for" } dd { (Hostile(&own.wanted.join(" "))) } }
        }
    }
}

/// A form that posts an act about the account.
fn form(visit: &Visit, server: &str, act: &str, content: &Markup) -> Markup {
    html! {
        form method="post" action={ (visit.base) "/servers/" (encoded(server)) "/" (act) } {
            (visit.token()) (html::parts::hidden("confirmed", "")) (content)
        }
    }
}

fn acts(visit: &Visit, server: &str, own: Option<&Account>) -> Markup {
    let is_in = own.is_some_and(|own| matches!(&*own.state, "ready" | "refreshing" | "waiting"));
    let sign_in = html! { button type="submit" class=[(!is_in).then_some("main")] data-testid="sign-in" { @if is_in { "Sign in again" } @else { "Sign in" } } };
    let sign_out = html! { button type="submit" class="danger" data-arm data-testid="sign-out" { "Sign out" } };
    let key = html! {
        label class="line" { "Key"
            input type="password" name="key" required autocomplete="off" autocapitalize="off" spellcheck="false" data-testid="key";
        }
        button type="submit" data-testid="enter-key" { "Enter it" }
    };
    html! {
        div class="row" {
            (form(visit, server, "sign-in", &sign_in))
            @if is_in { (form(visit, server, "sign-out", &sign_out)) }
        }
        details { summary { "The server wants a key" } (form(visit, server, "key", &key)) }
    }
}

/// `POST /console/servers/NAME/ACT`, about the person's account there.
pub(crate) async fn act(visit: &Visit, name: &str, act: &str) -> Outcome {
    let name = decoded(name);
    let at = At::Server { name: name.clone() };
    if act == "sign-out" && !confirm::is_confirmed(visit) {
        return question(visit, &name, &at);
    }
    // The end of a sign-in is the end of what was proved at its begin.
    if matches!(act, "sign-in" | "key")
        && let Some(asked) = proof::wanted(visit, Tab::Servers).await
    {
        return asked;
    }
    let path = format!("/api/v1/servers/{}", encoded(&name));
    let outcome = match act {
        "sign-in" => return begin(visit, &name, &path, &at).await,
        "complete" => return complete(visit, &name, &path).await,
        "sign-out" => sign_out(visit, &path).await,
        _ => enter_key(visit, &path).await,
    };
    match outcome {
        Ok(said) => Outcome::Show { at, said },
        Err(refused) => Outcome::fail(at, refused),
    }
}

fn question(visit: &Visit, name: &str, at: &At) -> Outcome {
    let question = Question {
        tab: Tab::Servers,
        title: html! { "Sign out at " (text(name)) "?" },
        about: html! { p { "Its tokens are forgotten, and what runs with them ends. If all callers share the account, it is signed out for all." } },
        yes: "Yes, sign out",
        back: at.address(),
    };
    confirm::ask(visit, question)
}

/// Begins to sign in: the person opens an address, and pastes the one at which the browser has ended.
async fn begin(visit: &Visit, name: &str, path: &str, at: &At) -> Outcome {
    let begun: Result<Begun, Problem> = visit
        .api
        .post(&format!("{path}/login"), "{}".to_owned())
        .await;
    match begun {
        Ok(begun) => Outcome::page(content(name, under_way(visit, name, &begun))),
        Err(refused) => Outcome::fail(at.clone(), refused),
    }
}

fn content(name: &str, body: Markup) -> Content {
    Content {
        tab: Tab::Servers,
        title: "Sign in at a server".to_owned(),
        body,
        command: command("portmoot servers login", name),
    }
}

fn under_way(visit: &Visit, name: &str, begun: &Begun) -> Markup {
    html! {
        section class="card" data-testid="signing-in" {
            h1 { "Sign in at " (text(name)) }
            p { "1. Sign in at " strong { (text(&begun.issuer)) } ", in another tab. " @if !begun.scopes.is_empty() { "It will be asked for " (text(&begun.scopes.join(" "))) ". " } }
            (opened(&begun.url))
            p { "2. At the end your browser goes to an address of this machine, " code { "http://127.0.0.1/callback?..." } ", where nothing answers. Copy all of it from the address bar, and paste it here until " (times::day(&begun.expires)) "." }
            (pasting(visit, name))
        }
    }
}

/// The way to the address of a stranger at which the person signs in.
fn opened(url: &str) -> Markup {
    let parsed = Url::parse(url).ok();
    let is_page = |url: &Url| matches!(url.scheme(), "https" | "http");
    let Some(page) = parsed.filter(is_page) else {
        return html! { p class="said wrong" { "This is no address of a page: " (text(url)) } };
    };
    let host = page.host_str().unwrap_or_default();
    html! {
        div class="row" {
            a class="button main" href=(page.as_str()) target="_blank" rel="noopener noreferrer" data-testid="issuer" { "Open " (Hostile(host)) }
        }
    }
}

fn pasting(visit: &Visit, name: &str) -> Markup {
    let field = html! {
        label class="line" { "The address at which it ended"
            input type="text" name="callback" required autocomplete="off" autocapitalize="off" spellcheck="false" data-testid="callback";
        }
        div class="row" { button type="submit" class="main" data-testid="complete" { "Finish" } }
    };
    form(visit, name, "complete", &field)
}

/// Ends a sign-in. After a wrong address another one can be pasted.
async fn complete(visit: &Visit, name: &str, path: &str) -> Outcome {
    let body = json!({ "callback": visit.asked.form().get("callback") }).to_string();
    let ended: Result<Value, Problem> = visit
        .api
        .post(&format!("{path}/login/complete"), body)
        .await;
    match ended {
        Ok(_) => Outcome::did(
            At::Server {
                name: name.to_owned(),
            },
            "Signed in.",
        ),
        Err(wrong) => Outcome::Page {
            content: content(
                name,
                html! { section class="card" { h1 { "Sign in at " (text(name)) } (pasting(visit, name)) } },
            ),
            wrong: Some(wrong),
        },
    }
}

async fn sign_out(visit: &Visit, path: &str) -> Result<Markup, Problem> {
    let left: LoggedOut = visit
        .api
        .post(&format!("{path}/logout"), "{}".to_owned())
        .await?;
    Ok(match left.not_revoked {
        None => done("Signed out."),
        Some(why) => problem(&Problem {
            hint: Some(why),
            ..Problem::new(
                StatusCode::OK,
                "Signed out, but its tokens were not revoked there.",
            )
        }),
    })
}

async fn enter_key(visit: &Visit, path: &str) -> Result<Markup, Problem> {
    let body = json!({ "key": visit.asked.form().get("key") }).to_string();
    let _: Value = visit.api.post(&format!("{path}/key"), body).await?;
    Ok(done("The key is kept."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_stranger_is_a_page_or_nothing() {
        for (url, is_open) in [
            ("https://idp.example/authorize?a=b", true),
            ("http://127.0.0.1:9/authorize", true),
            ("javascript:alert(1)", false),
            ("data:text/html,<b>", false),
            ("//evil", false),
            ("", false),
        ] {
            let shown = opened(url).into_string();
            assert_eq!(shown.contains("href="), is_open, "{shown}");
        }
        let quoted = opened("https://idp.example/\"><script>x").into_string();
        assert!(
            !quoted.contains("<script") && quoted.contains("noopener"),
            "{quoted}"
        );
    }
}
