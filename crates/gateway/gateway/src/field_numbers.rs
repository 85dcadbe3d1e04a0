//! Field numbers of protobuf in the journal: a client's schema outlives a restart of the gateway.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use platform::open_regular;
use schema::FieldNumbering;
use serde::{Deserialize, Serialize};
use store::{Fold, JournalWriter, Ledger, StoreError};
use upstream::{FieldNumbers, KeepNumbers};

/// The file of the data directory in which earlier versions kept the numbers.
const OLD_FILE: &str = "field-numbers.json";
/// Its name once some of its numbers are not in the journal.
const SET_ASIDE_FILE: &str = "field-numbers.json.old";
/// Bytes that are read of it at most.
const OLD_FILE_BYTES_MAX: u64 = 64 << 20;

/// The field numbers of the journal, by package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptNumbers {
    packages: BTreeMap<String, FieldNumbering>,
}

/// A fact about field numbers that the gateway needs after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum NumbersRecord {
    /// These are all numbers of a package.
    PackageNumbered {
        /// The package.
        package: String,
        /// The numbers of its messages.
        numbers: FieldNumbering,
    },
    /// Messages of a package have other numbers than before.
    MessagesNumbered {
        /// The package.
        package: String,
        /// The numbers of these messages.
        numbers: FieldNumbering,
    },
}

impl KeptNumbers {
    /// The record after which a package has these numbers; `None` if it has them. Of a package that
    /// has forgotten no message it has the changed messages alone.
    fn change(&self, package: &str, numbers: &FieldNumbering) -> Option<NumbersRecord> {
        let package = package.to_owned();
        let Some(known) = self.packages.get(&package) else {
            let numbers = numbers.clone();
            return Some(NumbersRecord::PackageNumbered { package, numbers });
        };
        if known == numbers {
            return None;
        }
        let changed = numbers.changed_since(known);
        let mut after = known.clone();
        after.replace_messages(&changed);
        Some(if after == *numbers {
            NumbersRecord::MessagesNumbered {
                package,
                numbers: changed,
            }
        } else {
            NumbersRecord::PackageNumbered {
                package,
                numbers: numbers.clone(),
            }
        })
    }
}

impl Fold for KeptNumbers {
    const OWNER: &'static str = "field_numbers";
    type Record = NumbersRecord;

    fn apply(&mut self, record: &NumbersRecord) {
        match record {
            NumbersRecord::PackageNumbered { package, numbers } => {
                self.packages.insert(package.clone(), numbers.clone());
            }
            NumbersRecord::MessagesNumbered { package, numbers } => self
                .packages
                .entry(package.clone())
                .or_default()
                .replace_messages(numbers),
        }
    }

    fn live(&self) -> usize {
        self.packages.len()
    }

    fn records(&mut self, _: u64) -> Vec<NumbersRecord> {
        let packages = self.packages.iter();
        packages
            .map(|(package, numbers)| NumbersRecord::PackageNumbered {
                package: package.clone(),
                numbers: numbers.clone(),
            })
            .collect()
    }
}

/// Keeps numbers in the journal.
#[derive(Debug)]
struct InJournal(Ledger<KeptNumbers>);

impl KeepNumbers for InJournal {
    fn keep(&self, package: &str, numbers: &FieldNumbering) {
        // What is not durable yet is in the next record too.
        let Some(record) = self.0.state(|kept| kept.change(package, numbers)) else {
            return;
        };
        self.0.submit(&[record], |written| {
            if let Err(error) = written {
                tracing::warn!(%error, "field numbers are not remembered after the end of the gateway");
            }
        });
    }
}

/// The field numbers of a gateway. With a journal those of earlier runs are known; the file of an
/// earlier version is taken over once.
///
/// # Errors
/// When the journal cannot be read or written.
pub fn field_numbers(
    journal: Option<&JournalWriter>,
    data_dir: Option<&Path>,
) -> Result<Arc<FieldNumbers>, StoreError> {
    let Some(journal) = journal else {
        return Ok(FieldNumbers::of_this_run());
    };
    let ledger = journal.ledger::<KeptNumbers>()?;
    if let Some(dir) = data_dir {
        take_over(&ledger, &dir.join(OLD_FILE))?;
    }
    let packages = ledger.state(|kept| kept.packages.clone());
    Ok(FieldNumbers::kept(packages, Box::new(InJournal(ledger))))
}

