//! Connect pages: who are you, do you consent, and what became of it.

use auth::PublicUrl;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::pages::{HtmlPage, escape};
use crate::redirect::is_plain_name;

/// Terms that a person was shown before it consented. The form has it, sealed, so that nothing else
/// is consented to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ConsentTerms {
    pub(super) participant: String,
    /// Mark of the participant then.
    pub(super) mark: String,
    pub(super) server: String,
    pub(super) clients: Vec<String>,
    pub(super) scopes: Vec<String>,
    pub(super) issuer: String,
    /// Origin to which the person is sent.
    pub(super) origin: String,
    /// Label of the key that the person enters here; `None` where the person is sent elsewhere to
    /// sign in.
    pub(super) key_label: Option<String>,
}

/// A form of a page: where it goes, and what seals it.
pub(super) struct ConsentForm<'f> {
    pub(super) url: &'f PublicUrl,
    pub(super) id: &'f str,
    pub(super) sealed: &'f str,
}

impl ConsentForm<'_> {
    fn open(&self) -> String {
        format!(
            "<form method=\"post\" action=\"{}/connect/{}\" autocomplete=\"off\"><input type=\"hidden\" name=\"form\" value=\"{}\">",
            escape(self.url.prefix()),
            escape(self.id),
            escape(self.sealed)
        )
    }
}

/// The page that says why nothing happens.
pub(super) fn problem(status: StatusCode, sentence: &str, hint: &str) -> HtmlPage {
    let body = format!(
        "<h1>Nothing was connected</h1><p>{}</p><p class=\"soft\">{}</p>",
        escape(sentence),
        escape(hint)
    );
    HtmlPage::new(status, "Nothing was connected", body)
}

/// The page for a browser of which nothing is known. It says nothing about the link.
pub(super) fn who_are_you(
    form: &ConsentForm<'_>,
    has_login: bool,
    wrong: Option<&str>,
) -> HtmlPage {
    let status = if wrong.is_some() {
        StatusCode::FORBIDDEN
    } else {
        StatusCode::OK
    };
    let wrong = wrong
        .map(|why| format!("<p class=\"warn\" role=\"alert\">{}</p>", escape(why)))
        .unwrap_or_default();
    let login = match has_login {
        true => " A code of <code>portmoot login code YOUR-NAME</code> will do too.",
        false => "",
    };
    let body = format!(
        "<h1>Who are you?</h1><p>A client of this gateway has made this link. The gateway has to know that it acts for you.</p>{wrong}{open}\
         <label for=\"code\">One-time code</label>\
         <input type=\"text\" id=\"code\" name=\"code\" required autofocus autocomplete=\"one-time-code\" autocapitalize=\"off\" \
         spellcheck=\"false\" aria-describedby=\"hint\"><p class=\"soft\" id=\"hint\">You get one with <code>portmoot servers \
         connect-code</code>, run with your own token.{login} Type neither the \
         token itself nor a code that someone else has given you.</p>\
         <div class=\"row\"><button class=\"main\" type=\"submit\">Go on</button></div></form>",
        open = form.open(),
    );
    HtmlPage::new(status, "Who are you?", body)
}

/// The page for a participant whose link it is not.
pub(super) fn of_another(form: &ConsentForm<'_>, participant: &str) -> HtmlPage {
    let body = format!(
        "<h1>This link is for another participant</h1><p>You are signed in here as <strong>{participant}</strong>, and the link was \
         made for another participant. Nothing was connected.</p><p class=\"soft\">If a link like this was sent to you, the sender may \
         want to use your account: do not go on.</p>{open}<p class=\"soft\">Not {participant}? <button class=\"link\" type=\"submit\" \
         name=\"switch\" value=\"1\">Sign in as another participant</button></p></form>",
        participant = escape(participant),
        open = form.open(),
    );
    HtmlPage::new(
        StatusCode::FORBIDDEN,
        "This link is for another participant",
        body,
    )
}

