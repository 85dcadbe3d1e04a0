//! Participants that are paused: their calls wait, they decide nothing, and neither do their rules.

use serde_json::{Value, json};

use super::bank::{Bank, UP_TO_100, is_paid, result_of};
use super::direct::pays_directly;
use crate::audit_log::AuditLog;
use crate::http::Connection;
use crate::support::{Client, Gateway, fixture, modern_stream, until};
use crate::ws::{Socket, people, token};

const KIND: &str = "mcp/request:tools/call:bank_pay";

impl Bank {
    /// A participant posts something to the API; the answer, with its status.
    pub(super) fn posts(&self, who: &str, path: &str, body: &Value) -> (u16, Value) {
        let bearer = format!("Bearer {}", token(who));
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let mut connection = Connection::open(self.gateway.address());
        let path = format!("/api/v1/{path}");
        let reply = connection.exchange("POST", &path, &headers, &body.to_string());
        (reply.status, reply.json())
    }

    /// Boss pauses or resumes a participant.
    #[track_caller]
    pub(super) fn brakes(&self, who: &str, verb: &str) {
        let path = format!("topics/main/participants/{who}/{verb}");
        let (status, answer) = self.posts("boss", &path, &json!({ "reason": "too fast" }));
        assert_eq!(status, 200, "{answer}");
    }

    /// What a participant may not do about another one, with the words of the refusal.
    #[track_caller]
    fn brakes_not(&self, by: &str, who: &str, verb: &str, body: &Value) -> (u16, String) {
        let path = format!("topics/main/participants/{who}/{verb}");
        let (status, answer) = self.posts(by, &path, body);
        assert!(status >= 400, "{answer}");
        (status, answer.to_string())
    }
}

#[test]
fn calls_of_a_paused_client_wait_until_it_is_resumed() {
    let bank = Bank::new();
    pays_directly(&bank, 5);
    bank.portmoot(
        &["participants", "pause", "payer", "--reason", "too fast"],
        0,
    );
    let call = bank.begins("payer", "bank_pay", 6);
    let proposal = bank.pending();
    assert_eq!(proposal["by"], "payer", "{proposal}");
    assert_eq!(bank.server.calls("pay"), 1);
    bank.approve(&proposal);
    is_paid(&result_of(&call), 6);
    let all = bank.api("GET", "participants", "");
    let all = all["participants"].as_array().unwrap().clone();
    let payer = all.iter().find(|one| one["id"] == "payer").unwrap();
    assert_eq!(
        [&payer["paused"]["by"], &payer["paused"]["reason"]],
        ["boss", "too fast"],
        "{payer}"
    );
    let listed = bank.portmoot(&["participants", "ls"], 0);
    assert!(listed.contains("caller, paused by boss"), "{listed}");
    let log = AuditLog(&bank.home);
    let entry = log.has("boss", "portmoot/pause", "admitted", "too fast");
    assert_eq!(entry["to"], json!(["payer"]), "{entry}");
    log.has("payer", KIND, "held", "paused");
    bank.portmoot(&["participants", "resume", "payer"], 0);
    pays_directly(&bank, 7);
    log.has("boss", "portmoot/resume", "admitted", "");
    log.is_whole();
}

#[test]
fn a_pause_outlasts_a_restart_and_a_resumption_too() {
    let mut bank = Bank::new();
    // It is not in the topic.
    bank.brakes("payer", "pause");
    for (signal, amount) in [("TERM", 11), ("KILL", 12)] {
        bank.restart(signal);
        bank.asks_for("payer", "bank_pay", amount);
    }
    bank.brakes("payer", "resume");
    for (signal, amount) in [("KILL", 13), ("TERM", 14)] {
        bank.restart(signal);
        pays_directly(&bank, amount);
    }
}

