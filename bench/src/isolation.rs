//! What one upstream's misfortune does to another: latency of the fourth while another is killed, hangs or floods.

use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::flags::Flags;
use crate::proc::{children, command};
use crate::stage::{Server, Stage, split, stdio_table};
use crate::table::{Figures, median};

/// What happens to the other upstream.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    Nothing,
    Killed,
    Hung,
    Flooding,
}

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
            // The one that floods gives way on its core: what is asked is what it does to the gateway, not to the load.
            args.splice(2..2, ["nice", "-n", "20"].map(str::to_owned));
        }
        stdio_table(name, &(command, args), "era = \"legacy\"")
    });
    let gateway = stage.gateway(19030, &servers.concat());
    stage.ready(gateway.port, "legacy", "d_echo");
    let mut seen: [Vec<Figures>; 4] = Default::default();
    for _ in 0..flags.get("--rounds", 5) {
        for ((trouble, _), seen) in ALL.iter().zip(&mut seen) {
            seen.push(measure(stage, &gateway, *trouble, flags.get("--secs", 2.0)));
        }
    }
    println!(
        "| other upstreams | calls/s of the fourth | wrong | p50 us | p99 us | max us | gateway CPU share |"
    );
    println!("|---|---|---|---|---|---|---|");
    for ((_, label), rounds) in ALL.iter().zip(&seen) {
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

fn upstream(gateway: &Server, name: &str) -> Option<u32> {
    let ending = format!("--name {name}");
    children(gateway.pid()).into_iter().find(|pid| command(*pid).trim_end().ends_with(&ending))
}

fn signal(name: &str, pid: Option<u32>) {
    if let Some(pid) = pid {
        let _ = Command::new("kill").args([name, &pid.to_string()]).status();
    }
}

fn measure(stage: &Stage, gateway: &Server, trouble: Trouble, secs: f64) -> Figures {
    let to = format!("--to 127.0.0.1:{}", gateway.port);
    let rate =
        format!("{to} --tool d_echo -c 8 --rate 500 --warmup 0.5 --secs {secs} --pid {}", gateway.pid());
    let (mut aside, mut kills) = (None, None);
    match trouble {
        Trouble::Nothing => {}
        Trouble::Killed => {
            let times = (secs / 0.2) as usize;
            let find = gateway.pid();
            kills = Some(thread::spawn(move || {
                for _ in 0..times {
                    let hit =
                        children(find).into_iter().find(|pid| command(*pid).trim_end().ends_with("--name a"));
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
            aside = Some(stage.aside(&split(&format!("{to} --tool c_echo -c 1 --flood --secs 60"))));
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
