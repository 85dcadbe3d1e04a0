//! Tests of `portmoot chat` in a real terminal: the full screen and the plain lines, keys,
//! decisions, hostile texts.
//!
//! `UPDATE=1 cargo nextest run -p portmoot chat_screen` writes `tests/screens` again.

mod allowed;
mod planned;

use std::collections::BTreeSet;
use std::path::Path;

use participant::{CallError, CallMode, Event, Events, Participant};
use serde_json::json;
use tokio::task::block_in_place;

use crate::home::Home;
use crate::http::TIMEOUT;
use crate::participants::{echo, enter, join, read, receive, spec, tools};
use crate::support::{Gateway, until};
use crate::tmux::Pane;
use crate::ws::{config_of, home_of, token};

const PEOPLE: &[(&str, &[&str])] = &[
    ("boss", &["mcp/*", "chat", "portmoot/grants"]),
    ("worker", &["mcp/response:*", "chat"]),
    (
        "scout",
        &["mcp/proposal:tools/call", "mcp/response:*", "chat"],
    ),
    ("mallory", &["mcp/response:*", "mcp/proposal:*", "chat"]),
];

struct Room {
    home: Home,
    gateway: Gateway,
    worker: Participant,
    scout: Participant,
    /// What the scout receives.
    events: Events,
}

impl Room {
    async fn new() -> Room {
        Room::with(&[]).await
    }

    async fn with(env: &[(&str, &str)]) -> Room {
        Room::keeping(50, env).await
    }

    /// A room that keeps so many messages.
    async fn keeping(history: usize, env: &[(&str, &str)]) -> Room {
        let home = env
            .iter()
            .fold(home_of(PEOPLE), |home, (name, value)| home.env(name, value));
        let config = config_of(&home, PEOPLE) + &format!("[topics.main]\nhistory = {history}\n");
        let gateway = Gateway::start(&home, &config);
        let (worker, _) = enter(spec(&gateway, "worker").serving(tools())).await;
        let (scout, events) = join(&gateway, "scout").await;
        Room {
            home,
            gateway,
            worker,
            scout,
            events,
        }
    }

    /// `portmoot chat` as the boss.
    fn boss(&self, size: (u16, u16), more: &[&str]) -> Pane {
        let (url, token) = (self.gateway.url(), token("boss"));
        Pane::start(
            &self.home,
            size,
            &[&["chat", "--url", &url, "--token", &token], more].concat(),
        )
    }
}

/// A screen without what differs from run to run: times of day, ages, ids. Escape sequences stay,
/// with `\\e` for their first byte.
pub(crate) fn steady(screen: &str) -> String {
    let (mut out, mut word, mut in_escape) = (String::new(), String::new(), false);
    let end = |word: &mut String, out: &mut String| {
        let digits = word.chars().filter(char::is_ascii_digit).count();
        let is_time = word.len() == 5 && digits == 4 && word.as_bytes()[2] == b':';
        let is_id = word.len() >= 30 && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        let is_age = digits > 0 && digits + 1 == word.len() && word.ends_with(['s', 'm']);
        match (is_time || is_id, is_age) {
            (true, _) => out.extend(
                word.chars()
                    .map(|c| if c.is_ascii_hexdigit() { '0' } else { c }),
            ),
            (_, true) => out.push_str("9s"),
            _ => out.push_str(word),
        }
        word.clear();
    };
    for c in screen.chars() {
        match c {
            '\u{1b}' => {
                end(&mut word, &mut out);
                out.push_str("\\e");
                in_escape = true;
            }
            c if in_escape => {
                out.push(c);
                in_escape = c != 'm';
            }
            c if c.is_ascii_alphanumeric() || c == ':' || c == '-' => word.push(c),
            c => {
                end(&mut word, &mut out);
                out.push(c);
            }
        }
    }
    end(&mut word, &mut out);
    let lines = out.lines().map(|line| {
        without_dates(line)
            .replace("made now", "made 9s ago")
            .trim_end()
            .to_owned()
    });
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned() + "\n"
}

