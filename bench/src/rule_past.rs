//! Trials of a change on the past: rules on the decisions that a topic keeps, by the API of a running
//! gateway, and capabilities on as many acts of the audit log, by the command line; each
//! beside reading the same files bare.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use model::OperationId;
use rules::{EVIDENCE_MAX, TOOL_RULES_MAX};
use serde_json::{Value, json};
use store::audit::{AuditEntry, AuditLog, EntryOrigin, LogFiles, Policy, RecordedVerdict};
use store::{Fold, JournalWriter};

use crate::flags::Flags;
use crate::stage::{SERVER, Stage, absolute};

/// The longest time for each of them.
const AIM: Duration = Duration::from_secs(2);
/// The times that each is measured.
const ROUNDS: usize = 5;
const PORT: u16 = 18_431;
const DAY_MS: u64 = 24 * 3_600_000;
const TOKEN: &str = "a-token-of-the-bench-that-is-long-enough";
/// Digest of the tool's definition, and of its server's configuration.
const DIGEST: &str = "abababababababababababababababababababababababababababababababab";
const PARTICIPANT: &str = "[participants.boss]\ntoken_env = \"TOKEN_BOSS\"\n";

/// Records of rules, as they are in the journal.
#[derive(Default)]
struct RawRules {
    applied: usize,
}

impl Fold for RawRules {
    const OWNER: &'static str = "rules";
    type Record = Value;

    fn apply(&mut self, _record: &Value) {
        self.applied += 1;
    }

    /// All of them, so that the journal sees nothing to compact.
    fn live(&self) -> usize {
        self.applied
    }

    fn records(&mut self, _now_ms: u64) -> Vec<Value> {
        panic!("nothing is compacted here")
    }
}

/// One row of the table.
struct Row {
    what: String,
    took: Duration,
    bare: Duration,
}

