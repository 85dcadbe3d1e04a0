//! Instructions per operation in user space, by stage of its path, counted by callgrind.
//!
//! Each row runs the server twice, with different numbers of operations. The difference is divided,
//! so that the start does not count. SHA-256 is left out: processors do it in hardware, and
//! valgrind does not.

use std::collections::HashMap;
use std::fs;

use crate::callgrind::Profile;
use crate::flags::Flags;
use crate::instruction_rows::{CONFIG_PORT, Row, Served, UPSTREAM_PORT, rows};
use crate::path_stages::{PathStage, STAGES, by_stage, costly, on_behalf_of};
use crate::stage::{LOAD, SERVER, Server, Stage, absolute, split};

/// The most locks of a plain call to stdio.
const LOCKS_MAX: f64 = 14.0;

/// What one operation of a row costs.
struct Cost {
    stages: HashMap<PathStage, f64>,
    allocations: f64,
    locks: f64,
}

impl Cost {
    fn total(&self) -> f64 {
        self.stages.values().sum()
    }
}

/// Measures and prints: every row of `--portmoot`, and of `--before` if it is given.
///
/// # Panics
/// When valgrind is missing, or a server does not answer.
pub fn run(stage: &Stage, flags: &Flags) {
    let only = flags.text("--only", "");
    let rows: Vec<Row> = rows(stage)
        .into_iter()
        .filter(|row| row.label.contains(only))
        .collect();
    let mut before = HashMap::new();
    if flags.has("--before") {
        println!("## Before\n");
        before = table(stage, flags, &rows, flags.text("--before", ""), &before);
        println!("\n## After\n");
    }
    table(stage, flags, &rows, stage.portmoot(), &before);
}

fn table(
    stage: &Stage,
    flags: &Flags,
    rows: &[Row],
    binary: &str,
    before: &HashMap<&'static str, f64>,
) -> HashMap<&'static str, f64> {
    let names: Vec<&str> = STAGES.iter().map(|(_, name)| *name).collect();
    println!(
        "| operation | total | before | aim | {} | allocations | locks |",
        names.join(" | ")
    );
    println!("|---|{}", "---|".repeat(names.len() + 5));
    let binary = absolute(binary);
    let (mut totals, mut over) = (HashMap::new(), Vec::new());
    for row in rows {
        let cost = measure(stage, flags, row, &binary);
        let whole = |cost: f64| thousands(cost);
        let stages: Vec<String> = STAGES
            .iter()
            .map(|(at, _)| whole(cost.stages.get(at).copied().unwrap_or(0.0)))
            .collect();
        println!(
            "| {} | {} | {} | {} | {} | {:.1} | {} |",
            row.label,
            whole(cost.total()),
            before
                .get(row.label)
                .map_or("-".to_owned(), |cost| whole(*cost)),
            row.aim.map_or("-".to_owned(), |aim| whole(aim as f64)),
            stages.join(" | "),
            cost.allocations,
            if cost.locks > 0.0 {
                format!("{:.1}", cost.locks)
            } else {
                "-".to_owned()
            },
        );
        totals.insert(row.label, cost.total());
        over.extend(beyond(row, &cost, flags.has("--locks")));
    }
    assert!(
        !flags.has("--check") || over.is_empty(),
        "beyond the aims:\n{}",
        over.join("\n")
    );
    totals
}

/// The aims that a row misses. A build that counts locks is not optimized: only its locks count.
fn beyond(row: &Row, cost: &Cost, of_locks: bool) -> Option<String> {
    let allocations = match row.label {
        label if label.starts_with("in process, legacy") => 14.0,
        label if label.starts_with("to stdio, legacy") => 12.0,
        _ => f64::MAX,
    };
    let is_within = match of_locks {
        true => !row.label.starts_with("to stdio, legacy") || cost.locks.round() <= LOCKS_MAX,
        false => {
            row.aim.is_none_or(|aim| cost.total() <= aim as f64)
                && cost.allocations.round() <= allocations
        }
    };
    let (total, allocations, locks) = (cost.total(), cost.allocations, cost.locks);
    let what = format!(
        "{}: {total:.0} instructions, {allocations:.1} allocations, {locks:.1} locks",
        row.label
    );
    (!is_within).then_some(what)
}

