//! Connections that end: byte for byte as before, whatever the file was; files that other programs
//! change.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;
use rustix::fs::{FlockOperation, flock};

use super::*;
use crate::files::LINKS_MAX;

fn cursor(dir: &Path) -> (&'static ClientProgram, Spot, Copies) {
    let client = client("cursor").unwrap();
    let at = surroundings(Os::Linux, dir);
    (
        client,
        client.spot(FileScope::User, &at).unwrap(),
        Copies::in_dir(&dir.join("state")),
    )
}

fn put(client: &ClientProgram, spot: &Spot, copies: &Copies) {
    connect(client, spot, ("portmoot", &gateway()), &[], copies)
        .unwrap()
        .make()
        .unwrap();
}

#[test]
fn a_link_and_permissions_and_a_mark_stay() {
    let dir = tempfile::tempdir().unwrap();
    let (client, spot, copies) = cursor(dir.path());
    let real = dir.path().join("dotfiles/mcp.json");
    for folder in [real.parent().unwrap(), spot.file.parent().unwrap()] {
        fs::create_dir_all(folder).unwrap();
    }
    let text = "\u{feff}{\r\n  \"mcpServers\": {} // é\r\n}";
    fs::write(&real, text).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("../dotfiles/mcp.json", &spot.file).unwrap();
    put(client, &spot, &copies);
    let with = fs::read_to_string(&real).unwrap();
    assert!(
        with.starts_with("\u{feff}{\r\n") && with.contains("portmoot"),
        "{with}"
    );
    assert_eq!(with.matches('\n').count(), with.matches("\r\n").count());
    assert!(fs::symlink_metadata(&spot.file).unwrap().is_symlink());
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o640
    );
    let copy = copies.copy_of(&spot.file);
    assert_eq!(fs::read(&copy).unwrap(), text.as_bytes());
    assert_eq!(
        fs::metadata(&copy).unwrap().permissions().mode() & 0o777,
        0o600
    );
    disconnect(&spot, &copies).unwrap().make().unwrap();
    assert_eq!(fs::read(&real).unwrap(), text.as_bytes());
    assert!(fs::symlink_metadata(&spot.file).unwrap().is_symlink());
    // No other file is left.
    assert_eq!(fs::read_dir(real.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_file_that_was_not_there_is_gone_again() {
    let dir = tempfile::tempdir().unwrap();
    let (client, spot, copies) = cursor(dir.path());
    put(client, &spot, &copies);
    assert_eq!(connected(&spot).unwrap(), ["portmoot"]);
    assert_eq!(
        fs::metadata(&spot.file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    disconnect(&spot, &copies).unwrap().make().unwrap();
    assert!(!spot.file.exists());
}

#[test]
fn what_another_program_changed_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (client, spot, copies) = cursor(dir.path());
    fs::create_dir_all(spot.file.parent().unwrap()).unwrap();
    fs::write(&spot.file, "{\n  \"mcpServers\": {}\n}\n").unwrap();
    put(client, &spot, &copies);
    // The client adds a server of its own.
    let with = fs::read_to_string(&spot.file).unwrap();
    let other = vec![("command".to_owned(), "x".into())];
    let other = spot.table.insert(&with, "other", &other).unwrap();
    fs::write(&spot.file, &other).unwrap();
    let plan = disconnect(&spot, &copies).unwrap();
    assert_eq!(plan.ending, Some(Ending::Changed));
    plan.make().unwrap();
    let left = look(&spot).unwrap().1;
    assert_eq!(
        left.iter()
            .map(|entry| entry.name.as_str())
            .collect::<Vec<_>>(),
        ["other"]
    );
    // A change between the plan and its execution: nothing is written.
    let plan = connect(client, &spot, ("portmoot", &gateway()), &[], &copies).unwrap();
    fs::write(&spot.file, "{}").unwrap();
    assert!(matches!(plan.make(), Err(FileError::Changed { .. })));
    assert_eq!(fs::read_to_string(&spot.file).unwrap(), "{}");
}

#[test]
fn a_second_connection_keeps_the_first_copy() {
    let dir = tempfile::tempdir().unwrap();
    let (client, spot, copies) = cursor(dir.path());
    fs::create_dir_all(spot.file.parent().unwrap()).unwrap();
    let text = "{ \"mcpServers\": { \"a\": { \"command\": \"x\" }, \"b\": {} } }";
    fs::write(&spot.file, text).unwrap();
    put(client, &spot, &copies);
    let other = Gateway {
        args: vec!["stdio".into(), "--topic".into(), "x".into()],
        ..gateway()
    };
    let moved = ["a".to_owned()];
    connect(client, &spot, ("portmoot", &other), &moved, &copies)
        .unwrap()
        .make()
        .unwrap();
    let names: Vec<String> = look(&spot)
        .unwrap()
        .1
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["b", "portmoot"]);
    disconnect(&spot, &copies).unwrap().make().unwrap();
    assert_eq!(fs::read_to_string(&spot.file).unwrap(), text);
}

#[test]
fn links_are_followed_up_to_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let (client, spot, copies) = cursor(dir.path());
    fs::create_dir_all(spot.file.parent().unwrap()).unwrap();
    fs::write(dir.path().join("0"), "{}\n").unwrap();
    for number in 1..=LINKS_MAX {
        symlink(
            (number - 1).to_string(),
            dir.path().join(number.to_string()),
        )
        .unwrap();
    }
    for (links, fits) in [(LINKS_MAX, true), (LINKS_MAX + 1, false)] {
        let _ = fs::remove_file(&spot.file);
        symlink(format!("../{}", links - 1), &spot.file).unwrap();
        let done = connect(client, &spot, ("portmoot", &gateway()), &[], &copies);
        assert_eq!(done.is_ok(), fits, "{links}");
    }
    symlink("round", dir.path().join("round")).unwrap();
    fs::remove_file(&spot.file).unwrap();
    symlink("../round", &spot.file).unwrap();
    assert!(
        look(&spot)
            .unwrap_err()
            .to_string()
            .contains("too many links")
    );
}

#[test]
fn a_broken_file_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (client, spot, copies) = cursor(dir.path());
    fs::create_dir_all(spot.file.parent().unwrap()).unwrap();
    for (bytes, expect) in [
        (&b"{\n  \"mcpServers\": {\n"[..], "line 2, column 17"),
        (b"{ \"a\": \xff }", "line 1 is not UTF-8"),
        (b"{ \"mcpServers\": 3 }", "`mcpServers` is not an object"),
    ] {
        fs::write(&spot.file, bytes).unwrap();
        for error in [
            connect(client, &spot, ("portmoot", &gateway()), &[], &copies).unwrap_err(),
            disconnect(&spot, &copies).unwrap_err(),
        ] {
            let error = error.to_string();
            assert!(
                error.contains(expect) && error.contains("mcp.json"),
                "{error}"
            );
        }
        assert_eq!(fs::read(&spot.file).unwrap(), bytes);
    }
    fs::write(&spot.file, vec![b' '; FILE_BYTES_MAX]).unwrap();
    look(&spot).unwrap();
    fs::write(&spot.file, vec![b' '; FILE_BYTES_MAX + 1]).unwrap();
    assert!(look(&spot).unwrap_err().to_string().contains("more than"));
    fs::remove_file(&spot.file).unwrap();
    fs::create_dir(&spot.file).unwrap();
    assert!(
        look(&spot)
            .unwrap_err()
            .to_string()
            .contains("not a regular file")
    );
    assert!(!dir.path().join("state").exists());
}

