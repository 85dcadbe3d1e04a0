//! Tests of `portmoot chat` with plain lines and at a terminal.

use participant::{Event, ProposalState};
use serde_json::json;

use crate::home::{Home, Ran};
use crate::http::TIMEOUT;
use crate::participants::{config, echo, enter, home, join, read, receive, spec, tools};
use crate::program::Program;
use crate::pty::{run_at_terminal_of, run_with_stdout_at_terminal};
use crate::support::Gateway;
use crate::ws::{Socket, token};

/// A line without the time of day before it.
fn timeless(line: &str) -> String {
    line.get(6..).unwrap_or_default().trim_start().to_owned()
}

/// Starts `portmoot chat` as this participant and waits for its first line.
fn person(home: &Home, gateway: &Gateway, name: &str) -> Program {
    let url = gateway.url();
    let mut person =
        Program::start(home.command(&["chat", "--url", &url, "--token", &token(name)]));
    person.wait_for_line("You are ");
    person
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_chats_calls_tools_and_approves() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let (worker, mut received) = enter(spec(&gateway, "worker").serving(tools())).await;
    let (scout, _) = join(&gateway, "scout").await;
    let mut person = person(&home, &gateway, "boss");
    person.type_line("hello all");
    let said = |event| match event {
        Event::Chat { from, text, .. } => Some((from, text)),
        _ => None,
    };
    assert_eq!(
        receive(&mut received, "a chat", said).await,
        ("boss".to_owned(), "hello all".to_owned())
    );
    worker.chat("hi\nboss: do it\u{1b}[2J\u{202e}").unwrap();
    assert_eq!(timeless(&person.wait_for_line("worker: ")), "worker: hi");
    assert_eq!(
        timeless(&person.wait_for_line("boss: ")),
        "worker| boss: do it\\u{1b}[2J\\u{202e}"
    );
    for (typed, seen) in [
        ("/tools worker", "worker  echo  Says it again"),
        ("/tools", "worker  echo  Says it again"),
        (r#"/call worker echo {"text": "a b"}"#, "= a b"),
        (r#"/call worker echo"#, "! `text` is missing"),
        (
            "/call worker none",
            "! answered with an error: unknown tool `none`",
        ),
        (
            "/call worker echo [1]",
            "The arguments must be one JSON object",
        ),
        (
            "/who",
            "scout  mcp/proposal:tools/call, mcp/response:*, chat",
        ),
        ("/proposals", "No proposal waits for a decision"),
        ("/msg gone hi", "gone is not here"),
        ("/approve 7", "There is no such open proposal"),
        ("/dance", "Unknown command"),
        ("/help", "/approve ID"),
    ] {
        person.type_line(typed);
        person.wait_for_line(seen);
    }
    let mut proposal = scout
        .propose(&["worker"], "tools/call", &echo("please\u{202e}"))
        .unwrap();
    let head = person.wait_for_line("? proposal #1 by scout at worker: tools/call echo");
    assert!(timeless(&head).starts_with("? "), "{head}");
    person.wait_for_line("look again: no definition of this tool; hidden characters");
    assert!(
        person
            .wait_for_line("text")
            .contains(r#""text": "please\u{202e}""#)
    );
    person.type_line("/approve 1");
    person.wait_for_line(
        "Approve #1? It may be DESTRUCTIVE: its server does not say (MCP's default).",
    );
    person.type_line("/yes");
    person.wait_for_line("= please\\u{202e}");
    let outcome = read(&proposal.outcome(TIMEOUT).await.unwrap());
    assert_eq!(outcome["content"][0]["text"], "please\u{202e}");
    person.type_line("/proposals");
    person.wait_for_line("No proposal waits for a decision");
    scout.close().await;
    person.wait_for_line("* scout has left");
    person.type_line("/quit");
    assert_eq!(person.wait_for_exit().0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_waits_for_open_calls_at_the_end_of_the_input() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let (_worker, mut received) = enter(spec(&gateway, "worker").serving(tools())).await;
    let (boss, mut asked) = join(&gateway, "boss").await;
    let mut person = person(&home, &gateway, "scout");
    person.type_line(r#"/call worker echo {"text": "late"}"#);
    person.type_line("bye");
    let said = |event| matches!(event, Event::Chat { .. }).then_some(());
    receive(&mut received, "a chat", said).await;
    let proposed = receive(&mut asked, "a proposal", |event| match event {
        Event::Proposal(proposed) => Some(proposed),
        _ => None,
    });
    let proposed = proposed.await;
    person.close_input();
    boss.fulfil(&proposed, None).await.unwrap();
    let (code, printed) = person.wait_for_exit();
    assert_eq!(
        (code, printed.lines().any(|line| timeless(line) == "= late")),
        (0, true),
        "{printed}"
    );
}

#[test]
fn chat_says_whose_proposal_has_changed_and_who_decided() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let mut boss = Socket::enter(&gateway, "boss", "?echo=false");
    let mut proposer = person(&home, &gateway, "scout");
    let mut reader = person(&home, &gateway, "mallory");
    proposer.type_line(r#"/call worker echo {"text": "please"}"#);
    let proposed = boss.receive_until(|received| received["from"] == "scout");
    let id = proposed["id"].as_str().unwrap();
    let pending = proposer.wait_for_line("* your");
    reader.wait_for_line("? proposal #1 by scout");
    // Another participant uses the same id: it is refused, and changes nothing about the first one.
    let kind = "mcp/proposal:tools/call:echo";
    boss.send(
        kind,
        id,
        &["worker"],
        json!({}),
        &json!({ "method": "tools/call", "params": echo("x") }),
    );
    boss.refused(id, "conflict");
    reader.type_line("/proposals");
    reader.wait_for_line("? proposal #1 by scout");
    boss.call(
        "no",
        &["portmoot"],
        "reject_proposal",
        json!({ "id": id, "reason": "not today" }),
    );
    let seen = proposer.wait_for_line("* your");
    assert_eq!(
        timeless(&seen),
        "* your proposal #1 is rejected by boss: not today"
    );
    let seen = reader.wait_for_line("* the proposal");
    assert_eq!(
        timeless(&seen),
        "* the proposal #1 of scout is rejected by boss: not today"
    );
    reader.type_line("/proposals");
    reader.wait_for_line("No proposal waits for a decision");
    reader.type_line("/quit");
    let (code, seen) = reader.wait_for_exit();
    assert!(code == 0 && !seen.contains("your proposal"), "{seen}");
    assert!(
        pending.ends_with(" is pending (not here: worker)"),
        "{pending}"
    );
}

#[test]
fn chat_exits_with_a_code_when_it_cannot_join() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let chat = |more: &[&str]| home.run(&[&["chat"], more].concat());
    let wrong = chat(&[
        "--url",
        &gateway.url(),
        "--token",
        "a-token-that-is-not-issued",
    ])
    .expect(4)
    .stderr;
    assert!(wrong.contains("--token TOKEN"), "{wrong}");
    let boss = token("boss");
    chat(&[
        "--url",
        &gateway.url(),
        "--token",
        &boss,
        "--topic",
        "vault",
    ])
    .expect(3);
    chat(&["--url", "gopher://x"]).expect(2);
    chat(&["--url", "http://127.0.0.1:1"]).expect(1);
    // Without --url, `chat` finds the gateway of the data directory.
    chat(&["--config", "portmoot.toml", "--token", &boss]).expect(0);
    drop(gateway);
    let none = chat(&["--config", "portmoot.toml"]).expect(1).stderr;
    assert!(none.contains("portmoot serve"), "{none}");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_a_terminal_words_are_completed_and_messages_appear_above_the_line() {
    let home = home().env("NO_COLOR", "1");
    let gateway = Gateway::start(&home, &config(&home));
    let (worker, mut received) = enter(spec(&gateway, "worker").serving(tools())).await;
    let (url, token) = (gateway.url(), token("boss"));
    let answering = tokio::spawn(async move {
        let said = |event| matches!(event, Event::Chat { .. }).then_some(());
        receive(&mut received, "a chat", said).await;
        worker.chat("welcome\u{1b}[1A").unwrap();
        let asked = |event| matches!(event, Event::Left(seen) if seen.id == "boss").then_some(());
        receive(&mut received, "the person leaves", asked).await;
    });
    let steps = [
        ("> ", "hello"),
        ("worker: welcome\\u{1b}[1A", "/to\two\t"),
        ("echo  Says it again", "/call wo\te\t{\"text\": \"typed\"}"),
        ("= typed", "/qu\t"),
    ];
    let ran: Ran = tokio::task::block_in_place(|| {
        run_with_stdout_at_terminal(
            &home,
            &["chat", "--lines", "--url", &url, "--token", &token],
            &steps,
        )
    });
    ran.expect(0);
    answering.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn at_a_terminal_no_row_of_a_message_looks_like_another_participants() {
    let home = home().env("NO_COLOR", "1");
    let gateway = Gateway::start(&home, &config(&home));
    let (worker, mut received) = enter(spec(&gateway, "worker").serving(tools())).await;
    let (url, token) = (gateway.url(), token("boss"));
    // In a terminal of 40 columns each of these would begin a row of its own.
    let forged = "boss: approve it";
    let pads = [
        " ".repeat(30),
        "漢".repeat(16),
        "e\u{301}".repeat(32),
        "\t".repeat(8),
        "x".repeat(32),
    ];
    let answering = tokio::spawn(async move {
        let said = |event| matches!(event, Event::Chat { .. }).then_some(());
        receive(&mut received, "a chat", said).await;
        for pad in pads {
            worker.chat(&format!("hi{pad}{forged}")).unwrap();
        }
        worker.chat("the end").unwrap();
        let gone = |event| matches!(event, Event::Left(seen) if seen.id == "boss").then_some(());
        receive(&mut received, "the person leaves", gone).await;
    });
    let steps = [("> ", "hello"), ("worker: the end", "/quit")];
    let ran: Ran = tokio::task::block_in_place(|| {
        run_at_terminal_of(
            40,
            &home,
            &["chat", "--lines", "--url", &url, "--token", &token],
            &steps,
        )
    });
    let shown = ran.expect(0).stderr;
    answering.await.unwrap();
    let rows: Vec<&str> = shown.split(['\r', '\n']).collect();
    assert!(
        rows.iter()
            .any(|row| row.contains("worker| ") && row.contains(forged)),
        "{shown}"
    );
    assert!(
        !rows.iter().any(|row| row.trim_start().starts_with(forged)),
        "{shown}"
    );
    // No row of a message is as long as the terminal is wide, so that the terminal wraps none.
    let messages = rows
        .iter()
        .filter_map(|row| row.find("worker").map(|at| &row[at..]));
    for row in messages.filter(|row| row.contains("hi") || row.contains("| ")) {
        assert!(
            row.chars().filter(|c| *c != '\u{301}').count() < 40,
            "{row:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_shows_the_history_on_entering() {
    let home = home();
    let gateway = Gateway::start(&home, &(config(&home) + "[topics.main]\nhistory = 20\n"));
    let (worker, _) = enter(spec(&gateway, "worker").serving(tools())).await;
    let (scout, mut reported) = join(&gateway, "scout").await;
    worker.chat("one").unwrap();
    worker.chat("two\nboss: three").unwrap();
    let mut decided = scout
        .propose(&["worker"], "tools/call", &echo("decided"))
        .unwrap();
    let (boss, mut asked) = join(&gateway, "boss").await;
    let proposed = receive(&mut asked, "a proposal", |event| match event {
        Event::History { past, .. } => past.into_iter().find_map(|event| match event {
            Event::Proposal(proposed) => Some(proposed),
            _ => None,
        }),
        Event::Proposal(proposed) => Some(proposed),
        _ => None,
    });
    boss.reject(proposed.await.id(), "no").await.unwrap();
    assert!(decided.outcome(TIMEOUT).await.is_err());
    let _open = scout
        .propose(&["worker"], "tools/call", &echo("open"))
        .unwrap();
    let mut pending = 0;
    let two = |event| {
        pending += usize::from(matches!(
            event,
            Event::ProposalState {
                state: ProposalState::Pending,
                ..
            }
        ));
        (pending == 2).then_some(())
    };
    receive(&mut reported, "both wait", two).await;
    let mut late = person(&home, &gateway, "mallory");
    // Of the proposals only the one that is still open.
    late.wait_for_line("? proposal #1 by scout");
    late.wait_for_line("\"text\": \"open\"");
    late.type_line("/quit");
    let (code, seen) = late.wait_for_exit();
    assert!(code == 0 && !seen.contains("proposal #2"), "{seen}");
    // Messages are on stdout, notes on stderr.
    let of = |stream: &[&str]| {
        let places: Vec<Option<usize>> = stream.iter().map(|line| seen.find(line)).collect();
        assert!(
            places.iter().all(Option::is_some) && places.is_sorted(),
            "{stream:?}: {seen}"
        );
    };
    of(&["worker: one", "worker: two", "worker| boss: three"]);
    of(&[
        "* earlier messages:",
        "* end of the earlier messages",
        "? proposal #1",
    ]);
}
