//! Schemas that a proto-mcp server sends with its tools: gathered page by page, resolved and read
//! when all are there.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use platform::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use transcode::server::schemas::{self, DescriptorSource, SentSchema, SentTool};
use wire::mcp::{ListKind, list::Item};

use crate::status::QuarantinedTool;

/// Bytes of the schemas of one server before they are read.
const SENT_BYTES_MAX: usize = 16 << 20;
/// References of one server that are resolved at once.
const RESOLVED_AT_ONCE_MAX: usize = 8;
/// The time in which all references of a server are resolved. Its tools are listed after that.
const RESOLVING: Duration = Duration::from_secs(10);

/// The longest time after which references without an answer are resolved again.
pub const RETRY_MAX: Duration = Duration::from_secs(600);

/// The schemas of a list of which not all pages are there yet.
#[derive(Debug, Default)]
pub(crate) struct SentSchemas(Mutex<Gathered>);

#[derive(Debug, Default)]
struct Gathered {
    schemas: Vec<SentSchema>,
    /// Their bytes, with those of schemas for which there was no room.
    bytes: usize,
}

impl SentSchemas {
    /// Forgets those of an earlier list.
    pub(crate) fn clear(&self) {
        *self.0.lock() = Default::default();
    }

    /// Adds those of a page, as far as there is room.
    pub(crate) fn add(&self, page: Vec<SentSchema>) {
        let mut gathered = self.0.lock();
        for sent in page {
            let bytes = match &sent.source {
                DescriptorSource::Inline(set) => set.len(),
                DescriptorSource::Reference(reference) => reference.len(),
            };
            gathered.bytes = gathered.bytes.saturating_add(bytes);
            if gathered.bytes > SENT_BYTES_MAX {
                tracing::warn!(
                    tool = sent.tool,
                    "the server's schemas are too long: this one is not read"
                );
                continue;
            }
            gathered.schemas.push(sent);
        }
    }

    pub(crate) fn take(&self) -> Vec<SentSchema> {
        std::mem::take(&mut self.0.lock().schemas)
    }
}

/// The messages of a server's tools, by its own names of them. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentTools(Arc<Sent>);

#[derive(Debug, Default, PartialEq, Eq)]
struct Sent {
    tools: HashMap<String, SentTool>,
    /// The references that stand for no schema here, by the tools that came with them.
    unresolved: HashMap<String, String>,
}

impl SentTools {
    /// The messages of a tool; `None` if its arguments are a `google.protobuf.Struct`.
    #[must_use]
    pub fn get(&self, tool: &str) -> Option<&SentTool> {
        self.0.tools.get(tool)
    }

    /// The reference to a tool's schema as the server wrote it, whether or not it was resolved.
    #[must_use]
    pub fn reference(&self, tool: &str) -> Option<&str> {
        match self.get(tool) {
            Some(sent) => sent.reference.as_deref(),
            None => self.0.unresolved.get(tool).map(String::as_str),
        }
    }
}

/// A reference on its way: its serialized `google.protobuf.FileDescriptorSet`, or why there is
/// none.
pub type Resolving = Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send>>;

/// Resolves references to schemas. Where from is for the implementation to decide: a server may
/// send any reference.
pub trait Resolve: Send + Sync {
    /// Resolves `host/owner/module/symbol[:version]`.
    fn resolve(self: Arc<Self>, reference: String) -> Resolving;

    /// After what time a reference without an answer is resolved again. The time doubles, to
    /// [`RETRY_MAX`] or this if it is longer.
    fn retry(&self) -> Duration;
}