/// A line without the dates that are before times of another day: a screen is drawn at any hour.
fn without_dates(line: &str) -> String {
    let is_date = |word: &str| {
        let mut parts = word
            .trim_end()
            .split('-')
            .map(|part| (part.len(), part.parse::<u16>().is_ok()));
        [4, 2, 2]
            .iter()
            .all(|length| parts.next() == Some((*length, true)))
            && parts.next().is_none()
    };
    let word = |word| match str::strip_prefix(word, "(") {
        Some(rest) if is_date(rest) => "(",
        None if is_date(word) => "",
        Some(_) | None => word,
    };
    line.split_inclusive(' ').map(word).collect()
}

/// Compares a screen with the file of this name.
#[track_caller]
fn compare(name: &str, screen: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/screens")
        .join(name);
    let shown = steady(screen);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &shown).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        shown, known,
        "UPDATE=1 cargo nextest run -p portmoot chat_screen ({name})"
    );
}

/// Makes a few things happen before the boss comes, and one proposal that waits.
async fn happenings(room: &mut Room) -> participant::Proposal {
    room.worker
        .chat("I serve echo.\nboss: not really the boss")
        .unwrap();
    receive(&mut room.events, "a chat", |event| {
        matches!(event, Event::Chat { .. }).then_some(())
    })
    .await;
    room.scout.chat("@boss may I tidy up?").unwrap();
    room.scout.chat_to(&["boss"], "between us").unwrap();
    let proposal = room
        .scout
        .propose(&["worker"], "tools/call", &echo("please"))
        .unwrap();
    block_in_place(|| {
        until("it waits", || {
            (!room.gateway.pending(&room.home, &token("boss")).is_null()).then_some(())
        });
    });
    proposal
}

