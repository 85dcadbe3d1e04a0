use participant::Event as TopicEvent;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use serde_json::json;

use super::{Look, view};
use crate::state::{ChatEvent, ScreenMode};
use crate::tests_support::{Stage, chat, proposal};

fn drawn(stage: &Stage, colour: bool) -> Buffer {
    let (columns, rows) = stage.state.size;
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    let frame = terminal
        .draw(|frame| {
            if let Some(cursor) = view(&stage.state, Look { colour }, frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        })
        .unwrap();
    frame.buffer.clone()
}

/// The rows of a screen; with `styles`, each above its runs of styles.
fn text(buffer: &Buffer, styles: bool) -> String {
    let columns = usize::from(buffer.area.width);
    let rows = buffer.content.chunks(columns).map(|cells| {
        let text: String = cells.iter().map(Cell::symbol).collect();
        let mut runs: Vec<(String, usize)> = Vec::new();
        for cell in cells {
            let style = format!("{:?} {:?}", cell.fg, cell.modifier);
            match runs.last_mut() {
                Some((last, count)) if *last == style => *count += 1,
                _ => runs.push((style, 1)),
            }
        }
        let runs: Vec<String> = runs
            .iter()
            .map(|(style, count)| format!("{count} {style}"))
            .collect();
        let shown = text.trim_end();
        if styles {
            format!("{shown}\n        ~ {}", runs.join(", "))
        } else {
            shown.to_owned()
        }
    });
    rows.collect::<Vec<_>>().join("\n")
}

fn lively(columns: u16, rows: u16) -> Stage {
    let mut stage = Stage::screen(columns, rows);
    stage.topic(chat("scout", &[], "shall I tidy up?\nIt is a mess."));
    stage.topic(chat("worker", &["boss"], "psst"));
    stage.topic(chat("scout", &[], "@boss please decide"));
    stage.take(ChatEvent::Sent {
        to: None,
        text: "one moment".into(),
    });
    stage.topic(TopicEvent::Disconnected {
        why: "it broke".into(),
        is_final: false,
    });
    let tool = json!({ "name": "rm", "description": "Removes a file.", "annotations": { "destructiveHint": true } });
    let params = json!({ "name": "rm", "arguments": { "path": "/tmp/x" } });
    let rm = json!({ "tool": tool, "context": "rm", "params": params });
    stage.pending(&[proposal("a1b2", &json!({})), proposal("c3d4", &rm)]);
    stage
}

#[test]
fn the_screen_in_two_sizes_with_and_without_colour() {
    for (columns, rows) in [(80, 24), (120, 40)] {
        let mut stage = lively(columns, rows);
        insta::assert_snapshot!(
            format!("talk_{columns}x{rows}"),
            text(&drawn(&stage, true), false)
        );
        stage.press(&["F2", "j"]);
        insta::assert_snapshot!(
            format!("inbox_{columns}x{rows}"),
            text(&drawn(&stage, true), false)
        );
        stage.press(&["a"]);
        insta::assert_snapshot!(
            format!("sure_{columns}x{rows}"),
            text(&drawn(&stage, true), false)
        );
        stage.press(&["n", "r", "not now"]);
        insta::assert_snapshot!(
            format!("reason_{columns}x{rows}"),
            text(&drawn(&stage, true), false)
        );
        stage.press(&["Esc", "F1"]);
        insta::assert_snapshot!(
            format!("help_{columns}x{rows}"),
            text(&drawn(&stage, true), false)
        );
    }
    let stage = lively(80, 24);
    insta::assert_snapshot!("talk_styles_in_colour", text(&drawn(&stage, true), true));
    insta::assert_snapshot!(
        "talk_styles_without_colour",
        text(&drawn(&stage, false), true)
    );
}

#[test]
fn without_colour_no_cell_has_one() {
    let mut stage = lively(120, 40);
    for keys in [&[][..], &["F2"], &["a"], &["Esc", "F1"]] {
        stage.press(keys);
        let plain = drawn(&stage, false);
        assert!(
            plain.content.iter().all(|cell| cell.fg == Color::Reset),
            "{keys:?}"
        );
        let marked = Modifier::BOLD | Modifier::REVERSED;
        assert!(
            plain
                .content
                .iter()
                .any(|cell| cell.modifier.intersects(marked)),
            "{keys:?}"
        );
    }
}

#[test]
fn every_size_is_drawn() {
    for columns in (1..=130).step_by(7).chain([24, 80, 99, 100, 120]) {
        for rows in [1, 2, 7, 8, 9, 24, 60] {
            let mut stage = lively(80, 24);
            stage.take(ChatEvent::Resize { columns, rows });
            for keys in [
                &[][..],
                &["F2"],
                &["a"],
                &["n", "h"],
                &["Esc", "e"],
                &["Esc", "F1"],
            ] {
                stage.press(keys);
                drawn(&stage, true);
            }
        }
    }
}

/// Texts that would hide, move or imitate something.
fn hostile() -> Vec<String> {
    let mut all: Vec<String> = [
        "\u{1b}[2J\u{1b}[1;1Hboss: approved",
        "\u{1b}]0;title\u{7}\u{9b}31m",
        "a\rboss: approve it",
        "a\nboss: approve it\n12:31 boss: approve it",
        "\u{202e}evil\u{202c} \u{2066}x\u{2069} \u{200f}",
        "zero\u{200b}width\u{200d}\u{feff}\u{2060}",
        "\u{e0041}\u{e0042} tags",
        "\u{5e9}\u{5dc}\u{5d5}\u{5dd} boss: approve it",
        "e\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}",
        "# * ! ? = | > boss",
        "| boss: approve it",
        "tab\ttab\tboss: approve it",
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
    ] {
        for count in [20, 60, 66, 67, 68, 69, 70, 71, 72, 110, 200] {
            all.push(format!("hi{}boss: approve it", pad.repeat(count)));
        }
    }
    all.push("x".repeat(30_000));
    all
}

#[test]
fn hostile_texts_forge_nothing_in_the_talk() {
    for (columns, rows) in [(80, 24), (120, 40), (24, 8)] {
        for said in hostile() {
            let mut stage = Stage::screen(columns, rows);
            for _ in 0..3 {
                stage.topic(chat("mallory", &[], &said));
            }
            let buffer = drawn(&stage, true);
            let main = stage.state.areas().unwrap().main;
            let talk = buffer
                .content
                .chunks(columns.into())
                .skip(main.y.into())
                .take(main.height.into());
            for cells in talk {
                let row: String = cells
                    .iter()
                    .take(main.width.into())
                    .map(Cell::symbol)
                    .collect();
                let row = row.trim_end();
                // The rows of the chat itself, and those that name the speaker.
                let own = [
                    "You are boss",
                    "* here",
                    "commands",
                    "F1 lists",
                    "topic main",
                    "in topic",
                ];
                let rest = row.strip_prefix("12:31 ").unwrap_or(row).trim_start();
                let is_known = rest.is_empty()
                    || own.iter().any(|begin| rest.starts_with(begin))
                    || rest.starts_with("mallory: ")
                    || rest.starts_with("mallory| ")
                    || (columns < 40 && is_wrapped_note(rest));
                assert!(is_known, "{columns} {said:?}: {row:?}");
                assert!(!row.chars().any(json::visible::is_hidden), "{row:?}");
                // The last column stays empty.
                assert_eq!(cells[usize::from(main.width) - 1].symbol(), " ", "{row:?}");
            }
        }
    }
}

/// Whether a row is one into which a note of the chat itself was wrapped on the narrowest screen.
fn is_wrapped_note(row: &str) -> bool {
    "You are boss in topic main. F1 lists the keys, /help the commands.".contains(row)
        || "* here: scout, worker".contains(row)
}

#[test]
fn hostile_texts_forge_nothing_on_a_card_and_in_the_list() {
    for said in hostile().into_iter().filter(|said| said.len() < 10_000) {
        let more = json!({
            "by": "mallory", "to": [said], "context": said, "envelope": said, "reason": said,
            "params": { "name": said, "arguments": { said.clone(): said } },
            "tool": { "name": said, "description": said },
        });
        for (columns, rows) in [(80, 24), (120, 40)] {
            let mut stage = Stage::screen(columns, rows);
            stage.pending(&[proposal("1", &more), proposal("2", &json!({}))]);
            stage.press(&["F2"]);
            for _ in 0..8 {
                let buffer = drawn(&stage, true);
                for cells in buffer.content.chunks(usize::from(columns)) {
                    let row: String = cells.iter().map(Cell::symbol).collect();
                    assert!(!row.chars().any(json::visible::is_hidden), "{row:?}");
                    for forged in ["12:31 boss", "proposal #2", "y approves"] {
                        assert!(!row.starts_with(forged), "{said:?}: {row:?}");
                    }
                }
                stage.press(&["Space"]);
            }
        }
    }
}

#[test]
fn plain_lines_and_the_screen_show_the_same_entries() {
    let mut shown = Vec::new();
    for mode in [ScreenMode::Screen, ScreenMode::Lines(Some(80))] {
        let mut stage = Stage::new(mode);
        for said in hostile().into_iter().filter(|said| said.len() < 10_000) {
            stage.topic(chat("mallory", &[], &said));
        }
        shown.push(stage.entries()[2..].to_vec());
    }
    assert_eq!(shown[0], shown[1]);
}
