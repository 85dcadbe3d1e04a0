//! Pages as a browser reads them, for tests.

use html::HtmlPage;
use html5gum::{HtmlString, Token, Tokenizer};
use json::visible;
use proptest::prelude::*;

/// A text that stands for any other one.
const PLAIN: &str = "plain";

/// A page, taken apart.
#[derive(Debug, PartialEq)]
struct Rendered {
    /// Tags with the names of their attributes, and where texts are.
    markup: Vec<String>,
    /// Texts and values of attributes, in their order.
    texts: Vec<String>,
}

fn text(bytes: &HtmlString) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn read(page: &HtmlPage) -> Rendered {
    let mut markup = Vec::new();
    let mut texts = Vec::new();
    for Ok(token) in Tokenizer::new(page.body()) {
        match token {
            Token::StartTag(tag) => {
                markup.push(text(&tag.name));
                for (name, value) in &tag.attributes {
                    markup.push(format!("{}=", text(name)));
                    texts.push(text(value));
                }
            }
            Token::EndTag(tag) => markup.push(["/", &text(&tag.name)].concat()),
            Token::String(content) => {
                markup.push("text".to_owned());
                texts.push(text(&content));
            }
            Token::Comment(_) => markup.push("comment".to_owned()),
            Token::Doctype(_) => markup.push("doctype".to_owned()),
            // Such as a character that should not be there: all else says whether it does harm.
            Token::Error(_) => {}
        }
    }
    Rendered { markup, texts }
}

/// Texts with what could end an element, an attribute or a text, or hide something.
pub(crate) fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[<>&\"'/=`!-]{1,3}",
        "[a-z#;0-9 ]{1,4}",
        "&(lt|amp|quot|#60|#x3c);?",
        "</?(script|p|q|style|title|main)",
        "[\\x00-\\x20\u{200b}\u{202e}\u{feff}]",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

/// Checks that pages with this text have the markup of pages with a plain one, and that a browser
/// reads exactly this text wherever it reads the plain one there.
#[track_caller]
pub(crate) fn assert_in_place(pages: impl Fn(&str) -> Vec<HtmlPage>, hostile: &str) {
    let shown = visible::line(hostile);
    for (page, plain) in pages(hostile).iter().zip(&pages(PLAIN)) {
        let mut expected = read(plain);
        assert!(expected.texts.iter().any(|text| text.contains(PLAIN)));
        for text in &mut expected.texts {
            *text = text.replace(PLAIN, &shown);
        }
        assert_eq!(read(page), expected, "{}", page.body());
    }
}
