//! Frame, style and headers of a page.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json::visible;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

/// Colours of all pages, light and dark, as variables of CSS.
pub const PALETTE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--line:#d1d9e0;--card:#fff;--back:#f3f5f7;--act:#0b5cad;--warn:#8a4b00;--warnback:#fff4e0}\
@media(prefers-color-scheme:dark){:root{--ink:#e8ebee;--soft:#a3adb8;--line:#3a434d;--card:#1c2127;--back:#12161a;--act:#5aa7f0;--warn:#ffc46b;--warnback:#3a2a10}}";

const STYLE: &str = "\
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\
main{max-width:30rem;margin:8vh auto;padding:2rem;background:var(--card);border:1px solid var(--line);border-radius:12px}\
h1{font-size:1.35rem;line-height:1.3;margin:0 0 1rem}p{margin:.75rem 0}dl{margin:1.25rem 0;border-top:1px solid var(--line)}\
dt{color:var(--soft);font-size:.875rem;margin-top:.75rem}dd{margin:0;overflow-wrap:anywhere}code,kbd{font:.9em ui-monospace,monospace}\
label{display:block;margin:1rem 0 .25rem;font-weight:600}label.small{font-weight:400}input[type=text]{width:100%;font:1.25rem ui-monospace,monospace;padding:.6rem .75rem;border:1px solid var(--soft);border-radius:8px;background:transparent;color:inherit}\
.row{display:flex;gap:.75rem;margin-top:1.5rem;flex-wrap:wrap}button{font:inherit;font-weight:600;padding:.6rem 1.25rem;border-radius:8px;border:1px solid var(--soft);background:transparent;color:inherit;cursor:pointer}\
button.main{background:var(--act);border-color:var(--act);color:var(--card)}button.link{border:0;padding:0;color:var(--act);font-weight:400;text-decoration:underline}\
:focus-visible{outline:3px solid var(--act);outline-offset:2px}.warn{background:var(--warnback);color:var(--warn);border-radius:8px;padding:.75rem 1rem}.soft{color:var(--soft);font-size:.875rem}";

/// The style of a page without a style sheet of its own.
fn style() -> String {
    [PALETTE, STYLE].concat()
}

/// A page to send.
#[derive(Debug)]
pub struct HtmlPage {
    status: StatusCode,
    title: &'static str,
    body: String,
    /// Source beside the gateway to which a form of the page may lead.
    form_action: Option<String>,
    /// `Set-Cookie` headers.
    cookies: Vec<String>,
}

impl HtmlPage {
    /// A page with this title and content.
    ///
    /// Hidden characters of the content become visible here, for all its texts at once: a
    /// template has none of its own.
    #[must_use]
    pub fn new(status: StatusCode, title: &'static str, content: &Markup) -> Self {
        Self {
            status,
            title,
            body: visible::line(&content.0),
            form_action: None,
            cookies: Vec::new(),
        }
    }

    /// The page with a form that may lead to this source of a content security policy.
    #[must_use]
    pub fn leading_to(self, source: String) -> Self {
        Self {
            form_action: Some(source),
            ..self
        }
    }

    /// The page with these `Set-Cookie` headers too.
    #[must_use]
    pub fn with_cookies(mut self, cookies: impl IntoIterator<Item = String>) -> Self {
        self.cookies.extend(cookies);
        self
    }

    /// The content as HTML, without the frame.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    fn document(&self) -> String {
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width,initial-scale=1";
                    meta name="robots" content="noindex";
                    title { (self.title) }
                    style { (PreEscaped(style())) }
                }
                body { main { (PreEscaped(&self.body)) } }
            }
        };
        document.into_string()
    }

    /// The policy that lets a page load its own style and nothing else, and send its forms to the
    /// gateway and to where they lead.
    fn policy(&self) -> String {
        let style = STANDARD.encode(Sha256::digest(style().as_bytes()));
        let mut form_action = "'self'".to_owned();
        if let Some(source) = &self.form_action {
            form_action.push(' ');
            form_action.push_str(source);
        }
        format!(
            "default-src 'none'; style-src 'sha256-{style}'; form-action {form_action}; \
             frame-ancestors 'none'; base-uri 'none'"
        )
    }

    /// The response, with the headers that keep a page to itself.
    #[must_use]
    pub fn response(self) -> Response {
        let mut response = Response::new(Body::from(self.document()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        );
        if let Ok(policy) = HeaderValue::from_str(&self.policy()) {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        private(headers);
        set_cookies(headers, &self.cookies);
        response
    }
}

/// A document of one sentence without a style, for a page of which nothing is loaded.
#[must_use]
pub fn simple(title: &str, sentence: &str) -> String {
    let document = html! {
        (DOCTYPE)
        meta charset="utf-8";
        title { (title) }
        p { (sentence) }
    };
    visible::line(&document.0)
}

/// A redirect of a browser by `GET`, with these `Set-Cookie` headers; `None` if the location cannot
/// stand in a header.
#[must_use]
pub fn see_other(location: &str, cookies: &[String]) -> Option<Response> {
    let location = HeaderValue::from_str(location).ok()?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, location);
    private(headers);
    set_cookies(headers, cookies);
    Some(response)
}

