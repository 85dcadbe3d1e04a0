//! Ended sessions in the journal: no client can resume them, also after a restart.

use model::Latest;
use serde::{Deserialize, Serialize};
use store::Fold;

/// Ended sessions in the state at most. Beyond it the participant that has most loses its oldest
/// record, with all of its sessions.
pub(crate) const ENDED_SESSIONS_KEPT: usize = 65_536;

/// A fact about sessions that the gateway needs after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum SessionRecord {
    /// Sessions that no client can resume.
    SessionsEnded(EndedSessions),
}

/// Sessions that no client can resume, also after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndedSessions {
    /// One unique text for each session id, in the format of the gateway.
    pub(crate) marks: Vec<String>,
    /// The participant whose sessions these were. Older journals do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    /// Time of the record in Unix milliseconds.
    pub(crate) at_ms: u64,
    /// Time at which the last of these ids expires, in Unix milliseconds.
    pub(crate) until_ms: u64,
}

/// All ended sessions of the journal, oldest record first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeptSessions {
    ended: Latest<EndedSessions>,
}

impl KeptSessions {
    /// Marks ([`EndedSessions::marks`]) of ended sessions whose ids have not expired, oldest first,
    /// each after its participant, which is empty if it is not known.
    pub(crate) fn marks(&self, now_ms: u64) -> impl Iterator<Item = (&str, &str)> {
        let unexpired = self
            .ended
            .iter()
            .filter(move |ended| now_ms < ended.until_ms);
        unexpired.flat_map(|ended| {
            let by = ended.by.as_deref().unwrap_or_default();
            ended.marks.iter().map(move |mark| (by, mark.as_str()))
        })
    }
}

impl Fold for KeptSessions {
    const OWNER: &'static str = "sessions";
    type Record = SessionRecord;

    fn is_for_all(_: &SessionRecord) -> bool {
        true
    }

    fn apply(&mut self, record: &SessionRecord) {
        let SessionRecord::SessionsEnded(ended) = record;
        self.ended.push(
            ended.by.as_deref().unwrap_or_default(),
            ended.marks.len(),
            ended.clone(),
        );
        let has_expired = |oldest: &EndedSessions| oldest.until_ms <= ended.at_ms;
        while self.ended.pop_if(has_expired).is_some() {}
        self.ended.shrink(usize::MAX, ENDED_SESSIONS_KEPT);
        // What comes first now may have expired too.
        while self.ended.pop_if(has_expired).is_some() {}
    }

    fn live(&self) -> usize {
        self.ended.len()
    }

    fn records(&mut self, now_ms: u64) -> Vec<SessionRecord> {
        self.ended.retain(|ended| now_ms < ended.until_ms);
        self.ended
            .iter()
            .cloned()
            .map(SessionRecord::SessionsEnded)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(records: &[SessionRecord]) -> KeptSessions {
        let mut kept = KeptSessions::default();
        records.iter().for_each(|record| kept.apply(record));
        kept
    }

    #[test]
    fn every_record_has_its_golden_line_and_rebuilds_the_sessions() {
        let lines = [
            r#"{"record":"sessions_ended","marks":["m1","m2"],"at_ms":23,"until_ms":24}"#,
            r#"{"record":"sessions_ended","marks":["m3"],"by":"scout","at_ms":23,"until_ms":24}"#,
        ];
        let records = lines.map(|line| serde_json::from_str::<SessionRecord>(line).unwrap());
        for (record, line) in records.iter().zip(lines) {
            assert_eq!(serde_json::to_string(record).unwrap(), line);
        }
        let mut kept = folded(&records);
        let marks: Vec<_> = kept.marks(23).collect();
        assert_eq!(marks, [("", "m1"), ("", "m2"), ("scout", "m3")]);
        let written = kept.records(0);
        assert_eq!((written.len(), kept.live()), (2, 2));
        assert_eq!(folded(&written), kept);
    }

    fn sessions_ended(count: usize, at_ms: u64, until_ms: u64) -> SessionRecord {
        sessions_ended_of(None, count, at_ms, until_ms)
    }

    fn sessions_ended_of(
        by: Option<&str>,
        count: usize,
        at_ms: u64,
        until_ms: u64,
    ) -> SessionRecord {
        let marks = (0..count)
            .map(|number| format!("{at_ms} {number}"))
            .collect();
        SessionRecord::SessionsEnded(EndedSessions {
            marks,
            by: by.map(str::to_owned),
            at_ms,
            until_ms,
        })
    }

    fn marks(state: &KeptSessions, now_ms: u64) -> Vec<&str> {
        state.marks(now_ms).map(|(_, mark)| mark).collect()
    }

    #[test]
    fn ended_sessions_are_kept_until_their_ids_expire() {
        let one = folded(&[sessions_ended(2, 1, 100)]);
        assert_eq!(marks(&one, 99), ["1 0", "1 1"]);
        assert_eq!(one.marks(100).count(), 0);
        let later = folded(&[sessions_ended(2, 1, 100), sessions_ended(1, 100, 200)]);
        assert_eq!((marks(&later, 0), later.live()), (vec!["100 0"], 1));
    }

    #[test]
    fn a_compaction_drops_expired_ids_wherever_they_are() {
        let long = sessions_ended(2, 1, 100);
        let short = sessions_ended(1, 2, 50);
        let mut kept = folded(&[long.clone(), short.clone()]);
        assert_eq!(kept.records(49), [long.clone(), short]);
        assert_eq!(kept.records(50), [long]);
        assert_eq!(kept.live(), 1);
        assert_eq!(kept.records(100), []);
        assert_eq!(kept, KeptSessions::default());
    }

    #[test]
    fn ended_sessions_are_bounded() {
        let mut known = folded(&[
            sessions_ended(1, 1, 100),
            sessions_ended(ENDED_SESSIONS_KEPT - 1, 2, 100),
        ]);
        assert_eq!(known.marks(3).count(), ENDED_SESSIONS_KEPT);
        known.apply(&sessions_ended(1, 3, 100));
        assert_eq!(known.marks(3).count(), ENDED_SESSIONS_KEPT);
        assert_eq!(known.marks(3).next(), Some(("", "2 0")));
    }

    #[test]
    fn ended_sessions_of_one_participant_push_out_no_others() {
        let mut known = folded(&[sessions_ended_of(Some("other"), 3, 1, 100)]);
        for round in 2..80 {
            known.apply(&sessions_ended_of(Some("greedy"), 1024, round, 100));
        }
        assert_eq!(known.marks(3).filter(|(by, _)| *by == "other").count(), 3);
        assert_eq!(
            known.marks(3).count(),
            3 + ENDED_SESSIONS_KEPT / 1024 * 1024 - 1024
        );
    }
}
