//! Acts of a person at the pages: signing in, consenting, or not.

use std::sync::Arc;

use auth::TOKEN_PREFIX;
use axum::http::StatusCode;
use axum::response::Response;
use html::{
    Browser, BrowserSession, BrowserSessions, Cookies, Forms, HtmlPage, SignedInPerson,
    new_browser, see_other,
};
use identity::{AccessRecord, Consent};
use model::ParticipantId;
use platform::random;
use store::audit::RecordedVerdict;

use crate::codes::CodeConsent;
use crate::cookies::{SIGN_IN_SESSION, mark, remember, remembers};
use crate::pages::{self, AskedPerson, PageForm};
use crate::params::FormParams;
use crate::redirect::{Destination, destination};
use crate::request::{AuthRequest, RequestFault, may_redirect_error, read};
use crate::service::{Moment, Now, SignIn};

const REQUEST: &str = "login-request";
const WHO: &str = "login-consent";
const START_AGAIN: &str = "Go back to the client and start again.";

/// A redirect of a browser, by `GET`.
pub(crate) fn redirect(location: &str, cookies: &[String]) -> Response {
    see_other(location, cookies)
        .unwrap_or_else(|| stop(StatusCode::BAD_REQUEST, "The way back cannot be written."))
}

fn stop(status: StatusCode, sentence: &str) -> Response {
    pages::problem(status, sentence, START_AGAIN).response()
}

/// Whether a request wants its person asked who it is, although the browser is known.
fn asks_anew(params: &FormParams) -> bool {
    let prompt = params.get("prompt").unwrap_or_default();
    prompt.split(' ').any(|one| one == "login")
}

/// Purpose for which the answer to a form is sealed: the browser, and this very form.
fn of_form(session: &BrowserSession, sealed: &str) -> String {
    format!("{} {}", session.browser, identity::client_digest(sealed))
}

/// A consent that a person has just given.
struct GivenConsent {
    /// The cookie by which the browser remembers it, if it is to be remembered.
    remembered: Option<String>,
}

/// A request with where it leads, in a browser.
struct Open<'o> {
    now: &'o Now,
    request: AuthRequest,
    destination: Destination,
    session: BrowserSession,
}

