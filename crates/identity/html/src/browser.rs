//! Headers of a browser that say where a request comes from.

use std::net::IpAddr;

use auth::{Peer, PublicUrl};
use axum::http::header::{COOKIE, HeaderName, ORIGIN};
use axum::http::request::Parts;

/// A request of a browser, beside its parameters.
#[derive(Debug, Default)]
pub struct Browser {
    /// `Cookie` headers.
    cookies: Vec<String>,
    /// `Sec-Fetch-Site`.
    site: Option<String>,
    /// `Origin`.
    origin: Option<String>,
    /// Address of the browser.
    pub from: Option<IpAddr>,
}

impl Browser {
    /// The browser of a request, by its head.
    #[must_use]
    pub fn read(parts: &Parts) -> Self {
        let text = |name: HeaderName| {
            let value = parts.headers.get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        let cookies = parts.headers.get_all(COOKIE).iter();
        Self {
            cookies: cookies
                .filter_map(|value| value.to_str().ok())
                .map(str::to_owned)
                .collect(),
            site: text(HeaderName::from_static("sec-fetch-site")),
            origin: text(ORIGIN),
            from: parts.extensions.get::<Peer>().map(|peer| peer.0),
        }
    }

    /// `Cookie` headers.
    #[must_use]
    pub fn cookies(&self) -> Vec<&str> {
        self.cookies.iter().map(String::as_str).collect()
    }

    /// Whether a form can have been sent by a page of the gateway. The pages send no referrer, so
    /// browsers say `null` as their origin.
    #[must_use]
    pub fn may_send_form(&self, public_url: &PublicUrl) -> bool {
        let is_own_origin = match self.origin.as_deref() {
            None | Some("null") => true,
            Some(origin) => origin == public_url.origin(),
        };
        is_own_origin && matches!(self.site.as_deref(), None | Some("same-origin"))
    }

    /// Whether a page of exactly this origin sent the request. A browser says so with `Origin`, which
    /// must be the same with its port, or else with `Sec-Fetch-Site`; a client that says neither is
    /// no page.
    #[must_use]
    pub fn is_of_origin(&self, own: &str) -> bool {
        match (self.origin.as_deref(), self.site.as_deref()) {
            (Some(origin), None | Some("same-origin")) => origin == own,
            (None, Some("same-origin")) => true,
            (Some(_) | None, Some(_)) | (None, None) => false,
        }
    }

    /// Whether the person, or a page of the gateway, opened this page: no other site did.
    #[must_use]
    pub fn is_same_site(&self) -> bool {
        matches!(
            self.site.as_deref(),
            Some("none" | "same-origin" | "same-site")
        )
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn browser(headers: &[(&str, &str)]) -> Browser {
        let mut request = Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Browser::read(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn a_form_comes_from_a_page_of_the_gateway() {
        let url = PublicUrl::parse("https://gw.example/a").unwrap();
        let own = "https://gw.example";
        for (headers, may_send) in [
            (vec![], true),
            (vec![("origin", "null")], true),
            (vec![("origin", own)], true),
            (
                vec![("origin", own), ("sec-fetch-site", "same-origin")],
                true,
            ),
            (vec![("origin", "https://evil.example")], false),
            (vec![("origin", "http://gw.example")], false),
            (
                vec![("origin", "null"), ("sec-fetch-site", "cross-site")],
                false,
            ),
            (
                vec![("origin", own), ("sec-fetch-site", "same-site")],
                false,
            ),
            (vec![("sec-fetch-site", "none")], false),
        ] {
            assert_eq!(
                browser(&headers).may_send_form(&url),
                may_send,
                "{headers:?}"
            );
        }
    }

    #[test]
    fn only_pages_of_the_very_origin_send_what_needs_it() {
        let own = "http://portmoot.localhost:7070";
        for (headers, is_own) in [
            (vec![], false),
            (vec![("origin", own)], true),
            (vec![("sec-fetch-site", "same-origin")], true),
            (
                vec![("origin", own), ("sec-fetch-site", "same-origin")],
                true,
            ),
            (vec![("origin", "null")], false),
            (vec![("origin", "http://portmoot.localhost:7071")], false),
            (vec![("origin", "https://portmoot.localhost:7070")], false),
            (vec![("origin", "http://127.0.0.1:7070")], false),
            (
                vec![("origin", own), ("sec-fetch-site", "same-site")],
                false,
            ),
            (
                vec![("origin", own), ("sec-fetch-site", "cross-site")],
                false,
            ),
            (
                vec![("origin", "null"), ("sec-fetch-site", "same-origin")],
                false,
            ),
            (vec![("sec-fetch-site", "same-site")], false),
            (vec![("sec-fetch-site", "cross-site")], false),
            (vec![("sec-fetch-site", "none")], false),
        ] {
            assert_eq!(browser(&headers).is_of_origin(own), is_own, "{headers:?}");
        }
    }

    #[test]
    fn another_site_that_opens_a_page_is_known() {
        for (site, is_same) in [
            ("none", true),
            ("same-origin", true),
            ("same-site", true),
            ("cross-site", false),
            ("x", false),
        ] {
            assert_eq!(browser(&[("sec-fetch-site", site)]).is_same_site(), is_same);
        }
        assert!(!browser(&[]).is_same_site(), "an old browser does not say");
    }

    #[test]
    fn all_cookie_headers_are_read() {
        let browser = browser(&[("cookie", "a=1"), ("cookie", "b=2; c=3")]);
        assert_eq!(browser.cookies(), ["a=1", "b=2; c=3"]);
        assert_eq!(browser.from, None);
    }
}
