use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use client::{ApiAnswer, Post};
use http::{HeaderMap, StatusCode};
use prost::Message;

use super::*;
use crate::connect::Code;
use crate::messages::descriptor::{FileDescriptorSet, FileNames};
use crate::messages::module::DownloadResponse;
use crate::serve::{DOWNLOAD, GET_GRAPH, GET_SET, REFLECT_SET};
use crate::{Files, ModuleSource, Shelf, Viewer};

/// URL and token of a request.
type Seen = (String, Option<String>);

/// A registry in the test: a shelf, and a journal of the requests to it.
#[derive(Clone, Default)]
struct Fake {
    shelf: Arc<Shelf>,
    module: Arc<Mutex<Files>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    only_reflection: bool,
    /// Whether files are not what their digests say.
    is_lying: bool,
    digests: Digests,
    answer: Option<ApiAnswer>,
}

impl ModuleSource for Fake {
    fn names(&self) -> Vec<String> {
        vec!["tools".to_owned()]
    }

    fn files(&self, module: &str) -> Option<Files> {
        (module == "tools").then(|| self.module.lock().clone())
    }
}

impl Fetch for Fake {
    fn post(&self, request: Post) -> Fetching<'_> {
        Box::pin(async move {
            // Others may ask meanwhile.
            tokio::task::yield_now().await;
            let token = request
                .headers
                .get("authorization")
                .map(|value| value.to_str().unwrap().to_owned());
            self.seen.lock().push((request.url.clone(), token));
            let path = &request.url[request.url.find("/buf.").unwrap()..];
            if let Some(answer) = self.answer.as_ref().filter(|_| path == GET_SET) {
                return Ok(answer.clone());
            }
            if self.answer.is_some() || self.only_reflection && path != REFLECT_SET {
                return Ok(ApiAnswer {
                    headers: HeaderMap::new(),
                    status: StatusCode::NOT_FOUND,
                    body: Bytes::from_static(b"404\n"),
                });
            }
            let viewer = Viewer {
                id: "x",
                source: self,
                now_ms: 0,
            };
            Ok(match self.shelf.answer(path, &request.body, &viewer) {
                Ok(body) if self.is_lying && path == DOWNLOAD => {
                    let mut answer = DownloadResponse::decode(body).unwrap();
                    answer.contents[0].files[0].content.push(b'\n');
                    ApiAnswer {
                        headers: HeaderMap::new(),
                        status: StatusCode::OK,
                        body: answer.encode_to_vec().into(),
                    }
                }
                Ok(body) => ApiAnswer {
                    headers: HeaderMap::new(),
                    status: StatusCode::OK,
                    body,
                },
                Err(error) => ApiAnswer {
                    headers: HeaderMap::new(),
                    status: error.code.status(),
                    body: error.body().into(),
                },
            })
        })
    }
}

impl Fake {
    fn with(messages: &[&str]) -> Self {
        let fake = Self::default();
        fake.set(messages);
        fake
    }

    fn set(&self, messages: &[&str]) {
        let file = |name: &&str| {
            let text = format!(
                "syntax = \"proto3\";\npackage tools.v1;\nimport \"buf/validate/validate.proto\";\nmessage {name} {{\n  \
                 optional string q = 1 [(buf.validate.field).required = true];\n}}\n"
            );
            (
                format!("tools/v1/{}.proto", name.to_lowercase()),
                text.into(),
            )
        };
        *self.module.lock() = messages.iter().map(file).collect::<BTreeMap<_, Arc<str>>>();
    }

    fn requests(&self) -> usize {
        self.seen.lock().len()
    }

    fn resolver(&self) -> Resolver {
        let hosts = Hosts::new(["registry.example", "other.example"]).unwrap();
        let tokens = RegistryTokens::read("secret@registry.example", "").unwrap();
        Resolver::new(
            ResolverSettings {
                hosts,
                tokens,
                digests: self.digests.clone(),
                label_kept_ms: LABEL_KEPT_MS,
            },
            self.clone(),
        )
    }
}

fn reference(text: &str) -> Reference {
    text.parse().unwrap()
}

const A: &str = "registry.example/portmoot/tools/tools.v1.A";

