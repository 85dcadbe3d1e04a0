//! Packages: crates that can be published, and the wrappers for `npx` and `uvx` around a binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use harness::{deps, repository};
use tempfile::TempDir;

use crate::program::Program;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[track_caller]
fn run(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|why| panic!("{command:?}: {why}"));
    assert!(
        output.status.success(),
        "{command:?}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn said(command: &mut Command) -> String {
    String::from_utf8(run(command).stdout).unwrap()
}

/// Wraps the program under test, without its symbols, for npm or as a wheel, and returns the folder
/// of the packages.
fn wrapped(folder: &Path, only: &str) -> PathBuf {
    let (binary, out) = (folder.join("portmoot"), folder.join("out"));
    fs::copy(env!("CARGO_BIN_EXE_portmoot"), &binary).unwrap();
    run(Command::new("strip").arg(&binary));
    let mut wrap = Command::new(deps().python());
    wrap.arg(repository().join("packages/wrap"))
        .args(["--only", only, "--binary"])
        .arg(&binary);
    run(wrap
        .args([
            "--target",
            &format!("{}-unknown-linux-gnu", std::env::consts::ARCH),
            "--out",
        ])
        .arg(&out));
    out
}

/// The file of a folder that begins and ends so.
#[track_caller]
fn file(folder: &Path, start: &str, end: &str) -> PathBuf {
    let mut names = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    names
        .find(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with(start) && name.ends_with(end)
        })
        .unwrap_or_else(|| panic!("{} has no {start}...{end}", folder.display()))
}

#[test]
#[cfg(target_os = "linux")]
fn the_npm_package_starts_the_binary_of_the_machine() {
    let folder = TempDir::new().unwrap();
    let out = wrapped(folder.path(), "npm");
    let project = folder.path().join("project");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("package.json"), "{}").unwrap();
    let packages = [
        file(&out, "portmoot-linux-", ".tgz"),
        out.join(format!("portmoot-{VERSION}.tgz")),
    ];
    let install = ["install", "--offline", "--no-audit", "--no-fund"];
    run(Command::new("npm")
        .args(install)
        .args(&packages)
        .current_dir(&project));
    let script = project.join("node_modules/.bin/portmoot");
    assert_eq!(
        said(Command::new(&script).arg("--version")),
        format!("portmoot {VERSION}\n")
    );
    // The first command of the README, and the call that it shows.
    let home = folder.path().join("home");
    let mut serve = Command::new(&script);
    serve
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("HOME", &home)
        .env_remove("XDG_STATE_HOME");
    let mut serve = Program::start(serve);
    let banner = serve.wait_for_line("/mcp");
    let url = banner
        .split_whitespace()
        .find_map(|word| word.strip_suffix("/mcp"))
        .expect("an address");
    let mut call = Command::new(&script);
    call.args(["tools", "call", "demo_echo", "text=hello"])
        .env("HOME", &home)
        .env("PORTMOOT_URL", url);
    assert_eq!(said(&mut call), "hello\n");
    // Exit codes and signals pass through the script.
    let code = Command::new(&script)
        .args(["tools", "nothing"])
        .output()
        .unwrap()
        .status
        .code();
    assert_eq!(code, Some(2), "a usage error");
    run(Command::new("kill").arg(serve.pid().to_string()));
    assert_eq!(
        serve.wait_for_exit().0,
        0,
        "SIGTERM ends the gateway behind the script"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn the_wheel_has_the_library_and_the_program() {
    let folder = TempDir::new().unwrap();
    let wheel = file(&wrapped(folder.path(), "wheel"), "portmoot-", ".whl");
    let prefix = folder.path().join("prefix");
    let mut pip = Command::new(deps().python());
    pip.args([
        "-m",
        "pip",
        "install",
        "--no-index",
        "--no-deps",
        "--quiet",
        "--prefix",
    ])
    .arg(&prefix);
    run(pip.arg(&wheel));
    let version = said(Command::new(prefix.join("bin/portmoot")).arg("--version"));
    assert_eq!(version, format!("portmoot {VERSION}\n"));
    let library = said(
        Command::new("find")
            .arg(&prefix)
            .args(["-path", "*/site-packages/portmoot/py.typed"]),
    );
    assert!(!library.is_empty(), "the client library is in the wheel");
}

#[test]
fn every_crate_can_be_packaged() {
    let folder = TempDir::new().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "package",
        "--workspace",
        "--exclude",
        "portmoot-fixture",
        "--exclude",
        "portmoot-bench",
        "--exclude",
        "portmoot-wire-fuzz",
        "--exclude",
        "portmoot-rules-fuzz",
        "--exclude",
        "portmoot-fabric-fuzz",
        "--no-verify",
        "--allow-dirty",
        "--offline",
    ]);
    run(cargo
        .arg("--target-dir")
        .arg(folder.path())
        .current_dir(repository()));
    let packed = fs::read_dir(folder.path().join("package"))
        .unwrap()
        .flatten();
    let packed = packed
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "crate"))
        .count();
    assert_eq!(
        packed,
        harness::crates().len() - 1,
        "all but the fixture, the benches and the fuzz targets"
    );
}

#[test]
fn wrappers_have_the_version_of_the_program() {
    let read = |path: &str| fs::read_to_string(repository().join(path)).unwrap();
    assert!(read("CHANGELOG.md").contains(VERSION), "CHANGELOG.md");
    assert!(
        read("clients/python/pyproject.toml").contains(&format!("version = \"{VERSION}\"")),
        "the wheel"
    );
}

/// The address while the project has none.
const NO_ADDRESS: &str = "https://example.invalid/portmoot";

/// `repository` in Cargo.toml is the setting; `tools/address` writes it everywhere else.
#[test]
fn packages_share_the_address_of_the_project() {
    let read = |path: &str| fs::read_to_string(repository().join(path)).unwrap();
    let manifest = read("Cargo.toml");
    let (_, rest) = manifest.split_once("\nrepository = \"").unwrap();
    let address = rest.split('"').next().unwrap();
    let mut files: Vec<String> = [
        "CHANGELOG.md",
        "book.toml",
        "clients/python/README.md",
        "clients/python/pyproject.toml",
        "crates/program/portmoot/README.md",
        "docs/envelope.schema.json",
        "packages/docker/Dockerfile",
        "packages/homebrew/portmoot.rb",
        "packages/systemd/portmoot.service",
    ]
    .map(str::to_owned)
    .into();
    for folder in harness::crates().values() {
        let folder = folder.strip_prefix(repository()).unwrap();
        files.push(format!("{}/README.md", folder.display()));
    }
    for file in files.iter().filter(|file| repository().join(file).exists()) {
        let text = read(file);
        assert!(
            text.contains(address),
            "{file} has not the address of Cargo.toml: tools/address"
        );
        assert!(
            address == NO_ADDRESS || !text.contains(NO_ADDRESS),
            "{file}: tools/address"
        );
    }
    let run = run(&mut Command::new(repository().join("tools/address")));
    let listed = String::from_utf8(run.stdout).unwrap();
    assert!(
        listed.lines().next() == Some(address) && listed.contains("packages/homebrew/portmoot.rb"),
        "{listed}"
    );
}
