//! Retention of the audit log: old files go, and the log still proves what it has and what it had.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::Connection;
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{config_of, home_of, token};

const PEOPLE: [(&str, &[&str]); 1] = [("boss", &["mcp/*", "portmoot/audit"])];
/// A log of which little is kept, of files that are soon full.
const LITTLE: &str = "rotate_bytes = \"64KiB\"\nkeep_bytes = \"128KiB\"\npayloads = \"full\"\n";

struct Stage {
    home: Home,
    config: String,
}

impl Stage {
    fn new(audit: &str) -> Stage {
        let home = home_of(&PEOPLE);
        let config =
            config_of(&home, &PEOPLE) + &format!("[audit]\n{audit}") + &fixture("files", &[]);
        Stage { home, config }
    }

    fn start(&self) -> Gateway {
        let gateway = Gateway::start(&self.home, &self.config);
        gateway.ready("files");
        gateway
    }

    /// The result of a check with these options.
    fn verify(&self, options: &[&str]) -> (i32, Value) {
        let words = ["audit", "verify", "--json", "--data-dir", "data"];
        let ran = self.home.run(&[&words[..], options].concat());
        (ran.code, serde_json::from_str(&ran.stdout).unwrap())
    }

    /// A check as people read it.
    fn said(&self, options: &[&str], code: i32) -> String {
        let words = ["audit", "verify", "--data-dir", "data"];
        let ran = self.home.run(&[&words[..], options].concat()).expect(code);
        ran.stdout + &ran.stderr
    }

