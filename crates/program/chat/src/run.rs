//! A chat from the connection to the end: on the full screen where there is a terminal, else as
//! lines.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use participant::{ConnectError, Participant, ParticipantSpec};

use crate::api::Api;
use crate::clock::Zone;
use crate::lines;
use crate::output::ChatOutput;
use crate::perform::Performer;
use crate::screen;
use crate::state::{ChatState, ScreenMode};
use crate::view::Look;

/// Parts and settings of a chat.
pub struct ChatSettings {
    /// The participant.
    pub spec: ParticipantSpec,
    /// The REST API of the same gateway, with the same credentials.
    pub api: Arc<dyn Api>,
    /// Printer of a chat without a full screen.
    pub output: Arc<dyn ChatOutput>,
    /// Print every envelope as it arrived; implies lines.
    pub json: bool,
    /// Lines even where there is a terminal.
    pub lines: bool,
    /// Whether there may be colours.
    pub colour: bool,
}

/// Why a chat ended that the person did not leave.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// It cannot join the topic, or may not stay.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[from] io::Error),
}

/// Joins the topic and chats until the person leaves.
///
/// # Errors
/// [`ChatError`]
pub async fn run(chat: ChatSettings) -> Result<(), ChatError> {
    let ChatSettings {
        spec,
        api,
        output,
        json,
        lines,
        colour,
    } = chat;
    let topic = spec.topic.clone();
    let proposal_timeout = spec.proposal_timeout;
    let me = Participant::connect(spec).await?;
    let topic_events = me.events();
    let (performer, happened) = Performer::new(me.clone(), api, &topic, proposal_timeout);
    let at_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let full = at_terminal
        && !lines
        && !json
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let look = Look { colour };
    let ended = if full {
        let state = ChatState::new(ScreenMode::Screen, &topic, Zone::local());
        screen::run(state, look, topic_events, performer, happened).await
    } else {
        let state = ChatState::new(ScreenMode::Lines(None), &topic, Zone::local());
        let printing = lines::Printing {
            output,
            json,
            look,
            at_terminal,
        };
        lines::run(state, printing, topic_events, performer, happened).await
    };
    ended?;
    match me.ended() {
        Some(why) => Err(why.into()),
        None => {
            me.close().await;
            Ok(())
        }
    }
}
