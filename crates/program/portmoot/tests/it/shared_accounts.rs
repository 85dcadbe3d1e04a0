//! Accounts that all callers of a server share: a real authorization server (npm's
//! `oidc-provider`), an MCP server that checks tokens, a person with a browser, and the commands of
//! an operator.

mod bad_provider;
mod core_files;
mod guarded;
mod hostile;
mod killed;
mod login;
mod machine;
pub(crate) mod person;
pub(crate) mod refresh;
mod rights;
mod searched;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::authorization::provider::Provider;
use crate::home::{Home, Ran};
use crate::http::{Connection, Reply};
use crate::support::{Client, Gateway, is_alive, until};
use guarded::Guarded;
use person::Person;

/// The key that seals what is kept, as its file has it.
const KEY: &str = "5ea1ed5ea1ed5ea1ed5ea1ed5ea1ed5ea1ed5ea1ed5ea1ed5ea1ed5ea1ed5ea1";

/// A gateway with one server, `jira`, that wants a token of the provider.
struct Site {
    home: Home,
    gateway: Gateway,
    provider: Provider,
    guarded: Guarded,
    /// What earlier processes of the gateway have logged.
    logs: String,
}

fn config(home: &Home, guarded: &Guarded, more: &str) -> String {
    let key = home.secret("key", KEY);
    format!(
        "[server]\nkey_file = {key:?}\n[topics.main]\n[servers.jira]\nurl = {:?}\nera = \"legacy\"\n\
         [servers.jira.auth]\n{more}\n",
        guarded.url()
    )
}

impl Site {
    fn start() -> Site {
        Site::with("", 600)
    }

    /// With these further lines of `[servers.jira.auth]` and what follows it; access tokens are
    /// valid for `ttl` seconds.
    fn with(more: &str, ttl: u64) -> Site {
        let guarded = Guarded::start();
        let provider = Provider::of(&[guarded.url()], ttl);
        guarded.set_provider(provider.address());
        Site::of(guarded, provider, more)
    }

    fn of(guarded: Guarded, provider: Provider, more: &str) -> Site {
        Site::at(Home::new(), guarded, provider, more)
    }

    fn at(home: Home, guarded: Guarded, provider: Provider, more: &str) -> Site {
        let gateway = Gateway::start(&home, &config(&home, &guarded, more));
        Site {
            home,
            gateway,
            provider,
            guarded,
            logs: String::new(),
        }
    }

    /// Starts the gateway again, after `kill -9` unless it is dead already.
    #[track_caller]
    fn restart(&mut self) {
        let pid = self.gateway.pid();
        if is_alive(pid.into()) {
            self.gateway.signal("KILL");
        }
        self.gateway.wait();
        self.logs += &self.gateway.log();
        self.gateway = Gateway::start_with(&self.home, &["--config", "portmoot.toml"]);
    }

    /// Has the provider act on this path in another way.
    fn fault(&self, path: &str, kind: &str) {
        self.provider
            .control(&json!({ "op": "fault", "path": path, "kind": kind }));
    }

    /// Has the provider answer this on a path.
    fn answers(&self, path: &str, status: u16, body: &str) {
        let order = json!({ "op": "fault", "path": path, "kind": "answer", "status": status, "body": body });
        self.provider.control(&order);
    }

    /// Ends all faults; what was kept stays so.
    fn clear_faults(&self) {
        self.provider.control(&json!({ "op": "heal" }));
    }

    /// Ends all faults; what was kept goes on.
    fn clear(&self) {
        self.provider.control(&json!({ "op": "clear" }));
    }

    /// Waits until the provider keeps this many requests and answers.
    #[track_caller]
    fn wait_kept(&self, count: u64) {
        until("the provider keeps an answer", || {
            (self.provider.asked("kept") >= count).then_some(())
        });
    }

    /// What the provider has issued so far, with the name of each.
    fn issued(&self) -> Vec<(String, String)> {
        let said = self.provider.control(&json!({ "op": "secrets" }));
        serde_json::from_value(said["secrets"].clone()).unwrap()
    }

    /// All that must be found nowhere: what the provider has issued.
    fn secrets(&self) -> Vec<String> {
        self.issued()
            .into_iter()
            .map(|(_, secret)| secret)
            .collect()
    }

    /// What the provider has issued under this name, the oldest first.
    fn all_issued(&self, wanted: &str) -> Vec<String> {
        let wanted = |(name, secret): (String, String)| (name == wanted).then_some(secret);
        self.issued().into_iter().filter_map(wanted).collect()
    }

    /// Token requests at the provider so far.
    fn token_requests(&self) -> u64 {
        self.provider.asked("/token")
    }

