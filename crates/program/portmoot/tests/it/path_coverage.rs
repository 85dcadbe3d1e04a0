//! The whole path in production: integration tests that together send every event and carry out
//! every effect.

use std::collections::BTreeSet;
use std::process::Command;

use strum::VariantNames;
use topic::{Effect, Event, Handles, RoomEffect};

use crate::path_log::FOLDER;

/// Tests that together reach everything. A few seconds for all of them.
const TESTS: &[&str] = &[
    "admission::a_full_topic_refuses_with_a_reason",
    "authorization::scopes::scopes_narrow_lists_and_calls_alike_and_never_add",
    "builtin_proposals::approvals_need_the_shown_digest_and_rejections_carry_a_reason",
    "caller_sessions::a_lost_session_frees_its_slot",
    "decided_once::a_proposers_own_request_settles_its_proposal",
    "dial_in::leaving_or_reconnecting_ends_open_calls",
    "dial_in::proposed::a_proposed_call_runs_once_after_approval",
    "grants::a_connected_participant_is_notified_of_grants_and_revocations",
    "intruders::an_answer_from_a_participant_that_was_not_asked_settles_no_request",
    "lost_standing::a_removed_participants_proposals_are_withdrawn",
    "named_once::a_proposal_that_is_sent_again_is_told_its_state",
    "oauth_client::next_bearer::nothing_that_a_bearer_of_a_name_owned_is_within_reach_of_the_next",
    "one_path::a_retry_of_a_held_call_is_rate_limited_and_recorded",
    "one_path::a_servers_questions_reach_only_the_addressees_of_its_capabilities",
    "one_path::giving_up_a_retry_withdraws_its_proposal",
    "path_cases::a_closed_listen_stream_ends_what_it_followed_at_the_server",
    "path_cases::a_held_call_whose_arguments_are_ambiguous_is_refused",
    "path_cases::a_question_is_withdrawn_when_its_call_is_answered_without_it",
    "path_cases::nothing_follows_from_what_the_journal_cannot_take",
    "plans::steps_run_in_order_each_once_on_one_approval",
    "proposals::a_refused_call_runs_once_after_approval_over_the_api",
    "quorum::a_proposal_runs_with_the_second_approval_and_not_before",
    "questions_between_eras::a_legacy_server_asks_a_modern_client",
    "reviewers::its_proposer_amends_a_proposal_and_what_was_approved_is_void",
    "reviewers::ten_minutes_more_are_given_before_the_end_and_outlast_a_kill",
    "reviewers::others_see_who_looks_at_a_proposal_and_decide_all_the_same",
    "rules::paused::calls_of_a_paused_client_wait_until_it_is_resumed",
    "tasks::legacy::a_task_outlives_its_callers_session_and_fails_with_its_servers",
    "tasks::legacy::questions_of_a_task_arrive_on_the_stream_that_awaits_its_result",
    "tasks::legacy::tasks_of_a_revoked_participant_are_cancelled_at_their_servers",
    "tasks::restarts::a_task_that_cannot_be_written_down_is_cancelled_and_refused",
    "told_truly::a_proposal_from_before_its_servers_first_list_can_be_approved",
    "told_truly::approving_what_is_away_for_a_moment_leaves_it_pending",
    "told_truly::whoever_receives_proposals_hears_what_is_decided",
];

// Without names the test program would run every test, this one too.
const _: () = assert!(!TESTS.is_empty());

/// Stands for the gateway's handles: only the names of the variants count.
#[derive(Debug, Clone)]
struct Names;

impl Handles for Names {
    type Link = ();
    type Server = ();
    type Call = ();
    type Question = ();
    type Tag = ();
    type Answer = ();
    type Notice = ();
    type Message = ();
    type Content = ();
    type Task = ();
    type Work = ();
    type Ruling = ();

    fn is_same_request(_: &(), _: &()) -> bool {
        true
    }

    fn kept_bytes(_: Option<&()>, _: Option<&()>) -> usize {
        0
    }

    fn is_success(_: &()) -> bool {
        true
    }

    fn notice_bytes(_: &()) -> usize {
        0
    }
}

fn all() -> BTreeSet<String> {
    let of = |field: &str, names: &[&str]| {
        names
            .iter()
            .map(|name| format!("{field}={name:?}"))
            .collect::<Vec<String>>()
    };
    let events = of("event", Event::<'_, Names>::VARIANTS);
    let (effects, room) = (
        of("effect", Effect::<Names>::VARIANTS),
        of("room", RoomEffect::<Names>::VARIANTS),
    );
    [events, effects, room].concat().into_iter().collect()
}

#[test]
fn the_gateway_sends_every_event_and_carries_out_every_effect() {
    let folder = tempfile::tempdir().unwrap();
    let mut tests = Command::new(std::env::current_exe().unwrap());
    tests
        .args(["--exact", "--test-threads", "4"])
        .args(TESTS)
        .env(FOLDER, folder.path());
    let ran = tests.output().unwrap();
    let output = String::from_utf8_lossy(&ran.stdout);
    let passed = format!("test result: ok. {} passed; 0 failed", TESTS.len());
    let absent: Vec<&str> = TESTS
        .iter()
        .filter(|name| !output.contains(&format!("test {name} ... ")))
        .copied()
        .collect();
    assert_eq!(absent, Vec::<&str>::new(), "there are no such tests");
    assert!(
        output.contains(&passed),
        "{output}\n{}",
        String::from_utf8_lossy(&ran.stderr)
    );

    let files = std::fs::read_dir(folder.path()).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let seen: BTreeSet<String> = texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let missing: Vec<String> = all().difference(&seen).cloned().collect();
    let unknown: Vec<String> = seen.difference(&all()).cloned().collect();
    assert_eq!(
        missing,
        Vec::<String>::new(),
        "no test sends or carries out these"
    );
    assert_eq!(unknown, Vec::<String>::new(), "these have no variant");
}