/// Sets the headers of everything that is for one person alone.
pub fn private(headers: &mut HeaderMap) {
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

/// Adds these `Set-Cookie` headers.
pub fn set_cookies(headers: &mut HeaderMap, cookies: &[String]) {
    for cookie in cookies {
        if let Ok(value) = HeaderValue::from_str(cookie) {
            headers.append(header::SET_COOKIE, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_not_framed_kept_or_referred_to() {
        let page = HtmlPage::new(StatusCode::OK, "Title", &html! { p { "text" } })
            .leading_to("http://127.0.0.1:5".to_owned())
            .with_cookies(["a=b".to_owned(), "c=d".to_owned()]);
        let document = page.document();
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
        assert_eq!(header("cache-control"), "no-store");
        let cookies = response.headers().get_all("set-cookie").iter();
        assert_eq!(cookies.collect::<Vec<_>>(), ["a=b", "c=d"]);
        assert!(
            response
                .headers()
                .get("access-control-allow-origin")
                .is_none()
        );
        // The style that the policy allows is the one in the page.
        let style = document.split_once("<style>").unwrap().1;
        let style = style.split_once("</style>").unwrap().0;
        let hash = STANDARD.encode(Sha256::digest(style.as_bytes()));
        assert!(policy.contains(&format!("'sha256-{hash}'")), "{policy}");
    }

    #[test]
    fn texts_of_others_are_no_markup_and_hide_nothing() {
        let evil = "</p><script>&lt;\" \u{202e}\0";
        let seen = "&lt;/p&gt;&lt;script&gt;&amp;lt;&quot; \\u{202e}\\u{0}";
        let page = HtmlPage::new(
            StatusCode::OK,
            "Title",
            &html! { p title=(evil) { (evil) } },
        );
        assert_eq!(page.body(), format!("<p title=\"{seen}\">{seen}</p>"));
        assert_eq!(
            simple("Title", evil),
            format!("<!DOCTYPE html><meta charset=\"utf-8\"><title>Title</title><p>{seen}</p>")
        );
    }

    #[test]
    fn a_page_without_a_form_leads_to_the_gateway_alone() {
        let page = HtmlPage::new(StatusCode::OK, "Title", &html! {});
        assert!(page.policy().contains("form-action 'self'; "));
    }

    #[test]
    fn what_cannot_stand_in_a_header_is_no_redirect() {
        assert!(see_other("https://app.example/\r\nset-cookie: a=b", &[]).is_none());
        let response = see_other("https://app.example/", &["a=b".to_owned()]).unwrap();
        let header = |name: &str| response.headers().get(name).unwrap().to_str().unwrap();
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        assert_eq!(
            (header("location"), header("set-cookie")),
            ("https://app.example/", "a=b")
        );
        assert_eq!(header("cache-control"), "no-store");
    }
}
