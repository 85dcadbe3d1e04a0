//! Files of TLS: `[server.tls]`, and the keys `ca`, `client_cert` and `client_key` of a server.

use std::path::{Path, PathBuf};

use crate::checked::Config;
use auth::CertificateId;
use identity::config::ParticipantConfig;
use platform::unix_ms;
use tls::{
    ClientCertificates, ClientFiles, ClientTls, Identity, Oldest, ServerFiles, ServerTls, TlsError,
};
use upstream::config::ServerConfig;

use crate::node::Node;
use crate::problem::Problem;
use crate::reader::{Problems, Table};
use crate::values::{Env, Variables, plain_path_at};

const CLIENT_AUTH: [(&str, ClientCertificates); 2] = [
    ("required", ClientCertificates::Required),
    ("optional", ClientCertificates::Optional),
];
const CODE: &str = "config_tls";

/// Reads `[server.tls]`; `None` if there is none, or after a problem.
pub(crate) fn server(server: &Table<'_>, env: Env<'_>) -> Option<ServerTls> {
    let table = server.table("tls")?;
    let [cert, key, client_ca] =
        ["cert", "key", "client_ca"].map(|key| plain_path_at(&table, key, env));
    let client_auth = table.choice("client_auth", &CLIENT_AUTH);
    if client_auth.is_some() && client_ca.is_none() {
        let message = format!(
            "`{}` has no effect without `client_ca`",
            table.full("client_auth")
        );
        table.note_at(
            "client_auth",
            CODE,
            message,
            "name the authority that issues certificates to clients",
        );
    }
    let (Some(cert), Some(key)) = (cert, key) else {
        let message = format!("{} needs `cert` and `key`", table.name());
        table.wrong(
            "config_missing",
            message,
            "name the files of the gateway's certificate and of its key",
        );
        table.finish();
        return None;
    };
    let files = ServerFiles {
        cert,
        key,
        client_ca,
        client_auth: client_auth.unwrap_or_default(),
    };
    let keys = [
        ("cert", Some(files.cert.clone())),
        ("key", Some(files.key.clone())),
        ("client_ca", files.client_ca.clone()),
    ];
    let read = noted(ServerTls::read(files, unix_ms()), &table, &keys);
    table.finish();
    read
}

/// The keys of a server that name files of TLS.
pub(crate) fn client_files(table: &Table<'_>, variables: &Variables<'_>) -> ClientFiles {
    let [ca, cert, key] = ["ca", "client_cert", "client_key"].map(|key| {
        let path = variables.path_at(table, key)?;
        Some(PathBuf::from(path.expose()))
    });
    ClientFiles { ca, cert, key }
}

/// Reads what is trusted and shown towards a server whose connections are encrypted or not; `None`
/// after a problem.
pub(crate) fn client(
    table: &Table<'_>,
    files: ClientFiles,
    oldest: Oldest,
    is_encrypted: bool,
) -> Option<ClientTls> {
    let keys = [
        ("ca", files.ca.clone()),
        ("client_cert", files.cert.clone()),
        ("client_key", files.key.clone()),
    ];
    let Some((key, _)) = keys.iter().find(|(_, file)| file.is_some()) else {
        return noted(ClientTls::read(files, oldest, unix_ms()), table, &keys);
    };
    if !is_encrypted {
        let message = format!(
            "`{}` has no effect: the connection is not encrypted",
            table.full(key)
        );
        table.note_at(
            key,
            CODE,
            message,
            "write https:// or wss:// in the `url`, or remove the key",
        );
    }
    noted(ClientTls::read(files, oldest, unix_ms()), table, &keys)
}

/// Notes what is wrong, at the key whose file it is.
fn noted<T>(
    read: Result<T, TlsError>,
    table: &Table<'_>,
    keys: &[(&'static str, Option<PathBuf>)],
) -> Option<T> {
    let error = match read {
        Ok(read) => return Some(read),
        Err(error) => error,
    };
    let written: Vec<(&str, &Path)> = keys
        .iter()
        .filter_map(|(key, file)| Some((*key, file.as_deref()?)))
        .collect();
    let of_error = written
        .iter()
        .find(|(_, file)| Some(*file) == error.path())
        // Where one of a pair is missing, the last key that is written.
        .or(written.last());
    let key = of_error.map_or("cert", |(key, _)| *key);
    table.note_at(
        key,
        CODE,
        format!("`{}`: {error}", table.full(key)),
        error.hint(),
    );
    None
}

/// Checks that certificates of participants can come, and that each names one participant.
pub(crate) fn check_certificates(
    tree: &Node,
    participants: &[ParticipantConfig],
    problems: &Problems,
) {
    let tls = tree.get("server").and_then(|server| server.get("tls"));
    let asks_clients = tls.is_some_and(|tls| tls.get("client_ca").is_some());
    let mut seen: Vec<(&CertificateId, &ParticipantConfig)> = Vec::new();
    for one in participants {
        let place = tree.place(&["participants", one.participant.id.as_str()]);
        if !asks_clients && !one.certificates.is_empty() {
            let message = format!(
                "`{}` has a client certificate, but clients are asked for none",
                one.participant.id
            );
            let hint = "name the authority that issued it: [server.tls] client_ca";
            problems.note(Problem::new(CODE, message).at(place).hint(hint));
        }
        for id in &one.certificates {
            if let Some((_, other)) = seen.iter().find(|(known, _)| *known == id) {
                let message = format!(
                    "`{}` and `{}` have the same client certificate",
                    other.participant.id, one.participant.id
                );
                problems.note(
                    Problem::new(CODE, message)
                        .at(place)
                        .hint("a certificate names one participant"),
                );
            }
            seen.push((id, one));
        }
    }
}

/// Warnings about keys that every user of this machine may read.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let own = config.doors.tls.iter().map(ServerTls::identity);
    let shown = config
        .servers
        .iter()
        .filter_map(|server| dialed(server)?.identity());
    own.chain(shown).filter_map(Identity::warning).collect()
}

/// The files of TLS of a configuration, to watch for changes.
pub(crate) fn paths(config: &Config) -> Vec<PathBuf> {
    let own = config.doors.tls.iter().flat_map(ServerTls::paths);
    let dialed = config
        .servers
        .iter()
        .filter_map(dialed)
        .flat_map(ClientTls::paths);
    own.chain(dialed)
        .map(|path: &PathBuf| Path::to_owned(path))
        .collect()
}

fn dialed(server: &ServerConfig) -> Option<&ClientTls> {
    server.transport.address().map(|at| &at.tls)
}
