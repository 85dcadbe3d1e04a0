//! Pages of signing in.

use axum::http::StatusCode;
use html::{HtmlPage, parts};
use maud::{Markup, html};

use crate::client::ClientTrust;
use crate::redirect::Destination;
use crate::request::AuthRequest;

/// A page that says why nothing happens.
pub(crate) fn problem(status: StatusCode, sentence: &str, hint: &str) -> HtmlPage {
    let content = html! {
        h1 { "This sign-in cannot go on" }
        p { (sentence) }
        p class="soft" { (hint) }
    };
    HtmlPage::new(status, "Sign-in stopped", &content)
}

/// A page with an error that goes to the client only when the person follows the link: the gateway
/// is no open redirector.
pub(crate) fn problem_with_return(
    sentence: &str,
    destination: &Destination,
    location: &str,
) -> HtmlPage {
    let content = html! {
        h1 { "This sign-in cannot go on" }
        p { "The client’s request is wrong: " (sentence) "." }
        p { a href=(location) rel="noreferrer" { "Go back to " (destination.shown()) } }
    };
    HtmlPage::new(StatusCode::BAD_REQUEST, "Sign-in stopped", &content)
}

/// Parts of a form beside the text that the person types.
pub(crate) struct PageForm<'f> {
    /// The path of the gateway's endpoints, before `/oauth`.
    pub(crate) prefix: &'f str,
    /// The sealed request.
    pub(crate) request: &'f str,
}

impl PageForm<'_> {
    /// Path of an endpoint.
    fn action(&self, endpoint: &str) -> String {
        format!("{}/oauth/{endpoint}", self.prefix)
    }
}

/// The page on which a participant signs in.
pub(crate) fn sign_in(
    request: &AuthRequest,
    destination: &Destination,
    form: &PageForm<'_>,
    paste_tokens: bool,
    wrong: Option<&str>,
) -> HtmlPage {
    let label = if paste_tokens {
        "One-time code, or your token"
    } else {
        "One-time code"
    };
    let login_code = html! { code { "portmoot login code YOUR-NAME" } };
    let hint = html! {
        @if paste_tokens {
            "You get a code with " (login_code) ", or from the operator. A token is used once, here."
        } @else {
            "You get one with " (login_code) ", or from the operator."
        }
    };
    let content = html! {
        h1 { "Sign in to the gateway" }
        p { strong { (request.client_name) } " wants to connect for you." }
        (parts::alert(wrong))
        form method="post" action=(form.action("authorize")) autocomplete="off" {
            (parts::hidden("request", form.request))
            (parts::code_field(label, &hint))
            (parts::send("Sign in"))
        }
        (about(request, destination))
    };
    let status = if wrong.is_none() {
        StatusCode::OK
    } else {
        StatusCode::FORBIDDEN
    };
    HtmlPage::new(status, "Sign in", &content).leading_to(destination.form_action())
}

/// The participant that is asked for its consent.
pub(crate) struct AskedPerson<'p> {
    /// Name of the participant.
    pub(crate) name: &'p str,
    /// The sealed person, which the form brings back.
    pub(crate) sealed: &'p str,
}

/// The page on which a participant consents. `remembers` is whether it can be spared the question
/// the next time.
pub(crate) fn consent(
    request: &AuthRequest,
    destination: &Destination,
    form: &PageForm<'_>,
    person: &AskedPerson<'_>,
    remembers: bool,
) -> HtmlPage {
    let scopes = parts::names(&request.scopes, "everything that you may do");
    let content = html! {
        h1 { "Let " q { (request.client_name) } " act as " strong { (person.name) } "?" }
        (about(request, destination))
        dl {
            (parts::pair("At", &html! { (request.resource) }))
            (parts::pair("It may do", &scopes))
        }
        form method="post" action=(form.action("consent")) {
            (parts::hidden("request", form.request))
            (parts::hidden("who", person.sealed))
            @if remembers {
                label class="small" {
                    input type="checkbox" name="remember" value="1";
                    " Do not ask again for this client in this browser"
                }
            }
            (parts::decide("Allow", "Deny"))
        }
        form method="post" action=(form.action("authorize")) {
            (parts::hidden("request", form.request))
            (parts::switch(person.name))
        }
    };
    HtmlPage::new(StatusCode::OK, "Consent", &content).leading_to(destination.form_action())
}

