//! Field numbers of the servers' messages, remembered: a schema that grows keeps those that it has
//! given out, over restarts too.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform::{Mutex, open_regular, replace_file};
use schema::{ListedTool, Module, Numbers};

/// The file in the data directory.
const FILE: &str = "field-numbers.json";
/// Numbers that are remembered of one server. Of a server that has more, those of messages that it
/// has no more are forgotten first.
const SERVER_NUMBERS_MAX: usize = 20_000;
/// Numbers of all servers.
const NUMBERS_MAX: usize = 200_000;
/// The longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The numbers of all packages.
#[derive(Debug, Default)]
pub struct FieldNumbers {
    state: Mutex<State>,
    path: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct State {
    packages: BTreeMap<String, Numbers>,
    /// A thread writes them.
    is_written: bool,
    /// They have changed since it began.
    is_stale: bool,
}

impl FieldNumbers {
    /// Numbers that are remembered in a data directory; without one they end with the process.
    #[must_use]
    pub fn open(dir: Option<&Path>) -> Arc<Self> {
        let path = dir.map(|dir| dir.join(FILE));
        let packages = path.as_deref().map_or_else(BTreeMap::new, |path| {
            read(path).unwrap_or_else(|error| {
                let file = path.display();
                tracing::warn!(%file, %error, "field numbers cannot be read: tools are numbered anew");
                BTreeMap::new()
            })
        });
        Arc::new(Self {
            state: Mutex::new(State {
                packages,
                ..State::default()
            }),
            path,
        })
    }

    /// Converts and compiles the tools of a package with the numbers that it had, and remembers
    /// those that are new.
    pub(crate) fn module(self: &Arc<Self>, package: &str, tools: &[ListedTool<'_>]) -> Module {
        let mut state = self.state.lock();
        let known = state.packages.get(package).cloned().unwrap_or_default();
        let module = Module::new(package, tools, &known);
        let others = state
            .packages
            .iter()
            .filter(|(name, _)| *name != package)
            .map(|(_, one)| one.count());
        match kept(&known, module.numbers(), others.sum()) {
            None => {
                tracing::warn!(
                    package,
                    "there are too many fields: the numbers of new ones are not remembered"
                );
            }
            Some(all) if all != known => {
                state.packages.insert(package.to_owned(), all);
                self.write_soon(&mut state);
            }
            Some(_) => {}
        }
        module
    }

    /// Writes what is remembered, on a thread of its own: the caller may be on the path of a list.
    fn write_soon(self: &Arc<Self>, state: &mut State) {
        state.is_stale = true;
        if self.path.is_none() || std::mem::replace(&mut state.is_written, true) {
            return;
        }
        let me = Arc::clone(self);
        let writer = std::thread::Builder::new().name("field-numbers".to_owned());
        if let Err(error) = writer.spawn(move || me.write_all()) {
            // The next change tries again.
            state.is_written = false;
            tracing::warn!(%error, "field numbers cannot be written now");
        }
    }

    fn write_all(&self) {
        loop {
            let packages = {
                let mut state = self.state.lock();
                if !std::mem::take(&mut state.is_stale) {
                    state.is_written = false;
                    return;
                }
                state.packages.clone()
            };
            let write = |path| replace_file(path, &serde_json::to_vec(&packages)?);
            let written = self.path.as_deref().map(write);
            if let Some(Err(error)) = written {
                tracing::warn!(%error, "field numbers are not remembered after the end of the gateway");
            }
        }
    }
}

/// Numbers of a server that are remembered from now on: those that it had and has, or those that it
/// has; `None` if there is no room for them beside the `others`.
fn kept(known: &Numbers, own: Numbers, others: usize) -> Option<Numbers> {
    let mut all = known.clone().followed_by(own.clone());
    if all.count() > SERVER_NUMBERS_MAX {
        all = own;
    }
    let has_room =
        all.count() <= SERVER_NUMBERS_MAX && others.saturating_add(all.count()) <= NUMBERS_MAX;
    has_room.then_some(all)
}

fn read(path: &Path) -> io::Result<BTreeMap<String, Numbers>> {
    let file = match open_regular(OpenOptions::new().read(true), path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        file => file?,
    };
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, Instant};

