//! Pages that people see: plain HTML without scripts, every text of others escaped.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json::visible;
use sha2::{Digest as _, Sha256};

use crate::client::ClientTrust;
use crate::redirect::Destination;
use crate::request::AuthRequest;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--line:#d1d9e0;--card:#fff;--back:#f3f5f7;--act:#0b5cad;--warn:#8a4b00;--warnback:#fff4e0}\
@media(prefers-color-scheme:dark){:root{--ink:#e8ebee;--soft:#a3adb8;--line:#3a434d;--card:#1c2127;--back:#12161a;--act:#5aa7f0;--warn:#ffc46b;--warnback:#3a2a10}}\
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\
main{max-width:30rem;margin:8vh auto;padding:2rem;background:var(--card);border:1px solid var(--line);border-radius:12px}\
h1{font-size:1.35rem;line-height:1.3;margin:0 0 1rem}p{margin:.75rem 0}dl{margin:1.25rem 0;border-top:1px solid var(--line)}\
dt{color:var(--soft);font-size:.875rem;margin-top:.75rem}dd{margin:0;overflow-wrap:anywhere}code,kbd{font:.9em ui-monospace,monospace}\
label{display:block;margin:1rem 0 .25rem;font-weight:600}label.small{font-weight:400}input[type=text]{width:100%;font:1.25rem ui-monospace,monospace;padding:.6rem .75rem;border:1px solid var(--soft);border-radius:8px;background:transparent;color:inherit}\
.row{display:flex;gap:.75rem;margin-top:1.5rem;flex-wrap:wrap}button{font:inherit;font-weight:600;padding:.6rem 1.25rem;border-radius:8px;border:1px solid var(--soft);background:transparent;color:inherit;cursor:pointer}\
button.main{background:var(--act);border-color:var(--act);color:var(--card)}button.link{border:0;padding:0;color:var(--act);font-weight:400;text-decoration:underline}\
:focus-visible{outline:3px solid var(--act);outline-offset:2px}.warn{background:var(--warnback);color:var(--warn);border-radius:8px;padding:.75rem 1rem}.soft{color:var(--soft);font-size:.875rem}";

/// A text inside an element or a quoted attribute: hidden characters visible, nothing of it markup.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for one in visible::line(text).chars() {
        match one {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            one => out.push(one),
        }
    }
    out
}

/// A page to send.
pub(crate) struct HtmlPage {
    status: StatusCode,
    title: &'static str,
    body: String,
    /// The source beside the gateway to which its form may lead.
    action: Option<String>,
    /// `Set-Cookie` headers.
    pub(crate) cookies: Vec<String>,
}

impl HtmlPage {
    pub(crate) fn new(status: StatusCode, title: &'static str, body: String) -> Self {
        Self {
            status,
            title,
            body,
            action: None,
            cookies: Vec::new(),
        }
    }

    #[cfg(test)]
    pub(crate) fn body(&self) -> &str {
        &self.body
    }

    /// The page with a form that may lead to this source.
    pub(crate) fn leading_to(self, source: String) -> Self {
        Self {
            action: Some(source),
            ..self
        }
    }

    /// The response, with the headers that keep a page to itself.
    pub(crate) fn response(self) -> Response {
        let html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width,initial-scale=1\"><meta name=\"robots\" content=\"noindex\"><title>{}</title>\
             <style>{STYLE}</style></head><body><main>{}</main></body></html>\n",
            self.title, self.body
        );
        let style = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
        let action = self
            .action
            .map_or_else(String::new, |source| format!(" {source}"));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{style}'; form-action 'self'{action}; frame-ancestors 'none'; \
             base-uri 'none'"
        );
        let mut response = Response::new(Body::from(html));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        );
        if let Ok(policy) = HeaderValue::from_str(&policy) {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        private(headers);
        set_cookies(headers, &self.cookies);
        response
    }
}

