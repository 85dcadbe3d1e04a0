//! Tables `[issuers.NAME]` and `[scopes.NAME]`.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::checked::Config;
use auth::jwt::{Algorithm, Rules};
use identity::config::ParticipantConfig;
use identity::issuers::{ISSUERS_MAX, IssuerConfig, MapRule, ScopeConfig, TokenAccess};
use model::{IdError, ParticipantId, TopicName};
use oauth::dialer::{Subnet, parse_url};
use oauth::issuer::{Credentials, TokenCheck};
use oauth::person::PageClient;
use topic::section::Sets;

use crate::node::{Node, TreeEntry, Value};
use crate::participants::{MAIN_TOPIC, main_topic, topic_names};
use crate::problem::Problem;
use crate::profiles::{Profiles, profile};
use crate::reader::{ListedText, Problems, Table};
use crate::secrets::{FORMS, Outside, note_unread};
use crate::servers::auth::{is_scope, params};
use crate::values::capabilities;

const SKEW: Duration = Duration::from_secs(30);
/// A clock that is off by more is wrong.
const SKEW_MAX: Duration = Duration::from_secs(300);
/// The longest name of an issuer, in characters.
const NAME_CHARS_MAX: usize = 32;
const NAME: &str = "{preferred_username}";
const GROUPS: &str = "groups";
/// The longest name of a scope, in characters.
const SCOPE_CHARS_MAX: usize = 128;

/// Way in which tokens are checked, as the configuration names it.
#[derive(Clone, Copy)]
enum Tokens {
    Jwt,
    Introspect,
}

const TOKENS: [(&str, Tokens); 2] = [("jwt", Tokens::Jwt), ("introspect", Tokens::Introspect)];

/// Source of the audience if a token has none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AudienceFrom {
    Token,
    Client,
}

const AUDIENCE_FROM: [(&str, AudienceFrom); 2] = [
    ("token", AudienceFrom::Token),
    ("client", AudienceFrom::Client),
];

/// Reads every issuer.
pub(crate) fn read(
    root: &Table<'_>,
    outside: &Outside<'_>,
    profiles: &Profiles,
) -> Vec<IssuerConfig> {
    let tables = root.tables("issuers");
    if let Some((entry, _)) = tables.get(ISSUERS_MAX) {
        let message = format!("there are more than {ISSUERS_MAX} issuers");
        root.problems()
            .note(Problem::new("config_value", message).at(&entry.location));
    }
    tables
        .into_iter()
        .filter_map(|(entry, table)| issuer(entry, &table, outside, profiles))
        .collect()
}

fn issuer(
    entry: &TreeEntry,
    table: &Table<'_>,
    outside: &Outside<'_>,
    profiles: &Profiles,
) -> Option<IssuerConfig> {
    check_name(entry, table);
    let identifier = table.text("issuer");
    if identifier.is_none() && table.get("issuer").is_none() {
        table.wrong(
            "config_missing",
            format!("{} has no `issuer`", table.name()),
            "its URL, byte for byte",
        );
    }
    check_url(table, "issuer");
    let client_id = table.text("client_id").map(str::to_owned);
    let secret = client_secret(table, outside);
    let source = source(table, client_id.clone(), secret.clone());
    let audiences = words(table, "audiences").unwrap_or_default();
    let audience_from = table
        .choice("audience_from", &AUDIENCE_FROM)
        .unwrap_or(AudienceFrom::Token);
    let algorithms = algorithms(table);
    let types = words(table, "types").unwrap_or_else(|| vec!["at+jwt".to_owned()]);
    let types = types
        .into_iter()
        .map(|one| one.to_ascii_lowercase())
        .collect();
    let skew = skew(table);
    let token_prefix = table.text("token_prefix").unwrap_or_default().to_owned();
    let allowed = allowed(table);
    let participant = table.text("name").unwrap_or(NAME).to_owned();
    let groups = table.text("groups").unwrap_or(GROUPS).to_owned();
    let unknown = unknown(table, profiles);
    let step_up = table.flag("step_up").unwrap_or(false);
    let map = map(table, profiles);
    let console = console(table, client_id, secret, audiences.is_empty());
    table.finish_by_ref();
    let rules = Rules {
        issuer: identifier?.to_owned(),
        algorithms,
        types,
        skew_secs: skew.as_secs(),
    };
    let audience_of_client = audience_from == AudienceFrom::Client;
    let name = entry.key.clone();
    Some(IssuerConfig {
        name,
        rules,
        source: source?,
        audiences,
        audience_of_client,
        token_prefix,
        allowed,
        participant,
        groups,
        map,
        unknown,
        step_up,
        console,
    })
}

