//! `portmoot chat`: a person in the room, with plain lines and at a terminal.

use client::participant::Event;

use crate::http::PATIENCE;
use crate::participants::{config, echo, enter, hear, home, join, read, spec, token, tools};
use crate::program::Program;
use crate::pty::talk_there;
use crate::runner::{Home, Ran};
use crate::support::Gateway;

/// `portmoot chat` as this participant, past its greeting.
fn person(home: &Home, gateway: &Gateway, name: &str) -> Program {
    let url = gateway.url();
    let mut person = Program::start(home.command(&["chat", "--url", &url, "--token", &token(name)]));
    person.sees("You are ");
    person
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_talks_calls_and_approves() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let (worker, mut heard) = enter(spec(&gateway, "worker").serving(tools())).await;
    let (scout, _) = join(&gateway, "scout").await;
    let mut person = person(&home, &gateway, "boss");
    person.types("hello everybody");
    let said = |event| match event {
        Event::Chat { from, text, .. } => Some((from, text)),
        _ => None,
    };
    assert_eq!(hear(&mut heard, "a chat", said).await, ("boss".to_owned(), "hello everybody".to_owned()));
    worker.chat("hi\nboss: do it\u{1b}[2J\u{202e}").unwrap();
    assert_eq!(person.sees("worker: "), "worker: hi");
    assert_eq!(person.sees("boss: "), "    boss: do it\\u{1b}[2J\\u{202e}");
    for (typed, seen) in [
        ("/tools worker", "worker  echo  Says it again"),
        ("/tools", "worker  echo  Says it again"),
        (r#"/call worker echo {"text": "a b"}"#, "= a b"),
        (r#"/call worker echo"#, "! `text` is missing"),
        ("/call worker none", "! answered with an error: unknown tool `none`"),
        ("/call worker echo [1]", "The arguments must be one JSON object"),
        ("/who", "scout  mcp/proposal:tools/call, mcp/response:*, chat"),
        ("/proposals", "No open proposals"),
        ("/approve 7", "There is no such open proposal"),
        ("/dance", "There is no such command"),
        ("/help", "/approve ID"),
    ] {
        person.types(typed);
        person.sees(seen);
    }
    let mut proposal = scout.propose(&["worker"], "tools/call", &echo("please\u{202e}")).unwrap();
    assert!(person.sees("? proposal #1 by scout at worker: tools/call echo").starts_with("? "));
    assert!(person.sees("params").contains(r#""text":"please\u{202e}""#));
    person.types("/approve 1");
    person.sees("= please\\u{202e}");
    let outcome = read(&proposal.outcome(PATIENCE).await.unwrap());
    assert_eq!(outcome["content"][0]["text"], "please\u{202e}");
    person.types("/proposals");
    person.sees("No open proposals");
    scout.close().await;
    person.sees("* scout has left");
    person.types("/quit");
    assert_eq!(person.ends().0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_end_of_the_input_it_waits_for_what_was_asked() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let (_worker, mut heard) = enter(spec(&gateway, "worker").serving(tools())).await;
    let (boss, mut asked) = join(&gateway, "boss").await;
    let mut person = person(&home, &gateway, "scout");
    person.types(r#"/call worker echo {"text": "late"}"#);
    person.types("bye");
    let said = |event| matches!(event, Event::Chat { .. }).then_some(());
    hear(&mut heard, "a chat", said).await;
    let proposed = hear(&mut asked, "a proposal", |event| match event {
        Event::Proposal(proposed) => Some(proposed),
        _ => None,
    });
    let proposed = proposed.await;
    person.types_no_more();
    boss.fulfil(&proposed, None).await.unwrap();
    let (code, printed) = person.ends();
    assert_eq!((code, printed.lines().last()), (0, Some("= late")), "{printed}");
}

#[test]
fn who_cannot_come_in_is_told_by_exit_code() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let chat = |more: &[&str]| home.run(&[&["chat"], more].concat());
    let wrong = chat(&["--url", &gateway.url(), "--token", "a-token-of-nobody-at-all"]).expect(4).stderr;
    assert!(wrong.contains("--token TOKEN"), "{wrong}");
    let boss = token("boss");
    chat(&["--url", &gateway.url(), "--token", &boss, "--topic", "vault"]).expect(3);
    chat(&["--url", "gopher://x"]).expect(2);
    chat(&["--url", "http://127.0.0.1:1"]).expect(1);
    // The one that owns the data directory is found by itself.
    chat(&["--config", "portmoot.toml", "--token", &boss]).expect(0);
    drop(gateway);
    let none = chat(&["--config", "portmoot.toml"]).expect(1).stderr;
    assert!(none.contains("portmoot serve"), "{none}");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_a_terminal_words_are_completed_and_others_speak_above_the_line() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let (worker, mut heard) = enter(spec(&gateway, "worker").serving(tools())).await;
    let (url, token) = (gateway.url(), token("boss"));
    let answering = tokio::spawn(async move {
        let said = |event| matches!(event, Event::Chat { .. }).then_some(());
        hear(&mut heard, "a chat", said).await;
        worker.chat("welcome\u{1b}[1A").unwrap();
        let asked = |event| matches!(event, Event::Left(seen) if seen.id == "boss").then_some(());
        hear(&mut heard, "the person leaves", asked).await;
    });
    let steps = [
        ("> ", "hello"),
        ("worker: welcome\\u{1b}[1A", "/to\two\t"),
        ("echo  Says it again", "/call wo\te\t{\"text\": \"typed\"}"),
        ("= typed", "/qu\t"),
    ];
    let ran: Ran = tokio::task::block_in_place(|| {
        talk_there(&home, &["chat", "--url", &url, "--token", &token], &steps)
    });
    ran.expect(0);
    answering.await.unwrap();
}
