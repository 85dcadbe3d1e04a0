//! Search of tools by words: an index over names, titles, descriptions and parameters, ranked by
//! BM25 with weighted fields.

use std::collections::HashMap;

use json::Span;

/// Saturation of repetitions of a term: the lower, the sooner they count no more (BM25's usual
/// `k1`).
const K1: f32 = 1.2;
/// Weight of the length of a tool's descriptions: less than usual, because a long description is no
/// fault.
const B: f32 = 0.6;
/// Weight of a term by where it is found. Only descriptions are weighed by their length (BM25F).
const NAME: f32 = 3.0;
const TITLE: f32 = 2.0;
const DESCRIPTION: f32 = 1.0;
const PARAMETER: f32 = 0.8;
const PARAMETER_DESCRIPTION: f32 = 0.3;
/// Words that say nothing about a tool, in order.
const STOP_WORDS: [&str; 37] = [
    "a", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i",
    "if", "in", "into", "is", "it", "its", "me", "my", "of", "on", "or", "that", "the", "this",
    "to", "use", "used", "want", "what", "which", "with", "you",
];

/// The tools of one list, ready to be searched.
#[derive(Debug, Default)]
pub struct Index {
    /// The tools that have each term, by place, with the term's weight there.
    postings: HashMap<Box<str>, Vec<(u32, f32)>>,
    len: usize,
}

/// The weights of one tool's terms, and the length of its descriptions.
#[derive(Default)]
struct Weights {
    names: HashMap<String, f32>,
    descriptions: HashMap<String, f32>,
    length: f32,
}

impl Index {
    /// The index of these tools: the name that the caller sees, and the definition. A tool without
    /// a definition is never found.
    pub fn new<'t>(tools: impl Iterator<Item = (&'t str, Option<&'t [u8]>)>) -> Self {
        let of = |(name, definition): (&str, Option<&[u8]>)| {
            definition
                .map(|definition| weights(name, definition))
                .unwrap_or_default()
        };
        let all: Vec<Weights> = tools.map(of).collect();
        let mean = all.iter().map(|one| one.length).sum::<f32>() / float(all.len().max(1));
        let mut index = Self {
            postings: HashMap::new(),
            len: all.len(),
        };
        for (
            at,
            Weights {
                mut names,
                descriptions,
                length,
            },
        ) in all.into_iter().enumerate()
        {
            let damping = 1.0 - B + B * length / mean.max(f32::MIN_POSITIVE);
            for (term, weight) in descriptions {
                *names.entry(term).or_default() += weight / damping;
            }
            for (term, weight) in names {
                index
                    .postings
                    .entry(term.into())
                    .or_default()
                    .push((short(at), weight));
            }
        }
        index
    }

    /// The places of the tools that fit best, at most so many; equally good ones in the order of
    /// the list.
    #[must_use]
    pub fn find(&self, query: &str, most: usize) -> Vec<usize> {
        let mut terms = terms(query);
        terms.sort_unstable();
        terms.dedup();
        let mut scores: HashMap<u32, f32> = HashMap::new();
        for postings in terms
            .iter()
            .filter_map(|term| self.postings.get(term.as_str()))
        {
            let (all, with) = (float(self.len), float(postings.len()));
            let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
            for (at, weight) in postings {
                *scores.entry(*at).or_default() += rarity * weight * (K1 + 1.0) / (weight + K1);
            }
        }
        let mut ranked: Vec<(u32, f32)> = scores.into_iter().collect();
        ranked.sort_unstable_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        ranked
            .into_iter()
            .take(most)
            .map(|(at, _)| at as usize)
            .collect()
    }

    /// About the memory that it takes, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let posting = size_of::<(u32, f32)>();
        let terms = self.postings.iter();
        let terms = terms.map(|(term, postings)| 48 + term.len() + postings.capacity() * posting);
        terms.sum()
    }
}

