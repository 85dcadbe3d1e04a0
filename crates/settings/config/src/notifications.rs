//! Tables `[notifications.NAME]`: routes of notifications about proposals that wait.

use std::time::Duration;

use identity::config::ParticipantConfig;
use model::{ParticipantId, TopicName};
use notify::config::{NOTIFY_ROUTES_MAX, NotifyForm, NotifyRoute, NotifyTarget, NotifyWay};
use notify::{QuietHours, WebhookSecret};
use oauth::Secret;
use oauth::dialer::parse_url;
use topic::section::TopicSection;
use url::Url;

use crate::node::{Location, Node, SourceOrigin};
use crate::problem::Problem;
use crate::reader::{ListedText, Problems, Table};
use crate::secrets::Outside;
use crate::services::{SecretKeys, TOKEN, allowed, secret, sendable, url};
use crate::values::{participant_id, topic_name};

/// The table.
const KEY: &str = "notifications";
/// Characters of a route's name.
const NAME_CHARS_MAX: usize = 64;
/// The longest wait of a route.
const NOTIFY_AFTER_MAX: Duration = Duration::from_secs(86_400);
/// The keys of which a route has one: its way out.
const WAYS: [&str; 5] = ["exec", "webhook", "slack", "slack_env", "ntfy"];
const EXAMPLE: &str = "for example \"https://hooks.example.com/portmoot\"";

/// The keys of a webhook's secret.
const SIGNING: SecretKeys = SecretKeys {
    named: "secret",
    env: "secret_env",
};
/// The keys of an incoming webhook of Slack, whose address is a secret.
const SLACK: SecretKeys = SecretKeys {
    named: "slack",
    env: "slack_env",
};

/// Reads every route.
pub(crate) fn read(root: &Table<'_>, outside: &Outside<'_>) -> Vec<NotifyRoute> {
    let mut routes = Vec::new();
    for (entry, table) in root.tables(KEY) {
        if table.location().layer.origin == SourceOrigin::Found {
            // Consent is to the configuration: names of calls would go to whom its author chose.
            let message = format!(
                "{}: a file that you did not name has no routes",
                table.name()
            );
            let hint = "name your configuration with --config FILE";
            table.wrong("config_value", message, hint);
            continue;
        }
        routes.extend(route(&entry.key, &table, outside));
        table.finish();
    }
    if routes.len() > NOTIFY_ROUTES_MAX {
        let message = format!("there are more than {NOTIFY_ROUTES_MAX} routes of notifications");
        root.note_value(KEY, message, "a route may be for several participants");
    }
    routes
}

fn route(name: &str, table: &Table<'_>, outside: &Outside<'_>) -> Option<NotifyRoute> {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_');
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_plain) {
        let message = format!("`{name}` is no name of a route");
        let hint = format!("letters, digits, `-` and `_`, at most {NAME_CHARS_MAX}");
        table.wrong("config_value", message, &hint);
    }
    let topics = names(table, "topics", topic_name);
    let reviewers = names(table, "for", participant_id);
    let after = after(table);
    let quiet = quiet(table);
    let link = url(
        table,
        "link",
        "for example \"https://portmoot.example.com/\"",
    );
    let way = way(table, outside);
    Some(NotifyRoute {
        name: name.into(),
        topics,
        reviewers,
        after,
        quiet,
        link,
        way: way?,
    })
}

fn names<T>(
    table: &Table<'_>,
    key: &'static str,
    parse: impl Fn(&str, &Location, &Problems) -> Option<T>,
) -> Vec<T> {
    let listed = table.texts(key).unwrap_or_default();
    let parsed = listed.into_iter();
    parsed
        .filter_map(|ListedText { text, location }| parse(text, location, table.problems()))
        .collect()
}

fn after(table: &Table<'_>) -> Duration {
    let after = table.duration("after").unwrap_or_default();
    if after > NOTIFY_AFTER_MAX {
        let message = format!("`{}` is more than a day", table.full("after"));
        table.note_value("after", message, "a proposal ends with its `proposal_ttl`");
    }
    after
}

fn quiet(table: &Table<'_>) -> Option<QuietHours> {
    let parsed = QuietHours::parse(table.text("quiet")?);
    if let Err(error) = &parsed {
        let message = format!("`{}`: {error}", table.full("quiet"));
        table.note_value("quiet", message, "for example \"22:00-07:00 +02:00\"");
    }
    parsed.ok()
}

/// The one way out.
fn way(table: &Table<'_>, outside: &Outside<'_>) -> Option<NotifyWay> {
    let exec = table.texts("exec");
    let webhook = url(table, "webhook", EXAMPLE);
    let ntfy = url(
        table,
        "ntfy",
        "for example \"https://ntfy.example.com/TOPIC\"",
    );
    let slack = secret(table, SLACK, outside);
    let signing = secret(table, SIGNING, outside);
    let token = secret(table, TOKEN, outside);
    let allowed = allowed(table);
    let written = WAYS.iter().filter(|key| table.get(key).is_some());
    let [one] = written.collect::<Vec<_>>()[..] else {
        let message = format!("{} has not one way out", table.name());
        let hint = "write one of `exec`, `webhook`, `slack`, `slack_env`, `ntfy`; a second way is a second route";
        table.wrong("config_missing", message, hint);
        return None;
    };
    unused(table, one);
    let request = |url: Url, form| NotifyWay::Request(NotifyTarget { url, form, allowed });
    match *one {
        "exec" => words(table, &exec?).map(NotifyWay::Exec),
        "webhook" => {
            let secret = signing.ok()?.map(|text| signing_secret(table, text));
            Some(request(
                webhook?,
                NotifyForm::Webhook(secret.transpose().ok()?),
            ))
        }
        "ntfy" => {
            let (url, topic) = ntfy_topic(table, &ntfy?)?;
            let token = sendable(table, token.ok()?)?;
            Some(request(url, NotifyForm::Ntfy { topic, token }))
        }
        _ => {
            let url = slack_url(table, &slack.ok()??)?;
            Some(request(url, NotifyForm::Slack))
        }
    }
}

