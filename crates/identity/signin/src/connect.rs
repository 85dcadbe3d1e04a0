//! Connect pages: a participant gives a server access to an account of its own there (MCP,
//! "Security Best Practices", consent for each client; elicitation by URL, "Phishing").
//!
//! A client gets a link, and anyone may open it. So the page first finds out who the browser
//! belongs to, then asks for consent, and only then begins the sign-in at the server's
//! authorization server, whose answer counts in this browser alone.

mod codes;
mod pages;
mod routes;

use std::sync::Arc;

use auth::{LOCAL_USER, PublicUrl, Sealer};
use axum::http::StatusCode;
use axum::response::Response;
use html::{
    Browser, BrowserSession, BrowserSessions, Cookies, Forms, HtmlPage, SignedInPerson, new_browser,
};
use identity::AccessJournal;
use identity::sign_ins::session_mark;
use identity::{AccessRecord, Consent};
use model::{ParticipantId, Refusal, RefusalCode};
use oauth::ConnectRequest;
use oauth::ServerAccounts;
use oauth::account::{Account, CallerKey};
use oauth::config::AuthorizationKind;
use oauth::logins::{LoginError, SignInRequest};
use oauth::registration::GATEWAY_CALLBACK_PATH;
use oauth::site::UPSTREAM;
use platform::{Limiter, Mutex, random, unix_ms};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use store::audit::{AuditEntry, RecordedVerdict};
use store::recorder::{UNKNOWN_PARTICIPANT, entry};
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

use crate::cookies::CONNECT_SESSION;
use crate::interactive::redirect;
use crate::params::FormParams;
use crate::service::{Home, SignIn, TRIES_PER_MINUTE, bearer};
pub use codes::{CONNECT_CODE_DIGITS, CONNECT_CODE_MS, CONNECT_CODES_MAX, CONNECT_TRIES_MAX};
use codes::{ConnectCodes, Typed};
use pages::{ConsentForm, ConsentTerms};
pub use routes::connect_router;

const FORM: &str = "connect-form";
const CALL_AGAIN: &str = "Call the tool again to get a new link.";
const NO_PAGE: &str = "The page at which people sign in at this server cannot be found now.";
const ASK_OPERATOR: &str = "Try again later, or ask the operator of the gateway: portmoot audit query portmoot/upstream says why.";

/// A one-time code for the connect page.
#[derive(Serialize, ToSchema)]
pub struct ConnectCode {
    /// The participant as which a browser is known with it.
    pub name: String,
    /// The code. Blanks and dashes in it do not count.
    pub code: String,
    /// When it expires, in Unix milliseconds.
    pub expires_ms: u64,
}

/// The connect pages of a gateway.
pub struct Connect {
    home: Arc<dyn Home>,
    access: Arc<AccessJournal>,
    accounts: Arc<ServerAccounts>,
    /// The gateway's own authorization server, where participants may have signed in already.
    sign_in: Option<Arc<SignIn>>,
    /// Seals forms and cookies, with a key of this process: connect requests do not outlive it
    /// either.
    sealer: Sealer,
    codes: Mutex<ConnectCodes>,
    tries: Limiter,
}

/// A browser at a page: the gateway's address there, and the session.
struct At {
    url: PublicUrl,
    session: BrowserSession,
    now_ms: u64,
}

