//! The console: pages for people in a browser, who decide about proposals and see what happens.
//!
//! A browser signs in with a one-time code of `portmoot console`, with a token, or at an issuer. From then on each
//! page is a question to the API's own handlers, in this process, with that token: the console may do
//! what its person may do, and nothing else. It knows neither the gateway nor a topic; [`ConsoleHome`] tells
//! it where it runs, and who a token is.
//!
//! Every page works without script. With it, one stream of events keeps a page up to date, and keys
//! decide. All texts of others are [`html::Hostile`].

mod access;
mod account;
mod api_client;
mod arguments;
mod asked;
mod assets;
mod audit;
mod batch;
mod begun;
mod call;
mod calls;
mod card;
mod charts;
mod confirm;
mod coverage;
mod decide;
mod definitions;
mod editing;
mod elsewhere;
mod entrances;
mod feed;
mod filters;
mod home;
mod inbox;
mod keep;
mod kept;
mod latencies;
mod like;
mod log_rows;
mod map;
mod metrics;
mod nearest;
mod outcome;
mod overview;
mod own_sessions;
mod pace;
mod page;
mod pages;
mod passes;
mod people;
mod places;
mod proof;
mod proposal;
mod rights;
mod routes;
mod rules;
mod samples;
mod server_accounts;
mod servers;
mod session;
mod sign_in;
mod state;
mod times;
mod tools;
mod used;
mod waits;

pub use account::{RENEWED_BEFORE_MS, REST_MS};
pub use arguments::{CARD_BYTES_MAX, FULL_BYTES_MAX, LONG_TEXT_CHARS, ROWS_MAX, ROWS_SHOWN_MAX};
pub use batch::BATCH_MAX;
pub use begun::BROWSER_SIGN_INS_MAX;
pub use coverage::{COVERAGE_PARTICIPANTS_MAX, COVERAGE_ROWS_MAX};
pub use definitions::{DEFINITIONS_BYTES_MAX, MARKED_WORDS_MAX};
pub use elsewhere::{CONSOLE_SIGN_INS_PER_MINUTE, PLACE_ANSWER_BYTES_MAX};
pub use home::{ConsoleHome, ConsoleSettings, ConsoleSignIn, PlaceName, TokenBearer};
pub use inbox::{CARDS_MAX, LINES_MAX, LIST_PAGES_MAX};
pub use keep::CONSOLE_SWEEP_MS;
pub use latencies::TOOL_ROWS_MAX;
pub use map::{MAP_CALLS_MAX, MAP_PARTICIPANTS_MAX, MAP_SERVERS_MAX};
pub use nearest::COMPARED_CALLS_MAX;
pub use places::{FEEDS_MAX, SESSION_FEEDS_MAX};
pub use rights::RIGHTS_SHOWN_MAX;
pub use routes::router;
pub use session::{
    CONSOLE_IDLE_MS, CONSOLE_SESSIONS_MAX, PARTICIPANT_SESSIONS_MAX, REPLACED_SIGN_INS_MAX,
};
pub use sign_in::CONSOLE_TRIES_PER_MINUTE;
pub use state::{FEED_LOOK_MS, PAGES_WRITTEN_MAX};
pub use used::USED_SIGN_INS_MAX;
