//! Topics: what is open in them, and what was asked.

use control::Registry;
use gateway::Dispatch;
use telemetry::{MeasuredFamily, MeasuredValue};

use super::parts::{MetricsViewer, gauge, label};

/// What is measured of each topic.
struct OfTopics {
    participants: MeasuredFamily,
    links: MeasuredFamily,
    operations: MeasuredFamily,
    proposals: MeasuredFamily,
    requests: MeasuredFamily,
    violations: MeasuredFamily,
    left_out: MeasuredFamily,
}

impl OfTopics {
    fn new() -> Self {
        Self {
            participants: MeasuredFamily::new(
                "portmoot.topic_participants",
                "Participants in the topic, servers included",
            ),
            links: MeasuredFamily::new(
                "portmoot.topic_links",
                "Links of participants to the topic",
            ),
            operations: MeasuredFamily::new(
                "portmoot.topic_operations",
                "Operations open in the topic",
            ),
            proposals: MeasuredFamily::new(
                "portmoot.topic_proposals",
                "Proposals in the topic that have not ended",
            ),
            requests: MeasuredFamily::new("portmoot.requests", "Requests by verdict"),
            violations: MeasuredFamily::new(
                "portmoot.violations",
                "Envelopes by the rule that they break",
            ),
            left_out: MeasuredFamily::new(
                "portmoot.list_bytes_left_out",
                "Bytes of definitions of tools that lists have left to search_tools and proxy",
            ),
        }
    }

    fn enter(&mut self, dispatch: &Dispatch) {
        let topic = label("portmoot.topic", dispatch.name().to_string());
        let of_topic = vec![topic.clone()];
        let [participants, links, operations, proposals] = dispatch.with(|topic| {
            [
                topic.participants_len(),
                topic.links_len(),
                topic.operations_len(),
                topic.proposals_len(),
            ]
        });
        self.participants.add(of_topic.clone(), gauge(participants));
        self.links.add(of_topic.clone(), gauge(links));
        self.operations.add(of_topic.clone(), gauge(operations));
        self.proposals.add(of_topic, gauge(proposals));
        let left_out = MeasuredValue::Counter(dispatch.list_bytes_left_out());
        self.left_out.add(vec![topic.clone()], left_out);
        for (verdict, count) in dispatch.verdicts() {
            let labels = vec![topic.clone(), label("portmoot.verdict", verdict)];
            self.requests.add(labels, MeasuredValue::Counter(count));
        }
        for (broken, count) in dispatch.violations() {
            let labels = vec![topic.clone(), label("portmoot.broken", broken)];
            self.violations.add(labels, MeasuredValue::Counter(count));
        }
    }
}

/// What is measured of the topics that the viewer may know of.
pub(super) fn families(registry: &Registry, viewer: MetricsViewer<'_>) -> Vec<MeasuredFamily> {
    let mut all = OfTopics::new();
    for dispatch in registry.topics() {
        if viewer.knows(&dispatch, registry) {
            all.enter(&dispatch);
        }
    }
    vec![
        all.participants,
        all.links,
        all.operations,
        all.proposals,
        all.requests,
        all.violations,
        all.left_out,
    ]
}
