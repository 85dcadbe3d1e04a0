//! A topic at the terminal: talk, the calls of others, and the inbox of proposals that wait for a
//! decision.
//!
//! [`update`] takes what happens and returns what is to be done; [`view`] draws the state into
//! cells. Both are pure. Around them, `screen` is the full screen, `lines` the plain lines, and
//! `perform` does what `update` asks for, over the participant and the REST API ([`Api`]). Texts of
//! others reach a terminal only with their hidden characters visible (`json::visible`) and behind a
//! gutter that the program decides ([`rows`]).

mod api;
pub mod card;
mod clock;
mod command;
mod complete;
pub mod content;
mod edit;
mod entry;
mod help;
pub mod in_force;
mod inbox;
pub mod keys;
mod layout;
mod lines;
pub mod offers;
mod output;
mod paint;
mod perform;
pub mod rows;
mod run;
mod screen;
mod show;
mod state;
mod suggested;
mod talk;
#[cfg(test)]
mod tests_support;
mod typing;
mod update;
mod view;

pub use api::{Allow, Api, ApiRefusal, ApiReply, LikeRule};
pub use card::{amendments, approvals, claimants, claims, plan, step_heads};
pub use clock::{Zone, relative, span};
pub use edit::edit_text;
pub use entry::{ChatEntry, Tone};
pub use help::rows as help_rows;
pub use inbox::{Inbox, InboxItem, NUMBERS_MAX, SETTLE_MS};
pub use output::ChatOutput;
pub use run::{ChatError, ChatSettings, run};
pub use show::CALL_CHARS;
pub use state::{
    Action, Approval, ChatEvent, ChatState, Connection, Focus, Later, Prompt, ScreenMode,
};
pub use suggested::Suggestions;
pub use talk::{ENTRIES_BYTES_MAX, ENTRIES_MAX, ENTRY_CHARS_MAX, Talk, TalkRow};
pub use typing::{EARLIER_LINES_MAX, TYPED_BYTES_MAX, Typing};
pub use update::{REFRESH_MS, RULES_MS, update};
pub use view::{Look, view};