#[tokio::test]
async fn a_label_is_kept_for_its_time_and_a_commit_for_ever() {
    let fake = Fake::with(&["A"]);
    let resolver = fake.resolver();
    let first = resolver.resolve(&reference(A), 0).await.unwrap();
    fake.set(&["A", "B"]);
    assert_eq!(
        resolver.resolve(&reference(A), LABEL_KEPT_MS - 1).await,
        Ok(first.clone())
    );
    assert_eq!(
        fake.requests(),
        2,
        "which modules there are, and their files"
    );
    let second = resolver
        .resolve(&reference(A), LABEL_KEPT_MS)
        .await
        .unwrap();
    assert_ne!(second.commit, first.commit);
    assert_eq!(fake.requests(), 4);
    let pinned = reference(&format!("{A}:{}", first.commit));
    assert_eq!(resolver.resolve(&pinned, u64::MAX).await, Ok(first));
    assert_eq!(fake.requests(), 4, "a commit does not change");
    // Another message of the label asks for the commit that the label has had.
    fake.set(&["B"]);
    let other = reference("registry.example/portmoot/tools/tools.v1.B");
    assert_eq!(
        resolver
            .resolve(&other, LABEL_KEPT_MS + 1)
            .await
            .unwrap()
            .commit,
        second.commit
    );
}

#[tokio::test]
async fn the_rules_of_a_set_survive() {
    let resolved = Fake::with(&["A", "B"])
        .resolver()
        .resolve(&reference(A), 0)
        .await
        .unwrap();
    let set = FileDescriptorSet::decode(resolved.set).unwrap();
    let file = set
        .file
        .iter()
        .find(|file| FileNames::decode((*file).clone()).unwrap().name == "tools/v1/a.proto");
    // Field 1159 (`buf.validate.field`), of 3 bytes: `required` (25) is true.
    let rule = [0xba, 0x48, 3, 0xc8, 1, 1];
    assert!(file.unwrap().windows(rule.len()).any(|bytes| bytes == rule));
}

