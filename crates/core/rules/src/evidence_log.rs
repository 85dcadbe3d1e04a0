//! Decisions that are kept as evidence, bounded in number, bytes and age.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::Latest;

use crate::evidence::RuleEvidence;
use crate::window::DAY_MS;

/// The time for which decisions are evidence: 90 days, in milliseconds.
pub const EVIDENCE_MS: u64 = 90 * DAY_MS;
/// The most decisions that are kept. Rejections make way last: no flood of other calls drives out more
/// than what they have beyond half of the places and bytes.
pub const EVIDENCE_MAX: usize = 10_000;
/// The most bytes of the decisions that are kept, as [`RuleEvidence::bytes`] counts them: 16 MiB.
pub const EVIDENCE_BYTES_MAX: usize = 16 << 20;

/// The decisions that are kept. What is too much is the oldest of the proposer that has most of it,
/// so that no proposer drives out the evidence about others.
#[derive(Debug, Clone, Default)]
pub struct EvidenceLog {
    /// Rejections that count ([`RuleEvidence::warns`]), each with its number.
    warnings: Latest<Numbered>,
    others: Latest<Numbered>,
    /// The number of the next one.
    next: u64,
}

/// A decision, and its number in the order in which all came.
#[derive(Debug, Clone)]
struct Numbered {
    number: u64,
    decision: Arc<RuleEvidence>,
}

/// Equality of the decisions and their order.
impl PartialEq for EvidenceLog {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for EvidenceLog {}

impl EvidenceLog {
    /// Takes a decision. Returns those that are not kept any more: too old at its time, or too
    /// many. The new one itself is kept.
    pub fn take(&mut self, decision: Arc<RuleEvidence>) -> Vec<Arc<RuleEvidence>> {
        let mut gone = self.drop_old(decision.at_ms);
        let kept = if decision.warns() {
            &mut self.warnings
        } else {
            &mut self.others
        };
        let proposer = decision.proposer.clone();
        let bytes = decision.bytes();
        let number = self.next;
        kept.push(proposer.account(), bytes, Numbered { number, decision });
        self.next += 1;
        let (warnings, others) = (&mut self.warnings, &mut self.others);
        // Half is for all others: rejections about one proposer drive out no approvals about another.
        let mut dropped = others.shrink(
            (EVIDENCE_MAX.saturating_sub(warnings.len())).max(EVIDENCE_MAX / 2),
            (EVIDENCE_BYTES_MAX.saturating_sub(warnings.weight())).max(EVIDENCE_BYTES_MAX / 2),
        );
        dropped.extend(warnings.shrink(
            EVIDENCE_MAX.saturating_sub(others.len()),
            EVIDENCE_BYTES_MAX.saturating_sub(others.weight()),
        ));
        // A single long one of a proposer that has no other pushes out none: then the oldest goes.
        while self.bytes() > EVIDENCE_BYTES_MAX
            && let Some(oldest) = self.pop_but(number)
        {
            dropped.push(oldest);
        }
        gone.extend(dropped.into_iter().map(|one| one.decision));
        gone
    }

    /// Takes out the oldest decision, a rejection last, but not the one with this number.
    fn pop_but(&mut self, newest: u64) -> Option<Numbered> {
        let is_older = |one: &Numbered| one.number != newest;
        let of_others = self.others.pop_if(is_older);
        of_others.or_else(|| self.warnings.pop_if(is_older))
    }

    /// Drops the decisions that are older than [`EVIDENCE_MS`] at a time, in milliseconds since
    /// 1970, and returns them.
    pub fn drop_old(&mut self, now_ms: u64) -> Vec<Arc<RuleEvidence>> {
        let is_old = |one: &Numbered| now_ms.saturating_sub(one.decision.at_ms) > EVIDENCE_MS;
        let mut gone = Vec::new();
        for kept in [&mut self.warnings, &mut self.others] {
            while let Some(old) = kept.pop_if(is_old) {
                gone.push(old.decision);
            }
        }
        gone
    }

