//! What a new user does first, as the README tells it: no configuration, an empty home.

use std::path::Path;

use serde_json::Value;

use crate::runner::Home;
use crate::support::Gateway;

fn readme() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap()
}

#[test]
fn the_first_screen_says_what_to_do_next() {
    let home = Home::new();
    let gateway = Gateway::start_with(&home, &[]);
    gateway.hear("next");
    let url = gateway.url();
    // Without --url the running gateway is found by its data directory.
    assert_eq!(home.run(&["tools", "call", "demo_echo", "text=hello"]).expect(0).stdout, "hello\n");
    let json = home.run(&["servers", "ls", "--json"]).expect(0).stdout;
    let servers: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&servers["servers"][0]["name"], &servers["servers"][0]["state"]),
        (&"demo".into(), &"ready".into())
    );
    let ran = gateway.stop().expect(0);
    assert_eq!(ran.stdout, "");
    let screen = ran.stderr.replace(&url, "http://127.0.0.1:7070");
    let screen = screen.replace(env!("CARGO_BIN_EXE_portmoot"), "target/release/portmoot");
    let (_, shown) = screen.split_once("portmoot 0.").unwrap();
    let shown = shown.split("\n\n").take(2).collect::<Vec<_>>().join("\n\n");
    // The transcript in the README is this screen, line for line.
    assert!(readme().contains(shown.trim_end()), "the README shows another screen than this:\n{shown}");
    assert!(screen.contains("server=\"demo\"") && screen.contains("ready"), "{screen}");
}

#[test]
fn the_readme_lists_the_tools_that_there_are() {
    let home = Home::new();
    let listed = home.run(&["tools", "ls"]).expect(0);
    assert!(readme().contains(&listed.stdout), "{}", listed.stdout);
    assert_eq!(listed.stderr, "", "one command on the demo server is not chatty");
}

#[test]
fn the_readme_tells_two_commands_that_work() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    // A bare `cargo run` in the workspace means the program.
    assert!(manifest.contains("default-members = [\"crates/portmoot\"]"));
    let readme = readme();
    let first = readme.find("cargo run --release -- serve").unwrap();
    assert!(first < readme.find("cargo nextest run --workspace").unwrap());
    for link in readme.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(link.starts_with("https://") || root.join(link).exists(), "{link} leads nowhere");
    }
}

#[test]
fn a_command_needs_no_gateway() {
    let home = Home::new();
    assert_eq!(home.run(&["tools", "call", "demo_add", "a:=40", "b:=2"]).expect(0).stdout, "42\n");
    assert!(home.run(&["tools", "show", "demo_echo"]).expect(0).stdout.contains("Returns the text."));
    assert!(home.run(&["servers", "show", "demo"]).expect(0).stdout.contains("ready"));
    assert!(!home.path().join(".local").exists(), "nothing is kept on disk");
}

#[test]
fn every_end_has_its_code() {
    let home = Home::new();
    let unknown = home.run(&["tools", "call", "nope"]).expect(5).stderr;
    assert_eq!(
        unknown,
        "error: there is no tool of this name [unknown_target]\nhint: list what there is: portmoot tools ls; whether all servers are up: portmoot servers ls\n"
    );
    home.run(&["tools", "show", "nope"]).expect(5);
    home.run(&["servers", "show", "nope"]).expect(5);
    home.run(&["tools", "call", "demo_add", "a=x", "b=y"]).expect(1);
    home.run(&["tools", "call", "demo_echo", "text"]).expect(2);
    home.run(&["tools", "ls", "--topic", "nope"]).expect(3);
}

#[test]
fn the_doctor_finds_nothing_wrong_with_an_empty_home() {
    let home = Home::new();
    let ran = home.run(&["doctor", "--listen", "127.0.0.1:0"]).expect(0);
    assert!(ran.stdout.lines().all(|line| line.starts_with("ok ")), "{}", ran.stdout);
    assert_eq!(ran.stderr, "nothing is wrong\n");
    home.run(&["config", "check"]).expect(0);
    let shown = home.run(&["config", "show"]).expect(0).stdout;
    home.write("again.toml", &shown);
    home.run(&["config", "check", "--config", "again.toml"]).expect(0);
}
