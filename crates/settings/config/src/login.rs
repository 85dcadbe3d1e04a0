//! Table `[login]`: the gateway's own authorization server.

use std::time::Duration;

use crate::checked::Config;
use identity::login::{CONSOLE_CLIENT, Clients, ConfiguredClient, LoginConfig};

use crate::node::{Node, TreeEntry};
use crate::problem::Problem;
use crate::reader::{Problems, Table};

const CLIENTS: [(&str, Clients); 3] = [
    ("any", Clients::Any),
    ("trusted", Clients::Trusted),
    ("configured", Clients::Configured),
];
/// The longest time in which a replaced refresh token is answered.
const GRACE_MAX: Duration = Duration::from_secs(300);
/// The longest id of a configured client, in characters.
const ID_CHARS_MAX: usize = 64;

/// Reads the table; `None` unless signing in is enabled.
pub(crate) fn read(root: &Table<'_>) -> Option<LoginConfig> {
    let table = root.table("login")?;
    let standard = LoginConfig::default();
    let enabled = table.flag("enabled").unwrap_or(false);
    let hosts = texts_or(&table, "trusted_hosts", &standard.trusted_hosts);
    let config = LoginConfig {
        clients: table.choice("clients", &CLIENTS).unwrap_or_default(),
        trusted_hosts: hosts
            .into_iter()
            .map(|host| host.to_ascii_lowercase())
            .collect(),
        private_redirects: texts_or(&table, "private_redirects", &standard.private_redirects),
        access: table.duration("access").unwrap_or(standard.access),
        refresh: table.duration("refresh").unwrap_or(standard.refresh),
        longest: table.duration("longest").unwrap_or(standard.longest),
        grace: grace(&table).unwrap_or(standard.grace),
        step_up: table.flag("step_up").unwrap_or(false),
        paste_tokens: table.flag("paste_tokens").unwrap_or(false),
        configured: table
            .tables("client")
            .into_iter()
            .map(|(entry, table)| client(entry, table))
            .collect(),
    };
    if config.access > config.refresh {
        let message = format!("`{}` is longer than `refresh`", table.full("access"));
        table.note_value(
            "access",
            message,
            "access tokens are renewed with refresh tokens: minutes are enough",
        );
    }
    if config.refresh > config.longest {
        let message = format!("`{}` is longer than `longest`", table.full("refresh"));
        table.note_value("refresh", message, "shorten it, or raise `longest`");
    }
    table.finish();
    enabled.then_some(config)
}

/// The texts of a list, or the default if the key is not written.
fn texts_or(table: &Table<'_>, key: &'static str, standard: &[String]) -> Vec<String> {
    match table.texts(key) {
        Some(written) => written.iter().map(|one| one.text.to_owned()).collect(),
        None => standard.to_vec(),
    }
}

/// A time, or `"0s"` for none.
fn grace(table: &Table<'_>) -> Option<Duration> {
    // A time is more than nothing everywhere else.
    let written = table.get("grace")?;
    let grace = match written.text() {
        Some("0" | "0s") => Some(Duration::ZERO),
        _ => table.duration("grace"),
    };
    if grace.is_some_and(|grace| grace > GRACE_MAX) {
        let message = format!("`{}` must be 5 minutes at most", table.full("grace"));
        table.note_value(
            "grace",
            message,
            "a thief of a refresh token could use it for as long",
        );
    }
    grace
}

fn client(entry: &TreeEntry, table: Table<'_>) -> ConfiguredClient {
    let has_other = entry
        .key
        .contains(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
    if entry.key.is_empty() || entry.key.len() > ID_CHARS_MAX || has_other {
        let message = format!("`{}` is no id for a client", entry.key);
        let hint = "use letters, digits, `-`, `_` and `.`, 64 at most";
        table.problems().note(
            Problem::new("config_name", message)
                .at(&entry.location)
                .hint(hint),
        );
    }
    if entry.key == CONSOLE_CLIENT {
        let message = format!("`{CONSOLE_CLIENT}` is the id of the gateway's own console");
        let problem = Problem::new("config_name", message).at(&entry.location);
        table.problems().note(problem.hint("choose another id"));
    }
    let name = table.text("name").unwrap_or(&entry.key).to_owned();
    let redirect_uris = table.plain_texts("redirect_uris");
    if redirect_uris.is_empty() {
        let message = format!(
            "`{}` lists no redirect URI: the client could not sign in",
            table.full("redirect_uris")
        );
        table.note_value(
            "redirect_uris",
            message,
            "for example [\"http://127.0.0.1/callback\"]",
        );
    }
    table.finish();
    ConfiguredClient {
        id: entry.key.clone(),
        name,
        redirect_uris,
    }
}

/// Checks what signing in needs of other tables.
pub(crate) fn check(tree: &Node, config: &Config, problems: &Problems) {
    if config.identity.login.is_some() && config.identity.public_url.is_none() {
        problems.note_value(
            tree.place(&["login", "enabled"]),
            "`login.enabled` needs `server.public_url`",
            "set it to the address that clients are given",
        );
    }
}