/// Notes keys that the way has no use for.
fn unused(table: &Table<'_>, way: &str) {
    let used: &[&str] = match way {
        "webhook" => &["secret", "secret_env", "allow_private"],
        "ntfy" => &["token", "token_env", "allow_private"],
        "exec" => &[],
        _ => &["allow_private"],
    };
    for key in [
        "secret",
        "secret_env",
        "token",
        "token_env",
        "allow_private",
    ] {
        if !used.contains(&key) && table.get(key).is_some() {
            let message = format!("`{}` has no meaning with `{way}`", table.full(key));
            table.note_value(key, message, "remove it");
        }
    }
}

/// The program and its arguments.
fn words(table: &Table<'_>, exec: &[ListedText<'_>]) -> Option<Vec<String>> {
    if exec.first().is_none_or(|program| program.text.is_empty()) {
        let message = format!("`{}` names no program", table.full("exec"));
        table.note_value("exec", message, "for example [\"/usr/local/bin/notify\"]");
        return None;
    }
    Some(exec.iter().map(|word| word.text.to_owned()).collect())
}

/// The secret of a webhook; one that is not read yet is none.
fn signing_secret(table: &Table<'_>, text: Secret) -> Result<WebhookSecret, ()> {
    if text.expose().is_empty() {
        return Ok(WebhookSecret::unread());
    }
    WebhookSecret::new(text).map_err(|error| {
        let message = format!("the secret of {}: {error}", table.name());
        table.wrong(
            "config_token",
            message,
            "the receiver shows it, or: printf 'whsec_%s' \"$(head -c 32 /dev/urandom | base64)\"",
        );
    })
}

/// The address of the server, and the topic there.
fn ntfy_topic(table: &Table<'_>, url: &Url) -> Option<(Url, String)> {
    let topic = url.path_segments().and_then(|mut all| all.next_back());
    let topic = topic.unwrap_or_default().to_owned();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if topic.is_empty() || url.query().is_some() || !topic.bytes().all(is_plain) {
        let message = format!("`{}` does not end in a topic", table.full("ntfy"));
        table.note_value(
            "ntfy",
            message,
            "for example \"https://ntfy.example.com/TOPIC\"",
        );
        return None;
    }
    // A relative "." is the folder that the topic is in.
    Some((url.join(".").ok()?, topic))
}

/// The address of an incoming webhook; one that is not read yet goes nowhere.
fn slack_url(table: &Table<'_>, text: &Secret) -> Option<Url> {
    let address = match text.expose() {
        "" => "https://slack.invalid/",
        address => address,
    };
    let url = parse_url(address).ok();
    if url.is_none() {
        let message = format!("the secret of {} is no address", table.name());
        table.wrong(
            "config_token",
            message,
            "Slack shows the address of an incoming webhook",
        );
    }
    url
}

/// Checks that each route is about topics and for participants that there are.
pub(crate) fn check(
    tree: &Node,
    routes: &[NotifyRoute],
    (participants, topics): (&[ParticipantConfig], &[TopicSection]),
    problems: &Problems,
) {
    let participants = participants.iter().map(|one| one.participant.id.as_str());
    check_waits(tree, routes, topics, problems);
    let topics = topics.iter().map(|one| one.name.as_str());
    for route in routes {
        let missing = |code: &'static str, key: &str, message: String| {
            Problem::new(code, message).at(tree.place(&[KEY, &route.name, key]))
        };
        let reviewers = route.reviewers.iter().map(ParticipantId::as_str);
        for wanted in reviewers.filter(|one| !participants.clone().any(|known| known == *one)) {
            let otherwise = format!("add [participants.{wanted}]");
            let problem = format!("there is no participant `{wanted}`");
            let problem = missing("config_unknown_participant", "for", problem);
            problems.note(problem.suggest(wanted, participants.clone(), otherwise));
        }
        let named = route.topics.iter().map(TopicName::as_str);
        for wanted in named.filter(|one| !topics.clone().any(|known| known == *one)) {
            let otherwise = format!("add [topics.{wanted}]");
            let problem = format!("there is no topic `{wanted}`");
            let problem = missing("config_unknown_topic", "topics", problem);
            problems.note(problem.suggest(wanted, topics.clone(), otherwise));
        }
    }
}

/// Checks that what waits for a route is there still when its time has come.
fn check_waits(tree: &Node, routes: &[NotifyRoute], topics: &[TopicSection], problems: &Problems) {
    for route in routes {
        let mut of_route = topics.iter().filter(|topic| route.has_topic(&topic.name));
        let Some(topic) = of_route.find(|topic| topic.proposal_ttl <= route.after) else {
            continue;
        };
        let message = format!(
            "`after` of the route `{}` is as long as proposals of the topic `{}` wait: it would get nothing",
            route.name, topic.name
        );
        let hint = "choose less than its `proposal_ttl`, or set a longer one in the topic";
        let problem = Problem::new("config_value", message).hint(hint);
        problems.note(problem.at(tree.place(&[KEY, &route.name, "after"])));
    }
}
