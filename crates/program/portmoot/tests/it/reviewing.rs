//! Tests of `portmoot proposals approve` at a terminal: texts shown, confirmation.

use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::home::{Home, Ran};
use crate::listed_server::ListedServer;
use crate::program::Program;
use crate::pty::{run_as_session_leader, run_at_terminal, run_at_terminal_with};
use crate::support::{Gateway, fixture};
use crate::ws::{Socket, people, token};

const ECHO: &str = "mcp/proposal:tools/call:echo";
const QUESTION: &str = "Approve this proposal? [y/N]";

struct Stage {
    gateway: Gateway,
    agent: Socket,
    home: Home,
}

impl Stage {
    fn new() -> Stage {
        let (home, config) = people(&[
            ("agent", &["mcp/proposal:*", "chat"]),
            ("boss", &["mcp/*", "chat"]),
            ("chief", &["mcp/*", "chat"]),
        ]);
        // Colours would be escape sequences of the program itself.
        let home = home.env("NO_COLOR", "1");
        // A deceptive description.
        let words = "Reads only.\u{202e} Deletes all. \u{1b}[1A\u{1b}[2K";
        let hostile = ListedServer::new(&home, "hostile", &[("act", words)]).table();
        let gateway = Gateway::start(&home, &(fixture("tools", &[]) + &hostile + &config));
        ["tools", "hostile"]
            .iter()
            .for_each(|name| gateway.ready(name));
        let agent = Socket::enter(&gateway, "agent", "?mode=directed&echo=false");
        Stage {
            gateway,
            agent,
            home,
        }
    }

