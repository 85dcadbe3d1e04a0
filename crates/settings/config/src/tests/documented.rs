//! Tests of `docs/configuration.md`: it lists every key with its default, and no other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::checked::Config;

use crate::node::{Layer, Node, SourceOrigin};
use crate::reader::{Problems, Table};
use crate::secrets::Outside;
use crate::sources::DEFAULTS;
use crate::{
    issuers, notifications, participants, profiles, servers, settings, telemetry, toml_file, topics,
};

/// Read only to reject them.
const NOT_KEYS: [&str; 6] = [
    "login.client",
    "server.limits",
    "server.tls",
    "servers.NAME.auth",
    "servers.NAME.tool",
    "topics.NAME.approver",
];
pub(super) const SAMPLE: &str = "[server]\nlisten = \"127.0.0.1:7070\"\npublic_url = \"https://gw.example\"\n[server.limits]\n[audit]\n[console]\n[registry]\n\
     [cluster]\nname = \"prod\"\nnats = [\"nats://127.0.0.1:4222\"]\nkey_file = \"/key\"\n\
     [servers.NAME]\nurl = \"http://127.0.0.1:9/mcp\"\n[servers.NAME.auth]\n\
     [servers.NAME.tool.NAME]\n\
     [sets.NAME]\ntools = []\n[profiles.NAME]\ncapabilities = []\n[participants.NAME]\n[topics.NAME]\n\
     [topics.NAME.approver]\nevaluation_url = \"https://pdp.example\"\nas = \"WHO\"\ntools = []\n[notifications.NAME]\nexec = [\"true\"]\n[telemetry]\notlp = \"http://127.0.0.1:4318\"\n\
     [issuers.NAME]\nissuer = \"https://idp.example\"\n[scopes.NAME]\ncapabilities = []\n\
     [login]\nenabled = true\n[login.client.NAME]\nredirect_uris = [\"http://127.0.0.1/callback\"]\n";

pub(super) fn env(_: &str) -> Option<String> {
    None
}

pub(super) fn tree(toml: &str) -> Node {
    toml_file::read(&Layer::file("sample", SourceOrigin::Operator, toml)).unwrap()
}

/// What the loader reads of a file that has every table.
pub(super) fn reading(sample: &str) -> Problems {
    let tree = tree(&sample.replace("[audit]\n", "[server.tls]\n[audit]\n"));
    let problems = Problems::default();
    let root = Table::root(&tree, &problems);
    let outside = Outside::unread(&env);
    settings::read(&root, &env);
    let (found, _) = servers::read(&root, &outside, &mut Vec::new());
    let profiles = profiles::read(&root);
    participants::read(&root, &outside, &profiles);
    issuers::read(&root, &outside, &profiles);
    issuers::scopes(&root, &profiles.sets);
    topics::read(&root, &found, &profiles, &outside);
    notifications::read(&root, &outside);
    telemetry::read(&root, &outside, &mut Vec::new());
    problems
}

/// Every key that the loader reads, by its full name.
fn known() -> BTreeSet<String> {
    let read_keys = reading(SAMPLE).read_keys.borrow().clone();
    read_keys
        .into_iter()
        .filter(|key| key.contains('.') && !NOT_KEYS.contains(&key.as_str()))
        .collect()
}

/// The page's keys with their defaults.
fn documented() -> BTreeMap<String, String> {
    rows()
        .into_iter()
        .map(|(key, [default, _])| (key, default))
        .collect()
}

/// The page's keys with their defaults and meanings: rows of the tables under headings such as "##
/// `[servers.NAME]`".
pub(super) fn rows() -> BTreeMap<String, [String; 2]> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/configuration.md");
    let page = std::fs::read_to_string(path).unwrap();
    let mut table = "";
    let mut rows = BTreeMap::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            table = heading
                .strip_prefix("`[")
                .and_then(|rest| rest.strip_suffix("]`"))
                .unwrap_or_default();
        }
        let cells: Vec<&str> = line
            .split(" | ")
            .map(|cell| cell.trim_matches([' ', '|']))
            .collect();
        let key = cells
            .first()
            .and_then(|key| key.strip_prefix('`'))
            .and_then(|key| key.strip_suffix('`'));
        if let (false, Some(key), Some(default)) = (table.is_empty(), key, cells.get(2)) {
            let meaning = cells.get(3).copied().unwrap_or_default();
            rows.insert(
                format!("{table}.{key}"),
                [(*default).to_owned(), meaning.to_owned()],
            );
        }
    }
    rows
}

/// Checks a sample. A server and a participant cannot share a name, and participants join `main`.
fn checked(toml: &str) -> Config {
    let toml = toml.replace("[participants.NAME]", "[topics.main]\n[participants.WHO]");
    crate::check::check(&tree(&toml), &Outside::unread(&env), &mut Vec::new())
        .unwrap_or_else(|problems| panic!("{toml}\n{problems:?}"))
}

#[test]
fn the_page_lists_every_key_and_no_other() {
    let documented: BTreeSet<String> = documented().into_keys().collect();
    let known = known();
    let missing: Vec<_> = known.difference(&documented).collect();
    let gone: Vec<_> = documented.difference(&known).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "not on the page: {missing:#?}\nno such key: {gone:#?}"
    );
}

#[test]
fn the_defaults_on_the_page_are_the_defaults() {
    const LISTEN: &str = "listen = \"127.0.0.1:7070\"\n";
    let plain = checked(SAMPLE);
    let mut compared = 0;
    for (key, default) in documented() {
        let (table, key) = key.rsplit_once('.').unwrap();
        let Some(value) = default
            .strip_prefix('`')
            .and_then(|default| default.strip_suffix('`'))
        else {
            continue;
        };
        let heading = format!("[{table}]\n");
        let line = format!("{key} = {value}\n");
        let sample = if key == "listen" {
            SAMPLE.replace(LISTEN, "")
        } else {
            SAMPLE.to_owned()
        };
        let written = checked(&sample.replace(&heading, &format!("{heading}{line}")));
        assert_eq!(written, plain, "{table}: {line}");
        compared += 1;
    }
    assert!(compared > 25, "{compared}");
}

#[test]
fn the_layer_of_defaults_says_what_holds_without_it() {
    let without = "[server]\nlisten = \"127.0.0.1:7070\"\n[topics.main]\n";
    assert_eq!(checked(DEFAULTS), checked(without));
}
