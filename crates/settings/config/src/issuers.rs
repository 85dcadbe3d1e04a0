//! Tables `[issuers.NAME]` and `[scopes.NAME]`.

use std::collections::BTreeSet;
use std::time::Duration;

use access::config::{Config, ParticipantConfig, Sets};
use access::issuers::{ISSUERS_MAX, IssuerConfig, MapRule, ScopeConfig, TokenAccess};
use auth::jwt::{Algorithm, Rules};
use model::TopicName;
use oauth::dialer::{Subnet, parse_url};
use oauth::issuer::{Credentials, TokenCheck};

use crate::node::{Node, TreeEntry, Value};
use crate::participants::MAIN_TOPIC;
use crate::problem::Problem;
use crate::profiles::{Profiles, profile};
use crate::reader::{Problems, Table};
use crate::secrets::{FORMS, Outside, note_unread};
use crate::values::{capabilities, topic_name};

const SKEW: Duration = Duration::from_secs(30);
/// A clock that is off by more is wrong.
const SKEW_MAX: Duration = Duration::from_secs(300);
const NAME: &str = "{preferred_username}";
const GROUPS: &str = "groups";

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
    let is_word = |one: char| one.is_ascii_alphanumeric() || one == '-' || one == '_';
    if entry.key.is_empty()
        || entry.key.len() > 32
        || !entry.key.chars().all(is_word)
        || entry.key == "system"
    {
        let message = format!(
            "`{}` cannot be the name of an issuer",
            entry.key.escape_debug()
        );
        let problem = Problem::new("config_name", message).at(&entry.location);
        table
            .problems()
            .note(problem.hint("use letters, digits, `-` and `_`"));
    }
    let identifier = table.text("issuer");
    if identifier.is_none() && table.get("issuer").is_none() {
        table.wrong(
            "config_missing",
            format!("{} has no `issuer`", table.name()),
            "its URL, byte for byte",
        );
    }
    check_url(table, "issuer");
    let source = source(table, outside);
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
    let token_prefix = table.text("token_prefix").unwrap_or_default().to_owned();
    let allowed = allowed(table);
    let participant = table.text("name").unwrap_or(NAME).to_owned();
    let groups = table.text("groups").unwrap_or(GROUPS).to_owned();
    let unknown = match table.text("unknown") {
        None | Some("refuse") => None,
        Some(_) => profile(table, "unknown", profiles).map(|capabilities| TokenAccess {
            capabilities,
            topics: TopicName::new(MAIN_TOPIC).into_iter().collect(),
        }),
    };
    let step_up = table.flag("step_up").unwrap_or(false);
    let map = map(table, profiles);
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
    })
}