#[test]
fn the_room_learns_of_a_pause_and_refuses_requests_with_the_advice_to_propose() {
    let bank = Bank::new();
    let mut boss = Socket::enter(&bank.gateway, "boss", "");
    let mut payer = Socket::enter(&bank.gateway, "payer", "?echo=false");
    bank.brakes("payer", "pause");
    let welcome = payer.receive_until(|one| one["kind"] == "system/welcome");
    assert_eq!(welcome["payload"]["you"]["paused"], true, "{welcome}");
    let presence = boss.receive_until(|one| one["payload"]["participant"]["paused"] == true);
    assert_eq!(presence["kind"], "system/presence", "{presence}");
    let notice = boss.receive_until(|one| one["kind"] == "portmoot/pause");
    assert_eq!(notice["from"], "portmoot", "{notice}");
    let expected = json!({ "participant": "payer", "by": "boss", "reason": "too fast" });
    assert_eq!(notice["payload"], expected);
    // A participant that comes later sees it in its welcome.
    let (_, welcome) = Socket::welcomed(&bank.gateway, "dave", "");
    let all = welcome["payload"]["participants"].as_array().unwrap();
    let seen = all.iter().find(|one| one["id"] == "payer").unwrap();
    assert_eq!(seen["paused"], true, "{welcome}");
    payer.call("c1", &["bank"], "pay", json!({ "amount": 9 }));
    let refused = payer.receive_until(|one| one["correlation_id"] == "c1");
    assert_eq!(refused["payload"]["error"], "capability_violation");
    let words = refused["payload"]["message"].as_str().unwrap();
    assert!(
        words.contains("you are paused") && words.contains("mcp/proposal"),
        "{words}"
    );
    let _proposes = bank.proposes("payer", "p1", &["bank"], "pay");
    bank.waits("bank", "pay");
    assert_eq!(bank.server.calls("pay"), 0);
    let why = "paused";
    let kind = "mcp/request:tools/call:pay";
    AuditLog(&bank.home).has("payer", kind, "refused", why);
}

#[test]
fn a_paused_participant_decides_nothing() {
    let bank = Bank::new();
    bank.brakes("payer", "pause");
    let call = bank.propose(8);
    let proposal = bank.pending();
    let id = proposal["id"].as_str().unwrap();
    for (verb, body) in [
        ("approve", json!({ "digest": proposal["digest"] })),
        ("reject", json!({})),
    ] {
        let (status, answer) = bank.posts("payer", &format!("proposals/{id}/{verb}"), &body);
        assert_eq!(status, 403, "{answer}");
        assert!(answer.to_string().contains("decides nothing"), "{answer}");
    }
    bank.reject(&proposal);
    call.rest();
    // What it proposes it withdraws.
    let call = bank.begins("payer", "bank_pay", 9);
    let own = bank.pending();
    let path = format!("proposals/{}/withdraw", own["id"].as_str().unwrap());
    let (status, answer) = bank.posts("payer", &path, &json!({}));
    assert_eq!((status, &answer["state"]), (200, &json!("withdrawn")));
    call.rest();
    assert_eq!(bank.server.calls("pay"), 0);
}

#[test]
fn rules_of_a_paused_author_wait_and_none_approves_for_a_paused_proposer() {
    let bank = Bank::with(|bank| bank.approving("r1", "uses = 9", UP_TO_100));
    bank.is_paid(50);
    for (paused, amount) in [("ann", 51), ("scout", 53)] {
        bank.brakes(paused, "pause");
        bank.asks(amount);
        let call = bank.propose(amount + 1);
        let waits = bank.pending();
        let shown = bank.explain(&waits);
        assert!(shown.contains("is not paused"), "{shown}");
        // Resumed, the rule judges what waits.
        bank.brakes(paused, "resume");
        is_paid(&result_of(&call), amount + 1);
        bank.is_paid(amount + 20);
    }
    assert_eq!(bank.rule("r1.1")["state"], "in force");
}

#[test]
fn only_those_with_the_right_pause_others_and_none_itself() {
    let mut bank = Bank::new();
    let none = json!({});
    let refused = |by: &str, who: &str, verb: &str, status: u16, words: &str| {
        let (got, answer) = bank.brakes_not(by, who, verb, &none);
        assert_eq!(got, status, "{answer}");
        assert!(answer.contains(words), "{answer}");
    };
    refused("ann", "scout", "pause", 403, "portmoot/pause");
    refused("ann", "scout", "resume", 403, "portmoot/pause");
    refused("boss", "boss", "pause", 409, "itself");
    refused("boss", "scuot", "pause", 404, "no participant of this name");
    refused("boss", "bank", "pause", 400, "no calls of its own");
    refused("boss", "portmoot", "pause", 400, "no calls of its own");
    refused("boss", "scout", "resume", 409, "not paused");
    let log = AuditLog(&bank.home);
    log.has("boss", "portmoot/pause", "refused", "conflict");
    let (status, _) = bank.brakes_not("boss", "sc\u{202e}out", "pause", &none);
    assert!(status == 400 || status == 404, "{status}");
    let long = |bytes: usize| json!({ "reason": "x".repeat(bytes) });
    let (status, answer) = bank.brakes_not("boss", "scout", "pause", &long(1001));
    assert_eq!(status, 413, "{answer}");
    let (status, answer) = bank.posts("boss", "topics/main/participants/scout/pause", &long(1000));
    assert_eq!(status, 200, "{answer}");
    for body in [json!([]), json!({ "reason": 1 }), json!({ "until": 1 })] {
        let (status, answer) = bank.brakes_not("boss", "dave", "pause", &body);
        assert_eq!(status, 400, "{answer}");
    }
    let (status, answer) = bank.posts("boss", "topics/none/participants/dave/pause", &none);
    assert!(status == 403 || status == 404, "{status} {answer}");
    // One that is paused releases neither itself nor another one.
    let before = "[participants.payer]\ntoken_env = \"TOKEN_PAYER\"\ncapabilities = [";
    bank.change(before, &format!("{before}\"portmoot/pause\", "));
    until("payer may pause", || {
        let can = bank.api("GET", "participants/payer/can", "").to_string();
        can.contains("portmoot/pause").then_some(())
    });
    bank.brakes("payer", "pause");
    let (status, answer) = bank.brakes_not("payer", "payer", "resume", &none);
    assert_eq!(status, 409, "{answer}");
    let (status, answer) = bank.brakes_not("payer", "scout", "resume", &none);
    assert_eq!(status, 403, "{answer}");
    assert!(answer.contains("paused participant"), "{answer}");
}

