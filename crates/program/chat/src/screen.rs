//! The full screen: keys in, cells out, and the terminal given back as it was.

use std::io::{self, BufWriter, Stdout, Write, stdout};
use std::time::Duration;

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, Event as Input, EventStream};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{cursor::Show, execute};
use futures_util::StreamExt;
use participant::{Event as TopicEvent, Events};
use platform::unix_ms;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::edit::edit_text;
use crate::paint::paint;
use crate::perform::{LocalAct, Performer};
use crate::state::{Action, ChatEvent, ChatState};
use crate::update::update;
use crate::view::{Look, view};

/// Least time between two drawings.
const FRAME: Duration = Duration::from_millis(16);
/// Interval at which the times on the screen are looked at.
const TICK: Duration = Duration::from_millis(500);
/// Least time between two bells.
const BELL: Duration = Duration::from_secs(1);

/// Chats on the full screen until the person leaves.
///
/// # Errors
/// When the terminal cannot be used.
pub(crate) async fn run(
    state: ChatState,
    look: Look,
    mut topic: Events,
    performer: Performer,
    mut happened: mpsc::UnboundedReceiver<ChatEvent>,
) -> io::Result<()> {
    let mut screen = Screen::open(state, look, performer)?;
    let mut keys = Some(EventStream::new());
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ends = [
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
    ];
    let [terminate, hangup] = &mut ends;
    let mut in_topic = true;
    let mut draw_at = Instant::now();
    loop {
        // In this order: what ends the chat or draws it comes at its time, and a topic that never
        // rests keeps no key waiting. The topic goes before what comes of actions, so that its
        // history stands before the inbox.
        let event = tokio::select! {
            biased;
            _ = terminate.recv() => return Ok(()),
            _ = hangup.recv() => return Ok(()),
            () = sleep_until(draw_at), if screen.changed => {
                screen.draw()?;
                draw_at = Instant::now() + FRAME;
                None
            }
            key = next_key(&mut keys) => match key {
                Some(Ok(input)) => event_of(input),
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            },
            event = topic.next(), if in_topic => {
                in_topic = event.as_ref().is_some_and(|event| !is_final(event));
                event.map(|event| ChatEvent::Topic(Box::new(event)))
            }
            Some(event) = happened.recv() => Some(event),
            _ = tick.tick() => Some(screen.ticked()),
            () = screen.performer.done() => None,
        };
        let Some(event) = event else { continue };
        let mut actions = update(&mut screen.state, unix_ms(), event);
        screen.changed = true;
        while let Some(action) = take_first(&mut actions) {
            match screen.performer.perform(action) {
                None => {}
                Some(LocalAct::Bell) => screen.ring()?,
                Some(LocalAct::Redraw) => screen.drawn = None,
                Some(LocalAct::Quit) => return Ok(()),
                Some(LocalAct::Edit { id, text }) => {
                    // Nothing else may read the keys meanwhile.
                    drop(keys.take());
                    let text = screen.edit(&text)?;
                    keys = Some(EventStream::new());
                    actions.extend(update(
                        &mut screen.state,
                        unix_ms(),
                        ChatEvent::Edited { id, text },
                    ));
                }
            }
        }
    }
}

fn take_first(actions: &mut Vec<Action>) -> Option<Action> {
    (!actions.is_empty()).then(|| actions.remove(0))
}

async fn next_key(keys: &mut Option<EventStream>) -> Option<io::Result<Input>> {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

fn is_final(event: &TopicEvent) -> bool {
    matches!(event, TopicEvent::Disconnected { is_final: true, .. })
}

fn event_of(input: Input) -> Option<ChatEvent> {
    match input {
        Input::Key(key) => Some(ChatEvent::Key(key)),
        Input::Paste(text) => Some(ChatEvent::Paste(text)),
        Input::Resize(columns, rows) => Some(ChatEvent::Resize { columns, rows }),
        Input::FocusGained | Input::FocusLost | Input::Mouse(_) => None,
    }
}

/// The terminal while the chat has it. Dropping gives it back.
struct Screen {
    state: ChatState,
    look: Look,
    performer: Performer,
    out: BufWriter<Stdout>,
    drawn: Option<Buffer>,
    changed: bool,
    rang: Option<Instant>,
}

impl Screen {
    fn open(mut state: ChatState, look: Look, performer: Performer) -> io::Result<Self> {
        state.size = size()?;
        enter()?;
        let out = BufWriter::new(stdout());
        Ok(Self {
            state,
            look,
            performer,
            out,
            drawn: None,
            changed: true,
            rang: None,
        })
    }

    /// Time has passed; or the terminal has another size, and its signal came before it was
    /// awaited.
    fn ticked(&self) -> ChatEvent {
        match size() {
            Ok((columns, rows)) if (columns, rows) != self.state.size => {
                ChatEvent::Resize { columns, rows }
            }
            Ok(_) | Err(_) => ChatEvent::Tick,
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let (columns, rows) = self.state.size;
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
        let cursor = view(&self.state, self.look, &mut buffer);
        paint(&mut self.out, self.drawn.as_ref(), &buffer, cursor)?;
        (self.drawn, self.changed) = (Some(buffer), false);
        Ok(())
    }

    fn ring(&mut self) -> io::Result<()> {
        if self.rang.is_none_or(|rang| rang.elapsed() >= BELL) {
            self.rang = Some(Instant::now());
            self.out.write_all(b"\x07")?;
            self.out.flush()?;
        }
        Ok(())
    }

    /// Gives the terminal to the editor, and takes it back.
    fn edit(&mut self, text: &str) -> io::Result<Result<String, String>> {
        leave();
        let edited = tokio::task::block_in_place(|| edit_text(text));
        enter()?;
        self.drawn = None;
        self.state.size = size()?;
        Ok(edited)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)
}

/// Fails only if the terminal is gone.
fn leave() {
    let _ = execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
