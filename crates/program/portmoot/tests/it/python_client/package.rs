//! The package by itself: its own tests, its types, and its wheel.

use std::path::Path;
use std::process::{Command, Output};

use harness::deps;

use super::folder;

#[track_caller]
fn succeed(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let printed = format!(
        "{}{}",
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr)
    );
    assert!(status.success(), "{command:?}:\n{printed}");
    printed
}

fn module(name: &str) -> Command {
    let mut command = Command::new(deps().python());
    command
        .current_dir(folder())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-m", name]);
    command
}

#[test]
fn its_own_tests_pass() {
    let mut tests = module("pytest");
    // One of them is about the reviewer before a real gateway.
    tests.env("PORTMOOT_PROGRAM", env!("CARGO_BIN_EXE_portmoot"));
    let printed = succeed(&mut tests);
    assert!(
        printed.contains(" passed") && !printed.contains("skipped"),
        "{printed}"
    );
}

#[test]
fn its_types_are_strict_and_whole() {
    let cache = tempfile::tempdir().unwrap();
    succeed(module("mypy").arg("--cache-dir").arg(cache.path()));
}

#[test]
fn a_wheel_is_built_and_works_outside_the_sources() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // The build writes beside the sources, so it gets its own.
    copy(&super::folder(), &at("source"));
    let offline = [
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
    ];
    succeed(
        module("pip")
            .args(offline)
            .arg(at("wheels"))
            .arg(at("source")),
    );
    let wheel = std::fs::read_dir(at("wheels"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    assert_eq!(
        wheel.file_name().unwrap(),
        "portmoot-0.1.0-py3-none-any.whl"
    );
    succeed(
        module("pip")
            .args(["install", "--quiet", "--no-deps", "--no-index", "--target"])
            .arg(at("installed"))
            .arg(&wheel),
    );
    assert!(at("installed/portmoot/py.typed").exists());
    let program = "import portmoot; print(portmoot.__file__, portmoot.__version__)";
    let mut command = Command::new(deps().python());
    let printed = succeed(
        command
            .current_dir(folder.path())
            .env("PYTHONPATH", at("installed"))
            .args(["-c", program]),
    );
    assert!(
        printed.contains("/installed/portmoot/") && printed.ends_with(" 0.1.0\n"),
        "{printed}"
    );
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let place = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &place);
        } else {
            std::fs::copy(entry.path(), place).unwrap();
        }
    }
}
