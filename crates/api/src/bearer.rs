//! Bearer token of an HTTP request (RFC 6750, section 2.1).

use access::identities::bearer_token;
use axum::http::{HeaderMap, header};

/// The bearer token, if the request has one. Two `Authorization` headers, or one that is no text, count as an unknown token.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let first = values.next()?;
    match (std::str::from_utf8(first.as_bytes()), values.next()) {
        (Ok(text), None) => bearer_token(text),
        (Ok(_), Some(_)) | (Err(_), _) => Some(""),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_token_follows_the_scheme() {
        let cases: [(&[&[u8]], Option<&str>); 7] = [
            (&[], None),
            (&[b"Bearer abc"], Some("abc")),
            (&[b"bEARER  abc "], Some("abc")),
            (&[b"Basic abc"], None),
            (&[b"abc"], None),
            (&[b"Bearer abc", b"Bearer abc"], Some("")),
            (&[b"Bearer \xff"], Some("")),
        ];
        for (values, token) in cases {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
            }
            assert_eq!(bearer(&headers), token, "{values:?}");
        }
    }
}
