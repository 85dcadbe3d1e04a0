//! Tests of closed proposals in a real journal: compaction, restart, journals of the older format.

use super::*;
use crate::record::{EndedProposal, OpenedProposal};
use crate::state::{CLOSED_PROPOSALS_KEPT_MS, CLOSED_PROPOSALS_MAX, ENDED_KEPT, closed_digest};

/// Time at which the proposals of these tests end: in the future, so that compaction drops no
/// digest.
const END_MS: u64 = 4_000_000_000_000;

fn opened_and_ended(number: usize, at_ms: u64) -> [Record; 2] {
    let opened = OpenedProposal {
        id: number.to_string(),
        topic: "main".into(),
        by: "scout".into(),
        to: vec![],
        method: "tools/call".into(),
        context: None,
        envelope: format!("p{number}"),
        era: None,
        params: None,
        tool: None,
        digest: String::new(),
        held: false,
        door: None,
        at_ms,
        expires_ms: at_ms,
    };
    let id = number.to_string();
    let ended = EndedProposal {
        id,
        state: "completed".into(),
        reason: None,
        answer: None,
        at_ms,
    };
    [Record::ProposalOpened(opened), Record::ProposalEnded(ended)]
}

/// Opens and ends the proposals with these numbers, `batch` of them in one append.
fn end_all(journal: &mut Journal, numbers: std::ops::Range<usize>, batch: usize) {
    let numbers: Vec<usize> = numbers.collect();
    for numbers in numbers.chunks(batch) {
        let records: Vec<Record> = numbers
            .iter()
            .flat_map(|number| opened_and_ended(*number, END_MS))
            .collect();
        journal.append(&records).unwrap();
    }
}

fn digests(journal: &Journal, now_ms: u64) -> Vec<u128> {
    journal
        .state()
        .closed_proposals(now_ms)
        .map(|(_, digest)| digest)
        .collect()
}

fn expected(numbers: std::ops::Range<usize>) -> Vec<u128> {
    let mut all: Vec<_> = numbers
        .map(|number| closed_digest("main", &format!("p{number}")))
        .collect();
    all.sort_unstable();
    all
}

fn text(dir: &Path) -> String {
    fs::read_to_string(dir.join(JOURNAL_FILE)).unwrap()
}

#[test]
fn digests_survive_every_compaction_and_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut end = 0;
    for more in [ENDED_KEPT, 1, 300, 1, 500] {
        let mut journal = Journal::open(dir.path()).unwrap();
        end_all(&mut journal, end..end + more, 50);
        end += more;
        assert_eq!(digests(&journal, END_MS), expected(0..end - ENDED_KEPT));
        let before = journal.state().clone();
        drop(journal);
        let mut journal = Journal::open(dir.path()).unwrap();
        assert_eq!(*journal.state(), before);
        journal.compact().unwrap();
        drop(journal);
        assert_eq!(*Journal::open(dir.path()).unwrap().state(), before);
        assert_eq!(Journal::peek(dir.path()).unwrap(), before);
    }
    assert!(
        !text(dir.path()).contains("\"p0\""),
        "only its digest is kept"
    );
}

#[test]
fn a_hundred_thousand_digests_survive_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let end = ENDED_KEPT + CLOSED_PROPOSALS_MAX + 100;
    let mut journal = Journal::open(dir.path()).unwrap();
    end_all(&mut journal, 0..end, 20_000);
    journal.compact().unwrap();
    drop(journal);
    let journal = Journal::open(dir.path()).unwrap();
    assert_eq!(
        digests(&journal, END_MS),
        expected(100..100 + CLOSED_PROPOSALS_MAX)
    );
    assert!(digests(&journal, END_MS + CLOSED_PROPOSALS_KEPT_MS).is_empty());
    let bytes = fs::metadata(dir.path().join(JOURNAL_FILE)).unwrap().len();
    assert!(bytes < 60 * CLOSED_PROPOSALS_MAX as u64, "{bytes} bytes");
}

#[test]
fn compaction_removes_expired_digests_from_disk() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(dir.path()).unwrap();
    journal.append(&opened_and_ended(0, 1)).unwrap();
    journal.append(&opened_and_ended(1, END_MS)).unwrap();
    end_all(&mut journal, 2..ENDED_KEPT + 2, 50);
    let found = journal.state().closed_proposals(0).collect::<Vec<_>>();
    let (old, new) = (closed_digest("main", "p0"), closed_digest("main", "p1"));
    assert_eq!(
        found,
        [
            (1 + CLOSED_PROPOSALS_KEPT_MS, old),
            (END_MS + CLOSED_PROPOSALS_KEPT_MS, new)
        ]
    );
    journal.compact().unwrap();
    assert_eq!(digests(&journal, 0), [new]);
    let line = format!(
        "\",\"record\":\"proposals_closed\",\"digests\":[[4002592000000,\"{new:032x}\"]]}}\n"
    );
    assert!(text(dir.path()).contains(&line), "golden line");
}

#[test]
fn a_journal_of_the_older_format_has_no_digests_until_a_proposal_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let opened = |id: &str| {
        format!(
            r#"{{"record":"proposal_opened","id":"{id}","topic":"main","by":"scout","method":"tools/call","envelope":"p{id}","digest":"","at_ms":1,"expires_ms":2}}"#
        )
    };
    let ended = |id: &str| {
        format!(
            r#"{{"record":"proposal_ended","id":"{id}","state":"completed","at_ms":4000000000000}}"#
        )
    };
    let line =
        |number: usize| opened(&number.to_string()) + "\n" + &ended(&number.to_string()) + "\n";
    let old: String = (0..ENDED_KEPT).map(line).collect();
    fs::write(dir.path().join(JOURNAL_FILE), old).unwrap();
    let mut journal = Journal::open(dir.path()).unwrap();
    assert!(digests(&journal, 0).is_empty());
    end_all(&mut journal, ENDED_KEPT..ENDED_KEPT + 1, 1);
    assert_eq!(digests(&journal, 0), expected(0..1));
}

#[test]
fn a_malformed_digest_is_reported_as_damage() {
    let dir = tempfile::tempdir().unwrap();
    let check = |digest: &str, readable: bool| {
        let line = format!("{{\"record\":\"proposals_closed\",\"digests\":[[1,\"{digest}\"]]}}\n");
        fs::write(dir.path().join(JOURNAL_FILE), line).unwrap();
        match Journal::peek(dir.path()) {
            Ok(_) => assert!(readable, "{digest}"),
            Err(error) => {
                assert!(
                    matches!(error, StoreError::Damaged { line: 1, .. }) && !readable,
                    "{error}"
                )
            }
        }
    };
    check(&"0f".repeat(16), true);
    check(&"0f".repeat(15), false);
    check(&"0f".repeat(17), false);
    check(&format!("+{}", "0".repeat(31)), false);
    check(&"0g".repeat(16), false);
}