#[test]
fn an_overseer_pauses_and_resumes_by_envelopes() {
    let bank = Bank::new();
    let mut boss = Socket::enter(&bank.gateway, "boss", "?echo=true");
    let mut dave = Socket::enter(&bank.gateway, "dave", "?echo=false");
    let payload = json!({ "participant": "payer", "reason": "look first" });
    boss.send("portmoot/pause", "b1", &[], json!({}), &payload);
    // The gateway announces it; the envelope itself is for the gateway alone.
    let notice = dave.receive_until(|one| one["kind"] == "portmoot/pause");
    let expected = json!({ "participant": "payer", "by": "boss", "reason": "look first" });
    assert_eq!(
        (&notice["from"], &notice["payload"]),
        (&json!("portmoot"), &expected)
    );
    bank.asks_for("payer", "bank_pay", 21);
    let payload = json!({ "participant": "payer" });
    boss.send("portmoot/resume", "b2", &[], json!({}), &payload);
    dave.receive_until(|one| one["kind"] == "portmoot/resume");
    pays_directly(&bank, 22);
    let refused = |socket: &mut Socket, id: &str, payload: Value, code: &str| {
        socket.send("portmoot/pause", id, &[], json!({}), &payload);
        let answer = socket.receive_until(|one| one["correlation_id"] == id);
        assert_eq!(answer["payload"]["error"], code, "{answer}");
    };
    let scout = || json!({ "participant": "scout" });
    refused(&mut dave, "x1", scout(), "capability_violation");
    refused(&mut boss, "x2", json!({}), "malformed_envelope");
    refused(
        &mut boss,
        "x3",
        json!({ "participant": 1 }),
        "malformed_envelope",
    );
    refused(
        &mut boss,
        "x4",
        json!({ "participant": "boss" }),
        "conflict",
    );
    refused(
        &mut boss,
        "x5",
        json!({ "participant": "scuot" }),
        "unknown_target",
    );
    let log = AuditLog(&bank.home);
    log.has("boss", "portmoot/pause", "admitted", "look first");
    log.has("dave", "portmoot/pause", "refused", "not_admitted");
    // One entry for each, however it was asked for.
    assert_eq!(log.count("boss", "portmoot/pause", "admitted", ""), 1);
    assert_eq!(log.count("boss", "portmoot/resume", "admitted", ""), 1);
    assert_eq!(
        log.count("boss", "portmoot/pause", "refused", "conflict"),
        1
    );
    log.is_whole();
}

/// The beginning of payer's capabilities in the configuration.
const PAYERS: &str = "[participants.payer]\ntoken_env = \"TOKEN_PAYER\"\ncapabilities = [";