#[test]
fn a_lost_or_foreign_copy_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let (client, spot, copies) = cursor(dir.path());
    fs::create_dir_all(spot.file.parent().unwrap()).unwrap();
    fs::write(&spot.file, "{}\n").unwrap();
    put(client, &spot, &copies);
    fs::remove_file(copies.copy_of(&spot.file)).unwrap();
    let plan = disconnect(&spot, &copies).unwrap();
    assert_eq!(plan.ending, Some(Ending::Unknown));
    plan.make().unwrap();
    assert_eq!(connected(&spot).unwrap(), Vec::<String>::new());
    assert!(spot.file.exists());
}

/// A file with an entry that a person wrote, with a token.
const BY_HAND: &str = r#"{
  "mcpServers": {
    "portmoot": {"command":"portmoot","args":["stdio"],"env":{"PORTMOOT_TOKEN":"pm_mine"}},
    "other": {"command":"x"}
  }
}
"#;

#[test]
fn an_entry_that_a_person_wrote_is_there_again() {
    let dir = tempfile::tempdir().unwrap();
    let (client, spot, copies) = cursor(dir.path());
    fs::create_dir_all(spot.file.parent().unwrap()).unwrap();
    fs::write(&spot.file, BY_HAND).unwrap();
    let plan = connect(client, &spot, ("portmoot", &gateway()), &[], &copies).unwrap();
    assert!(plan.is_copy_exact());
    plan.make().unwrap();
    assert_eq!(
        fs::read_to_string(copies.copy_of(&spot.file)).unwrap(),
        BY_HAND
    );
    assert!(!fs::read_to_string(&spot.file).unwrap().contains("pm_mine"));
    // Also after a second connection, and if the client changes its file meanwhile.
    put(client, &spot, &copies);
    let with = fs::read_to_string(&spot.file).unwrap();
    let plan = disconnect(&spot, &copies).unwrap();
    assert_eq!(plan.ending, Some(Ending::Restored));
    assert_eq!(plan.left(&spot), ["portmoot"]);
    plan.make().unwrap();
    assert_eq!(fs::read_to_string(&spot.file).unwrap(), BY_HAND);
    put(client, &spot, &copies);
    fs::write(&spot.file, with.replace("\"x\"", "\"y\"")).unwrap();
    let plan = disconnect(&spot, &copies).unwrap();
    assert_eq!(plan.ending, Some(Ending::Changed));
    plan.make().unwrap();
    let left = fs::read_to_string(&spot.file).unwrap();
    assert!(left.contains("pm_mine") && left.contains("\"y\""), "{left}");
    // So it is if the client changes its file between two connections.
    put(client, &spot, &copies);
    let with = fs::read_to_string(&spot.file).unwrap();
    fs::write(&spot.file, with.replace("\"y\"", "\"z\"")).unwrap();
    put(client, &spot, &copies);
    disconnect(&spot, &copies).unwrap().make().unwrap();
    let left = fs::read_to_string(&spot.file).unwrap();
    assert!(left.contains("pm_mine") && left.contains("\"z\""), "{left}");
    // Without a connection it is taken out.
    let plan = disconnect(&spot, &copies).unwrap();
    assert_eq!(plan.ending, Some(Ending::Unknown));
    plan.make().unwrap();
    assert_eq!(connected(&spot).unwrap(), Vec::<String>::new());
}