    /// The files of the log, the oldest first.
    fn files(&self) -> Vec<PathBuf> {
        // The first entry makes the folder.
        let folder = fs::read_dir(self.home.path().join("data/audit"));
        let entries = folder.into_iter().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    /// The number of the first entry of the first file.
    fn first(&self) -> u64 {
        let files = self.files();
        let name = files.first().and_then(|file| file.file_stem());
        name.map_or(1, |name| name.to_str().unwrap().parse().unwrap())
    }
}

fn boss(gateway: &Gateway) -> Client {
    Client::of(gateway, &token("boss"))
}

/// Makes calls with long arguments until this is so.
#[track_caller]
fn call_until<T>(gateway: &Gateway, what: &str, mut is_so: impl FnMut() -> Option<T>) -> T {
    let boss = boss(gateway);
    let text = "x".repeat(20_000);
    until(what, || {
        boss.call("files_echo", json!({ "text": text }));
        is_so()
    })
}

/// The answer of the API.
fn get(gateway: &Gateway, path: &str) -> Value {
    let bearer = format!("Bearer {}", token("boss"));
    let headers = [("authorization", bearer.as_str())];
    let path = format!("/api/v1/{path}");
    let reply = Connection::open(gateway.address()).exchange("GET", &path, &headers, "");
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

#[test]
fn old_files_are_removed_and_the_rest_is_proved() {
    let stage = Stage::new(LITTLE);
    let gateway = stage.start();
    boss(&gateway).call("files_echo", json!({ "text": "first" }));
    let early = until("a head", || {
        let (_, report) = stage.verify(&[]);
        (report["entries"] != 0).then(|| report["head"].as_str().unwrap().to_owned())
    });
    let removed = call_until(&gateway, "old files are removed", || {
        let (code, report) = stage.verify(&[]);
        assert_eq!(code, 0, "{report}");
        (stage.first() > 8).then(|| report["removed"].clone())
    });
    assert!(removed["entries"].as_u64() >= Some(2), "{removed}");
    // People read it too, and the API and the console's check have the same.
    let said = stage.said(&[], 0);
    assert!(said.starts_with("entries 1 to "), "{said}");
    assert!(said.contains(" were removed by retention at 20"), "{said}");
    let report = get(&gateway, "audit/verify");
    assert_eq!(report["intact"], true, "{report}");
    assert!(report["removed"]["entries"].is_u64(), "{report}");
    let proofs = get(&gateway, "audit?verdict=removed");
    let proof = &proofs["entries"][0];
    assert_eq!(
        (&proof["kind"], &proof["verdict"]),
        (&json!("portmoot/audit"), &json!("removed")),
        "{proof}"
    );
    // A page that begins in a part that is gone ends there.
    let page = get(&gateway, "audit?after=1-100");
    assert_eq!(
        (&page["entries"], &page["cut"]),
        (&json!([]), &json!(false)),
        "{page}"
    );
    let gone = get(&gateway, "audit/calls?after=1-100");
    assert_eq!(gone["calls"], json!([]), "{gone}");
    // The early head is of what was removed.
    let (code, report) = stage.verify(&["--head", &early]);
    assert_eq!(
        (code, &report["intact"], &report["head_is_removed"]),
        (1, &json!(true), &json!(true)),
        "{report}"
    );
    let said = stage.said(&["--head", &early], 1);
    assert!(
        said.contains("the head that you gave is of an entry that was removed"),
        "{said}"
    );
    let path = format!("audit/verify?head={early}");
    assert_eq!(get(&gateway, &path)["head_is_removed"], true);
    gateway.stop().expect(0);
    let head = stage.verify(&[]).1["head"].as_str().unwrap().to_owned();
    assert_eq!(stage.verify(&["--head", &head]).0, 0);
}

#[test]
fn a_file_that_another_one_removes_is_missed() {
    let stage = Stage::new(LITTLE);
    let gateway = stage.start();
    call_until(&gateway, "three files of a log that lost some", || {
        (stage.first() > 1 && stage.files().len() >= 2).then_some(())
    });
    gateway.stop().expect(0);
    assert_eq!(stage.verify(&[]).0, 0);
    fs::remove_file(&stage.files()[0]).unwrap();
    let (code, report) = stage.verify(&[]);
    let second = stage.first();
    // The file may have had the proof of those before it.
    let finding = report["findings"][0].as_str().unwrap();
    assert_eq!(
        (code, &report["findings_count"]),
        (1, &json!(1)),
        "{report}"
    );
    assert!(
        finding.ends_with(&format!(" to {} are missing", second - 1)),
        "{finding}"
    );
    // The gateway removes the rest of that file's time, and the log still says so.
    let gateway = stage.start();
    call_until(&gateway, "the next file is removed", || {
        (stage.first() > second).then_some(())
    });
    gateway.stop().expect(0);
    let (code, report) = stage.verify(&[]);
    assert_eq!(code, 1, "{report}");
    let finding = report["findings"].to_string();
    assert!(
        finding.contains("removed by retention, with 1 defects in them"),
        "{report}"
    );
}

#[test]
fn entries_are_removed_at_their_age() {
    let stage = Stage::new("rotate = \"100ms\"\nkeep = \"500ms\"\n");
    let gateway = stage.start();
    let boss = boss(&gateway);
    until("the first file is removed", || {
        boss.call("files_echo", json!({ "text": "x" }));
        (stage.first() > 1).then_some(())
    });
    gateway.stop().expect(0);
    assert_eq!(stage.verify(&[]).0, 0);
}

#[test]
fn a_kill_at_any_moment_of_a_removal_is_no_finding() {
    let stage = Stage::new(LITTLE);
    let mut first = 1;
    for run in 0..6 {
        let gateway = stage.start();
        call_until(&gateway, "a file is removed", || {
            (stage.first() > first).then_some(())
        });
        first = stage.first();
        gateway.signal("KILL");
        drop(gateway);
        let (code, report) = stage.verify(&[]);
        assert_eq!(code, 0, "run {run}: {report}");
    }
}

#[test]
fn a_log_that_cannot_be_kept_as_written_is_refused() {
    let wrong = [
        ("rotate_bytes = \"1KiB\"", "must be 64KiB to 256MiB"),
        (
            "keep = \"1h\"\nrotate = \"2h\"",
            "is longer than `audit.keep`",
        ),
        ("keep_bytes = \"1MiB\"", "is less than one file has"),
    ];
    for (audit, why) in wrong {
        let home = Home::new();
        home.write("portmoot.toml", &format!("[audit]\n{audit}\n"));
        let ran = home.run(&["config", "check", "--config", "portmoot.toml"]);
        assert!(
            ran.code != 0 && (ran.stdout + &ran.stderr).contains(why),
            "{audit}"
        );
    }
}