/// Measures both, prints the table, and returns what missed the aim.
pub fn run(flags: &Flags) -> Vec<String> {
    let stage = Stage::new(flags);
    let data = stage.home.join(format!("{PORT}.data"));
    let rows = [replayed(&stage, &data), tried(&stage)];
    println!(
        "| {EVIDENCE_MAX} recorded decisions | ms | read bare, ms | ratio |\n|---|---|---|---|"
    );
    for Row { what, took, bare } in &rows {
        println!(
            "| {what} | {:.0} | {:.0} | {:.1} |",
            millis(*took),
            millis(*bare),
            took.as_secs_f64() / bare.as_secs_f64()
        );
    }
    let slow = rows.iter().filter(|row| row.took > AIM);
    slow.map(|row| format!("{} took {:.1} s", row.what, row.took.as_secs_f64()))
        .collect()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// As many rules of one tool as there may be, tried on as many decisions as are kept.
fn replayed(stage: &Stage, data: &Path) -> Row {
    let config = format!(
        "{PARTICIPANT}capabilities = [\"mcp/*\", \"portmoot/*\"]\n[servers.bank]\ntype = \"demo\"\n"
    );
    let serve = stage.configured(PORT, &config);
    fs::create_dir_all(data).expect("a folder for the journal");
    let journal = JournalWriter::open(data).expect("a journal");
    let ledger = journal.ledger::<RawRules>().expect("the rules' part of it");
    let all: Vec<Value> = (0..EVIDENCE_MAX).map(decision).collect();
    for some in all.chunks(100) {
        ledger.append(some).expect("a record");
    }
    drop((ledger, journal));
    let bare = median(|| read_bare(&data.join("journal.jsonl")));
    let words = [vec![absolute(stage.portmoot())], serve].concat();
    let env = [("TOKEN_BOSS".to_owned(), TOKEN.to_owned())];
    let gateway = stage.serve_with(SERVER, PORT, &env, &words);
    let rules: String = (0..TOOL_RULES_MAX).map(rule).collect();
    let body = json!({ "rules": rules }).to_string();
    let took = median(|| {
        let answer = post(gateway.port, "/api/v1/topics/main/rules/replay", &body);
        let counted = format!("\"proposals\":{EVIDENCE_MAX}");
        assert!(
            answer.contains(&counted),
            "{}",
            &answer[..answer.len().min(2_000)]
        );
    });
    Row {
        what: format!("{TOOL_RULES_MAX} rules tried by the API"),
        took,
        bare,
    }
}

/// A decision about a payment to one of twice as many receivers as there are rules, one each minute.
fn decision(at: usize) -> Value {
    let receiver = at % (2 * TOOL_RULES_MAX);
    let arguments = json!({
        "amount": at % 500 + 1, "currency": "EUR",
        "to": { "iban": format!("DE{receiver:020}"), "name": format!("Receiver {receiver}") },
        "urgent": false,
    });
    let verdict = if at.is_multiple_of(9) {
        "rejected"
    } else {
        "approved"
    };
    json!({
        "record": "decided", "topic": "main", "operation": OperationId(at as u128 + 1).to_string(),
        "at_ms": now_ms() - 8 * DAY_MS + at as u64 * 60_000,
        "to": "bank", "method": "tools/call", "target": "pay", "definition": DIGEST,
        "server": DIGEST, "proposer": "scout", "by": "boss", "verdict": verdict,
        "weight": "deliberate", "arguments": arguments.to_string(),
    })
}

/// A rule for the payments to one receiver, with a rate and a sum to keep.
fn rule(at: usize) -> String {
    let end = wire::time::rfc3339(now_ms() + 20 * DAY_MS)[..19].to_owned();
    format!(
        "[[rule]]\nid = \"r{at}\"\nauthor = \"boss\"\ndecision = \"approve\"\n\
         kind = \"mcp/request:tools/call:pay\"\nto = \"bank\"\nproposers = [\"scout\"]\n\
         definition = \"{DIGEST}\"\nserver = \"{DIGEST}\"\nexpires = \"{end}Z\"\nuses = 9999\n\
         rate = \"12/h\"\nsum = [{{ of = \"/amount\", max = 100000, within = \"1d\" }}]\n\
         [rule.when]\n\"/amount\" = {{ integer = [1, 500] }}\n\"/currency\" = {{ equals = \"EUR\" }}\n\
         \"/to/iban\" = {{ equals = \"DE{at:020}\" }}\n\"/to/name\" = {{ equals = \"Receiver {at}\" }}\n\
         \"/urgent\" = {{ equals = false }}\n"
    )
}

/// The capabilities of another configuration, tried on as many decisions and calls of one participant.
fn tried(stage: &Stage) -> Row {
    let data = stage.home.join("tried.data");
    let config = stage.home.join("tried.toml");
    let other = stage.home.join("other.toml");
    let head = format!("[server]\ndata_dir = {:?}\n", data.display().to_string());
    fs::write(&config, head + PARTICIPANT).expect("a configuration");
    let fewer = format!("{PARTICIPANT}capabilities = [\"mcp/request:tools/call:read\"]\n");
    fs::write(&other, fewer).expect("another configuration");
    fs::create_dir_all(&data).expect("a folder for the log");
    let journal = JournalWriter::open(&data).expect("a journal");
    let audit = AuditLog::open(
        &journal,
        &[7; 32],
        0,
        Policy::default(),
        LogFiles::default(),
    )
    .expect("a log");
    for at in 0..EVIDENCE_MAX {
        let place = loop {
            match audit.reserve() {
                Ok(place) => break place,
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        place.write(&act(at));
    }
    audit.flush().expect("a log on disk");
    drop((audit, journal));
    let bare = median(|| {
        fs::read_dir(data.join("audit"))
            .expect("the log's files")
            .filter_map(|file| Some(file.ok()?.path()))
            .filter(|file| file.is_file())
            .for_each(|file| read_bare(&file));
    });
    let took = median(|| {
        let output = Command::new(stage.portmoot())
            .current_dir(&stage.home)
            .env("TOKEN_BOSS", TOKEN)
            .args(["participants", "can", "boss", "--since", "30d", "--with"])
            .arg(&other)
            .arg("--config")
            .arg(&config)
            .output()
            .expect("the program");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let half = (EVIDENCE_MAX / 2).to_string();
        assert!(
            output.status.success() && said.contains(&half),
            "{said}{output:?}"
        );
    });
    Row {
        what: "capabilities tried by `participants can --with`".to_owned(),
        took,
        bare,
    }
}

/// A call or a decision, one each minute.
fn act(at: usize) -> AuditEntry<'static> {
    let is_call = at.is_multiple_of(2);
    AuditEntry {
        at_ms: now_ms() - 8 * DAY_MS + at as u64 * 60_000,
        topic: Some("main"),
        from: "boss",
        origin: EntryOrigin::default(),
        kind: if is_call {
            "mcp/request:tools/call:pay".into()
        } else {
            "mcp/proposal:tools/call:pay".into()
        },
        own: None,
        to: &["bank"],
        verdict: if is_call {
            RecordedVerdict::Admitted
        } else {
            RecordedVerdict::Approved
        },
        why: Some("mcp/*"),
        operation: Some(OperationId(at as u128 + 1)),
        trace: None,
        digest: None,
        payload: Some(br#"{"name":"pay","arguments":{"amount":12}}"#),
    }
}

/// Reads each line of a file as JSON, and does nothing with it.
fn read_bare(file: &Path) {
    let lines = BufReader::new(File::open(file).expect("a file")).lines();
    for line in lines {
        let line = line.expect("a line");
        let _: Value = serde_json::from_str(&line).unwrap_or_default();
    }
}

fn post(port: u16, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the gateway");
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

/// The median time of an act.
fn median(mut act: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            act();
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}
