//! Frame of a page: headers, navigation, and what the script needs to know.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use html::parts::hidden;
use html::{Hostile, private, set_cookies};
use maud::{DOCTYPE, Markup, html};

use crate::api_client::Problem;
use crate::assets::{CSS, ICON, JS};
use crate::session::Session;

/// The policy that lets a page load the console's own files, and nothing become a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; \
    require-trusted-types-for 'script'; trusted-types portmoot";
/// Everything that a page may ask a browser for is off.
const PERMISSIONS: &str = "accelerometer=(), camera=(), clipboard-read=(), display-capture=(), \
    geolocation=(), gyroscope=(), hid=(), magnetometer=(), microphone=(), midi=(), payment=(), \
    publickey-credentials-get=(), screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()";

/// A page's place in the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tab {
    Inbox,
    Overview,
    People,
    Servers,
    Tools,
    Rules,
    Calls,
    Audit,
    Access,
}

impl Tab {
    const ALL: [Self; 9] = [
        Self::Inbox,
        Self::Overview,
        Self::People,
        Self::Servers,
        Self::Tools,
        Self::Rules,
        Self::Calls,
        Self::Audit,
        Self::Access,
    ];

    fn title(self) -> &'static str {
        match self {
            Self::Inbox => "Inbox",
            Self::Overview => "Overview",
            Self::People => "Topic",
            Self::Servers => "Servers",
            Self::Tools => "Tools",
            Self::Rules => "Rules",
            Self::Calls => "Calls",
            Self::Audit => "Audit",
            Self::Access => "Access",
        }
    }

    /// Its path below the console's.
    fn path(self) -> &'static str {
        match self {
            Self::Inbox => "",
            Self::Overview => "/overview",
            Self::People => "/topic",
            Self::Servers => "/servers",
            Self::Tools => "/tools",
            Self::Rules => "/rules",
            Self::Calls => "/calls",
            Self::Audit => "/audit",
            Self::Access => "/access",
        }
    }
}

/// The content of a page.
pub(crate) struct Content {
    pub(crate) tab: Tab,
    /// The title, of the gateway's own words.
    pub(crate) title: String,
    pub(crate) body: Markup,
    /// The command that shows the same; may have names of others.
    pub(crate) command: String,
}

/// Surroundings of a page.
pub(crate) struct Frame<'f> {
    /// The console's path, with the prefix of the public URL.
    pub(crate) base: &'f str,
    pub(crate) session: &'f Session,
    /// The number of proposals that wait, or why it is not known.
    pub(crate) waiting: Result<usize, Problem>,
    /// The address below the console's that the page is about, for its stream.
    pub(crate) at: &'f str,
    pub(crate) now_ms: u64,
}

impl Frame<'_> {
    /// The page, under what happened before.
    pub(crate) fn page(&self, status: StatusCode, content: &Content, said: &Markup) -> Response {
        let count = self.waiting.as_ref().map_or(0, |count| *count);
        let document = html! {
            (DOCTYPE)
            html lang="en" data-base=(self.base) data-at=(self.at) data-now=(self.now_ms)
                data-keys=(if self.session.has_keys() { "on" } else { "off" })
                data-waiting=(count) {
                (head(self.base, &content.title))
                body {
                    a class="skip" href="#main" { "Skip to the content" }
                    (self.banner(content.tab))
                    p id="lost" class="lost" role="status" hidden { "Connection lost. The page shows what was before; it tries again." }
                    main id="main" tabindex="-1" {
                        div id="trouble" { @if let Err(why) = &self.waiting { (problem(why)) } }
                        (said)
                        div id="live" { (content.body) }
                    }
                    footer {
                        p { "The same at a terminal: " code { (Hostile(&content.command)) } }
                        (self.key_help())
                        button type="button" id="pause" hidden { "Pause updates" }
                    }
                    p id="say" class="vh" role="status" aria-live="polite" {}
                    form method="post" action={ (self.base) "/login" } hidden data-enter {
                        (hidden("next", self.at))
                        input name="code" autocomplete="off" aria-label="Code";
                    }
                }
            }
        };
        respond(status, document.into_string(), &[])
    }

    /// The number of proposals that wait, if it is known.
    fn count(&self) -> String {
        let known = self.waiting.as_ref();
        known.map_or("?".to_owned(), ToString::to_string)
    }

    fn banner(&self, tab: Tab) -> Markup {
        html! {
            header class="top" {
                a class="brand" href=(self.base) { (mark(self.base)) "Portmoot" }
                nav aria-label="Pages" {
                    @for one in Tab::ALL {
                        a href={ (self.base) (one.path()) } aria-current=[(one == tab).then_some("page")] {
                            (one.title())
                            @if one == Tab::Inbox {
                                " " span id="count" class="count" data-testid="count" hidden[self.waiting == Ok(0)] { (self.count()) }
                            }
                        }
                    }
                }
                form class="who" method="post" action={ (self.base) "/logout" } {
                    (self.token())
                    span { (Hostile(&self.session.participant)) }
                    button type="submit" { "Sign out" }
                }
            }
        }
    }

    fn token(&self) -> Markup {
        html! { input type="hidden" name="token" value=(self.session.form_token); }
    }

    fn key_help(&self) -> Markup {
        let (word, next) = if self.session.has_keys() {
            ("Switch the keys off", "off")
        } else {
            ("Switch the keys on", "on")
        };
        html! {
            // The keys need the script, which shows them.
            details id="help" hidden {
                summary { "Keys" }
                dl {
                    @for (key, does) in KEYS {
                        dt { kbd { (key) } }
                        dd { (does) }
                    }
                }
                form method="post" action={ (self.base) "/keys" } {
                    (self.token())
                    input type="hidden" name="keys" value=(next);
                    button type="submit" { (word) }
                }
            }
        }
    }
}