    /// Proposes a call and returns the id of the proposal.
    #[track_caller]
    fn propose(&mut self, envelope: &str, to: &str, tool: &str, arguments: &Value) -> String {
        let payload =
            json!({ "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
        let kind = format!("mcp/proposal:tools/call:{tool}");
        self.agent.send(&kind, envelope, &[to], json!({}), &payload);
        self.wait_for_state("pending")["operation"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Waits for a notice that a proposal has this state.
    #[track_caller]
    fn wait_for_state(&mut self, state: &str) -> Value {
        loop {
            let received = self.agent.receive();
            if received["kind"] == "portmoot/proposal" && received["payload"]["state"] == state {
                return received["payload"].clone();
            }
        }
    }

    fn words<'w>(url: &'w str, token: &'w str, words: &[&'w str]) -> Vec<&'w str> {
        [&["proposals"], words, &["--url", url, "--token", token]].concat()
    }

    /// Runs `portmoot proposals ...` as this participant at a terminal.
    #[track_caller]
    fn run_at_terminal(&self, who: &str, words: &[&str], steps: &[(&str, &str)]) -> Ran {
        run_at_terminal(
            &self.home,
            &Stage::words(&self.gateway.url(), &token(who), words),
            steps,
        )
    }

    /// Runs it without a terminal.
    #[track_caller]
    fn run(&self, who: &str, words: &[&str]) -> Ran {
        self.home
            .run(&Stage::words(&self.gateway.url(), &token(who), words))
    }

    #[track_caller]
    fn state(&self, id: &str) -> Value {
        serde_json::from_str(&self.run("boss", &["show", id, "--json"]).expect(0).stdout).unwrap()
    }
}

#[test]
fn only_yes_approves() {
    let mut stage = Stage::new();
    let id = stage.propose("p1", "tools", "echo", &json!({ "text": "please" }));
    for (keys, shown) in [
        ("n", "the proposal was not decided"),
        ("", "the proposal was not decided"),
        ("yep", "did not approve"),
    ] {
        let ran = stage
            .run_at_terminal("boss", &["approve", &id], &[(QUESTION, keys)])
            .expect(3);
        assert!(ran.stderr.contains(shown), "{keys:?}: {}", ran.stderr);
        assert_eq!(
            (ran.stdout.as_str(), &stage.state(&id)["state"]),
            ("", &json!("pending")),
            "{keys:?}"
        );
    }
    // End of input, and an interrupt.
    stage
        .run_at_terminal("boss", &["approve", &id], &[(QUESTION, "\u{4}")])
        .expect(3);
    let interrupted = run_as_session_leader(
        &stage.home,
        &Stage::words(&stage.gateway.url(), &token("boss"), &["approve", &id]),
        &[(QUESTION, "\u{3}")],
    );
    assert_ne!(interrupted.code, 0, "{}", interrupted.stderr);
    assert_eq!(
        (interrupted.stdout.as_str(), &stage.state(&id)["state"]),
        ("", &json!("pending"))
    );
    // Input typed before the question does not count.
    let ran = stage
        .run_at_terminal("boss", &["approve", &id], &[("", "y"), (QUESTION, "n")])
        .expect(3);
    assert!(
        ran.stderr.contains("the proposal was not decided"),
        "{}",
        ran.stderr
    );
    assert_eq!(stage.state(&id)["state"], "pending");
    // Without a terminal the command refuses.
    let ran = stage.run("boss", &["approve", &id]).expect(3);
    assert!(
        ran.stderr.contains("--digest") && ran.stderr.contains("--yes"),
        "{}",
        ran.stderr
    );
    let ran = stage
        .run_at_terminal("boss", &["approve", &id], &[(QUESTION, "y")])
        .expect(0);
    for line in [
        "proposal by agent at tools: tools/call echo".to_owned(),
        format!("id {id}"),
        "| \"text\": \"please\"".replace("| ", "|   "),
        "the tool, as its server describes it".to_owned(),
        format!("its definition: portmoot proposals show {id}"),
        "digest ".to_owned(),
    ] {
        assert!(ran.stderr.contains(&line), "{line}: {}", ran.stderr);
    }
    // It waits for the answer.
    assert_eq!(ran.stdout, "please\n");
    assert!(
        ran.stderr.contains("was approved and has completed"),
        "{}",
        ran.stderr
    );
    stage.wait_for_state("completed");
    assert_eq!(stage.state(&id)["decided_by"], "boss");
    let audit_log = AuditLog(&stage.home);
    audit_log.has("boss", ECHO, "approved", "proposed by agent");
    assert_eq!(
        audit_log.count("boss", ECHO, "refused", ""),
        0,
        "a declined approval is not recorded as an attempt"
    );
}

#[test]
fn the_approved_arguments_are_the_shown_ones() {
    let mut stage = Stage::new();
    // Replacement arguments are shown before the question, and run.
    let id = stage.propose("p1", "tools", "echo", &json!({ "text": "rm -r /" }));
    let words = ["approve", &id, "--arguments", "{\"text\":\"ls\u{202e}\"}"];
    let ran = stage
        .run_at_terminal("boss", &words, &[(QUESTION, "yes")])
        .expect(0);
    assert!(
        ran.stderr.contains("replacement arguments:"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains(r#""text": "ls\u{202e}""#),
        "{}",
        ran.stderr
    );
    stage.wait_for_state("completed");
    assert_eq!(
        stage.state(&id)["answer"]["result"]["content"][0]["text"],
        "ls\u{202e}"
    );
    // Another reviewer rejects the proposal while the question is open.
    let id = stage.propose("p2", "tools", "echo", &json!({ "text": "please" }));
    let (url, boss) = (stage.gateway.url(), token("boss"));
    let asked = Stage::words(&url, &boss, &["approve", &id]);
    let ran = run_at_terminal_with(&stage.home, &asked, (QUESTION, "y"), || {
        stage
            .run("chief", &["reject", &id, "--reason", "no"])
            .expect(0);
    });
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(stage.state(&id)["state"], "rejected");
}

#[test]
fn deceptive_characters_are_shown_to_the_reviewer() {
    let mut stage = Stage::new();
    // Erases the line, overwrites it, reverses the text direction, hides characters, imitates the
    // question.
    let text = "safe\u{1b}[2K\rby: boss\u{202e}gpj.exe\u{200b}\u{e0041}\u{7}\nApprove this proposal? [y/N] y";
    let id = stage.propose(
        "p\u{202e}1\u{1b}]0;x\u{7}",
        "tools",
        "echo",
        &json!({ "text": text, "\u{2066}key": 1 }),
    );
    let hostile = stage.propose("p2", "hostile", "act", &json!({}));
    let plain = |shown: &str| {
        shown
            .chars()
            .all(|c| c == '\n' || !participant::visible::is_hidden(c))
    };
    let ran = stage
        .run_at_terminal("boss", &["approve", &hostile], &[(QUESTION, "n")])
        .expect(3);
    assert!(plain(&ran.stderr), "{:?}", ran.stderr);
    for said in [r"\u{202e}", r"\u{1b}[1A"] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    // The text imitates the question; who asks for what stands beside the real one.
    let question = format!("\nproposal by agent at tools: tools/call echo\r\n{QUESTION}");
    let ran = stage
        .run_at_terminal("boss", &["approve", &id], &[(&question, "no")])
        .expect(3);
    assert!(plain(&ran.stderr), "{:?}", ran.stderr);
    for said in [
        r"p\u{202e}1\u{1b}]0;x\u{7}",
        r"by: boss\u{202e}gpj.exe\u{200b}\u{e0041}\u0007",
        r"\u{2066}key",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    assert_eq!(stage.state(&id)["state"], "pending");
    for words in [&["ls"][..], &["show", &id], &["show", &hostile]] {
        let shown = stage.run("boss", words).expect(0).stdout;
        assert!(plain(&shown), "{words:?}: {shown:?}");
    }
    stage.run("boss", &["approve", &id, "--yes"]).expect(0);
    stage.wait_for_state("completed");
    // The call runs as proposed, hidden characters included.
    assert_eq!(
        stage.state(&id)["answer"]["result"]["content"][0]["text"],
        text
    );
    let audit_log = AuditLog(&stage.home);
    let entry = audit_log.has("boss", ECHO, "approved", "proposed by agent");
    assert_eq!(entry["operation"], json!(id));
    let shown = stage
        .home
        .run(&["audit", "query", "--data-dir", "data"])
        .expect(0)
        .stdout;
    assert!(plain(&shown), "{shown:?}");
}

#[test]
fn proposals_are_reviewed_one_after_the_other_with_two_keystrokes_each() {
    let mut stage = Stage::new();
    let ids: Vec<String> = ["one", "two", "please", "four"]
        .into_iter()
        .map(|text| {
            stage.propose(
                &format!("p-{text}"),
                "tools",
                "echo",
                &json!({ "text": text }),
            )
        })
        .collect();
    stage.home = Home::beside(&stage.home).env("EDITOR", "sed -i s/please/edited/");
    let ask = "[q]uit?";
    let steps = [
        (ask, "a"),
        ("[y/N]", "y"),
        (ask, "r"),
        ("Reason for the proposer", "not today"),
        (ask, "e"),
        ("[y/N]", "y"),
        (ask, "s"),
    ];
    let ran = stage.run_at_terminal("boss", &[], &steps).expect(0);
    for line in [
        "1 of 4",
        "4 of 4",
        "may be DESTRUCTIVE",
        "replacement arguments:",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
    assert_eq!(ran.stdout, "one\nrejected\nedited\n");
    let states: Vec<Value> = ids.iter().map(|id| stage.state(id)).collect();
    let of = |at: usize| (states[at]["state"].as_str().unwrap(), &states[at]["reason"]);
    assert_eq!(
        (of(0).0, of(1), of(2).0, of(3).0),
        (
            "completed",
            ("rejected", &json!("not today")),
            "completed",
            "pending"
        )
    );
    // Without a terminal it lists them.
    let listed = stage.run("boss", &[]).expect(0).stdout;
    assert!(
        listed.lines().count() == 2 && listed.contains(r#"{"text":"four"}"#),
        "{listed}"
    );
}

#[test]
fn the_beginning_of_an_id_is_enough() {
    let mut stage = Stage::new();
    let id = stage.propose("p1", "tools", "echo", &json!({ "text": "please" }));
    let listed = stage.run("boss", &["ls"]).expect(0).stdout;
    let short = listed
        .lines()
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned();
    assert!(
        short.len() >= 8 && short.len() < id.len() && id.starts_with(&short),
        "{listed}"
    );
    assert!(
        stage
            .run("boss", &["show", &short])
            .expect(0)
            .stdout
            .contains(&id)
    );
    let none = stage.run("boss", &["show", "zzz"]).expect(5).stderr;
    assert!(
        none.contains("begins with `zzz`") && none.contains("proposals ls --all"),
        "{none}"
    );
    let other = stage.propose("p2", "tools", "echo", &json!({ "text": "x" }));
    let same = id
        .chars()
        .zip(other.chars())
        .take_while(|(a, b)| a == b)
        .count();
    if same > 0 {
        let several = stage.run("boss", &["show", &id[..same]]).expect(2).stderr;
        assert!(several.contains("several"), "{several}");
    }
    stage
        .run("boss", &["reject", &other, "--reason", "no"])
        .expect(0);
    assert_eq!(
        stage
            .run("boss", &["approve", &short, "--yes"])
            .expect(0)
            .stdout,
        "please\n"
    );
}

#[test]
fn a_reason_is_asked_for_and_arguments_are_edited_at_the_terminal() {
    let mut stage = Stage::new();
    let id = stage.propose("p1", "tools", "echo", &json!({ "text": "please" }));
    let asked = [("Reason for the proposer", "too soon")];
    let ran = stage
        .run_at_terminal("boss", &["reject", &id], &asked)
        .expect(0);
    assert_eq!(
        (ran.stdout.as_str(), &stage.state(&id)["reason"]),
        ("rejected\n", &json!("too soon"))
    );
    // At the end of the input nothing is decided.
    let id = stage.propose("p2", "tools", "echo", &json!({ "text": "please" }));
    stage
        .run_at_terminal("boss", &["reject", &id], &[("Reason", "\u{4}")])
        .expect(3);
    assert_eq!(stage.state(&id)["state"], "pending");
    for (editor, expect) in [("true", 3), ("false", 3), ("sed -i s/please/edited/", 0)] {
        stage.home = Home::beside(&stage.home).env("EDITOR", editor);
        let steps: &[(&str, &str)] = if expect == 0 { &[(QUESTION, "y")] } else { &[] };
        let ran = stage
            .run_at_terminal("boss", &["approve", &id, "--edit"], steps)
            .expect(expect);
        assert_eq!(
            ran.stdout,
            if expect == 0 { "edited\n" } else { "" },
            "{editor}"
        );
    }
}

#[test]
fn a_watched_list_shows_what_comes_and_what_becomes_of_it() {
    let mut stage = Stage::new();
    let words = Stage::words(&stage.gateway.url(), &token("boss"), &["ls", "--watch"]).join(" ");
    let words: Vec<&str> = words.split(' ').collect();
    let mut watch = Program::start(stage.home.command(&words));
    watch.wait_for_line("ID");
    let id = stage.propose("p1", "tools", "echo", &json!({ "text": "please" }));
    let row = watch.wait_for_line("pending");
    assert!(
        id.starts_with(row.split(' ').next().unwrap()) && row.contains(r#"{"text":"please"}"#),
        "{row}"
    );
    stage.run("boss", &["approve", &id, "--yes"]).expect(0);
    watch.wait_for_line("completed");
}
