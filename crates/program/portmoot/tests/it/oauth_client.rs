//! Servers at which each caller has an account of its own: connect links, connect pages, the
//! answers of calls, lists.

mod answers;
pub(crate) mod browser;
mod changed;
mod crossed;
mod documents;
mod exchanged;
mod foreign;
mod inspector;
mod jobs;
mod killed;
mod lists;
mod next_bearer;
mod own_lists;
mod pages;
mod providers;
mod redirects;
mod service;
mod tasks;

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::support::{Client, Gateway, until};
use browser::Browser;
use service::Service;

const ANN: &str = "the-token-of-ann-is-secret";
const BOB: &str = "the-token-of-bob-is-secret";

/// A gateway with the participants `ann` and `bob`, and a server `jira` at which each has an
/// account.
pub(crate) struct Site {
    pub(crate) home: Home,
    pub(crate) gateway: Gateway,
    service: Service,
}

impl Site {
    fn start() -> Site {
        Site::with("", "")
    }

    /// With these further lines of `[servers.jira.auth]`, and this further configuration.
    fn with(auth: &str, more: &str) -> Site {
        Site::with_env(auth, more, &[])
    }

    /// The same with these further variables.
    pub(crate) fn with_env(auth: &str, more: &str, env: &[(&str, &str)]) -> Site {
        let participants = "[participants.ann]\ntoken_env = \"ANN\"\ncapabilities = [\"mcp/*\", \"chat\"]\n\
             [participants.bob]\ntoken_env = \"BOB\"\ncapabilities = [\"mcp/*\", \"chat\"]\n";
        Site::in_home(env, "", auth, &format!("{participants}{more}"))
    }

    /// With these lines of `[server]`.
    fn of(server: &str, auth: &str, more: &str) -> Site {
        Site::in_home(&[], server, auth, more)
    }

    fn in_home(env: &[(&str, &str)], server: &str, auth: &str, more: &str) -> Site {
        Site::at(Service::start(), env, server, auth, more)
    }

    /// With this service, further variables, and lines of `[server]`.
    fn at(service: Service, env: &[(&str, &str)], server: &str, auth: &str, more: &str) -> Site {
        let home = Home::new().env("ANN", ANN).env("BOB", BOB);
        let home = env
            .iter()
            .fold(home, |home, (name, value)| home.env(name, value));
        let key = home.write("key", &"5ea1ed0f".repeat(8));
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        let config = format!(
            "[server]\nkey_file = {key:?}\n{server}\n[topics.main]\n[servers.jira]\nurl = {:?}\nera = \"legacy\"\n\
             [servers.jira.auth]\naccount = \"caller\"\n{auth}\n{more}\n",
            service.url()
        );
        let gateway = Gateway::start(&home, &config);
        Site {
            home,
            gateway,
            service,
        }
    }

    /// Ends the gateway by `kill -9`, and starts it again.
    #[track_caller]
    fn restart(&mut self) {
        self.gateway.signal("KILL");
        self.gateway.wait();
        self.gateway = Gateway::start_with(&self.home, &["--config", "portmoot.toml"]);
    }

    fn address(&self) -> &str {
        self.gateway.address()
    }

    /// A one-time code for the connect page, from the command line.
    #[track_caller]
    fn code(&self, token: &str) -> String {
        let url = self.gateway.url();
        let ran = self.home.run(&[
            "servers",
            "connect-code",
            "--json",
            "--url",
            &url,
            "--token",
            token,
        ]);
        let printed: Value = serde_json::from_str(&ran.expect(0).stdout).unwrap();
        printed["code"].as_str().unwrap().to_owned()
    }

