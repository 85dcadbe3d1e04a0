//! Descriptors that a peer gives.

use prost::Message as _;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, MessageOptions,
};
use schema::{Descriptors, SetError, ToolReference, ToolSchema, compile, json_schema};

fn read(text: &str) -> Descriptors {
    let set = compile(&[(
        "acme.proto".to_owned(),
        format!("syntax = \"proto3\"; package acme; {text}"),
    )])
    .unwrap();
    Descriptors::read(&set).unwrap()
}

#[track_caller]
fn assert_found(
    text: &str,
    named: ToolReference<'_>,
    expected: Result<(&str, Option<&str>), &str>,
) {
    let found = ToolSchema::find(&read(text), &named);
    let found = found.as_ref().map(|schema| {
        (
            schema.input().full_name(),
            schema.output().map(|output| output.full_name()),
        )
    });
    let found = found.map_err(ToString::to_string);
    assert_eq!(
        found.as_ref().map_err(String::as_str),
        expected.as_ref().map_err(|why| *why)
    );
}

const SEARCH: &str =
    "message WebSearchRequest {} message WebSearchResponse {} message Query {} message Hits {}";

#[test]
fn the_message_of_arguments_is_found() {
    let named = ToolReference {
        tool: "web_search",
        ..ToolReference::default()
    };
    let beside = Ok(("acme.WebSearchRequest", Some("acme.WebSearchResponse")));
    assert_found(SEARCH, named, beside);
    assert_found(
        SEARCH,
        ToolReference {
            symbol: Some("acme.Query"),
            ..named
        },
        Ok(("acme.Query", None)),
    );
    assert_found(
        SEARCH,
        ToolReference {
            symbol: Some("web_search"),
            tool: "x",
            ..named
        },
        beside,
    );
    assert_found(
        SEARCH,
        ToolReference {
            input: Some("acme.Query"),
            ..named
        },
        Ok(("acme.Query", None)),
    );
    let both = ToolReference {
        input: Some("acme.Query"),
        symbol: Some("web_search"),
        ..named
    };
    assert_found(SEARCH, both, beside);
    let output = ToolReference {
        output: Some("acme.Hits"),
        ..named
    };
    assert_found(
        SEARCH,
        output,
        Ok(("acme.WebSearchRequest", Some("acme.Hits"))),
    );
    let input = ToolReference {
        input: Some("google.protobuf.Struct"),
        ..named
    };
    assert_found(SEARCH, input, Ok(("google.protobuf.Struct", None)));
    assert_found(
        SEARCH,
        ToolReference {
            symbol: Some("acme.None"),
            ..named
        },
        Err("no message acme.None"),
    );
    assert_found(
        SEARCH,
        ToolReference {
            tool: "none",
            ..named
        },
        Err("no message NoneRequest"),
    );
}

#[test]
fn methods_say_what_they_take_and_give() {
    let named = ToolReference {
        tool: "web_search",
        ..ToolReference::default()
    };
    let text = |more: &str| format!("{SEARCH} service S {{ {more} }}");
    let method = text("rpc WebSearch(WebSearchRequest) returns (Hits);");
    assert_found(
        &method,
        named,
        Ok(("acme.WebSearchRequest", Some("acme.Hits"))),
    );
    let other = text("rpc WebSearch(Query) returns (Hits);");
    assert_found(&other, named, Err("more than one message WebSearchRequest"));
    let nested = format!("{SEARCH} message Old {{ message WebSearchRequest {{}} }}");
    assert_found(
        &nested,
        named,
        Err("more than one message WebSearchRequest"),
    );
}

#[test]
fn a_set_may_not_bring_its_own_rules() {
    let fake = "syntax = \"proto3\"; package buf.validate;";
    let own = "syntax = \"proto3\"; package acme; message M {}";
    let files = [
        ("other.proto".to_owned(), fake.to_owned()),
        ("acme.proto".to_owned(), own.to_owned()),
    ];
    let set = compile(&files).unwrap();
    assert!(Descriptors::read(&set).is_ok());
    let fake = format!("{fake} message FieldRules {{}}");
    let set = compile(&[("other.proto".to_owned(), fake)]).unwrap();
    assert!(matches!(Descriptors::read(&set), Err(SetError::Invalid(_))));
}

/// A length-delimited field.
pub(crate) fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = content.len();
    while length > 0x7f {
        field.push(0x80 | u8::try_from(length & 0x7f).unwrap());
        length >>= 7;
    }
    field.push(u8::try_from(length).unwrap());
    field.extend_from_slice(content);
    field
}

