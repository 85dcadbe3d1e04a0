//! Answers to callers that have no account at a server where each caller has one, or too few
//! scopes: a link to a connect page.
//!
//! How the link is given depends on the client: by the error -32042 (2025-11-25), as a question in
//! a result (2026-07-28), or in words.

use std::sync::Arc;

use model::{Answer, Form, Outcome, ParticipantId, Payload, Refusal, RefusalCode};
use oauth::AccountServer;
use oauth::config::AuthorizationKind;
use oauth::connect::Completion;
use oauth::site::Site;
use platform::unix_ms;
use upstream::ClientProfile;
use wire::mcp::{input, result::words};

use crate::call::{Answering, Call};
use crate::dispatch::Dispatch;
use crate::incoming::Names;
use crate::link::{Link, Passed};
use crate::live::ConfiguredServer;
use crate::returns::{self, Why};

/// The key of the question in `inputRequests`.
const QUESTION: &str = "connect";

/// A link to a connect page, for a client.
struct Invitation {
    id: String,
    url: String,
    /// The need of the server, as a sentence.
    needs: String,
    /// Whether the client opens addresses that it is given.
    opens_urls: bool,
}

impl Invitation {
    /// Opens a connect page for the caller of a request. `None` if it cannot be opened now.
    fn new(accounts: &AccountServer, asked: &Call) -> Option<Self> {
        let site = &accounts.site;
        let services = &site.services;
        services.vault.check().ok()?;
        let (base, _) = services.browser_url()?;
        let client = asked.client();
        let opens_urls = json::at(&client.capabilities, &["elicitation", "url"]).is_some();
        let is_notified = asked.request.payload.form == Form::Legacy && opens_urls;
        let session = is_notified.then(|| (asked.link.id, completion(&asked.link)));
        let account = accounts.of(Some(asked.link.participant.id.as_str()));
        let place = account.place();
        let connects = &services.connects;
        let asked = connects.ask(&place, account.wanted(), &name(client), session, unix_ms());
        let id = asked.ok()?;
        Some(Self {
            url: format!("{base}/connect/{id}"),
            id,
            needs: needs_of(site),
            opens_urls,
        })
    }

    /// It in words, for a person.
    fn message(&self) -> String {
        let Self { needs, url, .. } = self;
        if self.opens_urls {
            format!("{needs} Open the link in your browser, then call again.")
        } else {
            format!("{needs} Open {url} in your browser, then call again.")
        }
    }

    /// Gives it to the caller in a way that its client understands.
    fn give(self, dispatch: &Arc<Dispatch>, call: &Call, answering: &Answering<'_>) {
        let request = &answering.request().request;
        let form = request.payload.form;
        let message = self.message();
        let answer = match (form, self.opens_urls) {
            (Form::Legacy, true) => input::url_error(&self.id, &self.url, &message),
            (Form::Modern, true) => {
                let question = input::url_question(&self.url, &message);
                let state = returns::seal(dispatch, call, Why::Connect);
                let result = input::required(&[(QUESTION.to_owned(), question)], &state);
                Answer {
                    outcome: Outcome::Ok,
                    payload: Payload::body(form, result),
                }
            }
            (Form::Legacy | Form::Modern, false) if request.calls_tool() => {
                in_words(&message, form)
            }
            (Form::Legacy | Form::Modern, false) => {
                let refusal = Refusal::new(RefusalCode::UpstreamLoginNeeded, self.needs);
                let hint = format!("open {} in a browser, then try again", self.url);
                return answering.refuse(&refusal.hint(hint));
            }
        };
        answering.settle(&answer, &|_| None);
    }
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
    let server = server_to_connect(dispatch, call)?;
    let callers = server.callers.as_ref()?;
    let answering = call.reply();
    if call.declined {
        decline(&answering, &server.id);
    } else {
        Invitation::new(&callers.accounts, answering.request())?.give(dispatch, call, &answering);
    }
    Some(())
}

/// The server of a call at which its caller may connect an account of its own.
fn server_to_connect(dispatch: &Dispatch, call: &Call) -> Option<Arc<ConfiguredServer>> {
    if call.names != Names::Public {
        return None;
    }
    let delivered = call.delivered.get()?;
    let server = dispatch.server(&delivered.server)?;
    if server.callers.as_ref()?.accounts.site.is_machine() {
        return None;
    }
    let participant = &call.link.participant.id;
    // The account is the proposer's, and guests have none.
    let is_own = delivered
        .proposer
        .as_ref()
        .is_none_or(|proposer| proposer == participant);
    (is_own && !participant.is_guest()).then_some(server)
}

/// Answers a caller whose person has refused to connect an account.
fn decline(answering: &Answering<'_>, server: &ParticipantId) {
    let request = &answering.request().request;
    let why = format!("The person refused to connect an account at {server}. Nothing was done.");
    if request.calls_tool() {
        answering.settle(&in_words(&why, request.payload.form), &|_| None);
    } else {
        answering.refuse(&Refusal::new(RefusalCode::UpstreamLoginNeeded, why));
    }
}

/// The need of a server, as a sentence.
fn needs_of(site: &Site) -> String {
    match site.config.kind {
        AuthorizationKind::Key => format!("{} needs a key of yours.", site.name),
        AuthorizationKind::OAuth
        | AuthorizationKind::None
        | AuthorizationKind::Headers
        | AuthorizationKind::ClientCredentials
        | AuthorizationKind::Exchange => format!("{} needs your permission.", site.name),
    }
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
