//! Tests of the search, on tools of our own.

use super::*;

/// Names, descriptions and parameters of tools as common servers have them.
const TOOLS: [(&str, &str, &str); 24] = [
    (
        "gh_create_pull_request",
        "Open a new pull request in a repository",
        "owner repo title head base",
    ),
    (
        "gh_merge_pull_request",
        "Merge a pull request",
        "owner repo pull_number merge_method",
    ),
    (
        "gh_create_issue",
        "Create an issue in a repository",
        "owner repo title body labels",
    ),
    (
        "gh_add_issue_comment",
        "Add a comment to an issue",
        "owner repo issue_number body",
    ),
    (
        "gh_search_code",
        "Search for code across repositories",
        "q per_page",
    ),
    (
        "gh_fork_repository",
        "Fork a repository to your account or organization",
        "owner repo",
    ),
    (
        "fs_read_file",
        "Read the complete contents of a file",
        "path",
    ),
    (
        "fs_write_file",
        "Create a file or overwrite it with new content",
        "path content",
    ),
    (
        "fs_list_directory",
        "List files and directories at a path",
        "path",
    ),
    (
        "fs_move_file",
        "Move or rename files and directories",
        "source destination",
    ),
    (
        "fs_search_files",
        "Find files by a pattern",
        "path pattern excludePatterns",
    ),
    (
        "slack_post_message",
        "Post a message to a channel",
        "channel_id text",
    ),
    (
        "slack_listChannels",
        "List public channels of the workspace",
        "limit cursor",
    ),
    (
        "slack_add_reaction",
        "React to a message with an emoji",
        "channel_id timestamp reaction",
    ),
    ("db_query", "Run a read-only SQL query", "sql"),
    (
        "db_describe_table",
        "Columns and types of one table",
        "table",
    ),
    ("browser_navigate", "Open a web page at a URL", "url"),
    (
        "browser_take_screenshot",
        "Take a picture of the current page",
        "fullPage selector",
    ),
    ("browser_click", "Click an element of the page", "selector"),
    (
        "maps_geocode",
        "Convert an address into coordinates",
        "address",
    ),
    (
        "maps_directions",
        "Directions between two points",
        "origin destination mode",
    ),
    (
        "time_get_current_time",
        "The current time in a timezone",
        "timezone",
    ),
    ("mail_send_email", "Send an email", "to subject body cc"),
    (
        "weather_forecast",
        "Predicted temperature and rain for a location",
        "latitude longitude days",
    ),
];

fn definition((name, description, parameters): (&str, &str, &str)) -> Vec<u8> {
    json::object(|tool| {
        tool.text("name", name)
            .text("description", description)
            .object("inputSchema", |schema| {
                schema
                    .text("type", "object")
                    .object("properties", |properties| {
                        for parameter in parameters.split(' ') {
                            properties.raw(parameter, b"{\"type\":\"string\"}");
                        }
                    });
            });
    })
}

fn index(tools: &[(&str, &str, &str)]) -> Index {
    let made: Vec<_> = tools.iter().map(|tool| definition(*tool)).collect();
    Index::new(
        tools
            .iter()
            .zip(&made)
            .map(|((name, ..), made)| (*name, Some(&**made))),
    )
}

#[test]
fn plain_questions_find_their_tools() {
    let index = index(&TOOLS);
    let found =
        |query: &str| -> Vec<&str> { index.find(query, 3).iter().map(|at| TOOLS[*at].0).collect() };
    for (query, expected) in [
        ("open a pull request", "gh_create_pull_request"),
        ("merging pull requests", "gh_merge_pull_request"),
        ("file a bug: new issue", "gh_create_issue"),
        ("comment on an issue", "gh_add_issue_comment"),
        ("what is in this file? read its content", "fs_read_file"),
        ("rename a file", "fs_move_file"),
        ("list the folders and directories", "fs_list_directory"),
        ("send a message to a slack channel", "slack_post_message"),
        ("which channels are there", "slack_listChannels"),
        ("emoji", "slack_add_reaction"),
        ("run sql", "db_query"),
        ("column types of a table", "db_describe_table"),
        ("screenshot of the page", "browser_take_screenshot"),
        ("go to a website url", "browser_navigate"),
        ("latitude and longitude of an address", "maps_geocode"),
        (
            "how do I get from here to there: directions",
            "maps_directions",
        ),
        ("what time is it", "time_get_current_time"),
        ("write an email to a friend", "mail_send_email"),
        ("will it rain", "weather_forecast"),
        ("exclude patterns", "fs_search_files"),
    ] {
        assert!(
            found(query).contains(&expected),
            "{query}: {:?}",
            found(query)
        );
    }
}

#[test]
fn names_count_most_and_parameters_are_searched() {
    let index = index(&[
        ("alpha", "about zebras", "one"),
        ("zebra_feed", "gives food", "two"),
        ("beta", "other", "zebra_id"),
        ("gamma", "other", "three"),
    ]);
    assert_eq!(index.find("zebra", 9), [1, 0, 2]);
    assert_eq!(index.find("zebra", 1), [1]);
    assert_eq!(index.find("ZEBRAS, please", 9), [1, 0, 2]);
    assert!(index.find("", 9).is_empty() && index.find("the of and", 9).is_empty());
    assert!(index.find("giraffe", 9).is_empty());
}

#[test]
fn equally_good_tools_keep_the_order_of_the_list() {
    let index = index(&[
        ("a", "same text", "x"),
        ("b", "same text", "x"),
        ("c", "same text", "x"),
    ]);
    assert_eq!(index.find("same text", 9), [0, 1, 2]);
}

#[test]
fn a_tool_without_a_definition_is_never_found() {
    let raw: &[u8] = br#"{"name":"proxy","description":"call"}"#;
    let index = Index::new([("proxy", None), ("proxy_two", Some(raw))].into_iter());
    assert_eq!(index.find("proxy call", 9), [1]);
    assert!(Index::new(std::iter::empty()).find("a b", 9).is_empty());
}

#[test]
fn words_are_split_and_stemmed() {
    assert!(STOP_WORDS.is_sorted());
    let of = |text: &str| terms(text).join(" ");
    assert_eq!(
        of("createPullRequest"),
        "creat pull request createpullrequest"
    );
    assert_eq!(
        of("GitHub list_URLs v2.fooBar"),
        "git hub github list ur ls url v2 foo bar foobar"
    );
    for words in [
        ["creates", "create", "creating", "created"],
        ["query", "queries", "query", "querying"],
        ["run", "runs", "running", "run"],
        ["match", "matches", "matching", "matched"],
        ["address", "addresses", "address", "addressing"],
    ] {
        let stems: Vec<String> = words.iter().map(|word| stem((*word).to_owned())).collect();
        assert!(stems.windows(2).all(|pair| pair[0] == pair[1]), "{stems:?}");
    }
    assert_eq!(of("Dateien löschen 設定"), "dateien löschen 設定");
    assert_eq!(of("status sing red"), "status sing red");
}