    /// The decisions, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<RuleEvidence>> {
        let all = self.warnings.iter().chain(self.others.iter());
        let in_order: BTreeMap<u64, &Arc<RuleEvidence>> =
            all.map(|one| (one.number, &one.decision)).collect();
        in_order.into_values()
    }

    /// The number of decisions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.warnings.len() + self.others.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of all decisions, as [`RuleEvidence::bytes`] counts them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.warnings.weight() + self.others.weight()
    }
}

#[cfg(test)]
mod tests {
    use model::OperationId;

    use super::*;
    use crate::arguments::{ARGUMENTS_BYTES_MAX, Arguments};
    use crate::evidence::{EvidenceWeight, PastVerdict, RejectReason};
    use crate::fixture::{REJECTED, approval, participant};

    fn decision(number: usize, proposer: &str, verdict: PastVerdict) -> RuleEvidence {
        let number = u64::try_from(number).unwrap();
        RuleEvidence {
            at_ms: number,
            proposer: participant(proposer),
            verdict,
            weight: EvidenceWeight::Hasty,
            ..approval(number, "{}")
        }
    }

    fn numbers(log: &EvidenceLog) -> Vec<u128> {
        log.iter().map(|one| one.operation.0).collect()
    }

    fn long(number: usize, proposer: &str) -> Arc<RuleEvidence> {
        let text = "x".repeat(ARGUMENTS_BYTES_MAX - 8);
        Arc::new(RuleEvidence {
            arguments: Arguments::read(format!("{{\"a\":\"{text}\"}}").as_bytes()).unwrap(),
            ..decision(number, proposer, PastVerdict::Approved)
        })
    }

    #[test]
    fn the_oldest_makes_way_at_the_limit_and_rejections_last() {
        let mut log = EvidenceLog::default();
        log.take(Arc::new(decision(0, "scout", REJECTED)));
        for number in 1..EVIDENCE_MAX {
            let one = decision(number, "scout", PastVerdict::Approved);
            assert!(log.take(Arc::new(one)).is_empty());
        }
        let more = decision(EVIDENCE_MAX, "scout", PastVerdict::Expired);
        let gone = log.take(Arc::new(more));
        assert_eq!((gone.len(), gone[0].operation), (1, OperationId(1)));
        assert_eq!(log.len(), EVIDENCE_MAX);
        assert_eq!(numbers(&log)[..2], [0, 2]);
    }

    #[test]
    fn rejections_alone_make_way_too() {
        let mut log = EvidenceLog::default();
        for number in 0..EVIDENCE_MAX {
            log.take(Arc::new(decision(number, "scout", REJECTED)));
        }
        for verdict in [PastVerdict::Approved, REJECTED, PastVerdict::Approved] {
            let number = log.next.try_into().unwrap();
            log.take(Arc::new(decision(number, "scout", verdict)));
            assert_eq!(log.len(), EVIDENCE_MAX);
            let newest = numbers(&log).pop();
            assert_eq!(newest, Some(u128::try_from(number).unwrap()));
        }
    }

    #[test]
    fn decisions_hold_no_more_bytes_than_the_limit() {
        let mut log = EvidenceLog::default();
        let each = long(0, "scout").bytes();
        let fitting = EVIDENCE_BYTES_MAX / each;
        for number in 0..fitting {
            assert!(log.take(long(number, "scout")).is_empty());
        }
        assert_eq!(log.take(long(fitting, "scout")).len(), 1);
        assert_eq!((log.len(), log.bytes()), (fitting, fitting * each));
    }

    #[test]
    fn longer_and_longer_ones_of_many_proposers_hold_no_more_bytes_either() {
        let mut log = EvidenceLog::default();
        let each = 4 * EVIDENCE_BYTES_MAX / ARGUMENTS_BYTES_MAX;
        for number in 0..each {
            let text = "x".repeat(ARGUMENTS_BYTES_MAX - 8 - each + number);
            let arguments = format!("{{\"a\":\"{text}\"}}");
            log.take(Arc::new(RuleEvidence {
                arguments: Arguments::read(arguments.as_bytes()).unwrap(),
                ..decision(number, &format!("scout{number}"), PastVerdict::Approved)
            }));
            assert!(log.bytes() <= EVIDENCE_BYTES_MAX);
        }
        let newest = numbers(&log).pop();
        assert_eq!(newest, Some(u128::try_from(each - 1).unwrap()));
    }

