//! Names of the events and effects of the gateways under test, for the test that counts them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// The environment variable with the folder in which every started gateway writes a file.
pub(crate) const FOLDER: &str = "PORTMOOT_TEST_PATH";

/// The log's target for events and effects.
const TARGET: &str = " gateway::path: ";

/// Whether the folder is set.
pub(crate) fn is_on() -> bool {
    std::env::var_os(FOLDER).is_some()
}

/// Has a gateway log the names, if the folder is set.
pub(crate) fn trace(command: &mut Command) {
    if is_on() {
        command.env(
            "PORTMOOT_LOG",
            "warn,portmoot::servers=info,gateway::path=trace",
        );
    }
}

/// Takes the names out of the lines of a gateway's log and writes each once, as `event="Join"`.
pub(crate) fn take(pid: u32, lines: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    let file = std::env::var_os(FOLDER).map(|folder| Path::new(&folder).join(pid.to_string()));
    let (mut file, mut seen) = (
        file.map(|path| File::create(path).unwrap()),
        BTreeSet::new(),
    );
    lines.filter(move |line| {
        let Some((_, name)) = line.split_once(TARGET) else {
            return true;
        };
        if let Some(file) = &mut file
            && seen.insert(name.to_owned())
        {
            writeln!(file, "{name}").unwrap();
        }
        false
    })
}
