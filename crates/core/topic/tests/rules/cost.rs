//! Cost of a call: printed, and bounded loosely, because machines are noisy. Run it by hand with
//! `cargo test --release -p portmoot-topic --test rules cost -- --ignored --nocapture`.

use std::time::Instant;

use topic::ListScope;

use crate::{
    numbers::Effect,
    stage::{ANN, ONE, Stage, tools},
};

#[test]
#[ignore = "a measurement, for release builds"]
fn a_call_costs_two_short_steps() {
    let mut stage = Stage::new();
    let names: Vec<String> = (0..100).map(|number| format!("tool_{number}")).collect();
    stage.lists(
        "one",
        ListScope::Shared,
        tools(&names.iter().map(String::as_str).collect::<Vec<_>>()),
    );
    let rounds = 1_000_000_u128;
    let start = Instant::now();
    for round in 0..rounds {
        let effects = stage.call(ANN, round, "one_tool_57");
        assert!(matches!(effects.all[0], Effect::Deliver { .. }));
        stage.answer(ONE, round, 5);
    }
    let each_ns = start.elapsed().as_nanos() / rounds;
    eprintln!("one call, two steps: {each_ns} ns");
    assert!(each_ns < 5_000);
}