/// The headers of everything that is for one person alone.
pub(crate) fn private(headers: &mut axum::http::HeaderMap) {
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::PRAGMA, "no-cache"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

pub(crate) fn set_cookies(headers: &mut axum::http::HeaderMap, cookies: &[String]) {
    for value in cookies
        .iter()
        .filter_map(|cookie| HeaderValue::from_str(cookie).ok())
    {
        headers.append(header::SET_COOKIE, value);
    }
}

/// A page that says why nothing happens.
pub(crate) fn problem(status: StatusCode, sentence: &str, hint: &str) -> HtmlPage {
    let body = format!(
        "<h1>This sign-in cannot go on</h1><p>{}</p><p class=\"soft\">{}</p>",
        escape(sentence),
        escape(hint)
    );
    HtmlPage::new(status, "Sign-in stopped", body)
}

/// A page with an error that goes to the client only when the person follows the link: the gateway
/// is no open redirector.
pub(crate) fn problem_with_return(
    sentence: &str,
    destination: &Destination,
    location: &str,
) -> HtmlPage {
    let body = format!(
        "<h1>This sign-in cannot go on</h1><p>The client’s request is wrong: {}.</p>\
         <p><a href=\"{}\" rel=\"noreferrer\">Go back to {}</a></p>",
        escape(sentence),
        escape(location),
        escape(&destination.shown())
    );
    HtmlPage::new(StatusCode::BAD_REQUEST, "Sign-in stopped", body)
}

/// Parts of a form beside the text that the person types.
pub(crate) struct PageForm<'f> {
    /// The path of the gateway's endpoints, before `/oauth`.
    pub(crate) prefix: &'f str,
    /// The sealed request.
    pub(crate) request: &'f str,
}

/// The page on which a participant signs in.
pub(crate) fn sign_in(
    request: &AuthRequest,
    destination: &Destination,
    form: &PageForm<'_>,
    paste_tokens: bool,
    wrong: Option<&str>,
) -> HtmlPage {
    let wrong = wrong
        .map(|why| format!("<p class=\"warn\" role=\"alert\">{}</p>", escape(why)))
        .unwrap_or_default();
    let (label, hint) = match paste_tokens {
        false => (
            "One-time code",
            "You get one with <code>portmoot login code YOUR-NAME</code>, or from the operator.",
        ),
        true => (
            "One-time code, or your token",
            "You get a code with <code>portmoot login code YOUR-NAME</code>, or from the operator. A token is used once, here.",
        ),
    };
    let body = format!(
        "<h1>Sign in to the gateway</h1><p><strong>{client}</strong> wants to connect for you.</p>{wrong}\
         <form method=\"post\" action=\"{prefix}/oauth/authorize\" autocomplete=\"off\">\
         <input type=\"hidden\" name=\"request\" value=\"{sealed}\">\
         <label for=\"code\">{label}</label>\
         <input type=\"text\" id=\"code\" name=\"code\" required autofocus autocomplete=\"one-time-code\" autocapitalize=\"off\" \
         spellcheck=\"false\" aria-describedby=\"hint\"><p class=\"soft\" id=\"hint\">{hint}</p>\
         <div class=\"row\"><button class=\"main\" type=\"submit\">Sign in</button></div></form>{about}",
        client = escape(&request.client_name),
        prefix = escape(form.prefix),
        sealed = escape(form.request),
        about = about(request, destination),
    );
    let status = if wrong.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::FORBIDDEN
    };
    HtmlPage::new(status, "Sign in", body).leading_to(destination.form_action())
}

