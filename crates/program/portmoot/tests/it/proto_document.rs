//! Every block that proto-mcp's document prints, in its order: honoured, or named as an
//! illustration with the reason.

use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};
use schema::{
    Descriptors, FieldNumbering, Invalid, ListedTool, Reference, Style, ToolReference, ToolSchema,
    UnsaidParts, VALIDATE_PROTO, compile, convert_all,
};
use serde_json::{Value, json};
use wire::proto::code;
use wire::proto::sniff::{Sniffed, sniff};

use crate::proto_frames::{Framed, convert, gateway, shown};

enum Block {
    /// It holds.
    Holds(fn()),
    /// It shows the idea alone: why.
    Illustrates(&'static str),
}
use Block::{Holds, Illustrates};

/// The blocks by section.
const BLOCKS: [(&str, Block); 21] = [
    ("Core Messages", Holds(core_messages)),
    ("Error Codes", Holds(error_codes)),
    ("Example Tool Schema", Holds(example_schema)),
    ("BSR Schema Reference Format", Holds(references)),
    ("Stdio Transport: framing", Holds(framing)),
    ("Stdio Transport: example flow", Holds(example_flow)),
    ("Network Transport: service", Holds(service)),
    ("Fallback to Inline Schemas", Holds(inline_schema)),
    ("Capability Detection: client", Holds(client_capabilities)),
    ("Capability Detection: server", Holds(server_capabilities)),
    ("Version Compatibility", Holds(versions)),
    ("JSON-to-Proto Conversion: JSON Schema", Holds(conversion)),
    (
        "JSON-to-Proto Conversion: generated proto",
        Holds(conversion),
    ),
    (
        "Dual-Protocol Support",
        Illustrates("a picture of a router; `first_bytes` holds the table of bytes below it"),
    ),
    (
        "Input Validation (Go)",
        Illustrates("no such package; `proto_rules` shows that no broken call is executed"),
    ),
    (
        "Go Server",
        Illustrates(
            "its imports do not exist; what it answers is that of `server_capabilities` and `example_flow`",
        ),
    ),
    (
        "Python Client",
        Illustrates(
            "there is no package `buf.mcp`; `proto_clients` runs a client with the same steps",
        ),
    ),
    ("Initialize Exchange: request", Holds(initialize_request)),
    ("Initialize Exchange: response", Holds(initialize_response)),
    ("Tool Call Exchange: request", Holds(call_request)),
    ("Tool Call Exchange: response", Holds(call_response)),
];

#[test]
fn every_printed_block_is_honoured_or_an_illustration() {
    let mut illustrations = 0;
    for (section, block) in BLOCKS {
        println!("{section}");
        match block {
            Holds(check) => check(),
            Illustrates(why) => illustrations += usize::from(!why.is_empty()),
        }
    }
    assert_eq!(illustrations, 4);
}

/// The messages of the document: fields with numbers, types, and the oneof that they are in.
const MESSAGES: [(&str, &str); 23] = [
    (
        "MCPMessage",
        "id=1:uint64 initialize_request=2:InitializeRequest|payload initialize_response=3:InitializeResponse|payload list_tools_request=4:ListToolsRequest|payload list_tools_response=5:ListToolsResponse|payload call_tool_request=6:CallToolRequest|payload call_tool_response=7:CallToolResponse|payload list_resources_request=8:ListResourcesRequest|payload list_resources_response=9:ListResourcesResponse|payload read_resource_request=10:ReadResourceRequest|payload read_resource_response=11:ReadResourceResponse|payload error_response=12:ErrorResponse|payload",
    ),
    (
        "InitializeRequest",
        "protocol_version=1:string capabilities=2:ClientCapabilities metadata=3:map<string,string>",
    ),
    (
        "ClientCapabilities",
        "supports_bsr_refs=1:bool supports_streaming=2:bool encodings=3:repeated string experimental=4:map<string,bool>",
    ),
    (
        "InitializeResponse",
        "protocol_version=1:string capabilities=2:ServerCapabilities metadata=3:map<string,string>",
    ),
    (
        "ServerCapabilities",
        "supports_bsr_refs=1:bool supports_streaming=2:bool tools=3:ToolCapabilities resources=4:ResourceCapabilities prompts=5:PromptCapabilities",
    ),
    ("ToolCapabilities", "supports_list_changed=1:bool"),
    (
        "ResourceCapabilities",
        "supports_subscribe=1:bool supports_list_changed=2:bool",
    ),
    ("PromptCapabilities", "supports_list_changed=1:bool"),
    (
        "ListToolsRequest",
        "bsr_refs=1:repeated string include_schemas=2:bool cursor=3:string",
    ),
    (
        "ListToolsResponse",
        "tools=1:repeated Tool next_cursor=2:string",
    ),
    (
        "Tool",
        "name=1:string description=2:string bsr_ref=3:string|schema_source inline_schema=4:FileDescriptorSet|schema_source metadata=5:map<string,string>",
    ),
    (
        "CallToolRequest",
        "name=1:string arguments=2:Any metadata=3:map<string,string>",
    ),
    (
        "CallToolResponse",
        "success=1:ToolResult|result error=2:Error|result metadata=3:map<string,string>",
    ),
    (
        "ToolResult",
        "content=1:repeated ToolContent is_error=2:bool",
    ),
    (
        "ToolContent",
        "text=1:string|content image=2:bytes|content data=3:Any|content mime_type=4:string",
    ),
    ("ListResourcesRequest", "cursor=1:string"),
    (
        "ListResourcesResponse",
        "resources=1:repeated Resource next_cursor=2:string",
    ),
    (
        "Resource",
        "uri=1:string name=2:string description=3:string mime_type=4:string metadata=5:map<string,string>",
    ),
    ("ReadResourceRequest", "uri=1:string"),
    (
        "ReadResourceResponse",
        "contents=1:repeated ResourceContent",
    ),
    (
        "ResourceContent",
        "uri=1:string mime_type=2:string text=3:string|content blob=4:bytes|content",
    ),
    (
        "ErrorResponse",
        "code=1:int32 message=2:string data=3:Struct",
    ),
    (
        "Error",
        "code=1:int32 message=2:string data=3:map<string,string>",
    ),
];

fn contract() -> FileDescriptorProto {
    let path = harness::repository().join("crates/protocol/wire/proto/buf/mcp/v1/mcp.proto");
    let text = std::fs::read_to_string(path).unwrap();
    let set = compile(&[("buf/mcp/v1/mcp.proto".to_owned(), text)]).unwrap();
    let set = FileDescriptorSet::decode(set.as_slice()).unwrap();
    set.file
        .into_iter()
        .find(|file| file.package() == "buf.mcp.v1")
        .unwrap()
}

fn type_of(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let name = field.type_name().rsplit('.').next().unwrap();
    if let Some(entry) = message
        .nested_type
        .iter()
        .find(|inner| inner.name() == name)
    {
        let [key, value] = &entry.field[..] else {
            panic!("{name} is no entry of a map")
        };
        return format!("map<{},{}>", type_of(message, key), type_of(message, value));
    }
    let ty = match field.r#type() {
        Type::Message => name.to_owned(),
        ty => ty.as_str_name().trim_start_matches("TYPE_").to_lowercase(),
    };
    if field.label() == Label::Repeated {
        format!("repeated {ty}")
    } else {
        ty
    }
}