/// The texts of a list, none of them empty.
fn words(table: &Table<'_>, key: &'static str) -> Option<Vec<String>> {
    let words = table.texts(key)?;
    if words.iter().any(|(word, _)| word.is_empty()) {
        table.note_value(
            key,
            format!("`{}` has an empty text", table.full(key)),
            "remove it",
        );
    }
    Some(words.into_iter().map(|(word, _)| word.to_owned()).collect())
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

fn source(table: &Table<'_>, outside: &Outside<'_>) -> Option<TokenCheck> {
    let tokens = table.choice("tokens", &TOKENS).unwrap_or(Tokens::Jwt);
    let keys = check_url(table, "jwks_url").map(str::to_owned);
    let about = check_url(table, "introspection_url").map(str::to_owned);
    let client_id = table.text("client_id").map(str::to_owned);
    let secret = client_secret(table, outside);
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
    let wrong = |key: &str, why: String, hint: &str| {
        table.note_at(
            key,
            "config_token",
            format!("`{}`{why}", table.full(key)),
            hint,
        );
        Err(())
    };
    let Some(node) = table.get("client_secret") else {
        let name = variable?;
        let set = (outside.env)(name).filter(|value| !value.is_empty());
        let why = || format!(": the environment variable `{name}` is not set");
        let hint = "set it to the secret that the issuer gave you";
        return Some(set.map_or_else(|| wrong("client_secret_env", why(), hint), Ok));
    };
    if variable.is_some() {
        let message = format!(
            "{} has both `client_secret` and `client_secret_env`",
            table.name()
        );
        table.wrong("config_twice", message, "keep one of them");
    }
    let Value::Table(_) = node.value else {
        let why = ": a secret must not be in the configuration file".to_owned();
        return Some(wrong("client_secret", why, FORMS));
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

fn algorithms(table: &Table<'_>) -> Vec<Algorithm> {
    let Some(written) = table.texts("algorithms") else {
        return Algorithm::DEFAULT.to_vec();
    };
    let known = |(name, location): (&str, &_)| {
        let found = Algorithm::parse(name);
        if found.is_none() {
            let message = format!(
                "`{}`: `{name}` is no algorithm that is accepted",
                table.full("algorithms")
            );
            let problem = Problem::new("config_value", message).at(location);
            let all = Algorithm::ALL.map(|(known, _)| known);
            table
                .problems()
                .note(problem.suggest(name, all, format!("one of {}", all.join(", "))));
        }
        found
    };
    written.into_iter().filter_map(known).collect()
}

fn allowed(table: &Table<'_>) -> Vec<Subnet> {
    let written = table.texts("allow_private").unwrap_or_default();
    let read = |(text, location): (&str, &_)| {
        let wrong = |error: oauth::dialer::SubnetError| {
            let message = format!("`{}`: {error}", table.full("allow_private"));
            table
                .problems()
                .note(Problem::new("config_value", message).at(location));
        };
        text.parse().map_err(wrong).ok()
    };
    written.into_iter().filter_map(read).collect()
}

fn map(table: &Table<'_>, profiles: &Profiles) -> Vec<MapRule> {
    table
        .items("map")
        .into_iter()
        .filter_map(|rule| map_rule(&rule, profiles))
        .collect()
}

fn map_rule(table: &Table<'_>, profiles: &Profiles) -> Option<MapRule> {
    let when: Vec<(String, String)> = table
        .entries("when")
        .iter()
        .filter_map(|entry| match &entry.node.value {
            Value::Text(text) => Some((entry.key.clone(), text.clone())),
            Value::Flag(flag) => Some((entry.key.clone(), flag.to_string())),
            Value::Integer(number) => Some((entry.key.clone(), number.to_string())),
            Value::Decimal(_) | Value::List(_) | Value::Table(_) => {
                let message = format!("`{}.{}` must be a text", table.full("when"), entry.key);
                table
                    .problems()
                    .note(Problem::new("config_value", message).at(&entry.location));
                None
            }
        })
        .collect();
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
    let main = || vec![(MAIN_TOPIC, table.location())];
    let topics = table.texts("topics").unwrap_or_else(main);
    let topics = topics
        .into_iter()
        .filter_map(|(name, location)| topic_name(name, location, table.problems()));
    let topics = topics.collect();
    table.finish_by_ref();
    let capabilities = chosen.or(written)?;
    (!when.is_empty()).then_some(MapRule {
        when,
        place: TokenAccess {
            capabilities,
            topics,
        },
    })
}

/// Reads every scope.
pub(crate) fn scopes(root: &Table<'_>, sets: &Sets) -> Vec<ScopeConfig> {
    let tables = root.tables("scopes");
    let mut scopes: Vec<ScopeConfig> = tables
        .iter()
        .map(|(entry, table)| scope(entry, table, &tables, sets))
        .collect();
    let direct: Vec<(String, Vec<String>)> = scopes
        .iter()
        .map(|scope| (scope.name.clone(), scope.implies.clone()))
        .collect();
    for scope in &mut scopes {
        scope.implies = closure(&scope.name, &direct);
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
    let is_scope = |one: char| matches!(one, '!' | '#'..='[' | ']'..='~') && one != '*';
    if entry.key.is_empty() || entry.key.len() > 128 || !entry.key.chars().all(is_scope) {
        let message = format!("`{}` cannot be a scope", entry.key.escape_debug());
        table
            .problems()
            .note(Problem::new("config_name", message).at(&entry.location));
    }
    let baseline = table.flag("baseline").unwrap_or(false);
    let implies = table.texts("implies").unwrap_or_default();
    for (name, location) in &implies {
        if !all.iter().any(|(other, _)| other.key == *name) {
            let message = format!("`{}`: there is no scope `{name}`", table.full("implies"));
            let problem = Problem::new("config_value", message).at(location);
            let known = all.iter().map(|(other, _)| other.key.as_str());
            table
                .problems()
                .note(problem.suggest(name, known, format!("add [scopes.\"{name}\"]")));
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
    let implies = implies
        .into_iter()
        .map(|(name, _)| name.to_owned())
        .collect();
    ScopeConfig {
        name: entry.key.clone(),
        baseline,
        implies,
        capabilities: held.unwrap_or_default(),
    }
}

/// A scope, and all that it implies in one or more steps.
fn closure(name: &str, direct: &[(String, Vec<String>)]) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut next = vec![name.to_owned()];
    while let Some(name) = next.pop() {
        if found.insert(name.clone()) {
            let implied = direct.iter().filter(|(known, _)| *known == name);
            next.extend(implied.flat_map(|(_, implied)| implied.iter().cloned()));
        }
    }
    found.into_iter().collect()
}

/// Checks what the tables say about each other, and that the gateway has an address of its own.
pub(crate) fn check(tree: &Node, config: &Config, problems: &Problems) {
    let place = |path: &[&str]| tree.place(path);
    if let (Some(first), None) = (config.issuers.first(), &config.public_url) {
        let message = "`[issuers]` needs `server.public_url`: tokens are for an address";
        let problem = Problem::new("config_missing", message).at(place(&["issuers", &first.name]));
        problems.note(problem.hint("set it to the address under which clients reach the gateway"));
    }
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for one in &config.issuers {
        if let Some((other, _)) = seen.iter().find(|(_, known)| *known == one.rules.issuer) {
            let message = format!("`{other}` and `{}` are the same issuer", one.name);
            problems.note(
                Problem::new("config_twice", message).at(place(&["issuers", &one.name, "issuer"])),
            );
        }
        seen.push((&one.name, &one.rules.issuer));
        let topics = one.map.iter().flat_map(|rule| &rule.place.topics);
        for topic in topics.filter(|topic| !config.topics.iter().any(|known| known.name == **topic))
        {
            let message = format!(
                "`[[issuers.{}.map]]` names `{topic}`, but there is no such topic",
                one.name
            );
            let problem = Problem::new("config_unknown_topic", message)
                .at(place(&["issuers", &one.name, "map"]));
            problems.note(problem.hint(format!("add [topics.{topic}]")));
        }
    }
    check_subjects(tree, config, problems);
}

fn check_subjects(tree: &Node, config: &Config, problems: &Problems) {
    let mut seen: Vec<&ParticipantConfig> = Vec::new();
    for one in config
        .participants
        .iter()
        .filter(|one| one.subject.is_some())
    {
        let Some(subject) = &one.subject else {
            continue;
        };
        let id = one.participant.id.as_str();
        let at = tree.place(&["participants", id, "subject"]);
        if !config
            .issuers
            .iter()
            .any(|issuer| issuer.name == subject.issuer)
        {
            let message = format!(
                "`participants.{id}.subject`: there is no issuer `{}`",
                subject.issuer
            );
            let problem = Problem::new("config_value", message).at(at);
            let known = config.issuers.iter().map(|issuer| issuer.name.as_str());
            problems.note(problem.suggest(
                &subject.issuer,
                known,
                format!("add [issuers.{}]", subject.issuer),
            ));
        }
        if let Some(other) = seen.iter().find(|other| other.subject == one.subject) {
            let message = format!("`{}` and `{id}` are the same subject", other.participant.id);
            problems.note(Problem::new("config_twice", message).at(at));
        }
        seen.push(one);
    }
}
