//! Data directories of earlier versions: the gateway opens them, and loses nothing of them.

use std::fs;

use crate::home::Home;
use crate::support::Gateway;

/// The keys of that journal are none that a log could be opened with.
const CONFIG: &str =
    "[server]\ndata_dir = \"data\"\nlisten = \"127.0.0.1:0\"\n[audit]\nenabled = false\n";
/// A journal of the second format, whose records have no owners.
const JOURNAL: &[u8] =
    include_bytes!("../../../../core/store/src/file/tests/format2/journal.jsonl");
const HEAD: &[u8] = include_bytes!("../../../../core/store/src/file/tests/format2/journal.head");

/// A record of each owner, as the journal has it after a start.
const KEPT: &[&str] = &[
    r#""owner":"access","record":"token_issued","name":"ci""#,
    r#""owner":"access","record":"grant_changed","participant":"ci","topic":"main","added":["chat"]"#,
    r#""owner":"access","record":"login_key","key":"cc""#,
    r#""owner":"access","record":"family_renewed","id":"000000000000000000000000000000f2""#,
    r#""owner":"access","record":"consent_given","participant":"ann","client":"c2""#,
    r#""owner":"accounts","record":"upstream_account","server":"jira""#,
    r#""owner":"audit","record":"audit_key","key":"bb""#,
    r#""owner":"pins","record":"pin","server":"files""#,
    r#""owner":"proposals","record":"proposal_opened","id":"00000000000000000000000000000001""#,
    r#""owner":"proposals","record":"proposals_closed""#,
    r#""owner":"sealing","record":"sealing_key","key":"a2""#,
    r#""owner":"sessions","record":"sessions_ended","marks":["m4"]"#,
    r#""owner":"tasks","record":"task_created","id":"t2""#,
];

#[test]
fn a_data_directory_without_owners_opens_with_all_that_it_has() {
    let home = Home::new();
    home.write("portmoot.toml", CONFIG);
    let data = home.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("journal.jsonl"), JOURNAL).unwrap();
    fs::write(data.join("journal.head"), HEAD).unwrap();
    let config = ["--config", "portmoot.toml"];
    let names = || {
        let ran = home.run(&["token", "ls", "--json", config[0], config[1]]);
        let listed: serde_json::Value = serde_json::from_str(&ran.expect(0).stdout).unwrap();
        let tokens = listed["tokens"].as_array().unwrap().clone();
        let names = tokens.iter().map(|token| token["name"].as_str().unwrap());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(), ["scout", "ci", "temp"], "read without a change");
    assert_eq!(fs::read(data.join("journal.jsonl")).unwrap(), JOURNAL);
    for _ in 0..2 {
        let gateway = Gateway::start(&home, CONFIG);
        assert_eq!(gateway.get("/api/v1/servers", None).status, 401);
        assert_eq!(names(), ["scout", "ci", "temp"]);
        gateway.stop();
        let text = fs::read_to_string(data.join("journal.jsonl")).unwrap();
        assert!(text.contains(r#""journal":3,"#), "{text}");
        for kept in KEPT {
            assert!(text.contains(kept), "{kept} is not in {text}");
        }
    }
    // The version before can go on with copies of its files.
    assert_eq!(
        fs::read(data.join("journal.jsonl.format2")).unwrap(),
        JOURNAL
    );
    assert_eq!(fs::read(data.join("journal.head.format2")).unwrap(), HEAD);
    // One of the version before does not take the place of the one after it.
    fs::write(data.join("journal.jsonl"), JOURNAL).unwrap();
    let refused = home.run(&["serve", config[0], config[1]]).expect(1);
    assert!(
        refused.stderr.contains("journal_lost"),
        "{}",
        refused.stderr
    );
}
