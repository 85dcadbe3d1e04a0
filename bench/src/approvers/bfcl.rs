//! The trace of BFCL's multi-turn tasks: the calls of their ground truths, and a policy of ours.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::literal::PythonCall;
use super::trace::{EvaluatedTrace, TracedCall};

/// The data of BFCL in gorilla's repository.
pub const BFCL_DIR: &str = "berkeley-function-call-leaderboard/bfcl_eval/data";
/// The sorts of tasks, in the order in which they are read.
pub const BFCL_SORTS: [&str; 4] = ["base", "long_context", "miss_func", "miss_param"];

#[derive(Deserialize)]
struct Task {
    ground_truth: Vec<Vec<String>>,
}

#[derive(Deserialize)]
struct Documented {
    name: String,
    parameters: Parameters,
}

#[derive(Deserialize)]
struct Parameters {
    #[serde(default)]
    required: Vec<String>,
}

/// A function as its document says: its server, and the names of arguments without one.
struct Known {
    server: String,
    required: Vec<String>,
}

/// Reads the trace out of a copy of the repository, and plays it over some days; `None` if it is not
/// there.
///
/// # Panics
/// When the files are something else.
pub fn bfcl(repository: &Path, days: u64) -> Option<EvaluatedTrace> {
    let data = repository.join(BFCL_DIR);
    let known = functions(&data)?;
    let mut calls = Vec::new();
    for sort in BFCL_SORTS {
        let file = data.join(format!("possible_answer/BFCL_v4_multi_turn_{sort}.json"));
        let text = fs::read_to_string(file).ok()?;
        for line in text.lines() {
            let task: Task = serde_json::from_str(line).expect("a task of BFCL");
            let asked = task.ground_truth.iter().flatten();
            calls.extend(asked.map(|call| traced(&known, call)));
        }
    }
    let name = "BFCL multi-turn".to_owned();
    Some(EvaluatedTrace::over_days(name, calls, is_approved, days))
}

fn functions(data: &Path) -> Option<BTreeMap<String, Known>> {
    let mut known = BTreeMap::new();
    for file in fs::read_dir(data.join("multi_turn_func_doc")).ok()? {
        let path = file.ok()?.path();
        let server = path.file_stem()?.to_string_lossy().into_owned();
        for line in fs::read_to_string(&path).ok()?.lines() {
            let one: Documented = serde_json::from_str(line).expect("a document of BFCL");
            let required = one.parameters.required;
            let server = server.clone();
            known.insert(one.name, Known { server, required });
        }
    }
    Some(known)
}

fn traced(known: &BTreeMap<String, Known>, text: &str) -> TracedCall {
    let call = PythonCall::read(text).unwrap_or_else(|| panic!("{text} is no call"));
    let (server, required) = known
        .get(&call.function)
        .map_or(("unknown", &[][..]), |one| (&one.server, &one.required));
    let arguments = call.arguments(required);
    let value: Value = serde_json::from_str(&arguments).expect("arguments");
    let is_approved = is_approved(&call.function, &value);
    TracedCall::new("agent", server, &call.function, arguments).decided(is_approved)
}

/// The hidden policy: nothing is deleted, cancelled, unlocked or addressed to many, and what costs
/// money has a bound.
fn is_approved(function: &str, arguments: &Value) -> bool {
    let number = |name: &str| arguments[name].as_f64().unwrap_or_default();
    match function {
        "rm"
        | "rmdir"
        | "delete_message"
        | "cancel_booking"
        | "withdraw_funds"
        | "register_credit_card" => false,
        "book_flight" => arguments["travel_class"] == "economy",
        "place_order" => number("amount") <= 100.0,
        "purchase_insurance" => number("insurance_cost") <= 200.0,
        "set_budget_limit" => number("budget_limit") <= 5_000.0,
        "fund_account" => number("amount") <= 5_000.0,
        "fillFuelTank" => number("fuelAmount") <= 40.0,
        "lockDoors" => arguments["unlock"] != true,
        "post_tweet" => arguments["mentions"].is_null(),
        _ => true,
    }
}
