//! Outcomes of proposals, as their proposer learns them.

use super::*;

/// The outcome of a proposal after these steps, in a topic whose gateway reports approvals:
/// `NAME asks TO`, `answer NAME`, which answers that participant's request, and `approved NAME`.
fn reported(steps: &[&str]) -> Vec<String> {
    let mut protocol = welcomed(false);
    let join = json!({ "event": "join", "participant": { "id": "portmoot", "capabilities": [] } });
    receive(
        &mut protocol,
        "j",
        "system:gateway",
        &[],
        "system/presence",
        None,
        join,
    );
    let to = vec!["worker".into(), "other".into()];
    let mut updates = protocol.pending.add_proposal("p", to, CALL.into()).unwrap();
    for step in steps {
        let (one, rest) = step.split_once(' ').unwrap();
        match (one, rest) {
            ("answer", by) => {
                let result = json!({ "jsonrpc": "2.0", "id": 7, "result": { "to": by } });
                receive(
                    &mut protocol,
                    &format!("r{by}"),
                    "worker",
                    &[by, "me"],
                    RESPONSE,
                    Some(&format!("f{by}")),
                    result,
                );
            }
            ("approved", by) => {
                let state = json!({ "proposal": "p", "state": "running", "by": by });
                receive(
                    &mut protocol,
                    &format!("s{by}"),
                    "portmoot",
                    &["me"],
                    PROPOSAL_STATE,
                    Some("p"),
                    state,
                );
            }
            (by, to) => {
                let to: Vec<&str> = to.split(' ').skip(1).collect();
                receive(
                    &mut protocol,
                    &format!("f{by}"),
                    by,
                    &to,
                    CALL,
                    Some("p"),
                    call("echo"),
                );
            }
        }
    }
    let mut all = Vec::new();
    while let Ok(update) = updates.try_recv() {
        if let ProposalUpdate::Answer(answer) = update {
            let result: Value = serde_json::from_slice(answer.result().unwrap()).unwrap();
            all.push(result["to"].as_str().unwrap().to_owned());
        }
    }
    all
}

#[test]
fn only_the_request_that_the_gateway_took_as_approval_has_the_outcome() {
    const BOSS: &str = "boss asks worker other";
    const EVE: &str = "eve asks worker other";
    for (steps, expected) in [
        (&[BOSS, "approved boss", "answer boss"][..], &["boss"][..]),
        // An answer that is faster than the approval is written waits for it.
        (&[BOSS, "answer boss"], &[]),
        (&[BOSS, "answer boss", "approved boss"], &["boss"]),
        // Another participant's request was refused as an approval, before or after the one that
        // counted.
        (
            &[EVE, BOSS, "answer eve", "approved boss", "answer boss"],
            &["boss"],
        ),
        (&[BOSS, "approved boss", EVE, "answer eve"], &[]),
        // Some of the proposed participants, or one more; the proposer itself.
        (&["boss asks worker", "approved boss", "answer boss"], &[]),
        (
            &["boss asks worker other cid", "approved boss", "answer boss"],
            &[],
        ),
        (
            &["boss asks worker other me", "approved boss", "answer boss"],
            &["boss"],
        ),
        (&["me asks worker other", "approved boss", "answer me"], &[]),
    ] {
        assert_eq!(reported(steps), expected, "{steps:?}");
    }
}

