//! A trace of a seeded generator, which stands where no recorded trace is: five agents, seven
//! tools, a hidden policy on arguments.

use serde_json::{Value, json};

use super::trace::{Draw, EvaluatedTrace, TracedCall};

/// The calls of a synthetic trace.
pub const SYNTHETIC_CALLS: usize = 4_000;

/// The trace of a seed.
pub fn synthetic(seed: u64) -> EvaluatedTrace {
    let mut draw = Draw(seed);
    EvaluatedTrace {
        name: format!("synthetic, seed {seed}"),
        calls: (0..SYNTHETIC_CALLS).map(|_| made(&mut draw)).collect(),
    }
}

/// The trace of a seed in which a percentage of the approvals is rejected for no reason that
/// arguments show.
pub fn synthetic_with_coin(seed: u64, percent: u64) -> EvaluatedTrace {
    let mut draw = Draw(seed);
    let calls = (0..SYNTHETIC_CALLS).map(|_| {
        let mut call = made(&mut draw);
        call.is_approved &= draw.below(100) >= percent;
        call
    });
    EvaluatedTrace {
        name: format!("synthetic, seed {seed}, {percent} % rejected at random"),
        calls: calls.collect(),
    }
}

/// A call, and what the hidden policy says.
fn made(draw: &mut Draw) -> TracedCall {
    let agents = ["scout", "builder", "mailer", "buyer", "clerk"];
    let agent = agents[draw.below(5) as usize];
    let (tool, arguments, is_approved) = match draw.below(7) {
        0 => issue(draw),
        1 => payment(draw),
        2 => file(draw),
        3 => user(draw),
        4 => mail(draw),
        5 => command(draw),
        _ => booking(draw),
    };
    TracedCall::new(agent, "server", tool, arguments.to_string()).decided(is_approved)
}

type Made = (&'static str, Value, bool);

fn issue(draw: &mut Draw) -> Made {
    let repo = draw.often(&["acme/site", "acme/docs", "acme/api", "acme/secrets"]);
    let title = draw.often(&["Nightly report", "Weekly report", "Broken build"]);
    let arguments = json!({ "repo": repo, "title": title, "labels": ["bot"] });
    ("create_issue", arguments, repo != "acme/secrets")
}

fn payment(draw: &mut Draw) -> Made {
    let amount = 1 + draw.below(20) * (1 + draw.below(12));
    let account = format!("AC-{}", 100 + draw.below(900));
    let arguments = json!({ "account": account, "amount": amount });
    ("pay", arguments, amount <= 150)
}

fn file(draw: &mut Draw) -> Made {
    let folder = draw.often(&["/srv/docs/a", "/srv/docs/b", "/srv/docs/c", "/etc/ssh"]);
    let path = format!("{folder}/f{}.md", draw.below(400));
    ("read_file", json!({ "path": path }), folder != "/etc/ssh")
}

fn user(draw: &mut Draw) -> Made {
    let name = draw.often(&["mia", "li", "omar"]);
    let user = format!("{name}_k_{}", 1000 + draw.below(9000));
    ("get_user", json!({ "user_id": user }), true)
}

fn mail(draw: &mut Draw) -> Made {
    let to = draw.often(&["team@acme.com", "ops@acme.com", "all@evil.com"]);
    let subject = format!("news of day {}", draw.below(2_000));
    let arguments = json!({ "to": to, "subject": subject });
    ("send_mail", arguments, to != "all@evil.com")
}

fn command(draw: &mut Draw) -> Made {
    let command = draw.often(&["make test", "make lint", "git status", "rm -rf build"]);
    let is_approved = !command.starts_with("rm");
    ("run", json!({ "command": command }), is_approved)
}

fn booking(draw: &mut Draw) -> Made {
    let cabin = draw.often(&["economy", "business"]);
    let flight = format!("HAT{}", 100 + draw.below(200));
    let arguments = json!({ "cabin": cabin, "flight": flight, "seats": 1 + draw.below(3) });
    ("book", arguments, cabin == "economy")
}
