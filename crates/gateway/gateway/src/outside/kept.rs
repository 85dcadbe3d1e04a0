//! Access requests in the journal, so that after a restart a request goes on as the same one.

use std::collections::BTreeMap;

use authzen::RequestableDenial;
use serde::{Deserialize, Serialize};
use store::Fold;

/// A fact about access requests that the gateway needs after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum ApproverRecord {
    /// A request for a proposal is about to be made, in place of an earlier one.
    Requested(Box<KeptRequest>),
    /// The service has a task for it.
    Task {
        /// Id of the proposal.
        proposal: String,
        /// The request's key.
        key: String,
        /// The task.
        task: KeptAccessTask,
    },
    /// A request is over.
    Over {
        /// Id of the proposal.
        proposal: String,
        /// The request's key: one that came in its place goes on.
        key: String,
    },
}

/// An access request for a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptRequest {
    /// Id of the proposal.
    pub(crate) proposal: String,
    /// Its topic.
    pub(crate) topic: String,
    /// Digest of the content that the approver was asked about.
    pub(crate) digest: String,
    /// The service that was asked.
    pub(crate) evaluation_url: String,
    /// Requests for the proposal so far, with this one.
    pub(crate) submissions: usize,
    /// The key under which the request is one, however often it is sent.
    pub(crate) key: String,
    /// Digest of what is sent: under one key it is always the same.
    pub(crate) body: String,
    /// The denial that it is about.
    pub(crate) denial: RequestableDenial,
    /// The service's task for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<KeptAccessTask>,
}

/// The addresses of a service's task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptAccessTask {
    /// The address of its status.
    pub(crate) status_endpoint: String,
    /// The address at which it can be cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cancel: Option<String>,
}

/// All access requests of the journal that are not over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeptRequests {
    /// By proposal.
    requests: BTreeMap<String, KeptRequest>,
}

impl KeptRequests {
    /// Those of one topic.
    pub(crate) fn of_topic(&self, topic: &str) -> impl Iterator<Item = &KeptRequest> {
        let all = self.requests.values();
        all.filter(move |request| request.topic == topic)
    }
}

impl Fold for KeptRequests {
    const OWNER: &'static str = "approvers";
    type Record = ApproverRecord;

    fn apply(&mut self, record: &ApproverRecord) {
        match record {
            ApproverRecord::Requested(request) => {
                let kept = KeptRequest::clone(request);
                self.requests.insert(request.proposal.clone(), kept);
            }
            ApproverRecord::Task {
                proposal,
                key,
                task,
            } => {
                let request = self.requests.get_mut(proposal);
                if let Some(request) = request.filter(|request| request.key == *key) {
                    request.task = Some(task.clone());
                }
            }
            ApproverRecord::Over { proposal, key } => {
                let request = self.requests.get(proposal);
                if request.is_some_and(|request| request.key == *key) {
                    self.requests.remove(proposal);
                }
            }
        }
    }

    fn live(&self) -> usize {
        self.requests.len()
    }

    fn records(&mut self, _: u64) -> Vec<ApproverRecord> {
        let all = self.requests.values().cloned();
        all.map(Box::new).map(ApproverRecord::Requested).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 4] = [
        r#"{"record":"requested","proposal":"1a","topic":"main","digest":"ab","evaluation_url":"https://pdp.example/e","submissions":1,"key":"k1","body":"b1","denial":{"expires_at":"2999-01-01T00:00:00Z","binding_token":"b"}}"#,
        r#"{"record":"requested","proposal":"1b","topic":"other","digest":"ab","evaluation_url":"https://pdp.example/e","submissions":2,"key":"k2","body":"b2","denial":{"endpoint":"https://pdp.example/r","expires_at":"2999-01-01T00:00:00Z","evaluation_id":"e","evaluated_at":"t","reason":"r","template":"m"}}"#,
        r#"{"record":"task","proposal":"1a","key":"k1","task":{"status_endpoint":"https://pdp.example/r/1","cancel":"https://pdp.example/r/1/cancel"}}"#,
        r#"{"record":"over","proposal":"1b","key":"k2"}"#,
    ];

    fn folded(records: &[ApproverRecord]) -> KeptRequests {
        let mut kept = KeptRequests::default();
        records.iter().for_each(|record| kept.apply(record));
        kept
    }

    #[test]
    fn every_record_has_its_golden_line_and_rebuilds_the_requests() {
        let records = LINES.map(|line| serde_json::from_str::<ApproverRecord>(line).unwrap());
        for (record, line) in records.iter().zip(LINES) {
            assert_eq!(serde_json::to_string(record).unwrap(), line);
        }
        let mut all = folded(&records[..3]);
        let written = all.records(0);
        assert_eq!((written.len(), all.live()), (2, 2));
        assert_eq!(folded(&written), all);
        let task = |kept: &KeptRequests| Some(kept.requests.get("1a")?.task.clone()?.cancel);
        assert!(task(&all).flatten().is_some());
        let left = folded(&records);
        assert_eq!(left.of_topic("other").count(), 0);
        assert_eq!(left.of_topic("main").count(), 1);
    }

    #[test]
    fn what_is_written_of_a_request_leaves_the_one_in_its_place_alone() {
        let of_key = |line: &str| {
            let line = line.replace("k1", "k0").replace("k2", "k0");
            serde_json::from_str::<ApproverRecord>(&line).unwrap()
        };
        let records = LINES.map(|line| serde_json::from_str::<ApproverRecord>(line).unwrap());
        let before = folded(&records[..2]);
        let mut after = before.clone();
        after.apply(&of_key(LINES[2]));
        after.apply(&of_key(LINES[3]));
        assert_eq!(after, before);
    }
}
