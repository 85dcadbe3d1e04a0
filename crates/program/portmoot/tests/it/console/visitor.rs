//! A person at the console without a browser: pages as they are sent, and forms.

use url::form_urlencoded::Serializer;

use super::Stage;
use crate::http::{Connection, Reply};
use crate::ws::token;

/// A person that has signed in.
pub(crate) struct Visitor<'s> {
    stage: &'s Stage,
    /// The person's own name of the machine, with the port.
    host: String,
    cookie: String,
}

impl Stage {
    /// A participant that has signed in with its token.
    #[track_caller]
    pub(crate) fn visitor(&self, who: &str) -> Visitor<'_> {
        let link = self.link(who);
        let host = link.strip_prefix("http://").unwrap();
        let mut visitor = Visitor {
            stage: self,
            host: host.split('/').next().unwrap().to_owned(),
            cookie: String::new(),
        };
        let entered = visitor.post("/login", &[("code", &token(who))]);
        assert_eq!(entered.status, 303, "{entered:?}");
        let cookie = entered.header("set-cookie").unwrap().split(';').next();
        visitor.cookie = cookie.unwrap().to_owned();
        visitor
    }
}

impl Visitor<'_> {
    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let path = format!("/console{path}");
        let headers = [headers, &[("cookie", &*self.cookie)]].concat();
        let mut connection = Connection::open(self.stage.gateway.address());
        connection.exchange_at(&self.host, method, &path, &headers, body)
    }

    /// The markup of a page.
    #[track_caller]
    pub(crate) fn page(&self, path: &str) -> String {
        let reply = self.send("GET", path, &[], "");
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        reply.body
    }

    /// Sends a form as a page of the console does.
    pub(crate) fn post(&self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let mut form = Serializer::new(String::new());
        form.extend_pairs(fields);
        if !self.cookie.is_empty() {
            form.append_pair("token", &field(&self.page(""), "token"));
        }
        let origin = format!("http://{}", self.host);
        let headers = [
            ("origin", &*origin),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        self.send("POST", path, &headers, &form.finish())
    }
}

/// The value of the first hidden field of this name.
#[track_caller]
pub(crate) fn field(page: &str, name: &str) -> String {
    let mark = format!("name=\"{name}\" value=\"");
    let rest = page
        .split_once(&mark)
        .unwrap_or_else(|| panic!("no {name}: {page}"));
    rest.1.split('"').next().unwrap().to_owned()
}

/// The text of the first element with this test id, and of all that follows it.
#[track_caller]
pub(crate) fn at(page: &str, testid: &str) -> String {
    let mark = format!("data-testid=\"{testid}\"");
    let rest = page
        .split_once(&mark)
        .unwrap_or_else(|| panic!("no {testid}: {page}"));
    text(rest.1.split_once('>').unwrap().1)
}

/// Markup without its tags.
pub(crate) fn text(markup: &str) -> String {
    let mut text = String::new();
    let mut rest = markup;
    while let Some((before, tag)) = rest.split_once('<') {
        text += before;
        rest = tag.split_once('>').map_or("", |(_, behind)| behind);
    }
    text += rest;
    let plain = [
        ("&quot;", "\""),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ];
    plain
        .iter()
        .fold(text, |text, (written, read)| text.replace(written, read))
}
