//! Gateways in the background, and the end of the terminal at which one was started.

use std::process::Stdio;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::home::Home;
use crate::support::until;

#[test]
fn a_gateway_runs_in_the_background_until_it_is_stopped() {
    let home = Home::new();
    let started = home
        .run(&["start", "--listen", "127.0.0.1:0"])
        .expect(0)
        .stderr;
    assert!(
        started.contains("the gateway runs at http://127.0.0.1:"),
        "{started}"
    );
    assert!(
        started.contains("gateway.log") && started.contains("stop"),
        "{started}"
    );
    assert_eq!(
        home.run(&["tools", "call", "demo_echo", "text=hi"])
            .expect(0)
            .stdout,
        "hi\n"
    );
    let again = home
        .run(&["start", "--listen", "127.0.0.1:0"])
        .expect(1)
        .stderr;
    assert!(
        again.contains("[data_dir_locked]") && again.contains("a gateway runs already"),
        "{again}"
    );
    assert!(
        again.contains("kill ") && again.contains("--data-dir"),
        "{again}"
    );
    home.run(&["stop"]).expect(0);
    let none = home.run(&["stop"]).expect(1).stderr;
    assert!(none.contains("no gateway runs"), "{none}");
    home.run(&["servers", "ls"]).expect(1);
}

#[test]
fn a_gateway_that_cannot_start_in_the_background_says_why() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let failed = home.run(&["start", "--listen", &address]).expect(1).stderr;
    assert!(
        failed.contains("[not_started]") && failed.contains("cannot listen on"),
        "{failed}"
    );
    home.write("wrong.toml", "[sever]\n");
    let wrong = home
        .run(&["start", "--config", "wrong.toml"])
        .expect(2)
        .stderr;
    assert!(wrong.contains("unknown"), "{wrong}");
}

#[test]
fn a_gateway_ends_with_the_terminal_at_which_it_was_started() {
    let home = Home::new();
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = || {
        open(
            &*name,
            OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .unwrap()
    };
    let serve = home.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut command = std::process::Command::new("setsid");
    command
        .args(["--ctty", "--wait"])
        .arg(serve.get_program())
        .args(serve.get_args());
    command.current_dir(home.path()).env_clear();
    command.envs(
        serve
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command
        .stdin(Stdio::from(theirs()))
        .stdout(Stdio::from(theirs()))
        .stderr(Stdio::from(theirs()));
    let mut child = command.spawn().unwrap();
    drop(command);
    until("it runs", || {
        home.run(&["status"])
            .stdout
            .contains("ready      yes")
            .then_some(())
    });
    // What hangs up the terminal is its end.
    drop(ours);
    until("it ends", || {
        (home.run(&["status"]).code != 0).then_some(())
    });
    let _ = child.kill();
    let _ = child.wait();
}
