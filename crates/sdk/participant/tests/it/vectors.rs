//! Vectors of envelopes, which the clients for Rust and Python share, and the envelope's JSON
//! Schema (`docs/`).

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use portmoot_participant::{Act, CheckError, check};
use serde_json::Value;

fn documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs")
}

fn read(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(documents().join(name)).unwrap()).unwrap()
}

fn vectors() -> Vec<Value> {
    read("mcpx-vectors.json")["vectors"]
        .as_array()
        .unwrap()
        .clone()
}

/// The envelope of a vector, as text.
fn text(vector: &Value) -> String {
    let written = vector["text"].as_str().map(str::to_owned);
    written.unwrap_or_else(|| vector["envelope"].to_string())
}

/// The verdict in the words of the vectors, the target, and the fault.
fn verdict(text: &str) -> (&'static str, Option<String>, Option<String>) {
    match check(Bytes::copy_from_slice(text.as_bytes())) {
        Err(CheckError::Breach(why)) if why.code == model::RefusalCode::UnsupportedProtocol => {
            ("unsupported_protocol", None, Some(why.to_string()))
        }
        Err(CheckError::Breach(why)) => ("malformed", None, Some(why.to_string())),
        Err(CheckError::Mismatch(why)) => ("mismatch", None, Some(why.to_string())),
        Ok((_, Act::Request(call))) => {
            let verdict = if call.is_notification() {
                "notification"
            } else {
                "request"
            };
            (verdict, call.target().map(str::to_owned), None)
        }
        Ok((_, Act::Proposal(call))) => ("proposal", call.target().map(str::to_owned), None),
        Ok((_, Act::Answer(_))) => ("answer", None, None),
        Ok((_, Act::Other)) => ("other", None, None),
    }
}

const VALID: [&str; 5] = ["request", "notification", "proposal", "answer", "other"];

#[test]
fn the_sdk_gives_every_vector_its_verdict() {
    let vectors = vectors();
    let mut seen = BTreeSet::new();
    for vector in &vectors {
        let (found, target, why) = verdict(&text(vector));
        assert_eq!(found, vector["verdict"], "{vector}: {why:?}");
        assert_eq!(target.as_deref(), vector["target"].as_str(), "{vector}");
        // Faults of the syntax have the words of each JSON reader.
        if let Some(expect) = vector["why"].as_str() {
            assert_eq!(why.as_deref(), Some(expect), "{vector}");
        }
        assert_eq!(why.is_some(), !VALID.contains(&found), "{vector}");
        seen.insert(found);
    }
    assert!(
        vectors.len() > 130 && seen.len() == 8,
        "{} {seen:?}",
        vectors.len()
    );
}

#[test]
fn the_schema_and_the_checks_of_the_sdk_agree() {
    let schema = read("envelope.schema.json");
    assert!(jsonschema::meta::is_valid(&schema));
    let schema = jsonschema::validator_for(&schema).unwrap();
    for vector in vectors() {
        let is_valid = VALID.contains(&vector["verdict"].as_str().unwrap());
        let read = serde_json::from_str::<Value>(&text(&vector));
        let admits = read.is_ok_and(|envelope| schema.is_valid(&envelope));
        // Some faults are invisible to a schema; the vectors say which.
        let expect = match (vector["beyond_schema"] == true, vector["tolerated"] == true) {
            (false, false) => is_valid,
            (true, false) => {
                assert!(!is_valid, "{vector}");
                true
            }
            (false, true) => {
                assert!(is_valid, "{vector}");
                false
            }
            (true, true) => panic!("{vector}"),
        };
        assert_eq!(admits, expect, "{vector}");
    }
}

/// The specification's own examples, which the wire's tests have as files.
#[test]
fn the_schema_admits_the_examples_of_the_specification() {
    let schema = jsonschema::validator_for(&read("envelope.schema.json")).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocol/wire/tests-data/mcpx");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let example = std::fs::read_to_string(&path).unwrap();
        let envelope: Value = serde_json::from_str(&example).unwrap();
        // Section 3 begins with a sketch of all members, whose payload is only a comment.
        if path.ends_with("3-envelope.json") {
            continue;
        }
        assert!(schema.is_valid(&envelope), "{}", path.display());
        assert!(check(Bytes::from(example)).is_ok(), "{}", path.display());
        count += 1;
    }
    assert!(count >= 10, "{count}");
}
