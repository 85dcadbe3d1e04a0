//! A decision tree over the members of a tool's calls: what a learner without a lattice does.
//!
//! Written here and not taken from a crate: those for Rust learn from matrices of numbers, so that
//! the encoding of texts and absent members would be ours anyway, and would be what is measured.

use std::collections::BTreeMap;

use super::Approver;
use super::plain::tool_of;
use super::trace::TracedCall;

/// Decisions of a tool before its tree is asked, and approvals in a leaf that approves.
const SAMPLES_MIN: usize = 10;
/// The most questions on the way to a leaf.
const DEPTH_MAX: usize = 8;
/// After a tree was grown the next one waits for a tenth more decisions.
const REGROWN_ONE_IN: usize = 10;

/// A decided call: its leaves by pointer, as JSON.
#[derive(Clone)]
struct Sample {
    leaves: BTreeMap<String, String>,
    is_approved: bool,
}

/// A question about one member.
#[derive(Clone)]
enum Question {
    /// Whether it is there.
    Has(String),
    /// Whether it has this value.
    Is(String, String),
    /// Whether it is a number of at most this size.
    AtMost(String, f64),
}

enum Node {
    Leaf { approved: usize, rejected: usize },
    Fork(Question, Box<Node>, Box<Node>),
}

#[derive(Default)]
struct Tool {
    samples: Vec<Sample>,
    grown: Option<Node>,
    next_growth: usize,
}

/// A tree for each tool of each agent.
#[derive(Default)]
pub struct DecisionTree(BTreeMap<String, Tool>);

fn leaves(call: &TracedCall) -> Option<BTreeMap<String, String>> {
    let read = rules::Arguments::read(call.arguments.as_bytes()).ok()?;
    let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
    let leaves = read.leaves();
    Some(
        leaves
            .map(|(at, raw)| (at.as_str().to_owned(), text(raw)))
            .collect(),
    )
}

impl Question {
    fn holds(&self, leaves: &BTreeMap<String, String>) -> bool {
        match self {
            Self::Has(at) => leaves.contains_key(at),
            Self::Is(at, value) => leaves.get(at) == Some(value),
            Self::AtMost(at, most) => number(leaves.get(at)).is_some_and(|one| one <= *most),
        }
    }

    /// All that the samples make worth asking.
    fn of(samples: &[&Sample]) -> Vec<Self> {
        let mut values: BTreeMap<&String, BTreeMap<&String, usize>> = BTreeMap::new();
        for (at, value) in samples.iter().flat_map(|sample| &sample.leaves) {
            *values.entry(at).or_default().entry(value).or_default() += 1;
        }
        let mut questions = Vec::new();
        for (at, values) in values {
            questions.push(Self::Has(at.clone()));
            for (value, count) in values {
                if count > 1 {
                    questions.push(Self::Is(at.clone(), value.clone()));
                }
                let most = number(Some(value));
                questions.extend(most.map(|most| Self::AtMost(at.clone(), most)));
            }
        }
        questions
    }
}

fn number(value: Option<&String>) -> Option<f64> {
    value?.parse().ok()
}

/// The entropy of so many approvals and rejections, times their number.
fn disorder(samples: &[&Sample]) -> f64 {
    let approved = samples.iter().filter(|one| one.is_approved).count() as f64;
    let all = samples.len() as f64;
    let part = |count: f64| {
        if count > 0.0 {
            -count * (count / all).log2()
        } else {
            0.0
        }
    };
    part(approved) + part(all - approved)
}

fn grow(samples: &[&Sample], depth: usize) -> Node {
    let approved = samples.iter().filter(|one| one.is_approved).count();
    let leaf = Node::Leaf {
        approved,
        rejected: samples.len() - approved,
    };
    if depth == 0 || approved == 0 || approved == samples.len() {
        return leaf;
    }
    let split = |question: &Question| -> (Vec<&Sample>, Vec<&Sample>) {
        samples.iter().partition(|one| question.holds(&one.leaves))
    };
    let rest = |question: &Question| {
        let (yes, no) = split(question);
        disorder(&yes) + disorder(&no)
    };
    let questions = Question::of(samples).into_iter();
    let best = questions
        .map(|question| (rest(&question), question))
        .min_by(|(one, _), (other, _)| one.total_cmp(other));
    match best {
        Some((rest, question)) if rest < disorder(samples) - 1e-9 => {
            let (yes, no) = split(&question);
            let (yes, no) = (grow(&yes, depth - 1), grow(&no, depth - 1));
            Node::Fork(question, Box::new(yes), Box::new(no))
        }
        _ => leaf,
    }
}

impl Node {
    fn approves(&self, leaves: &BTreeMap<String, String>) -> bool {
        match self {
            Self::Leaf { approved, rejected } => *rejected == 0 && *approved >= SAMPLES_MIN,
            Self::Fork(question, yes, no) => {
                let next = if question.holds(leaves) { yes } else { no };
                next.approves(leaves)
            }
        }
    }

    /// Leaves that approve.
    fn rules(&self) -> usize {
        match self {
            Self::Leaf { approved, rejected } => {
                usize::from(*rejected == 0 && *approved >= SAMPLES_MIN)
            }
            Self::Fork(_, yes, no) => yes.rules() + no.rules(),
        }
    }
}

impl Approver for DecisionTree {
    fn name(&self) -> String {
        "decision tree".to_owned()
    }

    fn approves(&self, call: &TracedCall, _: usize) -> bool {
        let tree = self
            .0
            .get(&tool_of(call))
            .and_then(|tool| tool.grown.as_ref());
        tree.is_some_and(|tree| leaves(call).is_some_and(|leaves| tree.approves(&leaves)))
    }

    fn take(&mut self, call: &TracedCall, _: usize, by_itself: bool) {
        let Some(leaves) = leaves(call).filter(|_| !by_itself) else {
            return;
        };
        let tool = self.0.entry(tool_of(call)).or_default();
        let is_approved = call.is_approved_by_hand();
        tool.samples.push(Sample {
            leaves,
            is_approved,
        });
        let count = tool.samples.len();
        // A rejection is learned from at once.
        if count >= SAMPLES_MIN && (count >= tool.next_growth || !is_approved) {
            tool.next_growth = count + (count / REGROWN_ONE_IN).max(1);
            let samples: Vec<&Sample> = tool.samples.iter().collect();
            tool.grown = Some(grow(&samples, DEPTH_MAX));
        }
    }

    fn rules(&self) -> usize {
        let trees = self.0.values().filter_map(|tool| tool.grown.as_ref());
        trees.map(Node::rules).sum()
    }

    fn questions(&self) -> usize {
        0
    }
}