#[test]
fn a_set_has_limits() {
    let limit = |what, max| Some(SetError::Limit { what, max });
    let empty = |number: u8, count: usize| [number << 3 | 2, 0].repeat(count);
    let file = |content: Vec<u8>| field(1, &[field(1, b"a.proto"), content].concat());
    let nested = |depth: usize| {
        (1..depth).fold(field(1, b"M"), |inner, _| {
            [field(1, b"M"), field(3, &inner)].concat()
        })
    };
    let error = |set: &[u8]| {
        Descriptors::read(set)
            .err()
            .filter(|error| matches!(error, SetError::Limit { .. }))
    };
    let many: Vec<u8> = (0..=500)
        .flat_map(|at: u16| field(1, &field(1, at.to_string().as_bytes())))
        .collect();
    assert_eq!(error(&vec![0x0a; (1 << 20) + 1]), limit("bytes", 1 << 20));
    assert_eq!(error(&many), limit("files", 500));
    assert_eq!(error(&file(empty(4, 2_001))), limit("messages", 2_000));
    assert_eq!(error(&file(empty(4, 2_000))), None);
    assert_eq!(
        error(&file(field(4, &nested(33)))),
        limit("messages inside each other", 32)
    );
    assert!(Descriptors::read(&file(field(4, &nested(32)))).is_ok());
    assert_eq!(
        error(&file(field(4, &empty(2, 50_001)))),
        limit("parts", 50_000)
    );
    assert_eq!(
        error(&file(field(9, &empty(1, 50_001)))),
        limit("parts", 50_000)
    );
    for malformed in [&[0x0a][..], &[0x0a, 9, 1], b"{}", &[0x0b]] {
        assert_eq!(
            Descriptors::read(malformed).unwrap_err(),
            SetError::Malformed,
            "{malformed:?}"
        );
    }
}

#[test]
fn an_incomplete_or_circular_set_is_refused() {
    let file = |name: &[u8], import: &[u8]| field(1, &[field(1, name), field(3, import)].concat());
    let missing = file(b"a.proto", b"b.proto");
    assert!(matches!(
        Descriptors::read(&missing),
        Err(SetError::Invalid(_))
    ));
    let circular = [file(b"a.proto", b"b.proto"), file(b"b.proto", b"a.proto")].concat();
    assert!(matches!(
        Descriptors::read(&circular),
        Err(SetError::Invalid(_))
    ));
    let twice = [
        file(b"a.proto", b"google/protobuf/any.proto"),
        file(b"a.proto", b"google/protobuf/any.proto"),
    ]
    .concat();
    assert!(matches!(
        Descriptors::read(&twice),
        Err(SetError::Invalid(_))
    ));
    let unordered = [
        file(b"a.proto", b"b.proto"),
        file(b"b.proto", b"google/protobuf/any.proto"),
    ]
    .concat();
    assert!(Descriptors::read(&unordered).is_ok());
}

fn set_of(path: &str, text: &str) -> Vec<u8> {
    compile(&[(path.to_owned(), format!("syntax = \"proto3\"; {text}"))]).unwrap()
}

fn bytes_of(files: Vec<FileDescriptorProto>) -> Vec<u8> {
    FileDescriptorSet { file: files }.encode_to_vec()
}

#[test]
fn a_file_of_an_edition_is_refused() {
    let file = |syntax: Option<&str>| FileDescriptorProto {
        name: Some("a.proto".to_owned()),
        syntax: syntax.map(str::to_owned),
        ..FileDescriptorProto::default()
    };
    for (syntax, is_read) in [
        (None, true),
        (Some("proto3"), true),
        (Some("editions"), false),
        (Some(""), false),
    ] {
        let read = Descriptors::read(&bytes_of(vec![file(syntax)]));
        assert_eq!(read.is_ok(), is_read, "{syntax:?}");
    }
}