#[test]
fn a_paused_participant_gives_nothing_to_others() {
    let mut bank = Bank::new();
    bank.change(PAYERS, &format!("{PAYERS}\"portmoot/*\", "));
    let add = json!({ "add": ["mcp/request:tools/call:other"] });
    let here = "participants/dave/grants?topic=main";
    until("payer may grant", || {
        (bank.posts("payer", here, &add).0 == 200).then_some(())
    });
    bank.brakes("payer", "pause");
    let none = json!({});
    let fresh = json!({ "name": "fresh", "capabilities": ["chat"] });
    for (path, body) in [
        (here, &add),
        ("participants/dave/grants", &add),
        ("tokens", &fresh),
        ("tokens/fresh/rotate", &json!({ "overlap_ms": 0 })),
        ("logins", &json!({ "name": "dave" })),
        ("pins/bank/approve", &json!({ "digests": ["00"] })),
        ("servers/bank/enable", &none),
    ] {
        let (status, answer) = bank.posts("payer", path, body);
        assert_eq!(status, 403, "{path}: {answer}");
        assert!(
            answer.to_string().contains("paused participant"),
            "{path}: {answer}"
        );
    }
    let log = AuditLog(&bank.home);
    log.has(
        "payer",
        "portmoot/grants",
        "refused",
        "capability_violation",
    );
    // What only takes passes.
    let remove = json!({ "remove": ["mcp/request:tools/call:other"] });
    let (status, answer) = bank.posts("payer", here, &remove);
    assert_eq!(status, 200, "{answer}");
    let (status, answer) = bank.posts("payer", "servers/bank/disable", &none);
    assert_eq!(status, 200, "{answer}");
    bank.brakes("payer", "resume");
    let (status, answer) = bank.posts("payer", here, &add);
    assert_eq!(status, 200, "{answer}");
    let (status, answer) = bank.posts("payer", "servers/bank/enable", &none);
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn a_right_to_pause_one_participant_pauses_no_other_one() {
    let mut bank = Bank::new();
    let only_scout = "{ kind = \"portmoot/pause\", to = [\"scout\"] }, ";
    bank.change(PAYERS, &format!("{PAYERS}{only_scout}"));
    let none = json!({});
    let path = |who: &str, verb: &str| format!("topics/main/participants/{who}/{verb}");
    until("payer may pause scout", || {
        (bank.posts("payer", &path("scout", "pause"), &none).0 == 200).then_some(())
    });
    for who in ["boss", "dave"] {
        let (status, answer) = bank.posts("payer", &path(who, "pause"), &none);
        assert_eq!(status, 403, "{answer}");
    }
    let (status, answer) = bank.posts("payer", &path("scout", "resume"), &none);
    assert_eq!(status, 200, "{answer}");
    let mut payer = Socket::enter(&bank.gateway, "payer", "?echo=false");
    let mut asks = |id: &str, to: &[&str], who: &str| {
        let payload = json!({ "participant": who });
        payer.send("portmoot/pause", id, to, json!({}), &payload);
        payer.receive_until(|one| one["correlation_id"] == id || one["kind"] == "portmoot/pause")
    };
    let refused = asks("n1", &["scout"], "boss");
    assert_eq!(
        refused["payload"]["error"], "malformed_envelope",
        "{refused}"
    );
    let refused = asks("n2", &[], "boss");
    assert_eq!(
        refused["payload"]["error"], "capability_violation",
        "{refused}"
    );
    let notice = asks("n3", &["scout"], "scout");
    assert_eq!(notice["payload"]["participant"], "scout", "{notice}");
}

#[test]
fn a_paused_client_ends_its_subscriptions_and_listens_to_no_resource() {
    let (home, config) = people(&[("agent", &["mcp/*"]), ("boss", &["portmoot/*"])]);
    let gateway = Gateway::start(&home, &(config + &fixture("a", &[])));
    gateway.ready("a");
    let (agent, boss) = (token("agent"), token("boss"));
    let client = Client::open(&gateway, Some(&agent), "/mcp", json!({}));
    let uri = "test://watched-resource";
    let asks = |method: &str| client.ask(method, json!({ "uri": uri }));
    let listens = || {
        let wanted = json!({ "notifications": { "resourceSubscriptions": [uri] } });
        let stream = modern_stream(&gateway, Some(&agent), "subscriptions/listen", wanted);
        let agreed = stream.next_of("notifications/subscriptions/acknowledged");
        agreed["params"]["notifications"]["resourceSubscriptions"].clone()
    };
    let url = gateway.url();
    let brakes = |verb: &str| {
        let words = [
            "participants",
            verb,
            "agent",
            "--url",
            &url,
            "--token",
            &boss,
        ];
        home.run(&words).expect(0);
    };
    assert_eq!(listens(), json!([uri]));
    assert!(asks("resources/subscribe")["result"].is_object());
    brakes("pause");
    let listened = listens();
    assert!(listened.is_null() || listened == json!([]), "{listened}");
    let refused = asks("resources/subscribe");
    assert!(refused.to_string().contains("paused"), "{refused}");
    let ended = asks("resources/unsubscribe");
    assert!(ended["result"].is_object(), "{ended}");
    brakes("resume");
    assert_eq!(listens(), json!([uri]));
}
