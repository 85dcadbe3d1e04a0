//! Connect pages: who are you, do you consent, and what became of it.

use auth::PublicUrl;
use axum::http::StatusCode;
use html::{HtmlPage, parts};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use url::Url;

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
    /// The form with this content.
    fn with(&self, content: &Markup) -> Markup {
        html! {
            form method="post" action={ (self.url.prefix()) "/connect/" (self.id) } autocomplete="off" {
                (parts::hidden("form", self.sealed))
                (content)
            }
        }
    }
}

/// The page that says why nothing happens.
pub(super) fn problem(status: StatusCode, sentence: &str, hint: &str) -> HtmlPage {
    let content = html! {
        h1 { "Nothing was connected" }
        p { (sentence) }
        p class="soft" { (hint) }
    };
    HtmlPage::new(status, "Nothing was connected", &content)
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
    let hint = html! {
        "You get one with " code { "portmoot servers connect-code" } ", run with your own token."
        @if has_login {
            " A code of " code { "portmoot login code YOUR-NAME" } " will do too."
        }
        " Type neither the token itself nor a code that someone else has given you."
    };
    let fields = html! {
        (parts::code_field("One-time code", &hint))
        (parts::send("Go on"))
    };
    let content = html! {
        h1 { "Who are you?" }
        p {
            "A client of this gateway has made this link. The gateway has to know that it acts for you."
        }
        (parts::alert(wrong))
        (form.with(&fields))
    };
    HtmlPage::new(status, "Who are you?", &content)
}

/// The page for a participant whose link it is not.
pub(super) fn of_another(form: &ConsentForm<'_>, participant: &str) -> HtmlPage {
    let content = html! {
        h1 { "This link is for another participant" }
        p {
            "You are signed in here as " strong { (participant) }
            ", and the link was made for another participant. Nothing was connected."
        }
        p class="soft" {
            "If a link like this was sent to you, the sender may want to use your account: do not go on."
        }
        (form.with(&parts::switch(participant)))
    };
    HtmlPage::new(
        StatusCode::FORBIDDEN,
        "This link is for another participant",
        &content,
    )
}

/// Who asks for what: the first rows of a consent.
fn asked(shown: &ConsentTerms) -> Markup {
    html! {
        (parts::pair("You are", &html! { (shown.participant) }))
        (parts::pair("Asked for by", &parts::names(&shown.clients, "a client without a name")))
        (parts::pair("Server", &html! { (shown.server) }))
    }
}

/// The page on which a participant consents.
pub(super) fn consent(form: &ConsentForm<'_>, shown: &ConsentTerms) -> HtmlPage {
    let scopes = parts::names(
        &shown.scopes,
        "what the server gives without being asked for more",
    );
    let content = html! {
        h1 { "Let the gateway use your account at " q { (shown.server) } "?" }
        dl {
            (asked(shown))
            (parts::pair("It may do there", &scopes))
            (parts::pair("You will be sent to", &html! { (authority(&shown.origin)) }))
            (parts::pair("And come back to", &html! { (form.url.authority()) }))
        }
        p class="warn" {
            "Clients choose their names themselves. Allow it only if you have just used this server yourself. "
            "Afterwards every client that acts as " (shown.participant)
            " at this gateway can use the account."
        }
        (form.with(&parts::decide("Allow", "Deny")))
    };
    HtmlPage::new(StatusCode::OK, "Consent", &content).leading_to(source(&shown.origin))
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
    let fields = html! {
        label for="key" { (label) }
        input type="password" id="key" name="key" required autofocus autocomplete="off"
            autocapitalize="off" spellcheck="false";
        (parts::decide("Keep it", "Deny"))
    };
    let content = html! {
        h1 { "Give the gateway your key for " q { (shown.server) } "?" }
        dl { (asked(shown)) }
        p class="warn" {
            "Clients choose their names themselves. Enter the key only if you have just used this server yourself. "
            "Afterwards every client that acts as " (shown.participant)
            " at this gateway can use it, and no one is shown it."
        }
        (parts::alert(wrong))
        (form.with(&fields))
    };
    HtmlPage::new(status, "Enter a key", &content)
}

/// The page at the end.
pub(super) fn connected(server: &str, participant: &str) -> HtmlPage {
    let content = html! {
        h1 { "Connected" }
        p {
            "The gateway can use the account of " strong { (participant) } " at " q { (server) } " now."
        }
        p class="soft" {
            "You can close this page. The client goes on by itself, or when you call again."
        }
    };
    HtmlPage::new(StatusCode::OK, "Connected", &content)
}

/// The page after a refusal.
pub(super) fn denied(server: &str) -> HtmlPage {
    let content = html! {
        h1 { "Denied" }
        p { "Nothing was connected at " q { (server) } "." }
        p class="soft" { "You can close this page." }
    };
    HtmlPage::new(StatusCode::OK, "Denied", &content)
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
    use proptest::prelude::*;

    use super::*;
    use crate::rendered::{assert_in_place, hostile_text};

    /// All connect pages, with a text of others at every place that has one.
    fn pages(text: &str) -> Vec<HtmlPage> {
        let url = PublicUrl::parse("https://gw.example/a").unwrap();
        let form = ConsentForm {
            url: &url,
            id: text,
            sealed: text,
        };
        let shown = ConsentTerms {
            participant: text.to_owned(),
            mark: String::new(),
            server: text.to_owned(),
            clients: vec![text.to_owned(), text.to_owned()],
            scopes: vec![text.to_owned()],
            issuer: text.to_owned(),
            origin: "https://auth.example:8443".to_owned(),
            key_label: Some(text.to_owned()),
        };
        vec![
            consent(&form, &shown),
            key(&form, &shown, text, Some(text)),
            of_another(&form, text),
            who_are_you(&form, true, Some(text)),
            problem(StatusCode::OK, text, text),
            connected(text, text),
            denied(text),
        ]
    }

    proptest! {
        #[test]
        fn no_text_of_others_leaves_its_place(text in hostile_text()) {
            assert_in_place(pages, &text);
        }
    }

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
            for markup in ["<script", "onload=\"", "<b>", "\u{202e}"] {
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
