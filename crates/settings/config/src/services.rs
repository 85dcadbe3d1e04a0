//! Keys of tables about services outside: addresses, secrets, networks.

use oauth::Secret;
use oauth::dialer::{Subnet, parse_url};
use url::Url;

use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::reader::{ListedText, Table};
use crate::secrets::{FORMS, Outside, note_unread};

/// The two keys of a secret: the one that names it, and the one with an environment variable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SecretKeys {
    pub(crate) named: &'static str,
    pub(crate) env: &'static str,
}

/// The keys of a bearer token.
pub(crate) const TOKEN: SecretKeys = SecretKeys {
    named: "token",
    env: "token_env",
};

/// A token that can be sent, if there is one.
pub(crate) fn sendable(table: &Table<'_>, token: Option<Secret>) -> Option<Option<Secret>> {
    let is_plain = |token: &Secret| token.expose().bytes().all(|byte| byte.is_ascii_graphic());
    if token.as_ref().is_none_or(is_plain) {
        return Some(token);
    }
    let message = format!(
        "the token of {} has blanks or other characters than ASCII",
        table.name()
    );
    table.wrong(
        "config_token",
        message,
        "it goes into a header: `echo` ends a line, `printf` does not",
    );
    None
}

/// The address under a key, with an example of one.
pub(crate) fn url(table: &Table<'_>, key: &'static str, example: &'static str) -> Option<Url> {
    let text = table.text(key)?;
    match parse_url(text) {
        Ok(url) => Some(url),
        Err(error) => {
            let message = format!("`{}`: {error}", table.full(key));
            table.note_value(key, message, example);
            None
        }
    }
}

/// The secret under one of these keys; `Err` if one is configured and cannot be had, which is
/// noted. It is empty as long as secrets are not read.
pub(crate) fn secret(
    table: &Table<'_>,
    keys: SecretKeys,
    outside: &Outside<'_>,
) -> Result<Option<Secret>, ()> {
    let SecretKeys { named, env } = keys;
    let variable = table.text(env);
    let node = table.get(named);
    match (variable, node) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => {
            let message = format!("{} has both `{named}` and `{env}`", table.name());
            table.wrong("config_twice", message, "keep one of them");
            Err(())
        }
        (Some(name), None) => match (outside.env)(name) {
            Some(value) if !value.is_empty() => Ok(Some(Secret::new(value))),
            Some(_) | None => {
                let message = format!(
                    "`{}`: the environment variable `{name}` is not set",
                    table.full(env)
                );
                table.note_at(
                    env,
                    "config_token",
                    message,
                    "set it to the service's secret",
                );
                Err(())
            }
        },
        (None, Some(node)) => named_secret(table, named, node, outside).map(Some),
    }
}

fn named_secret(
    table: &Table<'_>,
    key: &'static str,
    node: &Node,
    outside: &Outside<'_>,
) -> Result<Secret, ()> {
    let Value::Table(_) = node.value else {
        let message = format!(
            "`{}`: a secret must not be in the configuration file",
            table.full(key)
        );
        table.note_at(key, "config_token", message, FORMS);
        return Err(());
    };
    let named = outside.secret(node, &table.full(key), table.problems());
    match named.ok_or(())?.text {
        None => Ok(Secret::new(String::new())),
        Some(Ok(secret)) => Ok(secret),
        Some(Err(no_secret)) => {
            note_unread(table, key, &no_secret);
            Err(())
        }
    }
}

/// The private networks in which the service may be.
pub(crate) fn allowed(table: &Table<'_>) -> Vec<Subnet> {
    let mut subnets = Vec::new();
    for ListedText { text, location } in table.texts("allow_private").unwrap_or_default() {
        match text.parse::<Subnet>() {
            Ok(subnet) => subnets.push(subnet),
            Err(error) => {
                let message = format!("`{}`: {error}", table.full("allow_private"));
                let problem = Problem::new("config_value", message).at(location);
                table.problems().note(problem);
            }
        }
    }
    subnets
}
