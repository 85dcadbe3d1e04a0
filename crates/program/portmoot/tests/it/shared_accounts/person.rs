//! A person with a browser: follows the provider's redirects, keeps its cookies, and fills in its
//! forms.

use std::collections::BTreeMap;

use url::{Url, form_urlencoded};

use crate::http::Connection;

/// Steps of one sign-in at most.
const STEPS_MAX: usize = 30;

/// A browser and its cookies.
#[derive(Debug, Clone, Default)]
pub(crate) struct Person {
    cookies: BTreeMap<String, String>,
}

impl Person {
    /// Opens an address, and signs in as `ann` and allows what is asked. Returns the address
    /// elsewhere to which the provider sends the browser, or the last page without a form.
    #[track_caller]
    pub(crate) fn open(&mut self, url: &str) -> String {
        let mut url = Url::parse(url).unwrap();
        let provider = url.origin();
        let mut form = None;
        for _ in 0..STEPS_MAX {
            let (method, body): (_, String) = match form.take() {
                Some(body) => ("POST", body),
                None => ("GET", String::new()),
            };
            let cookies: Vec<String> = self
                .cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let cookies = cookies.join("; ");
            let host = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
            let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
            let mut connection = Connection::open(&host);
            let mut headers = vec![("content-type", "application/x-www-form-urlencoded")];
            if !cookies.is_empty() {
                headers.push(("cookie", cookies.as_str()));
            }
            // The provider spells its addresses with the name by which it is asked.
            let reply = connection.exchange_at(&host, method, path, &headers, &body);
            for (_, cookie) in reply
                .headers
                .iter()
                .filter(|(name, _)| name == "set-cookie")
            {
                let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
                match value {
                    "" => drop(self.cookies.remove(name)),
                    value => drop(self.cookies.insert(name.to_owned(), value.to_owned())),
                }
            }
            if let Some(location) = reply.header("location") {
                url = url.join(location).unwrap();
                if url.origin() != provider {
                    return url.into();
                }
                continue;
            }
            let Some(page) = reply.body.split_once("<form").map(|(_, rest)| rest) else {
                return reply.body;
            };
            let page = page.split("</form>").next().unwrap();
            let mut fields = form_urlencoded::Serializer::new(String::new());
            for input in page.split("<input").skip(1) {
                let input = input.split('>').next().unwrap();
                let name = attribute(input, "name").unwrap();
                let value = match name.as_str() {
                    "login" => "ann".to_owned(),
                    "password" => "any".to_owned(),
                    _ => attribute(input, "value").unwrap_or_default(),
                };
                fields.append_pair(&name, &value);
            }
            form = Some(fields.finish());
            let action = attribute(page, "action").unwrap_or_default();
            url = url.join(&action).unwrap();
        }
        panic!("the provider never ends: {url}");
    }
}

fn attribute(html: &str, name: &str) -> Option<String> {
    let rest = html.split_once(&format!(" {name}=\""))?.1;
    Some(rest.split('"').next()?.replace("&amp;", "&"))
}
