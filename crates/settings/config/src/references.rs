//! Table `[registry]`: from which registries the schemas of servers' tools are resolved.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Read as _;

use auth::CertificateId;
use platform::{millis, open_regular};
use registry::resolve::{
    Digests, Hosts, Http, LABEL_KEPT_MS, RETRY, References, RegistryTokens, ResolverSettings,
};
use tls::{ClientFiles, Oldest};

use crate::expand::expand_home;
use crate::node::Value;
use crate::reader::Table;
use crate::tls_files;
use crate::values::{Env, plain_path_at};

/// Bytes of a netrc file that are read.
const NETRC_BYTES_MAX: u64 = 64 * 1024;

/// Reads the table; `None` if no registry is allowed, or after a problem.
pub(crate) fn read(root: &Table<'_>, env: Env<'_>) -> Option<References> {
    let table = root.table("registry")?;
    let hosts = hosts(&table);
    let label_kept_ms = table.duration("label_ttl").map_or(LABEL_KEPT_MS, millis);
    let retry = table.duration("retry").unwrap_or(RETRY);
    let cache_dir = plain_path_at(&table, "cache_dir", env);
    let files = ClientFiles {
        ca: plain_path_at(&table, "ca", env),
        ..ClientFiles::default()
    };
    let tls = tls_files::client(&table, files, Oldest::Tls13, true);
    let pins = pins(&table, hosts.as_ref());
    let tokens = tokens(&table, env);
    let digests = digests(&table);
    table.finish();
    let hosts = hosts?;
    let tls = tls?;
    let tokens = tokens?;
    let pinned = pins
        .into_iter()
        .map(|(host, sha256)| (host, tls.pinning(sha256)))
        .collect();
    let settings = ResolverSettings {
        hosts,
        tokens,
        digests,
        label_kept_ms,
    };
    Some(References {
        settings,
        way: Http { tls, pinned },
        cache_dir,
        retry,
    })
}

fn hosts(table: &Table<'_>) -> Option<Hosts> {
    let written = table.texts("hosts").unwrap_or_default();
    match Hosts::new(written.iter().map(|one| one.text)) {
        // Without a host, nothing is asked: as without the table.
        Ok(hosts) => (!written.is_empty()).then_some(hosts),
        Err(why) => {
            let hint = "for example \"buf.build\", or \"http://127.0.0.1:7070\" for a registry of this machine";
            table.note_value("hosts", format!("`{}`: {why}", table.full("hosts")), hint);
            None
        }
    }
}

/// The tokens of registries, as `buf` has them: `BUF_TOKEN`, then the netrc file.
fn tokens(table: &Table<'_>, env: Env<'_>) -> Option<RegistryTokens> {
    let path = env("NETRC").or_else(|| expand_home("~/.netrc", env).ok());
    let mut netrc = String::new();
    if let Some(path) = path
        && let Ok(file) = open_regular(OpenOptions::new().read(true), path)
    {
        // A file that is no text has no tokens.
        let _ = file.take(NETRC_BYTES_MAX).read_to_string(&mut netrc);
    }
    match RegistryTokens::read(&env("BUF_TOKEN").unwrap_or_default(), &netrc) {
        Ok(tokens) => Some(tokens),
        Err(error) => {
            let hint = "set BUF_TOKEN to TOKEN@HOST,TOKEN@HOST, or to the token of buf.build";
            table.wrong("config_token", error.to_string(), hint);
            None
        }
    }
}

/// The SHA-256 of the certificates of hosts.
fn pins(table: &Table<'_>, hosts: Option<&Hosts>) -> HashMap<String, [u8; 32]> {
    let mut pins = HashMap::new();
    for entry in table.entries("pins") {
        if !hosts.is_some_and(|hosts| hosts.allows(&entry.key)) {
            let message = format!(
                "`{}`: `{}` is not among the hosts",
                table.full("pins"),
                entry.key
            );
            table.note_value("pins", message, "add it to `hosts`, spelled alike");
        }
        let printed = match &entry.node.value {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        };
        match printed {
            Some(CertificateId::Sha256(sha256)) => {
                pins.insert(entry.key.to_ascii_lowercase(), sha256);
            }
            Some(CertificateId::Name(_)) | None => {
                let message = format!(
                    "`{}` needs the SHA-256 of a certificate",
                    table.full("pins")
                );
                let hint = "openssl x509 -noout -fingerprint -sha256 -in FILE prints it";
                table.note_at("pins", "config_tls", message, hint);
            }
        }
    }
    pins
}

/// The digests of commits, as `buf.lock` has them.
fn digests(table: &Table<'_>) -> Digests {
    let mut digests = Digests::default();
    for entry in table.entries("digests") {
        let digest = if let Value::Text(text) = &entry.node.value {
            text.as_str()
        } else {
            ""
        };
        if let Err(why) = digests.add(&entry.key, digest) {
            let message = format!("`{}`: {why}", table.full("digests"));
            table.note_at(
                "digests",
                "config_value",
                message,
                "copy commit and digest from buf.lock",
            );
        }
    }
    digests
}
