use proptest::prelude::*;
use serde_json::json;

use super::parts::DEPTH_MAX;
use super::yaml::VALUES_MAX;
use super::*;

fn fields() -> NewEntry {
    vec![
        ("command".to_owned(), json!("/usr/bin/portmoot")),
        (
            "args".to_owned(),
            json!(["stdio", "--url", "http://127.0.0.1:7070"]),
        ),
        ("env".to_owned(), json!({ "A": "1", "B": "x # y" })),
    ]
}

fn json_table() -> Table {
    Table::new(Syntax::Json, &["mcpServers"])
}

fn toml_table() -> Table {
    Table::new(Syntax::Toml, &["mcp_servers"])
}

fn yaml_table() -> Table {
    Table::new(Syntax::Yaml, &["extensions"])
}

fn yaml_list() -> Table {
    Table::list(Syntax::Yaml, &["mcpServers"])
}

/// Puts an entry in, takes it out again, and expects the text as it was.
#[track_caller]
fn there_and_back(table: &Table, text: &str) -> String {
    let with = table
        .insert(text, "portmoot", &fields())
        .unwrap_or_else(|why| panic!("{why}\n{text}"));
    let entries = table.entries(&with).unwrap();
    let entry = entries
        .iter()
        .find(|entry| entry.name == "portmoot")
        .unwrap();
    assert_eq!(entry.value["args"][0], "stdio", "{with}");
    assert_eq!(entry.value["env"]["B"], "x # y", "{with}");
    let without = table
        .remove(&with, "portmoot")
        .unwrap_or_else(|why| panic!("{why}\n{with}"));
    assert_eq!(without, text, "after:\n{with}");
    with
}