/// The gateway's trust in a client, as a sentence.
struct Trust {
    sentence: &'static str,
    is_warning: bool,
}

fn trust(standing: ClientTrust) -> Trust {
    match standing {
        ClientTrust::Configured => Trust {
            sentence: "The operator of this gateway has registered this client.",
            is_warning: false,
        },
        ClientTrust::Verified => Trust {
            sentence: "The operator of this gateway trusts the publisher of this client.",
            is_warning: false,
        },
        ClientTrust::Document => Trust {
            sentence: "The client describes itself, and its publisher is not among those that the operator trusts. \
                Allow it only if you have just started it yourself.",
            is_warning: true,
        },
        ClientTrust::Registered => Trust {
            sentence: "The client has chosen its name itself, and the name is not verified. \
                Allow it only if you have just started it yourself.",
            is_warning: true,
        },
    }
}

/// Text about the client that asks, the trust in it, and the address to which the answer goes.
fn about(request: &AuthRequest, destination: &Destination) -> Markup {
    let Trust {
        sentence,
        is_warning,
    } = trust(request.standing);
    // Of other clients the id says nothing to a person.
    let is_published = matches!(
        request.standing,
        ClientTrust::Verified | ClientTrust::Document
    );
    html! {
        dl {
            (parts::pair("Client", &html! { (request.client_name) }))
            @if is_published {
                (parts::pair("Published at", &html! { (request.client_id) }))
            }
            (parts::pair("You will be sent to", &html! { (destination.shown()) }))
        }
        p class=(if is_warning { "warn" } else { "soft" }) { (sentence) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rendered::{assert_in_place, hostile_text};

    fn request(name: &str) -> AuthRequest {
        let mut request = crate::codes::grant_of_test().request;
        request.client_name = name.to_owned();
        request.standing = ClientTrust::Document;
        request.client_id = format!("https://app.example/{name}");
        request
    }

    #[test]
    fn no_text_of_a_client_is_markup() {
        let evil = "</q><script>alert('1')</script>\" onload=\"x\u{202e}";
        let destination = Destination::Web("app.example".to_owned());
        let form = PageForm {
            prefix: "",
            request: "\"><b>",
        };
        let person = AskedPerson {
            name: evil,
            sealed: evil,
        };
        for page in [
            sign_in(&request(evil), &destination, &form, true, Some(evil)),
            consent(&request(evil), &destination, &form, &person, true),
            problem(StatusCode::BAD_REQUEST, evil, evil),
            problem_with_return(evil, &destination, evil),
        ] {
            for markup in ["<script", "onload=\"", "<b>", "\u{202e}"] {
                assert!(!page.body().contains(markup), "{markup}: {}", page.body());
            }
            assert!(
                page.body().contains("&lt;/q&gt;&lt;script&gt;"),
                "{}",
                page.body()
            );
        }
    }

    #[test]
    fn a_form_leads_to_where_the_client_is() {
        let destination = Destination::Loopback("127.0.0.1:5".to_owned());
        let form = PageForm {
            prefix: "/gw",
            request: "sealed",
        };
        let response = sign_in(&request("App"), &destination, &form, false, None).response();
        let policy = response.headers()["content-security-policy"]
            .to_str()
            .unwrap();
        assert!(
            policy.contains("form-action 'self' http://127.0.0.1:5;"),
            "{policy}"
        );
    }

    /// All pages of signing in, with a text of others at every place that has one.
    fn pages(text: &str) -> Vec<HtmlPage> {
        let destination = Destination::Web(text.to_owned());
        let form = PageForm {
            prefix: text,
            request: text,
        };
        let person = AskedPerson {
            name: text,
            sealed: text,
        };
        let mut pages = vec![
            problem(StatusCode::BAD_REQUEST, text, text),
            problem_with_return(text, &destination, text),
        ];
        for standing in [ClientTrust::Document, ClientTrust::Registered] {
            let mut request = request(text);
            request.standing = standing;
            request.client_id = text.to_owned();
            request.resource = text.to_owned();
            request.scopes = vec![text.to_owned(), text.to_owned()];
            pages.push(sign_in(&request, &destination, &form, true, Some(text)));
            pages.push(consent(&request, &destination, &form, &person, true));
        }
        pages
    }

    proptest! {
        #[test]
        fn no_text_of_others_leaves_its_place(text in hostile_text()) {
            assert_in_place(pages, &text);
        }
    }
}
