//! REST API `/api/v1` for the command line and scripts, `/healthz`, `/readyz` and `/metrics` for
//! monitoring, and the schema registry.
//!
//! - [`router`]: all routes, for the HTTP door.
//! - [`document`]: the OpenAPI document.
//! - [`ConfigFile`]: the configuration file that the API changes. [`ConsoleCodes`]: one-time codes
//!   for the console.
//!
//! Requests authenticate like every other request of the gateway. The gateway's own acts need its
//! own capabilities:
//! `portmoot/servers`, `portmoot/pins`, `portmoot/tokens`, `portmoot/grants`, `portmoot/pause`, `portmoot/audit`.

mod accounts;
mod audit;
mod audit_calls;
mod audit_places;
mod brakes;
mod calls;
mod config_file;
mod configured;
mod console_codes;
mod document;
mod error;
mod health;
mod logins;
mod messages;
mod metrics;
mod participants;
mod pins;
mod plans;
mod proposal_list;
mod proposals;
mod rights;
mod routes;
mod rule_adding;
mod rule_offers;
mod rules;
mod schemas;
mod seen_rules;
mod servers;
mod state;
mod switches;
mod tokens;
mod tools;

pub use audit::{AUDIT_ANSWER_BYTES_MAX, AUDIT_PAGE_MAX, AUDIT_VERIFIED_BYTES_MAX};
pub use audit_calls::{audit_verdicts, call_outcomes};
pub use audit_places::AUDIT_LOOKS_MAX;
pub use config_file::{ConfigFile, Reload};
pub use console_codes::{
    CONSOLE_CODE_MS, CONSOLE_CODES_MAX, ConsoleCodes, TooManyConsoleCodes, is_console_host,
};
pub use document::document;
pub use routes::router;
