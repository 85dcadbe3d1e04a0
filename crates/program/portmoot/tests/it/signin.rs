//! The gateway's own authorization server, over the wire: a scripted browser plays the person.

mod audience;
mod browser;
mod conformance;
mod cookies;
pub(crate) mod documents;
mod flow;
mod framing;
mod killed;
mod management;
mod next_bearer;
mod pages;
mod refresh;
mod third_party;

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::home::Home;
use crate::html::encoded;
use crate::http::{Connection, Events, Reply};
use crate::support::{Gateway, fixture, until};
use browser::{Browser, Visit};

/// The proof of RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
/// Where the clients of these tests are sent back to.
const REDIRECT: &str = "http://127.0.0.1:33418/callback";

/// A gateway at which clients sign in.
struct Site {
    home: Home,
    gateway: Gateway,
    port: u16,
    /// The address to which requests go, if it is not the gateway's.
    front: Option<String>,
}

/// A port that nothing listens on.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

impl Site {
    /// With these keys of `[login]`, and this further configuration.
    fn start(login: &str, more: &str) -> Site {
        let (home, port) = (Home::new(), free_port());
        home.write("portmoot.toml", &config(port, login, more));
        let gateway = serve(&home, port);
        gateway.ready("a");
        Site {
            home,
            gateway,
            port,
            front: None,
        }
    }

    /// Behind a proxy that speaks TLS under this address.
    fn behind(public_url: &str) -> Site {
        let (home, port) = (Home::new(), free_port());
        let own = format!("http://127.0.0.1:{port}");
        home.write(
            "portmoot.toml",
            &config(port, "", "").replace(&own, public_url),
        );
        let gateway = serve(&home, port);
        gateway.ready("a");
        Site {
            home,
            gateway,
            port,
            front: None,
        }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The same gateway after `kill -9`.
    fn killed(self) -> Site {
        let Site {
            home,
            gateway,
            port,
            ..
        } = self;
        // Dropping it kills the process.
        drop(gateway);
        let gateway = serve(&home, port);
        gateway.ready("a");
        Site {
            home,
            gateway,
            port,
            front: None,
        }
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let address = self.front.as_deref().unwrap_or(self.gateway.address());
        Connection::open(address).exchange(method, path, headers, body)
    }

    fn form(&self, path: &str, form: &[(&str, &str)]) -> Reply {
        let body = encoded(form);
        self.request(
            "POST",
            path,
            &[("content-type", "application/x-www-form-urlencoded")],
            &body,
        )
    }

    /// Registers a client with these redirect URIs, and returns its id.
    fn register(&self, uris: &[&str]) -> String {
        let body = json!({ "client_name": "Editor", "redirect_uris": uris }).to_string();
        let reply = self.request(
            "POST",
            "/oauth/register",
            &[("content-type", "application/json")],
            &body,
        );
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json()["client_id"].as_str().unwrap().to_owned()
    }

    /// A one-time code for a participant, from the command line.
    fn one_time_code(&self, name: &str) -> String {
        let printed = self
            .home
            .run(&["login", "code", name, "--json"])
            .expect(0)
            .stdout;
        let printed: Value = serde_json::from_str(&printed).unwrap();
        printed["code"].as_str().unwrap().to_owned()
    }

    /// The command that prints a one-time code, as `signs_in.py` takes it.
    fn codes(&self, name: &str) -> String {
        let home = self.home.path().display();
        format!(
            "!cd {home} && HOME={home} {} login code {name} --json",
            env!("CARGO_BIN_EXE_portmoot")
        )
    }

    /// What a browser is sent back with when a participant signs in and allows what the client
    /// asks.
    fn allowed(
        &self,
        browser: &mut Browser,
        client: &str,
        name: &str,
        more: &[(&str, &str)],
    ) -> Visit {
        let page = browser.authorize(self, client, more);
        let page = if page.has_field("code") {
            browser.submit(self, &page, &[("code", &self.one_time_code(name))])
        } else {
            page
        };
        browser.submit(self, &page, &[("decision", "allow")])
    }

    /// The tokens for a code.
    fn exchange(&self, client: &str, code: &str, more: &[(&str, &str)]) -> Reply {
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
        ];
        form.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
        form.extend(more);
        self.form("/oauth/token", &form)
    }

    /// The tokens for a refresh token.
    fn refresh(&self, client: &str, token: &str) -> Reply {
        self.form(
            "/oauth/token",
            &[
                ("grant_type", "refresh_token"),
                ("client_id", client),
                ("refresh_token", token),
            ],
        )
    }

    /// A client that has signed in as a participant: its id and tokens.
    fn signed_in(&self, name: &str, more: &[(&str, &str)]) -> (String, Tokens) {
        let client = self.register(&[REDIRECT]);
        let code = self
            .allowed(&mut Browser::default(), &client, name, more)
            .parameter("code");
        let tokens = Tokens::of(&self.exchange(&client, &code, &[]));
        (client, tokens)
    }

    /// The status of `initialize` at an endpoint with this token.
    fn initialize(&self, path: &str, token: &str) -> u16 {
        self.post(path, token, &initialize_message()).status
    }