/// The terms of one tool with their weights.
fn weights(name: &str, definition: &[u8]) -> Weights {
    let mut weights = Weights::default();
    weights.name(name, NAME);
    let text = |path: &[&str]| json::at(definition, path).and_then(json::text);
    for title in [text(&["title"]), text(&["annotations", "title"])]
        .into_iter()
        .flatten()
    {
        weights.name(&title, TITLE);
    }
    weights.describe(&text(&["description"]).unwrap_or_default(), DESCRIPTION);
    let properties = json::at(definition, &["inputSchema", "properties"]).unwrap_or(b"{}");
    if let Ok(properties) = json::members(properties, Span::all(properties)) {
        for (name, property) in properties.iter() {
            weights.name(name, PARAMETER);
            if let Some(text) = json::at(property.raw, &["description"]).and_then(json::text) {
                weights.describe(&text, PARAMETER_DESCRIPTION);
            }
        }
    }
    weights
}

impl Weights {
    fn name(&mut self, text: &str, weight: f32) {
        for term in terms(text) {
            *self.names.entry(term).or_default() += weight;
        }
    }

    fn describe(&mut self, text: &str, weight: f32) {
        for term in terms(text) {
            *self.descriptions.entry(term).or_default() += weight;
            self.length += weight;
        }
    }
}

/// The terms of a text: its words, and the parts of words such as `createPullRequest`, by their
/// stems.
fn terms(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        let lower = word.to_lowercase();
        if STOP_WORDS.binary_search(&lower.as_str()).is_ok() {
            continue;
        }
        // Most words have no capitals, and so no parts.
        let parts = if lower == word {
            Vec::new()
        } else {
            parts(word)
        };
        if parts.len() > 1 {
            found.extend(parts.iter().map(|part| stem(part.to_lowercase())));
        }
        found.push(stem(lower));
    }
    found
}

/// The parts of a word, each of which begins with a capital or follows a digit.
fn parts(word: &str) -> Vec<&str> {
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    let begins = |window: &[(usize, char)]| match window {
        [(_, before), (at, here), rest @ ..] => {
            let next_is_small = rest.first().is_some_and(|(_, next)| next.is_lowercase());
            let begins = here.is_uppercase() && (!before.is_uppercase() || next_is_small);
            begins.then_some(*at)
        }
        _ => None,
    };
    let starts = (0..chars.len()).filter_map(|at| begins(chars.get(at..)?));
    let mut from = 0;
    let mut parts: Vec<&str> = Vec::new();
    for start in starts.chain([word.len()]) {
        parts.extend(word.get(from..start).filter(|part| !part.is_empty()));
        from = start;
    }
    parts
}

/// A word without the endings of English plurals and verbs, so that `creating`, `creates` and
/// `create` are one term.
fn stem(word: String) -> String {
    let mut stem = word;
    let len = stem.len();
    if !stem.is_ascii() || len < 4 {
        return stem;
    }
    if stem.ends_with("ies") && len > 4 {
        stem.replace_range(len - 3.., "y");
    } else if ["ses", "xes", "zes", "ches", "shes"]
        .iter()
        .any(|end| stem.ends_with(end))
    {
        stem.truncate(len - 2);
    } else if stem.ends_with('s') && !stem.ends_with("ss") && !stem.ends_with("us") {
        stem.truncate(len - 1);
    }
    for end in ["ing", "ed"] {
        let rest = stem
            .strip_suffix(end)
            .filter(|rest| rest.len() > 2 && rest.contains(is_vowel));
        if let Some(rest) = rest.map(str::len) {
            stem.truncate(rest);
            let [.., one, two] = stem.as_bytes() else {
                continue;
            };
            if one == two && !matches!(one, b'l' | b's' | b'z') {
                stem.pop();
            }
            break;
        }
    }
    if stem.len() > 3 && stem.ends_with('e') {
        stem.pop();
    }
    stem
}

fn is_vowel(c: char) -> bool {
    matches!(c, 'a' | 'e' | 'i' | 'o' | 'u' | 'y')
}

/// A place in a list. No list has so many entries that it does not fit.
fn short(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// A count for a formula, in which the last digits of large counts do not matter.
fn float(count: usize) -> f32 {
    f32::from(u16::try_from(count).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests;