#[test]
fn an_entry_of_an_earlier_connection_is_taken_out() {
    let dir = tempfile::tempdir().unwrap();
    let (client, spot, copies) = cursor(dir.path());
    fs::create_dir_all(spot.file.parent().unwrap()).unwrap();
    fs::write(&spot.file, "{\n  \"mcpServers\": {}\n}\n").unwrap();
    put(client, &spot, &copies);
    let with = fs::read_to_string(&spot.file).unwrap();
    fs::write(&spot.file, with + "\n").unwrap();
    let other = Gateway {
        args: vec!["stdio".into(), "--topic".into(), "x".into()],
        ..gateway()
    };
    let plan = connect(client, &spot, ("portmoot", &other), &[], &copies).unwrap();
    assert!(!plan.is_copy_exact());
    plan.make().unwrap();
    let plan = disconnect(&spot, &copies).unwrap();
    assert_eq!(plan.ending, Some(Ending::TakenOut));
    assert_eq!(plan.left(&spot), Vec::<String>::new());
    plan.make().unwrap();
    assert_eq!(connected(&spot).unwrap(), Vec::<String>::new());
}

#[test]
fn of_two_changes_at_once_none_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("portmoot.toml");
    fs::write(&path, "").unwrap();
    // Another command is between its look at the file and its rename.
    let other = fs::File::open(dir.path()).unwrap();
    flock(&other, FlockOperation::LockExclusive).unwrap();
    let server = |name: &str| {
        NewServer::new(
            name,
            NewTransport::Command {
                command: "x".into(),
                args: Vec::new(),
                env: Vec::new(),
                cwd: None,
            },
        )
    };
    let change = add(TextFile::read(&path).unwrap(), &[server("second")]).unwrap();
    let second = std::thread::spawn(move || change.make());
    std::thread::sleep(std::time::Duration::from_millis(100));
    let first = section(&server("first"));
    fs::write(&path, &first).unwrap();
    drop(other);
    let made = second.join().unwrap();
    assert!(matches!(made, Err(FileError::Changed { .. })), "{made:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), first);
    // Nothing is left beside the file, and a change that another program made just so is no fault.
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    let again = FileChange::text(TextFile::read(&path).unwrap(), "x = 1\n");
    fs::write(&path, "x = 1\n").unwrap();
    again.make().unwrap();
}

proptest! {
    #[test]
    fn any_file_is_undone_byte_for_byte(text in "(\u{feff})?[ \r\n\t]{0,3}\\{[ \r\n\t]{0,5}(\"[a-z]{1,5}\": ?[1-9][0-9]{0,2}(, ?\r?\n?\"mcpServers\": ?\\{[ \r\n\t]{0,4}\\})?)?[ \r\n\t]{0,3}\\}(// [a-z,{}]{0,9})?[\r\n ]{0,3}") {
        let dir = tempfile::tempdir().unwrap();
        let (client, spot, copies) = cursor(dir.path());
        fs::create_dir_all(spot.file.parent().unwrap()).unwrap();
        fs::write(&spot.file, &text).unwrap();
        put(client, &spot, &copies);
        prop_assert_eq!(connected(&spot).unwrap(), ["portmoot"]);
        disconnect(&spot, &copies).unwrap().make().unwrap();
        prop_assert_eq!(fs::read_to_string(&spot.file).unwrap(), text);
    }
}