    use super::*;

    /// The numbers of the fields of a tool with these properties.
    fn numbers(book: &Arc<FieldNumbers>, package: &str, properties: &[String]) -> Vec<u32> {
        let schema = |one: &String| format!("{one:?}:{{\"type\":\"string\"}}");
        let all: Vec<_> = properties.iter().map(schema).collect();
        let input = format!(
            "{{\"type\":\"object\",\"properties\":{{{}}}}}",
            all.join(",")
        );
        let tool = ListedTool {
            name: "t",
            description: None,
            input: input.as_bytes(),
            output: None,
        };
        let module = book.module(package, &[tool]);
        let message = module.tool("t").unwrap().input().clone();
        let number = |name: &String| message.get_field_by_json_name(name).unwrap().number();
        properties.iter().map(number).collect()
    }

    fn named(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_schema_that_changes_keeps_its_numbers_in_one_run() {
        let book = FieldNumbers::open(None);
        assert_eq!(numbers(&book, "a.v1", &named(&["x", "y"])), [1, 2]);
        assert_eq!(
            numbers(&book, "a.v1", &named(&["new", "y", "x"])),
            [3, 2, 1]
        );
        assert_eq!(numbers(&book, "a.v1", &named(&["y"])), [2]);
        assert_eq!(
            numbers(&book, "a.v1", &named(&["last", "x", "y"])),
            [4, 1, 2]
        );
        assert_eq!(numbers(&book, "b.v1", &named(&["y"])), [1]);
    }

    #[test]
    fn numbers_beyond_the_limits_are_not_remembered() {
        const SERVER: usize = SERVER_NUMBERS_MAX;
        const ALL: usize = NUMBERS_MAX;
        let count = |known, own, others| {
            kept(&many("Gone", known), many("Own", own), others).map(|all| all.count())
        };
        for (known, own, others, expected) in [
            (0, SERVER, 0, Some(SERVER)),
            (0, SERVER + 1, 0, None),
            // Messages that are gone keep theirs, and make way first.
            (SERVER - 1, 1, 0, Some(SERVER)),
            (SERVER, 1, 0, Some(1)),
            (0, 1, ALL - 1, Some(1)),
            (0, 1, ALL, None),
            (5, 1, ALL - 6, Some(6)),
            (5, 1, ALL - 5, None),
        ] {
            assert_eq!(
                count(known, own, others),
                expected,
                "{known} {own} {others}"
            );
        }
        // With as many servers as have room, one more gets numbers for this run alone.
        let book = FieldNumbers::open(None);
        for number in 0..ALL / SERVER {
            book.state
                .lock()
                .packages
                .insert(format!("full{number}.v1"), many("Gone", SERVER));
        }
        assert_eq!(numbers(&book, "last.v1", &named(&["x", "y"])), [1, 2]);
        assert!(!book.state.lock().packages.contains_key("last.v1"));
        assert_eq!(numbers(&book, "full0.v1", &named(&["x"])), [1]);
        assert_eq!(book.state.lock().packages["full0.v1"].count(), 1);
    }

    /// So many numbers of one message.
    fn many(message: &str, count: usize) -> Numbers {
        let known =
            serde_json::json!({ "fields": [], "reserved": (1..=count).collect::<Vec<_>>() });
        serde_json::from_value(serde_json::json!({ "messages": { message: known } })).unwrap()
    }

    #[test]
    fn a_file_that_cannot_be_read_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        fs::write(&path, "{\"a.v1\":5}").unwrap();
        let book = FieldNumbers::open(Some(dir.path()));
        assert_eq!(numbers(&book, "a.v1", &named(&["x", "y"])), [1, 2]);
        let (is_written, began) = (
            || fs::read_to_string(&path).unwrap().contains("TRequest"),
            Instant::now(),
        );
        while !is_written() {
            assert!(began.elapsed() < Duration::from_secs(30));
            std::thread::yield_now();
        }
        let again = FieldNumbers::open(Some(dir.path()));
        assert_eq!(numbers(&again, "a.v1", &named(&["z", "y"])), [3, 2]);
    }
}
