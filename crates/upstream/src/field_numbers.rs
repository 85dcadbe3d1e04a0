//! Field numbers of the servers' messages, remembered: a schema that grows keeps those that it has given out, over restarts too.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform::{Mutex, open_regular, replace_file};
use schema::{Module, Numbers, Tool};

/// The file in the data directory.
const FILE: &str = "field-numbers.json";
/// Numbers that are remembered of one server. Of a server that has more, those of messages that it has no more are forgotten first.
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
    /// Those that are remembered in a data directory; without one they end with the process.
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
        Arc::new(Self { state: Mutex::new(State { packages, ..State::default() }), path })
    }

    /// Converts and compiles the tools of a package with the numbers that it had, and remembers those that are new.
    pub(crate) fn module(self: &Arc<Self>, package: &str, tools: &[Tool<'_>]) -> Module {
        let mut state = self.state.lock();
        let known = state.packages.get(package).cloned().unwrap_or_default();
        let module = Module::new(package, tools, &known);
        let own = module.numbers();
        let mut all = known.clone().followed_by(own.clone());
        if all.count() > SERVER_NUMBERS_MAX {
            all = own;
        }
        let others: usize =
            state.packages.iter().filter(|(name, _)| *name != package).map(|(_, one)| one.count()).sum();
        if all.count() > SERVER_NUMBERS_MAX || others.saturating_add(all.count()) > NUMBERS_MAX {
            tracing::warn!(package, "there are too many fields: the numbers of new ones are not remembered");
        } else if all != known {
            state.packages.insert(package.to_owned(), all);
            self.write_soon(&mut state);
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
        let input = format!("{{\"type\":\"object\",\"properties\":{{{}}}}}", all.join(","));
        let tool = Tool { name: "t", description: None, input: input.as_bytes(), output: None };
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
        assert_eq!(numbers(&book, "a.v1", &named(&["new", "y", "x"])), [3, 2, 1]);
        assert_eq!(numbers(&book, "a.v1", &named(&["y"])), [2]);
        assert_eq!(numbers(&book, "a.v1", &named(&["last", "x", "y"])), [4, 1, 2]);
        assert_eq!(numbers(&book, "b.v1", &named(&["y"])), [1]);
    }

    #[test]
    fn numbers_beyond_the_limits_are_not_remembered() {
        let book = FieldNumbers::open(None);
        let tools = |count: usize| -> Vec<(String, String)> {
            let property = |at: usize| format!("\"p{at}\":{{\"type\":\"string\"}}");
            let properties: Vec<_> = (0..500).map(property).collect();
            let input = format!("{{\"type\":\"object\",\"properties\":{{{}}}}}", properties.join(","));
            (0..count).map(|tool| (format!("t{tool}"), input.clone())).collect()
        };
        let remembered = |package: &str, count: usize| {
            let tools = tools(count);
            let borrowed = tools.iter().map(|(name, input)| Tool {
                name,
                description: None,
                input: input.as_bytes(),
                output: None,
            });
            book.module(package, &borrowed.collect::<Vec<_>>());
            book.state.lock().packages.get(package).map(Numbers::count)
        };
        let most = SERVER_NUMBERS_MAX / 500;
        assert_eq!(remembered("full.v1", most), Some(SERVER_NUMBERS_MAX));
        assert_eq!(remembered("more.v1", most + 1), None);
        assert_eq!(remembered("full.v1", 1), Some(SERVER_NUMBERS_MAX), "messages that are gone keep theirs");
        // As many servers as have room, and one more.
        let full = book.state.lock().packages["full.v1"].clone();
        for number in 1..NUMBERS_MAX / SERVER_NUMBERS_MAX {
            book.state.lock().packages.insert(format!("full{number}.v1"), full.clone());
        }
        assert_eq!(remembered("last.v1", 1), None);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        fs::write(&path, "{\"a.v1\":5}").unwrap();
        let book = FieldNumbers::open(Some(dir.path()));
        assert_eq!(numbers(&book, "a.v1", &named(&["x", "y"])), [1, 2]);
        let (is_written, began) =
            (|| fs::read_to_string(&path).unwrap().contains("TRequest"), Instant::now());
        while !is_written() {
            assert!(began.elapsed() < Duration::from_secs(30));
            std::thread::yield_now();
        }
        let again = FieldNumbers::open(Some(dir.path()));
        assert_eq!(numbers(&again, "a.v1", &named(&["z", "y"])), [3, 2]);
    }
}
