//! The audit log against its floor: ready-made lines of the same length, written by one thread that
//! takes what has gathered and calls fdatasync once for it. Two loads: as much as it takes, and a
//! steady rate.
//!
//!     audit --dir DIR --rounds 3 --secs 1.0 --rate 20000
//!
//! Works in a new folder inside DIR, and removes only that.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use portmoot_bench::flags::Flags;
use portmoot_bench::table::{Figures, median};
use store::JournalWriter;
use store::audit::{
    AUDIT_BYTES_MAX, AUDIT_GATHER_MS, AuditEntry, AuditLog, EntryOrigin, LogFiles, Payloads,
    Policy, REDACTED, RecordedVerdict, verify,
};

const KIND: &str = "mcp/request:tools/call:create_issue";
const PAYLOAD: &[u8] =
    br#"{"name":"create_issue","arguments":{"title":"It is slow","labels":["bug","speed"],"n":12.50}}"#;

fn entry(at_ms: u64) -> AuditEntry<'static> {
    AuditEntry {
        at_ms,
        topic: Some("main"),
        from: "robot-alpha",
        origin: EntryOrigin::default(),
        kind: KIND.into(),
        own: None,
        to: &["github"],
        verdict: RecordedVerdict::Admitted,
        why: Some("mcp/request:tools/call:*"),
        operation: Some(model::OperationId(u128::from(at_ms) << 64 | 0x9e37_79b9)),
        trace: None,
        digest: None,
        payload: Some(PAYLOAD),
    }
}

/// Calls `put` for this time, at this rate, or at rate 0 whenever `put` says that it has room.
/// Gives how often it took one.
fn drive(secs: f64, rate: u64, mut put: impl FnMut(u64) -> bool) -> u64 {
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed().as_secs_f64() < secs {
        let due = match rate {
            0 => count + 256,
            rate => (start.elapsed().as_secs_f64() * rate as f64) as u64,
        };
        while count < due && put(count) {
            count += 1;
        }
        if rate > 0 {
            thread::sleep(Duration::from_millis(1));
        } else if count < due {
            thread::sleep(Duration::from_micros(200));
        }
    }
    count
}

fn floor(dir: &Path, secs: f64, rate: u64, line: &[u8]) -> u64 {
    let mut file = File::create(dir.join("floor")).unwrap();
    let (queue, wake, end) = (
        Mutex::new(Vec::new()),
        Condvar::new(),
        AtomicBool::new(false),
    );
    thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                let mut waiting = queue.lock().unwrap();
                while waiting.is_empty() && !end.load(Ordering::Relaxed) {
                    waiting = wake
                        .wait_timeout(waiting, Duration::from_millis(10))
                        .unwrap()
                        .0;
                }
                if rate > 0 {
                    drop(waiting);
                    thread::sleep(Duration::from_millis(AUDIT_GATHER_MS));
                    waiting = queue.lock().unwrap();
                }
                let group: Vec<u8> = std::mem::take(&mut waiting);
                drop(waiting);
                if group.is_empty() {
                    return;
                }
                file.write_all(&group).unwrap();
                file.sync_data().unwrap();
            }
        });
        let count = drive(secs, rate, |_| {
            let mut waiting = queue.lock().unwrap();
            let room = waiting.len() < AUDIT_BYTES_MAX;
            if room {
                let wakes = waiting.is_empty();
                waiting.extend_from_slice(line);
                drop(waiting);
                if wakes {
                    wake.notify_one();
                }
            }
            room
        });
        end.store(true, Ordering::Relaxed);
        wake.notify_one();
        count
    })
}

fn audit(dir: &Path, secs: f64, rate: u64, payloads: Payloads) -> u64 {
    let journal = JournalWriter::open(dir).unwrap();
    let audit = AuditLog::open(
        &journal,
        &[7; 32],
        0,
        Policy::new(payloads, &REDACTED),
        LogFiles::default(),
    )
    .unwrap();
    let count = drive(secs, rate, |at| {
        audit.reserve().map(|place| place.write(&entry(at))).is_ok()
    });
    audit.flush().unwrap();
    count
}

