//! Commands that only look at a data directory.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::home::Home;

const CONFIG: &str = "[server]\ndata_dir = \"data\"\nlisten = \"127.0.0.1:0\"\n";

/// Every entry of a directory with its mode and bytes; the directory itself comes first.
fn contents(dir: &Path) -> Vec<(String, u32, Vec<u8>)> {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    let mut all = vec![(String::new(), mode(dir), Vec::new())];
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let (name, path) = (entry.file_name().into_string().unwrap(), entry.path());
        let bytes = if path.is_dir() {
            Vec::new()
        } else {
            fs::read(&path).unwrap()
        };
        all.push((name, mode(&path), bytes));
    }
    all.sort();
    all
}

#[test]
fn commands_that_look_at_a_data_directory_do_not_take_it() {
    let home = Home::new();
    home.write("portmoot.toml", CONFIG);
    let data = home.path().join("data");
    home.run(&["token", "new", "scout", "--config", "portmoot.toml"])
        .expect(0);
    // What a crash leaves is repaired by the next gateway.
    let mut journal = fs::File::options()
        .append(true)
        .open(data.join("journal.jsonl"))
        .unwrap();
    journal.write_all(b"{\"n\":").unwrap();
    fs::set_permissions(&data, PermissionsExt::from_mode(0o750)).unwrap();
    let before = contents(&data);
    for (command, found) in [("doctor", "required from all callers"), ("token", "scout")] {
        let more = if command == "token" { &["ls"][..] } else { &[] };
        let ran = home
            .run(&[&[command], more, &["--config", "portmoot.toml"]].concat())
            .expect(0);
        assert!(ran.stdout.contains(found), "{}", ran.stdout);
        assert!(contents(&data) == before, "{command} has changed something");
    }
    // An empty directory stays empty.
    fs::create_dir(home.path().join("empty")).unwrap();
    let args = ["doctor", "--config", "portmoot.toml", "--data-dir", "empty"];
    assert!(
        home.run(&args)
            .expect(0)
            .stdout
            .contains("none: connections")
    );
    assert_eq!(contents(&home.path().join("empty")).len(), 1);
}

#[test]
fn the_doctor_says_which_secret_cannot_be_read_and_shows_none() {
    let home = Home::new().env("PRINTED", "hush-printed");
    home.secret("private", "hush-private");
    home.write("open", "hush-open");
    let config = "[servers.a]\ncommand = \"sh\"\nenv = { A = { command = [\"printenv\", \"PRINTED\"] }, B = { file = \"private\" } }\n\
                  [servers.b]\nurl = \"https://b.example\"\nheaders = { K = { file = \"open\" } }\n\
                  [participants.p]\ntoken = { command = [\"sh\", \"-c\", \"echo hush-p; echo hush-p >&2; exit 4\"] }\n";
    home.write("own.toml", config);
    let args = ["doctor", "--listen", "127.0.0.1:0", "--config", "own.toml"];
    let shown = home.run(&args).expect(1);
    for line in [
        "ok      secret servers.a.env.A: read from the command `printenv`",
        "ok      secret servers.a.env.B: read from the file private",
        "wrong   secret servers.b.headers.K: cannot be read: others may read the file open: chmod 600 it",
        "wrong   secret participants.p.token: cannot be read: the command `sh` failed: exit status: 4",
    ] {
        assert!(shown.stdout.contains(line), "{line}\n{}", shown.stdout);
    }
    let started = home
        .run(&["serve", "--listen", "127.0.0.1:0", "--config", "own.toml"])
        .expect(2);
    assert!(
        started
            .stderr
            .contains("the secret `participants.p.token` cannot be read"),
        "{}",
        started.stderr
    );
    for ran in [
        shown,
        started,
        home.run(&["config", "show", "--json", "--config", "own.toml"])
            .expect(0),
    ] {
        let all = ran.stdout + &ran.stderr;
        let said = all.replace("echo hush-p; echo hush-p >&2", "");
        assert!(!said.contains("hush-"), "{all}");
    }
}

#[test]
fn no_command_of_a_file_that_was_found_runs_without_consent() {
    let home = Home::new();
    home.write(
        "portmoot.toml",
        "[servers.a]\ncommand = \"sh\"\nenv = { A = { command = [\"touch\", \"ran\"] } }\n",
    );
    home.run(&["config", "check"]).expect(0);
    home.run(&["config", "show"]).expect(0);
    home.run(&["servers", "ls"]).expect(1);
    let refused = home.run(&["serve", "--listen", "127.0.0.1:0"]).expect(3);
    let line = "DANGER: the gateway itself runs a command for the secret `servers.a.env.A`";
    assert!(refused.stderr.contains(line), "{}", refused.stderr);
    let looked = home.run(&["doctor", "--listen", "127.0.0.1:0"]);
    assert!(
        looked.stdout.contains("secret servers.a.env.A: not read"),
        "{}",
        looked.stdout
    );
    assert!(!home.path().join("ran").exists());
    // A named file is the operator's. (What was touched prints nothing.)
    let named = home
        .run(&[
            "doctor",
            "--listen",
            "127.0.0.1:0",
            "--config",
            "portmoot.toml",
        ])
        .expect(1);
    assert!(
        named
            .stdout
            .contains("secret servers.a.env.A: cannot be read: it is empty"),
        "{}",
        named.stdout
    );
    assert!(home.path().join("ran").exists());
}
