//! `[cluster]`.

use std::path::PathBuf;
use std::time::Duration;

use oauth::key::KeySource;

use super::{BASE, good, problems};
use crate::check::check;
use crate::node::{DEFAULTS, Layer, SourceOrigin};
use crate::secrets::Outside;
use crate::{ClusterConfig, Config, ConfigSources, NodeCertificate, toml_file};

const NAME: &str = "name = 'prod'\n";
const NATS: &str = "nats = ['nats://127.0.0.1:4222']\n";
const KEY: &str = "key_file = '/key'\n";

/// The table of a cluster with more of this in it.
fn table(more: &str) -> String {
    format!("[cluster]\n{NAME}{NATS}{KEY}{more}")
}

fn env(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/home/ann".to_owned()),
        "HOSTNAME" => Some("pod-3".to_owned()),
        _ => super::env(name),
    }
}

/// The table as it is read with a home directory and the name of a host.
fn read(toml: &str) -> ClusterConfig {
    let config = check(&super::tree(toml), &Outside::unread(&env), &mut Vec::new());
    ClusterConfig::clone(&config.unwrap().cluster.unwrap())
}

#[test]
fn a_gateway_is_no_node_without_the_table() {
    assert_eq!(good("").cluster, None);
}

#[test]
fn a_cluster_is_read_with_its_defaults() {
    let config = read(&table(""));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.unwrap_or_else(|_| "pod-3".to_owned());
    let expect = ClusterConfig {
        name: "prod".to_owned(),
        servers: vec!["nats://127.0.0.1:4222".to_owned()],
        credentials: None,
        ca: None,
        client: None,
        key: KeySource::File(PathBuf::from("/key")),
        node: host.trim().to_owned(),
        cut_off: Duration::from_secs(10),
        replicas: None,
    };
    assert_eq!(config, expect);
}

#[test]
fn a_cluster_is_read_with_all_of_its_keys() {
    let config = read(
        "[cluster]\nname = 'eu-west_1'\nnats = ['tls://a.example:4222', 'tls://b.example', 'nats://[::1]:4222']\n\
         credentials = '~/nats.creds'\nca = 'ca.pem'\nclient_cert = '/tls/node.pem'\nclient_key = '~/node.key'\n\
         key_command = ['~/bin/key', '~']\nnode = '${HOSTNAME}.eu'\ncut_off = '1m'\nreplicas = 5\n",
    );
    let servers = [
        "tls://a.example:4222",
        "tls://b.example",
        "nats://[::1]:4222",
    ];
    let expect = ClusterConfig {
        name: "eu-west_1".to_owned(),
        servers: servers.map(str::to_owned).to_vec(),
        credentials: Some(PathBuf::from("/home/ann/nats.creds")),
        ca: Some(PathBuf::from("ca.pem")),
        client: Some(NodeCertificate {
            certificate: PathBuf::from("/tls/node.pem"),
            key: PathBuf::from("/home/ann/node.key"),
        }),
        key: KeySource::Command(vec!["/home/ann/bin/key".to_owned(), "~".to_owned()]),
        node: "pod-3.eu".to_owned(),
        cut_off: Duration::from_secs(60),
        replicas: Some(5),
    };
    assert_eq!(config, expect);
}

#[test]
fn the_bounds_themselves_are_accepted() {
    let name = "x".repeat(32);
    let node = "x".repeat(63);
    let servers: Vec<String> = (1..=16).map(|n| format!("nats://n{n}:4222")).collect();
    let of = |times: &str| {
        format!("[cluster]\nname = '{name}'\nnats = {servers:?}\n{KEY}node = '{node}'\n{times}")
    };
    let least = read(&of("cut_off = '5s'\nreplicas = 1\n"));
    assert_eq!((least.name, least.node), (name.clone(), node.clone()));
    assert_eq!(least.servers, servers);
    assert_eq!(
        (least.cut_off, least.replicas),
        (Duration::from_secs(5), Some(1))
    );
    let most = read(&of("cut_off = '10m'\nreplicas = 5\n"));
    assert_eq!(
        (most.cut_off, most.replicas),
        (Duration::from_secs(600), Some(5))
    );
}

/// Checks that each of these files has the one problem.
fn each_has_one(cases: &[(String, &str)]) {
    for (toml, expect) in cases {
        let found = problems(toml);
        assert!(found.contains(expect), "{toml}\n{found}");
        assert!(found.contains("\n  hint: "), "{toml}\n{found}");
        assert_eq!(found.matches(" [config_").count(), 1, "{toml}\n{found}");
    }
}

#[test]
fn what_is_required_is_named() {
    let of = |keys: &[&str]| format!("[cluster]\n{}", keys.concat());
    each_has_one(&[
        (
            of(&[NATS, KEY]),
            "`[cluster]` needs `name` [config_missing]",
        ),
        (
            of(&[NAME, KEY]),
            "`[cluster]` needs `nats` [config_missing]",
        ),
        (
            of(&[NAME, NATS]),
            "`[cluster]` needs `key_file` or `key_command` [config_missing]",
        ),
        (
            table("key_command = ['pass']"),
            "`[cluster]` has both `key_file` and `key_command` [config_twice]",
        ),
        (
            of(&[NAME, NATS, "key_command = []"]),
            "`cluster.key_command` needs a program [config_value]",
        ),
        (
            table("client_cert = 'a'"),
            "`[cluster]` has `client_cert` and no `client_key` [config_missing]",
        ),
        (
            table("client_key = 'a'"),
            "`[cluster]` has `client_key` and no `client_cert` [config_missing]",
        ),
    ]);
}