/// The page on which a participant consents. `remembers` is whether it can be spared the question
/// the next time.
pub(crate) fn consent(
    request: &AuthRequest,
    destination: &Destination,
    form: &PageForm<'_>,
    (participant, who): (&str, &str),
    remembers: bool,
) -> HtmlPage {
    let scopes = match request.scopes.as_slice() {
        [] => "everything that you may do".to_owned(),
        scopes => scopes
            .iter()
            .map(|scope| format!("<code>{}</code>", escape(scope)))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let remember = match remembers {
        false => "",
        true => {
            "<label class=\"small\"><input type=\"checkbox\" name=\"remember\" value=\"1\"> Do not ask again for this client in \
             this browser</label>"
        }
    };
    let body = format!(
        "<h1>Let <q>{client}</q> act as <strong>{participant}</strong>?</h1>{about}\
         <dl><dt>At</dt><dd>{resource}</dd><dt>It may do</dt><dd>{scopes}</dd></dl>\
         <form method=\"post\" action=\"{prefix}/oauth/consent\">\
         <input type=\"hidden\" name=\"request\" value=\"{sealed}\"><input type=\"hidden\" name=\"who\" value=\"{who}\">{remember}\
         <div class=\"row\"><button class=\"main\" type=\"submit\" name=\"decision\" value=\"allow\">Allow</button>\
         <button type=\"submit\" name=\"decision\" value=\"deny\">Deny</button></div></form>\
         <form method=\"post\" action=\"{prefix}/oauth/authorize\"><input type=\"hidden\" name=\"request\" value=\"{sealed}\">\
         <p class=\"soft\">Not {participant}? <button class=\"link\" type=\"submit\" name=\"switch\" value=\"1\">Sign in as \
         another participant</button></p></form>",
        client = escape(&request.client_name),
        participant = escape(participant),
        resource = escape(&request.resource),
        prefix = escape(form.prefix),
        sealed = escape(form.request),
        who = escape(who),
        about = about(request, destination),
    );
    HtmlPage::new(StatusCode::OK, "Consent", body).leading_to(destination.form_action())
}

/// Text about the client that asks, the trust in it, and the address to which the answer goes.
fn about(request: &AuthRequest, destination: &Destination) -> String {
    let (known, is_warning) = match request.standing {
        ClientTrust::Configured => (
            "The operator of this gateway has registered this client.",
            false,
        ),
        ClientTrust::Verified => (
            "The operator of this gateway trusts the publisher of this client.",
            false,
        ),
        ClientTrust::Document => (
            "The client describes itself, and its publisher is not among those that the operator trusts. Allow it only if you have \
             just started it yourself.",
            true,
        ),
        ClientTrust::Registered => (
            "The client has chosen its name itself, and the name is not verified. Allow it only if you have just started it yourself.",
            true,
        ),
    };
    let class = if is_warning { "warn" } else { "soft" };
    let publisher = match request.standing {
        ClientTrust::Verified | ClientTrust::Document => {
            format!(
                "<dt>Published at</dt><dd>{}</dd>",
                escape(&request.client_id)
            )
        }
        ClientTrust::Configured | ClientTrust::Registered => String::new(),
    };
    format!(
        "<dl><dt>Client</dt><dd>{}</dd>{publisher}<dt>You will be sent to</dt><dd>{}</dd></dl><p class=\"{class}\">{known}</p>",
        escape(&request.client_name),
        escape(&destination.shown()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for page in [
            sign_in(&request(evil), &destination, &form, true, Some(evil)),
            consent(&request(evil), &destination, &form, (evil, evil), true),
            problem(StatusCode::BAD_REQUEST, evil, evil),
            problem_with_return(evil, &destination, evil),
        ] {
            for markup in ["<script", "onload=\"", "<b>", "\u{202e}", "'1'"] {
                assert!(!page.body.contains(markup), "{markup}: {}", page.body);
            }
            assert!(
                page.body.contains("&lt;/q&gt;&lt;script&gt;"),
                "{}",
                page.body
            );
        }
    }

    #[test]
    fn pages_are_not_framed_kept_or_referred_to() {
        let destination = Destination::Loopback("127.0.0.1:5".to_owned());
        let form = PageForm {
            prefix: "/gw",
            request: "sealed",
        };
        let mut page = sign_in(&request("App"), &destination, &form, false, None);
        page.cookies.push("a=b".to_owned());
        let response = page.response();
        let header = |name: &str| response.headers().get(name).unwrap().to_str().unwrap();
        let policy = header("content-security-policy");
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(
            policy.contains("form-action 'self' http://127.0.0.1:5;"),
            "{policy}"
        );
        assert_eq!(
            (header("x-frame-options"), header("referrer-policy")),
            ("DENY", "no-referrer")
        );
        assert_eq!(
            (header("cache-control"), header("set-cookie")),
            ("no-store", "a=b")
        );
        assert!(
            response
                .headers()
                .get("access-control-allow-origin")
                .is_none()
        );
    }
}
