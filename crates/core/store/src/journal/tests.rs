//! Tests of the journal in a real directory: torn tails, damage, the lock, compaction, modes.

mod closed;
mod damage;
mod golden;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::head::HEAD_FILE;
use super::*;
use crate::DirectoryOwner;
use crate::record::{IssuedToken, SealingKey};

fn token(name: &str) -> Record {
    Record::TokenIssued(IssuedToken {
        name: name.into(),
        sha256: "ab".repeat(32),
        capabilities: Some(vec!["chat".into()]),
        topics: None,
        created_ms: 10,
        expires_ms: Some(20),
        expired: false,
        incarnation: None,
    })
}

impl Journal {
    /// Compacts the journal before that is due.
    fn compact(&mut self) -> Result<(), StoreError> {
        let text = compacted(&mut self.state).unwrap();
        self.file.compact(&text)
    }
}

fn names(journal: &Journal) -> Vec<String> {
    journal
        .state()
        .tokens()
        .iter()
        .map(|token| token.name.clone())
        .collect()
}

#[test]
fn appended_records_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(dir.path()).unwrap();
    let key = Record::SealingKey(SealingKey {
        key: "cd".repeat(32),
        created_ms: 1,
    });
    journal.append(&[key, token("scout"), token("ci")]).unwrap();
    journal
        .append(&[Record::TokenRevoked {
            name: "ci".into(),
            at_ms: 30,
        }])
        .unwrap();
    let before = journal.state().clone();
    drop(journal);
    assert_eq!(*Journal::open(dir.path()).unwrap().state(), before);
}

#[test]
fn a_torn_last_line_is_removed_and_writing_continues() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(dir.path()).unwrap();
    journal.append(&[token("scout")]).unwrap();
    let (path, head) = (dir.path().join(JOURNAL_FILE), dir.path().join(HEAD_FILE));
    let before = fs::read(&head).unwrap();
    journal.append(&[token("ci")]).unwrap();
    drop(journal);
    let text = fs::read(&path).unwrap();
    for cut in 1..40 {
        // The head is written after the lines.
        fs::write(&head, &before).unwrap();
        fs::write(&path, &text[..text.len() - cut]).unwrap();
        let whole: &[_] = if cut == 1 {
            &["scout", "ci"]
        } else {
            &["scout"]
        };
        assert_eq!(
            Journal::peek(dir.path()).unwrap().tokens().len(),
            whole.len()
        );
        let mut journal = Journal::open(dir.path()).unwrap();
        assert_eq!(names(&journal), whole, "cut {cut}");
        journal.append(&[token("late")]).unwrap();
        drop(journal);
        assert_eq!(
            names(&Journal::open(dir.path()).unwrap()),
            [whole, &["late"]].concat(),
            "cut {cut}"
        );
    }
}

#[test]
fn a_locked_directory_names_the_address_of_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(Directory::owner(dir.path()).unwrap(), None);
    let first = Journal::open(dir.path()).unwrap();
    let files = vec!["/etc/a.toml".to_owned(), "x".repeat(64 << 10)];
    let listen = Some("127.0.0.1:7070".to_owned());
    first
        .directory()
        .announce(DirectoryOwner {
            listen,
            files,
            ..DirectoryOwner::default()
        })
        .unwrap();
    let StoreError::Locked { owner, .. } = Journal::open(dir.path()).unwrap_err() else {
        panic!("locked")
    };
    let owner = owner.unwrap();
    assert_eq!(
        (owner.pid, owner.listen.as_deref()),
        (std::process::id(), Some("127.0.0.1:7070"))
    );
    assert_eq!(
        owner.files,
        ["/etc/a.toml"],
        "what makes the file too long is left out"
    );
    assert!(owner.since_ms > 0);
    assert_eq!(
        Directory::owner(dir.path()).unwrap().as_ref(),
        Some(&*owner)
    );
    drop(first);
    assert_eq!(Directory::owner(dir.path()).unwrap(), None);
    Journal::open(dir.path()).unwrap();
}

#[test]
fn files_are_private_and_existing_directories_become_private() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("a/data");
    fs::create_dir_all(&data).unwrap();
    fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).unwrap();
    let mut journal = Journal::open(&data).unwrap();
    journal.append(&[token("scout")]).unwrap();
    journal.compact().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join(JOURNAL_FILE)), 0o600);
    assert_eq!(mode(&data.join("lock")), 0o600);
}

#[test]
fn compaction_removes_revoked_tokens() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(dir.path()).unwrap();
    journal.append(&[token("keeper")]).unwrap();
    for round in 0..SLACK_LINES {
        let name = format!("job-{round}");
        journal
            .append(&[token(&name), Record::TokenRevoked { name, at_ms: 1 }])
            .unwrap();
    }
    assert!(
        journal.file.lines() <= 2 + SLACK_LINES,
        "{}",
        journal.file.lines()
    );
    drop(journal);
    assert_eq!(names(&Journal::open(dir.path()).unwrap()), ["keeper"]);
}
