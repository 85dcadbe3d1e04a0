//! A gateway with a scripted server that counts its calls over restarts, an agent that may only
//! propose, and reviewers.

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::Reply;
use crate::peer::{Peer, answer, small, tool};
use crate::stage::{ECHO, FULFIL, api, echoes, fulfilment, names, pages_of};
use crate::support::{Gateway, until};
use crate::ws::{Socket, people, token};

/// What the agent may do.
pub(crate) const PROPOSES: &[&str] = &["mcp/proposal:*", "chat"];
/// What the boss and the chief may do.
const FULL: &[&str] = &["mcp/*", "chat", "portmoot/*"];

/// The query of a socket that receives only what is for its participant.
pub(crate) const DIRECTED: &str = "?mode=directed&echo=false";

/// The gateway, its home, its configuration and its server, `tools`, whose one tool is `echo`.
pub(crate) struct Reviewed {
    pub(crate) home: Home,
    pub(crate) gateway: Gateway,
    server: Peer,
    config: String,
}

impl Reviewed {
    /// A gateway with the usual participants and these.
    pub(crate) fn new(others: &[(&str, &[&str])]) -> Reviewed {
        Reviewed::configured(others, |config| config)
    }

    /// The same, with a configuration that was changed.
    pub(crate) fn configured(
        others: &[(&str, &[&str])],
        change: impl FnOnce(String) -> String,
    ) -> Reviewed {
        let server = Peer::stdio(|message| {
            let said = match message["method"].as_str() {
                Some("tools/call") => {
                    let text = &message["params"]["arguments"]["text"];
                    let content = json!([{ "type": "text", "text": text }]);
                    Some(answer(message, &json!({ "content": content }).to_string()))
                }
                _ => small(message, &format!("[{}]", tool("echo"))),
            };
            said.into_iter().map(String::into_bytes).collect()
        });
        let usual: [(&str, &[&str]); 3] = [("agent", PROPOSES), ("boss", FULL), ("chief", FULL)];
        let (home, config) = people(&[&usual, others].concat());
        let config = change(config + &server.child("tools", "tools"));
        let gateway = Gateway::start(&home, &config);
        gateway.ready("tools");
        Reviewed {
            home,
            gateway,
            server,
            config,
        }
    }

    /// The number of calls that the server has received, over all restarts.
    pub(crate) fn executed(&self) -> usize {
        self.server.calls("echo")
    }

    pub(crate) fn enter(&self, name: &str) -> Socket {
        Socket::enter(&self.gateway, name, DIRECTED)
    }

    /// Ends the gateway with this signal and starts it again.
    pub(crate) fn restart(&mut self, signal: &str) {
        self.gateway.signal(signal);
        self.gateway.wait();
        self.gateway = Gateway::start(&self.home, &self.config);
        self.gateway.ready("tools");
    }

    /// Changes the configuration. A running gateway takes it over if it is reloaded.
    pub(crate) fn change(&mut self, old: &str, new: &str) {
        assert!(self.config.contains(old), "{old}: {}", self.config);
        self.config = self.config.replace(old, new);
        self.home.write("portmoot.toml", &self.config);
    }

    pub(crate) fn reload(&self) {
        self.gateway.signal("HUP");
    }

    /// A proposal of an envelope that is on disk. The socket leaves.
    #[track_caller]
    pub(crate) fn propose_and_leave(&self, mut agent: Socket, envelope: &str) {
        propose(&mut agent, envelope);
        agent.leave();
    }

    /// The proposal that an envelope made, pending or over.
    #[track_caller]
    pub(crate) fn shown(&self, envelope: &str) -> Value {
        let page = |query: &str| {
            let path = format!("?all=true&{query}");
            self.api("boss", "GET", &path, &Value::Null).json()
        };
        let mut all = pages_of(page).into_iter();
        all.find(|one| one["envelope"] == envelope)
            .unwrap_or_else(|| panic!("{envelope} is not there"))
    }

    pub(crate) fn api(&self, who: &str, method: &str, path: &str, body: &Value) -> Reply {
        api(self.gateway.address(), who, method, path, body)
    }

    pub(crate) fn approve(&self, who: &str, proposal: &Value) -> Reply {
        let path = format!("/{}/approve", proposal["id"].as_str().unwrap());
        self.api(who, "POST", &path, &json!({ "digest": proposal["digest"] }))
    }

    /// The boss sends a request that names a proposal; returns the answer's payload.
    #[track_caller]
    pub(crate) fn fulfil(&self, envelope: &str, proposal: &str) -> Value {
        let mut boss = self.enter("boss");
        boss.send(
            FULFIL,
            envelope,
            &["tools"],
            names(proposal),
            &fulfilment("x"),
        );
        let received = boss.receive_until(|received| received["correlation_id"] == envelope);
        boss.leave();
        received["payload"].clone()
    }

    /// Waits until a proposal is withdrawn for this reason.
    #[track_caller]
    pub(crate) fn withdrawn(&self, envelope: &str, reason: &str) -> Value {
        let shown = until("withdrawn", || {
            Some(self.shown(envelope)).filter(|shown| shown["state"] != "pending")
        });
        assert_eq!(
            (&shown["state"], &shown["reason"]),
            (&json!("withdrawn"), &json!(reason)),
            "{shown}"
        );
        shown
    }

    /// Neither an approval nor a request that names it runs a proposal.
    #[track_caller]
    pub(crate) fn runs_never(&self, envelope: &str, by: &str) {
        let before = self.executed();
        let reply = self.approve("boss", &self.shown(envelope));
        assert_eq!(reply.status, 409, "{reply:?}");
        let answer = self.fulfil(by, envelope);
        assert!(answer["error"].is_object(), "{answer}");
        assert_eq!(self.executed(), before);
    }
}

/// Proposes to call `echo` and waits until the proposal is pending.
#[track_caller]
pub(crate) fn propose(agent: &mut Socket, envelope: &str) {
    agent.send(ECHO, envelope, &["tools"], json!({}), &echoes("x"));
    let notified = agent.receive_until(|received| received["kind"] == "portmoot/proposal");
    assert_eq!(
        (
            &notified["payload"]["proposal"],
            &notified["payload"]["state"]
        ),
        (&json!(envelope), &json!("pending"))
    );
}

/// A socket with an issued token.
#[track_caller]
pub(crate) fn enter_with(gateway: &Gateway, name: &str, bearer: &str) -> Socket {
    let mut socket = Socket::open_with(gateway, name, DIRECTED, &format!("Bearer {bearer}"));
    let welcome = socket.receive();
    assert_eq!(welcome["kind"], "system/welcome", "{welcome}");
    socket
}

/// Issues a token as the boss.
#[track_caller]
pub(crate) fn issue(reviewed: &Reviewed, name: &str, more: &[&str]) -> String {
    let url = reviewed.gateway.url();
    let boss = token("boss");
    let new = [
        "token",
        "new",
        name,
        "--capability",
        "mcp/proposal:*",
        "--url",
        &url,
        "--token",
        &boss,
    ];
    reviewed
        .home
        .run(&[&new[..], more].concat())
        .expect(0)
        .stdout
        .trim()
        .to_owned()
}
