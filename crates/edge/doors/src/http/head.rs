//! Head of an HTTP request, read once: the headers that every request needs, and the length of all.

use http::{HeaderMap, HeaderName, HeaderValue};
use identity::identities::bearer_token;
use telemetry::trace::CallerTrace;

static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The value of one header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum HeaderField<'h> {
    /// The header is missing.
    #[default]
    Missing,
    /// This text.
    Text(&'h str),
    /// More than one value, or no text: agrees with nothing.
    Unclear,
}

impl<'h> HeaderField<'h> {
    /// Text of a header that can only have ASCII: any other text is unclear.
    pub(crate) fn ascii(self) -> Option<&'h str> {
        match self {
            Self::Text(text) if !text.is_ascii() => Self::Unclear.text(),
            field => field.text(),
        }
    }

    /// The text; `None` if the header is missing, and a character that no header can have if it is
    /// unclear.
    pub(crate) fn text(self) -> Option<&'h str> {
        match self {
            Self::Missing => None,
            Self::Text(text) => Some(text),
            Self::Unclear => Some("\u{fffd}"),
        }
    }
}

/// The headers that every request needs.
#[derive(Debug, Default)]
pub(crate) struct Head<'h> {
    /// Length of all headers on the wire, in bytes.
    pub(crate) bytes: usize,
    /// `Host`.
    pub(crate) host: HeaderField<'h>,
    /// `Origin`.
    pub(crate) origin: HeaderField<'h>,
    /// `Authorization`.
    pub(crate) authorization: HeaderField<'h>,
    /// `Content-Type`.
    pub(crate) content_type: HeaderField<'h>,
    /// `Mcp-Session-Id`.
    pub(crate) session: HeaderField<'h>,
    /// `MCP-Protocol-Version`.
    pub(crate) version: HeaderField<'h>,
    /// `Mcp-Method`.
    pub(crate) method: HeaderField<'h>,
    /// `Mcp-Name`.
    pub(crate) name: HeaderField<'h>,
    /// `traceparent`.
    pub(crate) traceparent: HeaderField<'h>,
}

impl<'h> Head<'h> {
    /// Reads the headers of a request.
    pub(crate) fn read(headers: &'h HeaderMap) -> Self {
        let mut head = Self::default();
        for (name, value) in headers {
            head.bytes += name.as_str().len() + value.len() + ": \r\n".len();
            let field = match name.as_str() {
                "host" => &mut head.host,
                "origin" => &mut head.origin,
                "authorization" => &mut head.authorization,
                "content-type" => &mut head.content_type,
                "mcp-session-id" => &mut head.session,
                "mcp-protocol-version" => &mut head.version,
                "mcp-method" => &mut head.method,
                "mcp-name" => &mut head.name,
                "traceparent" => &mut head.traceparent,
                _ => continue,
            };
            *field = match (&field, std::str::from_utf8(value.as_bytes())) {
                (HeaderField::Missing, Ok(text)) => HeaderField::Text(text),
                (HeaderField::Missing, Err(_))
                | (HeaderField::Text(_) | HeaderField::Unclear, _) => HeaderField::Unclear,
            };
        }
        head
    }

    /// The bearer token, if there is one (RFC 6750, section 2.1). An unclear one is empty, which no
    /// token is.
    pub(crate) fn bearer(&self) -> Option<&'h str> {
        match self.authorization {
            HeaderField::Missing => None,
            HeaderField::Text(value) => bearer_token(value),
            HeaderField::Unclear => Some(""),
        }
    }

    /// The session id, if there is a clear one.
    pub(crate) fn session_id(&self) -> Option<&'h str> {
        match self.session {
            HeaderField::Text(id) => Some(id),
            HeaderField::Missing | HeaderField::Unclear => None,
        }
    }

    /// The trace that these headers, of which this is the head, name, if they name one.
    pub(crate) fn trace(&self, headers: &HeaderMap) -> Option<Box<CallerTrace>> {
        let HeaderField::Text(parent) = self.traceparent else {
            return None;
        };
        let states = headers.get_all(&TRACESTATE).into_iter();
        let states = states.map(HeaderValue::as_bytes);
        CallerTrace::of_headers([parent.as_bytes()], states).map(Box::new)
    }

    /// Whether the body is JSON.
    pub(crate) fn is_json(&self) -> bool {
        let HeaderField::Text(value) = self.content_type else {
            return false;
        };
        // As nearly all clients write it.
        if value == "application/json" {
            return true;
        }
        value
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .eq_ignore_ascii_case("application/json")
    }
}

/// The bearer token of a request, if it has one.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    Head::read(headers).bearer()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(values: &[(&str, &[u8])]) -> HeaderMap {
        let one = |(name, value): &(&str, &[u8])| {
            (
                name.parse::<HeaderName>().unwrap(),
                HeaderValue::from_bytes(value).unwrap(),
            )
        };
        let mut headers = HeaderMap::new();
        for (name, value) in values.iter().map(one) {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn a_header_with_two_values_or_no_text_is_unclear() {
        let headers = headers(&[
            ("Host", b"localhost"),
            ("Mcp-Session-Id", b"a"),
            ("mcp-session-id", b"b"),
            ("MCP-Protocol-Version", b"\xff"),
            ("X-Other", b"1"),
        ]);
        let head = Head::read(&headers);
        assert_eq!(
            (head.host, head.origin),
            (HeaderField::Text("localhost"), HeaderField::Missing)
        );
        assert_eq!(
            (head.session, head.version),
            (HeaderField::Unclear, HeaderField::Unclear)
        );
        assert_eq!(
            (head.origin.text(), head.host.text()),
            (None, Some("localhost"))
        );
        assert_eq!(head.session.text(), Some("\u{fffd}"));
        let fields = [
            "host: localhost",
            "mcp-session-id: a",
            "mcp-session-id: b",
            "x-other: 1",
        ];
        let bytes: usize = fields.iter().map(|field| field.len() + 2).sum();
        assert_eq!(head.bytes, bytes + "mcp-protocol-version: ?\r\n".len());
    }

    #[test]
    fn a_token_follows_the_scheme() {
        for (values, token) in [
            (&[][..], None),
            (&["Bearer abc"][..], Some("abc")),
            (&["bEARER  abc "][..], Some("abc")),
            (&["Basic abc"][..], None),
            (&["abc"][..], None),
            (&["Bearer abc", "Bearer abc"][..], Some("")),
        ] {
            let values: Vec<_> = values
                .iter()
                .map(|value| ("authorization", value.as_bytes()))
                .collect();
            assert_eq!(bearer(&headers(&values)), token, "{values:?}");
        }
    }

    #[test]
    fn json_is_known_with_parameters_and_in_any_case() {
        for (kind, is_json) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/plain", false),
            ("application/jsonp", false),
        ] {
            let headers = headers(&[("content-type", kind.as_bytes())]);
            assert_eq!(Head::read(&headers).is_json(), is_json, "{kind}");
        }
        assert!(!Head::read(&headers(&[])).is_json());
    }
}
