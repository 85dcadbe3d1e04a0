//! Contexts under a partial pattern: which texts all common URL parsers and file systems read
//! alike.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_security::GeneralSecurityProfile;
use unicode_security::general_security_profile::IdentifierType;

/// Depth to which percent-encoding may be nested in a context that a partial pattern admits.
pub const PERCENT_LAYERS_MAX: usize = 3;

/// Whether a context reads the same to the strictest and to the most lenient parser, so that a
/// pattern with a literal beginning, such as `file:///notes/*`, says something about what a server
/// will open.
///
/// It holds no control characters and no invisible ones (parsers drop them), no blank at an end, no
/// path segment that some file system or server reads as dots, and no percent sign without two
/// hexadecimal digits. The same is true of the text that percent-decoding yields, up to
/// [`PERCENT_LAYERS_MAX`] times, and of its Unicode compatibility form; decoding yields UTF-8, and
/// never a `.`, `/` or `\`.
///
/// Allocates nothing for printable ASCII without `%`.
pub(crate) fn is_unambiguous(context: &str) -> bool {
    let mut text = Cow::Borrowed(context);
    for layer in 0..=PERCENT_LAYERS_MAX {
        if !is_plain(&text) {
            return false;
        }
        if !text.is_ascii() {
            text = text.nfkc().collect::<String>().into();
            if !is_plain(&text) {
                return false;
            }
        }
        match percent_decoded(&text) {
            Decoded::Same => return true,
            // Only the text as it was sent must be well-formed: `100%25` decodes to `100%`.
            Decoded::Malformed => return layer > 0,
            Decoded::Hidden => return false,
            Decoded::Text(decoded) => text = decoded.into(),
        }
    }
    false
}

/// No hidden character, no blank at an end, no segment of dots.
fn is_plain(text: &str) -> bool {
    let ends = [text.chars().next(), text.chars().next_back()];
    !ends.into_iter().flatten().any(char::is_whitespace)
        && !text.chars().any(is_hidden)
        && !text.split(ends_segment).any(is_dots)
}

/// Whether a segment is `.` or `..`. Windows drops blanks and dots at its end, servlet containers
/// drop what follows `;`.
fn is_dots(segment: &str) -> bool {
    let name = segment.split(';').next().unwrap_or_default();
    let is_blank = |symbol: char| symbol.is_whitespace();
    matches!(name, "." | "..")
        || (name.contains('.')
            && name.contains(is_blank)
            && name.chars().all(|symbol| symbol == '.' || is_blank(symbol)))
}

/// Whether the character ends a segment of a path, also where Windows maps it to a slash or
/// backslash because a code page lacks it (best fit: U+2215, U+2044, U+2216; yen and won signs are
/// the backslash of theirs), or a reader takes it for one.
fn ends_segment(symbol: char) -> bool {
    const LIKE_SLASHES: &str =
        "\u{2215}\u{2044}\u{29F8}\u{2571}\u{2216}\u{29F5}\u{29F9}\u{2572}\u{A5}\u{20A9}";
    matches!(symbol, '/' | '\\' | '?' | '#') || LIKE_SLASHES.contains(symbol)
}

/// Whether a parser may drop the character, or a reader not see it.
pub(crate) fn is_hidden(symbol: char) -> bool {
    if symbol.is_ascii() {
        return symbol.is_ascii_control();
    }
    // Joiners are allowed in identifiers of some scripts; annotations and the blank Braille pattern
    // are symbols.
    let unseen = matches!(
        symbol,
        '\u{200C}' | '\u{200D}' | '\u{FFF9}'..='\u{FFFB}' | '\u{2800}'
    );
    let hidden = matches!(
        symbol.identifier_type(),
        None | Some(
            IdentifierType::Not_Character
                | IdentifierType::Default_Ignorable
                | IdentifierType::Deprecated
        )
    );
    unseen || hidden || symbol.is_control() || (symbol.is_whitespace() && symbol != '\u{3000}')
}

/// Result of one round of percent-decoding of a text.
enum Decoded {
    /// It holds no percent sign.
    Same,
    /// A percent sign lacks its two hexadecimal digits.
    Malformed,
    /// It decodes to what no parser may see in two ways: a dot or a slash, or bytes that are not
    /// UTF-8.
    Hidden,
    Text(String),
}

fn percent_decoded(text: &str) -> Decoded {
    if !text.contains('%') {
        return Decoded::Same;
    }
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let digits = piece
            .get(..2)
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            return Decoded::Malformed;
        };
        if b"./\\".contains(&byte) {
            return Decoded::Hidden;
        }
        bytes.push(byte);
        bytes.extend(piece.bytes().skip(2));
    }
    String::from_utf8(bytes).map_or(Decoded::Hidden, Decoded::Text)
}

#[cfg(test)]
mod tests;