    /// The connect link in the words of a refused call.
    #[track_caller]
    fn link(&self, client: &Client) -> String {
        let answer = client.call("jira_whoami", json!({}));
        assert_eq!(answer["isError"], true, "{answer}");
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert!(
            text.starts_with("jira needs your permission. Open http://127.0.0.1:"),
            "{text}"
        );
        let link = text
            .split(' ')
            .find(|word| word.starts_with("http://"))
            .unwrap();
        let id = link
            .strip_prefix(&format!("{}/connect/", self.gateway.url()))
            .unwrap();
        assert!(
            id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{link}"
        );
        link.to_owned()
    }

    /// The consent page of a link in a browser that shows to be this participant's.
    #[track_caller]
    fn consent(&self, browser: &mut Browser, link: &str, token: &str) -> Reply {
        let page = browser.open(self.address(), link);
        assert_eq!(page.status, 200, "{page:?}");
        let page = browser.submit(self.address(), &page, &[("code", &self.code(token))]);
        assert!(page.body.contains("name=\"decision\""), "{page:?}");
        page
    }

    /// Opens a link as a participant, consents, and signs in as a user of the service. Returns the
    /// last page.
    #[track_caller]
    fn connect(&self, link: &str, token: &str, user: &str) -> Reply {
        let mut browser = Browser::default();
        let page = self.consent(&mut browser, link, token);
        let sent = browser.submit(self.address(), &page, &[("decision", "allow")]);
        assert_eq!(sent.status, 303, "{sent:?}");
        let back = self.service.approve(sent.header("location").unwrap(), user);
        let page = browser.open(self.address(), &back);
        assert_eq!(page.status, 200, "{page:?}");
        assert!(page.body.contains("Connected"), "{page:?}");
        page
    }

    /// Signs a participant in at the server by the API, as `portmoot servers login` does.
    #[track_caller]
    fn login(&self, token: &str, user: &str) {
        let begun = self
            .post(token, "/api/v1/servers/jira/login", &json!({ "port": 1 }))
            .json();
        let back = self.service.approve(begun["url"].as_str().unwrap(), user);
        let done = self.post(
            token,
            "/api/v1/servers/jira/login/complete",
            &json!({ "callback": back }),
        );
        assert_eq!(done.status, 200, "{done:?}");
    }

    /// A person signs in as this user of the service; returns the address to which the browser is sent.
    #[track_caller]
    pub(crate) fn approve(&self, authorize: &str, user: &str) -> String {
        self.service.approve(authorize, user)
    }

    /// A request of a participant to the API.
    fn post(&self, token: &str, path: &str, body: &Value) -> Reply {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("content-type", "application/json"),
            ("authorization", bearer.as_str()),
        ];
        Connection::open(self.address()).exchange("POST", path, &headers, &body.to_string())
    }

    /// Gives a participant's account back.
    #[track_caller]
    fn logout(&self, token: &str) {
        let left = self.post(token, "/api/v1/servers/jira/logout", &json!({}));
        assert_eq!(left.status, 200, "{left:?}");
    }

    /// A client of a participant that has connected its account.
    #[track_caller]
    fn connected(&self, token: &str, user: &str) -> Client {
        let client = Client::of(&self.gateway, token);
        self.connect(&self.link(&client), token, user);
        client
    }

    /// Waits for an entry of the audit log about accounts: participant, verdict, and how its reason
    /// begins.
    #[track_caller]
    fn recorded(&self, from: &str, verdict: &str, why: &str) {
        until(&format!("{from} {verdict} {why}"), || {
            let printed = self
                .home
                .run(&["audit", "query", "portmoot/upstream", "--json"])
                .expect(0)
                .stdout;
            let answer: Value = serde_json::from_str(&printed).unwrap();
            let entries = answer["entries"].as_array().unwrap().clone();
            let is_it = |entry: &Value| {
                entry["from"] == from
                    && entry["verdict"] == verdict
                    && entry["why"]
                        .as_str()
                        .is_some_and(|reason| reason.starts_with(why))
            };
            entries.iter().any(is_it).then_some(())
        });
    }
}

/// The text of a result.
fn text(result: &Value) -> &str {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"))
}