/// The page on which a participant consents.
pub(super) fn consent(form: &ConsentForm<'_>, shown: &ConsentTerms) -> HtmlPage {
    let list = |texts: &[String], none: &str| match texts {
        [] => none.to_owned(),
        texts => texts
            .iter()
            .map(|one| format!("<code>{}</code>", escape(one)))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let body = format!(
        "<h1>Let the gateway use your account at <q>{server}</q>?</h1>\
         <dl><dt>You are</dt><dd>{participant}</dd><dt>Asked for by</dt><dd>{clients}</dd><dt>Server</dt><dd>{server}</dd>\
         <dt>It may do there</dt><dd>{scopes}</dd><dt>You will be sent to</dt><dd>{to}</dd>\
         <dt>And come back to</dt><dd>{back}</dd></dl>\
         <p class=\"warn\">Clients choose their names themselves. Allow it only if you have just used this server yourself. Afterwards \
         every client that acts as {participant} at this gateway can use the account.</p>{open}\
         <div class=\"row\"><button class=\"main\" type=\"submit\" name=\"decision\" value=\"allow\">Allow</button>\
         <button type=\"submit\" name=\"decision\" value=\"deny\">Deny</button></div></form>",
        server = escape(&shown.server),
        participant = escape(&shown.participant),
        clients = list(&shown.clients, "a client without a name"),
        scopes = list(
            &shown.scopes,
            "what the server gives without being asked for more"
        ),
        to = escape(authority(&shown.origin)),
        back = escape(form.url.authority()),
        open = form.open(),
    );
    HtmlPage::new(StatusCode::OK, "Consent", body).leading_to(source(&shown.origin))
}

/// The page on which a participant enters its key for a server. It is never shown again.
pub(super) fn key(
    form: &ConsentForm<'_>,
    shown: &ConsentTerms,
    label: &str,
    wrong: Option<&str>,
) -> HtmlPage {
    let status = if wrong.is_some() {
        StatusCode::BAD_REQUEST
    } else {
        StatusCode::OK
    };
    let wrong = wrong
        .map(|why| format!("<p class=\"warn\" role=\"alert\">{}</p>", escape(why)))
        .unwrap_or_default();
    let clients = match shown.clients.as_slice() {
        [] => "a client without a name".to_owned(),
        names => names
            .iter()
            .map(|one| format!("<code>{}</code>", escape(one)))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let body = format!(
        "<h1>Give the gateway your key for <q>{server}</q>?</h1>\
         <dl><dt>You are</dt><dd>{participant}</dd><dt>Asked for by</dt><dd>{clients}</dd><dt>Server</dt><dd>{server}</dd></dl>\
         <p class=\"warn\">Clients choose their names themselves. Enter the key only if you have just used this server yourself. Afterwards \
         every client that acts as {participant} at this gateway can use it, and no one is shown it.</p>{wrong}{open}\
         <label for=\"key\">{label}</label>\
         <input type=\"password\" id=\"key\" name=\"key\" required autofocus autocomplete=\"off\" autocapitalize=\"off\" spellcheck=\"false\">\
         <div class=\"row\"><button class=\"main\" type=\"submit\" name=\"decision\" value=\"allow\">Keep it</button>\
         <button type=\"submit\" name=\"decision\" value=\"deny\" formnovalidate>Deny</button></div></form>",
        server = escape(&shown.server),
        participant = escape(&shown.participant),
        label = escape(label),
        open = form.open(),
    );
    HtmlPage::new(status, "Enter a key", body)
}

/// The page at the end.
pub(super) fn connected(server: &str, participant: &str) -> HtmlPage {
    let body = format!(
        "<h1>Connected</h1><p>The gateway can use the account of <strong>{}</strong> at <q>{}</q> now.</p>\
         <p class=\"soft\">You can close this page. The client goes on by itself, or when you call again.</p>",
        escape(participant),
        escape(server)
    );
    HtmlPage::new(StatusCode::OK, "Connected", body)
}

/// The page after a refusal.
pub(super) fn denied(server: &str) -> HtmlPage {
    let body = format!(
        "<h1>Denied</h1><p>Nothing was connected at <q>{}</q>.</p><p class=\"soft\">You can close this page.</p>",
        escape(server)
    );
    HtmlPage::new(StatusCode::OK, "Denied", body)
}

/// The origin of a URL of an authorization server; `None` if it cannot stand in a content security
/// policy.
pub(super) fn origin(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    if url.domain().is_some_and(|name| !is_plain_name(name)) {
        return None;
    }
    let origin = url.origin();
    origin.is_tuple().then(|| origin.ascii_serialization())
}

fn authority(origin: &str) -> &str {
    origin
        .split_once("://")
        .map_or(origin, |(_, authority)| authority)
}

/// An origin as a source of a content security policy, whose grammar has no addresses of IPv6.
fn source(origin: &str) -> String {
    match origin.split_once("://") {
        Some((scheme, authority)) if authority.starts_with('[') => format!("{scheme}:"),
        Some(_) | None => origin.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_others_is_markup_and_a_form_leads_to_one_origin() {
        let evil = "</q><script>alert('1')</script>\" onload=\"x\u{202e}";
        let url = PublicUrl::parse("https://gw.example/a").unwrap();
        let form = ConsentForm {
            url: &url,
            id: "\"><b>",
            sealed: "\"><b>",
        };
        let shown = ConsentTerms {
            participant: evil.to_owned(),
            mark: String::new(),
            server: evil.to_owned(),
            clients: vec![evil.to_owned()],
            scopes: vec![evil.to_owned()],
            issuer: evil.to_owned(),
            origin: "https://auth.example:8443".to_owned(),
            key_label: Some(evil.to_owned()),
        };
        let pages = [
            consent(&form, &shown),
            key(&form, &shown, evil, Some(evil)),
            of_another(&form, evil),
            who_are_you(&form, true, Some(evil)),
            problem(StatusCode::OK, evil, evil),
            connected(evil, evil),
            denied(evil),
        ];
        for page in pages {
            for markup in ["<script", "onload=\"", "<b>", "\u{202e}", "'1'"] {
                assert!(!page.body().contains(markup), "{markup}: {}", page.body());
            }
            assert!(
                page.body().contains("&lt;/q&gt;&lt;script&gt;"),
                "{}",
                page.body()
            );
        }
        let response = consent(&form, &shown).response();
        let policy = response
            .headers()
            .get("content-security-policy")
            .unwrap()
            .to_str()
            .unwrap();
        assert!(
            policy.contains("form-action 'self' https://auth.example:8443; frame-ancestors 'none'"),
            "{policy}"
        );
        assert_eq!(source("http://[::1]:5"), "http:");
        assert_eq!(
            origin("https://u@auth.example/x?y"),
            Some("https://auth.example".to_owned())
        );
        assert_eq!(
            (origin("javascript:alert(1)"), origin("data:,")),
            (None, None)
        );
        assert_eq!(
            (origin("https://*/x"), origin("https://a;sandbox/x")),
            (None, None)
        );
        assert_eq!(
            origin("http://auth_server:8080/x"),
            Some("http://auth_server:8080".to_owned())
        );
    }
}
