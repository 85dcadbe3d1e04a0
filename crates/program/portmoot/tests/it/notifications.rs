//! Notifications about proposals that wait, by the routes of `[notifications]`.

mod failures;
mod signature;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::approver_outside::pdp::{Pdp, Received, raw};
use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::reviewed::{DIRECTED, propose};
use crate::stage::{ECHO, echoes};
use crate::support::{Gateway, fixture, until};
use crate::ws::{Socket, people, token};
use signature::is_signed;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const RELOADED: &str = "the configuration has changed: reloaded";
const PROPOSERS: [&str; 5] = ["scout", "other", "third", "fourth", "fifth"];

/// A gateway with the fixture as `tools`, five participants that may only propose, `ann` that may do
/// everything, and `bob` that may not decide.
pub(crate) struct Stage {
    home: Home,
    base: String,
    gateway: Gateway,
}

impl Stage {
    /// With these routes.
    fn new(routes: &str) -> Stage {
        Stage::at(routes, |_| {})
    }

    /// With files that the routes need.
    fn at(routes: &str, prepare: impl FnOnce(&Home)) -> Stage {
        let proposes: &[&str] = &["mcp/proposal:*"];
        let mut all: Vec<(&str, &[&str])> = PROPOSERS.map(|name| (name, proposes)).to_vec();
        all.push(("ann", &["mcp/*", "portmoot/*"]));
        all.push(("bob", &["chat"]));
        let (home, config) = people(&all);
        let home = home.env("HOOK_SECRET", SECRET);
        prepare(&home);
        let base = config + "[topics.main]\nproposal_ttl = \"10m\"\n" + &fixture("tools", &[]);
        let gateway = Gateway::start(&home, &format!("{base}{routes}"));
        gateway.ready("tools");
        Stage {
            home,
            base,
            gateway,
        }
    }

    /// A proposer in the room.
    fn enter(&self, name: &str) -> Socket {
        Socket::enter(&self.gateway, name, DIRECTED)
    }

