//! Core files of a gateway that holds secrets.
#![cfg(target_os = "linux")]

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::KEY;
use crate::home::Home;
use crate::support::Gateway;

/// Whether a gateway with this configuration leaves a core file when it crashes, on a machine that allows it to.
fn dumps(config: &str) -> bool {
    let home = Home::new();
    let key = home.write("key", KEY);
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    home.write("portmoot.toml", config);
    let serve = home.command(&["serve", "--listen", "127.0.0.1:0", "--config", "portmoot.toml"]);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -c unlimited; exec \"$0\" \"$@\""]);
    command.arg(serve.get_program()).args(serve.get_args()).current_dir(home.path());
    command.env_clear().envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let gateway = Gateway::serve(command);
    let dumped = gateway.dumps_core("ABRT");
    let mut names = std::fs::read_dir(home.path()).unwrap().flatten().map(|entry| entry.file_name());
    let has_file = names.any(|name| name.to_string_lossy().starts_with("core"));
    assert!(dumped || !has_file, "the file is there although the kernel says that it is not");
    dumped
}

#[test]
fn a_gateway_with_a_key_leaves_no_core_file() {
    assert!(!dumps("[server]\nkey_file = \"key\"\n[topics.main]\n"));
    // Without secrets it is as every program: where the machine writes core files, it does.
    if !dumps("[topics.main]\n") {
        println!("this machine writes no core files");
    }
}