/// What follows for the proposer when `boss` fulfils its proposal `p` like this and `from` answers.
fn outcome(
    is_filtered: bool,
    fulfilment: Option<(&[&str], &str, &str)>,
    from: &str,
    to: &[&str],
) -> &'static str {
    let mut protocol = welcomed(is_filtered);
    let mut updates = protocol
        .pending
        .add_proposal("p", vec!["worker".into()], CALL.into())
        .unwrap();
    if let Some((to, kind, name)) = fulfilment {
        receive(&mut protocol, "f", "boss", to, kind, Some("p"), call(name));
    }
    let result = json!({ "jsonrpc": "2.0", "id": 7, "result": {} });
    let reactions = receive(&mut protocol, "r", from, to, RESPONSE, Some("f"), result);
    match (updates.try_recv(), reactions.first().map(String::as_str)) {
        (Ok(ProposalUpdate::Answer(_)), None) => "answer",
        (Err(TryRecvError::Empty), Some(word)) if word.starts_with("violation") => "violation",
        (Err(TryRecvError::Empty), Some(_)) => "nothing",
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_outcome_of_a_proposal_is_the_answer_to_its_fulfilment() {
    let worker = &["worker"][..];
    let both = &["boss", "me"][..];
    for (fulfilment, from, to, expect) in [
        (Some((worker, CALL, "echo")), "worker", both, "answer"),
        // The answer counts although it does not name the proposer, who receives it all the same.
        (Some((worker, CALL, "echo")), "worker", &["boss"], "answer"),
        (
            Some((worker, "mcp/request:tools/call", "echo")),
            "worker",
            both,
            "answer",
        ),
        (Some((worker, CALL, "echo")), "portmoot", both, "answer"),
        (Some((worker, CALL, "echo")), "mallory", both, "violation"),
        // Another call, another target, a kind that disagrees with the payload: no fulfilment, so
        // no outcome.
        (
            Some((worker, "mcp/request:tools/call:rm", "rm")),
            "worker",
            both,
            "nothing",
        ),
        (
            Some((&["mallory"], CALL, "echo")),
            "mallory",
            both,
            "nothing",
        ),
        (Some((worker, CALL, "rm")), "worker", both, "nothing"),
        (None, "worker", both, "nothing"),
    ] {
        assert_eq!(
            outcome(false, fulfilment, from, to),
            expect,
            "{fulfilment:?} {from}"
        );
    }
    // A proposer that does not receive the requests of others accepts an answer that names it.
    for (from, to, expect) in [
        ("worker", both, "answer"),
        ("portmoot", both, "answer"),
        ("worker", &["boss"], "nothing"),
        ("mallory", both, "nothing"),
    ] {
        assert_eq!(outcome(true, None, from, to), expect, "{from}");
    }
}

/// What two proposals of one tool get, of a proposer that does not receive requests to others,
/// after these steps: `runs P F` is the report that a proposal is fulfilled by a request,
/// `answer F` that one's answer.
fn directed(steps: &[&str]) -> [Vec<String>; 2] {
    let mut protocol = welcomed(true);
    let join = json!({ "event": "join", "participant": { "id": "portmoot", "capabilities": [] } });
    receive(
        &mut protocol,
        "j",
        "system:gateway",
        &[],
        "system/presence",
        None,
        join,
    );
    let add = |id| {
        protocol
            .pending
            .add_proposal(id, vec!["worker".into()], CALL.into())
            .unwrap()
    };
    let mut updates = ["p", "q"].map(add);
    for (number, step) in steps.iter().enumerate() {
        let id = format!("e{number}");
        match *step.split(' ').collect::<Vec<_>>().as_slice() {
            ["runs", proposal, request] => {
                let state = json!({ "proposal": proposal, "state": "running", "by": "boss", "fulfilment": request });
                receive(
                    &mut protocol,
                    &id,
                    "portmoot",
                    &["me"],
                    PROPOSAL_STATE,
                    Some(proposal),
                    state,
                );
            }
            ["answer", request] => {
                let result = json!({ "jsonrpc": "2.0", "id": 7, "result": { "to": request } });
                receive(
                    &mut protocol,
                    &id,
                    "worker",
                    &["boss", "me"],
                    RESPONSE,
                    Some(request),
                    result,
                );
            }
            _ => panic!("{step}"),
        }
    }
    updates.each_mut().map(|updates| {
        let mut all = Vec::new();
        while let Ok(update) = updates.try_recv() {
            if let ProposalUpdate::Answer(answer) = update {
                let result: Value = serde_json::from_slice(answer.result().unwrap()).unwrap();
                all.push(result["to"].as_str().unwrap().to_owned());
            }
        }
        all
    })
}

#[test]
fn a_proposer_that_receives_no_requests_of_others_finds_each_answer_by_the_report() {
    let both = [vec!["f".to_owned()], vec!["g".to_owned()]];
    for steps in [
        ["runs p f", "runs q g", "answer g", "answer f"],
        ["runs q g", "answer g", "runs p f", "answer f"],
        // Answers may be faster than the reports.
        ["answer g", "answer f", "runs p f", "runs q g"],
        ["answer f", "runs p f", "answer g", "runs q g"],
    ] {
        assert_eq!(directed(&steps), both, "{steps:?}");
    }
    assert_eq!(
        directed(&["runs p f", "answer h", "answer f"]),
        [vec!["f".to_owned()], Vec::new()]
    );
}

#[test]
fn only_the_gateway_reports_the_state_of_a_proposal() {
    let mut protocol = welcomed(false);
    let mut updates = protocol
        .pending
        .add_proposal("p", vec![], CALL.into())
        .unwrap();
    let payload =
        json!({ "proposal": "p", "state": "rejected", "by": "boss", "reason": "too bold" });
    let report = |protocol: &mut Protocol, id, to: &[&str]| {
        receive(
            protocol,
            id,
            "portmoot",
            to,
            "portmoot/proposal",
            None,
            payload.clone(),
        )
    };
    // Another proposer has used the same id: the report is not about this participant's proposal.
    assert_eq!(
        report(&mut protocol, "0", &["scout"]),
        ["p of scout is rejected by boss"]
    );
    assert!(updates.try_recv().is_err());
    assert_eq!(
        report(&mut protocol, "nameless", &[]),
        ["other portmoot/proposal"]
    );
    assert!(updates.try_recv().is_err());
    assert_eq!(
        report(&mut protocol, "1", &["me"]),
        ["p of me is rejected by boss"]
    );
    let Ok(ProposalUpdate::State(state, reason)) = updates.try_recv() else {
        panic!()
    };
    assert_eq!(
        (state.as_str(), reason.as_deref()),
        ("rejected", Some("too bold"))
    );
    let reactions = receive(
        &mut protocol,
        "2",
        "mallory",
        &["me"],
        "portmoot/proposal",
        None,
        payload,
    );
    assert_eq!(
        (reactions, updates.try_recv().is_err()),
        (vec!["violation mallory".to_owned()], true)
    );
}
