//! The user's configuration file: a gateway that began without it takes it over, and `add` says
//! what becomes of a change.

use crate::home::Home;
use crate::support::Gateway;

const FILE: &str = ".config/portmoot/portmoot.toml";

#[test]
fn a_file_that_comes_later_is_taken_over() {
    let home = Home::new();
    let gateway = Gateway::start_with(&home, &[]);
    gateway.ready("demo");
    let program = harness::fixture_binary().display().to_string();
    let added = home
        .run(&["add", "files", "--", &program, "--stdio"])
        .expect(0)
        .stderr;
    assert!(
        added.contains("reads this file, and takes the change over"),
        "{added}"
    );
    assert!(
        added.contains(gateway.address()) && added.contains("servers ls"),
        "{added}"
    );
    gateway.wait_for("files", "ready");
    // Without the file it is as at the start.
    std::fs::remove_file(home.path().join(FILE)).unwrap();
    gateway.wait_for("demo", "ready");
}

#[test]
fn add_says_that_the_running_gateway_reads_other_files() {
    let home = Home::new();
    let gateway = Gateway::start(&home, "[servers.demo]\ntype = \"demo\"\n");
    std::fs::rename(
        home.path().join("portmoot.toml"),
        home.path().join("x.toml"),
    )
    .unwrap();
    let added = home.run(&["add", "files", "--", "x"]).expect(0).stderr;
    assert!(
        added.contains("does not read this file") && added.contains("portmoot.toml"),
        "{added}"
    );
    assert!(
        added.contains(&format!("kill {}", gateway.pid())),
        "{added}"
    );
    gateway.stop().expect(0);
    let added = home.run(&["add", "other", "--", "x"]).expect(0).stderr;
    assert!(
        added.contains("serve") && !added.contains("kill"),
        "{added}"
    );
}