fn core_messages() {
    let file = contract();
    let shown = |message: &DescriptorProto| {
        let field = |field: &FieldDescriptorProto| {
            let oneof = field
                .oneof_index
                .map(|at| &message.oneof_decl[usize::try_from(at).unwrap()]);
            let oneof = oneof.map_or(String::new(), |oneof| format!("|{}", oneof.name()));
            format!(
                "{}={}:{}{oneof}",
                field.name(),
                field.number(),
                type_of(message, field)
            )
        };
        (
            message.name().to_owned(),
            message
                .field
                .iter()
                .map(field)
                .collect::<Vec<_>>()
                .join(" "),
        )
    };
    let messages: Vec<_> = file.message_type.iter().map(shown).collect();
    assert_eq!(
        messages,
        MESSAGES.map(|(name, fields)| (name.to_owned(), fields.to_owned()))
    );
}

fn error_codes() {
    use wire::rpc::code::{
        INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR,
    };
    let common = [
        PARSE_ERROR,
        INVALID_REQUEST,
        METHOD_NOT_FOUND,
        INVALID_PARAMS,
        INTERNAL_ERROR,
    ];
    assert_eq!(common, [-32700, -32600, -32601, -32602, -32603]);
    let own = [
        code::SCHEMA_UNRESOLVED,
        code::SCHEMA_VIOLATION,
        code::UNSUPPORTED_VERSION,
        code::TIMEOUT,
    ];
    assert_eq!(own, [-33000, -33001, -33002, -33003]);
}