impl Connect {
    /// The pages of a gateway with these accounts.
    #[must_use]
    pub fn new(
        home: Arc<dyn Home>,
        access: Arc<AccessJournal>,
        accounts: Arc<ServerAccounts>,
        sign_in: Option<Arc<SignIn>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            home,
            access,
            accounts,
            sign_in,
            sealer: Sealer::new(&random(), None),
            codes: Mutex::default(),
            tries: Limiter::new(TRIES_PER_MINUTE),
        })
    }

    /// A one-time code with which a browser is known at a connect page as this participant's.
    ///
    /// # Errors
    /// A refusal if too many codes wait to be used.
    pub fn code(&self, participant: &ParticipantId) -> Result<ConnectCode, Refusal> {
        let now_ms = unix_ms();
        let whose = bearer(participant.as_str(), &self.mark(participant.as_str()));
        let code = self.codes.lock().issue(&whose, random(), now_ms);
        let code = code.map_err(|why| {
            Refusal::new(RefusalCode::Overloaded, why.to_string()).hint("try again in some minutes")
        })?;
        let expires_ms = now_ms.saturating_add(CONNECT_CODE_MS);
        Ok(ConnectCode {
            name: participant.to_string(),
            code,
            expires_ms,
        })
    }

    /// The address that authorization servers know; `None` if none could read a document there.
    fn public_url(&self) -> Option<&str> {
        self.accounts
            .services()
            .public_url
            .as_deref()
            .filter(|url| url.starts_with("https://"))
    }

    /// The browser, known or new; `None` if no browser can reach the pages.
    fn at(&self, browser: &Browser) -> Option<At> {
        let url = PublicUrl::parse(&self.accounts.services().browser_url()?.0).ok()?;
        let now_ms = unix_ms();
        let session = self.sessions(&url).find(&browser.cookies(), now_ms);
        Some(At {
            session: session.unwrap_or_else(|| new_browser(random())),
            url,
            now_ms,
        })
    }

    /// Sessions of browsers at the connect pages, which are others than those of signing in.
    fn sessions<'c>(&'c self, url: &PublicUrl) -> BrowserSessions<'c> {
        BrowserSessions::new(Cookies::new(&self.sealer, url), CONNECT_SESSION)
    }

    /// Tokens of forms, each with the terms that the person was shown, if it was shown some.
    fn forms(&self) -> Forms<'_> {
        Forms::new(&self.sealer, FORM)
    }

    /// Whose browser it is, as far as it has shown that: by a code, or by having signed in at the
    /// gateway's own authorization server. While callers need no token, every browser that reaches
    /// the gateway on this machine is the local user's.
    fn who(&self, at: &At, browser: &Browser) -> Option<SignedInPerson> {
        if !self.access.requires_token() {
            if at.url.is_secure() {
                return None;
            }
            return Some(self.person(LOCAL_USER.to_owned(), at.now_ms));
        }
        let person = match &at.session.person {
            Some(person) if self.is_signed_in(person, at.now_ms) => Some(person.clone()),
            Some(_) | None => self.signed_in_at_gateway(browser),
        };
        person.filter(|person| self.knows(&person.name))
    }

    /// Whose browser it is at the gateway's own authorization server.
    fn signed_in_at_gateway(&self, browser: &Browser) -> Option<SignedInPerson> {
        let sign_in = self.sign_in.as_ref()?;
        let now = sign_in.now()?;
        let session = sign_in.sessions(&now).find(&browser.cookies(), now.ms)?;
        let person = session.person?;
        if !sign_in.is_signed_in(&now, &person) {
            return None;
        }
        Some(SignedInPerson {
            mark: self.mark(&person.name),
            ..person
        })
    }

    fn person(&self, name: String, now_ms: u64) -> SignedInPerson {
        let mark = self.mark(&name);
        SignedInPerson::new(name, mark, now_ms)
    }

    /// Mark of a participant now.
    fn mark(&self, name: &str) -> String {
        self.access
            .read(|state| session_mark(&self.home.config(), state, name))
    }

    fn is_signed_in(&self, person: &SignedInPerson, now_ms: u64) -> bool {
        now_ms < person.until_ms
            && person.mark == self.mark(&person.name)
            && self.knows(&person.name)
    }

    /// Whether a participant of this name is known now. The user of a pipe is, who has started this
    /// process.
    fn knows(&self, name: &str) -> bool {
        name == LOCAL_USER || self.home.knows(name)
    }

    /// `GET /connect/{id}`.
    async fn open(&self, id: &str, browser: &Browser) -> Response {
        let Some(at) = self.at(browser) else {
            return crate::routes::absent();
        };
        self.show(id, at, browser, None).await
    }

    /// The page for a link in a browser.
    async fn show(&self, id: &str, mut at: At, browser: &Browser, wrong: Option<&str>) -> Response {
        let Some(request) = self.accounts.connect_request(id) else {
            return void();
        };
        let site = &request.account.site;
        let page = match self.who(&at, browser) {
            None if !self.access.requires_token() => {
                let why =
                    "This gateway has no participants, so it cannot know whose browser this is.";
                pages::problem(
                    StatusCode::FORBIDDEN,
                    why,
                    "Its operator has to add participants with tokens.",
                )
            }
            None => return self.ask_who(id, &at, wrong),
            Some(who) if request.account.participant.as_ref() != Some(&who.name) => {
                let why = "opened a link that was made for another participant";
                self.refused(Some(&who.name), &site.name, why);
                at.session.person = Some(who.clone());
                pages::of_another(&form(&at, id, &self.sealed(&at, id, None)), &who.name)
            }
            Some(who) => {
                at.session.person = Some(who.clone());
                match shown(&request, who).await {
                    Ok(shown) => self.asked(id, &at, &shown, None),
                    Err(why) => {
                        // It may name addresses that only operators know.
                        let who = at
                            .session
                            .person
                            .as_ref()
                            .map(|person| person.name.as_str());
                        self.refused(who, &site.name, &why);
                        pages::problem(StatusCode::BAD_GATEWAY, NO_PAGE, ASK_OPERATOR)
                    }
                }
            }
        };
        self.with_session(page, &at).response()
    }

    /// The page that asks for consent, or for a key.
    fn asked(&self, id: &str, at: &At, shown: &ConsentTerms, wrong: Option<&str>) -> HtmlPage {
        let sealed = self.sealed(at, id, Some(shown));
        let form = form(at, id, &sealed);
        match &shown.key_label {
            Some(label) => pages::key(&form, shown, label, wrong),
            None => pages::consent(&form, shown),
        }
    }

    fn with_session(&self, page: HtmlPage, at: &At) -> HtmlPage {
        let session = self.sessions(&at.url).set(&at.session, random(), at.now_ms);
        page.with_cookies([session])
    }

    /// Sealed text that a form has to bring back from this browser.
    fn sealed(&self, at: &At, id: &str, shown: Option<&ConsentTerms>) -> String {
        self.forms()
            .token(&principal(at, id), &shown, random(), at.now_ms)
    }

    /// `POST /connect/{id}`: a code was typed, a consent given or refused, or another participant
    /// wants to sign in.
    async fn submit(self: &Arc<Self>, id: &str, body: &[u8], browser: &Browser) -> Response {
        let Some(mut at) = self.at(browser) else {
            return crate::routes::absent();
        };
        let params = FormParams::parse(body).unwrap_or_default();
        let sealed = params.get("form").unwrap_or_default();
        let shown: Option<Option<ConsentTerms>> =
            self.forms().open(&principal(&at, id), sealed, at.now_ms);
        let Some(shown) = shown.filter(|_| browser.may_send_form(&at.url)) else {
            self.refused(None, "", "a form of another site or browser");
            let why = "This page is too old, or was not opened in this browser.";
            return pages::problem(StatusCode::FORBIDDEN, why, "Open the link again.").response();
        };
        match (shown, params.get("decision")) {
            (Some(shown), Some("allow")) => {
                self.allowed(id, at, browser, shown, params.get("key"))
                    .await
            }
            (Some(shown), Some(_)) => {
                if self.accounts.connect_request(id).is_some() {
                    self.accounts.services().connects.drop_request(id);
                    self.refused(
                        Some(&shown.participant),
                        &shown.server,
                        "the participant refused",
                    );
                }
                pages::denied(&shown.server).response()
            }
            (_, _) if params.get("switch").is_some() => {
                at.session.person = None;
                self.ask_who(id, &at, None)
            }
            (_, _) => {
                self.typed(id, at, browser, params.get("code").unwrap_or_default())
                    .await
            }
        }
    }

    /// The page that asks for a code.
    fn ask_who(&self, id: &str, at: &At, wrong: Option<&str>) -> Response {
        let has_login = self
            .sign_in
            .as_ref()
            .is_some_and(|sign_in| sign_in.now().is_some());
        let sealed = self.sealed(at, id, None);
        let page = pages::who_are_you(&form(at, id, &sealed), has_login, wrong);
        self.with_session(page, at).response()
    }

    /// The participant that a typed code identifies: one of a connect page, or one for signing in
    /// at the gateway's own authorization server. `meant` is whose account the page is about.
    fn identified(&self, meant: &str, code: &str, now_ms: u64) -> Option<String> {
        let typed = self
            .codes
            .lock()
            .redeem(&bearer(meant, &self.mark(meant)), code, now_ms);
        match typed {
            Typed::Right => Some(meant.to_owned()),
            Typed::OfAnother(other) => {
                let (name, mark) = other.split_once(' ')?;
                // The name may have another bearer since the code was made.
                if mark != self.mark(name) {
                    return None;
                }
                Some(name.to_owned())
            }
            Typed::Wrong => {
                let sign_in = self.sign_in.as_ref()?;
                sign_in.redeem(&sign_in.now()?, code)
            }
        }
    }

    /// A code was typed.
    async fn typed(&self, id: &str, mut at: At, browser: &Browser, code: &str) -> Response {
        let Some(request) = self.accounts.connect_request(id) else {
            return void();
        };
        let Some(meant) = request.account.participant.as_deref() else {
            return void();
        };
        if let Err(wait_ms) = self.tries.act(browser.from, at.now_ms) {
            let why = format!("Too many tries. Wait {} seconds.", wait_ms.div_ceil(1000));
            return self.show(id, at, browser, Some(&why)).await;
        }
        let found = self.identified(meant, code, at.now_ms);
        let Some(found) = found.filter(|name| self.knows(name)) else {
            self.refused(None, &request.account.site.name, "a wrong code at a link");
            let why = "That code is wrong, was used before, or is too old. After 5 wrong ones you need a new code.";
            at.session.person = None;
            return self.ask_who(id, &at, Some(why));
        };
        at.session.person = Some(self.person(found, at.now_ms));
        self.show(id, at, browser, None).await
    }

    /// A participant has consented, and has typed this key if one was asked for.
    async fn allowed(
        self: &Arc<Self>,
        id: &str,
        at: At,
        browser: &Browser,
        shown: ConsentTerms,
        typed: Option<&str>,
    ) -> Response {
        let Some(request) = self.accounts.connect_request(id) else {
            return void();
        };
        let account = Arc::clone(&request.account);
        if !self.is_theirs(&at, browser, &shown, &account) {
            self.refused(
                Some(&shown.participant),
                &shown.server,
                "a consent of another participant",
            );
            let why = "You are signed in as another participant now, or not any more.";
            return pages::problem(StatusCode::FORBIDDEN, why, "Open the link again.").response();
        }
        if shown.key_label.is_some() {
            self.take_key(id, &at, &account, shown, typed.unwrap_or_default())
                .await
        } else {
            self.begin_sign_in(id, &at, &account, &shown).await
        }
    }

    /// Whether a consent is that of the participant whose account it is about.
    fn is_theirs(
        &self,
        at: &At,
        browser: &Browser,
        shown: &ConsentTerms,
        account: &Account,
    ) -> bool {
        // Over plain HTTP only the form says whose browser it is.
        let is_same = !self.sessions(&at.url).keep_persons()
            || self
                .who(at, browser)
                .is_some_and(|who| who.name == shown.participant);
        is_same
            && shown.mark == self.mark(&shown.participant)
            && self.knows(&shown.participant)
            && account.participant.as_ref() == Some(&shown.participant)
    }

    /// Takes the key over that a participant has typed; asks again if it cannot be one.
    async fn take_key(
        self: &Arc<Self>,
        id: &str,
        at: &At,
        account: &Arc<Account>,
        shown: ConsentTerms,
        typed: &str,
    ) -> Response {
        let key = match CallerKey::new(typed) {
            Ok(key) => key,
            Err(why) => {
                let why = format!("{}.", sentence_case(&why.to_string()));
                let page = self.asked(id, at, &shown, Some(&why));
                return self.with_session(page, at).response();
            }
        };
        let connects = &self.accounts.services().connects;
        if !connects.use_up(id, at.now_ms) {
            return void();
        }
        self.entered(account, at, shown, key).await
    }

    /// Begins the sign-in to which a participant has consented: the consent is on disk, then the
    /// browser goes to the authorization server.
    async fn begin_sign_in(
        self: &Arc<Self>,
        id: &str,
        at: &At,
        account: &Arc<Account>,
        shown: &ConsentTerms,
    ) -> Response {
        let services = self.accounts.services();
        let Some((redirect_uri, usage)) = services.callback() else {
            return void();
        };
        if !services.connects.use_up(id, at.now_ms) {
            return void();
        }
        if let Err(response) = self.consented(shown, &redirect_uri).await {
            return response;
        }
        let wish = SignInRequest {
            redirect_uri,
            usage,
            scopes: shown.scopes.clone(),
            by: shown.participant.clone(),
            browser: Some(hash(&at.session.browser)),
        };
        let begun = match self.accounts.logins.begin(account, wish).await {
            Ok(begun) => begun,
            Err(why) => {
                self.refused(Some(&shown.participant), &shown.server, &why.to_string());
                return pages::problem(StatusCode::BAD_GATEWAY, &sentence(&why), CALL_AGAIN)
                    .response();
            }
        };
        // Nothing but what was shown.
        let is_shown = begun.issuer == shown.issuer
            && begun.scopes == shown.scopes
            && pages::origin(&begun.url).as_ref() == Some(&shown.origin);
        if !is_shown {
            let why = "The server has changed where people sign in since the page was shown.";
            return pages::problem(StatusCode::CONFLICT, why, CALL_AGAIN).response();
        }
        let cookie = self.sessions(&at.url).set(&at.session, random(), at.now_ms);
        redirect(&begun.url, &[cookie])
    }

    /// Takes a key over. It is kept before the page says so.
    async fn entered(
        self: &Arc<Self>,
        account: &Arc<Account>,
        at: &At,
        shown: ConsentTerms,
        key: CallerKey,
    ) -> Response {
        if let Err(response) = self.consented(&shown, "").await {
            return response;
        }
        match account.enter_key(key, &shown.participant).await {
            Ok(()) => pages::connected(&shown.server, &shown.participant)
                .with_cookies(self.sessions(&at.url).leave())
                .response(),
            Err(why) => {
                self.refused(Some(&shown.participant), &shown.server, &why.to_string());
                pages::problem(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "The key could not be kept.",
                    ASK_OPERATOR,
                )
                .response()
            }
        }
    }

    /// Has a consent written down.
    async fn consented(
        self: &Arc<Self>,
        shown: &ConsentTerms,
        redirect_uri: &str,
    ) -> Result<(), Response> {
        let me = Arc::clone(self);
        let given = shown.clone();
        let uri = redirect_uri.to_owned();
        let kept = spawn_blocking(move || me.keep(&given, &uri))
            .await
            .unwrap_or_else(|_| {
                Err(Refusal::new(
                    RefusalCode::LogUnavailable,
                    "the gateway stops",
                ))
            });
        kept.map_err(|refusal| {
            pages::problem(
                StatusCode::SERVICE_UNAVAILABLE,
                &refusal.message,
                CALL_AGAIN,
            )
            .response()
        })
    }

    /// Writes a consent down, for each client that asked.
    fn keep(&self, shown: &ConsentTerms, redirect_uri: &str) -> Result<(), Refusal> {
        let ConsentTerms {
            participant,
            server,
            clients,
            scopes,
            ..
        } = shown;
        let id = ParticipantId::new(participant)
            .map_err(|error| Refusal::new(RefusalCode::Malformed, error.to_string()))?;
        let permit = self.home.audit().reserve_of(&id)?;
        let mut records = Vec::with_capacity(clients.len());
        for name in clients {
            records.push(AccessRecord::ConsentGiven(Consent {
                participant: participant.clone(),
                client: identity::client_digest(&format!("{server} {name}")),
                client_name: name.clone(),
                redirect_uri: redirect_uri.to_owned(),
                resource: server.clone(),
                scopes: scopes.clone(),
                // A connect page asks each time.
                remembered: false,
                at_ms: unix_ms(),
            }));
        }
        if self.access.is_kept() {
            self.access.change(|journal| {
                journal
                    .append(&records)
                    .map_err(|error| store::not_written(&error))
            })?;
        }
        let to_what = match &shown.key_label {
            Some(_) => "enter its key".to_owned(),
            None => format!("the scopes `{}`", scopes.join(" ")),
        };
        let what = format!("consented to {to_what} for {}", clients.join(", "));
        let to = [server.as_str()];
        permit.write(&AuditEntry {
            to: &to,
            why: Some(&what),
            ..entry(None, participant, UPSTREAM, RecordedVerdict::Admitted)
        });
        Ok(())
    }

    /// `GET /oauth/callback`: the authorization server sends the browser back.
    async fn callback(&self, query: &[u8], browser: &Browser) -> Response {
        let Some(at) = self.at(browser) else {
            return crate::routes::absent();
        };
        let sessions = self.sessions(&at.url);
        let person = at
            .session
            .person
            .clone()
            .filter(|person| self.is_signed_in(person, at.now_ms));
        let participant = person.map(|person| person.name);
        // Over plain HTTP the sign-in itself says who began it, in this browser.
        let is_known = if sessions.keep_persons() {
            participant.is_some()
        } else {
            sessions.find(&browser.cookies(), at.now_ms).is_some()
        };
        if !is_known {
            self.refused(
                None,
                "",
                "an authorization response in a browser that began no sign-in",
            );
            let why = "No sign-in was begun in this browser.";
            return pages::problem(StatusCode::FORBIDDEN, why, CALL_AGAIN).response();
        };
        let callback = at.url.at(&format!(
            "{GATEWAY_CALLBACK_PATH}?{}",
            String::from_utf8_lossy(query)
        ));
        let browser = Some(hash(&at.session.browser));
        let completed = self
            .accounts
            .logins
            .complete(&callback, participant.as_deref(), browser)
            .await;
        match completed {
            Ok(account) => {
                let whose = account
                    .participant
                    .as_deref()
                    .or(participant.as_deref())
                    .unwrap_or_default();
                pages::connected(&account.site.name, whose)
                    .with_cookies(sessions.leave())
                    .response()
            }
            Err(why) => {
                self.refused(participant.as_deref(), "", &why.to_string());
                pages::problem(StatusCode::BAD_REQUEST, &sentence(&why), CALL_AGAIN).response()
            }
        }
    }

    /// Records that something was refused. Of a flood, only the first are written.
    fn refused(&self, participant: Option<&str>, server: &str, why: &str) {
        let permit = self.home.audit().reserve_or_count();
        let to: Vec<&str> = Some(server)
            .filter(|server| !server.is_empty())
            .into_iter()
            .collect();
        let from = participant.unwrap_or(UNKNOWN_PARTICIPANT);
        let refused = entry(None, from, UPSTREAM, RecordedVerdict::Refused);
        self.home.audit().write_counted(
            permit,
            &AuditEntry {
                to: &to,
                why: Some(why),
                ..refused
            },
        );
    }
}

