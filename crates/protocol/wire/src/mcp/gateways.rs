//! Ids of the gateways between a server and its client, in `_meta`: a gateway that reads its own
//! one is a server of itself.
//!
//! A gateway names itself in its handshake. To clients that name themselves so, as other gateways
//! do, its lists name it and all gateways that they came through.

use json::{Span, elements, text};

/// The key in `_meta` of results with these ids; in `_meta` of a request for a list it asks for
/// them.
pub const KEY: &str = "portmoot/gateways";
/// The most ids that are read and written: the first ones, which are nearest.
pub const GATEWAYS_MAX: usize = 64;
/// The longest id that is read, in bytes.
const ID_BYTES_MAX: usize = 64;

/// The ids in the `_meta` of params or of a result, the sender's first; `None` without the key.
#[must_use]
pub fn read(body: &[u8]) -> Option<Vec<String>> {
    read_in(json::at(body, &["_meta"])?)
}

/// Ids of gateways in a `_meta` by itself.
#[must_use]
pub fn read_in(meta: &[u8]) -> Option<Vec<String>> {
    let list = json::at(meta, &[KEY])?;
    let spans = elements(list, Span::all(list)).unwrap_or_default();
    let ids = spans.iter().filter_map(|span| text(span.of(list)));
    let ids = ids.filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX);
    Some(
        ids.take(GATEWAYS_MAX)
            .map(std::borrow::Cow::into_owned)
            .collect(),
    )
}

/// This `_meta`, or a new one, with these ids.
#[must_use]
pub fn added<T: AsRef<str>>(meta: Option<&[u8]>, ids: impl IntoIterator<Item = T>) -> Vec<u8> {
    let written = json::object(|about| {
        about.texts(KEY, ids.into_iter().take(GATEWAYS_MAX));
    });
    let list = json::at(&written, &[KEY]).unwrap_or(b"[]");
    let edited = meta.and_then(|meta| json::edited(meta, &[(KEY, Some(list))]).ok());
    edited.unwrap_or(written)
}

/// This `_meta` without the ids; `None` if it has none, or nothing else.
#[must_use]
pub fn removed(meta: &[u8]) -> Option<Vec<u8>> {
    json::at(meta, &[KEY])?;
    json::edited(meta, &[(KEY, None)]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_were_added() {
        let ids = ["a", "b"];
        let alone = added(None, ids);
        assert_eq!(alone, br#"{"portmoot/gateways":["a","b"]}"#);
        let beside = added(Some(br#"{"x":1}"#), ids);
        let result = [br#"{"_meta":"#, &*beside, b"}"].concat();
        assert_eq!(read(&result).unwrap(), ids);
        assert_eq!(removed(&beside).unwrap(), br#"{"x":1}"#);
        assert_eq!(removed(br#"{"x":1}"#), None);
        assert_eq!(read(br#"{"_meta":{}}"#), None);
        assert_eq!(
            read(br#"{"_meta":{"portmoot/gateways":7}}"#),
            Some(Vec::new())
        );
    }

    #[test]
    fn the_first_ids_are_read_up_to_a_number_and_a_length() {
        let many = added(None, (0..GATEWAYS_MAX + 5).map(|number| number.to_string()));
        let result = [br#"{"_meta":"#, &*many, b"}"].concat();
        assert_eq!(read(&result).unwrap().len(), GATEWAYS_MAX);
        let long = added(None, ["x".repeat(ID_BYTES_MAX + 1), "y".to_owned()]);
        assert_eq!(
            read(&[br#"{"_meta":"#, &*long, b"}"].concat()).unwrap(),
            ["y"]
        );
    }
}
