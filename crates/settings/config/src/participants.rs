//! Tables `[participants.NAME]`, read as [`ParticipantConfig`].

use std::sync::Arc;

use crate::expand::expand_home;
use crate::node::{Node, TreeEntry, Value};
use crate::problem::Problem;
use crate::profiles::{Profiles, profile};
use crate::read_file::read_file;
use crate::reader::{ListedText, Table, ValueForm};
use crate::secrets::{NamedValue, Outside, note_unread};
use crate::servers::timeouts;
use crate::values::{
    Env, FULL_PATH, capabilities, capabilities_under, participant_id, rate, result_bytes_max,
    topic_name,
};
use auth::{CertificateId, Credential, Participant, TokenHash, Wires, encode_token};
use identity::config::ParticipantConfig;
use identity::is_gateways_name;
use identity::issuers::IssuerSubject;
use model::{Capabilities, DeliveryMode, ParticipantId, TopicName};
use platform::random;
use upstream::config::{
    EraChoice, IDLE_STOP, PinPolicy, Placement, ServerConfig, SessionSharing, Start, Timeouts,
    Transport,
};

/// Shortest accepted token, characters; a shorter one can be guessed.
const TOKEN_CHARS_MIN: usize = 16;

const MODES: [(&str, DeliveryMode); 3] = [
    ("all", DeliveryMode::All),
    ("directed", DeliveryMode::Directed),
    ("directed+proposals", DeliveryMode::DirectedAndProposals),
];

/// Values of `wires`.
const WIRES: [&str; 3] = ["mcp", "ws", "proto"];

/// Topic of participants without `topics`.
pub const MAIN_TOPIC: &str = "main";

/// The configured participants.
#[derive(Default)]
pub(crate) struct Participants {
    pub(crate) known: Vec<ParticipantConfig>,
    /// Those that serve, as servers.
    pub(crate) serving: Vec<ServerConfig>,
    /// Those that have a limit of results.
    pub(crate) result_limits: Vec<(ParticipantId, usize)>,
}

/// Reads every participant.
pub(crate) fn read(root: &Table<'_>, outside: &Outside<'_>, profiles: &Profiles) -> Participants {
    let mut all = Participants::default();
    for (entry, table) in root.tables("participants") {
        participant(entry, table, outside, profiles, &mut all);
    }
    all
}

fn participant(
    entry: &TreeEntry,
    table: Table<'_>,
    outside: &Outside<'_>,
    profiles: &Profiles,
    all: &mut Participants,
) {
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
    let shadow = capabilities_under(&table, "shadow_capabilities", &profiles.sets);
    let topics = topics(&table);
    let rate = rate(&table, "rate");
    let mode = table.choice("mode", &MODES).unwrap_or_default();
    let wires = wires(&table);
    let timeouts = timeouts(&table);
    let serves = table.flag("serves").unwrap_or(false);
    let validate = table.flag("validate").unwrap_or_default();
    let result_bytes_max = result_bytes_max(&table);
    table.finish();
    let Some(id) = id else {
        return;
    };
    if serves {
        all.serving.push(server(id.clone(), timeouts, validate));
    }
    all.result_limits
        .extend(result_bytes_max.map(|limit| (id.clone(), limit)));
    let participant = Arc::new(Participant {
        id,
        capabilities: written.unwrap_or_else(|| Arc::new(Capabilities::newcomer())),
        topics,
        rate,
        mode,
        wires,
        expires_ms: None,
        bearer: None,
    });
    all.known.push(ParticipantConfig {
        participant,
        credentials,
        certificates,
        subject,
        capabilities_written,
        shadow,
        serves,
    });
}