/// How long one waits for an entry that must come first, against a line and an fdatasync.
fn wait(dir: &Path, count: u64) -> [f64; 4] {
    let journal = JournalWriter::open(dir).unwrap();
    let audit = AuditLog::open(
        &journal,
        &[7; 32],
        0,
        Policy::default(),
        LogFiles::default(),
    )
    .unwrap();
    let mut file = File::create(dir.join("floor")).unwrap();
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    for at in 0..count {
        let start = Instant::now();
        let (tell, told) = mpsc::sync_channel(1);
        audit
            .reserve()
            .unwrap()
            .write_then(&entry(at), move |result| tell.send(result).unwrap());
        told.recv().unwrap().unwrap();
        ours.push(start.elapsed().as_secs_f64() * 1e6);
        let start = Instant::now();
        file.write_all(&[b'x'; 350]).unwrap();
        file.sync_data().unwrap();
        floors.push(start.elapsed().as_secs_f64() * 1e6);
    }
    ours.sort_by(f64::total_cmp);
    floors.sort_by(f64::total_cmp);
    let at = |sorted: &[f64], part: f64| sorted[((sorted.len() - 1) as f64 * part) as usize];
    [
        at(&floors, 0.5),
        at(&floors, 0.99),
        at(&ours, 0.5),
        at(&ours, 0.99),
    ]
}

fn measure(dir: &Path, run: impl FnOnce(&Path) -> u64) -> Figures {
    fresh(dir);
    let (cpu, start) = (cpu_secs(), Instant::now());
    let count = run(dir);
    let (cpu, secs) = (cpu_secs() - cpu, start.elapsed().as_secs_f64());
    let (cpu, count) = (cpu * 1e6 / count as f64, count as f64 / secs);
    Figures::read(&format!("cpu={cpu} rate={count}"))
}

/// CPU time of this process with all threads that it had, in steps of 10 ms.
fn cpu_secs() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn main() {
    let flags = Flags::read();
    // A folder of its own: what else stands in `--dir` is not the bench's to remove.
    let own = format!("portmoot-audit-{}", std::process::id());
    let dir = &Path::new(flags.text("--dir", "target")).join(own);
    let (rounds, secs) = (flags.get("--rounds", 3), flags.get("--secs", 2.0));
    let paced = flags.get("--rate", 50_000);
    // First, while the disk has nothing else to do.
    let [floor50, floor99, ours50, ours99] = wait(&fresh(dir), 300);
    println!(
        "\nOne entry that must come first, us: fdatasync p50 {floor50:.0} p99 {floor99:.0}; audit p50 {ours50:.0} p99 {ours99:.0}"
    );
    let mut line = Vec::new();
    audit(&fresh(dir), 0.01, 1_000, Payloads::Full);
    store::audit::query(dir, &store::audit::EntryFilter::default(), |_, text| {
        line = text.as_bytes().to_vec();
        std::ops::ControlFlow::Break(())
    })
    .unwrap();
    line.push(b'\n');
    println!("Lines of {} bytes.\n", line.len());
    println!("| load | variant | entries/s | CPU us/entry | x floor |\n|---|---|---|---|---|");
    for (load, rate) in [("saturated".to_owned(), 0), (format!("{paced}/s"), paced)] {
        let mut found = vec![Vec::new(); 4];
        for _ in 0..rounds {
            found[0].push(measure(dir, |dir| floor(dir, secs, rate, &line)));
            for (at, payloads) in [Payloads::None, Payloads::Digest, Payloads::Full]
                .into_iter()
                .enumerate()
            {
                found[at + 1].push(measure(dir, |dir| audit(dir, secs, rate, payloads)));
                let report = verify(dir, None).unwrap().unwrap();
                assert!(report.is_whole(), "{report:?}");
            }
        }
        let names = [
            "floor",
            "audit, no payloads",
            "audit, digests",
            "audit, payloads in full",
        ];
        for (name, figures) in names.iter().zip(&found) {
            let (cpu, floor) = (median(figures, "cpu"), median(&found[0], "cpu"));
            let entries = median(figures, "rate");
            println!(
                "| {load} | {name} | {entries:.0} | {cpu:.2} | {:.2} |",
                cpu / floor
            );
        }
    }
    let _ = fs::remove_dir_all(dir);
}

fn fresh(dir: &Path) -> std::path::PathBuf {
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).unwrap();
    dir.to_owned()
}
