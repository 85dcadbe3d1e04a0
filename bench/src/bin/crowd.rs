//! The load of the fan-out bench: a crowd in one room, one line of figures.
//!
//! `crowd --to 127.0.0.1:PORT [--wire ws|bare|nats] [--members N] [--talkers N] [--first N] [--size BYTES] [--kind KIND] [--warmup S] [--secs S] [--pid PID]...`
//! and one of `--window N --burst N`: closed loop, at most so many messages that not everybody has
//! heard.
//! `--rate MESSAGES_PER_S`: open loop, latency from the time when a message was due.
//! `--idle [--topics N]`: nobody talks; tells the memory of each connection.
//! `--join`: tells how long it takes until everybody is in and has heard of everybody.
//! `--rooms N`: so many topics, with so many members and talkers each. `--refused`: every message
//! is refused, and that is waited for. `--deaf N`: the last members do not read.

use std::time::{Duration, Instant};

use portmoot_bench::crowd::{Crowd, Plan};
use portmoot_bench::flags::Flags;
use portmoot_bench::proc::{cpu_ns, rss_kib, rss_max_kib};
use portmoot_bench::wires::Wire;

/// Connections that are let in before one waits for them, where joining is not what is measured.
const WAVE: usize = 20;
/// Silence after which everybody is thought to be in.
const QUIET: Duration = Duration::from_millis(100);

fn main() {
    let flags = Flags::read();
    let pids: Vec<u32> = flags
        .all("--pid")
        .iter()
        .map(|pid| pid.parse().expect("a process id"))
        .collect();
    let plan = |room: usize, rooms: usize| Plan {
        wire: Wire::read(flags.text("--wire", "ws")),
        to: flags.text("--to", "127.0.0.1:7070").to_owned(),
        members: flags.get("--members", 100),
        talkers: if flags.has("--idle") || flags.has("--join") {
            0
        } else {
            flags.get("--talkers", 1)
        },
        topics: flags.get("--topics", 1),
        first: flags.get("--first", 0) + room,
        stride: if rooms == 1 {
            1
        } else {
            flags.get("--topics", 1)
        },
        deaf: flags.get("--deaf", 0),
        size: flags.get("--size", 350),
        kind: flags.text("--kind", "chat").to_owned(),
        refused: flags.has("--refused"),
    };
    if flags.has("--idle") {
        idle(plan(0, 1), &pids);
    } else if flags.has("--join") {
        join(plan(0, 1), &pids);
    } else {
        let rooms = flags.get("--rooms", 1);
        talk(
            (0..rooms).map(|room| plan(room, rooms)).collect(),
            &flags,
            &pids,
        );
    }
}

fn let_in(crowd: &mut Crowd, mut count: usize) {
    while count > 0 {
        let wave = count.min(WAVE);
        crowd.enter(wave);
        crowd.settle(Duration::from_millis(2));
        count -= wave;
    }
    crowd.settle(QUIET);
}

fn idle(plan: Plan, pids: &[u32]) {
    let count = plan.members - WAVE;
    let mut crowd = Crowd::new(plan);
    // What the first ones cost once is nobody's own.
    let_in(&mut crowd, WAVE);
    let before = rss_kib(pids);
    let_in(&mut crowd, count);
    let after = rss_kib(pids);
    let each = after.saturating_sub(before) as f64 / count as f64;
    println!(
        "before_kib={before} after_kib={after} kib_each={each:.2} wrong={}",
        crowd.seen.wrong
    );
}

fn join(plan: Plan, pids: &[u32]) {
    let members = plan.members as u64;
    // Each hears a welcome, its own presence, and that of everybody after it.
    let expected = members + members * (members + 1) / 2;
    let mut crowd = Crowd::new(plan);
    let (begun, cpu) = (Instant::now(), cpu_ns(pids));
    crowd.enter(members as usize);
    let connected = begun.elapsed();
    while crowd.seen.others < expected && begun.elapsed() < Duration::from_secs(30) {
        crowd.turn(Duration::from_millis(5));
    }
    let took = crowd.seen.last.map_or(begun.elapsed(), |last| last - begun);
    let cpu = cpu_ns(pids) - cpu;
    println!(
        "join_ms={:.1} connected_ms={:.1} cpu_ms={:.1} missing={} wrong={}",
        took.as_secs_f64() * 1e3,
        connected.as_secs_f64() * 1e3,
        cpu as f64 / 1e6,
        expected.saturating_sub(crowd.seen.others),
        crowd.seen.wrong + expected.abs_diff(crowd.seen.others),
    );
}