/// Reads the schemas that the server sent with its tools, resolves those that are elsewhere, and
/// describes the tools by them. A tool whose schema cannot be used stays without one: why is
/// returned too.
pub(crate) async fn read(
    server: &str,
    resolve: Option<&Arc<dyn Resolve>>,
    sent: Vec<SentSchema>,
    tools: &mut [Item],
) -> Read {
    let mut unusable = Vec::new();
    let mut references: HashMap<_, _> = sent.iter().filter_map(SentSchema::far).collect();
    let complete = inline(resolve, sent, &mut unusable).await;
    // So far only references have failed. Without a registry that is allowed no later attempt can
    // do better.
    let is_unresolved = resolve.is_some() && !unusable.is_empty();
    let mut found = HashMap::with_capacity(complete.len());
    if !complete.is_empty() {
        // A thread of its own: to read many takes long. If there is none, the tools have no schemas.
        let read = tokio::task::spawn_blocking(move || schemas::read(&complete))
            .await
            .unwrap_or_default();
        for (tool, messages) in read {
            match messages {
                Ok(messages) => drop(found.insert(tool, messages)),
                Err(reason) => unusable.push(QuarantinedTool { name: tool, reason }),
            }
        }
    }
    for QuarantinedTool { name: tool, reason } in &unusable {
        tracing::warn!(
            server,
            tool,
            reason,
            "the schema of a tool cannot be used: its arguments are a Struct"
        );
    }
    for item in tools {
        let Some(messages) = found.get(&item.key) else {
            continue;
        };
        if let Some(raw) = messages.described(&item.raw)
            && let Ok(described) = Item::read(ListKind::Tools, raw.into())
        {
            *item = described;
        }
    }
    references.retain(|tool, _| !found.contains_key(tool));
    Read {
        tools: SentTools(Arc::new(Sent {
            tools: found,
            unresolved: references,
        })),
        unusable,
        is_unresolved,
    }
}

/// The schemas of a list.
pub(crate) struct Read {
    pub(crate) tools: SentTools,
    /// The tools whose schemas cannot be used, and why.
    pub(crate) unusable: Vec<QuarantinedTool>,
    /// Whether a reference could have an answer later.
    pub(crate) is_unresolved: bool,
}

/// Time until references without an answer are resolved again.
#[derive(Debug, Default)]
pub(crate) struct Retry(Option<Duration>);

impl Retry {
    /// The pause before the next attempt; `None` if all references have answers.
    pub(crate) fn pause(&mut self, is_unresolved: bool, first: Duration) -> Option<Duration> {
        self.0 = match self.0 {
            _ if !is_unresolved => None,
            None => Some(first),
            Some(pause) => Some((pause * 2).min(RETRY_MAX.max(first))),
        };
        self.0
    }
}

/// The schemas with their descriptors: those that are in a registry are resolved, some at a time
/// and all within a time. Those that cannot be are added to the unusable ones.
async fn inline(
    resolve: Option<&Arc<dyn Resolve>>,
    sent: Vec<SentSchema>,
    unusable: &mut Vec<QuarantinedTool>,
) -> Vec<SentSchema> {
    let mut complete = Vec::with_capacity(sent.len());
    let mut far = Vec::new();
    for one in sent {
        match one.source.clone() {
            DescriptorSource::Inline(_) => complete.push(one),
            DescriptorSource::Reference(reference) => far.push((one, reference)),
        }
    }
    let Some(resolve) = resolve else {
        for (sent, reference) in far {
            let reason = format!("`{reference}` is in a registry, and none is allowed");
            unusable.push(without_schema(sent, reason));
        }
        return complete;
    };
    let mut asked = HashMap::new();
    let mut open = JoinSet::new();
    let mut far = far.into_iter();
    let until = Instant::now() + RESOLVING;
    let mut bytes = 0_usize;
    loop {
        while open.len() < RESOLVED_AT_ONCE_MAX
            && let Some((sent, reference)) = far.next()
        {
            let id = open.spawn(Arc::clone(resolve).resolve(reference)).id();
            asked.insert(id, sent);
        }
        let answer = timeout_at(until, open.join_next_with_id()).await;
        let Ok(Some(answer)) = answer else { break };
        let (id, answer) = match answer {
            Ok(answer) => answer,
            Err(error) => (error.id(), Err("it was interrupted".to_owned())),
        };
        let Some(sent) = asked.remove(&id) else {
            continue;
        };
        match answer {
            Ok(set) if bytes.saturating_add(set.len()) <= SENT_BYTES_MAX => {
                bytes += set.len();
                complete.push(sent.resolved(set));
            }
            Ok(_) => {
                let reason = "the server's schemas are too long together".to_owned();
                unusable.push(without_schema(sent, reason));
            }
            Err(why) => unusable.push(without_schema(sent, why)),
        }
    }
    // What is left here had no answer when the time was over.
    let seconds = RESOLVING.as_secs();
    for sent in asked.into_values().chain(far.map(|(sent, _)| sent)) {
        let reason = format!("its registry did not answer within {seconds} s");
        unusable.push(without_schema(sent, reason));
    }
    complete
}

