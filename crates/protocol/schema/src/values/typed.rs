//! Messages of arguments and results, with what they cannot say.

use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor, ReflectMessage as _};

/// Parts of a JSON value that a message cannot say: the places, as JSON pointers (RFC 6901), of
/// empty lists and maps and of nulls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnsaidParts {
    /// Lists and maps that are there, but empty (`mcp.empty`).
    pub empty: Vec<String>,
    /// Members that are there, but null (`mcp.null`).
    pub null: Vec<String>,
}

impl UnsaidParts {
    /// Reads a list of pointers as it stands in metadata: a JSON array of strings. Anything else
    /// marks nothing.
    #[must_use]
    pub fn pointers(text: &str) -> Vec<String> {
        let spans =
            json::elements(text.as_bytes(), json::Span::all(text.as_bytes())).unwrap_or_default();
        let pointers = spans
            .iter()
            .filter_map(|span| json::text(span.of(text.as_bytes())));
        pointers.map(std::borrow::Cow::into_owned).collect()
    }

    /// A list of pointers as it stands in metadata; `None` if it is empty.
    #[must_use]
    pub fn spell(pointers: &[String]) -> Option<String> {
        let quoted: Vec<_> = pointers
            .iter()
            .map(|pointer| json::quote(pointer))
            .collect();
        (!quoted.is_empty()).then(|| format!("[{}]", quoted.join(",")))
    }
}

/// The arguments or the result of a tool as a message.
#[derive(Clone)]
pub struct Typed {
    pub(crate) message: DynamicMessage,
    pub(super) marks: UnsaidParts,
}

impl std::fmt::Debug for Typed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Typed")
            .field("type", &self.type_url())
            .field("marks", &self.marks)
            .finish_non_exhaustive()
    }
}

impl Typed {
    /// The serialized message.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.message.encode_to_vec()
    }

    /// The `type_url` of the `Any` that carries it.
    #[must_use]
    pub fn type_url(&self) -> String {
        type_url(&self.message.descriptor())
    }

    /// Parts of the JSON that the message does not say.
    #[must_use]
    pub fn marks(&self) -> &UnsaidParts {
        &self.marks
    }
}

/// The `type_url` of a message of this type.
#[must_use]
pub fn type_url(message: &MessageDescriptor) -> String {
    format!("type.googleapis.com/{}", message.full_name())
}
