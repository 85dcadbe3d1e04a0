//! What one upstream's misfortune, or one participant's greed, does to others: latency of the
//! fourth upstream while another is killed, hangs or floods, and of a participant while another
//! calls without a pause.

use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::flags::Flags;
use crate::proc::{command, servers};
use crate::stage::{Server, Stage, split, stdio_table};
use crate::table::{Figures, median};
use crate::wires::token;

/// What happens to the other upstream.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    Nothing,
    Killed,
    Hung,
    Flooding,
}

/// What the other participant does.
const PARTICIPANTS: [(bool, &str); 2] = [
    (false, "two participants, the other silent"),
    (
        true,
        "the other greedy: 64 connections without a pause, the same upstream",
    ),
];
const GREEDY: &str = "greedy";
const MODEST: &str = "modest";

const ALL: [(Trouble, &str); 4] = [
    (Trouble::Nothing, "undisturbed"),
    (Trouble::Killed, "one killed, every 0.2 s"),
    (Trouble::Hung, "one stopped, with 64 calls open"),
    (Trouble::Flooding, "one flooding with log messages"),
];

/// Measures and prints.
pub fn run(stage: &Stage, flags: &Flags) {
    let servers = ["a", "b", "c", "d"].map(|name| {
        let (command, mut args) = stage.stdio_echo(&["legacy", "--flood", "--name", name]);
        if name == "c" {
            // The one that floods gives way on its core: what is asked is what it does to the
            // gateway, not to the load.
            args.splice(2..2, ["nice", "-n", "20"].map(str::to_owned));
        }
        stdio_table(name, &(command, args), "era = \"legacy\"")
    });
    let gateway = stage.gateway(19030, &servers.concat());
    stage.ready(gateway.port, "legacy", "d_echo");
    let people = participants(stage);
    let (mut seen, mut shared): ([Vec<Figures>; 4], [Vec<Figures>; 2]) = Default::default();
    for _ in 0..flags.get("--rounds", 5) {
        for ((trouble, _), seen) in ALL.iter().zip(&mut seen) {
            seen.push(measure(stage, &gateway, *trouble, flags.get("--secs", 2.0)));
        }
        for ((greedy, _), seen) in PARTICIPANTS.iter().zip(&mut shared) {
            seen.push(beside(stage, &people, *greedy, flags.get("--secs", 2.0)));
        }
    }
    let upstreams = ALL.iter().map(|(_, label)| *label).zip(&seen);
    print("other upstreams", "calls/s of the fourth", upstreams);
    println!();
    let participants = PARTICIPANTS.iter().map(|(_, label)| *label).zip(&shared);
    print(
        "other participant",
        "calls/s of the modest one",
        participants,
    );
}

fn print<'r>(first: &str, second: &str, rows: impl Iterator<Item = (&'r str, &'r Vec<Figures>)>) {
    println!("| {first} | {second} | wrong | p50 us | p99 us | max us | gateway CPU share |");
    println!("|---|---|---|---|---|---|---|");
    for (label, rounds) in rows {
        let of = |name| median(rounds, name);
        println!(
            "| {label} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.2} |",
            of("calls_per_s"),
            of("wrong"),
            of("p50_us"),
            of("p99_us"),
            of("max_us"),
            of("share")
        );
    }
}

/// A gateway with two participants and one upstream.
fn participants(stage: &Stage) -> Server {
    let mut config = stdio_table(
        "d",
        &stage.stdio_echo(&["legacy", "--name", "d"]),
        "era = \"legacy\"",
    );
    let mut env = Vec::new();
    for name in [GREEDY, MODEST] {
        config += &format!(
            "[participants.{name}]\ntoken_env = \"T_{name}\"\ncapabilities = [\"mcp/*\"]\n"
        );
        env.push((format!("T_{name}"), token(name)));
    }
    let gateway = stage.gateway_with(19031, &config, &env);
    stage.ready(
        gateway.port,
        "legacy",
        &format!("d_echo --bearer {}", token(MODEST)),
    );
    gateway
}

/// The calls of the modest participant.
fn beside(stage: &Stage, gateway: &Server, greedy: bool, secs: f64) -> Figures {
    let to = format!("--to 127.0.0.1:{} --tool d_echo", gateway.port);
    let aside = greedy.then(|| {
        stage.aside(&split(&format!(
            "{to} -c 64 --secs 60 --bearer {}",
            token(GREEDY)
        )))
    });
    let (bearer, pid) = (token(MODEST), gateway.pid());
    let words =
        format!("{to} -c 8 --rate 500 --warmup 0.5 --secs {secs} --pid {pid} --bearer {bearer}");
    let figures = stage.load(&split(&words));
    if let Some(mut aside) = aside {
        let _ = aside.kill();
        let _ = aside.wait();
    }
    figures
}

fn upstream(gateway: &Server, name: &str) -> Option<u32> {
    let ending = format!("--name {name}");
    servers(gateway.pid())
        .into_iter()
        .find(|pid| command(*pid).trim_end().ends_with(&ending))
}

fn signal(name: &str, pid: Option<u32>) {
    if let Some(pid) = pid {
        let _ = Command::new("kill").args([name, &pid.to_string()]).status();
    }
}

fn measure(stage: &Stage, gateway: &Server, trouble: Trouble, secs: f64) -> Figures {
    let to = format!("--to 127.0.0.1:{}", gateway.port);
    let rate = format!(
        "{to} --tool d_echo -c 8 --rate 500 --warmup 0.5 --secs {secs} --pid {}",
        gateway.pid()
    );
    let (mut aside, mut kills) = (None, None);
    match trouble {
        Trouble::Nothing => {}
        Trouble::Killed => {
            let times = (secs / 0.2) as usize;
            let find = gateway.pid();
            kills = Some(thread::spawn(move || {
                for _ in 0..times {
                    let hit = servers(find)
                        .into_iter()
                        .find(|pid| command(*pid).trim_end().ends_with("--name a"));
                    signal("-KILL", hit);
                    thread::sleep(Duration::from_millis(200));
                }
            }));
        }
        Trouble::Hung => {
            stage.ready(gateway.port, "legacy", "b_echo");
            signal("-STOP", upstream(gateway, "b"));
            aside = Some(stage.aside(&split(&format!("{to} --tool b_echo -c 64 --secs 60"))));
        }
        Trouble::Flooding => {
            stage.ready(gateway.port, "legacy", "c_echo");
            aside = Some(stage.aside(&split(&format!(
                "{to} --tool c_echo -c 1 --flood --secs 60"
            ))));
        }
    }
    let figures = stage.load(&split(&rate));
    if let Some(kills) = kills {
        let _ = kills.join();
    }
    if let Some(mut aside) = aside {
        let _ = aside.kill();
        let _ = aside.wait();
    }
    // The next round finds new children.
    match trouble {
        Trouble::Nothing | Trouble::Killed => {}
        Trouble::Hung => signal("-KILL", upstream(gateway, "b")),
        Trouble::Flooding => signal("-KILL", upstream(gateway, "c")),
    }
    figures
}