/// Checks the name of an issuer, which is in the names of its participants.
fn check_name(entry: &TreeEntry, table: &Table<'_>) {
    let name = &entry.key;
    let has_other = name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
    let hint = if name.is_empty() || name.len() > NAME_CHARS_MAX || has_other {
        "use letters, digits, `-` and `_`"
    } else if ParticipantId::new(&format!("{name}:x")) == Err(IdError::Reserved) {
        "names that begin so belong to the gateway: choose another"
    } else {
        return;
    };
    let message = format!("`{}` cannot be the name of an issuer", name.escape_debug());
    let problem = Problem::new("config_name", message).at(&entry.location);
    table.problems().note(problem.hint(hint));
}

/// The difference of clocks that is allowed for.
fn skew(table: &Table<'_>) -> Duration {
    let skew = table.duration("skew").unwrap_or(SKEW);
    if skew > SKEW_MAX {
        let message = format!(
            "`{}` is more than {} s",
            table.full("skew"),
            SKEW_MAX.as_secs()
        );
        table.note_value(
            "skew",
            message,
            "set the clocks: tokens would be valid for much longer",
        );
    }
    skew
}

/// The access of people whom no rule names; `None` if they are refused.
fn unknown(table: &Table<'_>, profiles: &Profiles) -> Option<TokenAccess> {
    match table.text("unknown") {
        None | Some("refuse") => None,
        Some(_) => Some(TokenAccess {
            capabilities: profile(table, "unknown", profiles)?,
            topics: TopicName::new(MAIN_TOPIC).into_iter().collect(),
        }),
    }
}

/// The texts of a list, none of them empty.
fn words(table: &Table<'_>, key: &'static str) -> Option<Vec<String>> {
    let words = table.texts(key)?;
    if words.iter().any(|one| one.text.is_empty()) {
        table.note_value(
            key,
            format!("`{}` has an empty text", table.full(key)),
            "remove it",
        );
    }
    Some(words.iter().map(|one| one.text.to_owned()).collect())
}

fn check_url<'a>(table: &Table<'a>, key: &'static str) -> Option<&'a str> {
    let text = table.text(key)?;
    let wrong = match parse_url(text) {
        Ok(url) if url.query().is_some() && key == "issuer" => Some("it has a query".to_owned()),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    };
    if let Some(why) = wrong {
        let message = format!(
            "`{}` is no address that can be fetched: {why}",
            table.full(key)
        );
        table.note_value(
            key,
            message,
            "for example \"https://idp.example.com/realms/main\"",
        );
    }
    Some(text)
}

/// The gateway as the issuer's client for the console, which `console_scopes` switches on.
fn console(
    table: &Table<'_>,
    client_id: Option<String>,
    secret: Option<Result<String, ()>>,
    has_resource: bool,
) -> Option<PageClient> {
    let written = words(table, "console_scopes");
    let params = params(table, "console_params", &["nonce", "max_age"]);
    let scopes = written?;
    if let Some(wrong) = scopes.iter().find(|scope| !is_scope(scope)) {
        let key = table.full("console_scopes");
        let message = format!("`{key}`: `{}` is no scope", wrong.escape_debug());
        table.note_value(
            "console_scopes",
            message,
            "write each scope as a text of its own",
        );
    }
    let Some(id) = client_id else {
        let message = format!("{} has `console_scopes` without `client_id`", table.name());
        let hint = "register the gateway as a client of the issuer, with the redirect URI PUBLIC_URL/console/signed-in/NAME";
        table.wrong("config_missing", message, hint);
        return None;
    };
    Some(PageClient {
        id,
        secret: secret.transpose().ok()?,
        scopes,
        params,
        has_resource,
    })
}