#[tokio::test(flavor = "multi_thread")]
async fn the_screen_and_the_lines_in_a_real_terminal() {
    for (colour, env) in [("colour", &[][..]), ("plain", &[("NO_COLOR", "1")])] {
        let mut room = Room::with(env).await;
        let _waits = happenings(&mut room).await;
        for size in [(80, 24), (120, 40)] {
            let name = |what: &str| format!("{what}-{}x{}-{colour}", size.0, size.1);
            let pane = room.boss(size, &[]);
            pane.wait_for("? #1 waits for a decision: scout asks for echo");
            pane.wait_for("4 here | 1 wait");
            compare(&name("talk"), &pane.styled());
            pane.press(&["F2"]);
            pane.wait_for("proposal #1 by scout at worker: tools/call echo");
            pane.wait_for("a approve  r reject");
            compare(&name("inbox"), &pane.styled());
            pane.press(&["a"]);
            pane.wait_for("y approves");
            compare(&name("sure"), &pane.styled());
            pane.press(&["n"]);
            pane.wait_until("the question is dropped", |screen| {
                !screen.contains("y approves")
            });
            pane.press(&["F1"]);
            pane.wait_for("Keys and commands");
            compare(&name("help"), &pane.styled());
            pane.press(&["q"]);
            pane.wait_for("a approve");
            pane.press(&["C-c"]);
            assert_eq!(pane.wait_for_exit(), 0);
            let lines = room.boss(size, &["--lines"]);
            lines.wait_for("? proposal #1 by scout at worker: tools/call echo");
            lines.wait_for("digest");
            compare(&name("lines"), &lines.styled());
            lines.type_text("/quit");
            lines.press(&["Enter"]);
            assert_eq!(lines.wait_for_exit(), 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reviewer_who_comes_late_decides_what_waits() {
    // The editor of the person: it replaces a word.
    let mut room = Room::with(&[("EDITOR", "sed -i s/please/edited/")]).await;
    let mut first = happenings(&mut room).await;
    let propose = |text: &str| {
        room.scout
            .propose(&["worker"], "tools/call", &echo(text))
            .unwrap()
    };
    let [mut second, mut third, mut fourth, mut fifth] = [
        propose("two"),
        propose("please"),
        propose("here"),
        propose("often"),
    ];
    let pane = room.boss((120, 40), &[]);
    pane.wait_for("5 wait");
    pane.press(&["F2"]);
    pane.wait_for("proposal #1 by scout");
    // A card opens by itself when the one before it is decided: keys decide it when the screen
    // lists them again.
    let opened = |number: usize| {
        pane.wait_until(&format!("#{number} can be decided"), |screen| {
            screen.contains(&format!("proposal #{number} by scout"))
                && screen.contains("a approve  r reject")
        });
    };
    opened(1);
    // Approve: what its server says nothing about needs a second key.
    pane.press(&["a"]);
    pane.wait_for("Approve #1? It may be DESTRUCTIVE");
    pane.press(&["y"]);
    assert_eq!(
        read(&first.outcome(TIMEOUT).await.unwrap())["content"][0]["text"],
        "please"
    );
    // Reject, with a reason.
    opened(2);
    pane.press(&["r"]);
    pane.wait_for("reject #2, because:");
    pane.type_text("not today");
    pane.press(&["Enter"]);
    let Err(CallError::Ended { reason, .. }) = second.outcome(TIMEOUT).await else {
        panic!()
    };
    assert_eq!(reason.as_deref(), Some("not today"));
    // Edit in the editor.
    opened(3);
    pane.press(&["E"]);
    pane.wait_for("with these arguments instead");
    pane.wait_for("|   \"text\": \"edited\"");
    pane.press(&["y"]);
    assert_eq!(
        read(&third.outcome(TIMEOUT).await.unwrap())["content"][0]["text"],
        "edited"
    );
    // Edit in place.
    opened(4);
    pane.press(&["e"]);
    pane.wait_for("arguments: {");
    pane.press(&["C-u"]);
    pane.type_text(r#"{"text":"in place"}"#);
    pane.press(&["Enter"]);
    pane.wait_for("with these arguments instead");
    pane.press(&["y"]);
    assert_eq!(
        read(&fourth.outcome(TIMEOUT).await.unwrap())["content"][0]["text"],
        "in place"
    );
    // Approve and allow for a time: the next call needs no proposal.
    opened(5);
    let mode = || {
        room.scout
            .call_mode("worker", "tools/call", &echo("again"))
            .unwrap()
    };
    assert_eq!(mode(), Some(CallMode::Propose));
    // No rule of the gateway approves calls of a participant that serves in the room.
    pane.press(&["h"]);
    pane.wait_for("2) 1 hour");
    pane.press(&["1"]);
    pane.wait_for("All calls of the tool: /allow 5 1h");
    pane.press(&["Escape"]);
    pane.type_text("/allow 5 15m");
    pane.press(&["Enter"]);
    pane.wait_for("let scout make this call in topic main without asking");
    pane.wait_for("mcp/request:tools/call:echo");
    pane.press(&["y"]);
    assert_eq!(
        read(&fifth.outcome(TIMEOUT).await.unwrap())["content"][0]["text"],
        "often"
    );
    block_in_place(|| {
        until("scout may call", || {
            (mode() == Some(CallMode::Request)).then_some(())
        })
    });
    pane.press(&["Escape"]);
    pane.wait_for("scout may do this without asking for 15m");
    for line in [
        "= please",
        "= #2 is rejected",
        "= edited",
        "= in place",
        "= often",
    ] {
        pane.wait_for(line);
    }
    // A call of others is seen as it happens.
    let answer = room
        .scout
        .request("worker", "tools/call", &echo("again"))
        .await
        .unwrap();
    assert_eq!(read(&answer)["content"][0]["text"], "again");
    pane.wait_for(r#"> scout to worker: tools/call echo {"text":"again"}"#);
    pane.wait_for("< worker to scout: tools/call echo");
}

/// One step: keys, and what the screen shows then, or with `!` does not show any more.
const STEPS: &[(&[&str], &str)] = &[
    (&["F1"], "Keys and commands"),
    (&["q"], "!Keys and commands"),
    (&["F2"], "a approve  r reject"),
    (&["F2"], "F1 help  F2 inbox"),
    (&["F3"], "The calls of others are not shown."),
    (&["F3"], "The calls of others are shown."),
    (&["C-l"], "words 59"),
    (&["PPage"], "!words 59"),
    (&["NPage"], "words 59"),
    (&["C-Home"], "You are boss"),
    (&["C-End"], "words 59"),
    (&["PPage"], "Esc goes to the newest entry"),
    (&["Escape"], "words 59"),
    (&["text:/he"], "> /he"),
    (&["Tab"], "> /help"),
    (&["C-c"], "!> /help"),
    (&["text:one two"], "> one two"),
    (&["C-w"], "!one two"),
    (&["Left", "BSpace", "text:s"], "> ons"),
    (&["Home", "text:x"], "> xons"),
    (&["Right", "Delete"], "> xos"),
    (&["End", "text:!"], "> xos !"),
    (&["C-a", "text:y"], "> yxos !"),
    (&["C-e", "text:."], "> yxos !."),
    (&["C-b", "text:,"], "> yxos !,."),
    (&["C-f", "text:?"], "> yxos !,.?"),
    (&["C-a", "C-f", "C-k", "text:z"], "> yz"),
    (&["C-u"], "!> yz"),
    (&["text:sent"], "> sent"),
    (&["Enter"], "boss: sent"),
    (&["Up"], "> sent"),
    (&["Down"], "!> sent"),
    (&["Tab"], "a approve  r reject"),
    (&["j"], "proposal #2 by"),
    (&["k"], "proposal #1 by"),
    (&["Down"], "proposal #2 by"),
    (&["Up"], "proposal #1 by"),
    (&["Space"], "!proposal #1 by"),
    (&["b"], "proposal #1 by"),
    (&["NPage"], "!proposal #1 by"),
    (&["PPage"], "proposal #1 by"),
    (&["G"], "digest "),
    (&["g"], "proposal #1 by"),
    (&["End"], "digest "),
    (&["Home"], "proposal #1 by"),
    (&["?"], "Keys and commands"),
    (&["x"], "!Keys and commands"),
    (&["a"], "rows of what is asked for were not shown yet"),
    (&["j"], "proposal #2 by"),
    (&["a"], "y approves"),
    (&["x"], "!y approves"),
    (&["r"], "reject #2, because:"),
    (&["C-c"], "!reject #2"),
    (&["A"], "approve #2, note:"),
    (&["Escape"], "!approve #2"),
    (&["c"], "looking at it: boss since "),
    (&["t"], "expires in 14m"),
    (&["e"], "arguments: {"),
    (&["Escape"], "!arguments: {"),
    (&["E"], "Nothing was decided: the text was left as it was"),
    (&["h"], "1) 15 minutes"),
    (&["x"], "!1) 15 minutes"),
    (&["w"], "Only its proposer can withdraw it"),
    (&["p"], "pause scout, because:"),
    (&["Escape"], "!pause scout"),
    (&["s"], "no rule is offered to you"),
    (&["Escape"], "a approve  r reject"),
    (&["q"], "F1 help  F2 inbox"),
    (&["Tab"], "a approve  r reject"),
    (&["Tab"], "F1 help  F2 inbox"),
    (&["F2"], "a approve  r reject"),
    (&["Escape"], "F1 help  F2 inbox"),
];

/// The name in the table of a key of tmux.
fn table_name(key: &str) -> String {
    match key {
        "PPage" => "PgUp".into(),
        "NPage" => "PgDn".into(),
        "BSpace" => "Backspace".into(),
        "Escape" => "Esc".into(),
        key => match key.strip_prefix("C-") {
            Some(plain) if plain.len() == 1 => format!("Ctrl-{}", plain.to_uppercase()),
            Some(plain) => format!("Ctrl-{plain}"),
            None => key.to_owned(),
        },
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_key_works_in_a_real_terminal() {
    let room = Room::with(&[("EDITOR", "true")]).await;
    let lines: Vec<String> = (0..60).map(|number| format!("line {number}")).collect();
    let long = json!({ "name": "echo", "arguments": { "lines": lines } });
    let _long = room
        .scout
        .propose(&["worker"], "tools/call", &long)
        .unwrap();
    block_in_place(|| {
        until("one waits", || {
            (!room.gateway.pending(&room.home, &token("boss")).is_null()).then_some(())
        })
    });
    let _short = room
        .scout
        .propose(&["worker"], "tools/call", &echo("please"))
        .unwrap();
    let pane = room.boss((80, 24), &[]);
    pane.wait_for("2 wait");
    for number in 0..60 {
        room.worker.chat(&format!("words {number}")).unwrap();
    }
    pane.wait_for("words 59");
    let mut pressed = BTreeSet::new();
    for (keys, shown) in STEPS {
        for key in *keys {
            match key.strip_prefix("text:") {
                Some(text) => pane.type_text(text),
                None => {
                    pressed.insert(table_name(key));
                    pane.press(&[key]);
                }
            }
        }
        match shown.strip_prefix('!') {
            Some(gone) => pane.wait_until(&format!("{keys:?}: no {gone:?}"), |screen| {
                !screen.contains(gone)
            }),
            None => pane.wait_until(&format!("{keys:?}: {shown:?}"), |screen| {
                screen.contains(shown)
            }),
        };
    }
    pane.press(&["C-d"]);
    pressed.insert("Ctrl-D".to_owned());
    assert_eq!(pane.wait_for_exit(), 0);
    let all: BTreeSet<String> = chat::keys::KEYS
        .iter()
        .flat_map(|binding| binding.keys)
        .map(|key| (*key).to_owned())
        .collect();
    let missing: Vec<&String> = all.difference(&pressed).collect();
    assert!(missing.is_empty(), "keys that no step presses: {missing:?}");
}

/// Texts that would hide, move or imitate something.
fn hostile() -> Vec<String> {
    let mut all: Vec<String> = [
        "\u{1b}[2J\u{1b}[1;1Hboss: approve it",
        "\u{1b}]0;title\u{7}\u{1b}]52;c;eA==\u{7}\u{9b}31m\u{1b}[?1049l",
        "a\r00:00 boss: approve it",
        "a\nboss: approve it\n00:00 boss: approve it",
        "\u{202e}evil\u{202c} \u{2066}x\u{2069} \u{200f}",
        "zero\u{200b}width\u{200d}\u{feff}\u{2060}",
        "\u{e0041}\u{e0042} tags",
        "\u{5e9}\u{5dc}\u{5d5}\u{5dd} boss: approve it",
        "e\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}",
        "| boss: approve it",
        "\u{1f469}\u{200d}\u{1f4bb}\u{1f1e6}\u{1f1e7}\u{fe0f}",
    ]
    .map(str::to_owned)
    .into();
    for pad in [
        " ",
        "\u{6f22}",
        "x",
        "\u{e9}",
        "\u{1f600}",
        "e\u{301}",
        "\t",
        "\u{5e9}",
        "\u{b7}",
        "\u{ac01}",
    ] {
        for count in [30, 66, 68, 70, 72, 150] {
            all.push(format!("hi{}boss: approve it", pad.repeat(count)));
        }
    }
    all.push("x".repeat(10_000));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_forge_nothing_in_a_real_terminal() {
    let mut room = Room::keeping(0, &[("NO_COLOR", "1")]).await;
    let (mallory, _events) = join(&room.gateway, "mallory").await;
    for (size, more) in [
        ((80, 24), &[][..]),
        ((120, 40), &[]),
        ((80, 24), &["--lines"]),
    ] {
        let pane = room.boss(size, more);
        pane.wait_for("* here:");
        for (number, said) in hostile().iter().enumerate() {
            mallory.chat(said).unwrap();
            // Words of another behind them, which nothing may cover.
            let is_it =
                |event| matches!(event, Event::Chat { text, .. } if text == *said).then_some(());
            receive(&mut room.events, "the hostile text", is_it).await;
            room.worker.chat(&format!("after {number}")).unwrap();
            let shown = pane.wait_for(&format!("after {number}"));
            for row in shown.lines().filter(|row| !row.trim().is_empty()) {
                let begin = row.trim_start_matches(['\u{200e}', '>', ' ']);
                let timed = begin.get(2..3) == Some(":") && begin.get(5..6) == Some(" ");
                let begin = if timed { &begin[6..] } else { begin };
                let known = [
                    "mallory: ",
                    "mallory| ",
                    "worker: after ",
                    "You are boss",
                    "* ",
                    "main  boss",
                    "F1 help",
                ];
                // Beside or below the talk.
                let frame =
                    begin.starts_with('|') || begin.starts_with("-- inbox") || begin.is_empty();
                let is_known = frame
                    || known
                        .iter()
                        .any(|known| begin.starts_with(known.trim_end()));
                assert!(is_known, "{said:?}: {row:?} in\n{shown}");
                let hidden = |c: char| participant::visible::is_hidden(c) && c != '\u{200e}';
                assert!(!row.chars().any(hidden), "{said:?}: {row:?}");
            }
            let count = shown.matches(&format!("worker: after {number}")).count();
            assert_eq!(count, 1, "{said:?}:\n{shown}");
        }
        // The terminal is still in the state that the chat left it in.
        if more.is_empty() {
            pane.wait_for("F1 help  F2 inbox");
            pane.wait_for(" main  boss");
            pane.press(&["C-c"]);
        } else {
            pane.press(&["C-d"]);
        }
        assert_eq!(pane.wait_for_exit(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_screen_follows_its_size_and_the_connection() {
    let room = Room::new().await;
    let pane = room.boss((80, 24), &[]);
    pane.wait_for("connected | 4 here");
    room.worker
        .chat(&format!("{} the end", "word ".repeat(30)))
        .unwrap();
    pane.wait_for("the end");
    pane.resize((40, 12));
    pane.wait_until("40 columns", |screen| {
        screen.contains("worker| ") && screen.lines().all(|row| row.chars().count() <= 40)
    });
    pane.resize((20, 5));
    pane.wait_for("needs 24x8");
    pane.resize((120, 30));
    pane.wait_for("-- inbox: empty --");
    let address = room.gateway.address().to_owned();
    let Room {
        home,
        mut gateway,
        worker,
        scout,
        events,
    } = room;
    block_in_place(|| {
        gateway.signal("KILL");
        gateway.wait();
    });
    pane.wait_for("CONNECTION LOST, reconnecting");
    pane.type_text("lost words");
    pane.press(&["Enter"]);
    pane.wait_for("! not sent: not connected");
    let gateway =
        Gateway::serve(home.command(&["serve", "--config", "portmoot.toml", "--listen", &address]));
    pane.wait_for("* connected again");
    pane.wait_for("connected | ");
    drop((worker, scout, events, gateway));
}

#[tokio::test(flavor = "multi_thread")]
async fn private_words_and_mentions_reach_the_person() {
    let room = Room::new().await;
    let pane = room.boss((80, 24), &[]);
    pane.wait_for("4 here");
    room.scout.chat_to(&["boss"], "psst").unwrap();
    pane.wait_for("scout to you: psst");
    room.scout.chat("hello @boss").unwrap();
    pane.wait_for("scout: hello @boss");
    block_in_place(|| until("the bell", || pane.rang().then_some(())));
    pane.type_text("/msg scout yes?");
    pane.press(&["Enter"]);
    pane.wait_for("boss to scout: yes?");
    pane.type_text("/who");
    pane.press(&["Enter"]);
    pane.wait_for("worker  mcp/response:*, chat");
}

/// A part of the page between its mark and the next heading or mark.
fn generated(page: &str, mark: &str, text: &str) -> String {
    let mark = format!("<!-- {mark} -->\n");
    let (before, after) = page
        .split_once(&mark)
        .unwrap_or_else(|| panic!("no {mark}"));
    // A generated part ends with an empty line before the next text that is not its own.
    let rest = match after.strip_prefix("```\n") {
        Some(block) => block.split_once("```\n").unwrap().1,
        None => after.find("\n## ").map_or(after, |at| &after[at..]),
    };
    format!("{before}{mark}{text}{rest}")
}

#[test]
fn the_page_of_the_chat_has_its_keys_its_commands_and_a_screen() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = folder.join("../../../docs/chat.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut keys = String::new();
    for (place, bindings) in chat::keys::table() {
        keys += &format!("\n{}:\n\n| key | does |\n|---|---|\n", place.heading());
        for (names, words) in bindings {
            let names: Vec<String> = names.split(", ").map(|name| format!("`{name}`")).collect();
            keys += &format!("| {} | {words} |\n", names.join(", "));
        }
    }
    let screen =
        std::fs::read_to_string(folder.join("tests/screens/inbox-80x24-plain")).unwrap_or_default();
    let plain = |text: &str| match text.split_once('m') {
        Some((_, plain)) => plain.to_owned(),
        None => String::new(),
    };
    let mut parts = screen.split("\\e[");
    let screen: String = parts
        .next()
        .into_iter()
        .map(str::to_owned)
        .chain(parts.map(plain))
        .collect();
    let commands = chat::help_rows(200);
    let commands = commands.iter().skip_while(|row| *row != "Commands").skip(1);
    let commands: String = commands.map(|row| format!("{}\n", row.trim())).collect();
    let made = generated(&page, "keys", &keys);
    let made = generated(
        &made,
        "screen: inbox-80x24-plain",
        &format!("```\n{screen}```\n"),
    );
    let made = generated(&made, "commands", &format!("```\n{commands}```\n"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    assert_eq!(
        page, made,
        "docs/chat.md is stale: UPDATE=1 cargo nextest run -p portmoot the_page_of_the_chat"
    );
}
