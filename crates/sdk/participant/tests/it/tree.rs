//! Dependencies of a program that takes part in a topic, counted: nothing of the gateway, and few
//! crates of others.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The crates of this project that come along: what an envelope, a capability and a certificate
/// are.
const OURS: [&str; 6] = [
    "portmoot-json",
    "portmoot-model",
    "portmoot-participant",
    "portmoot-platform",
    "portmoot-tls",
    "portmoot-wire",
];
/// What only a gateway needs: sandboxes and processes, gRPC and protobuf, HTTP servers and clients,
/// terminals, schemas.
const OF_A_GATEWAY: [&str; 14] = [
    "axum",
    "clap",
    "fork",
    "hyper",
    "hyper-util",
    "jsonschema",
    "landlock",
    "prost",
    "ratatui",
    "seccompiler",
    "sysinfo",
    "tonic",
    "tower",
    "utoipa",
];
/// How many crates are compiled for a program that depends on this one, itself and procedural
/// macros among them.
const CRATES_MAX: usize = 100;
/// How many more with the feature `rules`.
const RULES_CRATES_MAX: usize = 20;

/// Names and versions of all crates that are compiled for a program that depends on this one alone.
///
/// With these features. By `cargo tree`: the metadata of the workspace have the features that all of its crates want
/// together.
fn tree(features: &str) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let words = [
        "tree",
        "--package",
        "portmoot-participant",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--features",
        features,
    ];
    let words = words
        .iter()
        .chain(&["--locked", "--offline", "--no-dedupe"]);
    let ran = Command::new(cargo)
        .args(words)
        .current_dir(root)
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let lines = String::from_utf8(ran.stdout).unwrap();
    let name = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    lines
        .lines()
        .filter(|line| !line.is_empty())
        .map(name)
        .collect()
}

#[test]
fn a_participant_brings_nothing_of_the_gateway_along() {
    let tree = tree("");
    let names: BTreeSet<&str> = tree
        .iter()
        .filter_map(|one| one.split(' ').next())
        .collect();
    let ours: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| name.starts_with("portmoot"))
        .collect();
    assert_eq!(ours, OURS);
    let of_a_gateway: Vec<&str> = OF_A_GATEWAY
        .into_iter()
        .filter(|name| names.contains(name))
        .collect();
    assert!(of_a_gateway.is_empty(), "{of_a_gateway:?}");
    assert!(tree.len() <= CRATES_MAX, "{} crates: {tree:#?}", tree.len());
    assert!(
        names.contains("tokio-tungstenite"),
        "the whole tree is read: {tree:#?}"
    );
}

#[test]
fn rules_bring_their_own_crate_and_what_reads_a_file_along() {
    let (without, with) = (tree(""), tree("rules"));
    let more: Vec<&String> = with.difference(&without).collect();
    let ours = more.iter().filter(|one| one.starts_with("portmoot"));
    let ours: Vec<&str> = ours.filter_map(|one| one.split(' ').next()).collect();
    assert_eq!(ours, ["portmoot-rules"]);
    assert!(
        more.len() <= RULES_CRATES_MAX,
        "{} crates: {more:#?}",
        more.len()
    );
}