/// Takes over the file of an earlier version, of packages that the journal does not have. It is
/// removed once the journal has all its numbers, and renamed if packages have others in the journal;
/// one that cannot be read is left.
fn take_over(ledger: &Ledger<KeptNumbers>, path: &Path) -> Result<(), StoreError> {
    let file = path.display();
    let packages = match read(path) {
        Ok(Some(packages)) => packages,
        Ok(None) => return Ok(()),
        Err(error) => {
            tracing::warn!(%file, %error, "field numbers of an earlier version cannot be read, and are left out: tools are numbered anew");
            return Ok(());
        }
    };
    let mut records = Vec::new();
    let mut numbered_anew = Vec::new();
    let known = ledger.state(|kept| kept.packages.clone());
    for (package, numbers) in packages {
        match known.get(&package) {
            None => records.push(NumbersRecord::PackageNumbered { package, numbers }),
            Some(known) if *known == numbers => {}
            Some(_) => numbered_anew.push(package),
        }
    }
    ledger.append(&records)?;
    if numbered_anew.is_empty() {
        tracing::info!(%file, "the journal has the field numbers now");
        if let Err(error) = fs::remove_file(path) {
            tracing::warn!(%file, %error, "field numbers of an earlier version cannot be removed");
        }
    } else {
        set_aside(path, &numbered_anew);
    }
    Ok(())
}

/// Renames the file of an earlier version, which has other numbers of these packages than the
/// journal. Clients may have compiled either: the operator decides.
fn set_aside(path: &Path, packages: &[String]) {
    let packages = packages.join(", ");
    let to = path.with_file_name(SET_ASIDE_FILE);
    let file = path.display();
    let kept_as = to.display();
    match fs::rename(path, &to) {
        Ok(()) => tracing::warn!(
            %file, %kept_as, packages,
            "the journal has other field numbers of these packages than the file of an earlier version, and its own are used: the file was renamed"
        ),
        Err(error) => tracing::warn!(
            %file, %error, packages,
            "the journal has other field numbers of these packages than the file of an earlier version, and its own are used: the file cannot be renamed"
        ),
    }
}

