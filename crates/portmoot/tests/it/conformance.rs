//! The official conformance suite through the gateway to a fixture that passes it alone: every required scenario, without
//! expected failures, under the fixture's own names.

use harness::{Running, conformance, conformance_of};

use crate::front::{Front, over_http, over_stdio};

const LEGACY: (&str, usize) = ("2025-11-25", 30);
const MODERN: (&str, usize) = ("2026-07-28", 37);

/// Scenarios of the tasks extension, which no revision requires. The suite itself skips the one about notifications.
const TASKS: usize = 10;

fn passes(front: &Front, (revision, required): (&str, usize)) {
    assert_eq!(conformance(&front.url("/mcp"), revision).required, required);
}

#[test]
fn legacy() {
    let fixture = Running::fixture(&[]);
    passes(&Front::serve(&over_http(&fixture, "")), LEGACY);
}

#[test]
fn modern() {
    let fixture = Running::fixture(&[]);
    passes(&Front::serve(&over_http(&fixture, "")), MODERN);
}

#[test]
fn tasks_of_the_extension() {
    let fixture = Running::fixture(&[]);
    let front = Front::serve(&over_http(&fixture, ""));
    assert_eq!(conformance_of(&front.url("/mcp"), "tasks-"), TASKS);
}

#[test]
fn legacy_alone() {
    let fixture = Running::fixture(&["--era", "legacy"]);
    passes(&Front::serve(&over_http(&fixture, "")), LEGACY);
}

#[test]
fn modern_alone() {
    let fixture = Running::fixture(&["--era", "modern"]);
    passes(&Front::serve(&over_http(&fixture, "")), MODERN);
}

#[test]
fn over_a_pipe() {
    let front = Front::serve(&over_stdio("", &[]));
    passes(&front, LEGACY);
    passes(&front, MODERN);
}
