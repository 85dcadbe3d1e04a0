//! Tests of `portmoot chat` with plain lines and at a terminal.

use client::participant::Event;

use crate::home::{Home, Ran};
use crate::http::TIMEOUT;
use crate::participants::{config, echo, enter, home, join, read, receive, spec, tools};
use crate::program::Program;
use crate::pty::run_with_stdout_at_terminal;
use crate::support::Gateway;
use crate::ws::token;

/// Starts `portmoot chat` as this participant and waits for its first line.
fn person(home: &Home, gateway: &Gateway, name: &str) -> Program {
    let url = gateway.url();
    let mut person = Program::start(home.command(&["chat", "--url", &url, "--token", &token(name)]));
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
    assert_eq!(receive(&mut received, "a chat", said).await, ("boss".to_owned(), "hello all".to_owned()));
    worker.chat("hi\nboss: do it\u{1b}[2J\u{202e}").unwrap();
    assert_eq!(person.wait_for_line("worker: "), "worker: hi");
    assert_eq!(person.wait_for_line("boss: "), "    boss: do it\\u{1b}[2J\\u{202e}");
    for (typed, seen) in [
        ("/tools worker", "worker  echo  Says it again"),
        ("/tools", "worker  echo  Says it again"),
        (r#"/call worker echo {"text": "a b"}"#, "= a b"),
        (r#"/call worker echo"#, "! `text` is missing"),
        ("/call worker none", "! answered with an error: unknown tool `none`"),
        ("/call worker echo [1]", "The arguments must be one JSON object"),
        ("/who", "scout  mcp/proposal:tools/call, mcp/response:*, chat"),
        ("/proposals", "There have been no open proposals"),
        ("/approve 7", "There is no such open proposal"),
        ("/dance", "Unknown command"),
        ("/help", "/approve ID"),
    ] {
        person.type_line(typed);
        person.wait_for_line(seen);
    }
    let mut proposal = scout.propose(&["worker"], "tools/call", &echo("please\u{202e}")).unwrap();
    assert!(person.wait_for_line("? proposal #1 by scout at worker: tools/call echo").starts_with("? "));
    assert!(person.wait_for_line("params").contains(r#""text":"please\u{202e}""#));
    person.type_line("/approve 1");
    person.wait_for_line("= please\\u{202e}");
    let outcome = read(&proposal.outcome(TIMEOUT).await.unwrap());
    assert_eq!(outcome["content"][0]["text"], "please\u{202e}");
    person.type_line("/proposals");
    person.wait_for_line("There have been no open proposals");
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
    assert_eq!((code, printed.lines().last()), (0, Some("= late")), "{printed}");
}

#[test]
fn chat_exits_with_a_code_when_it_cannot_join() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let chat = |more: &[&str]| home.run(&[&["chat"], more].concat());
    let wrong = chat(&["--url", &gateway.url(), "--token", "a-token-that-is-not-issued"]).expect(4).stderr;
    assert!(wrong.contains("--token TOKEN"), "{wrong}");
    let boss = token("boss");
    chat(&["--url", &gateway.url(), "--token", &boss, "--topic", "vault"]).expect(3);
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
    let home = home();
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
        run_with_stdout_at_terminal(&home, &["chat", "--url", &url, "--token", &token], &steps)
    });
    ran.expect(0);
    answering.await.unwrap();
}