/// Consent terms of a request for a person, by the server's metadata of now.
async fn shown(request: &ConnectRequest, who: SignedInPerson) -> Result<ConsentTerms, String> {
    let account = &request.account;
    let site = &request.account.site;
    if site.config.kind == AuthorizationKind::Key {
        return Ok(ConsentTerms {
            participant: who.name,
            mark: who.mark,
            server: site.name.clone(),
            clients: request.clients.clone(),
            scopes: Vec::new(),
            issuer: String::new(),
            origin: String::new(),
            key_label: Some(site.config.key_label.clone()),
        });
    }
    let found = match site.found() {
        Some(found) => found,
        None => site
            .discover(None)
            .await
            .map_err(|trouble| format!("{trouble}."))?,
    };
    let endpoint = found
        .server
        .authorization_endpoint
        .as_deref()
        .and_then(pages::origin);
    let origin = endpoint.ok_or("The server's authorization server has no page to sign in at.")?;
    Ok(ConsentTerms {
        participant: who.name,
        mark: who.mark,
        server: site.name.clone(),
        clients: request.clients.clone(),
        scopes: account.scopes_with(&found, request.scopes.clone()),
        issuer: found.server.issuer.clone(),
        origin,
        key_label: None,
    })
}

/// These words as a sentence of a page.
fn sentence_case(words: &str) -> String {
    let mut letters = words.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// Sentence about an error for a person: no address of a server, which operators find in the audit
/// log.
fn sentence(error: &LoginError) -> String {
    match error {
        LoginError::Trouble(_) | LoginError::Account(_) | LoginError::NoLogins(_) => {
            "The sign-in did not succeed: the server or its authorization server did not do its part."
                .to_owned()
        }
        LoginError::TooMany
        | LoginError::Unknown
        | LoginError::Replaced
        | LoginError::Unreadable
        | LoginError::MixUp
        | LoginError::Denied(_)
        | LoginError::NotYet { .. } => format!("{error}."),
    }
}

/// The answer at a link that is of no use.
fn void() -> Response {
    let why = "This link was used before, is older than 10 minutes, or the gateway does not know it any more.";
    pages::problem(StatusCode::NOT_FOUND, why, CALL_AGAIN).response()
}

/// A form is good in one browser, for one link.
fn principal(at: &At, id: &str) -> String {
    format!("{} {id}", at.session.browser)
}

fn hash(browser: &str) -> [u8; 32] {
    Sha256::digest(browser.as_bytes()).into()
}

fn form<'f>(at: &'f At, id: &'f str, sealed: &'f str) -> ConsentForm<'f> {
    ConsentForm {
        url: &at.url,
        id,
        sealed,
    }
}