fn source(
    table: &Table<'_>,
    client_id: Option<String>,
    secret: Option<Result<String, ()>>,
) -> Option<TokenCheck> {
    let tokens = table.choice("tokens", &TOKENS).unwrap_or(Tokens::Jwt);
    let keys = check_url(table, "jwks_url").map(str::to_owned);
    let about = check_url(table, "introspection_url").map(str::to_owned);
    match (tokens, client_id, secret) {
        (Tokens::Jwt, _, _) => Some(TokenCheck::Keys(keys)),
        (Tokens::Introspect, Some(client_id), Some(Ok(client_secret))) => {
            Some(TokenCheck::Introspection(
                about,
                Credentials {
                    client_id,
                    client_secret,
                },
            ))
        }
        (Tokens::Introspect, Some(_), Some(Err(()))) => None,
        (Tokens::Introspect, _, _) => {
            let message = format!(
                "{} asks about tokens without `client_id` and `client_secret_env`",
                table.name()
            );
            table.wrong(
                "config_missing",
                message,
                "register the gateway as a client of the issuer",
            );
            None
        }
    }
}

/// The secret with which an issuer is asked; `Err` if one is configured and cannot be had, which is
/// noted. It is empty as long as secrets are not read.
fn client_secret(table: &Table<'_>, outside: &Outside<'_>) -> Option<Result<String, ()>> {
    let variable = table.text("client_secret_env");
    let Some(node) = table.get("client_secret") else {
        let name = variable?;
        if let Some(value) = (outside.env)(name)
            && !value.is_empty()
        {
            return Some(Ok(value));
        }
        let key = "client_secret_env";
        let message = format!(
            "`{}`: the environment variable `{name}` is not set",
            table.full(key)
        );
        let hint = "set it to the secret that the issuer gave you";
        table.note_at(key, "config_token", message, hint);
        return Some(Err(()));
    };
    if variable.is_some() {
        let message = format!(
            "{} has both `client_secret` and `client_secret_env`",
            table.name()
        );
        table.wrong("config_twice", message, "keep one of them");
    }
    let Value::Table(_) = node.value else {
        let key = "client_secret";
        let message = format!(
            "`{}`: a secret must not be in the configuration file",
            table.full(key)
        );
        table.note_at(key, "config_token", message, FORMS);
        return Some(Err(()));
    };
    let Some(named) = outside.secret(node, &table.full("client_secret"), table.problems()) else {
        return Some(Err(()));
    };
    Some(match named.text {
        None => Ok(String::new()),
        Some(Ok(secret)) => Ok(secret.expose().to_owned()),
        Some(Err(no_secret)) => {
            note_unread(table, "client_secret", &no_secret);
            Err(())
        }
    })
}

/// The algorithms of signatures that are accepted.
fn algorithms(table: &Table<'_>) -> Vec<Algorithm> {
    let Some(written) = table.texts("algorithms") else {
        return Algorithm::DEFAULT.to_vec();
    };
    let mut algorithms = Vec::new();
    for ListedText { text, location } in written {
        if let Some(algorithm) = Algorithm::parse(text) {
            algorithms.push(algorithm);
            continue;
        }
        let message = format!(
            "`{}`: `{text}` is no algorithm that is accepted",
            table.full("algorithms")
        );
        let problem = Problem::new("config_value", message).at(location);
        let all = Algorithm::ALL.map(|(known, _)| known);
        table
            .problems()
            .note(problem.suggest(text, all, format!("one of {}", all.join(", "))));
    }
    algorithms
}

