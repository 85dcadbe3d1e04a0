//! Requests of browsers: from where, to which of the gateway's names, with which form.

use std::collections::HashMap;
use std::net::IpAddr;

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{Extensions, Method, StatusCode, Uri, header};
use html::Browser;
use url::form_urlencoded;

use crate::api_client::Problem;
use crate::home::ConsoleSettings;

/// The name of this machine that the console prefers: no other program's cookies go there.
pub(crate) const OWN_NAME: &str = "portmoot.localhost";
/// The longest form that is read, in bytes. The door holds no longer one for a sender that it does
/// not know.
pub(crate) const FORM_BYTES_MAX: usize = 64 * 1024;
/// Header of requests of the script, which take a part of a page.
const PART: &str = "x-portmoot-part";

/// A request of a browser, with its form.
pub(crate) struct Asked {
    pub(crate) browser: Browser,
    pub(crate) method: Method,
    /// The path below the console's: empty, or it begins with `/`.
    pub(crate) below: String,
    query: String,
    pub(crate) extensions: Extensions,
    /// Scheme, host and port under which the browser knows the gateway.
    pub(crate) origin: String,
    /// Whether the script asks, for a part of a page.
    pub(crate) is_part: bool,
    form: Form,
}

/// A query or form: the first value of each name.
#[derive(Debug, Default, Clone)]
pub(crate) struct Form(HashMap<String, String>);

impl Form {
    pub(crate) fn parse(text: &[u8]) -> Self {
        let mut all = HashMap::new();
        for (name, value) in form_urlencoded::parse(text) {
            all.entry(name.into_owned()).or_insert(value.into_owned());
        }
        Self(all)
    }

    /// The value of a field, without blanks around it; empty if there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |value| value.trim())
    }

    /// The value of a field as it was typed, if it is not empty.
    pub(crate) fn typed(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// The value of a field if it is not empty.
    pub(crate) fn some(&self, name: &str) -> Option<&str> {
        Some(self.get(name)).filter(|value| !value.is_empty())
    }
}

/// Where a request may go on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// Here, under this origin.
    Open(String),
    /// At another name of the gateway, which is this origin.
    Elsewhere(String),
    /// Nowhere.
    Refused(Problem),
}

impl Asked {
    /// Reads a request that came in under an origin.
    pub(crate) async fn read(request: Request, origin: String) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, FORM_BYTES_MAX).await.map_err(|_| {
            Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the form is too long for a page; use the command line",
            )
        })?;
        Ok(Self {
            browser: Browser::read(&parts),
            is_part: parts.headers.contains_key(PART),
            method: parts.method,
            below: below(&parts.uri).to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            extensions: parts.extensions,
            origin,
            form: Form::parse(&body),
        })
    }

    /// The form of a `POST`.
    pub(crate) fn form(&self) -> &Form {
        &self.form
    }

    /// The query of the address.
    pub(crate) fn query(&self) -> Form {
        Form::parse(self.query.as_bytes())
    }

    /// Path and query below the console's path.
    pub(crate) fn address(&self) -> String {
        match &*self.query {
            "" => self.below.clone(),
            query => format!("{}?{query}", self.below),
        }
    }
}

/// Where a request may go on: a page is for browsers that reach the gateway over TLS, or on its own
/// machine.
pub(crate) fn entrance(settings: &ConsoleSettings, parts: &Parts) -> Entrance {
    if !settings.is_enabled() {
        return refused(
            StatusCode::NOT_FOUND,
            "There is no console here.",
            "The operator can switch it on: [console] enabled = true.",
        );
    }
    let Some(host) = host(parts) else {
        return refused(StatusCode::BAD_REQUEST, "The request names no host.", "");
    };
    let public = settings
        .public_url
        .as_ref()
        .filter(|url| url.authority().eq_ignore_ascii_case(host.as_str()));
    if let Some(url) = public
        && url.is_secure()
    {
        return Entrance::Open(url.origin().to_owned());
    }
    if settings.has_tls {
        return Entrance::Open(format!("https://{host}"));
    }
    let from = Browser::read(parts).from;
    if !is_this_machine(host.host()) || !from.is_none_or(|from| from.to_canonical().is_loopback()) {
        return refused(
            StatusCode::FORBIDDEN,
            "The console needs TLS beyond this machine.",
            "The operator can add a certificate ([server.tls]), or name the https address of a proxy (public_url). On the machine itself: portmoot console.",
        );
    }
    // Cookies of an address are sent to all programs of the machine, whatever their port.
    let is_named = host.host().parse::<IpAddr>().is_err() && !host.host().starts_with('[');
    if is_named {
        Entrance::Open(format!("http://{host}"))
    } else {
        let port = host.port().map_or(String::new(), |port| format!(":{port}"));
        Entrance::Elsewhere(format!("http://{OWN_NAME}{port}"))
    }
}

