//! Scripted browser: keeps the cookies of the gateway, fills in forms, follows nothing.

use std::collections::BTreeMap;

use crate::html::{encoded, form};
use crate::http::{Connection, Reply};

/// A browser and its cookies.
#[derive(Debug, Clone, Default)]
pub(crate) struct Browser {
    pub(crate) cookies: BTreeMap<String, String>,
}

impl Browser {
    /// Opens a URL of the gateway, at its path.
    #[track_caller]
    pub(crate) fn open(&mut self, address: &str, url: &str) -> Reply {
        self.visit(address, "GET", path_of(url), &[], "")
    }

    /// Submits the first form of a page with these further fields, as a browser does.
    #[track_caller]
    pub(crate) fn submit(&mut self, address: &str, page: &Reply, more: &[(&str, &str)]) -> Reply {
        self.submit_with(
            address,
            page,
            more,
            &[("sec-fetch-site", "same-origin"), ("origin", "null")],
        )
    }

    #[track_caller]
    pub(crate) fn submit_with(
        &mut self,
        address: &str,
        page: &Reply,
        more: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Reply {
        let (action, hidden) = form(page);
        let mut fields: Vec<(&str, &str)> = hidden
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        fields.extend(more);
        let mut headers = headers.to_vec();
        headers.push(("content-type", "application/x-www-form-urlencoded"));
        self.visit(address, "POST", &action, &headers, &encoded(&fields))
    }

    pub(crate) fn visit(
        &mut self,
        address: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
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
        let reply = Connection::open(address).exchange(method, path, &headers, body);
        for (_, cookie) in reply
            .headers
            .iter()
            .filter(|(name, _)| name == "set-cookie")
        {
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        reply
    }
}

/// The path and query of a URL.
pub(crate) fn path_of(url: &str) -> &str {
    match url.split_once("://") {
        Some((_, rest)) => &rest[rest.find('/').unwrap()..],
        None => url,
    }
}