/// The private networks in which an issuer may be.
fn allowed(table: &Table<'_>) -> Vec<Subnet> {
    let mut subnets = Vec::new();
    for ListedText { text, location } in table.texts("allow_private").unwrap_or_default() {
        match text.parse::<Subnet>() {
            Ok(subnet) => subnets.push(subnet),
            Err(error) => {
                let message = format!("`{}`: {error}", table.full("allow_private"));
                table
                    .problems()
                    .note(Problem::new("config_value", message).at(location));
            }
        }
    }
    subnets
}

fn map(table: &Table<'_>, profiles: &Profiles) -> Vec<MapRule> {
    table
        .items("map")
        .into_iter()
        .filter_map(|rule| map_rule(&rule, profiles))
        .collect()
}

fn map_rule(table: &Table<'_>, profiles: &Profiles) -> Option<MapRule> {
    let when = conditions(table);
    if when.is_empty() {
        let message = format!("{} has no `when`: it would match everybody", table.name());
        table.wrong(
            "config_missing",
            message,
            "for example when = { groups = \"ops\" }; `unknown` is for the others",
        );
    }
    let chosen = profile(table, "profile", profiles);
    let written = capabilities(table, &profiles.sets);
    if chosen.is_none() && written.is_none() && table.get("profile").is_none() {
        table.wrong(
            "config_missing",
            format!("{} has no `profile`", table.name()),
            "name one of [profiles.NAME]",
        );
    }
    let topics = table
        .texts("topics")
        .unwrap_or_else(|| vec![main_topic(table)]);
    let topics = topic_names(&topics, table);
    table.finish_by_ref();
    let capabilities = chosen.or(written)?;
    if when.is_empty() {
        return None;
    }
    let place = TokenAccess {
        capabilities,
        topics,
    };
    Some(MapRule { when, place })
}

/// The claims that a token needs for a rule, each with its value. Claims are compared as texts.
fn conditions(table: &Table<'_>) -> Vec<(String, String)> {
    let mut when = Vec::new();
    for entry in table.entries("when") {
        let value = match &entry.node.value {
            Value::Text(text) => text.clone(),
            Value::Flag(flag) => flag.to_string(),
            Value::Integer(number) => number.to_string(),
            Value::Decimal(_) | Value::List(_) | Value::Table(_) => {
                let message = format!("`{}.{}` must be a text", table.full("when"), entry.key);
                table
                    .problems()
                    .note(Problem::new("config_value", message).at(&entry.location));
                continue;
            }
        };
        when.push((entry.key.clone(), value));
    }
    when
}

/// Reads every scope.
pub(crate) fn scopes(root: &Table<'_>, sets: &Sets) -> Vec<ScopeConfig> {
    let tables = root.tables("scopes");
    let mut scopes: Vec<ScopeConfig> = tables
        .iter()
        .map(|(entry, table)| scope(entry, table, &tables, sets))
        .collect();
    let written = scopes.clone();
    for scope in &mut scopes {
        scope.implies = implied(&scope.name, &written);
    }
    scopes
}