/// The server that a participant is which serves.
fn server(name: ParticipantId, timeouts: Timeouts, validate: bool) -> ServerConfig {
    ServerConfig {
        // As for configured servers: characters that a tool's name cannot have become `_`.
        prefix: name
            .as_str()
            .replace(
                |c: char| !c.is_ascii_alphanumeric() && !"_-.".contains(c),
                "_",
            )
            .into(),
        name,
        transport: Transport::Participant,
        // On MCPx, payloads have the legacy form.
        era: EraChoice::Legacy,
        sessions: SessionSharing::Shared,
        placement: Placement::default(),
        timeouts,
        capabilities: Arc::new(Capabilities::upstream()),
        enabled: true,
        validate,
        pins: PinPolicy::default(),
        start: Start::Always,
        idle_stop: IDLE_STOP,
        curation: None,
    }
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

/// Fault of a token.
struct BadToken {
    /// The message, from behind the name of the token's key.
    why: String,
    hint: &'static str,
}

fn credentials(table: &Table<'_>, outside: &Outside<'_>) -> Vec<Credential> {
    let env = outside.env;
    let mut found = Vec::new();
    if let Some(name) = table.text("token_env") {
        found.push(("token_env", token_env(name, env).and_then(hash)));
    }
    if let Some(path) = table.text("token_file") {
        found.push(("token_file", token_file(path, env).and_then(hash)));
    }
    if let Some(digits) = table.text("token_sha256") {
        found.push(("token_sha256", hash_of_digits(digits)));
    }
    if let Some(node) = table.get("token")
        && let Some(hash) = named_token(node, table, outside)
    {
        found.push(("token", hash));
    }
    let mut credentials = Vec::new();
    for (key, hash) in found {
        match hash {
            Ok(hash) => credentials.push(Credential {
                hash,
                expires_ms: None,
            }),
            Err(BadToken { why, hint }) => {
                let message = format!("`{}`{why}", table.full(key));
                table.note_at(key, "config_token", message, hint);
            }
        }
    }
    credentials
}

/// The hash that is written in hexadecimal digits.
fn hash_of_digits(text: &str) -> Result<TokenHash, BadToken> {
    text.parse().map_err(|_| BadToken {
        why: " must be 64 hexadecimal digits".to_owned(),
        hint: "compute it with: printf %s TOKEN | sha256sum",
    })
}

/// The hash of the token that a table names. As long as secrets are not read, that of a token which
/// is never given out: it admits no one.
fn named_token(
    node: &Node,
    table: &Table<'_>,
    outside: &Outside<'_>,
) -> Option<Result<TokenHash, BadToken>> {
    let Value::Table(_) = node.value else {
        return Some(Err(BadToken {
            why: ": a token must not be in the configuration file".to_owned(),
            hint: "use `token_env`, `token_file` or `token_sha256`, or name a secret: token = { command = [...] }",
        }));
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
fn subject(table: &Table<'_>) -> Option<IssuerSubject> {
    table.get("subject")?;
    let written = table.table("subject")?;
    let issuer = written.text("issuer").unwrap_or_default().to_owned();
    let subject = written.text("sub").unwrap_or_default().to_owned();
    written.finish_by_ref();
    if issuer.is_empty() || subject.is_empty() {
        let message = format!("`{}` needs an `issuer` and a `sub`", table.full("subject"));
        table.note_value(
            "subject",
            message,
            "for example { issuer = \"corp\", sub = \"248289761001\" }",
        );
        return None;
    }
    Some(IssuerSubject { issuer, subject })
}

/// The client certificates of a participant.
fn certificates(table: &Table<'_>) -> Vec<CertificateId> {
    const PRINTED: &str = "client_cert_sha256";
    let mut certificates = Vec::new();
    if let Some(text) = table.text(PRINTED) {
        match text.parse::<CertificateId>() {
            Ok(certificate) => certificates.push(certificate),
            Err(error) => {
                let message = format!("`{}`: {error}", table.full(PRINTED));
                let hint = "openssl x509 -noout -fingerprint -sha256 -in FILE prints it";
                table.note_at(PRINTED, "config_tls", message, hint);
            }
        }
    }
    if let Some(name) = table.text("client_cert_san") {
        certificates.push(CertificateId::Name(name.into()));
    }
    certificates
}

/// The hash of a token that is long enough not to be guessed.
fn hash(token: String) -> Result<TokenHash, BadToken> {
    if token.chars().count() >= TOKEN_CHARS_MIN {
        return Ok(TokenHash::of(&token));
    }
    Err(BadToken {
        why: format!(": the token has fewer than {TOKEN_CHARS_MIN} characters"),
        hint: "issue one with: portmoot token new NAME",
    })
}

fn token_env(name: &str, env: Env<'_>) -> Result<String, BadToken> {
    match env(name) {
        Some(token) if !token.is_empty() => Ok(token),
        _ => Err(BadToken {
            why: format!(": the environment variable `{name}` is not set"),
            hint: "set it to the participant's token",
        }),
    }
}

fn token_file(path: &str, env: Env<'_>) -> Result<String, BadToken> {
    let full = expand_home(path, env).map_err(|error| BadToken {
        why: format!(": {error}"),
        hint: FULL_PATH,
    })?;
    match read_file(full) {
        // `echo` ends a line, which is no part of the token.
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) => Err(BadToken {
            why: format!(": cannot read `{path}`: {error}"),
            hint: "the file must contain only the token",
        }),
    }
}

/// The wires on which a participant may come in: all, unless `wires` names some.
fn wires(table: &Table<'_>) -> Wires {
    let written = table.texts("wires");
    table.form("wires", ValueForm::Choices(WIRES.to_vec()));
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
    for ListedText { text, location } in written {
        match text {
            "mcp" => wires.mcp = true,
            "ws" => wires.ws = true,
            "proto" => wires.proto = true,
            _ => {
                let message = format!("`{}`: there is no wire `{text}`", table.full("wires"));
                let problem = Problem::new("config_value", message).at(location);
                let otherwise = "the wires are `mcp`, `ws` and `proto`";
                table
                    .problems()
                    .note(problem.suggest(text, WIRES, otherwise));
            }
        }
    }
    wires
}

fn topics(table: &Table<'_>) -> Vec<TopicName> {
    let written = table
        .texts("topics")
        .unwrap_or_else(|| vec![main_topic(table)]);
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
    topic_names(&written, table)
}

/// The topic of a table without `topics`.
pub(crate) fn main_topic<'a>(table: &Table<'a>) -> ListedText<'a> {
    ListedText {
        text: MAIN_TOPIC,
        location: table.location(),
    }
}

/// The names of topics that a list has; notes a problem for each that is not valid.
pub(crate) fn topic_names(written: &[ListedText<'_>], table: &Table<'_>) -> Vec<TopicName> {
    written
        .iter()
        .filter_map(|one| topic_name(one.text, one.location, table.problems()))
        .collect()
}
