//! Configuration loading: files and flags are merged as trees, then checked as a whole into one
//! [`Config`]. Nothing is opened or started before the check passes.

mod approvers;
mod audit;
mod branch;
mod check;
mod checked;
mod client_file;
mod cluster;
mod excerpt;
mod expand;
mod found;
mod hidden;
mod issuers;
mod json_file;
pub mod jsonc;
mod limits;
mod login;
mod moment;
mod node;
mod notifications;
mod own_address;
mod participants;
mod problem;
mod profiles;
mod read_file;
mod reader;
mod references;
mod room_notes;
mod rule_files;
mod secrets;
mod servers;
mod services;
mod sets;
mod settings;
mod show;
mod sources;
mod telemetry;
mod tls_files;
mod toml_file;
mod topics;
mod unmatched;
mod values;

#[cfg(test)]
mod tests;

/// The JSON Schema of `portmoot.toml`, for editors. A test writes it from the keys that the readers
/// read, and from the page about them.
pub const SCHEMA: &str = include_str!("schema.json");

pub use approvers::TopicApprover;
pub use checked::{CONSOLE_PROOF, Config, ConsoleConfig, DoorsConfig};
pub use cluster::{ClusterConfig, NodeCertificate};
pub use found::FoundFile;
pub use limits::GatewayLimits;
pub use moment::{MOMENT, moment};
pub use node::{Layer, Node, SourceOrigin};
pub use own_address::OwnAddress;
pub use participants::MAIN_TOPIC;
pub use problem::{Problem, report};
pub use reader::{DURATION, duration};
pub use room_notes::room_notes;
pub use rule_files::{TopicRules, checked_rules, is_of_rules, rules_in};
pub use secrets::{
    KEYRING_LIMIT, KEYRING_PROMPT_LIMIT, KeepError, KeptIn, KeptSecret, KeptSecrets, KeyringError,
    NamedSecret, NoSecret, Removed, SECRET_BYTES_MAX, SECRET_NAME_CHARS_MAX, SECRETS_MAX,
    SecretName, SecretNameError, SecretSource, Secrets, UNREAD,
};
pub use servers::name::free_name;
pub use show::{to_json, to_toml};
pub use sources::{ConfigSources, Loaded, address_of_text, check_text, state_dir, without_guests};
pub use telemetry::{ExportHeader, TelemetryConfig};
pub use unmatched::mismatch;
pub use values::KEY_LABEL_CHARS_MAX;