impl SignIn {
    fn cookies<'c>(&'c self, now: &Now) -> Cookies<'c> {
        Cookies::new(&self.pages, &now.public_url)
    }

    /// Sessions of browsers at the pages of signing in.
    pub(crate) fn sessions<'c>(&'c self, now: &Now) -> BrowserSessions<'c> {
        BrowserSessions::new(self.cookies(now), SIGN_IN_SESSION)
    }

    /// Tokens of forms, each with the request that it is about.
    fn requests(&self) -> Forms<'_> {
        Forms::new(&self.pages, REQUEST)
    }

    /// Tokens of the forms of a consent, each with the person that is asked.
    fn asked_persons(&self) -> Forms<'_> {
        Forms::new(&self.pages, WHO)
    }

    /// `GET /oauth/authorize`.
    pub(crate) async fn authorize(
        self: &Arc<Self>,
        now: &Now,
        query: &[u8],
        browser: &Browser,
    ) -> Response {
        let Some(params) = FormParams::parse(query) else {
            return stop(StatusCode::BAD_REQUEST, "The request is too long.");
        };
        let Some(client_id) = params.get("client_id") else {
            return stop(StatusCode::BAD_REQUEST, "The request names no client.");
        };
        let client = match self.client(client_id, now, browser.from).await {
            Ok(client) => client,
            Err(why) => {
                self.record_refusal(
                    now,
                    None,
                    None,
                    &format!("invalid_client: {}", why.for_operators()),
                );
                let hint = "The client has to register anew: remove the gateway from it, and add it again.";
                let why = format!("{why}.");
                return pages::problem(StatusCode::BAD_REQUEST, &why, hint).response();
            }
        };
        let issuer = now.public_url.as_str();
        let request = match now.with_terms(|terms| read(&params, &client, terms)) {
            Ok(request) => request,
            Err(RequestFault::Page(why)) => {
                self.record_refusal(
                    now,
                    None,
                    Some(client.shown()),
                    "invalid_request: redirect_uri",
                );
                return stop(StatusCode::BAD_REQUEST, &why);
            }
            Err(RequestFault::Client(fault)) => {
                self.record_refusal(
                    now,
                    None,
                    Some(client.shown()),
                    &format!("{}: {}", fault.code, fault.description),
                );
                let Ok(to) = destination(&fault.redirect_uri, &now.login.private_redirects) else {
                    return stop(StatusCode::BAD_REQUEST, fault.description);
                };
                let location = fault.location(issuer);
                if may_redirect_error(client.standing, to.is_local()) {
                    return redirect(&location, &self.sessions(now).leave());
                }
                return pages::problem_with_return(fault.description, &to, &location).response();
            }
        };
        let Ok(to) = destination(&request.redirect_uri, &now.login.private_redirects) else {
            return stop(
                StatusCode::BAD_REQUEST,
                "The client’s address is not accepted here any more.",
            );
        };
        let session = self.sessions(now).find(&browser.cookies(), now.ms);
        let mut session = session.unwrap_or_else(|| new_browser(random()));
        if asks_anew(&params) {
            session.person = None;
        }
        let open = Open {
            now,
            request,
            destination: to,
            session,
        };
        if let Some(person) = open.session.person.clone()
            && self.is_signed_in(now, &person)
            && self.is_remembered(&open, &person.name, browser)
        {
            return self.approve(open, person, None).await;
        }
        self.show(open, None)
    }

    /// Whether a participant has consented before, in this browser, and no other site has opened
    /// the page. Programs on the person's computer are always asked about: another one could take
    /// the place of the one that was meant.
    fn is_remembered(&self, open: &Open<'_>, participant: &str, browser: &Browser) -> bool {
        let Open {
            now,
            request,
            destination,
            ..
        } = open;
        if destination.is_local() || !browser.is_same_site() {
            return false;
        }
        let mark = mark(participant, &request.client_id, &request.redirect_uri);
        if !remembers(self.cookies(now), &browser.cookies(), &mark, now.ms) {
            return false;
        }
        let digest = identity::client_digest(&request.client_id);
        self.access.read(|state| {
            state.consents().any(|known| {
                known.remembered
                    && known.participant == participant
                    && known.client == digest
                    && known.redirect_uri == request.redirect_uri
                    && known.resource == request.resource
                    && request
                        .scopes
                        .iter()
                        .all(|scope| known.scopes.contains(scope))
            })
        })
    }

    /// The next page: consent, or signing in first.
    fn show(&self, open: Open<'_>, wrong: Option<&str>) -> Response {
        let Open {
            now,
            request,
            destination,
            mut session,
        } = open;
        // One who is not signed in any more signs in again.
        session.person = session
            .person
            .filter(|person| self.is_signed_in(now, person));
        let sealed = self
            .requests()
            .token(&session.browser, &request, random(), now.ms);
        let form = PageForm {
            prefix: now.public_url.prefix(),
            request: &sealed,
        };
        let sessions = self.sessions(now);
        let page: HtmlPage = match &session.person {
            Some(person) => {
                let holder = of_form(&session, &sealed);
                let asked = AskedPerson {
                    name: &person.name,
                    sealed: &self
                        .asked_persons()
                        .token(&holder, person, random(), now.ms),
                };
                let remembers = sessions.keep_persons() && !destination.is_local();
                pages::consent(&request, &destination, &form, &asked, remembers)
            }
            None => pages::sign_in(&request, &destination, &form, now.login.paste_tokens, wrong),
        };
        page.with_cookies([sessions.set(&session, random(), now.ms)])
            .response()
    }

    /// The request of a form, if the browser has the form from this gateway.
    fn opened<'o>(
        &self,
        now: &'o Now,
        params: &FormParams,
        browser: &Browser,
    ) -> Result<Open<'o>, Box<Response>> {
        self.read_form(now, params, browser).map_err(|why| {
            self.record_refusal(now, None, None, why);
            Box::new(stop(
                StatusCode::FORBIDDEN,
                "This page is too old, or was not opened in this browser.",
            ))
        })
    }

    /// The request of a form; or why it is refused, for the audit log.
    fn read_form<'o>(
        &self,
        now: &'o Now,
        params: &FormParams,
        browser: &Browser,
    ) -> Result<Open<'o>, &'static str> {
        if !browser.may_send_form(&now.public_url) {
            return Err("invalid_request: a form of another site");
        }
        let Some(session) = self.sessions(now).find(&browser.cookies(), now.ms) else {
            return Err("invalid_request: a form without its cookie");
        };
        let sealed = params.get("request").unwrap_or_default();
        let request: Option<AuthRequest> = self.requests().open(&session.browser, sealed, now.ms);
        let Some(request) = request else {
            return Err("invalid_request: a form of another browser");
        };
        // Anew: the configuration may have changed since the page was shown.
        let destination = destination(&request.redirect_uri, &now.login.private_redirects)
            .map_err(|_| "invalid_request: redirect_uri")?;
        Ok(Open {
            now,
            request,
            destination,
            session,
        })
    }

    /// `POST /oauth/authorize`: a one-time code was typed, or another participant wants to sign in.
    pub(crate) async fn sign_in(
        self: &Arc<Self>,
        now: &Now,
        body: &[u8],
        browser: &Browser,
    ) -> Response {
        let params = FormParams::parse(body).unwrap_or_default();
        let mut open = match self.opened(now, &params, browser) {
            Ok(open) => open,
            Err(response) => return *response,
        };
        if params.get("switch").is_some() {
            open.session.person = None;
            return self.show(open, None);
        }
        // A form that is sent twice: the code was used the first time.
        if let Some(person) = &open.session.person
            && self.is_signed_in(now, person)
        {
            return self.show(open, None);
        }
        if let Err(wait_ms) = self.tries.act(browser.from, now.ms) {
            let why = format!("Too many tries. Wait {} seconds.", wait_ms.div_ceil(1000));
            return self.show(open, Some(&why));
        }
        let typed = params.get("code").unwrap_or_default().trim();
        let Some(participant) = self.identified(now, typed) else {
            self.record_refusal(
                now,
                None,
                Some(&open.request.client_name),
                "access_denied: a wrong code",
            );
            return self.show(
                open,
                Some("That code is wrong, was used before, or is too old."),
            );
        };
        open.session.person = Some(self.person(now, participant));
        self.show(open, None)
    }

    /// The participant that a typed text identifies: an issued token, where these may be pasted, or
    /// a one-time code.
    fn identified(&self, now: &Now, typed: &str) -> Option<String> {
        let mut name = None;
        if now.login.paste_tokens && typed.starts_with(TOKEN_PREFIX) {
            name = self.home.bearer(typed).map(|bearer| bearer.id.to_string());
        }
        if name.is_none() {
            name = self.redeem(now, typed);
        }
        name.filter(|name| self.subject(now.config(), name, now.ms).is_some())
    }

    /// `POST /oauth/consent`.
    pub(crate) async fn consent(
        self: &Arc<Self>,
        now: &Now,
        body: &[u8],
        browser: &Browser,
    ) -> Response {
        let params = FormParams::parse(body).unwrap_or_default();
        let open = match self.opened(now, &params, browser) {
            Ok(open) => open,
            Err(response) => return *response,
        };
        // The participant that was asked must be the one that is signed in now. Over plain HTTP
        // only this form says who that is.
        let of_form = of_form(&open.session, params.get("request").unwrap_or_default());
        let sealed = params.get("who").unwrap_or_default();
        let who: Option<SignedInPerson> = self.asked_persons().open(&of_form, sealed, now.ms);
        let who = who.filter(|who| {
            let is_same = match &open.session.person {
                _ if !self.sessions(now).keep_persons() => true,
                Some(person) => person.name == who.name,
                None => false,
            };
            is_same && self.is_signed_in(now, who)
        });
        let Some(who) = who else {
            self.record_refusal(
                now,
                None,
                Some(&open.request.client_name),
                "invalid_request: another participant",
            );
            return stop(
                StatusCode::FORBIDDEN,
                "You are signed in as another participant now, or not any more.",
            );
        };
        if params.get("decision") != Some("allow") {
            let why = "access_denied: the participant refused";
            self.record_refusal(now, Some(&who.name), Some(&open.request.client_name), why);
            let error = ("access_denied", "the person did not allow it");
            let location = open.request.error_location(now.public_url.as_str(), error);
            return redirect(&location, &self.sessions(now).leave());
        }
        let can_remember = self.sessions(now).keep_persons() && !open.destination.is_local();
        let mut remembered = None;
        if can_remember && params.get("remember").is_some() {
            let mark = mark(
                &who.name,
                &open.request.client_id,
                &open.request.redirect_uri,
            );
            remembered = Some(remember(
                self.cookies(now),
                &browser.cookies(),
                mark,
                random(),
                now.ms,
            ));
        }
        self.approve(open, who, Some(GivenConsent { remembered }))
            .await
    }

    /// Sends the browser back with a code. A consent that was just given is on disk before.
    async fn approve(
        self: &Arc<Self>,
        open: Open<'_>,
        person: SignedInPerson,
        given: Option<GivenConsent>,
    ) -> Response {
        let Open { now, request, .. } = open;
        let is_new = given.is_some();
        let cookie = given.and_then(|given| given.remembered);
        let is_remembered = cookie.is_some();
        let mark = self.mark(now, &person.name);
        let grant = CodeConsent {
            request: request.clone(),
            asked_ms: person.since_ms(),
            participant: person.name,
            mark,
        };
        let at = now.moment();
        let code = self
            .blocking(move |me| me.consented(grant, is_new, is_remembered, at))
            .await
            .flatten();
        let issuer = now.public_url.as_str();
        let mut cookies = self.sessions(now).leave();
        cookies.extend(cookie);
        match code {
            Some(code) => redirect(&request.code_location(&code, issuer), &cookies),
            None => {
                let error = (
                    "temporarily_unavailable",
                    "the gateway cannot write the consent down now",
                );
                redirect(&request.error_location(issuer, error), &cookies)
            }
        }
    }

    /// Writes a consent down, and makes its code; `None` if it cannot be written or recorded.
    fn consented(
        &self,
        grant: CodeConsent,
        is_new: bool,
        remembered: bool,
        at: Moment,
    ) -> Option<String> {
        let CodeConsent {
            request,
            participant,
            ..
        } = &grant;
        let id = ParticipantId::new(participant).ok()?;
        let permit = self.home.audit().reserve_of(&id).ok()?;
        let permit = permit.from_address(at.from);
        if is_new {
            let consent = Consent {
                participant: participant.clone(),
                client: identity::client_digest(&request.client_id),
                client_name: request.client_name.clone(),
                redirect_uri: request.redirect_uri.clone(),
                resource: request.resource.clone(),
                scopes: request.scopes.clone(),
                remembered,
                at_ms: at.ms,
            };
            let written = self.access.change(|journal| {
                journal
                    .append(&[AccessRecord::ConsentGiven(consent)])
                    .map_err(|error| store::not_written(&error))
            });
            written.ok()?;
        }
        let what = if is_new {
            "consented"
        } else {
            "consented before"
        };
        Self::record(
            permit,
            participant,
            &request.client_name,
            RecordedVerdict::Admitted,
            what,
        );
        Some(self.codes.lock().issue(grant, &random(), at.ms))
    }
}