/// Keys of the inbox.
const KEYS: [(&str, &str); 8] = [
    ("j, k", "next, previous proposal"),
    (
        "a, a",
        "approve: the second one decides, half a second later",
    ),
    ("r", "reject, with a reason for the agent"),
    ("e", "edit the arguments"),
    ("h", "approve calls like it for some hours"),
    ("c", "say that you look at it"),
    ("t", "ten minutes more"),
    ("?", "this list"),
];

/// The icon beside the name.
pub(crate) fn mark(base: &str) -> Markup {
    html! { img src={ (base) "/assets/" (ICON.name) } alt="" width="24" height="24"; }
}

fn head(base: &str, title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width,initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta name="robots" content="noindex";
            title { (title) " · Portmoot" }
            link rel="icon" type="image/svg+xml" href={ (base) "/assets/" (ICON.name) };
            link rel="stylesheet" href={ (base) "/assets/" (CSS.name) };
            script src={ (base) "/assets/" (JS.name) } defer {}
        }
    }
}

/// A page for a browser in which no person has signed in.
pub(crate) fn bare(status: StatusCode, base: &str, title: &str, body: &Markup) -> Response {
    let document = html! {
        (DOCTYPE)
        html lang="en" data-base=(base) {
            (head(base, title))
            body class="bare" { main id="main" { (body) } }
        }
    };
    respond(status, document.into_string(), &[])
}

/// A state as a word with a mark.
pub(crate) fn state(state: &str) -> Markup {
    let class = match state {
        "ready" => "state good",
        "down" => "state bad",
        "degraded" | "needs_login" => "state care",
        _ => "state",
    };
    html! { span class=(class) { (Hostile(&state.replace('_', " "))) } }
}

/// A failure, and the next step.
pub(crate) fn problem(problem: &Problem) -> Markup {
    html! {
        div class="said wrong" role="alert" data-testid="problem" {
            p { strong { (Hostile(&problem.message)) } }
            @if let Some(hint) = &problem.hint { p { (Hostile(hint)) } }
        }
    }
}

/// A command with a name of others as its last word; without it if a shell, or a reader, could take the
/// name for something else.
pub(crate) fn command(words: &str, name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,=".contains(c);
    if name.is_empty() || name.starts_with('-') || name.chars().any(json::visible::is_hidden) {
        return words.to_owned();
    }
    if name.chars().all(is_plain) {
        return format!("{words} {name}");
    }
    format!("{words} '{}'", name.replace('\'', r"'\''"))
}

/// Words about an act that was done.
pub(crate) fn done(words: &str) -> Markup {
    html! { p class="said" role="status" data-testid="done" { (words) } }
}

/// A page or a part of one, with the headers of all pages.
pub(crate) fn respond(status: StatusCode, document: String, cookies: &[String]) -> Response {
    let mut response = Response::new(Body::from(document));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    keep_to_itself(headers);
    set_cookies(headers, cookies);
    response
}

/// The headers of everything that the console sends.
pub(crate) fn keep_to_itself(headers: &mut HeaderMap) {
    private(headers);
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        // Without a referrer a browser would say `null` as the origin of a form.
        (header::REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (HeaderName::from_static("permissions-policy"), PERMISSIONS),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_to_paste_does_what_it_says() {
        for (name, expect) in [
            ("files", "portmoot servers show files"),
            ("a; rm -rf ~", "portmoot servers show 'a; rm -rf ~'"),
            ("it's", r"portmoot servers show 'it'\''s'"),
            ("$(x)", "portmoot servers show '$(x)'"),
            ("-x", "portmoot servers show"),
            ("a\nrm", "portmoot servers show"),
            ("a\u{202e}b", "portmoot servers show"),
            ("", "portmoot servers show"),
        ] {
            assert_eq!(command("portmoot servers show", name), expect);
        }
    }

    #[test]
    fn every_page_has_all_headers() {
        let response = respond(StatusCode::OK, String::new(), &["a=b".to_owned()]);
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types portmoot",
        ] {
            assert!(header("content-security-policy").contains(part), "{part}");
        }
        for (name, value) in [
            ("x-frame-options", "DENY"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-store"),
            ("set-cookie", "a=b"),
        ] {
            assert_eq!(header(name), value);
        }
        assert!(header("permissions-policy").contains("camera=()"));
    }
}
