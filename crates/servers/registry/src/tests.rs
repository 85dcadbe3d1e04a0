use std::collections::BTreeMap;

use prost::Message;

use super::*;
use crate::messages::module::{
    GetCommitsRequest, GetCommitsResponse, GetFileDescriptorSetRequest,
    GetFileDescriptorSetResponse, ResourceName, ResourceRef,
};
use crate::serve::{GET_COMMITS, GET_SET};

/// Modules by name.
struct Fixed(BTreeMap<&'static str, Files>);

impl ModuleSource for Fixed {
    fn names(&self) -> Vec<String> {
        self.0.keys().map(|name| (*name).to_owned()).collect()
    }

    fn files(&self, module: &str) -> Option<Files> {
        self.0.get(module).cloned()
    }
}

/// A module `git` with these messages, each in a file of its own.
fn git(messages: &[&str]) -> Fixed {
    let file = |name: &&str| {
        let text = format!(
            "syntax = \"proto3\";\npackage git.v1;\nmessage {name} {{\n  message In {{}}\n}}\n"
        );
        (format!("git/v1/{}.proto", name.to_lowercase()), text.into())
    };
    Fixed(BTreeMap::from([(
        "git",
        messages.iter().map(file).collect(),
    )]))
}

fn named(reference: &str) -> ResourceRef {
    let owner = OWNER.to_owned();
    let module = "git".to_owned();
    let reference = reference.to_owned();
    let name = ResourceName {
        owner,
        module,
        reference,
        label_name: String::new(),
    };
    ResourceRef {
        id: String::new(),
        name: Some(name),
    }
}

fn commit(
    shelf: &Shelf,
    reference: ResourceRef,
    who: &str,
    source: &dyn ModuleSource,
) -> Result<String, Code> {
    let request = GetCommitsRequest {
        resource_refs: vec![reference],
    }
    .encode_to_vec();
    let viewer = Viewer {
        id: who,
        source,
        now_ms: 1,
    };
    let answer = shelf
        .answer(GET_COMMITS, &request, &viewer)
        .map_err(|error| error.code)?;
    Ok(GetCommitsResponse::decode(answer)
        .unwrap()
        .commits
        .remove(0)
        .id)
}

#[test]
fn a_commit_of_the_present_files_answers_after_a_restart() {
    let now = git(&["A"]);
    let id = commit(&Shelf::default(), named(""), "ann", &now).unwrap();
    let by_id = || ResourceRef {
        id: id.clone(),
        name: None,
    };
    for reference in [named(&id), by_id()] {
        assert_eq!(
            commit(&Shelf::default(), reference.clone(), "ann", &now),
            Ok(id.clone())
        );
        assert_eq!(
            commit(&Shelf::default(), reference, "ann", &git(&["B"])),
            Err(Code::NotFound)
        );
    }
}

#[test]
fn a_commit_answers_who_saw_it_after_the_module_has_changed() {
    let shelf = Shelf::default();
    let before = git(&["A"]);
    let after = git(&["A", "B"]);
    let old = commit(&shelf, named(""), "ann", &before).unwrap();
    assert_eq!(
        commit(&Shelf::default(), named("v1"), "bob", &before),
        Ok(old.clone()),
        "ids follow from files"
    );
    let new = commit(&shelf, named("main"), "ann", &after).unwrap();
    assert_ne!(new, old);
    let by_id = || ResourceRef {
        id: old.clone(),
        name: None,
    };
    assert_eq!(commit(&shelf, named(&old), "ann", &after), Ok(old.clone()));
    assert_eq!(commit(&shelf, by_id(), "ann", &after), Ok(old.clone()));
    assert_eq!(
        commit(&shelf, by_id(), "bob", &after),
        Err(Code::NotFound),
        "bob never saw it"
    );
    let none = Fixed(BTreeMap::new());
    assert_eq!(
        commit(&shelf, by_id(), "ann", &none),
        Err(Code::NotFound),
        "ann sees the server no more"
    );
    assert_eq!(
        commit(&shelf, named("v2"), "ann", &after),
        Err(Code::NotFound)
    );
}

#[test]
fn a_participant_with_many_commits_pushes_out_no_others() {
    let shelf = Shelf::default();
    let first = commit(&shelf, named(""), "ann", &git(&["A"])).unwrap();
    for number in 0..=COMMITS_MAX {
        let name = format!("M{number}");
        commit(&shelf, named(""), "greedy", &git(&[&name])).unwrap();
    }
    assert_eq!(
        commit(&shelf, named(&first), "ann", &git(&["B"])),
        Ok(first)
    );
    let oldest = commit(&Shelf::default(), named(""), "x", &git(&["M0"])).unwrap();
    assert_eq!(
        commit(&shelf, named(&oldest), "greedy", &git(&["B"])),
        Err(Code::NotFound)
    );
}

#[test]
fn a_descriptor_set_has_the_files_of_the_types_that_are_wanted() {
    let shelf = Shelf::default();
    let source = git(&["A", "B"]);
    let set = |types: &[&str]| {
        let include_types = types.iter().map(|name| (*name).to_owned()).collect();
        let request = GetFileDescriptorSetRequest {
            resource_ref: Some(named("")),
            include_types,
            ..GetFileDescriptorSetRequest::default()
        };
        let viewer = Viewer {
            id: "ann",
            source: &source,
            now_ms: 1,
        };
        let answer = shelf
            .answer(GET_SET, &request.encode_to_vec(), &viewer)
            .map_err(|error| error.code)?;
        let set = GetFileDescriptorSetResponse::decode(answer)
            .unwrap()
            .file_descriptor_set;
        let set = messages::descriptor::FileDescriptorSet::decode(set).unwrap();
        let name = |file: &bytes::Bytes| {
            messages::descriptor::FileNames::decode(file.clone())
                .unwrap()
                .name
        };
        Ok(set.file.iter().map(name).collect::<Vec<_>>())
    };
    assert_eq!(
        set(&[]),
        Ok(vec![
            "git/v1/a.proto".to_owned(),
            "git/v1/b.proto".to_owned()
        ])
    );
    assert_eq!(set(&["git.v1"]), set(&[]));
    assert_eq!(set(&["git.v1.B.In"]), Ok(vec!["git/v1/b.proto".to_owned()]));
    for absent in ["git.v1.C", "git.v1.A.Out", "git.v1.AB", "git", ".git.v1.A"] {
        assert_eq!(set(&[absent]), Err(Code::InvalidArgument), "{absent}");
    }
}

#[test]
fn requests_that_are_none_are_refused() {
    let shelf = Shelf::default();
    let source = git(&["A"]);
    let viewer = Viewer {
        id: "ann",
        source: &source,
        now_ms: 1,
    };
    let code = |path: &str, body: &[u8]| shelf.answer(path, body, &viewer).unwrap_err().code;
    assert_eq!(
        code("/buf.registry.module.v1.UploadService/Upload", &[]),
        Code::Unimplemented
    );
    for path in METHODS {
        assert_ne!(code(path, &[]), Code::Internal, "{path}");
        assert_eq!(code(path, &[0xff]), Code::InvalidArgument, "{path}");
    }
    for (count, wanted) in [(250, true), (251, false)] {
        let request = GetCommitsRequest {
            resource_refs: vec![named(""); count],
        }
        .encode_to_vec();
        assert_eq!(
            shelf.answer(GET_COMMITS, &request, &viewer).is_ok(),
            wanted,
            "{count}"
        );
    }
}
