//! Configuration loading: files and flags are merged as trees, then checked as a whole into one `access::config::Config`.
//! Nothing is opened or started before the check passes.

mod check;
mod client_file;
mod expand;
mod json_file;
mod node;
mod participants;
mod problem;
mod profiles;
mod reader;
mod servers;
mod settings;
mod show;
mod sources;
mod toml_file;
mod topics;
mod values;

#[cfg(test)]
mod tests;

pub(crate) use participants::MAIN_TOPIC;
pub(crate) use problem::{Problem, suggestion};
pub(crate) use reader::{DURATION, duration};
pub(crate) use show::{to_json, to_toml};
pub(crate) use sources::{Loaded, Sources};
