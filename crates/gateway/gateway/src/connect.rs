//! Answers to callers that have no account at a server where each caller has one, or too few
//! scopes: a link to a connect page.
//!
//! How the link is given depends on the client: by the error -32042 (2025-11-25), as a question in
//! a result (2026-07-28), or in words.

use std::sync::Arc;

use model::{Answer, Form, Outcome, Payload, Refusal, RefusalCode};
use oauth::config::AuthorizationKind;
use oauth::connect::Completion;
use platform::unix_ms;
use upstream::ClientProfile;
use wire::mcp::{input, result::words};

use crate::call::Call;
use crate::dispatch::Dispatch;
use crate::incoming::Names;
use crate::link::{Link, Passed};
use crate::returns::{self, Why};

/// The key of the question in `inputRequests`.
const QUESTION: &str = "connect";

/// A link to a connect page.
struct Invitation {
    id: String,
    url: String,
    message: String,
}

/// Answers a call that was refused because its participant has no account at the server; false if
/// the refusal stands.
pub(crate) fn answer(dispatch: &Arc<Dispatch>, call: &Call, refusal: &Refusal) -> bool {
    match refusal.code {
        RefusalCode::UpstreamLoginNeeded | RefusalCode::UpstreamLoginLost => {
            invite(dispatch, call).is_some()
        }
        _ => false,
    }
}

fn invite(dispatch: &Arc<Dispatch>, call: &Call) -> Option<()> {
    if call.names != Names::Public {
        return None;
    }
    let delivered = call.delivered.get()?;
    let server = dispatch.server(&delivered.server)?;
    let callers = server
        .callers
        .as_ref()
        .filter(|callers| !callers.accounts.site.is_machine())?;
    let participant = &call.link.participant.id;
    // The account is the proposer's, and guests have none.
    if delivered
        .proposer
        .as_ref()
        .is_some_and(|proposer| proposer != participant)
        || participant.is_guest()
    {
        return None;
    }
    let answering = call.reply();
    let asked = answering.request();
    let form = asked.request.payload.form;
    let client = asked.client();
    let is_tool = asked.request.calls_tool();
    if call.declined {
        let why = format!(
            "The person refused to connect an account at {}. Nothing was done.",
            server.id
        );
        if is_tool {
            answering.settle(&in_words(&why, form), &|_| None)
        } else {
            answering.refuse(&Refusal::new(RefusalCode::UpstreamLoginNeeded, why))
        }
        return Some(());
    }
    let services = &callers.accounts.site.services;
    services.vault.check().ok()?;
    let (base, _) = services.browser_url()?;
    let opens_urls = json::at(&client.capabilities, &["elicitation", "url"]).is_some();
    let session =
        (form == Form::Legacy && opens_urls).then(|| (asked.link.id, completion(&asked.link)));
    let account = callers.accounts.of(Some(participant.as_str()));
    let id = services
        .connects
        .ask(
            &account.place(),
            account.wanted(),
            &name(client),
            session,
            unix_ms(),
        )
        .ok()?;
    let url = format!("{base}/connect/{id}");
    let needs = match callers.accounts.site.config.kind {
        AuthorizationKind::Key => format!("{} needs a key of yours.", server.id),
        AuthorizationKind::OAuth
        | AuthorizationKind::None
        | AuthorizationKind::Headers
        | AuthorizationKind::ClientCredentials
        | AuthorizationKind::Exchange => {
            format!("{} needs your permission.", server.id)
        }
    };
    let message = if opens_urls {
        format!("{needs} Open the link in your browser, then call again.")
    } else {
        format!("{needs} Open {url} in your browser, then call again.")
    };
    let invitation = Invitation { id, url, message };
    match (form, opens_urls) {
        (Form::Legacy, true) => {
            let Invitation { id, url, message } = &invitation;
            answering.settle(&input::url_error(id, url, message), &|_| None);
        }
        (Form::Modern, true) => {
            let question = input::url_question(&invitation.url, &invitation.message);
            let state = returns::seal(dispatch, call, Why::Connect);
            let result = input::required(&[(QUESTION.to_owned(), question)], &state);
            answering.settle(
                &Answer {
                    outcome: Outcome::Ok,
                    payload: Payload::body(form, result),
                },
                &|_| None,
            );
        }
        (Form::Legacy | Form::Modern, false) if is_tool => {
            answering.settle(&in_words(&invitation.message, form), &|_| None);
        }
        (Form::Legacy | Form::Modern, false) => {
            let refusal = Refusal::new(RefusalCode::UpstreamLoginNeeded, needs);
            answering.refuse(&refusal.hint(format!(
                "open {} in a browser, then try again",
                invitation.url
            )));
        }
    }
    Some(())
}

/// Notifies a client's session that its person has connected an account. The session may have ended
/// by then.
fn completion(link: &Arc<Link>) -> Completion {
    let link = Arc::downgrade(link);
    Box::new(move |id| {
        if let Some(link) = link.upgrade() {
            link.outlet.notify(&Passed {
                notice: &input::url_completed(id),
                public: None,
                about: None,
            });
        }
    })
}

/// Name of a client, as the client calls itself.
fn name(client: &ClientProfile) -> String {
    let info = client.client_info.as_deref().unwrap_or(b"{}");
    let text = |key: &str| {
        json::at(info, &[key])
            .and_then(json::text)
            .filter(|text| !text.trim().is_empty())
    };
    text("title").or_else(|| text("name")).map_or_else(
        || "a client without a name".to_owned(),
        |name| name.into_owned(),
    )
}

/// The result of a tool that could not do what it was called for.
fn in_words(text: &str, form: Form) -> Answer {
    Answer {
        outcome: Outcome::Ok,
        payload: Payload::body(form, words(text, true, form)),
    }
}