#[test]
fn a_name_is_one_token() {
    let long = "x".repeat(33);
    for name in ["", "Prod", "a.b", "a b", "a*", "é", &long] {
        let toml = table("").replace("'prod'", &format!("'{name}'"));
        let expect = format!("`cluster.name`: `{name}` is no name for a cluster [config_name]");
        each_has_one(&[(toml, &expect)]);
    }
    let long = "x".repeat(64);
    for node in ["", "a b", "a/b", "é", &long] {
        let expect = format!("`cluster.node`: `{node}` is no name for a node [config_name]");
        each_has_one(&[(table(&format!("node = '{node}'")), &expect)]);
    }
    let unset = "`cluster.node`: the environment variable `GONE` is not set [config_variable]";
    each_has_one(&[(table("node = '${GONE}'"), unset)]);
}

#[test]
fn servers_are_listed_by_urls_without_passwords() {
    let of = |nats: &str| table("").replace("['nats://127.0.0.1:4222']", nats);
    let many: Vec<String> = (0..17).map(|n| format!("nats://n{n}:4222")).collect();
    let number = "`cluster.nats` must list 1 to 16 servers [config_value]";
    each_has_one(&[
        (of("[]"), number),
        (of(&format!("{many:?}")), number),
        (
            of("['nats://a:1', 'nats://a:1']"),
            "`cluster.nats`: `nats://a:1` is listed twice [config_twice]",
        ),
    ]);
    for url in [
        "",
        "a:4222",
        "127.0.0.1:4222",
        "http://a:4222",
        "ws://a:4222",
        "nats://",
        "nats://:4222",
        "nats://a:0",
        "nats://a:65536",
        "nats://a:4222/x",
        "nats://a:4222?x=1",
        "tls://a:4222#x",
        "nats://a b:4222",
        "nats://ä:4222",
    ] {
        let expect =
            format!("`cluster.nats`: `{url}` is no address of a NATS server [config_value]");
        each_has_one(&[(of(&format!("['{url}']")), &expect)]);
    }
    for url in [
        "nats://ann:hush@a:4222",
        "tls://hush@a:4222",
        "http://ann:hush@a",
    ] {
        let toml = of(&format!("['{url}']"));
        each_has_one(&[(
            toml.clone(),
            "`cluster.nats`: a URL has a user or a password [config_value]",
        )]);
        assert!(problems(&toml).contains("hint: name a file with them: `credentials`"));
        let tree = super::tree(&toml);
        let found = check(&tree, &Outside::unread(&env), &mut Vec::new()).unwrap_err();
        let shown = crate::report(&found, false);
        assert!(!shown.contains("hush"), "{shown}");
    }
}

#[test]
fn times_and_numbers_have_bounds() {
    let time = "`cluster.cut_off` must be 5 seconds to 10 minutes [config_value]";
    let number = "`cluster.replicas` must be 1 to 5 [config_value]";
    each_has_one(&[
        (table("cut_off = '4999ms'"), time),
        (table("cut_off = '11m'"), time),
        (table("replicas = 0"), number),
        (table("replicas = 6"), number),
        (table("replicas = 257"), number),
        (
            table("replica = 3"),
            "unknown key `replica` in `[cluster]` [config_unknown_key]",
        ),
    ]);
}

#[test]
fn a_file_that_was_found_joins_no_cluster() {
    let mut tree = toml_file::read(&Layer::file(DEFAULTS, SourceOrigin::Operator, BASE)).unwrap();
    let found = Layer::file("portmoot.toml", SourceOrigin::Found, table(""));
    tree.overlay(toml_file::read(&found).unwrap());
    let problems = check(&tree, &Outside::unread(&env), &mut Vec::new()).unwrap_err();
    let [problem] = problems.as_slice() else {
        panic!("{problems:?}");
    };
    let expect = "`[cluster]`: a file that you did not name joins no cluster";
    assert!(problem.to_string().contains(expect), "{problem}");
}

#[test]
fn a_node_needs_a_data_directory() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("portmoot.toml");
    let load = |text: &str, keep_nothing: bool, home: bool| {
        std::fs::write(&file, text).unwrap();
        let sources = ConfigSources {
            config: Some(file.clone()),
            keep_nothing,
            ..ConfigSources::default()
        };
        let with = |name: &str| env(name).filter(|_| home);
        sources.load(&with).map(|loaded| loaded.config)
    };
    let is_node = |config: &Config| config.cluster.is_some() && config.data_dir.is_some();
    let named = format!("[server]\ndata_dir = '/data'\n{}", table(""));
    assert!(is_node(&load(&named, false, false).unwrap()));
    assert!(is_node(&load(&table(""), false, true).unwrap()));
    for (text, keep_nothing, home) in [
        (table(""), false, false),
        (table(""), true, true),
        (named, true, true),
    ] {
        let problems = load(&text, keep_nothing, home).unwrap_err();
        let [problem] = problems.as_slice() else {
            panic!("{problems:?}");
        };
        let expect = "`[cluster]` needs a data directory: set `server.data_dir` [config_missing]";
        assert!(problem.to_string().contains(expect), "{problem}");
    }
    assert!(load("", true, true).unwrap().data_dir.is_none());
}
