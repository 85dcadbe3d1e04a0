//! Tables `[participants.NAME]`, read as [`ParticipantConfig`].

use std::sync::Arc;

use crate::expand::expand_home;
use crate::node::{Node, TreeEntry, Value};
use crate::problem::Problem;
use crate::profiles::{Profiles, profile};
use crate::read_file::read_file;
use crate::reader::{Table, ValueForm};
use crate::secrets::{NamedValue, Outside, note_unread};
use crate::servers::timeouts;
use crate::values::{
    Env, FULL_PATH, capabilities, participant_id, rate, result_bytes_max, topic_name,
};
use access::config::ParticipantConfig;
use access::is_gateways_name;
use access::issuers::Subject;
use auth::{
    CertificateId, Credential, FingerprintError, Participant, TokenHash, Wires, encode_token,
};
use model::{Capabilities, DeliveryMode, TopicName};
use platform::random;

/// Shortest accepted token, characters; a shorter one can be guessed.
const TOKEN_CHARS_MIN: usize = 16;

const MODES: [(&str, DeliveryMode); 3] = [
    ("all", DeliveryMode::All),
    ("directed", DeliveryMode::Directed),
    ("directed+proposals", DeliveryMode::DirectedAndProposals),
];

/// Topic of participants without `topics`.
pub const MAIN_TOPIC: &str = "main";

/// Reads every participant.
pub(crate) fn read(
    root: &Table<'_>,
    outside: &Outside<'_>,
    profiles: &Profiles,
) -> Vec<ParticipantConfig> {
    let tables = root.tables("participants");
    tables
        .into_iter()
        .filter_map(|(entry, table)| participant(entry, table, outside, profiles))
        .collect()
}

fn participant(
    entry: &TreeEntry,
    table: Table<'_>,
    outside: &Outside<'_>,
    profiles: &Profiles,
) -> Option<ParticipantConfig> {
    let id = participant_id(&entry.key, &entry.location, table.problems());
    if is_gateways_name(&entry.key) {
        let message = format!("a participant cannot be called `{}`", entry.key);
        let problem = Problem::new("config_name", message).at(&entry.location);
        table
            .problems()
            .note(problem.hint("the gateway uses that name itself: choose another"));
    }
    let credentials = credentials(&table, outside);
    let certificates = certificates(&table);
    let subject = subject(&table);
    let written = union(
        profile(&table, "profile", profiles),
        capabilities(&table, &profiles.sets),
    );
    let capabilities_written = written.is_some();
    let topics = topics(&table);
    let rate = rate(&table, "rate");
    let mode = table.choice("mode", &MODES).unwrap_or_default();
    let wires = wires(&table);
    let timeouts = timeouts(&table);
    let serves = table.flag("serves").unwrap_or(false).then_some(timeouts);
    let validate = table.flag("validate").unwrap_or_default();
    let result_bytes_max = result_bytes_max(&table);
    table.finish();
    let participant = Arc::new(Participant {
        id: id?,
        capabilities: written.unwrap_or_else(|| Arc::new(Capabilities::newcomer())),
        topics,
        rate,
        mode,
        wires,
        expires_ms: None,
        bearer: None,
    });
    Some(ParticipantConfig {
        participant,
        credentials,
        certificates,
        subject,
        capabilities_written,
        serves,
        validate,
        result_bytes_max,
    })
}

/// The capabilities of the profile, then those of the participant that the profile does not have.
fn union(
    first: Option<Arc<Capabilities>>,
    more: Option<Arc<Capabilities>>,
) -> Option<Arc<Capabilities>> {
    let (Some(first), Some(more)) = (&first, &more) else {
        return first.or(more);
    };
    let new = more
        .iter()
        .filter(|capability| !first.iter().any(|known| known == *capability));
    Some(Arc::new(first.iter().chain(new).cloned().collect()))
}

