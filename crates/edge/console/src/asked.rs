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
    /// The host, of this machine, where no TLS keeps the cookies of a page from its other programs.
    pub(crate) plain_host: Option<String>,
    /// Whether the browser runs on the gateway's machine, as far as the gateway can know.
    pub(crate) is_local: bool,
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

    /// All fields, as they were typed, in the order of their names.
    pub(crate) fn pairs(&self) -> Vec<(&str, &str)> {
        let pairs = self.0.iter();
        let mut pairs: Vec<(&str, &str)> = pairs.map(|(name, value)| (&**name, &**value)).collect();
        pairs.sort_unstable();
        pairs
    }

    /// The value of a field if it is not empty.
    pub(crate) fn some(&self, name: &str) -> Option<&str> {
        Some(self.get(name)).filter(|value| !value.is_empty())
    }
}

/// Where a request may go on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// Here, under this name.
    Open(OwnName),
    /// Nowhere.
    Refused(Problem),
}

/// A name of the gateway, as a browser asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnName {
    /// Scheme, host and port.
    pub(crate) origin: String,
    /// The host, if it is one of this machine without TLS.
    pub(crate) plain_host: Option<String>,
    /// Whether the browser runs on the gateway's machine, as far as the gateway can know.
    pub(crate) is_local: bool,
}

impl Asked {
    /// Reads a request that came in under a name of the gateway.
    pub(crate) async fn read(request: Request, name: OwnName) -> Result<Self, Problem> {
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
            origin: name.origin,
            plain_host: name.plain_host,
            is_local: name.is_local,
            form: Form::parse(&body),
        })
    }

    /// The form of a `POST`.
    pub(crate) fn form(&self) -> &Form {
        &self.form
    }

    /// The query of the address, as it came.
    pub(crate) fn raw_query(&self) -> &str {
        &self.query
    }

    /// The query of the address.
    pub(crate) fn query(&self) -> Form {
        Form::parse(self.query.as_bytes())
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
    let from = Browser::read(parts).from;
    // Where there is a public URL, a proxy of this machine may speak for anyone.
    let is_local = settings.public_url.is_none()
        && is_this_machine(host.host())
        && from.is_some_and(|from| from.to_canonical().is_loopback());
    let over_tls = |origin: String| {
        Entrance::Open(OwnName {
            origin,
            plain_host: None,
            is_local,
        })
    };
    if let Some(url) = public
        && url.is_secure()
    {
        return over_tls(url.origin().to_owned());
    }
    if settings.has_tls {
        return over_tls(format!("https://{host}"));
    }
    if !is_this_machine(host.host()) || !from.is_none_or(|from| from.to_canonical().is_loopback()) {
        return refused(
            StatusCode::FORBIDDEN,
            "The console needs TLS beyond this machine.",
            "The operator can add a certificate ([server.tls]), or name the https address of a proxy (public_url). On the machine itself: portmoot console.",
        );
    }
    Entrance::Open(OwnName {
        origin: format!("http://{host}"),
        plain_host: Some(host.host().to_owned()),
        is_local,
    })
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
        || api::is_console_host(bare)
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

    /// The name under which a request comes in: origin, whether it is plain, whether it is local.
    fn name(settings: &ConsoleSettings, host: &str, from: &str) -> Option<(String, bool, bool)> {
        match entrance(settings, &parts(host, from)) {
            Entrance::Open(name) => Some((name.origin, name.plain_host.is_some(), name.is_local)),
            Entrance::Refused(problem) => {
                assert_eq!(problem.status, StatusCode::FORBIDDEN, "{host}");
                assert!(problem.message.contains("TLS"), "{problem:?}");
                None
            }
        }
    }

    #[test]
    fn a_browser_comes_in_on_this_machine_or_over_tls() {
        let open = |origin: &str, is_plain, is_local| Some((origin.to_owned(), is_plain, is_local));
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
            enabled: Some(true),
            ..settings()
        };
        let own = format!("pm-{:032x}.localhost:7070", 5);
        let own_origin = format!("http://{own}");
        let (here, there) = ("127.0.0.1", "192.0.2.9");
        for (settings, host, from, expect) in [
            (&plain, &*own, here, open(&own_origin, true, true)),
            (
                &plain,
                "localhost:7070",
                here,
                open("http://localhost:7070", true, true),
            ),
            (
                &plain,
                "127.0.0.1:7070",
                here,
                open("http://127.0.0.1:7070", true, true),
            ),
            (
                &plain,
                "[::1]:7070",
                "::1",
                open("http://[::1]:7070", true, true),
            ),
            (&plain, "gw.example", here, None),
            (&plain, "portmoot.localhost:7070", here, None),
            (&plain, &*own, there, None),
            (&wide, "192.0.2.7:7070", there, None),
            (
                &wide,
                "localhost:7070",
                here,
                open("http://localhost:7070", true, true),
            ),
            (
                &tls,
                "192.0.2.7:7070",
                there,
                open("https://192.0.2.7:7070", false, false),
            ),
            (
                &tls,
                "localhost:7070",
                here,
                open("https://localhost:7070", false, true),
            ),
            (
                &tls,
                "localhost:7070",
                there,
                open("https://localhost:7070", false, false),
            ),
            (
                &proxied,
                "GW.example",
                here,
                open("https://gw.example", false, false),
            ),
            (&proxied, "other.example", there, None),
            (&proxied, &*own, here, open(&own_origin, true, false)),
        ] {
            assert_eq!(name(settings, host, from), expect, "{host} from {from}");
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
        // Behind a proxy a gateway on loopback is reached from anywhere.
        let proxied = |enabled| ConsoleSettings {
            public_url: Some(PublicUrl::parse("https://gw.example").unwrap()),
            ..at("127.0.0.1:1", enabled)
        };
        assert!(!proxied(None).is_enabled() && proxied(Some(true)).is_enabled());
        let off = entrance(
            &at("127.0.0.1:1", Some(false)),
            &parts("localhost:1", "127.0.0.1"),
        );
        assert!(
            matches!(off, Entrance::Refused(problem) if problem.status == StatusCode::NOT_FOUND)
        );
    }
}