fn scope(
    entry: &TreeEntry,
    table: &Table<'_>,
    all: &[(&TreeEntry, Table<'_>)],
    sets: &Sets,
) -> ScopeConfig {
    // RFC 6749, section 3.3. A scope for everything would be asked for by every client.
    let has_other = entry
        .key
        .contains(|c: char| !matches!(c, '!' | '#'..='[' | ']'..='~') || c == '*');
    if entry.key.is_empty() || entry.key.len() > SCOPE_CHARS_MAX || has_other {
        let message = format!("`{}` cannot be a scope", entry.key.escape_debug());
        table
            .problems()
            .note(Problem::new("config_name", message).at(&entry.location));
    }
    let baseline = table.flag("baseline").unwrap_or(false);
    let implies = table.texts("implies").unwrap_or_default();
    let known = all.iter().map(|(other, _)| other.key.as_str());
    for ListedText { text, location } in &implies {
        if !known.clone().any(|name| name == *text) {
            let message = format!("`{}`: there is no scope `{text}`", table.full("implies"));
            let problem = Problem::new("config_value", message).at(location);
            let otherwise = format!("add [scopes.\"{text}\"]");
            table
                .problems()
                .note(problem.suggest(text, known.clone(), otherwise));
        }
    }
    let held = capabilities(table, sets);
    if held.is_none() && table.get("capabilities").is_none() && implies.is_empty() {
        let message = format!("{} has no `capabilities`", table.name());
        table.wrong(
            "config_value",
            message,
            "list them; [] is a scope without capabilities",
        );
    }
    table.finish_by_ref();
    let implies = implies.iter().map(|one| one.text.to_owned()).collect();
    ScopeConfig {
        name: entry.key.clone(),
        baseline,
        implies,
        capabilities: held.unwrap_or_default(),
    }
}

/// A scope, and all that it implies in one or more steps, sorted. Scopes may imply each other.
fn implied(name: &str, written: &[ScopeConfig]) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut next = vec![name.to_owned()];
    while let Some(name) = next.pop() {
        if found.insert(name.clone()) {
            for scope in written.iter().filter(|scope| scope.name == name) {
                next.extend_from_slice(&scope.implies);
            }
        }
    }
    found.into_iter().collect()
}

/// Checks what the tables say about each other, and that the gateway has an address of its own.
pub(crate) fn check(tree: &Node, config: &Config, problems: &Problems) {
    if let Some(first) = config.identity.issuers.first()
        && config.identity.public_url.is_none()
    {
        let message = "`[issuers]` needs `server.public_url`: tokens are for an address";
        let place = tree.place(&["issuers", &first.name]);
        let problem = Problem::new("config_missing", message).at(place);
        problems.note(problem.hint("set it to the address under which clients reach the gateway"));
    }
    let mut seen: Vec<&IssuerConfig> = Vec::new();
    for one in &config.identity.issuers {
        let earlier = seen
            .iter()
            .find(|other| other.rules.issuer == one.rules.issuer);
        if let Some(other) = earlier {
            let message = format!("`{}` and `{}` are the same issuer", other.name, one.name);
            let place = tree.place(&["issuers", &one.name, "issuer"]);
            problems.note(Problem::new("config_twice", message).at(place));
        }
        seen.push(one);
        check_topics(tree, config, one, problems);
    }
    check_subjects(tree, config, problems);
}

/// Checks that the topics of an issuer's rules are there.
fn check_topics(tree: &Node, config: &Config, issuer: &IssuerConfig, problems: &Problems) {
    let name = &issuer.name;
    for topic in issuer.map.iter().flat_map(|rule| &rule.place.topics) {
        if config
            .identity
            .topics
            .iter()
            .any(|known| known.name == *topic)
        {
            continue;
        }
        let message =
            format!("`[[issuers.{name}.map]]` names `{topic}`, but there is no such topic");
        let place = tree.place(&["issuers", name, "map"]);
        let problem = Problem::new("config_unknown_topic", message).at(place);
        problems.note(problem.hint(format!("add [topics.{topic}]")));
    }
}

/// Checks that the subjects of participants have issuers, and that each names one participant.
fn check_subjects(tree: &Node, config: &Config, problems: &Problems) {
    let mut seen: Vec<&ParticipantConfig> = Vec::new();
    for one in &config.identity.participants {
        let Some(subject) = &one.subject else {
            continue;
        };
        let id = one.participant.id.as_str();
        let place = tree.place(&["participants", id, "subject"]);
        let issuer = subject.issuer.as_str();
        let known = config
            .identity
            .issuers
            .iter()
            .map(|issuer| issuer.name.as_str());
        if !known.clone().any(|name| name == issuer) {
            let message = format!("`participants.{id}.subject`: there is no issuer `{issuer}`");
            let problem = Problem::new("config_value", message).at(place);
            let otherwise = format!("add [issuers.{issuer}]");
            problems.note(problem.suggest(issuer, known, otherwise));
        }
        if let Some(other) = seen.iter().find(|other| other.subject == one.subject) {
            let message = format!("`{}` and `{id}` are the same subject", other.participant.id);
            problems.note(Problem::new("config_twice", message).at(place));
        }
        seen.push(one);
    }
}
