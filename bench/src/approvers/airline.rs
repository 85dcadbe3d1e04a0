//! The trace of tau-bench's airline: tool calls of a recorded agent, and a policy of ours.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::trace::{EvaluatedTrace, TracedCall};

/// The recorded trajectories in tau-bench's repository.
pub const AIRLINE_FILE: &str = "historical_trajectories/gpt-4o-airline.json";

#[derive(Deserialize)]
struct Trajectory {
    traj: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    tool_calls: Option<Vec<Asked>>,
}

#[derive(Deserialize)]
struct Asked {
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

/// Reads the trace out of a copy of the repository, and plays it over some days; `None` if it is not
/// there.
///
/// # Panics
/// When the file is something else.
pub fn airline(repository: &Path, days: u64) -> Option<EvaluatedTrace> {
    let text = fs::read_to_string(repository.join(AIRLINE_FILE)).ok()?;
    let trajectories: Vec<Trajectory> =
        serde_json::from_str(&text).expect("trajectories of tau-bench");
    let messages = trajectories.into_iter().flat_map(|one| one.traj);
    let asked = messages.flat_map(|message| message.tool_calls.unwrap_or_default());
    let calls = asked.map(|asked| {
        let Function { name, arguments } = asked.function;
        let value: Value = serde_json::from_str(&arguments).expect("arguments");
        let is_approved = is_approved(&name, &value);
        TracedCall::new("agent", "airline", &name, arguments).decided(is_approved)
    });
    let name = "tau-bench airline".to_owned();
    Some(EvaluatedTrace::over_days(
        name,
        calls.collect(),
        is_approved,
        days,
    ))
}

/// The hidden policy: what costs the airline or its customer money beyond the usual is rejected.
fn is_approved(tool: &str, arguments: &Value) -> bool {
    let number = |name: &str| arguments[name].as_f64().unwrap_or_default();
    match tool {
        "book_reservation" => {
            let passengers = arguments["passengers"].as_array().map_or(0, Vec::len);
            arguments["cabin"] == "economy" && passengers <= 2
        }
        "update_reservation_flights" => arguments["cabin"] == "economy",
        "update_reservation_baggages" => number("nonfree_baggages") == 0.0,
        "send_certificate" => number("amount") <= 100.0,
        "update_reservation_passengers" => false,
        _ => true,
    }
}
