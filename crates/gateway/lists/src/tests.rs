//! Pages, over a topic and manifests without servers.

use std::sync::Arc;

use auth::Sealer;
use model::{Capabilities, Form, LinkId, ListKind, ParticipantId, Refusal, RefusalCode};
use serde_json::Value;
use topic::section::ToolsList;
use topic::{
    Configure, Event, Handles, Join, Joining, ListScope, Seating, Topic, TopicConfig, UpstreamNames,
};
use upstream::Manifest;
use wire::mcp::list::{Hints, Item, render};
use wire::mcp::task::TaskListing;

use crate::cache::{LIST_BYTES_MAX, LISTS_MAX, PageCache};
use crate::merged::{Manifests, Reader};
use crate::page::{CURSOR_MS, MergedPage, PAGE_ITEMS_MAX, PageRequest};

/// Handles of a topic of which only the lists matter.
#[derive(Debug, Clone)]
struct Nothing;

impl Handles for Nothing {
    type Link = ();
    type Server = ();
    type Call = ();
    type Question = ();
    type Tag = ();
    type Answer = ();
    type Notice = ();
    type Message = ();
    type Content = ();
    type Task = ();
    type Work = ();
    type Ruling = ();

    fn is_same_request(_: &(), _: &()) -> bool {
        true
    }

    fn kept_bytes(_: Option<&()>, _: Option<&()>) -> usize {
        0
    }

    fn is_success(_: &()) -> bool {
        true
    }

    fn notice_bytes(_: &()) -> usize {
        0
    }
}

const ADA: LinkId = LinkId(10);
const BOB: LinkId = LinkId(11);

fn id(name: &str) -> ParticipantId {
    ParticipantId::new(name).unwrap()
}

fn capabilities(texts: &[&str]) -> Arc<Capabilities> {
    Arc::new(Capabilities::parse(texts.iter().copied()).unwrap())
}

/// A topic with two servers, `a` and `b`, each under its name as the prefix.
struct Stage {
    topic: Topic<Nothing>,
    manifests: Manifests,
    pages: PageCache,
    sealer: Sealer,
}

impl Stage {
    fn new() -> Self {
        let config = TopicConfig::new(model::TopicName::new("main").unwrap(), Vec::new());
        let manifests = ["a", "b"].map(|name| (id(name), Arc::default())).into();
        let pages = PageCache::default();
        let sealer = Sealer::new(&[7; 32], None);
        let mut stage = Self {
            topic: Topic::new(config),
            manifests,
            pages,
            sealer,
        };
        let upstreams = [
            UpstreamNames::new(id("a"), "a"),
            UpstreamNames::new(id("b"), "b"),
        ];
        let seats = upstreams.iter().zip(1..).map(|(names, link)| Seating {
            link: LinkId(link),
            server: &names.id,
            handle: (),
            capabilities: capabilities(&["mcp/response:*"]),
        });
        stage.step(Event::Configure(Configure {
            seats: seats.collect(),
            ..Configure::servers(&upstreams)
        }));
        stage.join(ADA, "ada", &["mcp/request:*"]);
        stage.join(BOB, "bob", &["mcp/request:*"]);
        stage
    }

    fn step(&mut self, event: Event<'_, Nothing>) {
        drop(self.topic.step(topic::Now::default(), event));
    }

    fn join(&mut self, link: LinkId, name: &str, texts: &[&str]) {
        let participant = &id(name);
        let capabilities = capabilities(texts);
        let joining = Joining {
            promotes: true,
            ..Joining::default()
        };
        let join = Join {
            link,
            handle: (),
            participant,
            capabilities,
            rate: None,
            joining,
        };
        self.step(Event::Join(join));
    }

    fn regrant(&mut self, name: &str, texts: &[&str]) {
        let participant = &id(name);
        let capabilities = capabilities(texts);
        self.step(Event::Regrant {
            participant,
            capabilities,
        });
    }

