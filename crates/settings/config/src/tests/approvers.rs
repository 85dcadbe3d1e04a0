//! `[topics.NAME.approver]`.

use std::time::Duration;

use authzen::config::{SentArguments, TakenDecisions};
use model::TopicName;

use super::{BASE, env, good, problems};
use crate::check::check;
use crate::node::{DEFAULTS, Layer, SourceOrigin};
use crate::secrets::Outside;
use crate::toml_file;

/// An approver with more of this in its section, of a topic whose participant `desk` there is.
fn section(more: &str) -> String {
    format!(
        "[participants.desk]\n[topics.main.approver]\nevaluation_url = 'https://pdp.example/evaluate'\n\
         as = 'desk'\ntools = ['files_*']\n{more}"
    )
}

#[test]
fn an_approver_is_read_with_its_defaults_and_all_of_its_keys() {
    let main = TopicName::new("main").unwrap();
    let config = good(&section(""));
    let approver = config.approver_of(&main).unwrap();
    assert_eq!(approver.acts_as.as_str(), "desk");
    assert_eq!(approver.arguments, SentArguments::Listed(Vec::new()));
    assert_eq!(approver.decides, TakenDecisions::Both);
    assert_eq!(approver.window, Duration::from_secs(600));
    assert!(approver.service.request_url.is_none() && approver.service.token.is_none());
    let config = good(&section(
        "request_url = 'https://pdp.example/requests'\ntoken_env = 'TOKEN'\narguments = ['/a~0b/c~1d', '/']\n\
         decides = 'reject'\nwindow = '1d'\nallow_private = ['10.1.0.0/16']",
    ));
    let approver = config.approver_of(&main).unwrap();
    let token = approver.service.token.as_ref().unwrap();
    assert_eq!(token.expose(), "hush-hush-hush-hush");
    assert!(!format!("{approver:?}").contains("hush"));
    assert_eq!(approver.decides, TakenDecisions::Reject);
    assert_eq!(approver.service.allowed.len(), 1);
    let all = good(&section("arguments = ['*']"));
    assert_eq!(
        all.approver_of(&main).unwrap().arguments,
        SentArguments::All
    );
    assert!(good("").approver_of(&main).is_none());
}

#[test]
fn problems_of_an_approver_have_messages() {
    for (more, expect) in [
        (
            "arguments = ['path']",
            "`topics.main.approver.arguments`: `path` is no JSON pointer [config_value]",
        ),
        (
            "arguments = ['']",
            "`topics.main.approver.arguments`: `` is no JSON pointer [config_value]",
        ),
        (
            "arguments = ['/a~2']",
            "`topics.main.approver.arguments`: `/a~2` is no JSON pointer [config_value]",
        ),
        (
            "window = '9s'",
            "`topics.main.approver.window` is less than 10 seconds [config_value]",
        ),
        (
            "window = '2d'",
            "`topics.main.approver.window` is more than a day [config_value]",
        ),
        (
            "token = 'hush'",
            "`topics.main.approver.token`: a secret must not be in the configuration file [config_token]",
        ),
        (
            "token_env = 'NONE'",
            "`topics.main.approver.token_env`: the environment variable `NONE` is not set [config_token]",
        ),
        (
            "token_env = 'BLANK'",
            "the token of `[topics.main.approver]` has blanks or other characters than ASCII [config_token]",
        ),
        ("decides = 'all'", "`topics.main.approver.decides`"),
        (
            "request_url = 'ftp://x/'",
            "`topics.main.approver.request_url`: `ftp://x/` cannot be fetched",
        ),
        (
            "allow_private = ['here']",
            "`topics.main.approver.allow_private`: `here` is no range of addresses",
        ),
        (
            "callback = 'https://x/'",
            "unknown key `callback` in `[topics.main.approver]` [config_unknown_key]",
        ),
    ] {
        let found = problems(&section(more));
        assert!(found.contains(expect), "{more}\n{found}");
    }
    for key in ["evaluation_url", "as", "tools"] {
        let without = section("")
            .lines()
            .filter(|line| !line.starts_with(key))
            .collect::<Vec<_>>()
            .join("\n");
        let found = problems(&without);
        assert!(
            found.contains(&format!(
                "`[topics.main.approver]` has no `{key}` [config_missing]"
            )),
            "{found}"
        );
    }
    let found = problems(&section("").replace("participants.desk", "participants.dusk"));
    let expect = "there is no participant `desk`, as which the approver decides [config_unknown_participant]\n  at portmoot.toml:4\n  hint: did you mean `dusk`?";
    assert!(found.contains(expect), "{found}");
}

#[test]
fn a_file_that_was_found_has_no_approver() {
    let mut tree = toml_file::read(&Layer::file(DEFAULTS, SourceOrigin::Operator, BASE)).unwrap();
    let found = Layer::file("portmoot.toml", SourceOrigin::Found, section(""));
    tree.overlay(toml_file::read(&found).unwrap());
    let problems = check(&tree, &Outside::unread(&env), &mut Vec::new()).unwrap_err();
    let [problem] = problems.as_slice() else {
        panic!("{problems:?}");
    };
    let expect = "`topics.main.approver`: a file that you did not name has no approver";
    assert!(problem.to_string().contains(expect), "{problem}");
}
