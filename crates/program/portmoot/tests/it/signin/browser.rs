//! Scripted browser: keeps cookies, fills in forms, follows nothing.

use std::collections::BTreeMap;

use super::{CHALLENGE, REDIRECT, Site};
use crate::html::{decoded, encoded, form};
use crate::http::Reply;

/// A browser and its cookies.
#[derive(Debug, Clone, Default)]
pub(super) struct Browser {
    pub(super) cookies: BTreeMap<String, String>,
}

/// A page, or a redirect.
#[derive(Debug, Clone)]
pub(super) struct Visit {
    pub(super) reply: Reply,
}

impl Browser {
    /// Opens the authorization endpoint as a client has it opened. A parameter in `more` replaces
    /// the usual one.
    pub(super) fn authorize(&mut self, site: &Site, client: &str, more: &[(&str, &str)]) -> Visit {
        self.authorize_with(site, client, more, &[])
    }

    pub(super) fn authorize_with(
        &mut self,
        site: &Site,
        client: &str,
        more: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Visit {
        let mut query = vec![
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", REDIRECT),
            ("state", "the state"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ];
        query.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
        query.extend(more.iter().filter(|(_, value)| !value.is_empty()));
        self.visit(
            site,
            "GET",
            &format!("/oauth/authorize?{}", encoded(&query)),
            headers,
            "",
        )
    }

    /// Opens a page.
    pub(super) fn open(&mut self, site: &Site, path: &str) -> Visit {
        self.visit(site, "GET", path, &[], "")
    }

    /// Submits the first form of a page with these further fields.
    #[track_caller]
    pub(super) fn submit(&mut self, site: &Site, page: &Visit, more: &[(&str, &str)]) -> Visit {
        self.submit_with(
            site,
            page,
            more,
            &[("sec-fetch-site", "same-origin"), ("origin", "null")],
        )
    }

    #[track_caller]
    pub(super) fn submit_with(
        &mut self,
        site: &Site,
        page: &Visit,
        more: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Visit {
        let (action, hidden) = page.form();
        let mut fields: Vec<(&str, &str)> = hidden
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        fields.extend(more);
        let mut headers = headers.to_vec();
        headers.push(("content-type", "application/x-www-form-urlencoded"));
        self.visit(site, "POST", &action, &headers, &encoded(&fields))
    }

    fn visit(
        &mut self,
        site: &Site,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Visit {
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let cookies = cookies.join("; ");
        let mut headers = headers.to_vec();
        if !cookies.is_empty() {
            headers.push(("cookie", &cookies));
        }
        let reply = site.request(method, path, &headers, body);
        for (_, cookie) in reply
            .headers
            .iter()
            .filter(|(name, _)| name == "set-cookie")
        {
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        Visit { reply }
    }
}

impl Visit {
    /// Where the browser is sent.
    #[track_caller]
    pub(super) fn location(&self) -> &str {
        self.reply
            .header("location")
            .unwrap_or_else(|| panic!("no redirect: {:?}", self.reply))
    }

    /// A parameter of the redirect, decoded; empty if it is missing.
    #[track_caller]
    pub(super) fn parameter(&self, wanted: &str) -> String {
        let query = self
            .location()
            .split_once('?')
            .map_or("", |(_, query)| query);
        let found = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(name, _)| *name == wanted);
        found.map_or_else(String::new, |(_, value)| decoded(value))
    }

    /// The action and the hidden fields of the first form.
    #[track_caller]
    pub(super) fn form(&self) -> (String, Vec<(String, String)>) {
        form(&self.reply)
    }

    /// Whether the page has a field of this name to fill in.
    pub(super) fn has_field(&self, name: &str) -> bool {
        self.reply.body.contains(&format!("name=\"{name}\""))
    }
}
