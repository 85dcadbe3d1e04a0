//! Tables `[participants.NAME]`, read as [`ParticipantConfig`].

use std::sync::Arc;

use crate::config::node::TreeEntry;
use crate::config::problem::Problem;
use crate::config::profiles::{Profiles, profile};
use crate::config::reader::Table;
use crate::config::servers::timeouts;
use crate::config::values::{Env, capabilities, participant_id, rate, topic_name};
use access::config::ParticipantConfig;
use access::is_gateways_name;
use auth::{Credential, Participant, TokenHash};
use model::{Capabilities, TopicName};

/// Shortest accepted token, characters; a shorter one can be guessed.
const TOKEN_CHARS_MIN: usize = 16;

/// Topic of participants without `topics`.
pub(crate) const MAIN_TOPIC: &str = "main";

/// Reads every participant.
pub(crate) fn read(root: &Table<'_>, env: Env<'_>, profiles: &Profiles) -> Vec<ParticipantConfig> {
    let tables = root.tables("participants");
    tables.into_iter().filter_map(|(entry, table)| participant(entry, table, env, profiles)).collect()
}

fn participant(
    entry: &TreeEntry,
    table: Table<'_>,
    env: Env<'_>,
    profiles: &Profiles,
) -> Option<ParticipantConfig> {
    let id = participant_id(&entry.key, &entry.location, table.problems());
    if is_gateways_name(&entry.key) {
        let message = format!("a participant cannot be called `{}`", entry.key);
        let problem = Problem::new("config_name", message).at(&entry.location);
        table.problems().note(problem.hint("the gateway uses that name itself: choose another"));
    }
    let credentials = credentials(&table, env);
    let written = union(profile(&table, "profile", profiles), capabilities(&table));
    let capabilities_written = written.is_some();
    let topics = topics(&table);
    let rate = rate(&table, "rate");
    let timeouts = timeouts(&table);
    let serves = table.flag("serves").unwrap_or(false).then_some(timeouts);
    table.finish();
    let participant = Arc::new(Participant {
        id: id?,
        capabilities: written.unwrap_or_else(|| Arc::new(Capabilities::newcomer())),
        topics,
        rate,
    });
    Some(ParticipantConfig { participant, credentials, capabilities_written, serves })
}

/// The capabilities of the profile, then those of the participant that the profile does not have.
fn union(first: Option<Arc<Capabilities>>, more: Option<Arc<Capabilities>>) -> Option<Arc<Capabilities>> {
    let (Some(first), Some(more)) = (&first, &more) else { return first.or(more) };
    let new = more.iter().filter(|capability| !first.iter().any(|known| known == *capability));
    Some(Arc::new(first.iter().chain(new).cloned().collect()))
}

fn credentials(table: &Table<'_>, env: Env<'_>) -> Vec<Credential> {
    let from_env = table.text("token_env").map(|name| ("token_env", token_env(name, env)));
    let from_file = table.text("token_file").map(|path| ("token_file", token_file(path)));
    let hashes = [from_env, from_file].into_iter().flatten().filter_map(|(key, token)| {
        let good = token.and_then(|token| {
            let long = token.chars().count() >= TOKEN_CHARS_MIN;
            long.then(|| TokenHash::of(&token)).ok_or_else(|| {
                (
                    format!("the token has fewer than {TOKEN_CHARS_MIN} characters"),
                    "issue one with: portmoot token new NAME",
                )
            })
        });
        good.map_err(|(message, hint)| {
            table.note_at(key, "config_token", format!("`{}`: {message}", table.full(key)), hint);
        })
        .ok()
    });
    let mut hashes: Vec<TokenHash> = hashes.collect();
    if let Some(text) = table.text("token_sha256") {
        match text.parse() {
            Ok(hash) => hashes.push(hash),
            Err(_) => {
                let message = format!("`{}` must be 64 hexadecimal digits", table.full("token_sha256"));
                table.note_at(
                    "token_sha256",
                    "config_token",
                    message,
                    "compute it with: printf %s TOKEN | sha256sum",
                );
            }
        }
    }
    if table.get("token").is_some() {
        let message = format!("`{}`: a token must not be in the configuration file", table.full("token"));
        table.note_at("token", "config_token", message, "use `token_env`, `token_file` or `token_sha256`");
    }
    hashes.into_iter().map(|hash| Credential { hash, expires_ms: None }).collect()
}

fn token_env(name: &str, env: Env<'_>) -> Result<String, (String, &'static str)> {
    let set = env(name).filter(|token| !token.is_empty());
    set.ok_or_else(|| {
        (format!("the environment variable `{name}` is not set"), "set it to the participant's token")
    })
}

fn token_file(path: &str) -> Result<String, (String, &'static str)> {
    let text = std::fs::read_to_string(path);
    text.map(|text| text.trim().to_owned())
        .map_err(|error| (format!("cannot read `{path}`: {error}"), "the file must contain only the token"))
}

fn topics(table: &Table<'_>) -> Vec<TopicName> {
    let written = table.texts("topics").unwrap_or_else(|| vec![(MAIN_TOPIC, table.location())]);
    if written.is_empty() {
        let message = format!("`{}` is empty: the participant could join no topic", table.full("topics"));
        table.note_value("topics", message, "list a topic, or remove the key for `main`");
    }
    written.into_iter().filter_map(|(name, location)| topic_name(name, location, table.problems())).collect()
}
