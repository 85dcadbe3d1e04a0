//! Golden tests of the journal format: every record, and a journal of the older format.

use super::super::head::HEAD_FILE;
use super::*;

const LINES: &str = r#"{"record":"sealing_key","key":"aa","created_ms":1}
{"record":"audit_key","key":"bb","created_ms":2}
{"record":"token_issued","name":"scout","sha256":"cc","capabilities":["chat"],"topics":["main"],"created_ms":3,"expires_ms":4}
{"record":"token_issued","name":"ci","sha256":"dd","created_ms":5}
{"record":"token_revoked","name":"ci","at_ms":6}
{"record":"proposal_opened","id":"p","topic":"main","by":"scout","to":["files"],"method":"tools/call","context":"write_file","envelope":"e1","era":"modern","params":"{}","tool":"{\"name\":\"write_file\"}","digest":"ee","held":true,"door":"d","at_ms":7,"expires_ms":8}
{"record":"proposal_opened","id":"q","topic":"main","by":"scout","method":"tools/list","envelope":"e2","digest":"ff","at_ms":9,"expires_ms":10}
{"record":"proposal_decided","id":"p","by":"ana","decision":"approved","reason":"ok","digest":"ee","params":"{}","envelope":"e3","at_ms":11}
{"record":"proposal_decided","id":"q","by":"ana","decision":"rejected","at_ms":12}
{"record":"proposal_decided","id":"r","by":"scout","decision":"withdrawn","at_ms":13}
{"record":"proposal_ended","id":"p","state":"completed","reason":"done","answer":"{}","at_ms":14}
{"record":"proposal_ended","id":"q","state":"expired","at_ms":15}
{"record":"proposals_closed","digests":[[16,"000102030405060708090a0b0c0d0e0f"],[17,"ffffffffffffffffffffffffffffffff"]]}
{"record":"grant_changed","participant":"scout","topic":"main","added":["chat"],"removed":["mcp/*"],"by":"ana","reason":"so","at_ms":18,"expires_ms":19,"configured":true}
{"record":"grant_changed","participant":"scout","by":"ana","at_ms":20}
{"record":"grants_cleared","participant":"scout","topic":"main","at_ms":21}
{"record":"grants_cleared","participant":"scout","at_ms":22}
{"record":"token_issued","name":"temp","sha256":"d1","created_ms":5,"expires_ms":6,"expired":true}
{"record":"token_revoked","name":"temp","at_ms":7}
{"record":"expired","at_ms":22}
{"record":"sessions_ended","marks":["m1","m2"],"at_ms":23,"until_ms":24}
{"record":"sessions_ended","marks":["m3"],"by":"scout","at_ms":23,"until_ms":24}
{"record":"task_created","id":"t","topic":"main","by":"scout","created_ms":25,"until_ms":26}
{"record":"upstream_account","server":"jira","issuer":"https://idp.example","participant":"scout","sealed":"s1","at_ms":27}
{"record":"upstream_account","server":"docs","issuer":"https://idp.example","sealed":"s2","at_ms":28}
{"record":"upstream_account_ended","server":"jira","participant":"scout","at_ms":29}
{"record":"upstream_client","server":"docs","issuer":"https://idp.example","usage":"native","sealed":"s3","at_ms":30}
{"record":"pin","server":"files","identity":"ab","part":"tool","name":"read","digest":"cd","definition":"{\"name\":\"read\"}","at_ms":27}
{"record":"pin","server":"files","identity":"ab","part":"instructions","name":"","digest":"ef","definition":"{}","by":"ana","at_ms":28}
{"record":"pins_reset","server":"files","at_ms":29}
{"record":"login_key","key":"cc","created_ms":31}
{"record":"family_begun","id":"f1","participant":"ann","client":"c1","client_name":"editor","client_uri":"https://app.example/client.json","resource":"https://gw.example/mcp","scopes":["mcp:read"],"sha256":"h1","began_ms":32,"renewed_ms":32,"expires_ms":40,"ends_ms":50}
{"record":"family_renewed","id":"f1","sha256":"h2","at_ms":33,"expires_ms":41}
{"record":"family_ended","id":"f1","at_ms":34}
{"record":"consent_given","participant":"ann","client":"c1","client_name":"editor","redirect_uri":"http://127.0.0.1/cb","resource":"https://gw.example/mcp","scopes":["mcp:read"],"remembered":true,"at_ms":35}
{"record":"consent_withdrawn","participant":"ann","client":"c1","at_ms":36}
"#;

