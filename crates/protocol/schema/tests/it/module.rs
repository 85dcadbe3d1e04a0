//! Modules: the compiled schemas of a server.

use crate::peers::field;
use prost_reflect::Kind;
use schema::{
    Descriptors, FieldNumbering, ListedTool, Module, STRUCT, ToolReference, ToolSchema,
    VALIDATE_PROTO,
};

const SEARCH: &[u8] =
    br#"{"type":"object","properties":{"query":{"type":"string","minLength":2}},"required":["query"]}"#;
const FOUND: &[u8] =
    br#"{"type":"object","properties":{"hits":{"type":"integer"}},"required":["hits"]}"#;
const OPEN: &[u8] = br#"{"type":"object"}"#;

fn tool<'a>(name: &'a str, input: &'a [u8], output: Option<&'a [u8]>) -> ListedTool<'a> {
    ListedTool {
        name,
        description: None,
        input,
        output,
    }
}

fn names(schema: &ToolSchema) -> (&str, Option<&str>) {
    (
        schema.input().full_name(),
        schema.output().map(|output| output.full_name()),
    )
}

#[test]
fn a_module_has_the_messages_of_each_tool() {
    let tools = [
        tool("web-search", SEARCH, Some(FOUND)),
        tool("web_search", SEARCH, None),
        tool("ping", OPEN, None),
    ];
    let module = Module::new("acme.v1", &tools, &FieldNumbering::default());
    let of = |name| names(module.tool(name).unwrap());
    assert_eq!(
        of("web-search"),
        (
            "acme.v1.WebSearchRequest",
            Some("acme.v1.WebSearchResponse")
        )
    );
    assert_eq!(of("web_search"), ("acme.v1.WebSearchRequest2", None));
    assert_eq!(of("ping"), (STRUCT, None));
    assert!(module.tool("ping").unwrap().takes_struct());
    assert!(module.tool("other").is_none());
    let paths: Vec<_> = module
        .sources()
        .iter()
        .map(|(path, _)| path.as_str())
        .collect();
    assert_eq!(
        paths,
        ["acme/v1/web_search.proto", "acme/v1/web_search_2.proto"]
    );
    let again = Module::new("acme.v1", &tools, &module.numbers());
    assert_eq!(again.digest(), module.digest());
    let fewer = Module::new("acme.v1", &tools[..1], &module.numbers());
    assert_ne!(fewer.digest(), module.digest());
}

#[test]
fn a_tools_set_has_its_own_file_only_and_keeps_the_rules() {
    let module = Module::new(
        "acme.v1",
        &[
            tool("web_search", SEARCH, None),
            tool("other", SEARCH, None),
        ],
        &FieldNumbering::default(),
    );
    let schema = module.tool("web_search").unwrap();
    let set = schema.set();
    assert!(set.len() < 300, "{}", set.len());
    let read = Descriptors::read(&set).unwrap();
    assert!(read.message("acme.v1.OtherRequest").is_none());
    assert_eq!(read.set(), set, "the bytes stay");
    let found = ToolSchema::find(
        &read,
        &ToolReference {
            tool: "web_search",
            ..ToolReference::default()
        },
    )
    .unwrap();
    let query = found.input().get_field_by_name("query").unwrap();
    let rules = query.options();
    let (_, rule) = rules.extensions().next().unwrap();
    assert_eq!(
        rule.as_message()
            .unwrap()
            .get_field_by_name("required")
            .unwrap()
            .as_bool(),
        Some(true)
    );
    // The full set stands alone.
    let alone = prost_reflect::DescriptorPool::decode(schema.full_set()).unwrap();
    assert!(alone.get_file_by_name(VALIDATE_PROTO).is_some());
    assert_eq!(
        alone
            .get_message_by_name("acme.v1.WebSearchRequest")
            .unwrap()
            .get_field(1)
            .unwrap()
            .kind(),
        Kind::String
    );
    assert!(
        Module::new(
            "acme.v1",
            &[tool("ping", OPEN, None)],
            &FieldNumbering::default()
        )
        .tool("ping")
        .unwrap()
        .set()
        .is_empty()
    );
}

#[test]
fn rules_are_read_where_a_file_does_not_import_them() {
    let module = Module::new(
        "acme.v1",
        &[tool("web_search", SEARCH, None)],
        &FieldNumbering::default(),
    );
    let set = module.tool("web_search").unwrap().set();
    let import = set
        .windows(VALIDATE_PROTO.len())
        .position(|part| part == VALIDATE_PROTO.as_bytes())
        .unwrap();
    let (before, after) = (&set[3..import - 2], &set[import + VALIDATE_PROTO.len()..]);
    let set = field(1, &[before, after].concat());
    let read = Descriptors::read(&set).unwrap();
    let message = read.message("acme.v1.WebSearchRequest").unwrap();
    assert_eq!(
        message.get_field(1).unwrap().options().extensions().count(),
        1
    );
    assert_eq!(read.set(), set);
}
