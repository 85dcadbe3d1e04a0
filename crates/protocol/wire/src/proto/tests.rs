//! Rust types of proto-mcp's contract: those checked in are what the contract file gives.

use std::{env, fs, path::Path};

use prost::Message as _;

/// `UPDATE=1` writes the file anew.
#[test]
fn the_types_follow_from_the_contract() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = protox::Compiler::new([root.join("proto")]).unwrap();
    files
        .include_source_info(true)
        .include_imports(true)
        .open_file("buf/mcp/v1/mcp.proto")
        .unwrap();
    let encoded = files.encode_file_descriptor_set();
    let mut set = prost_types::FileDescriptorSet::decode(&*encoded).unwrap();
    // A descriptor set and its bytes look alike on the wire, and a typed set would lose the rules
    // in its options.
    let inline = set
        .file
        .iter_mut()
        .flat_map(|file| &mut file.message_type)
        .flat_map(|message| &mut message.field);
    let inline: Vec<_> = inline
        .filter(|field| field.name() == "inline_schema")
        .collect();
    assert_eq!(inline.len(), 1);
    for field in inline {
        field.set_type(prost_types::field_descriptor_proto::Type::Bytes);
        field.type_name = None;
    }
    let out = tempfile::tempdir().unwrap();
    let mut config = prost_build::Config::new();
    config.out_dir(out.path()).bytes(["."]).enable_type_names();
    config.compile_fds(set).unwrap();
    let made = fs::read_to_string(out.path().join("buf.mcp.v1.rs")).unwrap();
    let path = root.join("src/proto/contract.rs");
    let made = format!(
        "//! Messages of proto-mcp 1.0. Written by `UPDATE=1 cargo nextest run -p portmoot-wire contract`.\n\n{made}"
    );
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap_or_default(),
        made,
        "run the test with UPDATE=1"
    );
}
