//! Durations for which proposals wait.

use serde_json::json;

use super::OFTEN;
use super::collector::{Collector, values_of, values_on};
use crate::reviewed::{Reviewed, propose};
use crate::support::until;
use crate::ws::token;

fn count(decision: &str, by: &str) -> String {
    format!("portmoot_hold_seconds_count{{decision=\"{decision}\",by=\"{by}\"}}")
}

#[test]
fn the_wait_of_a_proposal_is_measured_by_its_decision() {
    let collector = Collector::new();
    let telemetry = collector.table(OFTEN);
    let reviewed = Reviewed::configured(&[], |config| {
        config + &telemetry + "[topics.main]\nproposal_ttl = \"2s\"\n"
    });
    let mut agent = reviewed.enter("agent");
    for envelope in ["runs", "runs-too", "rejected", "withdrawn", "expires"] {
        propose(&mut agent, envelope);
    }
    for envelope in ["runs", "runs-too"] {
        let reply = reviewed.approve("boss", &reviewed.shown(envelope));
        assert!(reply.status < 300, "{reply:?}");
    }
    for (who, envelope, act) in [
        ("boss", "rejected", "reject"),
        ("agent", "withdrawn", "withdraw"),
    ] {
        let id = reviewed.shown(envelope)["id"].as_str().unwrap().to_owned();
        let reply = reviewed.api(who, "POST", &format!("/{id}/{act}"), &json!({}));
        assert!(reply.status < 300, "{act}: {reply:?}");
    }
    let expected = [
        (count("approved", "person"), 2.0),
        (count("rejected", "person"), 1.0),
        (count("withdrawn", "none"), 1.0),
        (count("expired", "none"), 1.0),
    ];
    let page = || {
        let page = reviewed.gateway.get("/metrics", Some(&token("boss")));
        values_on(&page.body)
    };
    for (key, number) in &expected {
        until(key, || (page().get(key) == Some(number)).then_some(()));
        until(key, || {
            let values = values_of(&collector.latest());
            (values.get(key) == Some(number)).then_some(())
        });
    }
    let waited = |decision: &str, by: &str| {
        let key = count(decision, by).replace("_count{", "_sum{");
        page()[&key]
    };
    assert!(waited("expired", "none") >= 2.0);
    assert!(waited("withdrawn", "none") < 2.0);
}
