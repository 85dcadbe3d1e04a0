//! Core files of a gateway that holds secrets.
#![cfg(target_os = "linux")]

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use super::KEY;
use crate::home::Home;
use crate::support::Gateway;

/// Whether a gateway that holds a key leaves a core file when it crashes, on a machine that allows
/// it to.
fn dumps(is_hidden: bool) -> bool {
    let home = if is_hidden {
        Home::new()
    } else {
        Home::new().env("PORTMOOT_DUMPABLE", "1")
    };
    let key = home.write("key", KEY);
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    home.write(
        "portmoot.toml",
        "[server]\nkey_file = \"key\"\n[topics.main]\n",
    );
    let serve = home.command(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--config",
        "portmoot.toml",
    ]);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -c unlimited; exec \"$0\" \"$@\""]);
    command
        .arg(serve.get_program())
        .args(serve.get_args())
        .current_dir(home.path());
    command.env_clear().envs(
        serve
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let gateway = Gateway::serve(command);
    if is_hidden {
        // What other processes of this user would read belongs to root.
        let environ = std::fs::metadata(format!("/proc/{}/environ", gateway.pid())).unwrap();
        assert_eq!(environ.uid(), 0);
    }
    let dumped = gateway.dumps_core("ABRT");
    let mut names = std::fs::read_dir(home.path())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name());
    let has_file = names.any(|name| name.to_string_lossy().starts_with("core"));
    assert!(
        dumped || !has_file,
        "the file is there although the kernel says that it is not"
    );
    dumped
}

#[test]
fn a_gateway_leaves_no_core_file() {
    assert!(!dumps(true));
    // Where the machine writes core files, the same gateway leaves one if it may.
    if !dumps(false) {
        println!("this machine writes no core files");
    }
}