/// How it is talked.
enum Pace {
    Closed { window: usize, burst: usize },
    Open { every: Duration, due: Instant },
}

impl Pace {
    fn go_on(&mut self, crowd: &mut Crowd) -> Duration {
        match self {
            Self::Closed { window, burst } => {
                while crowd.on_the_way() + *burst <= *window {
                    crowd.say(*burst, Instant::now());
                }
                Duration::from_millis(50)
            }
            Self::Open { every, due } => {
                let now = Instant::now();
                while *due <= now {
                    crowd.say(1, *due);
                    *due += *every;
                }
                // Waiting has the grain of a millisecond, so the last one is spent looking.
                Duration::from_millis((*due - now).as_millis().saturating_sub(1) as u64)
            }
        }
    }
}

fn talk(plans: Vec<Plan>, flags: &Flags, pids: &[u32]) {
    let (rooms, deaf) = (
        plans.len(),
        plans.iter().map(|plan| plan.deaf).sum::<usize>(),
    );
    let mut crowds: Vec<Crowd> = Vec::new();
    for plan in plans {
        let members = plan.members;
        let mut crowd = Crowd::new(plan);
        let_in(&mut crowd, members);
        crowd.deafen();
        crowds.push(crowd);
    }
    let before = rss_kib(pids);
    let mut pace = match flags.get("--rate", 0.0) {
        0.0 => Pace::Closed {
            window: flags.get("--window", 1),
            burst: flags.get("--burst", 1),
        },
        rate => Pace::Open {
            every: Duration::from_secs_f64(1.0 / rate),
            due: Instant::now(),
        },
    };
    let mut run = |crowds: &mut [Crowd], secs: f64| {
        let begun = Instant::now();
        while begun.elapsed().as_secs_f64() < secs {
            for crowd in &mut *crowds {
                let wait = pace.go_on(crowd);
                // Several take turns, and none of them sleeps.
                crowd.turn(if rooms == 1 { wait } else { Duration::ZERO });
            }
        }
        begun.elapsed().as_secs_f64()
    };
    let delivered = |crowds: &[Crowd]| {
        crowds
            .iter()
            .map(|crowd| crowd.seen.deliveries)
            .sum::<u64>()
    };
    run(&mut crowds, flags.get("--warmup", 0.2));
    crowds
        .iter_mut()
        .for_each(|crowd| crowd.seen.measuring = true);
    let (cpu, own, already) = (
        cpu_ns(pids),
        cpu_ns(&[std::process::id()]),
        delivered(&crowds),
    );
    let took = run(&mut crowds, flags.get("--secs", 0.5));
    let (cpu, own) = (cpu_ns(pids) - cpu, cpu_ns(&[std::process::id()]) - own);
    crowds
        .iter_mut()
        .for_each(|crowd| crowd.seen.measuring = false);
    let delivered = delivered(&crowds) - already;
    let begun = Instant::now();
    let on_the_way = |crowds: &[Crowd]| crowds.iter().map(Crowd::on_the_way).sum::<usize>();
    while on_the_way(&crowds) > 0 && begun.elapsed() < Duration::from_secs(2) {
        crowds
            .iter_mut()
            .for_each(|crowd| crowd.turn(Duration::from_millis(5)));
    }
    let cut = if deaf > 0 {
        crowds.iter_mut().map(Crowd::cut_off).sum()
    } else {
        0
    };
    let mut nanos: Vec<u32> = crowds
        .iter_mut()
        .flat_map(|crowd| std::mem::take(&mut crowd.seen.nanos))
        .collect();
    nanos.sort_unstable();
    let last = nanos.len().saturating_sub(1);
    let at = |share: f64| {
        let place = ((last as f64 * share).round() as usize).min(last);
        f64::from(nanos.get(place).copied().unwrap_or(0)) / 1e3
    };
    println!(
        "messages={} cpu_ns={:.1} per_s={:.0} p50_us={:.1} p99_us={:.1} share={:.2} load_share={:.2} wrong={} lost={} orders={} grown_kib={} cut={cut}",
        nanos.len(),
        cpu as f64 / delivered.max(1) as f64,
        delivered as f64 / took,
        at(0.5),
        at(0.99),
        cpu as f64 / 1e9 / took,
        own as f64 / 1e9 / took,
        crowds.iter().map(|crowd| crowd.seen.wrong).sum::<u64>(),
        on_the_way(&crowds),
        crowds.iter().map(Crowd::orders).max().unwrap_or(0),
        rss_max_kib(pids).saturating_sub(before),
    );
}
