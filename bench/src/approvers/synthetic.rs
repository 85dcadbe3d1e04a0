//! A trace of a seeded generator, which stands where no recorded trace is: five agents, seven tools, a
//! hidden policy on arguments, and what may go wrong beside it.

use model::Digest;
use serde_json::{Value, json};

use super::trace::{Draw, EvaluatedTrace, HiddenPolicy, TRACE_DAYS, TracedCall};

/// The calls of a synthetic trace.
pub const SYNTHETIC_CALLS: usize = 4_000;
/// The part of the calls after which the policy changes, in percent.
pub const POLICY_CHANGES_AT: usize = 60;
/// The part of the calls after which two tools have another definition, in percent.
pub const TOOLS_CHANGE_AT: usize = 80;

/// Disturbances of a synthetic trace, beside calls and a policy on their arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Twist {
    /// The percentage of approvals that are rejected for no reason that arguments show.
    pub coin: u64,
    /// The percentage of decisions in which the reviewer errs.
    pub mistakes: u64,
    /// Whether the policy changes at [`POLICY_CHANGES_AT`], and definitions at [`TOOLS_CHANGE_AT`].
    pub changes: bool,
}

/// The trace of a seed.
pub fn synthetic(seed: u64) -> EvaluatedTrace {
    twisted(seed, Twist::default())
}

/// The trace of a seed with a twist.
pub fn twisted(seed: u64, twist: Twist) -> EvaluatedTrace {
    let mut draw = Draw(seed);
    let calls = (0..SYNTHETIC_CALLS).map(|at| made(&mut draw, at, twist));
    let name = format!("synthetic, seed {seed}");
    EvaluatedTrace::over_days(name, calls.collect(), is_approved, TRACE_DAYS)
}

/// Whether a place of a trace lies behind a change.
pub fn is_behind(at: usize, percent: usize) -> bool {
    at * 100 >= SYNTHETIC_CALLS * percent
}

/// A call, and what the hidden policy says.
fn made(draw: &mut Draw, at: usize, twist: Twist) -> TracedCall {
    let agents = ["scout", "builder", "mailer", "buyer", "clerk"];
    let agent = agents[draw.below(5) as usize];
    let (tool, arguments) = match draw.below(7) {
        0 => issue(draw),
        1 => payment(draw),
        2 => file(draw),
        3 => user(draw),
        4 => mail(draw),
        5 => command(draw),
        _ => booking(draw),
    };
    let is_later = twist.changes && is_behind(at, POLICY_CHANGES_AT);
    let policy: HiddenPolicy = if is_later {
        is_approved_later
    } else {
        is_approved
    };
    let is_approved = policy(tool, &arguments) && !happens(draw, twist.coin);
    let mut call =
        TracedCall::new(agent, "server", tool, arguments.to_string()).decided(is_approved);
    call.is_mistaken = happens(draw, twist.mistakes);
    let is_redefined = twist.changes && is_behind(at, TOOLS_CHANGE_AT);
    if is_redefined && matches!(tool, "read_file" | "book") {
        call.definition = Digest([0xCD; 32]);
    }
    call
}

/// Whether something of this percentage happens. What never does draws no number.
fn happens(draw: &mut Draw, percent: u64) -> bool {
    percent > 0 && draw.below(100) < percent
}

/// The hidden policy.
fn is_approved(tool: &str, arguments: &Value) -> bool {
    let text = |name: &str| arguments[name].as_str().unwrap_or_default();
    match tool {
        "create_issue" => text("repo") != "acme/secrets",
        "pay" => arguments["amount"].as_i64().is_some_and(|most| most <= 150),
        "read_file" => text("path").starts_with("/srv/docs/"),
        "send_mail" => text("to").ends_with("@acme.com"),
        "run" => !text("command").starts_with("rm"),
        "book" => text("cabin") == "economy",
        _ => true,
    }
}

/// The hidden policy after its change: smaller payments, no bookings of several seats, and one folder
/// less.
fn is_approved_later(tool: &str, arguments: &Value) -> bool {
    let is_refused_now = match tool {
        "pay" => arguments["amount"].as_i64().is_some_and(|most| most > 100),
        "read_file" => arguments["path"]
            .as_str()
            .is_some_and(|path| path.starts_with("/srv/docs/c/")),
        "book" => arguments["seats"].as_i64().is_some_and(|seats| seats > 1),
        _ => false,
    };
    is_approved(tool, arguments) && !is_refused_now
}

type Made = (&'static str, Value);

fn issue(draw: &mut Draw) -> Made {
    let repo = draw.often(&["acme/site", "acme/docs", "acme/api", "acme/secrets"]);
    let title = draw.often(&["Nightly report", "Weekly report", "Broken build"]);
    let arguments = json!({ "repo": repo, "title": title, "labels": ["bot"] });
    ("create_issue", arguments)
}

fn payment(draw: &mut Draw) -> Made {
    let amount = 1 + draw.below(20) * (1 + draw.below(12));
    let account = format!("AC-{}", 100 + draw.below(900));
    ("pay", json!({ "account": account, "amount": amount }))
}

fn file(draw: &mut Draw) -> Made {
    let folder = draw.often(&["/srv/docs/a", "/srv/docs/b", "/srv/docs/c", "/etc/ssh"]);
    let path = format!("{folder}/f{}.md", draw.below(400));
    ("read_file", json!({ "path": path }))
}

fn user(draw: &mut Draw) -> Made {
    let name = draw.often(&["mia", "li", "omar"]);
    let user = format!("{name}_k_{}", 1000 + draw.below(9000));
    ("get_user", json!({ "user_id": user }))
}

fn mail(draw: &mut Draw) -> Made {
    let to = draw.often(&["team@acme.com", "ops@acme.com", "all@evil.com"]);
    let subject = format!("news of day {}", draw.below(2_000));
    ("send_mail", json!({ "to": to, "subject": subject }))
}

fn command(draw: &mut Draw) -> Made {
    let command = draw.often(&["make test", "make lint", "git status", "rm -rf build"]);
    ("run", json!({ "command": command }))
}

fn booking(draw: &mut Draw) -> Made {
    let cabin = draw.often(&["economy", "business"]);
    let flight = format!("HAT{}", 100 + draw.below(200));
    let arguments = json!({ "cabin": cabin, "flight": flight, "seats": 1 + draw.below(3) });
    ("book", arguments)
}