fn refused(status: StatusCode, message: &str, hint: &str) -> Entrance {
    Entrance::Refused(Problem {
        hint: Some(hint.to_owned()).filter(|hint| !hint.is_empty()),
        ..Problem::new(status, message)
    })
}

/// The path of a request below the console's, from which the router has taken that away.
pub(crate) fn below(uri: &Uri) -> &str {
    uri.path().trim_end_matches('/')
}

/// Host and port that the browser asks for.
fn host(parts: &Parts) -> Option<Authority> {
    if let Some(authority) = parts.uri.authority() {
        return Some(authority.clone());
    }
    let text = parts.headers.get(header::HOST)?.to_str().ok()?;
    text.parse().ok()
}

fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_matches(['[', ']']);
    let is_loopback = |address: IpAddr| address.is_loopback();
    bare.eq_ignore_ascii_case("localhost")
        || bare.eq_ignore_ascii_case(OWN_NAME)
        || bare.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use auth::{Peer, PublicUrl};

    use super::*;
    use crate::routes::tests_support::settings;

    fn parts(host: &str, from: &str) -> Parts {
        let request = axum::http::Request::builder().header("host", host);
        let mut parts = request.body(()).unwrap().into_parts().0;
        parts.extensions.insert(Peer(from.parse().unwrap()));
        parts
    }

    #[test]
    fn a_browser_comes_in_on_this_machine_or_over_tls() {
        let open = |origin: &str| Some(Ok(origin.to_owned()));
        let plain = settings();
        let tls = ConsoleSettings {
            has_tls: true,
            enabled: Some(true),
            listen: "0.0.0.0:7070".parse().unwrap(),
            ..settings()
        };
        let wide = ConsoleSettings {
            has_tls: false,
            ..tls.clone()
        };
        let proxied = ConsoleSettings {
            public_url: Some(PublicUrl::parse("https://gw.example/a").unwrap()),
            ..settings()
        };
        let (here, there) = ("127.0.0.1", "192.0.2.9");
        for (settings, host, from, expect) in [
            (
                &plain,
                "portmoot.localhost:7070",
                here,
                open("http://portmoot.localhost:7070"),
            ),
            (
                &plain,
                "localhost:7070",
                here,
                open("http://localhost:7070"),
            ),
            (
                &plain,
                "127.0.0.1:7070",
                here,
                Some(Err("http://portmoot.localhost:7070".to_owned())),
            ),
            (
                &plain,
                "[::1]:7070",
                "::1",
                Some(Err("http://portmoot.localhost:7070".to_owned())),
            ),
            (&plain, "gw.example", here, None),
            (&plain, "portmoot.localhost:7070", there, None),
            (&wide, "192.0.2.7:7070", there, None),
            (&wide, "localhost:7070", here, open("http://localhost:7070")),
            (
                &tls,
                "192.0.2.7:7070",
                there,
                open("https://192.0.2.7:7070"),
            ),
            (&proxied, "GW.example", there, open("https://gw.example")),
            (&proxied, "other.example", there, None),
            (
                &proxied,
                "portmoot.localhost:7070",
                here,
                open("http://portmoot.localhost:7070"),
            ),
        ] {
            let seen = match entrance(settings, &parts(host, from)) {
                Entrance::Open(origin) => Some(Ok(origin)),
                Entrance::Elsewhere(origin) => Some(Err(origin)),
                Entrance::Refused(problem) => {
                    assert_eq!(problem.status, StatusCode::FORBIDDEN, "{host}");
                    assert!(problem.message.contains("TLS"), "{problem:?}");
                    None
                }
            };
            assert_eq!(seen, expect, "{host} from {from}");
        }
    }

    #[test]
    fn it_is_on_by_itself_on_loopback_alone() {
        let at = |listen: &str, enabled| ConsoleSettings {
            enabled,
            listen: listen.parse().unwrap(),
            ..settings()
        };
        for (listen, enabled, expect) in [
            ("127.0.0.1:1", None, true),
            ("[::1]:1", None, true),
            ("0.0.0.0:1", None, false),
            ("0.0.0.0:1", Some(true), true),
            ("127.0.0.1:1", Some(false), false),
        ] {
            assert_eq!(at(listen, enabled).is_enabled(), expect, "{listen}");
        }
        let off = entrance(
            &at("127.0.0.1:1", Some(false)),
            &parts("localhost:1", "127.0.0.1"),
        );
        assert!(
            matches!(off, Entrance::Refused(problem) if problem.status == StatusCode::NOT_FOUND)
        );
    }
}