#[test]
fn an_entry_of_json_is_put_in_where_the_others_are() {
    let text = "// mine\n{\n\t\"theme\": \"dark\", // keep\n\t\"mcpServers\": {\n\t\t\"a\": { \"command\": \"x\" } // first\n\t},\n\t\"z\": 1e400\n}";
    let with = there_and_back(&json_table(), text);
    insta::assert_snapshot!(with, @r#"
    // mine
    {
    	"theme": "dark", // keep
    	"mcpServers": {
    		"a": { "command": "x" }, // first
    		"portmoot": {
    			"command": "/usr/bin/portmoot",
    			"args": ["stdio", "--url", "http://127.0.0.1:7070"],
    			"env": {
    				"A": "1",
    				"B": "x # y"
    			}
    		}
    	},
    	"z": 1e400
    }
    "#);
    for text in [
        "{}",
        "{\"mcpServers\":{}}",
        "{\"mcpServers\":{\"a\":{}}}\n",
        "{\"mcpServers\": {\"a\": {}, \"b\": {},},}",
        "{\n  \"mcpServers\": {\n    \"a\": {},\n  },\n}\n",
        "{\r\n    \"mcpServers\": {\r\n        \"a\": {} /* , */ // ,\r\n    }\r\n}\r\n",
        "{\n  \"mcpServers\": {\n    \"a\": {}\n\n    // the end\n\n  }\n}\n",
    ] {
        let text = if text == "{}" {
            "{\n  \"mcpServers\": {}\n}"
        } else {
            text
        };
        there_and_back(&json_table(), text);
    }
    // A file without the table, and one without anything.
    for text in [
        "",
        "\n",
        "// only a comment",
        "{}",
        "{\n}\n",
        "{ \"a\": 1 }",
        "{\n  \"a\": 1 // one\n}\n",
        "{ /* x */ }",
    ] {
        let with = json_table().insert(text, "portmoot", &fields()).unwrap();
        assert_eq!(json_table().entries(&with).unwrap().len(), 1, "{with}");
    }
    assert_eq!(
        json_table()
            .insert(
                "{\n    \"a\": 1\n}\n",
                "p",
                &vec![("url".into(), json!("u"))]
            )
            .unwrap(),
        "{\n    \"a\": 1,\n    \"mcpServers\": {\n        \"p\": {\n            \"url\": \"u\"\n        }\n    }\n}\n"
    );
}

#[test]
fn an_entry_in_the_middle_is_taken_out_alone() {
    let check = |text: &str, expect: &str| {
        assert_eq!(json_table().remove(text, "b").unwrap(), expect);
    };
    check(
        "{\n  \"mcpServers\": {\n    \"a\": {}, // a\n    // of b\n    \"b\": {}, // b\n    \"c\": {}\n  }\n}",
        "{\n  \"mcpServers\": {\n    \"a\": {}, // a\n    // of b\n    \"c\": {}\n  }\n}",
    );
    check(
        "{\"mcpServers\":{\"a\":{},\"b\":{},\"c\":{}}}",
        "{\"mcpServers\":{\"a\":{},\"c\":{}}}",
    );
    check(
        "{\"mcpServers\":{\"b\":{}, \"c\":{}}}",
        "{\"mcpServers\":{\"c\":{}}}",
    );
    let toml = "# file\n\n[mcp_servers.a]\nx = 1\n\n# about b\n[mcp_servers.b]\nx = 2 # two\n# x = 3\n\n[mcp_servers.b.env]\nK = \"[mcp_servers.c]\"\n\n# about c\n[mcp_servers.c]\nx = 4\n";
    assert_eq!(
        toml_table().remove(toml, "b").unwrap(),
        "# file\n\n[mcp_servers.a]\nx = 1\n\n# about c\n[mcp_servers.c]\nx = 4\n"
    );
    assert_eq!(
        toml_table()
            .remove("mcp_servers.a.x = 1\nmcp_servers.b.x = 2 # b\n", "b")
            .unwrap(),
        "mcp_servers.a.x = 1\n"
    );
    assert_eq!(
        toml_table()
            .remove("mcp_servers = { a = { x = 1 }, b = {} } # all\n", "b")
            .unwrap(),
        "mcp_servers = { a = { x = 1 }} # all\n"
    );
    let yaml = "extensions:\n  a:\n    x: 1\n  # about b\n  b:\n    x: |\n      # text\n\n      more\n\n  c: {}\n";
    assert_eq!(
        yaml_table().remove(yaml, "b").unwrap(),
        "extensions:\n  a:\n    x: 1\n  # about b\n\n  c: {}\n"
    );
    let list = "mcpServers:\n- name: a\n  x: 1\n- x: 2\n  name: b\n# last\n- name: c\n";
    assert_eq!(
        yaml_list().remove(list, "b").unwrap(),
        "mcpServers:\n- name: a\n  x: 1\n# last\n- name: c\n"
    );
}

#[test]
fn an_entry_of_toml_is_put_in_behind_the_others() {
    let text = "model = \"x\" # keep\r\n\r\n[mcp_servers.a]\r\ncommand = \"npx\"\r\n# args = []\r\n\r\n# the rest\r\n[profiles.p]\r\nx = 1\r\n";
    let with = there_and_back(&toml_table(), text);
    assert_eq!(
        with.matches('\n').count(),
        with.matches("\r\n").count(),
        "{with:?}"
    );
    insta::assert_snapshot!(with.replace('\r', ""), @r##"
    model = "x" # keep

    [mcp_servers.a]
    command = "npx"
    # args = []

    [mcp_servers.portmoot]
    command = "/usr/bin/portmoot"
    args = ["stdio", "--url", "http://127.0.0.1:7070"]
    env = { A = "1", B = "x # y" }

    # the rest
    [profiles.p]
    x = 1
    "##);
    for text in [
        "",
        "a = 1",
        "a = 1\n",
        "# only a comment\n",
        "[mcp_servers]\n",
        "[mcp_servers.a]\nx = 1",
        "[[many]]\nx = 1\n\n\n[[many]]\nx = 2\n",
        "[\"odd ] key\".a]\nx = '''\n[mcp_servers.z]\n'''\n",
    ] {
        there_and_back(&toml_table(), text);
    }
    for text in ["mcp_servers = { a = { x = 1 } }\n", "mcp_servers.a.x = 1\n"] {
        let with = toml_table().insert(text, "portmoot", &fields()).unwrap();
        assert_eq!(toml_table().entries(&with).unwrap().len(), 2, "{with}");
        assert_eq!(
            toml_table().remove(&with, "portmoot").unwrap(),
            text,
            "{with}"
        );
    }
}

#[test]
fn an_entry_of_yaml_is_put_in_behind_the_others() {
    let text = "# mine\nGOOSE_MODE: auto\nextensions:\n  developer:\n    enabled: true\n    name: developer # keep\n    type: builtin\n\n# more\nother: [1, 2]\n";
    let with = there_and_back(&yaml_table(), text);
    insta::assert_snapshot!(with, @r##"
    # mine
    GOOSE_MODE: auto
    extensions:
      developer:
        enabled: true
        name: developer # keep
        type: builtin
      portmoot:
        command: /usr/bin/portmoot
        args: ["stdio", "--url", "http://127.0.0.1:7070"]
        env:
          A: "1"
          B: "x # y"

    # more
    other: [1, 2]
    "##);
    for text in [
        "extensions: {}\n",
        "extensions: {} # none\nb: 1\n",
        "a: 1\nextensions:\n    x:\n        type: stdio",
        "extensions:\r\n  x:\r\n    type: stdio\r\n",
        "extensions:\n  x: &anchor\n    args:\n    - a\n    - b\n  y: *anchor\nz: >\n  folded\n  text\n",
        "---\nextensions:\n  x:\n    text: |\n      # no comment\n\n...\n",
    ] {
        there_and_back(&yaml_table(), text);
    }
    for text in [
        "name: mine\nmcpServers: []\nmodels: []\n",
        "mcpServers:\n  - name: a\n    command: npx\n    args:\n      - -y\nmodels:\n  - x\n",
        "mcpServers:\n- command: npx\n  name: a",
    ] {
        there_and_back(&yaml_list(), text);
    }
    for text in ["", "a: 1\n", "# nothing\n"] {
        let with = yaml_table().insert(text, "portmoot", &fields()).unwrap();
        assert!(with.starts_with(text), "{with}");
    }
    // Written in braces: nothing is changed.
    for text in [
        "extensions: { a: { b: c } }\n",
        "{ extensions: {} }\n",
        "extensions: null\nb: 1\n# x",
    ] {
        match yaml_table().insert(text, "portmoot", &fields()) {
            Err(why) => assert_eq!(why, EditError::Unsafe, "{text}"),
            Ok(with) => assert_eq!(yaml_table().entries(&with).unwrap().len(), 1, "{with}"),
        }
    }
}

#[test]
fn a_broken_file_is_refused_with_its_place() {
    let mut shown = String::new();
    for (table, text) in [
        (
            json_table(),
            "{\n  \"mcpServers\": {\n    \"a\": {} \"b\": {}\n  }\n}",
        ),
        (json_table(), "{\n  'a': 1\n}"),
        (json_table(), "{\"mcpServers\": {}, \"mcpServers\": {}}"),
        (json_table(), "{\"mcpServers\": {\"a\": 1, \"a\": 2}}"),
        (json_table(), "{\n\"é\": \"open\n}"),
        (toml_table(), "a = 1\nb = \n"),
        (toml_table(), "[a]\n[a]\n"),
        (yaml_table(), "a: 1\n  b: 2\n"),
        (yaml_table(), "extensions:\n  a: 1\nextensions: {}\n"),
        (yaml_table(), "a: \"open\nb: 1\n"),
    ] {
        let error = table.insert(text, "portmoot", &fields()).unwrap_err();
        assert!(matches!(error, EditError::Syntax { .. }), "{text}: {error}");
        assert_eq!(table.entries(text).unwrap_err(), error);
        shown += &format!("{error}\n");
    }
    insta::assert_snapshot!(shown, @r"
    line 3, column 12: Expected comma
    line 2, column 3: Single-quoted strings are not allowed
    line 1, column 20: `mcpServers` occurs twice
    line 1, column 25: `a` occurs twice
    line 2, column 6: Unterminated string literal
    line 2, column 5: string values must be quoted, expected literal string
    line 2, column 2: duplicate key
    line 2, column 4: mapping values are not allowed in this context
    line 3, column 1: `extensions` occurs twice
    line 1, column 4: invalid indentation in quoted scalar
    ");
    for (table, text) in [
        (json_table(), "[]"),
        (json_table(), "{\"mcpServers\": []}"),
        (toml_table(), "mcp_servers = 1"),
        (yaml_table(), "- a\n"),
        (yaml_list(), "mcpServers:\n  a: {}\n"),
        (yaml_table(), "a: 1\n---\nb: 1\n"),
    ] {
        let error = table.insert(text, "portmoot", &fields()).unwrap_err();
        assert!(matches!(error, EditError::Shape(_)), "{text}: {error}");
    }
    let deep = "[".repeat(100_000);
    for table in [json_table(), yaml_table()] {
        table.entries(&format!("{{\"a\": {deep}")).unwrap_err();
    }
    toml_table().entries(&format!("a = {deep}")).unwrap_err();
    let laughs: String = (1..40)
        .map(|at| format!("a{at}: &a{at} [*a{0}, *a{0}]\n", at - 1))
        .collect();
    yaml_table()
        .entries(&format!("a0: &a0 x\n{laughs}"))
        .unwrap_err();
}

#[test]
fn a_yaml_file_has_limits_of_depth_and_values() {
    let nested = |depth: usize| format!("a: {}{}\n", "[".repeat(depth), "]".repeat(depth));
    // Beside them a mapping, a key and a list.
    let many = |values: usize| format!("a: [{}x]\n", "x, ".repeat(values - 4));
    for (text, fits) in [
        (nested(DEPTH_MAX), true),
        (nested(DEPTH_MAX + 1), false),
        (many(VALUES_MAX), true),
        (many(VALUES_MAX + 1), false),
    ] {
        assert_eq!(
            yaml_table().entries(&text).is_ok(),
            fits,
            "{} bytes",
            text.len()
        );
    }
}

/// A comment, or none.
fn comment(open: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[ -~]{0,12}".prop_map(move |text| format!(" {open}{}", text.replace('*', "")))
    ]
}

prop_compose! {
    /// A JSON file with comments, of any indentation, line ends and order.
    fn json_file()(
        indent in prop_oneof![Just("\t"), Just("  "), Just("    ")],
        end in prop_oneof![Just("\n"), Just("\r\n")],
        servers in prop::collection::vec(("[a-z]{1,6}", comment("//"), "[a-z/ -]{0,10}"), 0..4),
        others in prop::collection::vec(("[A-Z]{1,6}", comment("// ,"), any::<bool>()), 0..4),
        at in 0_usize..4, trailing in any::<bool>(), last in any::<bool>(), head in comment("//"),
    ) -> String {
        let comma = |at: usize, count: usize| if at + 1 < count || trailing { "," } else { "" };
        let names: std::collections::BTreeSet<_> = servers.iter().map(|one| one.0.clone()).collect();
        let mut out = format!("{head}{end}{{{end}").trim_start().to_owned();
        if names.len() < servers.len() { return "{}".to_owned() + end; }
        let count = others.len() + 1;
        let mut rows: Vec<String> = others.iter().enumerate().map(|(at, (name, comment, flag))| {
            format!("{indent}\"{name}{at}\": {flag}\u{0}{comment}")
        }).collect();
        let table: String = servers.iter().enumerate().map(|(at, (name, comment, text))| {
            let comma = comma(at, servers.len());
            format!("{indent}{indent}\"{name}\": {{ \"command\": \"{text}\" }}{comma}{comment}{end}")
        }).collect();
        let table = if servers.is_empty() { "{}".to_owned() } else { format!("{{{end}{table}{indent}}}") };
        rows.insert(at.min(rows.len()), format!("{indent}\"mcpServers\": {table}\u{0}"));
        for (at, row) in rows.iter().enumerate() {
            out += &row.replace('\u{0}', comma(at, count));
            out += end;
        }
        out + "}" + if last { end } else { "" }
    }
}

prop_compose! {
    /// A TOML file with comments, of any line ends and order.
    fn toml_file()(
        end in prop_oneof![Just("\n"), Just("\r\n")],
        sections in prop::collection::vec(
            ("[a-z]{1,5}", any::<bool>(), comment("#"), comment("#"), 0_usize..3), 0..6),
        last in any::<bool>(),
    ) -> String {
        let mut out = String::new();
        for (at, (name, is_server, above, behind, blank)) in sections.iter().enumerate() {
            let table = if *is_server { "mcp_servers." } else { "other." };
            if !above.is_empty() { out += &format!("{}{end}", above.trim_start()); }
            out += &format!("[{table}{name}{at}]{behind}{end}x = {at}{behind}{end}");
            out += &end.repeat(*blank);
        }
        if last { out } else { out.trim_end().to_owned() }
    }
}

proptest! {
    #[test]
    fn json_is_the_same_after_an_entry_was_put_in_and_taken_out(text in json_file()) {
        if text.contains("mcpServers") {
            there_and_back(&json_table(), &text);
        }
    }

    #[test]
    fn toml_is_the_same_after_an_entry_was_put_in_and_taken_out(text in toml_file()) {
        there_and_back(&toml_table(), &text);
    }

    #[test]
    fn no_text_makes_an_edit_panic(text in "[\\[\\]{}\":,a #\n\r=./*-]{0,40}") {
        for table in [json_table(), toml_table(), yaml_table(), yaml_list()] {
            let _ = table.insert(&text, "portmoot", &fields());
            let _ = table.remove(&text, "a");
        }
    }
}
