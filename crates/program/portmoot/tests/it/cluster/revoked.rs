//! Tokens that are revoked, while nodes fail and the proposals of their holders are open or run.

use std::time::Duration;

use serde_json::{Value, json};

use crate::ws::token;

use super::attempt::api;
use super::callers::{Caller, Learned};
use super::load::{LIFE, Load, REVOKED, asked, waits_for_revocation};
use super::nodes::SHORT;

/// The calls with each token, of which every other one waits until it is revoked.
const CALLS: usize = 4;
/// The time for a revocation: it waits for a node that does not answer.
const CONFIRMED: Duration = Duration::from_secs(16);

/// Issues one token after the other, makes calls with it, and revokes it.
pub(super) fn revoke(load: &Load) {
    let mut first = REVOKED;
    while live(load, first).is_some() {
        first += LIFE;
    }
}

/// The life of one token.
fn live(load: &Load, first: u64) -> Option<()> {
    let mut numbers = first..;
    let (name, held) = issue(load, first)?;
    let callers = numbers.by_ref().take(CALLS);
    let mut callers: Vec<Caller> = callers.map(|number| Caller::of(number, &held)).collect();
    callers.iter_mut().for_each(|caller| propose(load, caller));
    if !is_confirmed(load, &name)? {
        load.book().over.insert(first);
        return Some(());
    }
    {
        let mut book = load.book();
        let open = callers.iter().map(Caller::number);
        book.never
            .extend(open.filter(|one| waits_for_revocation(*one)));
        book.revoked.insert(first, held.clone());
        book.over.insert(first);
    }
    for (at, number) in load.nodes().all().iter().zip(numbers) {
        load.book().never.insert(number);
        callers.push(Caller::of(number, &held));
        callers
            .iter_mut()
            .for_each(|caller| is_not_admitted(at, caller));
    }
    Some(())
}

/// Issues a token: the name and the token, which is in force.
fn issue(load: &Load, first: u64) -> Option<(String, String)> {
    let mut attempt = 0;
    load.insist(|at| {
        // An attempt without an answer may have taken the name.
        attempt += 1;
        let name = format!("t{first}-{attempt}");
        let body = json!({ "name": name, "capabilities": ["mcp/proposal:*"] });
        let issued = asked(at, "POST /api/v1/tokens", &body, 201)?;
        Some((name, issued["token"].as_str()?.to_owned()))
    })
}

/// Makes a call, which is proposed, ends, or is not answered.
#[track_caller]
fn propose(load: &Load, caller: &mut Caller) {
    let number = caller.number();
    match load.ask(caller) {
        Learned::End(end) => load.book().end(number, end),
        Learned::Refused => panic!("{number}: a token that was issued is not known"),
        Learned::Nothing => _ = load.book().unanswered.insert(number),
        Learned::Later => {}
    }
}

/// Revokes a token. Returns whether that was confirmed.
fn is_confirmed(load: &Load, name: &str) -> Option<bool> {
    let line = format!("DELETE /api/v1/tokens/{name}");
    load.insist(|at| {
        let reply = api(at, CONFIRMED, &token("boss"), &line, &Value::Null)?;
        match reply.status {
            200 => Some(true),
            // An attempt without an answer may have revoked it.
            404 => Some(false),
            _ => None,
        }
    })
}

/// Checks that a node lets the holder of a revoked token neither propose nor come back.
#[track_caller]
fn is_not_admitted(address: &str, caller: &mut Caller) {
    let learned = caller.ask(address, SHORT);
    let is_refused = matches!(learned, Learned::Refused | Learned::Nothing);
    assert!(is_refused, "{}: {learned:?}", caller.number());
}

/// Checks that no node admits a token of which it was confirmed that it is revoked: the last one,
/// or all.
#[track_caller]
pub(super) fn check(load: &Load, are_all: bool) {
    let revoked: Vec<String> = load.book().revoked.values().rev().cloned().collect();
    let count = if are_all { revoked.len() } else { 1 };
    for held in revoked.iter().take(count) {
        for at in load.nodes().all() {
            let used = api(&at, SHORT, held, "GET /api/v1/tools", &Value::Null);
            let status = used.map(|reply| reply.status);
            assert_ne!(status, Some(200), "a revoked token is admitted at {at}");
        }
    }
}
