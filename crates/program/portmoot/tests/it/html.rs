//! Forms of pages and parameters of queries, as browsers read and write them.

use std::collections::BTreeMap;

use crate::http::Reply;

/// The action and the hidden fields of the first form.
#[track_caller]
pub(crate) fn form(page: &Reply) -> (String, Vec<(String, String)>) {
    let form = page
        .body
        .split_once("<form")
        .unwrap_or_else(|| panic!("no form: {page:?}"))
        .1;
    let form = form.split("</form>").next().unwrap();
    let inputs = form
        .split("<input")
        .skip(1)
        .filter(|input| input.contains("type=\"hidden\""));
    let hidden = inputs.map(|input| (attribute(input, "name"), attribute(input, "value")));
    (attribute(form, "action"), hidden.collect())
}

fn attribute(html: &str, name: &str) -> String {
    let rest = html.split_once(&format!("{name}=\"")).unwrap().1;
    rest.split('"').next().unwrap().replace("&amp;", "&")
}

/// The parameters of a query or form.
pub(crate) fn pairs(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

/// A name or value of a query or form.
pub(crate) fn decoded(text: &str) -> String {
    let (mut bytes, mut out) = (text.bytes(), Vec::new());
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                out.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            }
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).unwrap()
}

/// Parameters as a query or form has them.
pub(crate) fn encoded(parameters: &[(&str, &str)]) -> String {
    let escape = |text: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        text.bytes()
            .map(|byte| {
                if plain(byte) {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect::<String>()
    };
    let pairs: Vec<String> = parameters
        .iter()
        .map(|(name, value)| format!("{}={}", escape(name), escape(value)))
        .collect();
    pairs.join("&")
}