/// A count with its thousands apart.
fn thousands(count: f64) -> String {
    let digits = format!("{count:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn measure(stage: &Stage, flags: &Flags, row: &Row, binary: &str) -> Cost {
    let few = profile(stage, row, binary, &row.few);
    let profile = profile(stage, row, binary, &row.many).minus(&few);
    let per = row.operations;
    let calls =
        |fits: &dyn Fn(&str) -> bool| profile.callers(fits).values().sum::<u64>() as f64 / per;
    let stages = by_stage(&profile)
        .into_iter()
        .map(|(stage, cost)| (stage, cost / per))
        .collect();
    let (allocations, locks) = (calls(&is_allocation), calls(&is_lock));
    if flags.has("--functions") {
        eprintln!("\n{}", row.label);
        for (name, cost) in costly(&profile, flags.get("--functions", 40)) {
            eprintln!("{:>10.0}  {name}", cost as f64 / per);
        }
        explain("allocations", &profile, per, is_allocation);
        explain("locks", &profile, per, is_lock);
        explain("copies", &profile, per, |symbol| {
            symbol.contains("memcpy") || symbol.contains("memmove")
        });
        explain("clocks", &profile, per, |symbol| {
            symbol.contains("clock_gettime")
        });
    }
    Cost {
        stages,
        allocations,
        locks,
    }
}

/// Names the functions of stages for which some functions were called, directly or by libraries.
fn explain(what: &str, profile: &Profile, per: f64, fits: impl Fn(&str) -> bool) {
    for (name, count) in on_behalf_of(profile, fits)
        .into_iter()
        .filter(|(_, count)| *count / per >= 0.05)
    {
        eprintln!("{:>10.2} {what} by {name}", count / per);
    }
}

fn is_allocation(symbol: &str) -> bool {
    [
        "malloc",
        "calloc",
        "realloc",
        "posix_memalign",
        "aligned_alloc",
    ]
    .contains(&symbol)
}

/// The function that a build with the feature `count_locks` calls for each lock.
fn is_lock(symbol: &str) -> bool {
    symbol.contains("platform") && symbol.contains("counted") && symbol.contains("acquired")
}

fn profile(stage: &Stage, row: &Row, binary: &str, load: &str) -> Profile {
    let out = stage.home.join("callgrind.out");
    let _ = fs::remove_file(&out);
    let upstream = row
        .upstream
        .map(|era| stage.own_server(LOAD, "echo", "http", UPSTREAM_PORT, &[era]));
    let server = serve(stage, row, binary, &out.display().to_string());
    for words in &row.before {
        stage.play(CONFIG_PORT, row.label, words);
    }
    stage.play(CONFIG_PORT, row.label, load);
    drop(server);
    drop(upstream);
    let text = fs::read(&out).expect("a profile");
    Profile::read(&String::from_utf8_lossy(&text))
}

fn serve(stage: &Stage, row: &Row, binary: &str, out: &str) -> Server {
    let mut words = split("valgrind --quiet --tool=callgrind --demangle=no --fair-sched=try");
    words.push(format!("--callgrind-out-file={out}"));
    match &row.served {
        Served::Floor => words.extend([
            stage.own("floor"),
            "hyper".to_owned(),
            CONFIG_PORT.to_string(),
        ]),
        Served::Gateway(config) => {
            words.push(binary.to_owned());
            words.extend(stage.configured(CONFIG_PORT, config));
        }
    }
    let server = stage.serve(SERVER, CONFIG_PORT, &words);
    if let Some((era, tool, bearer)) = &row.ready {
        stage.ready(CONFIG_PORT, era, &format!("{tool} {bearer}"));
    }
    server
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_readable() {
        for (count, text) in [
            (0.0, "0"),
            (999.4, "999"),
            (1000.0, "1,000"),
            (6_123_456.0, "6,123,456"),
        ] {
            assert_eq!(thousands(count), text);
        }
    }
}