    /// Has a participant propose, and returns the id of the proposal.
    #[track_caller]
    fn propose(&self, name: &str, envelope: &str) -> String {
        propose(&mut self.enter(name), envelope);
        let all = self.api("GET", "/proposals", &Value::Null).json();
        let mut all = all["proposals"].as_array().unwrap().iter();
        let one = all.find(|one| one["envelope"] == envelope).unwrap();
        one["id"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn api(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.exchange(method, &format!("/api/v1{path}"), body)
    }

    #[track_caller]
    fn exchange(&self, method: &str, path: &str, body: &Value) -> Reply {
        let mut connection = Connection::open(self.gateway.address());
        let reply = connection.api(method, path, &token("ann"), body);
        assert!(reply.status < 300, "{path}: {reply:?}");
        reply
    }

    #[track_caller]
    fn reject(&self, id: &str) {
        self.api("POST", &format!("/proposals/{id}/reject"), &json!({}));
    }

    /// The number of a route's notifications with this outcome.
    fn count(&self, route: &str, outcome: &str) -> u64 {
        let page = self.gateway.get("/metrics", Some(&token("ann")));
        let name =
            format!("portmoot_notifications_total{{route=\"{route}\",outcome=\"{outcome}\"}} ");
        let mut lines = page.body.lines();
        let found = lines.find_map(|line| line.strip_prefix(&name)?.parse().ok());
        found.unwrap_or_else(|| panic!("no {name} in {}", page.body))
    }

    #[track_caller]
    fn comes_to(&self, route: &str, outcome: &str, count: u64) {
        until(&format!("{count} {outcome} of {route}"), || {
            (self.count(route, outcome) == count).then_some(())
        });
    }

    /// Puts other routes in force.
    fn reload(&self, routes: &str) {
        let reloads = || self.gateway.log().matches(RELOADED).count();
        let before = reloads();
        self.home
            .write("portmoot.toml", &format!("{}{routes}", self.base));
        self.gateway.signal("HUP");
        until("the reload", || (reloads() > before).then_some(()));
    }
}

/// A receiver that takes everything.
fn receiver() -> Pdp {
    Pdp::start(|_, _| raw(204, ""))
}

/// A route of this name to a path of the receiver, with more of this in its table.
fn route(name: &str, receiver: &Pdp, more: &str) -> String {
    let base = receiver.base();
    format!("[notifications.{name}]\nwebhook = \"{base}/{name}\"\n{more}")
}

/// The only notification that a path of the receiver gets.
#[track_caller]
fn first(receiver: &Pdp, path: &str) -> Received {
    until(&format!("a notification at {path}"), || {
        receiver.received(path).into_iter().next()
    })
}

/// Writes a program into the home.
fn program(home: &Home, name: &str, script: &str) -> PathBuf {
    let path = home.write(name, &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path
}

#[test]
fn a_proposal_that_waits_is_one_signed_notification_without_its_arguments() {
    let receiver = receiver();
    let more = "secret_env = \"HOOK_SECRET\"\nlink = \"https://gw.example/\"\n";
    let stage = Stage::new(&route("hook", &receiver, more));
    let id = stage.propose("scout", "p1");
    let received = first(&receiver, "/hook");
    let mut body = received.body();
    let expires = body["expires"].take();
    assert!(expires.as_str().unwrap().ends_with('Z'));
    let text = body["text"].take();
    assert!(text.as_str().unwrap().starts_with(
        "1 proposal by scout waits for a decision; the first, echo of tools in topic main, ends 20"
    ));
    assert_eq!(
        body,
        json!({ "event": "proposal.waiting", "proposal": id, "topic": "main", "by": "scout", "tool": "echo",
            "server": "tools", "expires": null, "waiting": 1, "url": "https://gw.example/",
            "title": "Portmoot: scout proposes echo", "text": null })
    );
    assert!(is_signed(&received, SECRET), "{received:?}");
    assert!(!is_signed(
        &received,
        "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    ));
    assert!(received.header("webhook-id").starts_with("msg_"));
    stage.comes_to("hook", "sent", 1);
    // A further one of the same proposer waits for its minute.
    stage.propose("scout", "p2");
    stage.propose("other", "p3");
    until("that of the other", || {
        (receiver.received("/hook").len() == 2).then_some(())
    });
    assert_eq!(receiver.received("/hook")[1].body()["by"], "other");
    stage.comes_to("hook", "sent", 2);
}

#[test]
fn an_escalation_gets_only_what_still_waits_and_a_claim_holds_it_back() {
    let receiver = receiver();
    let routes = route("ann", &receiver, "for = [\"ann\"]\n")
        + &route("later", &receiver, "for = [\"ann\"]\nafter = \"3s\"\n");
    let stage = Stage::new(&routes);
    let decided = stage.propose("scout", "p1");
    assert_eq!(first(&receiver, "/ann").body()["proposal"], json!(decided));
    stage.reject(&decided);
    let claimed = stage.propose("third", "p2");
    stage.api("POST", &format!("/proposals/{claimed}/claim"), &json!({}));
    // It was proposed after both.
    let waits = stage.propose("other", "p3");
    assert_eq!(first(&receiver, "/later").body()["proposal"], json!(waits));
    stage.comes_to("later", "sent", 1);
    assert_eq!(receiver.received("/later").len(), 1);
    assert_eq!(receiver.received("/ann").len(), 3);
}

#[test]
fn a_route_gets_what_its_participant_may_decide_from_now_on() {
    let receiver = receiver();
    let stage = Stage::new(&route("bob", &receiver, "for = [\"bob\"]\n"));
    let id = stage.propose("scout", "p1");
    assert!(receiver.received("/").is_empty());
    let grant = json!({ "add": ["mcp/approve:tools/call:tools_echo"] });
    stage.exchange("POST", "/admin/participants/bob/capabilities", &grant);
    assert_eq!(first(&receiver, "/bob").body()["proposal"], json!(id));
    stage.comes_to("bob", "sent", 1);
}

#[test]
fn a_flood_of_a_thousand_proposals_is_few_notifications_and_silences_no_other_proposer() {
    let receiver = receiver();
    let stage = Stage::new(&route("hook", &receiver, ""));
    let mut sockets = PROPOSERS.map(|name| stage.enter(name));
    let [last, rest @ ..] = &mut sockets;
    for (who, socket) in rest.iter_mut().enumerate() {
        let envelope = |number: usize| format!("{who}-{number}");
        for number in 0..250 {
            let id = envelope(number);
            socket.send(ECHO, &id, &["tools"], json!({}), &echoes("x"));
        }
        let last = json!(envelope(249));
        socket.receive_until(|received| {
            received["kind"] == "portmoot/proposal" && received["payload"]["proposal"] == last
        });
    }
    propose(last, "one");
    let by_scout = until("that of scout", || {
        let all = receiver.received("/hook").into_iter();
        all.map(|one| one.body()).find(|one| one["by"] == "scout")
    });
    assert_eq!(by_scout["waiting"], 1);
    stage.comes_to("hook", "sent", 5);
    assert_eq!(receiver.received("/hook").len(), 5);
}

#[test]
fn a_program_gets_the_notification_on_its_stdin_and_its_output_is_logged() {
    let stage = Stage::at(
        "[notifications.shell]\nexec = [\"./notify\", \"a; b\"]\n[notifications.wrong]\nexec = [\"./fails\"]\n",
        |home| {
            program(
                home,
                "notify",
                "cat > got.part; echo \"$1\" \"$TOKEN_ANN\" >> got.part; mv got.part got",
            );
            program(home, "fails", "echo no room >&2; exit 3");
        },
    );
    let id = stage.propose("scout", "p1");
    let path = stage.home.path().join("got");
    let got = until("the file", || std::fs::read_to_string(&path).ok());
    let (line, rest) = got.split_once('\n').unwrap();
    let body: Value = serde_json::from_str(line).unwrap();
    assert_eq!(
        (&body["proposal"], &body["event"]),
        (&json!(id), &json!("proposal.waiting"))
    );
    // Without a shell, and without the gateway's environment.
    assert_eq!(rest, "a; b \n");
    stage.comes_to("wrong", "failed", 1);
    let log = stage.gateway.receive("a notification did not arrive");
    assert!(
        log.contains("the program `./fails` failed: exit code 3: no room"),
        "{log}"
    );
}

#[test]
fn a_reload_swaps_routes_and_what_was_sent_is_not_sent_again() {
    let receiver = receiver();
    let stage = Stage::new(&route("one", &receiver, ""));
    let id = stage.propose("scout", "p1");
    first(&receiver, "/one");
    let other =
        route("one", &receiver, "link = \"https://gw.example/\"\n") + &route("two", &receiver, "");
    stage.reload(&other);
    assert_eq!(first(&receiver, "/two").body()["proposal"], json!(id));
    stage.comes_to("two", "sent", 1);
    assert_eq!(receiver.received("/one").len(), 1);
    stage.propose("other", "p2");
    stage.comes_to("one", "sent", 1);
    assert_eq!(
        receiver.received("/one")[1].body()["url"],
        "https://gw.example/"
    );
    stage.comes_to("two", "sent", 2);
    stage.reload("");
    stage.propose("third", "p3");
    let page = stage.gateway.get("/metrics", Some(&token("ann"))).body;
    assert!(!page.contains("portmoot_notifications"), "{page}");
}

#[test]
fn after_a_restart_what_waits_is_sent_once_more() {
    let receiver = receiver();
    let mut stage = Stage::new(&route("hook", &receiver, ""));
    let id = stage.propose("scout", "p1");
    let over = stage.propose("other", "p2");
    stage.comes_to("hook", "sent", 2);
    stage.reject(&over);
    stage.gateway.signal("KILL");
    stage.gateway.wait();
    stage.gateway = Gateway::start_with(&stage.home, &["--config", "portmoot.toml"]);
    stage.comes_to("hook", "sent", 1);
    let all = receiver.received("/hook");
    assert_eq!(all.len(), 3);
    assert_eq!(all[2].body()["proposal"], json!(id));
}

#[test]
fn a_route_can_be_tried() {
    let receiver =
        Pdp::start(|received, _| raw(if received.path == "/bad" { 418 } else { 200 }, "{}"));
    let base = receiver.base();
    let routes = format!(
        "{}[notifications.bad]\nwebhook = \"{base}/bad\"\n[notifications.run]\nexec = [\"./notify\"]\n\
         [notifications.chat]\nntfy = \"{base}/sub/alerts\"\n",
        route("good", &receiver, "secret_env = \"HOOK_SECRET\"\n")
    );
    let home = Home::new().env("HOOK_SECRET", SECRET);
    program(&home, "notify", "cat > /dev/null; echo shown");
    home.write("portmoot.toml", &routes);
    let test = |name: &str| home.run(&["notifications", "test", name, "--config", "portmoot.toml"]);
    let ran = test("good").expect(0);
    assert_eq!(
        ran.stdout,
        "127.0.0.1 has taken the notification: status 200\n"
    );
    let received = first(&receiver, "/good");
    assert!(is_signed(&received, SECRET));
    assert_eq!(
        (&received.body()["event"], &received.body()["waiting"]),
        (&json!("test"), &json!(0))
    );
    let ran = test("bad").expect(1);
    assert!(
        ran.stderr
            .contains("did not arrive: the answer has the status 418"),
        "{}",
        ran.stderr
    );
    let ran = test("run").expect(0);
    assert!(
        ran.stdout
            .contains("the program `./notify` has taken the notification: exit code 0: shown"),
        "{}",
        ran.stdout
    );
    test("chat").expect(0);
    let sent = first(&receiver, "/sub/").body();
    assert_eq!(
        (&sent["topic"], &sent["title"]),
        (&json!("alerts"), &json!("Portmoot: a test"))
    );
    let ran = test("none").expect(5);
    assert!(
        ran.stderr
            .contains("portmoot.toml, which has good, bad, run, chat"),
        "{}",
        ran.stderr
    );
    let ran = home.run(&["doctor", "--config", "portmoot.toml"]);
    assert!(
        ran.stdout.contains("notifications run") && ran.stdout.contains("goes to 127.0.0.1"),
        "{}",
        ran.stdout
    );
}
