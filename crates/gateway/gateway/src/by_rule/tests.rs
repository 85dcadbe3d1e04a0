//! Rules of a topic without servers, before a call that has been proposed in it.

mod simulation;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use model::{Capabilities, ParticipantId};
use platform::{Mutex, unix_ms};
use rules::{CallRule, Fit, SuspendCause, parse_rules};
use store::JournalWriter;
use store::audit::{EntryFilter, LogFiles, Policy, query};
use store::recorder::Recorder;
use tempfile::{TempDir, tempdir};
use wire::time::rfc3339;

use super::kept::RuleRecord;
use crate::dispatch::Dispatch;
use crate::fixture::{OPENED, context, opened, settings};
use crate::judges;
use crate::ledgers::TopicLedgers;
use crate::proposals::kept::{OpenedProposal, ProposalRecord};

const DAY_MS: u64 = 24 * 3_600_000;
/// A rule of ann's that rejects what scout has proposed.
const REJECTING: &str = "[[rule]]\nid = \"r1\"\nauthor = \"ann\"\ndecision = \"reject\"\n\
                         kind = \"mcp/request:tools/call:pay\"\nproposers = [\"scout\"]\n";

/// A topic whose journal has a call that scout has proposed.
pub(crate) struct Stage {
    pub(crate) dispatch: Arc<Dispatch>,
    may: Arc<Mutex<HashMap<&'static str, Arc<Capabilities>>>>,
    folder: TempDir,
}

impl Stage {
    /// The topic after a restart, with these records about proposal and rules beside the opening.
    /// Must be called inside a runtime.
    pub(crate) fn restarted(of_proposal: &[ProposalRecord], of_rules: &[RuleRecord]) -> Self {
        let folder = tempdir().unwrap();
        let journal = JournalWriter::open(folder.path()).unwrap();
        let audit =
            Recorder::open(Some(Policy::default()), Some(&journal), LogFiles::default()).unwrap();
        let ledgers = TopicLedgers::open(&journal).unwrap();
        let opened = ProposalRecord::ProposalOpened(OpenedProposal {
            expires_ms: unix_ms() + DAY_MS,
            ..opened()
        });
        let records = [&[opened][..], of_proposal].concat();
        ledgers.proposals.append(&records).unwrap();
        ledgers.rules.append(of_rules).unwrap();
        let may: Arc<Mutex<HashMap<_, _>>> = Arc::default();
        let known = Arc::clone(&may);
        let dispatch = Dispatch::new(
            settings(),
            context(),
            audit,
            Some(ledgers),
            Box::new(move |id| known.lock().get(id.as_str()).cloned()),
            crate::run::run,
        );
        let stage = Self {
            dispatch,
            may,
            folder,
        };
        stage.grant("scout", &["mcp/proposal:*"]);
        stage.dispatch.configure(&[], &[], <_>::default());
        stage.dispatch.restore();
        stage
    }

    fn grant(&self, who: &'static str, capabilities: &[&str]) {
        let capabilities = Capabilities::parse(capabilities.iter().copied()).unwrap();
        self.may.lock().insert(who, Arc::new(capabilities));
    }

    /// Puts rules in force, without judging what waits.
    fn put(&self, text: &str) -> Vec<CallRule> {
        let rules = parse_rules(text).unwrap();
        let incarnations = self.dispatch.context.sealer.incarnations();
        let desk = &self.dispatch.rules;
        desk.put_in_force(&rules, true, incarnations, unix_ms());
        rules
    }

    fn bears(&self, name: &str, incarnation: &str) {
        let all = HashMap::from([(name.to_owned(), incarnation.to_owned())]);
        self.dispatch.context.sealer.incarnations().set(all);
    }

    /// The failed checks of the only rule, as they are shown.
    #[track_caller]
    fn failed(&self) -> Vec<[String; 2]> {
        let explained = self.dispatch.explain_rules(OPENED).unwrap();
        let [rule] = explained.rules.try_into().unwrap();
        let failed = rule.checks.into_iter().filter(|one| one.fit != Fit::Held);
        let failed: Vec<_> = failed.map(|one| [one.asked, one.found]).collect();
        assert_eq!(rule.acts, failed.is_empty(), "{failed:?}");
        failed
    }

