//! Configuration of a running gateway, read again from its files.

use std::path::PathBuf;
use std::sync::Arc;

use config::Config;

use crate::consent;
use crate::process::env;
use config::{ConfigSources, FoundFile, Secrets, without_guests};
use json::visible;
use terminal::failure::Failure;
use terminal::output::Output;

/// Reads the configuration of a running gateway again.
pub(super) struct ConfigReader {
    pub(super) sources: ConfigSources,
    pub(super) secrets: Secrets,
    /// The file that the operator did not name, as the operator consented to it.
    pub(super) agreed: Option<FoundFile>,
    pub(super) output: Output,
}

/// A configuration that was read again.
pub(super) struct ReloadedConfig {
    pub(super) config: Config,
    /// The files to watch from now on.
    pub(super) watched: Vec<PathBuf>,
}

impl ConfigReader {
    /// Loads the configuration again, whole or not at all. `is_open` is whether callers need no
    /// token. Secrets are read anew. Settings that need a restart stay as they are. Blocks.
    ///
    /// # Errors
    /// The problems of the new configuration, or a change without consent; the gateway keeps the
    /// current configuration.
    pub(super) fn reload(&self, before: &Config, is_open: bool) -> Result<ReloadedConfig, Failure> {
        let mut loaded = self
            .sources
            .load(&env)
            .map_err(|problems| Failure::configuration(&problems))?;
        // Before any secret is read: that runs commands which the files name.
        consent::carry_over(self.agreed.as_ref(), &loaded)?;
        if is_open && let Some(problem) = without_guests(&loaded) {
            return Err(Failure::configuration(&[problem]));
        }
        let unread = loaded
            .read_secrets(&env, &self.secrets)
            .map_err(|problems| Failure::configuration(&problems))?;
        for notice in &unread {
            self.output.warn(&visible::lines(notice));
        }
        let mut after = loaded.config.clone();
        for key in keep_fixed(before, &mut after) {
            self.output.warn(&format!(
                "`{key}` has changed: this takes effect when the gateway is restarted"
            ));
        }
        for server in &after.servers {
            if server.enabled && !before.servers.contains(server) {
                self.output.message(&consent::describe(server));
            }
        }
        Ok(ReloadedConfig {
            config: after,
            watched: loaded.watched(),
        })
    }
}

/// Puts back the settings that a running gateway cannot change. Returns the keys of those that
/// differ.
fn keep_fixed(before: &Config, after: &mut Config) -> Vec<&'static str> {
    fn keep<T: Clone + PartialEq>(before: &T, after: &mut T) -> bool {
        let differs = before != after;
        after.clone_from(before);
        differs
    }
    let switches_tls = before.doors.tls.is_some() != after.doors.tls.is_some();
    if switches_tls {
        after.doors.tls.clone_from(&before.doors.tls);
    }
    let known = &before.identity;
    let identity = Arc::make_mut(&mut after.identity);
    let switches_login = known.login.is_some() != identity.login.is_some();
    if switches_login {
        identity.login.clone_from(&known.login);
    }
    let old = &before.limits;
    let new = Arc::make_mut(&mut after.limits);
    let kept = [
        (
            "server.listen",
            keep(&before.doors.listen, &mut after.doors.listen),
        ),
        ("server.tls", switches_tls),
        ("login.enabled", switches_login),
        (
            "server.data_dir",
            keep(&before.data_dir, &mut after.data_dir),
        ),
        ("server.key_file", keep(&before.key, &mut after.key)),
        (
            "server.starts_at_once",
            keep(
                &before.starts.starts_at_once,
                &mut after.starts.starts_at_once,
            ),
        ),
        (
            "server.probes_at_once",
            keep(
                &before.starts.probes_at_once,
                &mut after.starts.probes_at_once,
            ),
        ),
        (
            "server.operator_key",
            keep(&known.operator_key, &mut identity.operator_key),
        ),
        (
            "server.limits.connections_max",
            keep(&old.connections_max, &mut new.connections_max),
        ),
        (
            "server.limits.participant_connections_max",
            keep(
                &old.participant_connections_max,
                &mut new.participant_connections_max,
            ),
        ),
        (
            "server.limits.held_bytes_max",
            keep(&old.held_bytes_max, &mut new.held_bytes_max),
        ),
        (
            "server.limits.participant_held_bytes_max",
            keep(
                &old.participant_held_bytes_max,
                &mut new.participant_held_bytes_max,
            ),
        ),
        (
            "server.limits.away",
            keep(&old.topics.away, &mut new.topics.away),
        ),
        ("audit", keep(&before.audit, &mut after.audit)),
        ("registry", keep(&before.references, &mut after.references)),
    ];
    kept.into_iter()
        .filter(|(_, differs)| *differs)
        .map(|(key, _)| key)
        .collect()
}
