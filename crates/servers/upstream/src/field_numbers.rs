//! Field numbers of the servers' messages, remembered: a schema that grows keeps those that it has
//! given out.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use platform::Mutex;
use schema::{FieldNumbering, ListedTool, Module};

/// Numbers that are remembered of one server. Of a server that has more, those of messages that it
/// has no more are forgotten first.
const SERVER_NUMBERS_MAX: usize = 20_000;
/// Numbers of all servers.
const NUMBERS_MAX: usize = 200_000;

/// Keeps field numbers longer than the process.
pub trait KeepNumbers: Debug + Send + Sync {
    /// Keeps the numbers of a package, in place of those that it had. Called each time the package is
    /// compiled, also when nothing has changed: then what could not be kept before is tried again,
    /// and else it returns at once. Must not block: the caller may be on the path of a list.
    fn keep(&self, package: &str, numbers: &FieldNumbering);
}

/// The numbers of all packages.
#[derive(Debug, Default)]
pub struct FieldNumbers {
    packages: Mutex<BTreeMap<String, FieldNumbering>>,
    keeper: Option<Box<dyn KeepNumbers>>,
}

impl FieldNumbers {
    /// Numbers that end with the process.
    #[must_use]
    pub fn of_this_run() -> Arc<Self> {
        Arc::default()
    }

    /// Numbers that were kept before, by package, and who keeps those to come.
    #[must_use]
    pub fn kept(
        packages: BTreeMap<String, FieldNumbering>,
        keeper: Box<dyn KeepNumbers>,
    ) -> Arc<Self> {
        Arc::new(Self {
            packages: Mutex::new(packages),
            keeper: Some(keeper),
        })
    }

    /// Converts and compiles the tools of a package with the numbers that it had, and remembers
    /// those that are new.
    pub(crate) fn module(&self, package: &str, tools: &[ListedTool<'_>]) -> Module {
        let mut packages = self.packages.lock();
        let known = packages.get(package).cloned().unwrap_or_default();
        let module = Module::new(package, tools, &known);
        let others = packages.iter().filter(|(name, _)| *name != package);
        let others_count = others.map(|(_, numbers)| numbers.count()).sum();
        let Some(remembered) = remembered(&known, module.numbers(), others_count) else {
            tracing::warn!(
                package,
                "there are too many fields: the numbers of new ones are not remembered"
            );
            return module;
        };
        if let Some(keeper) = &self.keeper {
            keeper.keep(package, &remembered);
        }
        packages.insert(package.to_owned(), remembered);
        module
    }
}

/// Numbers of a server that are remembered from now on: those that it had and has, or those that it
/// has; `None` if there is no room for them beside so many of other servers.
fn remembered(
    known: &FieldNumbering,
    present: FieldNumbering,
    others_count: usize,
) -> Option<FieldNumbering> {
    let mut all = known.clone().followed_by(present.clone());
    if all.count() > SERVER_NUMBERS_MAX {
        all = present;
    }
    let has_room = all.count() <= SERVER_NUMBERS_MAX
        && others_count.saturating_add(all.count()) <= NUMBERS_MAX;
    has_room.then_some(all)
}

#[cfg(test)]
mod tests {
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
        let book = FieldNumbers::of_this_run();
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
            remembered(&many("Gone", known), many("Own", own), others).map(|all| all.count())
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
        let book = FieldNumbers::of_this_run();
        for number in 0..ALL / SERVER {
            book.packages
                .lock()
                .insert(format!("full{number}.v1"), many("Gone", SERVER));
        }
        assert_eq!(numbers(&book, "last.v1", &named(&["x", "y"])), [1, 2]);
        assert!(!book.packages.lock().contains_key("last.v1"));
        assert_eq!(numbers(&book, "full0.v1", &named(&["x"])), [1]);
        assert_eq!(book.packages.lock()["full0.v1"].count(), 1);
    }

    /// So many numbers of one message.
    fn many(message: &str, count: usize) -> FieldNumbering {
        let known =
            serde_json::json!({ "fields": [], "reserved": (1..=count).collect::<Vec<_>>() });
        serde_json::from_value(serde_json::json!({ "messages": { message: known } })).unwrap()
    }

    /// Keeps numbers by package, unless it is busy.
    #[derive(Debug, Clone, Default)]
    struct Keeps(Arc<Mutex<Kept>>);

    #[derive(Debug, Default)]
    struct Kept {
        packages: BTreeMap<String, FieldNumbering>,
        is_busy: bool,
    }

    impl KeepNumbers for Keeps {
        fn keep(&self, package: &str, numbers: &FieldNumbering) {
            let mut kept = self.0.lock();
            if !kept.is_busy {
                kept.packages.insert(package.to_owned(), numbers.clone());
            }
        }
    }

    #[test]
    fn numbers_are_kept_when_they_change_and_go_on_in_the_next_run() {
        let keeper = Keeps::default();
        let kept = |package: &str| keeper.0.lock().packages[package].count();
        let book = FieldNumbers::kept(BTreeMap::new(), Box::new(keeper.clone()));
        assert_eq!(numbers(&book, "a.v1", &named(&["x", "y"])), [1, 2]);
        assert_eq!(kept("a.v1"), 2);
        let packages = keeper.0.lock().packages.clone();
        let again = FieldNumbers::kept(packages, Box::new(keeper.clone()));
        assert_eq!(numbers(&again, "a.v1", &named(&["z", "y"])), [3, 2]);
        assert_eq!(kept("a.v1"), 3);
    }

    #[test]
    fn numbers_that_could_not_be_kept_are_kept_with_the_next_list_though_nothing_has_changed() {
        let keeper = Keeps::default();
        let book = FieldNumbers::kept(BTreeMap::new(), Box::new(keeper.clone()));
        keeper.0.lock().is_busy = true;
        assert_eq!(numbers(&book, "a.v1", &named(&["x", "y"])), [1, 2]);
        assert!(keeper.0.lock().packages.is_empty());
        keeper.0.lock().is_busy = false;
        assert_eq!(numbers(&book, "a.v1", &named(&["x", "y"])), [1, 2]);
        assert_eq!(keeper.0.lock().packages["a.v1"].count(), 2);
    }
}
