//! The whole path in production: integration tests that together send every event and carry out every effect.

use std::collections::BTreeSet;
use std::process::Command;

use strum::VariantNames;
use topic::{Effect, Event, Handles, RoomEffect};

use crate::path_log::FOLDER;

/// Tests that together reach everything. A few seconds for all of them.
const TESTS: &[&str] = &[];

/// Stands for the gateway's handles: only the names of the variants count.
#[derive(Debug, Clone)]
struct Names;

impl Handles for Names {
    type Link = ();
    type Server = ();
    type Call = ();
    type Question = ();
    type Tag = ();
    type Answer = ();
    type Notice = ();
    type Message = ();
    type Content = ();
    type Ruling = ();
}

fn all() -> BTreeSet<String> {
    let of = |field: &str, names: &[&str]| {
        names.iter().map(|name| format!("{field}={name:?}")).collect::<Vec<String>>()
    };
    let events = of("event", Event::<'_, Names>::VARIANTS);
    let (effects, room) =
        (of("effect", Effect::<Names>::VARIANTS), of("room", RoomEffect::<Names>::VARIANTS));
    [events, effects, room].concat().into_iter().collect()
}

#[test]
fn the_gateway_sends_every_event_and_carries_out_every_effect() {
    let folder = tempfile::tempdir().unwrap();
    let mut tests = Command::new(std::env::current_exe().unwrap());
    tests.args(["--exact", "--test-threads", "4"]).args(TESTS).env(FOLDER, folder.path());
    let ran = tests.output().unwrap();
    let output = String::from_utf8_lossy(&ran.stdout);
    let passed = format!("test result: ok. {} passed; 0 failed", TESTS.len());
    let absent: Vec<&str> =
        TESTS.iter().filter(|name| !output.contains(&format!("test {name} ... "))).copied().collect();
    assert_eq!(absent, Vec::<&str>::new(), "there are no such tests");
    assert!(output.contains(&passed), "{output}\n{}", String::from_utf8_lossy(&ran.stderr));

    let files = std::fs::read_dir(folder.path()).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let seen: BTreeSet<String> =
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let missing: Vec<String> = all().difference(&seen).cloned().collect();
    let unknown: Vec<String> = seen.difference(&all()).cloned().collect();
    assert_eq!(missing, Vec::<String>::new(), "no test sends or carries out these");
    assert_eq!(unknown, Vec::<String>::new(), "these have no variant");
}