    /// The failed checks before the only rule judges the call: it decides if there are none.
    #[track_caller]
    fn judged(&self) -> Vec<[String; 2]> {
        let failed = self.failed();
        judges::one(&self.dispatch, OPENED);
        assert_eq!(self.waits(), !failed.is_empty(), "{failed:?}");
        failed
    }

    fn waits(&self) -> bool {
        self.dispatch
            .with(|topic| topic.is_undecided(OPENED, |_| true))
    }

    /// Who was recorded with a decision that does not count, and why.
    fn not_decided(&self) -> Vec<[String; 2]> {
        self.dispatch.audit.flush();
        let mut found = Vec::new();
        let filter = EntryFilter {
            verdict: Some("refused".to_owned()),
            ..EntryFilter::default()
        };
        query(self.folder.path(), &filter, |entry, _| {
            assert_eq!(entry.operation.as_deref(), Some(&*OPENED.to_string()));
            found.push([&entry.from, entry.why.as_ref().unwrap()].map(ToString::to_string));
            ControlFlow::Continue(())
        })
        .unwrap();
        found
    }
}

/// A rule of ann's that approves what scout has proposed, of a tool that no server lists.
fn approving() -> String {
    let digest = "ab".repeat(32);
    let end = rfc3339(unix_ms() + DAY_MS)[..19].to_owned();
    format!(
        "[[rule]]\nid = \"r1\"\nauthor = \"ann\"\ndecision = \"approve\"\n\
         kind = \"mcp/request:tools/call:pay\"\nto = \"bank\"\nproposers = [\"scout\"]\n\
         definition = \"{digest}\"\nserver = \"{digest}\"\nexpires = \"{end}Z\"\nuses = 5\n"
    )
}

#[tokio::test]
async fn an_explanation_names_what_keeps_a_rule_from_deciding() {
    let stage = Stage::restarted(&[], &[]);
    stage.put(REJECTING);
    let is_not_known = ["ann, the author, is known", "it is not"];
    assert_eq!(stage.judged(), [is_not_known]);
    stage.grant("ann", &["chat"]);
    let may_not = ["ann, the author, may decide the proposal", "it may not"];
    assert_eq!(stage.judged(), [may_not]);
    stage.grant("ann", &["mcp/request:*"]);
    stage.bears("ann", "another");
    let replaced = [
        "its names are those of the same participants",
        "`ann` is not the name of the same participant any more",
    ];
    assert_eq!(stage.judged(), [replaced]);
    stage.put(&REJECTING.replace("\"scout\"", "\"scout\", \"dave\""));
    let changed = [
        "the rule is in force",
        "it was changed since it came into force: write `version = 2`",
    ];
    assert_eq!(stage.judged(), [changed]);
    stage.put(&REJECTING.replace("author", "version = 2\nauthor"));
    assert_eq!(stage.judged(), [[""; 2]; 0]);
    let decided = ["the proposal waits for a decision", "it does not"];
    assert_eq!(stage.failed(), [decided]);
}

#[tokio::test]
async fn an_explanation_shows_rules_that_are_suspended_too() {
    let stage = Stage::restarted(&[], &[]);
    let rules = stage.put(&approving());
    stage.grant("ann", &["chat"]);
    let why = SuspendCause::AuthorLostRight.words();
    // This call suspends it; then it is suspended.
    for _ in 0..2 {
        assert_eq!(stage.judged()[0], ["nothing suspends the rule", &*why]);
    }
    let state = stage.dispatch.rules.lock();
    assert!(state.set.rules().is_empty());
    let life = state.book.life(&rules[0].name.id).unwrap();
    assert!(life.suspension().is_some());
}

#[tokio::test]
async fn a_decision_that_cannot_be_recorded_is_one_that_does_not_count() {
    let stage = Stage::restarted(&[], &[]);
    stage.grant("ann", &["mcp/request:*"]);
    stage.put(REJECTING);
    let ann = ParticipantId::new("ann").unwrap();
    let mut full = Vec::new();
    while let Ok(permit) = stage.dispatch.audit.reserve_of(&ann) {
        full.push(permit);
    }
    judges::one(&stage.dispatch, OPENED);
    assert!(stage.waits());
    drop(full);
    assert_eq!(
        stage.not_decided(),
        [["rules", "overloaded: by rule r1.1 of ann"]]
    );
    judges::one(&stage.dispatch, OPENED);
    assert!(!stage.waits());
}