    /// The server lists so many tools, each of about so many bytes.
    fn list(&mut self, name: &str, len: usize, bytes: usize) {
        let text = "x".repeat(bytes);
        let tool = |at: usize| {
            let raw = format!(r#"{{"name":"t{at}","description":"{text}","inputSchema":{{}}}}"#);
            Item::read(ListKind::Tools, raw.into()).unwrap()
        };
        let mut manifest = Manifest::default();
        manifest.tools.items = (0..len).map(tool).collect();
        manifest.tools.extras = vec![("x".to_owned(), format!("{name:?}").into())];
        let items = manifest.tools.items.iter();
        let tools = items
            .map(|item| topic::ListItem::from(item.key.as_str()))
            .collect();
        let listed = topic::ServerLists {
            tools,
            ..topic::ServerLists::default()
        };
        self.step(Event::Listed {
            server: &id(name),
            scope: ListScope::Shared,
            manifest: listed,
            changed: &[],
        });
        let place = self
            .manifests
            .iter_mut()
            .find(|(known, _)| known.as_str() == name)
            .unwrap();
        place.1 = Arc::new(manifest);
    }

    fn ask(&self, link: LinkId, form: Form, cursor: Option<String>) -> Result<Vec<u8>, Refusal> {
        let page = self.ask_for(ToolsList::Full, link, form, cursor)?;
        assert_eq!(page.left_out_bytes, 0);
        Ok(page.body)
    }

    fn ask_for(
        &self,
        only: ToolsList,
        link: LinkId,
        form: Form,
        cursor: Option<String>,
    ) -> Result<MergedPage, Refusal> {
        let participant = self.topic.participant(link).unwrap();
        let list = ListKind::Tools;
        let tasks = if form == Form::Legacy {
            TaskListing::Offered
        } else {
            TaskListing::Hidden
        };
        let reader = Reader {
            tasks,
            ..Reader::PLAIN
        };
        let asked = PageRequest {
            participant,
            list,
            form,
            reader,
            only,
            cursor,
            gateways: None,
        };
        asked.page(
            &self.sealer,
            &self.pages,
            self.topic.list_snapshot(link, None).unwrap(),
            &self.manifests,
        )
    }

    fn page(&self, link: LinkId, cursor: Option<&str>) -> Value {
        let page = self
            .ask(link, Form::Legacy, cursor.map(str::to_owned))
            .unwrap();
        serde_json::from_slice(&page).unwrap()
    }

    fn names(&self, link: LinkId) -> Vec<String> {
        let page = self.page(link, None);
        let tools = page["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[test]
fn pages_equal_a_fresh_list() {
    let mut stage = Stage::new();
    stage.list("a", PAGE_ITEMS_MAX + 1, 0);
    stage.list("b", PAGE_ITEMS_MAX, 0);
    for form in [Form::Legacy, Form::Modern, Form::Legacy] {
        let hints = match form {
            Form::Legacy => Hints::Legacy,
            Form::Modern => Hints::Modern {
                ttl_ms: 0,
                public: false,
            },
        };
        let of = |at: usize| {
            let (_, manifest) = &stage.manifests[at];
            manifest
                .tools
                .items
                .iter()
                .map(move |item| (item, format!("{}_{}", ["a", "b"][at], item.key)))
        };
        let all: Vec<(&Item, String)> = of(0).chain(of(1)).collect();
        let mut cursor = None;
        for fresh in all.chunks(PAGE_ITEMS_MAX) {
            let page = stage.ask(ADA, form, cursor.take()).unwrap();
            let read: Value = serde_json::from_slice(&page).unwrap();
            cursor = read["nextCursor"].as_str().map(str::to_owned);
            let items = fresh
                .iter()
                .map(|(item, public)| (*item, Some(public.as_str())));
            let expected = render(ListKind::Tools, items, cursor.as_deref(), &[], hints);
            assert!(page == expected, "{form:?}");
        }
        assert_eq!(cursor, None, "the last page has no cursor");
    }
}

#[test]
fn members_of_a_list_are_passed_on_if_one_server_adds_to_it() {
    let mut stage = Stage::new();
    stage.list("a", 2, 0);
    assert_eq!(stage.page(ADA, None)["x"], "a");
    stage.list("b", 2, 0);
    assert_eq!(stage.page(ADA, None).get("x"), None);
    stage.regrant("ada", &["mcp/request:tools/call:b_*"]);
    assert_eq!(stage.page(ADA, None)["x"], "b");
    stage.regrant("ada", &["chat"]);
    assert_eq!(stage.page(ADA, None), serde_json::json!({ "tools": [] }));
}

#[test]
fn other_capabilities_give_another_list() {
    let mut stage = Stage::new();
    stage.list("a", 3, 0);
    assert_eq!(stage.names(ADA), ["a_t0", "a_t1", "a_t2"]);
    assert_eq!(stage.names(BOB), ["a_t0", "a_t1", "a_t2"]);
    stage.regrant("ada", &["mcp/request:tools/call:a_t1"]);
    assert_eq!(
        (stage.names(ADA), stage.names(BOB).len()),
        (vec!["a_t1".to_owned()], 3)
    );
    stage.regrant(
        "ada",
        &[
            "mcp/request:tools/call:a_t1",
            "mcp/proposal:tools/call:a_t2",
        ],
    );
    let page = stage.page(ADA, None);
    assert_eq!(page["tools"][0].get("execution"), None);
    assert_eq!(
        page["tools"][1]["execution"]["taskSupport"], "optional",
        "it would be held: {page}"
    );
    let modern: Value =
        serde_json::from_slice(&stage.ask(ADA, Form::Modern, None).unwrap()).unwrap();
    assert_eq!(modern["tools"][1].get("execution"), None);
}

#[test]
fn a_changed_manifest_gives_another_list() {
    let mut stage = Stage::new();
    stage.list("a", 1, 0);
    let before = stage.page(ADA, None);
    // The same names, and other items.
    stage.list("a", 1, 5);
    let after = stage.page(ADA, None);
    assert_ne!(before, after);
    assert_eq!(after["tools"][0]["description"], "xxxxx");
}

#[test]
fn another_participants_cursor_is_refused() {
    let mut stage = Stage::new();
    stage.list("a", PAGE_ITEMS_MAX + 1, 0);
    let page = stage.page(ADA, None);
    let cursor = page["nextCursor"].as_str().unwrap();
    let refused = stage
        .ask(BOB, Form::Legacy, Some(cursor.to_owned()))
        .unwrap_err();
    assert_eq!(refused.code, RefusalCode::Malformed);
    let nonsense = stage
        .ask(BOB, Form::Legacy, Some("nonsense".to_owned()))
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        nonsense.to_string(),
        "nothing tells that it is another's"
    );
    assert_eq!(
        stage.page(ADA, Some(cursor))["tools"][0]["name"],
        format!("a_t{PAGE_ITEMS_MAX}")
    );
}

#[test]
fn the_cache_is_bounded() {
    let mut stage = Stage::new();
    // Three lists of this length do not fit together.
    stage.list("a", 100, LIST_BYTES_MAX / 100 / 5 * 2);
    for at in 0..4 {
        stage.regrant("ada", &["mcp/request:*", &format!("chat/{at}")]);
        assert_eq!(stage.names(ADA).len(), 100);
        let (len, bytes) = stage.pages.size();
        assert!(
            len <= 2 && bytes <= LIST_BYTES_MAX,
            "{len} lists, {bytes} bytes"
        );
    }
    // A list that was read again stays.
    stage.regrant("bob", &["mcp/request:tools/call:a_t1"]);
    for at in 0..4 {
        assert_eq!(stage.names(BOB), ["a_t1"]);
        stage.regrant("ada", &["mcp/request:*", &format!("chat/{at}/again")]);
        assert_eq!(stage.names(ADA).len(), 100);
        assert!(
            stage
                .pages
                .has(&stage.topic.list_snapshot(BOB, None).unwrap()),
            "{at}"
        );
    }
    // One that is too long is served, and not kept.
    stage.list("a", PAGE_ITEMS_MAX + 100, LIST_BYTES_MAX / PAGE_ITEMS_MAX);
    let first = stage.page(ADA, None);
    assert_eq!(first["tools"].as_array().unwrap().len(), PAGE_ITEMS_MAX);
    let second = stage.page(ADA, first["nextCursor"].as_str());
    assert_eq!(second["tools"].as_array().unwrap().len(), 100);
    assert!(second.get("nextCursor").is_none());
    assert!(
        !stage
            .pages
            .has(&stage.topic.list_snapshot(ADA, None).unwrap())
    );
    // Short ones are bounded in number, and those of an older state go first.
    stage.list("a", 1, 0);
    for at in 0..LISTS_MAX + 10 {
        stage.regrant("ada", &["mcp/request:*", &format!("chat/{at}")]);
        stage.page(ADA, None);
        assert_eq!(stage.pages.size().0, LISTS_MAX.min(at + 1));
    }
}

#[test]
fn a_list_that_leaves_tools_to_the_search_says_how_much_it_leaves_out() {
    let mut stage = Stage::new();
    stage.list("a", 3, 10);
    let all = stage.ask(ADA, Form::Legacy, None).unwrap();
    let all: Value = serde_json::from_slice(&all).unwrap();
    let read = |tool: &Value| {
        let of = |key: &str| tool.get(key).map_or(0, |value| value.to_string().len());
        of("description") + of("inputSchema") + tool["name"].as_str().unwrap().len()
    };
    let expected: usize = all["tools"].as_array().unwrap().iter().map(read).sum();
    for _ in 0..2 {
        let search = ToolsList::Search;
        let page = stage.ask_for(search, ADA, Form::Legacy, None).unwrap();
        let listed: Value = serde_json::from_slice(&page.body).unwrap();
        assert_eq!(listed["tools"], serde_json::json!([]));
        assert_eq!(page.left_out_bytes, expected);
    }
}

#[test]
fn a_cursor_is_valid_for_its_participant_its_list_and_an_hour() {
    let sealer = Sealer::new(&[7; 32], None);
    let ada = id("ada");
    let bob = id("bob");
    let asked = |participant, list| {
        let form = Form::Legacy;
        let reader = Reader::PLAIN;
        let cursor = None;
        PageRequest {
            participant,
            list,
            form,
            reader,
            only: ToolsList::Full,
            cursor,
            gateways: None,
        }
    };
    let cursor = asked(&ada, ListKind::Tools).cursor_at(&sealer, 5, 1000);
    let check = |who, list, now_ms, sealed: &str, expected| {
        assert_eq!(
            asked(who, list).start(&sealer, now_ms, sealed),
            expected,
            "{who} {list:?} {now_ms}"
        );
    };
    check(&ada, ListKind::Tools, 4 + CURSOR_MS, &cursor, Some(1000));
    check(&ada, ListKind::Tools, 5 + CURSOR_MS, &cursor, None);
    check(&bob, ListKind::Tools, 6, &cursor, None);
    check(&ada, ListKind::Prompts, 6, &cursor, None);
    check(&ada, ListKind::Tools, 6, "", None);
    check(&ada, ListKind::Tools, 6, "nonsense", None);
    // The form of the state stays, so that cursors survive an update of the program.
    let known = sealer.seal(
        "cursor",
        "ada",
        u64::MAX,
        [1; 24],
        b"resources/templates/list:17",
    );
    check(&ada, ListKind::Templates, 6, &known, Some(17));
    check(&ada, ListKind::Resources, 6, &known, None);
}