#[test]
fn an_entry_of_a_map_has_a_key_and_a_value() {
    let field = |number: i32, kind: Type, name: Option<&str>| FieldDescriptorProto {
        name: Some(format!("f{number}")),
        number: Some(number),
        label: Some(
            if number == 7 {
                Label::Repeated
            } else {
                Label::Optional
            }
            .into(),
        ),
        r#type: Some(kind.into()),
        type_name: name.map(str::to_owned),
        ..FieldDescriptorProto::default()
    };
    let read = |fields: Vec<FieldDescriptorProto>| {
        let options = MessageOptions {
            map_entry: Some(true),
            ..MessageOptions::default()
        };
        let entry = DescriptorProto {
            name: Some("F7Entry".to_owned()),
            field: fields,
            options: Some(options),
            ..DescriptorProto::default()
        };
        let message = DescriptorProto {
            name: Some("TRequest".to_owned()),
            field: vec![field(7, Type::Message, Some(".TRequest.F7Entry"))],
            nested_type: vec![entry],
            ..DescriptorProto::default()
        };
        let file = FileDescriptorProto {
            name: Some("a.proto".to_owned()),
            syntax: Some("proto3".to_owned()),
            message_type: vec![message],
            ..FileDescriptorProto::default()
        };
        Descriptors::read(&bytes_of(vec![file]))
            .map(|read| json_schema(&read.message("TRequest").unwrap()))
    };
    let (key, value) = (field(1, Type::String, None), field(2, Type::Int32, None));
    assert!(read(vec![key.clone(), value.clone()]).is_ok());
    for bad in [
        vec![],
        vec![key.clone()],
        vec![value.clone()],
        vec![field(1, Type::Double, None), value.clone()],
        vec![field(1, Type::Message, Some(".TRequest")), value.clone()],
        vec![key, value, field(3, Type::Int32, None)],
    ] {
        let names: Vec<_> = bad.iter().map(|field| field.r#type()).collect();
        assert!(matches!(read(bad), Err(SetError::Invalid(_))), "{names:?}");
    }
}

#[test]
fn public_imports_are_followed_once() {
    let file = |at: usize, public: &[i32], fields: Vec<FieldDescriptorProto>| FileDescriptorProto {
        name: Some(format!("{at}.proto")),
        dependency: public.iter().map(|_| format!("{}.proto", at - 1)).collect(),
        public_dependency: public.to_vec(),
        syntax: Some("proto3".to_owned()),
        message_type: vec![DescriptorProto {
            name: Some(format!("M{at}")),
            field: fields,
            ..DescriptorProto::default()
        }],
        ..FileDescriptorProto::default()
    };
    let first = FieldDescriptorProto {
        name: Some("first".to_owned()),
        number: Some(1),
        r#type: Some(Type::Message.into()),
        type_name: Some(".M0".to_owned()),
        ..FieldDescriptorProto::default()
    };
    let set = |ends: &[i32]| {
        let chain = (1..100).map(|at| file(at, ends, vec![]));
        let last = file(100, &[0], vec![first.clone()]);
        bytes_of(
            std::iter::once(file(0, &[], vec![]))
                .chain(chain)
                .chain([last])
                .collect(),
        )
    };
    let read = Descriptors::read(&set(&[0, 1, 2])).unwrap();
    assert_eq!(read.message("M100").unwrap().fields().count(), 1);
    assert_eq!(read.set(), set(&[0, 1, 2]), "it is sent on as it came");
}

#[test]
fn the_sets_of_all_tools_share_what_does_not_contradict() {
    let both = "package acme; message ARequest {} message BRequest { string x = 1; }";
    let sets = [
        set_of("acme.proto", both),
        set_of("acme.proto", both),
        set_of("other.proto", "package other; message ARequest {}"),
        set_of(
            "acme.proto",
            "package acme; message ARequest { string other = 1; }",
        ),
        vec![0xff],
    ];
    let read = Descriptors::read_all(&Vec::from_iter(sets.iter().map(Vec::as_slice)));
    let find = |at: usize, tool| {
        ToolSchema::find(
            read[at].as_ref().unwrap(),
            &ToolReference {
                tool,
                ..ToolReference::default()
            },
        )
    };
    let name = |at, tool| find(at, tool).map(|found| found.input().full_name().to_owned());
    // What another tool brought along is not meant.
    assert_eq!(name(0, "a").unwrap(), "acme.ARequest");
    assert_eq!(name(2, "a").unwrap(), "other.ARequest");
    assert!(name(2, "b").is_err());
    assert_eq!(find(0, "b").unwrap().set(), sets[0]);
    assert_eq!(find(0, "b"), find(1, "b"));
    assert_ne!(find(0, "a"), find(3, "a"));
    assert_eq!(find(3, "a").unwrap().input().fields().len(), 1);
    assert_eq!(*read[4].as_ref().unwrap_err(), SetError::Malformed);
    // Two files that name the same thing: each set stands for itself.
    let same = ["a.proto", "b.proto"].map(|path| set_of(path, "message ARequest {}"));
    let read = Descriptors::read_all(&Vec::from_iter(same.iter().map(Vec::as_slice)));
    assert!(read.iter().all(Result::is_ok), "{read:?}");
}

#[test]
fn the_sets_of_all_tools_have_limits() {
    let file = |content: Vec<u8>, at: usize| {
        field(
            1,
            &[field(1, format!("{at}.proto").as_bytes()), content].concat(),
        )
    };
    let large = |at| file(field(4, &[8, 1].repeat(49_000)), at);
    let sets: Vec<_> = (0..5).map(large).collect();
    let read = Descriptors::read_all(&Vec::from_iter(sets.iter().map(Vec::as_slice)));
    let limit = |what, max| Some(SetError::Limit { what, max });
    assert_eq!(read[4].clone().err(), limit("parts of all tools", 200_000));
    let other: Vec<_> = (0..18)
        .map(|at: u8| set_of("acme.proto", &format!("package acme; message M{at} {{}}")))
        .collect();
    let read = Descriptors::read_all(&Vec::from_iter(other.iter().map(Vec::as_slice)));
    assert_eq!(read.iter().filter(|one| one.is_ok()).count(), 17);
    assert_eq!(
        read[17].clone().err(),
        limit("sets that contradict each other", 16)
    );
}