fn read(path: &Path) -> io::Result<Option<BTreeMap<String, FieldNumbering>>> {
    let file = match open_regular(OpenOptions::new().read(true), path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut text = Vec::new();
    file.take(OLD_FILE_BYTES_MAX).read_to_end(&mut text)?;
    Ok(Some(serde_json::from_slice(&text)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: &str = r#"{"messages":{"TRequest":{"fields":[{"property":"x","name":"x","number":1,"wire":"string"}],"reserved":[2]}}}"#;

    fn numbers(text: &str) -> FieldNumbering {
        serde_json::from_str(text).unwrap()
    }

    fn message(name: &str, reserved: u32) -> FieldNumbering {
        numbers(&format!(
            r#"{{"messages":{{"{name}":{{"fields":[],"reserved":[{reserved}]}}}}}}"#
        ))
    }

    fn both(one: &FieldNumbering, other: &FieldNumbering) -> FieldNumbering {
        let mut both = one.clone();
        both.replace_messages(other);
        both
    }

    #[test]
    fn every_record_has_its_golden_line() {
        for kind in ["package_numbered", "messages_numbered"] {
            let line = format!(r#"{{"record":"{kind}","package":"a.v1","numbers":{NUMBERS}}}"#);
            let record: NumbersRecord = serde_json::from_str(&line).unwrap();
            assert_eq!(serde_json::to_string(&record).unwrap(), line);
        }
    }

    #[test]
    fn a_record_has_the_changed_messages_alone_unless_one_is_forgotten() {
        let mut kept = KeptNumbers::default();
        let a = message("A", 1);
        let b = message("B", 1);
        for (numbers, kind) in [
            (a.clone(), "package"),
            (both(&a, &b), "messages"),
            (both(&a, &message("B", 2)), "messages"),
            (b.clone(), "package"),
        ] {
            let record = kept.change("a.v1", &numbers).unwrap();
            let found = match &record {
                NumbersRecord::PackageNumbered { .. } => "package",
                NumbersRecord::MessagesNumbered { numbers, .. } => {
                    assert_eq!(numbers.count(), 1);
                    "messages"
                }
            };
            assert_eq!(found, kind);
            kept.apply(&record);
            assert_eq!(kept.packages["a.v1"], numbers);
            assert_eq!(kept.change("a.v1", &numbers), None);
        }
        let mut again = KeptNumbers::default();
        let written = kept.records(0);
        assert_eq!(written.len(), kept.live());
        written.iter().for_each(|record| again.apply(record));
        assert_eq!(again, kept);
    }

    fn packages(dir: &Path) -> BTreeMap<String, FieldNumbering> {
        let journal = JournalWriter::open(dir).unwrap();
        field_numbers(Some(&journal), Some(dir)).unwrap();
        let ledger = journal.ledger::<KeptNumbers>().unwrap();
        ledger.state(|kept| kept.packages.clone())
    }

    #[test]
    fn the_file_of_an_earlier_version_is_taken_over_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(OLD_FILE);
        fs::write(&path, format!(r#"{{"a.v1":{NUMBERS},"b.v1":{NUMBERS}}}"#)).unwrap();
        let expected: BTreeMap<_, _> = ["a.v1", "b.v1"]
            .map(|package| (package.to_owned(), numbers(NUMBERS)))
            .into();
        assert_eq!(packages(dir.path()), expected);
        assert!(!path.exists(), "the journal has it");
        assert_eq!(packages(dir.path()), expected);
        // One that comes back, as from a backup, changes nothing that the journal has.
        let other = serde_json::to_string(&message("B", 7)).unwrap();
        fs::write(&path, format!(r#"{{"a.v1":{other},"c.v1":{other}}}"#)).unwrap();
        let found = packages(dir.path());
        assert_eq!(found["a.v1"], numbers(NUMBERS));
        assert_eq!(found["c.v1"], message("B", 7));
    }

    #[test]
    fn a_file_of_an_earlier_version_stays_if_packages_were_numbered_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(OLD_FILE);
        // It could not be read at the first start.
        fs::write(&path, "{").unwrap();
        let journal = JournalWriter::open(dir.path()).unwrap();
        field_numbers(Some(&journal), Some(dir.path())).unwrap();
        let keeper = InJournal(journal.ledger().unwrap());
        keeper.keep("a.v1", &message("B", 7));
        keeper.keep("same.v1", &numbers(NUMBERS));
        drop((keeper, journal));
        let written = format!(r#"{{"a.v1":{NUMBERS},"same.v1":{NUMBERS},"unknown.v1":{NUMBERS}}}"#);
        fs::write(&path, &written).unwrap();
        let found = packages(dir.path());
        assert_eq!(found["a.v1"], message("B", 7));
        assert_eq!(found["unknown.v1"], numbers(NUMBERS));
        assert!(!path.exists());
        let set_aside = dir.path().join(SET_ASIDE_FILE);
        assert_eq!(fs::read_to_string(&set_aside).unwrap(), written);
        // One whose numbers the journal has is of no use.
        fs::write(&path, format!(r#"{{"same.v1":{NUMBERS}}}"#)).unwrap();
        assert_eq!(packages(dir.path()), found);
        assert!(!path.exists());
        assert_eq!(fs::read_to_string(&set_aside).unwrap(), written);
    }

    #[test]
    fn a_file_of_an_earlier_version_that_cannot_be_read_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(OLD_FILE);
        fs::write(&path, r#"{"a.v1":5}"#).unwrap();
        assert!(packages(dir.path()).is_empty());
        assert_eq!(fs::read_to_string(&path).unwrap(), r#"{"a.v1":5}"#);
    }

    #[test]
    fn numbers_for_which_the_journal_was_too_busy_are_written_when_it_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let journal = JournalWriter::open(dir.path()).unwrap();
        let ledger = journal.ledger().unwrap();
        let keeper = InJournal(ledger.clone());
        let all: Vec<_> = (0..store::WRITER_PERMITS_MAX)
            .map(|_| ledger.reserve().unwrap())
            .collect();
        keeper.keep("a.v1", &numbers(NUMBERS));
        drop(all);
        ledger.append(&[]).unwrap();
        assert!(ledger.state(|kept| kept.packages.is_empty()));
        keeper.keep("a.v1", &numbers(NUMBERS));
        ledger.append(&[]).unwrap();
        assert_eq!(
            ledger.state(|kept| kept.packages["a.v1"].clone()),
            numbers(NUMBERS)
        );
    }

    #[test]
    fn numbers_survive_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let journal = JournalWriter::open(dir.path()).unwrap();
        let keeper = InJournal(journal.ledger().unwrap());
        keeper.keep("a.v1", &numbers(NUMBERS));
        drop((keeper, journal));
        assert_eq!(packages(dir.path())["a.v1"], numbers(NUMBERS));
    }
}