#[test]
fn every_record_has_its_golden_line() {
    let records: Vec<Record> = LINES
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(String::from_utf8(lines(&records).unwrap()).unwrap(), LINES);
}

/// The lines of a journal: numbers and checksums.
const SEALED: &str = r#"{"n":0,"sum":"bbbc65254906131b","journal":2,"id":"00","follows":{"id":"01","lines":2,"sum":"0000000000000003"}}
{"n":1,"sum":"f06b2c0145a55599","record":"sealing_key","key":"aa","created_ms":1}
{"n":2,"sum":"622e72b2ae1e70b5","record":"audit_key","key":"bb","created_ms":2}
"#;

#[test]
fn every_line_has_its_number_and_checksum() {
    let (mut chain, mut text) = (Chain::default(), Vec::new());
    chain.seal(
        br#"{"journal":2,"id":"00","follows":{"id":"01","lines":2,"sum":"0000000000000003"}}"#,
        &mut text,
    );
    chain.seal_all(
        LINES
            .lines()
            .take(2)
            .collect::<Vec<_>>()
            .join("\n")
            .as_bytes(),
        &mut text,
    );
    assert_eq!(String::from_utf8(text).unwrap(), SEALED);
}

/// The older format has no numbers and checksums.
#[test]
fn a_journal_of_the_older_format_is_read_and_written_anew() {
    let dir = tempfile::tempdir().unwrap();
    let is_old = |line: &&str| {
        ![
            "proposals_closed",
            "task_created",
            "upstream_",
            r#"record":"pin"#,
            "login_key",
            "family_",
            "consent_",
            r#"record":"expired"#,
            "temp",
        ]
        .iter()
        .any(|new| line.contains(new))
    };
    let old: String = LINES.split_inclusive('\n').filter(is_old).collect();
    fs::write(dir.path().join(JOURNAL_FILE), &old).unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let state = journal.state();
    assert_eq!(
        state
            .sealing_keys()
            .map(|key| key.key.as_str())
            .collect::<Vec<_>>(),
        ["aa"]
    );
    assert_eq!(state.audit_key().map(|key| key.key.as_str()), Some("bb"));
    assert_eq!(names(&journal), ["scout"]);
    assert_eq!(state.open_proposals().count(), 0);
    let ended: Vec<_> = state
        .ended_proposals()
        .map(|proposal| proposal.opened.id.as_str())
        .collect();
    assert_eq!(ended, ["q", "p"]);
    assert_eq!(state.grants().count(), 0);
    assert_eq!(
        state.ended_sessions(23).collect::<Vec<_>>(),
        [("", "m1"), ("", "m2"), ("scout", "m3")]
    );
    assert_eq!(state.closed_proposals(0).count(), 0);
    assert!(
        fs::read_to_string(dir.path().join(JOURNAL_FILE))
            .unwrap()
            .starts_with(r#"{"n":0,"sum":""#)
    );
    let before = journal.state().clone();
    drop(journal);
    assert_eq!(*Journal::open(dir.path()).unwrap().state(), before);
    let mut all = old.clone();
    all.push_str(LINES.lines().find(|line| !is_old(line)).unwrap());
    fs::write(dir.path().join(JOURNAL_FILE), all + "\n").unwrap();
    fs::remove_file(dir.path().join(HEAD_FILE)).unwrap();
    let digests = [
        (16, 0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f),
        (17, u128::MAX),
    ];
    assert_eq!(
        Journal::peek(dir.path())
            .unwrap()
            .closed_proposals(0)
            .collect::<Vec<_>>(),
        digests
    );
}
