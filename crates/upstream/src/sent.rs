//! Schemas that a proto-mcp server sends with its tools: gathered page by page, read when all are there.

use std::collections::HashMap;
use std::sync::Arc;

use platform::Mutex;
use transcode::server::schemas::{self, SentSchema, SentTool, Source};
use wire::mcp::{ListKind, list::Item};

/// Bytes of the schemas of one server before they are read.
const SENT_BYTES_MAX: usize = 16 << 20;

/// The schemas of a list of which not all pages are there yet.
#[derive(Debug, Default)]
pub(crate) struct SentSchemas(Mutex<(Vec<SentSchema>, usize)>);

impl SentSchemas {
    /// Forgets those of an earlier list.
    pub(crate) fn clear(&self) {
        *self.0.lock() = Default::default();
    }

    /// Adds those of a page, as far as there is room.
    pub(crate) fn add(&self, page: Vec<SentSchema>) {
        let (all, bytes) = &mut *self.0.lock();
        for sent in page {
            *bytes = bytes.saturating_add(match &sent.source {
                Source::Inline(set) => set.len(),
                Source::Reference(reference) => reference.len(),
            });
            if *bytes > SENT_BYTES_MAX {
                tracing::warn!(tool = sent.tool, "the server's schemas are too long: this one is not read");
                continue;
            }
            all.push(sent);
        }
    }

    pub(crate) fn take(&self) -> Vec<SentSchema> {
        std::mem::take(&mut self.0.lock().0)
    }
}

/// The messages of a server's tools, by its own names of them. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentTools(Arc<HashMap<String, SentTool>>);

impl SentTools {
    /// The messages of a tool; `None` if its arguments are a `google.protobuf.Struct`.
    #[must_use]
    pub fn get(&self, tool: &str) -> Option<&SentTool> {
        self.0.get(tool)
    }
}

/// Reads the schemas that the server sent with its tools, and describes the tools by them. A tool whose schema cannot be used stays
/// without one.
pub(crate) async fn read(server: &str, sent: Vec<SentSchema>, tools: &mut [Item]) -> SentTools {
    let sent = inline(server, sent);
    if sent.is_empty() {
        return SentTools::default();
    }
    let read = tokio::task::spawn_blocking(move || schemas::read(&sent)).await.unwrap_or_default();
    let mut found = HashMap::with_capacity(read.len());
    for (tool, messages) in read {
        match messages {
            Ok(messages) => drop(found.insert(tool, messages)),
            Err(why) => tracing::warn!(
                server,
                tool,
                why,
                "the schema of a tool cannot be used: its arguments are a Struct"
            ),
        }
    }
    for item in tools {
        let described = found.get(&item.key).and_then(|messages| messages.described(&item.raw));
        if let Some(Ok(described)) = described.map(|raw| Item::read(ListKind::Tools, raw.into())) {
            *item = described;
        }
    }
    SentTools(Arc::new(found))
}

/// The schemas whose descriptors are there. Nothing resolves references of servers yet: their tools stay without a schema
/// ([`SentSchema::resolved`]).
fn inline(server: &str, sent: Vec<SentSchema>) -> Vec<SentSchema> {
    let (inline, far): (Vec<_>, Vec<_>) =
        sent.into_iter().partition(|one| matches!(one.source, Source::Inline(_)));
    if !far.is_empty() {
        tracing::warn!(
            server,
            tools = far.len(),
            "schemas by reference are not resolved: the arguments are a Struct"
        );
    }
    inline
}

#[cfg(test)]
mod tests {
    use transcode::server::tools;
    use wire::proto::contract::{ListToolsResponse, Tool, tool::SchemaSource};

    use super::*;

    #[test]
    fn schemas_of_a_server_are_kept_up_to_a_limit() {
        let tool = |name: &str, bytes: usize| Tool {
            name: name.to_owned(),
            schema_source: Some(SchemaSource::InlineSchema(vec![0; bytes].into())),
            ..Tool::default()
        };
        let page = |bytes| {
            let tools = vec![tool("a", bytes), tool("b", 1)];
            tools::page(ListToolsResponse { tools, next_cursor: String::new() }).schemas
        };
        let schemas = SentSchemas::default();
        for (bytes, kept) in [(SENT_BYTES_MAX - 1, 2), (SENT_BYTES_MAX, 1)] {
            schemas.clear();
            schemas.add(page(bytes));
            assert_eq!(schemas.take().len(), kept);
        }
    }
}
