//! Damaged and lost journals: the gateway does not start, says what to do, and starts once that is
//! done.

use std::fs;
use std::process::Command;

use crate::home::Home;
use crate::support::Gateway;

const CONFIG: &str = "[server]\ndata_dir = \"data\"\nlisten = \"127.0.0.1:0\"\n";

/// A home whose gateway required a token, which an operator had issued. No token is configured.
fn closed() -> Home {
    let home = Home::new();
    home.write("portmoot.toml", CONFIG);
    home.run(&["token", "new", "scout", "--config", "portmoot.toml"])
        .expect(0);
    let gateway = Gateway::start(&home, CONFIG);
    assert_eq!(gateway.get("/api/v1/servers", None).status, 401);
    gateway.stop();
    home
}

/// Starts a gateway that must refuse to start; follows its advice, and starts it again.
#[track_caller]
fn refuses_then_starts(home: &Home, code: &str, words: &str) -> Gateway {
    let ran = home.run(&["serve", "--config", "portmoot.toml"]).expect(1);
    assert!(
        ran.stderr.contains(code) && ran.stderr.contains(words),
        "{}",
        ran.stderr
    );
    let again = home.run(&["serve", "--config", "portmoot.toml"]).expect(1);
    assert_eq!(again.stderr, ran.stderr, "a refused start changes nothing");
    let doctor = home.run(&["doctor", "--config", "portmoot.toml"]).expect(1);
    let (_, advice) = ran.stderr.rsplit_once("To go on with").unwrap();
    let (command, _) = advice.split_once(": ").unwrap().1.split_once(';').unwrap();
    assert!(doctor.stdout.contains(command), "{}", doctor.stdout);
    let done = Command::new("sh")
        .args(["-c", command])
        .current_dir(home.path())
        .status()
        .unwrap();
    assert!(done.success(), "{command}");
    Gateway::start(home, CONFIG)
}

#[test]
fn a_lost_journal_does_not_open_the_gateway() {
    for change in [
        |journal: &std::path::Path| fs::remove_file(journal).unwrap(),
        |journal: &std::path::Path| fs::write(journal, "").unwrap(),
    ] {
        let home = closed();
        change(&home.path().join("data/journal.jsonl"));
        let gateway = refuses_then_starts(&home, "journal_lost", "it is gone");
        assert_eq!(
            gateway.get("/api/v1/servers", None).status,
            200,
            "its operator has accepted that"
        );
    }
}

#[test]
fn a_journal_without_its_head_does_not_open_the_gateway() {
    for (change, words) in [
        (
            (|data: &std::path::Path| fs::remove_file(data.join("journal.head")).unwrap())
                as fn(&std::path::Path),
            "journal.head",
        ),
        (
            |data| fs::write(data.join("journal.head"), "").unwrap(),
            "journal.head",
        ),
        (
            |data| {
                let text = fs::read_to_string(data.join("journal.jsonl")).unwrap();
                fs::write(
                    data.join("journal.jsonl"),
                    text.lines().next().unwrap().to_owned() + "\n",
                )
                .unwrap();
                fs::remove_file(data.join("journal.head")).unwrap();
            },
            "journal.head",
        ),
        (
            |data| {
                fs::remove_file(data.join("journal.jsonl")).unwrap();
                fs::remove_file(data.join("journal.head")).unwrap();
            },
            "there is an audit log",
        ),
    ] {
        let home = closed();
        change(&home.path().join("data"));
        refuses_then_starts(&home, "journal_lost", words);
    }
}

#[test]
fn an_older_journal_brings_no_revoked_token_back() {
    let home = closed();
    let journal = home.path().join("data/journal.jsonl");
    let before = fs::read(&journal).unwrap();
    home.run(&["token", "revoke", "scout", "--config", "portmoot.toml"])
        .expect(0);
    fs::write(&journal, before).unwrap();
    refuses_then_starts(&home, "journal_lost", "its end is gone");
}

#[test]
fn a_changed_journal_is_refused_with_its_line() {
    let home = closed();
    let journal = home.path().join("data/journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let line = text
        .lines()
        .position(|line| line.contains("token_issued"))
        .unwrap()
        + 1;
    fs::write(&journal, text.replace("\"scout\"", "\"sc0ut\"")).unwrap();
    let gateway = refuses_then_starts(&home, "journal_damaged", &format!("line {line} of "));
    assert!(
        home.path().join("data/journal.jsonl.damaged").exists(),
        "it can still be examined"
    );
    drop(gateway);

    let home = closed();
    let journal = home.path().join("data/journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let kept = |line: &&str| !line.contains("token_issued");
    fs::write(
        &journal,
        text.split_inclusive('\n').filter(kept).collect::<String>(),
    )
    .unwrap();
    refuses_then_starts(&home, "journal_damaged", "lines are missing or moved");
}

#[test]
fn a_journal_without_checksums_is_taken_over() {
    let home = closed();
    let data = home.path().join("data");
    let text = fs::read_to_string(data.join("journal.jsonl")).unwrap();
    let older = |line: &str| format!("{{\"record\"{}\n", line.split_once("\"record\"").unwrap().1);
    fs::write(
        data.join("journal.jsonl"),
        text.lines().skip(1).map(older).collect::<String>(),
    )
    .unwrap();
    fs::remove_file(data.join("journal.head")).unwrap();
    let gateway = Gateway::start(&home, CONFIG);
    assert_eq!(gateway.get("/api/v1/servers", None).status, 401);
    gateway.stop();
    let now = fs::read_to_string(data.join("journal.jsonl")).unwrap();
    assert!(now.lines().all(|line| line.starts_with("{\"n\":")), "{now}");
}
