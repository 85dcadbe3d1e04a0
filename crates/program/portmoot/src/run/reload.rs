//! Configuration of a running gateway, read again from its files.

use std::path::PathBuf;
use std::sync::Arc;

use config::Config;

use crate::consent;
use crate::process::env;
use config::{ConfigSources, FoundFile, GatewayLimits, Secrets, without_guests};
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
    let mut fixed = Fixed::default();
    fixed.keep(
        "server.listen",
        &before.doors.listen,
        &mut after.doors.listen,
    );
    fixed.keep_whether(
        "server.tls",
        before.doors.tls.as_ref(),
        &mut after.doors.tls,
    );
    let known = &before.identity;
    let identity = Arc::make_mut(&mut after.identity);
    fixed.keep_whether("login.enabled", known.login.as_ref(), &mut identity.login);
    fixed.keep("server.data_dir", &before.data_dir, &mut after.data_dir);
    fixed.keep("server.key_file", &before.key, &mut after.key);
    fixed.keep(
        "server.starts_at_once",
        &before.starts.starts_at_once,
        &mut after.starts.starts_at_once,
    );
    fixed.keep(
        "server.probes_at_once",
        &before.starts.probes_at_once,
        &mut after.starts.probes_at_once,
    );
    let identity = Arc::make_mut(&mut after.identity);
    fixed.keep(
        "server.operator_key",
        &known.operator_key,
        &mut identity.operator_key,
    );
    keep_limits(&mut fixed, &before.limits, Arc::make_mut(&mut after.limits));
    fixed.keep("audit", &before.audit, &mut after.audit);
    fixed.keep("cluster", &before.cluster, &mut after.cluster);
    fixed.keep("registry", &before.references, &mut after.references);
    fixed.changed
}

fn keep_limits(fixed: &mut Fixed, old: &GatewayLimits, new: &mut GatewayLimits) {
    fixed.keep(
        "server.limits.connections_max",
        &old.connections_max,
        &mut new.connections_max,
    );
    fixed.keep(
        "server.limits.participant_connections_max",
        &old.participant_connections_max,
        &mut new.participant_connections_max,
    );
    fixed.keep(
        "server.limits.held_bytes_max",
        &old.held_bytes_max,
        &mut new.held_bytes_max,
    );
    fixed.keep(
        "server.limits.participant_held_bytes_max",
        &old.participant_held_bytes_max,
        &mut new.participant_held_bytes_max,
    );
    fixed.keep("server.limits.away", &old.topics.away, &mut new.topics.away);
}

/// Settings that stay as they are.
#[derive(Default)]
struct Fixed {
    /// The keys of those that were to change.
    changed: Vec<&'static str>,
}

impl Fixed {
    fn keep<T: Clone + PartialEq>(&mut self, key: &'static str, before: &T, after: &mut T) {
        if before != after {
            self.changed.push(key);
            after.clone_from(before);
        }
    }

    /// Keeps whether there is a setting. Its content may change.
    fn keep_whether<T: Clone>(
        &mut self,
        key: &'static str,
        before: Option<&T>,
        after: &mut Option<T>,
    ) {
        if before.is_some() != after.is_some() {
            self.changed.push(key);
            *after = before.cloned();
        }
    }
}