#[tokio::test]
async fn those_who_ask_the_same_at_once_ask_once() {
    let fake = Fake::with(&["A"]);
    let resolver = Arc::new(fake.resolver());
    let done = Arc::new(AtomicUsize::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let resolver = Arc::clone(&resolver);
        let done = Arc::clone(&done);
        tasks.spawn(async move {
            resolver.resolve(&reference(A), 0).await.unwrap();
            done.fetch_add(1, Ordering::Relaxed);
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    assert_eq!((done.load(Ordering::Relaxed), fake.requests()), (20, 2));
}

#[tokio::test]
async fn a_foreign_host_is_not_asked_and_a_token_goes_to_its_own() {
    let fake = Fake::with(&["A"]);
    let resolver = fake.resolver();
    for foreign in [
        "evil.example",
        "registry.example:444",
        "registry.example.evil.example",
    ] {
        let wanted = reference(&format!("{foreign}/portmoot/tools/tools.v1.A"));
        assert_eq!(
            resolver.resolve(&wanted, 0).await,
            Err(ResolveError::ForeignHost(foreign.to_owned()))
        );
    }
    assert_eq!(fake.requests(), 0);
    for host in ["registry.example", "other.example"] {
        resolver
            .resolve(&reference(&format!("{host}/portmoot/tools/tools.v1.A")), 0)
            .await
            .unwrap();
    }
    let seen = fake.seen.lock().clone();
    assert_eq!(
        seen[0],
        (
            format!("https://registry.example{GET_GRAPH}"),
            Some("Bearer secret".to_owned())
        )
    );
    assert_eq!(seen[2], (format!("https://other.example{GET_GRAPH}"), None));
}

#[tokio::test]
async fn a_registry_with_the_reflection_api_alone_is_asked_there() {
    let fake = Fake {
        only_reflection: true,
        ..Fake::with(&["A"])
    };
    let resolver = fake.resolver();
    let by_tool = reference("registry.example/portmoot/tools/a");
    let resolved = resolver.resolve(&by_tool, 0).await.unwrap();
    assert!(is_commit(&resolved.commit));
    assert_eq!(fake.requests(), 3);
    let absent = reference("registry.example/portmoot/absent/a");
    let refused = resolver.resolve(&absent, 0).await;
    assert!(
        matches!(&refused, Err(ResolveError::Refused(error)) if error.code == Code::NotFound),
        "{refused:?}"
    );
}

#[tokio::test]
async fn answers_that_are_none_are_not_kept() {
    let answered = |status: StatusCode, body: Vec<u8>| {
        Some(ApiAnswer {
            headers: HeaderMap::new(),
            status,
            body: body.into(),
        })
    };
    let set = |commit: &str, bytes: usize| {
        let commit = crate::messages::module::Commit {
            id: commit.to_owned(),
            ..<_>::default()
        };
        let file_descriptor_set = vec![0; bytes].into();
        let answer = crate::messages::module::GetFileDescriptorSetResponse {
            file_descriptor_set,
            commit: Some(commit),
        };
        answer.encode_to_vec()
    };
    let id = "0123456789abcdef0123456789abcdef";
    for (answer, wanted) in [
        (
            answered(StatusCode::FOUND, Vec::new()),
            Err(ResolveError::Status(302)),
        ),
        (
            answered(StatusCode::OK, vec![0xff]),
            Err(ResolveError::Malformed),
        ),
        (
            answered(StatusCode::OK, Vec::new()),
            Err(ResolveError::Malformed),
        ),
        (
            answered(StatusCode::OK, set("main", 1)),
            Err(ResolveError::Malformed),
        ),
        (
            answered(StatusCode::OK, set(id, SET_BYTES_MAX + 1)),
            Err(ResolveError::Malformed),
        ),
        (
            answered(StatusCode::OK, set(id, SET_BYTES_MAX)),
            Ok(SET_BYTES_MAX),
        ),
        (
            answered(StatusCode::NOT_IMPLEMENTED, Vec::new()),
            Err(ResolveError::Absent),
        ),
    ] {
        let resolver = Fake {
            answer,
            ..Fake::with(&["A"])
        }
        .resolver();
        let length = resolver
            .resolve(&reference(A), 0)
            .await
            .map(|resolved| resolved.set.len());
        assert_eq!(length, wanted);
        let pinned = reference(&format!("{A}:{}", "f".repeat(32)));
        assert!(
            resolver.resolve(&pinned, 0).await.is_err(),
            "another commit than the one asked for"
        );
    }
}

#[tokio::test]
async fn sources_have_the_digest_that_the_registry_and_the_configuration_name() {
    let right = Fake::with(&["A"]);
    let commit = crate::Commit::new("tools", right.module.lock().clone(), 0);
    let resolve = |fake: Fake| async move { fake.resolver().resolve(&reference(A), 0).await };
    let lying = resolve(Fake {
        is_lying: true,
        ..right.clone()
    })
    .await
    .unwrap_err();
    let ResolveError::Digest {
        module,
        expected,
        computed,
    } = &lying
    else {
        panic!("{lying:?}")
    };
    assert_eq!(
        (&**module, expected),
        ("registry.example/portmoot/tools", &commit.digest())
    );
    assert!(
        computed != expected && lying.to_string().contains(computed.as_str()),
        "{lying}"
    );
    let configured = |digest: &str| {
        let mut digests = Digests::default();
        digests
            .add(
                &format!("registry.example/portmoot/tools:{}", commit.id()),
                digest,
            )
            .unwrap();
        digests
    };
    let other = format!("b5:{}", "00".repeat(64));
    let digests = configured(&commit.digest());
    assert!(
        resolve(Fake {
            digests: digests.clone(),
            ..right.clone()
        })
        .await
        .is_ok()
    );
    let refused = resolve(Fake {
        digests: configured(&other),
        ..right.clone()
    })
    .await;
    assert!(
        matches!(&refused, Err(ResolveError::Digest { expected, .. }) if *expected == other),
        "{refused:?}"
    );
    // A descriptor set has no digest.
    let unproven = Fake {
        digests,
        only_reflection: true,
        ..right
    };
    assert_eq!(resolve(unproven).await, Err(ResolveError::NoSources));
}