    /// Renews a token with the credentials of the gateway; the provider's answer.
    fn renew_as_gateway(&self, client_id: &str, token: &str) -> Value {
        let secret = self.all_issued("client_secret").pop().unwrap();
        let basic = format!("Basic {}", STANDARD.encode(format!("{client_id}:{secret}")));
        let form = format!("grant_type=refresh_token&refresh_token={token}");
        let headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("authorization", basic.as_str()),
        ];
        Connection::open(self.provider.address())
            .exchange("POST", "/token", &headers, &form)
            .json()
    }

    /// A request to the API.
    fn post(&self, path: &str, token: &str, body: &str) -> Reply {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("content-type", "application/json"),
            ("authorization", bearer.as_str()),
        ];
        Connection::open(self.gateway.address()).exchange("POST", path, &headers, body)
    }

    /// The account, as `servers auth` shows it.
    #[track_caller]
    fn account(&self) -> Value {
        let printed = self
            .home
            .run(&["servers", "auth", "jira", "--json"])
            .expect(0)
            .stdout;
        let printed: Value = serde_json::from_str(&printed).unwrap();
        printed["accounts"][0].clone()
    }

    /// Waits until the account has this state.
    #[track_caller]
    fn wait_for(&self, state: &str) -> Value {
        until(&format!("the account is {state}"), || {
            Some(self.account()).filter(|account| account["state"] == state)
        })
    }

    /// Begins a command that waits for a person.
    #[track_caller]
    fn begin(&self, args: &[&str]) -> Asking {
        Asking::begin(&self.home, args)
    }

    /// Signs in by pasting.
    #[track_caller]
    fn sign_in(&self) {
        let (asking, back) = self.asked();
        asking.paste(&back).expect(0);
    }

    /// A sign-in by pasting, and the address that is to be pasted.
    #[track_caller]
    fn asked(&self) -> (Asking, String) {
        let asking = self.begin(&["servers", "login", "jira", "--paste"]);
        let back = Person::default().open(&asking.url);
        (asking, back)
    }

    /// Signs in, and returns a client that sees the tools.
    #[track_caller]
    fn signed_in(&self) -> Client {
        self.sign_in();
        self.wait_listed()
    }

    /// Has the server accept no token any more that it has accepted, and calls it.
    #[track_caller]
    fn call_with_ended_token(&self, client: &Client) -> Result<String, String> {
        self.guarded.expire();
        self.call(client)
    }

    /// Waits until the tools of `jira` are listed.
    #[track_caller]
    fn wait_listed(&self) -> Client {
        let client = Client::plain(&self.gateway);
        until("the tools are listed", || {
            client
                .names("tools")
                .contains(&"jira_search".to_owned())
                .then_some(())
        });
        client
    }

    /// Calls the tool of `jira`; the code of the refusal, or what the server said.
    #[track_caller]
    fn call(&self, client: &Client) -> Result<String, String> {
        let answer = client.ask(
            "tools/call",
            json!({ "name": "jira_search", "arguments": {} }),
        );
        match answer["result"]["content"][0]["text"].as_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(answer["error"]["data"]["code"]
                .as_str()
                .unwrap_or_else(|| panic!("{answer}"))
                .to_owned()),
        }
    }
}

/// A command that has printed an address and waits.
pub(crate) struct Asking {
    child: Child,
    pub(crate) url: String,
    /// What it has printed until then.
    said: String,
    rest: JoinHandle<String>,
}

impl Asking {
    #[track_caller]
    pub(crate) fn begin(home: &Home, args: &[&str]) -> Asking {
        let mut command = home.command(args);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let mut said = String::new();
        let url = loop {
            let line = lines
                .next()
                .unwrap_or_else(|| panic!("{args:?} ended: {said}"));
            said += &format!("{line}\n");
            let mut words = line.split(' ').filter(|word| word.starts_with("http://"));
            if let Some(url) = words.next() {
                break url.trim_end_matches(',').to_owned();
            }
        };
        let rest = std::thread::spawn(move || lines.map(|line| line + "\n").collect());
        Asking {
            child,
            url,
            said,
            rest,
        }
    }

    /// Types a line, and waits for the end.
    fn paste(mut self, line: &str) -> Ran {
        writeln!(self.child.stdin.take().unwrap(), "{line}").unwrap();
        self.end()
    }

    pub(crate) fn end(mut self) -> Ran {
        let mut stdout = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut stdout)
            .unwrap();
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        Ran {
            code,
            stdout,
            stderr: self.said + &self.rest.join().unwrap(),
        }
    }
}