/// A tool whose schema cannot be used, for this reason.
fn without_schema(sent: SentSchema, reason: String) -> QuarantinedTool {
    QuarantinedTool {
        name: sent.tool,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use transcode::server::tools;
    use wire::proto::contract::{ListToolsResponse, Tool, tool::SchemaSource};

    use super::*;

    /// Tools with references.
    fn far(count: usize) -> Vec<SentSchema> {
        let tool = |number: usize| Tool {
            name: number.to_string(),
            schema_source: Some(SchemaSource::BsrRef(format!("a.example/b/c/d.E{number}"))),
            ..Tool::default()
        };
        let tools = (0..count).map(tool).collect();
        tools::page(ListToolsResponse {
            tools,
            next_cursor: String::new(),
        })
        .schemas
    }

    /// A registry that answers with this many bytes, or never; and how many questions it had at
    /// once.
    struct Registry(Option<usize>, AtomicUsize, AtomicUsize);

    impl Resolve for Registry {
        fn resolve(self: Arc<Self>, _: String) -> Resolving {
            Box::pin(async move {
                self.2
                    .fetch_max(self.1.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let Some(bytes) = self.0 else {
                    return std::future::pending().await;
                };
                tokio::task::yield_now().await;
                self.1.fetch_sub(1, Ordering::SeqCst);
                Ok(vec![0; bytes].into())
            })
        }

        fn retry(&self) -> Duration {
            RETRY_MAX
        }
    }

    #[test]
    fn the_pause_before_the_next_attempt_doubles_up_to_a_limit() {
        let mut retry = Retry::default();
        let first = RETRY_MAX / 5;
        let mut pause = |is_unresolved| retry.pause(is_unresolved, first);
        let pauses = [true; 5].map(&mut pause);
        assert_eq!(
            pauses,
            [first, first * 2, first * 4, RETRY_MAX, RETRY_MAX].map(Some)
        );
        assert_eq!((pause(false), pause(true)), (None, Some(first)));
        assert_eq!(
            Retry::default().pause(true, RETRY_MAX * 2),
            Some(RETRY_MAX * 2)
        );
    }

    /// How many schemas are there, why others are not, and how many were asked for at once.
    async fn resolved(answers: Option<usize>, count: usize) -> (usize, Vec<String>, usize) {
        let registry = Arc::new(Registry(
            answers,
            AtomicUsize::default(),
            AtomicUsize::default(),
        ));
        let resolve: Arc<dyn Resolve> = Arc::<Registry>::clone(&registry);
        let mut unusable = Vec::new();
        let here = inline(Some(&resolve), far(count), &mut unusable).await;
        let reasons = unusable.into_iter().map(|tool| tool.reason).collect();
        (here.len(), reasons, registry.2.load(Ordering::SeqCst))
    }

    #[tokio::test(start_paused = true)]
    async fn references_are_resolved_some_at_a_time_and_within_a_time() {
        let many = 3 * RESOLVED_AT_ONCE_MAX;
        assert_eq!(
            resolved(Some(1), many).await,
            (many, Vec::new(), RESOLVED_AT_ONCE_MAX)
        );
        let began = Instant::now();
        let (here, reasons, at_once) = resolved(None, many).await;
        assert_eq!(
            (here, reasons.len(), at_once),
            (0, many, RESOLVED_AT_ONCE_MAX)
        );
        assert!(
            reasons
                .iter()
                .all(|why| why == "its registry did not answer within 10 s"),
            "{reasons:?}"
        );
        assert!((RESOLVING..2 * RESOLVING).contains(&began.elapsed()));
        let large = SENT_BYTES_MAX / 4;
        let (here, reasons, _) = resolved(Some(large), 5).await;
        assert_eq!(
            (here, reasons),
            (
                4,
                vec!["the server's schemas are too long together".to_owned()]
            )
        );
    }

    #[test]
    fn schemas_of_a_server_are_kept_up_to_a_limit() {
        let tool = |name: &str, bytes: usize| Tool {
            name: name.to_owned(),
            schema_source: Some(SchemaSource::InlineSchema(vec![0; bytes].into())),
            ..Tool::default()
        };
        let page = |bytes| {
            let tools = vec![tool("a", bytes), tool("b", 1)];
            tools::page(ListToolsResponse {
                tools,
                next_cursor: String::new(),
            })
            .schemas
        };
        let schemas = SentSchemas::default();
        for (bytes, kept) in [(SENT_BYTES_MAX - 1, 2), (SENT_BYTES_MAX, 1)] {
            schemas.clear();
            schemas.add(page(bytes));
            assert_eq!(schemas.take().len(), kept);
        }
    }
}
