//! A past for the bank: decisions that its journal has from days before.

use model::{OperationId, ParticipantId};
use platform::unix_ms;
use serde_json::{Value, json};
use store::{Fold, JournalWriter};

use super::bank::{Bank, DAY_MS};

/// Records of rules, as they are in the journal.
#[derive(Default)]
struct RawRules {
    applied: usize,
}

impl Fold for RawRules {
    const OWNER: &'static str = "rules";
    type Record = Value;

    fn apply(&mut self, _record: &Value) {
        self.applied += 1;
    }

    /// All of them, so that the journal sees nothing to compact.
    fn live(&self) -> usize {
        self.applied
    }

    fn records(&mut self, _now_ms: u64) -> Vec<Value> {
        panic!("nothing is compacted by these tests")
    }
}

/// A decision of the past about a payment.
#[derive(Debug, Clone)]
pub(super) struct PastPayment {
    pub(super) amount: u64,
    pub(super) proposer: &'static str,
    pub(super) by: &'static str,
    pub(super) verdict: &'static str,
    pub(super) weight: &'static str,
    /// The rule that decided.
    pub(super) rule: Option<&'static str>,
    pub(super) days_ago: u64,
}

impl Default for PastPayment {
    fn default() -> Self {
        Self {
            amount: 5,
            proposer: "scout",
            by: "ann",
            verdict: "approved",
            weight: "deliberate",
            rule: None,
            days_ago: 1,
        }
    }
}

impl PastPayment {
    pub(super) fn of(amount: u64) -> Self {
        Self {
            amount,
            ..Self::default()
        }
    }

    fn record(&self, number: u64, digests: &[String; 2]) -> Value {
        let [definition, server] = digests;
        let at_ms = unix_ms() - self.days_ago * DAY_MS + number;
        let mut record = json!({
            "record": "decided", "topic": "main", "operation": OperationId(number.into()).to_string(),
            "at_ms": at_ms, "to": "bank", "method": "tools/call", "target": "pay",
            "definition": definition, "server": server, "proposer": self.proposer, "by": self.by,
            "verdict": self.verdict, "weight": self.weight,
            "arguments": json!({ "amount": self.amount }).to_string(),
        });
        if let Some(rule) = self.rule {
            record["rule"] = json!(rule);
        }
        assert!(ParticipantId::new(self.by).is_ok());
        record
    }
}

/// Twenty-four payments that ann approved on three days, of 18 different amounts up to 100.
pub(super) fn approvals() -> Vec<PastPayment> {
    let amounts = [
        5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 100,
    ];
    let days = [9, 6, 3];
    let all = (0..24).map(|at| PastPayment {
        days_ago: days[at / 8],
        ..PastPayment::of(amounts[at * 7 % amounts.len()])
    });
    all.collect()
}

impl Bank {
    /// Stops the gateway, gives it this past, and starts it again.
    pub(super) fn has_decided(&mut self, past: &[PastPayment]) {
        self.has_decided_after(past, 0);
    }

    /// The same, after so many others.
    pub(super) fn has_decided_after(&mut self, past: &[PastPayment], others: u64) {
        let digests = self.digests.split('"').skip(1).step_by(2);
        let digests: Vec<String> = digests.map(str::to_owned).collect();
        let digests: [String; 2] = digests.try_into().unwrap();
        let records: Vec<Value> = (others + 1..)
            .zip(past)
            .map(|(number, one)| one.record(number, &digests))
            .collect();
        self.has_recorded(&records);
    }

    /// Stops the gateway, gives its journal these records of rules, and starts it again.
    pub(super) fn has_recorded(&mut self, records: &[Value]) {
        self.gateway.signal("TERM");
        self.gateway.wait();
        let journal = JournalWriter::open(&self.home.path().join("data")).unwrap();
        let ledger = journal.ledger::<RawRules>().unwrap();
        ledger.append(records).unwrap();
        drop((ledger, journal));
        self.start();
    }
}