/// Fault of a token, after its key, and a hint.
type Wrong = (String, &'static str);

fn credentials(table: &Table<'_>, outside: &Outside<'_>) -> Vec<Credential> {
    let env = outside.env;
    let digits = |text: &str| {
        let hint = "compute it with: printf %s TOKEN | sha256sum";
        text.parse()
            .map_err(|_| (" must be 64 hexadecimal digits".to_owned(), hint))
    };
    let written = [
        (
            "token_env",
            table
                .text("token_env")
                .map(|name| token_env(name, env).and_then(hash)),
        ),
        (
            "token_file",
            table
                .text("token_file")
                .map(|path| token_file(path, env).and_then(hash)),
        ),
        ("token_sha256", table.text("token_sha256").map(digits)),
        (
            "token",
            table
                .get("token")
                .and_then(|node| named_token(node, table, outside)),
        ),
    ];
    let credential = |(key, hash): (&str, Option<Result<TokenHash, Wrong>>)| match hash? {
        Ok(hash) => Some(Credential {
            hash,
            expires_ms: None,
        }),
        Err((wrong, hint)) => {
            table.note_at(
                key,
                "config_token",
                format!("`{}`{wrong}", table.full(key)),
                hint,
            );
            None
        }
    };
    written.into_iter().filter_map(credential).collect()
}

/// The hash of the token that a table names. As long as secrets are not read, that of a token which
/// is never given out: it admits no one.
fn named_token(
    node: &Node,
    table: &Table<'_>,
    outside: &Outside<'_>,
) -> Option<Result<TokenHash, Wrong>> {
    let Value::Table(_) = node.value else {
        let hint = "use `token_env`, `token_file` or `token_sha256`, or name a secret: token = { command = [...] }";
        return Some(Err((
            ": a token must not be in the configuration file".to_owned(),
            hint,
        )));
    };
    let NamedValue { text, .. } = outside.secret(node, &table.full("token"), table.problems())?;
    match text {
        None => Some(Ok(TokenHash::of(&encode_token(&random())))),
        Some(Ok(token)) => Some(hash(token.expose().to_owned())),
        Some(Err(no_secret)) => {
            note_unread(table, "token", &no_secret);
            None
        }
    }
}

/// The subject of an issuer that a participant is.
fn subject(table: &Table<'_>) -> Option<Subject> {
    table.get("subject")?;
    let subject = table.table("subject")?;
    let text = |key| {
        subject
            .text(key)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let issuer = text("issuer");
    let of_token = text("sub");
    subject.finish_by_ref();
    let found = issuer
        .zip(of_token)
        .map(|(issuer, subject)| Subject { issuer, subject });
    if found.is_none() {
        let message = format!("`{}` needs an `issuer` and a `sub`", table.full("subject"));
        table.note_value(
            "subject",
            message,
            "for example { issuer = \"corp\", sub = \"248289761001\" }",
        );
    }
    found
}

/// The client certificates of a participant.
fn certificates(table: &Table<'_>) -> Vec<CertificateId> {
    let printed = table.text("client_cert_sha256").and_then(|text| {
        let wrong = |error: FingerprintError| {
            let message = format!("`{}`: {error}", table.full("client_cert_sha256"));
            let hint = "openssl x509 -noout -fingerprint -sha256 -in FILE prints it";
            table.note_at("client_cert_sha256", "config_tls", message, hint);
        };
        text.parse().map_err(wrong).ok()
    });
    let named = table
        .text("client_cert_san")
        .map(|name| CertificateId::Name(name.into()));
    printed.into_iter().chain(named).collect()
}

fn hash(token: String) -> Result<TokenHash, Wrong> {
    if token.chars().count() >= TOKEN_CHARS_MIN {
        return Ok(TokenHash::of(&token));
    }
    let wrong = format!(": the token has fewer than {TOKEN_CHARS_MIN} characters");
    Err((wrong, "issue one with: portmoot token new NAME"))
}

fn token_env(name: &str, env: Env<'_>) -> Result<String, Wrong> {
    let set = env(name).filter(|token| !token.is_empty());
    let hint = "set it to the participant's token";
    set.ok_or_else(|| {
        (
            format!(": the environment variable `{name}` is not set"),
            hint,
        )
    })
}

fn token_file(path: &str, env: Env<'_>) -> Result<String, Wrong> {
    let full = expand_home(path, env).map_err(|error| (format!(": {error}"), FULL_PATH))?;
    let text = read_file(full);
    text.map(|text| text.trim().to_owned()).map_err(|error| {
        (
            format!(": cannot read `{path}`: {error}"),
            "the file must contain only the token",
        )
    })
}

/// The wires on which a participant may come in: all, unless `wires` names some.
fn wires(table: &Table<'_>) -> Wires {
    let written = table.texts("wires");
    table.form("wires", ValueForm::Choices(vec!["mcp", "ws", "proto"]));
    let Some(written) = written else {
        return Wires::ALL;
    };
    let mut wires = Wires {
        mcp: false,
        ws: false,
        proto: false,
    };
    if written.is_empty() {
        let message = format!(
            "`{}` opens no wire: the participant could not come in",
            table.full("wires")
        );
        table.note_value(
            "wires",
            message,
            "list `mcp`, `ws` or `proto`, or remove the key for all wires",
        );
    }
    for (name, location) in written {
        match name {
            "mcp" => wires.mcp = true,
            "ws" => wires.ws = true,
            "proto" => wires.proto = true,
            _ => {
                let message = format!("`{}`: there is no wire `{name}`", table.full("wires"));
                let problem = Problem::new("config_value", message).at(location);
                let otherwise = "the wires are `mcp`, `ws` and `proto`";
                table
                    .problems()
                    .note(problem.suggest(name, ["mcp", "ws", "proto"], otherwise));
            }
        }
    }
    wires
}

fn topics(table: &Table<'_>) -> Vec<TopicName> {
    let written = table
        .texts("topics")
        .unwrap_or_else(|| vec![(MAIN_TOPIC, table.location())]);
    if written.is_empty() {
        let message = format!(
            "`{}` is empty: the participant could join no topic",
            table.full("topics")
        );
        table.note_value(
            "topics",
            message,
            "list a topic, or remove the key for `main`",
        );
    }
    written
        .into_iter()
        .filter_map(|(name, location)| topic_name(name, location, table.problems()))
        .collect()
}