/// The block leaves out the import of the rules that it uses.
fn example_schema() {
    let text = format!(
        r#"syntax = "proto3"; package acme.tools.v1; import "{VALIDATE_PROTO}";
        message WebSearchRequest {{
          string query = 1 [(buf.validate.field).string.min_len = 1];
          int32 max_results = 2 [(buf.validate.field).int32.gte = 1, (buf.validate.field).int32.lte = 100];
          DateRange date_range = 3;
        }}
        message DateRange {{ string start = 1; string end = 2; }}
        message WebSearchResponse {{ repeated SearchResult results = 1; int32 total_count = 2; }}
        message SearchResult {{ string title = 1; string url = 2; string snippet = 3; string published_at = 4; }}"#
    );
    let set = compile(&[("acme/tools/v1/web_search.proto".to_owned(), text)]).unwrap();
    let named = ToolReference {
        tool: "web_search",
        ..ToolReference::default()
    };
    let schema = ToolSchema::find(&Descriptors::read(&set).unwrap(), &named).unwrap();
    assert_eq!(schema.input().full_name(), "acme.tools.v1.WebSearchRequest");
    assert_eq!(
        schema.output().unwrap().full_name(),
        "acme.tools.v1.WebSearchResponse"
    );
    let rules = |json: &str| {
        let typed = schema.arguments_from_json(json.as_bytes()).unwrap();
        let typed = schema.arguments_from_message(
            &typed.type_url(),
            &typed.bytes(),
            UnsaidParts::default(),
        );
        match schema.validate(&typed.unwrap()) {
            Err(Invalid::Violations(all)) => all.into_iter().map(|one| one.rule).collect(),
            other => other.map(|()| Vec::new()).unwrap(),
        }
    };
    assert_eq!(
        rules(r#"{"query":"a","maxResults":100,"dateRange":{"start":"2026-01-01"}}"#),
        [""; 0]
    );
    assert_eq!(
        rules(r#"{"maxResults":101}"#),
        ["string.min_len", "int32.gte_lte"]
    );
}

fn references() {
    for (text, parts) in [
        (
            "buf.build/acme/tools/acme.tools.v1.WebSearchRequest:v1",
            [
                "buf.build",
                "acme",
                "tools",
                "acme.tools.v1.WebSearchRequest",
                "v1",
            ],
        ),
        (
            "buf.build/buf/stdlib/buf.mcp.tools.v1.FileReadRequest:v1.2.3",
            [
                "buf.build",
                "buf",
                "stdlib",
                "buf.mcp.tools.v1.FileReadRequest",
                "v1.2.3",
            ],
        ),
    ] {
        let Reference {
            host,
            owner,
            module,
            symbol,
            version,
        } = text.parse().unwrap();
        assert_eq!([host, owner, module, symbol, version.unwrap()], parts);
    }
}

fn framing() {
    let frame = wire::proto::frame::framed(&[8, 3]).unwrap();
    assert_eq!(&*frame, [0, 0, 0, 2, 8, 3]);
}

/// The block prints the steps by name.
fn example_flow() {
    let gateway = gateway();
    let mut peer = Framed::open(&gateway);
    for (request, response) in [
        (INITIALIZE, "initialize_response"),
        (
            "id: 2 list_tools_request { include_schemas: true }",
            "list_tools_response",
        ),
        (CALL_WITHIN_ITS_RULES, "call_tool_response"),
    ] {
        let answer = peer.ask(&convert("MCPMessage", "txtpb", request.as_bytes(), "binpb"));
        let answer = String::from_utf8(convert("MCPMessage", "binpb", &answer, "txtpb")).unwrap();
        assert!(
            answer
                .lines()
                .nth(1)
                .is_some_and(|line| line.starts_with(response)),
            "{request}: {answer}"
        );
    }
}

fn service() {
    let file = contract();
    let [service] = &file.service[..] else {
        panic!("{:?}", file.service)
    };
    assert_eq!(service.name(), "MCPService");
    let name = |full: &str| full.rsplit('.').next().unwrap().to_owned();
    for (method, expected) in service.method.iter().zip([
        "Initialize",
        "ListTools",
        "CallTool",
        "ListResources",
        "ReadResource",
    ]) {
        assert_eq!(
            (method.name(), name(method.input_type())),
            (expected, format!("{expected}Request"))
        );
        assert_eq!(name(method.output_type()), format!("{expected}Response"));
        assert!(!method.client_streaming() && !method.server_streaming());
    }
    assert_eq!(service.method.len(), 5);
}

/// The block is a `Tool`, with a stand-in where the set is.
fn inline_schema() {
    let tool = r#"name: "custom_tool" description: "User-defined tool" inline_schema {}"#;
    let tool = convert("Tool", "txtpb", tool.as_bytes(), "binpb");
    assert_eq!(tool, b"\n\x0bcustom_tool\x12\x11User-defined tool\x22\0");
    let gateway = gateway();
    let mut peer = Framed::open(&gateway);
    let listed = peer.ask_text("id: 1 list_tools_request { include_schemas: true }");
    let tools = listed["listToolsResponse"]["tools"].as_array().unwrap();
    assert!(
        tools.iter().all(|tool| tool["inlineSchema"].is_object()),
        "{listed}"
    );
}

fn client_capabilities() {
    let printed = r#"capabilities: { supports_bsr_refs: true supports_streaming: false encodings: ["protobuf"] }"#;
    let bytes = convert("InitializeRequest", "txtpb", printed.as_bytes(), "binpb");
    assert_eq!(bytes, b"\x12\x0c\x08\x01\x1a\x08protobuf");
}

fn server_capabilities() {
    let printed = "capabilities: { supports_bsr_refs: true supports_streaming: false tools: {supports_list_changed: true} }";
    let bytes = convert("InitializeResponse", "txtpb", printed.as_bytes(), "binpb");
    assert_eq!(bytes, b"\x12\x06\x08\x01\x1a\x02\x08\x01");
}

/// Client 1.x with server 1.y, client 2.x with server 1.y. The server 2.y of a client 1.x is
/// `proto_servers`'.
fn versions() {
    let gateway = gateway();
    let mut peer = Framed::open(&gateway);
    for (version, answered) in [
        ("1.0.0", Ok("1.0.0")),
        ("1.7.2", Ok("1.0.0")),
        ("2.0.0", Err(-33002)),
        ("0.9.0", Err(-33002)),
    ] {
        let answer = peer.ask_text(&format!(
            "id: 1 initialize_request {{ protocol_version: {version:?} }}"
        ));
        match answered {
            Ok(version) => assert_eq!(answer["initializeResponse"]["protocolVersion"], version),
            Err(code) => assert_eq!(answer["errorResponse"]["code"], json!(code)),
        }
    }
}

fn conversion() {
    let input = br#"{"type": "object", "properties": {"query": {"type": "string"}, "max_results": {"type": "integer", "minimum": 1}},
        "required": ["query"]}"#;
    let tool = ListedTool {
        name: "web_search",
        description: None,
        input,
        output: None,
    };
    let converted = convert_all(
        "acme.tools.v1",
        &[tool],
        &FieldNumbering::default(),
        Style::Spec,
    );
    let printed = "message WebSearchRequest {\n  string query = 1;\n  optional int32 max_results = 2 [(buf.validate.field).int32.gte = 1];\n}\n";
    assert_eq!(converted[0].file.messages(), printed);
}

#[test]
fn first_bytes() {
    assert_eq!((sniff(b'{'), sniff(0)), (Sniffed::Json, Sniffed::Proto));
}

const INITIALIZE: &str = r#"
id: 1
initialize_request {
  protocol_version: "1.0.0"
  capabilities {
    supports_bsr_refs: true
    encodings: "protobuf"
  }
}"#;
const CALL_WITHIN_ITS_RULES: &str = r#"
id: 2
call_tool_request {
  name: "web_search"
  arguments {
    type_url: "type.googleapis.com/acme.tools.v1.WebSearchRequest"
    value: "\n\010protobuf\020\005"
  }
}"#;

fn initialize_request() {
    let bytes = convert("MCPMessage", "txtpb", INITIALIZE.as_bytes(), "binpb");
    assert_eq!(bytes.len(), 25, "the document prints 42");
    let gateway = gateway();
    let answer = shown(&Framed::open(&gateway).ask(&bytes));
    assert_eq!(answer["initializeResponse"]["protocolVersion"], "1.0.0");
}

fn initialize_response() {
    let gateway = gateway();
    let asked = INITIALIZE.replace(
        "encodings",
        "experimental { key: \"mcp.list_changed\" value: true } encodings",
    );
    let answer = Framed::open(&gateway).ask_text(&asked);
    let capabilities = &answer["initializeResponse"]["capabilities"];
    let shown = (
        &capabilities["supportsBsrRefs"],
        &capabilities["tools"]["supportsListChanged"],
    );
    assert_eq!(shown, (&json!(true), &json!(true)));
    assert_eq!(answer["id"], "1");
}

fn call_request() {
    let printed = CALL_WITHIN_ITS_RULES.replace("\\020\\005", "");
    let bytes = convert("MCPMessage", "txtpb", printed.as_bytes(), "binpb");
    assert_eq!(bytes.len(), 82, "the document prints 87");
    // Its `max_results` is 0, which the rule of the document's own schema forbids.
    let gateway = gateway();
    let refused = shown(&Framed::open(&gateway).ask(&bytes));
    let error = &refused["errorResponse"];
    assert_eq!(
        (&refused["id"], &error["code"]),
        (&json!("2"), &json!(-33001))
    );
    let violations: Value = error["data"]["violations"].clone();
    assert_eq!(
        (&violations[0]["field"], &violations[0]["rule"]),
        (&json!("max_results"), &json!("int32.gte_lte"))
    );
}

fn call_response() {
    use wire::proto::contract::mcp_message::Payload;
    use wire::proto::contract::{McpMessage, call_tool_response::Result, tool_content::Content};
    let gateway = gateway();
    let asked = convert(
        "MCPMessage",
        "txtpb",
        CALL_WITHIN_ITS_RULES.as_bytes(),
        "binpb",
    );
    let answer = McpMessage::decode(&*Framed::open(&gateway).ask(&asked)).unwrap();
    let Some(Payload::CallToolResponse(response)) = answer.payload else {
        panic!("{answer:?}")
    };
    let Some(Result::Success(success)) = response.result else {
        panic!("{response:?}")
    };
    let Some(Content::Data(data)) = &success.content[0].content else {
        panic!("{success:?}")
    };
    assert_eq!(
        data.type_url,
        "type.googleapis.com/acme.tools.v1.WebSearchResponse"
    );
    // results { title: "protobuf" } total_count: 1
    assert_eq!(&*data.value, b"\n\x0a\n\x08protobuf\x10\x01");
}
