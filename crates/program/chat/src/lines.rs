//! Plain lines: a line editor at a terminal, else lines in and lines out.

mod completing;
mod input;
mod printer;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use participant::{Event as TopicEvent, Events};
use platform::unix_ms;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use crate::edit::edit_text;
use crate::entry::ChatEntry;
use crate::output::ChatOutput;
use crate::paint::ansi;
use crate::perform::{LocalAct, Performer};
use crate::rows::columns;
use crate::show;
use crate::state::{ChatEvent, ChatState, ScreenMode};
use crate::update::update;
use crate::view::Look;
use input::Input;
use printer::Printer;

/// Interval of the looks whether the inbox is old.
const TICK: Duration = Duration::from_secs(1);

/// Form in which lines are printed.
pub(crate) struct Printing {
    pub(crate) output: Arc<dyn ChatOutput>,
    /// Envelopes as they arrived, in place of the topic's entries.
    pub(crate) json: bool,
    pub(crate) look: Look,
    pub(crate) at_terminal: bool,
}

struct Lines {
    state: ChatState,
    printed: u64,
    json: bool,
    look: Look,
    at_terminal: bool,
    printer: Printer,
    performer: Performer,
}

/// Chats in lines until the person leaves, or the input has ended and all that it asked for is
/// done.
///
/// # Errors
/// When the terminal cannot be used.
pub(crate) async fn run(
    state: ChatState,
    printing: Printing,
    mut topic: Events,
    performer: Performer,
    mut happened: mpsc::UnboundedReceiver<ChatEvent>,
) -> io::Result<()> {
    let Printing {
        output,
        json,
        look,
        at_terminal,
    } = printing;
    let (mut input, printer) = Input::open(output, at_terminal)?;
    let mut lines = Lines {
        state,
        printed: 0,
        json,
        look,
        at_terminal,
        printer,
        performer,
    };
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut typing = true;
    loop {
        tokio::select! {
            biased;
            event = async { lines.printer.wait_for_room().await; topic.next().await } => match event {
                Some(event) => {
                    let is_final = matches!(event, TopicEvent::Disconnected { is_final: true, .. });
                    lines.receive(event);
                    if is_final {
                        lines.printer.message("! press Enter to leave", true);
                        input.leave().await;
                        return Ok(());
                    }
                }
                None => break,
            },
            line = input.next(), if typing => match line {
                Some(line) => {
                    if lines.take(ChatEvent::Line(line)) {
                        break;
                    }
                    input.resume();
                }
                None => typing = false,
            },
            Some(event) = happened.recv() => {
                lines.take(event);
            }
            _ = tick.tick() => {
                lines.take(ChatEvent::Tick);
            }
            () = lines.performer.done() => {}
        }
        input.set_names(&lines.state.candidates);
        if !typing && !lines.performer.is_busy() && happened.is_empty() && lines.state.welcomed {
            break;
        }
    }
    // No line is read any more: what waits for the editor is printed without it.
    drop(input);
    Ok(())
}

impl Lines {
    fn receive(&mut self, event: TopicEvent) {
        if self.json {
            match &event {
                TopicEvent::History { past, .. } => {
                    past.iter().for_each(|event| self.print_frame(event))
                }
                event => self.print_frame(event),
            }
        }
        self.take(ChatEvent::Topic(Box::new(event)));
    }

    fn print_frame(&self, event: &TopicEvent) {
        if let Some(frame) = show::frame(event) {
            self.printer.result(&frame);
        }
    }

    /// Takes an event, does what follows and prints it. True if the person leaves.
    fn take(&mut self, event: ChatEvent) -> bool {
        let columns = self.at_terminal.then(columns).flatten();
        self.state.mode = ScreenMode::Lines(columns);
        let mut actions = update(&mut self.state, unix_ms(), event);
        self.print();
        while !actions.is_empty() {
            match self.performer.perform(actions.remove(0)) {
                None | Some(LocalAct::Redraw) => {}
                Some(LocalAct::Bell) => self.ring(),
                Some(LocalAct::Quit) => return true,
                Some(LocalAct::Edit { id, text }) => {
                    let text = if self.at_terminal {
                        tokio::task::block_in_place(|| edit_text(&text))
                    } else {
                        Err(
                            "there is no terminal for an editor; write /edit ID {arguments}"
                                .to_owned(),
                        )
                    };
                    actions.extend(update(
                        &mut self.state,
                        unix_ms(),
                        ChatEvent::Edited { id, text },
                    ));
                    self.print();
                }
            }
        }
        false
    }

    /// Rings the bell, which moves nothing on a terminal.
    fn ring(&self) {
        if self.at_terminal {
            // A terminal that is gone rings no bell.
            let _ = io::stderr().write_all(b"\x07");
        }
    }

    /// Prints the entries that have come.
    fn print(&mut self) {
        let columns = self.at_terminal.then(columns).flatten();
        let new: Vec<ChatEntry> = self.state.talk.since(self.printed).cloned().collect();
        self.printed = self.state.talk.pushed();
        for entry in new.iter().filter(|entry| !(self.json && entry.of_topic)) {
            let text = self.text(entry, columns);
            if entry.tone.is_result() {
                self.printer.result(&text);
            } else {
                self.printer.message(&text, false);
            }
        }
    }

    fn text(&self, entry: &ChatEntry, columns: Option<usize>) -> String {
        let rows = entry.rows(self.state.zone);
        if !(self.at_terminal && self.look.colour) {
            return rows.render(columns);
        }
        let (gutter, text) =
            self.look
                .entry(entry.tone, entry.speaker.as_deref(), &self.state.me.id);
        let reset = "\u{1b}[0m";
        let row = |row: &crate::rows::TerminalRow| {
            let turned = row.render().starts_with(crate::rows::LEFT_TO_RIGHT);
            let mark = if turned {
                crate::rows::LEFT_TO_RIGHT.to_string()
            } else {
                String::new()
            };
            format!(
                "{mark}{}{}{}{}{reset}",
                ansi(gutter),
                row.gutter,
                ansi(text),
                row.text
            )
        };
        rows.rows(columns)
            .iter()
            .map(row)
            .collect::<Vec<_>>()
            .join("\n")
    }
}