    fn post(&self, path: &str, token: &str, message: &Value) -> Reply {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("authorization", bearer.as_str()),
        ];
        self.request("POST", path, &headers, &message.to_string())
    }

    /// A session that is opened with a token, and its event stream.
    #[track_caller]
    fn streamed(&self, token: &str) -> (String, Events) {
        let opened = self.post("/mcp", token, &initialize_message());
        let session = opened.header("mcp-session-id").unwrap().to_owned();
        let bearer = format!("Bearer {token}");
        let headers = [
            ("accept", "text/event-stream"),
            ("authorization", bearer.as_str()),
            ("mcp-session-id", session.as_str()),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let stream = Connection::open(self.gateway.address()).stream("GET", "/mcp", &headers, "");
        assert_eq!(stream.head().status, 200);
        (session, stream)
    }

    /// Waits for an entry of the audit log about sign-ins: participant, verdict, and how its reason
    /// begins. It has the address of the test.
    #[track_caller]
    fn recorded(&self, from: &str, verdict: &str, why: &str) {
        until(&format!("{from} {verdict} {why}"), || {
            let audited = self.audited();
            let mut entries = audited.iter();
            let is_it = |entry: &&Value| {
                entry["from"] == from
                    && entry["verdict"] == verdict
                    && entry["why"]
                        .as_str()
                        .is_some_and(|reason| reason.starts_with(why))
            };
            let entry = entries.find(is_it)?;
            assert_eq!(entry["address"], "127.0.0.1", "{entry}");
            Some(())
        });
    }

    /// The number of entries about sign-ins whose reasons begin so.
    fn audited_count(&self, why: &str) -> usize {
        let reasons = self.reasons();
        reasons.iter().filter(|one| one.starts_with(why)).count()
    }

    /// The reasons in the entries of the audit log about sign-ins that are on disk.
    fn reasons(&self) -> Vec<String> {
        let reason = |entry: &Value| entry["why"].as_str().unwrap_or_default().to_owned();
        self.audited().iter().map(reason).collect()
    }

    /// Entries of the audit log about sign-ins that are on disk.
    fn audited(&self) -> Vec<Value> {
        let printed = self
            .home
            .run(&["audit", "query", "portmoot/login", "--json"])
            .expect(0)
            .stdout;
        let answer: Value = serde_json::from_str(&printed).unwrap();
        answer["entries"].as_array().unwrap().clone()
    }
}

/// The configuration of a gateway at which clients sign in under this port.
pub(crate) fn config_at(port: u16) -> String {
    config(port, "", "")
}

/// Signs a client in at a gateway whose nodes this port leads to in turn. The home is that of one
/// of the nodes, which is given too.
#[track_caller]
pub(crate) fn signs_in_through(home: Home, gateway: Gateway, port: u16) {
    let front = Some(format!("127.0.0.1:{port}"));
    let site = Site {
        home,
        gateway,
        port,
        front,
    };
    let client = site.register(&[REDIRECT]);
    let back = site.allowed(&mut Browser::default(), &client, "ann", &[]);
    let code = back.parameter("code");
    let tokens = Tokens::of(&site.exchange(&client, &code, &[]));
    for _ in 0..4 {
        assert_eq!(site.initialize("/mcp", &tokens.access), 200);
    }
    let next = Tokens::of(&site.refresh(&client, &tokens.refresh));
    for _ in 0..2 {
        assert_eq!(site.initialize("/mcp", &next.access), 200);
    }
    // A code is used once, at whichever node: its second use ends what came of it.
    assert_eq!(site.exchange(&client, &code, &[]).status, 400);
    for token in [&tokens.access, &next.access] {
        for _ in 0..4 {
            assert_eq!(site.initialize("/mcp", token), 401);
        }
    }
}

/// Tokens as a client gets them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tokens {
    access: String,
    refresh: String,
}

impl Tokens {
    #[track_caller]
    fn of(reply: &Reply) -> Tokens {
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        let answer = reply.json();
        assert_eq!(answer["token_type"], "Bearer");
        let text = |name: &str| answer[name].as_str().unwrap().to_owned();
        let (access, refresh) = (text("access_token"), text("refresh_token"));
        assert!(access.starts_with("pm_at_") && refresh.starts_with("pm_rt_"));
        Tokens { access, refresh }
    }
}

fn config(port: u16, login: &str, more: &str) -> String {
    format!(
        "[server]\npublic_url = \"http://127.0.0.1:{port}\"\n[login]\nenabled = true\n{login}\n\
         [topics.main]\n[topics.ops]\n\
         [participants.ann]\ncapabilities = [\"mcp/*\", \"chat\"]\ntopics = [\"main\", \"ops\"]\n\
         [participants.bob]\ncapabilities = [\"mcp/request:tools/*\"]\n{more}\n{}",
        fixture("a", &[]),
    )
}

fn serve(home: &Home, port: u16) -> Gateway {
    let listen = format!("127.0.0.1:{port}");
    Gateway::serve(home.command(&["serve", "--listen", &listen, "--config", "portmoot.toml"]))
}

fn initialize_message() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}})
}
