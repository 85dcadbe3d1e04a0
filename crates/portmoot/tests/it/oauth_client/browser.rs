//! Scripted browser: keeps the cookies of the gateway, fills in forms, follows nothing.

use std::collections::BTreeMap;

use crate::http::{Connection, Reply};

/// A browser and its cookies.
#[derive(Debug, Clone, Default)]
pub(super) struct Browser {
    pub(super) cookies: BTreeMap<String, String>,
}

impl Browser {
    /// Opens a URL of the gateway, at its path.
    #[track_caller]
    pub(super) fn open(&mut self, address: &str, url: &str) -> Reply {
        self.visit(address, "GET", path_of(url), &[], "")
    }

    /// Submits the first form of a page with these further fields, as a browser does.
    #[track_caller]
    pub(super) fn submit(&mut self, address: &str, page: &Reply, more: &[(&str, &str)]) -> Reply {
        self.submit_with(address, page, more, &[("sec-fetch-site", "same-origin"), ("origin", "null")])
    }

    #[track_caller]
    pub(super) fn submit_with(
        &mut self,
        address: &str,
        page: &Reply,
        more: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Reply {
        let (action, hidden) = form(page);
        let mut fields: Vec<(&str, &str)> =
            hidden.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        fields.extend(more);
        let mut headers = headers.to_vec();
        headers.push(("content-type", "application/x-www-form-urlencoded"));
        self.visit(address, "POST", &action, &headers, &encoded(&fields))
    }

    pub(super) fn visit(
        &mut self,
        address: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let cookies = cookies.join("; ");
        let mut headers = headers.to_vec();
        if !cookies.is_empty() {
            headers.push(("cookie", &cookies));
        }
        let reply = Connection::open(address).exchange(method, path, &headers, body);
        for (_, cookie) in reply.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        reply
    }
}

/// The path and query of a URL.
pub(super) fn path_of(url: &str) -> &str {
    match url.split_once("://") {
        Some((_, rest)) => &rest[rest.find('/').unwrap()..],
        None => url,
    }
}

/// The action and the hidden fields of the first form.
#[track_caller]
pub(super) fn form(page: &Reply) -> (String, Vec<(String, String)>) {
    let form = page.body.split_once("<form").unwrap_or_else(|| panic!("no form: {page:?}")).1;
    let form = form.split("</form>").next().unwrap();
    let inputs = form.split("<input").skip(1).filter(|input| input.contains("type=\"hidden\""));
    let hidden = inputs.map(|input| (attribute(input, "name"), attribute(input, "value")));
    (attribute(form, "action"), hidden.collect())
}

fn attribute(html: &str, name: &str) -> String {
    let rest = html.split_once(&format!("{name}=\"")).unwrap().1;
    rest.split('"').next().unwrap().replace("&amp;", "&")
}

/// The parameters of a query or form.
pub(super) fn pairs(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut out) = (text.bytes(), Vec::new());
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                out.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            }
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).unwrap()
}

fn encoded(parameters: &[(&str, &str)]) -> String {
    let escape = |text: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        text.bytes()
            .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
            .collect::<String>()
    };
    let pairs: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
    pairs.join("&")
}
