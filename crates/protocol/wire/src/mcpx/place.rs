//! Place of an envelope in its topic, for clients that ask for it: Portmoot's own member of an
//! envelope.

use bytes::Bytes;

use crate::time::{read_rfc3339, rfc3339};

/// The member with the place of an envelope.
pub const PLACE_KEY: &str = "portmoot/place";

/// The place of an envelope among all that were published in its topic, and when it took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvelopePlace {
    /// The number of the gateway process that assigns the offsets.
    pub epoch: u64,
    /// The offset, from 0 on.
    pub offset: u64,
    /// When the gateway took it into the topic, in milliseconds since 1970.
    pub received_ms: u64,
}

impl EnvelopePlace {
    /// An envelope with its place in the end. A place that its sender wrote is left out; all other
    /// bytes stay. The frame must be that of an envelope.
    #[must_use]
    pub fn stamp(&self, envelope: &Bytes) -> Bytes {
        let place = json::object(|place| {
            place
                .number("epoch", self.epoch)
                .number("offset", self.offset)
                .text("received", &rfc3339(self.received_ms));
        });
        let bare = json::edited(envelope, &[(PLACE_KEY, None)]);
        match bare.and_then(|bare| json::edited(&bare, &[(PLACE_KEY, Some(&place))])) {
            Ok(placed) => Bytes::from(placed),
            // None that was published: its reader has checked it.
            Err(_) => envelope.clone(),
        }
    }

    /// The place that an envelope has with it. Only a client that asked for places may take it for
    /// one of the gateway.
    #[must_use]
    pub fn read(envelope: &[u8]) -> Option<Self> {
        let place = json::at(envelope, &[PLACE_KEY])?;
        let number = |key: &str| {
            std::str::from_utf8(json::at(place, &[key])?)
                .ok()?
                .parse()
                .ok()
        };
        Some(Self {
            epoch: number("epoch")?,
            offset: number("offset")?,
            received_ms: read_rfc3339(&json::text(json::at(place, &["received"])?)?)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_changes_nothing_else_and_cannot_be_forged() {
        let place = EnvelopePlace {
            epoch: 7,
            offset: 12,
            received_ms: 1_795_780_800_000,
        };
        let stamped = |text: &str| {
            let stamped = place.stamp(&Bytes::copy_from_slice(text.as_bytes()));
            String::from_utf8(stamped.to_vec()).unwrap()
        };
        let written =
            r#""portmoot/place":{"epoch":7,"offset":12,"received":"2026-11-27T12:00:00.000Z"}"#;
        for (sent, expect) in [
            (
                r#"{ "id" : "a\u0062", "x":1.0 }"#,
                format!(r#"{{ "id" : "a\u0062", "x":1.0,{written} }}"#),
            ),
            (
                r#"{"portmoot/place":{"offset":1},"id":"a"}"#,
                format!(r#"{{"id":"a",{written}}}"#),
            ),
            (
                r#"{"portmoot\/place":7,"id":"a"}"#,
                format!(r#"{{"id":"a",{written}}}"#),
            ),
        ] {
            assert_eq!(stamped(sent), expect);
            assert_eq!(EnvelopePlace::read(expect.as_bytes()), Some(place));
        }
    }
}