    #[test]
    fn decisions_about_one_proposer_push_out_none_about_others() {
        let mut log = EvidenceLog::default();
        log.take(Arc::new(decision(0, "dave", PastVerdict::Approved)));
        for number in 1..EVIDENCE_MAX + 8 {
            log.take(Arc::new(decision(number, "greedy", PastVerdict::Expired)));
        }
        for number in 0..2 * EVIDENCE_BYTES_MAX / ARGUMENTS_BYTES_MAX {
            log.take(long(EVIDENCE_MAX + 8 + number, "greedy"));
        }
        assert!(log.bytes() <= EVIDENCE_BYTES_MAX);
        assert_eq!(numbers(&log)[0], 0);
    }

    #[test]
    fn rejections_about_one_proposer_push_out_no_approvals_about_another() {
        let mut log = EvidenceLog::default();
        log.take(Arc::new(decision(0, "dave", PastVerdict::Approved)));
        log.take(Arc::new(decision(1, "dave", REJECTED)));
        for number in 0..2 * EVIDENCE_BYTES_MAX / ARGUMENTS_BYTES_MAX {
            let rejected = long(2 + number, "greedy");
            log.take(Arc::new(RuleEvidence {
                verdict: REJECTED,
                ..(*rejected).clone()
            }));
        }
        for number in 1_000..1_000 + EVIDENCE_MAX {
            log.take(Arc::new(decision(number, "greedy", REJECTED)));
        }
        assert!(log.bytes() <= EVIDENCE_BYTES_MAX && log.len() <= EVIDENCE_MAX);
        assert_eq!(numbers(&log)[..2], [0, 1]);
    }

    #[test]
    fn rejections_keep_half_of_the_places_beside_a_flood() {
        let mut log = EvidenceLog::default();
        for number in 0..EVIDENCE_MAX {
            log.take(Arc::new(decision(number, "scout", REJECTED)));
        }
        for number in 0..EVIDENCE_MAX {
            let one = decision(EVIDENCE_MAX + number, "scout", PastVerdict::Expired);
            log.take(Arc::new(one));
        }
        let rejected = log.iter().filter(|one| one.warns());
        assert_eq!(
            (rejected.count(), log.len()),
            (EVIDENCE_MAX / 2, EVIDENCE_MAX)
        );
    }

    #[test]
    fn a_decision_is_evidence_for_ninety_days() {
        let mut log = EvidenceLog::default();
        log.take(Arc::new(decision(1, "scout", REJECTED)));
        log.take(Arc::new(decision(2, "scout", PastVerdict::Approved)));
        assert!(log.drop_old(1 + EVIDENCE_MS).is_empty());
        let gone = log.drop_old(2 + EVIDENCE_MS);
        assert_eq!((gone.len(), numbers(&log)), (1, vec![2]));
        let at_ms = 3 + EVIDENCE_MS;
        let later = RuleEvidence {
            at_ms,
            ..decision(3, "scout", REJECTED)
        };
        assert_eq!(log.take(Arc::new(later)).len(), 1);
        assert_eq!(numbers(&log), [3]);
    }

    #[test]
    fn verdicts_and_weights_have_texts_of_their_own() {
        for verdict in [
            PastVerdict::Approved,
            REJECTED,
            PastVerdict::Rejected(RejectReason::Context),
            PastVerdict::Withdrawn,
        ] {
            assert_eq!(verdict.to_string().parse(), Ok(verdict));
        }
        for weight in [EvidenceWeight::None, EvidenceWeight::Deliberate] {
            assert_eq!(weight.to_string().parse(), Ok(weight));
        }
        assert!("rejected:".parse::<PastVerdict>().is_err());
        assert!("heavy".parse::<EvidenceWeight>().is_err());
    }
}
