//! The picture in the README: an agent's call that waits, the reviewer's screen, and the answer,
//! from a real run in real terminals.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use harness::{deps, repository};
use serde_json::json;

use crate::chat_screen::steady;
use crate::support::Gateway;
use crate::tmux::Pane;
use crate::ws::{config_of, home_of, token};

const PEOPLE: &[(&str, &[&str])] = &[
    ("ann", &["mcp/*", "chat", "portmoot/grants"]),
    (
        "agent",
        &[
            "mcp/request:*/list",
            "mcp/proposal:*",
            "mcp/response:*",
            "chat",
        ],
    ),
];
const COLUMNS: u16 = 84;
const NOTE: &str = "buy milk and bread";
/// What stands in the picture in place of the run's own ids and times.
const ID: &str = "7d0c5a1e94f84b3c8f2e61b09ad35c17";
const DIGEST: &str = "b61f0c3f5f0e6a4f2a9d8e7c6b5a49382716051f4e3d2c1b0a9f8e7d6c5b4a39";

/// The screen with steady ids and times.
fn fixed(screen: &str) -> String {
    let zeros = |text: &str| {
        text.chars()
            .map(|c| if c == '-' { '-' } else { '0' })
            .collect::<String>()
    };
    let text = steady(screen).replace("\\e", "\u{1b}");
    let text = text.replace(&zeros(DIGEST), DIGEST).replace(&zeros(ID), ID);
    let text = text
        .replacen("(00:00)", "(14:02)", 1)
        .replacen("(00:00)", "(14:07)", 1);
    text.replace("expires in 9s", "expires in 4m")
        .replace("00:00", "14:02")
}

/// Draws the terminals.
fn drawn(panels: &[(&str, String)]) -> String {
    let panel = |(title, screen): &(&str, String)| json!({ "title": title, "columns": COLUMNS, "screen": screen });
    let input = json!({ "panels": panels.iter().map(panel).collect::<Vec<_>>() });
    let script = repository().join("tools/picture");
    let mut child = Command::new(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.to_string().as_bytes())
        .unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn the_picture_of_the_readme() {
    let home = home_of(PEOPLE);
    let words = deps().server_filesystem(&PathBuf::from("."));
    let folder = home.path().join("notes");
    std::fs::create_dir(&folder).unwrap();
    let config = config_of(&home, PEOPLE)
        + &format!(
            "[servers.files]\ncommand = {:?}\nargs = {:?}\ncwd = {folder:?}\n",
            words[0],
            &words[1..]
        );
    let gateway = Gateway::start(&home, &config);
    gateway.ready("files");
    let url = gateway.url();
    let ann = Pane::start(
        &home,
        (COLUMNS, 21),
        &["chat", "--url", &url, "--token", &token("ann")],
    );
    ann.wait_for("* here:");
    let content = format!("content={NOTE}");
    let call = [
        "tools",
        "call",
        "files_write_file",
        "path=note.txt",
        &content,
    ];
    let agent = Pane::start(
        &home,
        (COLUMNS, 12),
        &[&call[..], &["--url", &url, "--token", &token("agent")]].concat(),
    );
    agent.wait_for("waiting for a decision");
    ann.wait_for("#1 waits for a decision");
    ann.press(&["F2"]);
    ann.wait_for("a approve  r reject");
    let waits = ann.styled();
    ann.press(&["a"]);
    ann.wait_for("y approves");
    ann.press(&["y"]);
    assert_eq!(agent.wait_for_exit(), 0);
    assert_eq!(
        std::fs::read_to_string(folder.join("note.txt")).unwrap(),
        NOTE
    );
    let answered = agent.styled();
    let answered = answered.split("[exit ").next().unwrap().trim_end();
    let typed =
        format!("$ portmoot tools call files_write_file path=note.txt content=\"{NOTE}\"\n");
    let panels = [
        ("the agent", typed + &fixed(answered)),
        ("ann, who reviews: portmoot chat", fixed(&waits)),
    ];
    let made = drawn(&panels);
    let path = repository().join("docs/approval.svg");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        known == made,
        "docs/approval.svg is stale: UPDATE=1 cargo nextest run -p portmoot the_picture"
    );
}
