//! The work that expressions of a peer's rules can make of a message, bounded before they run:
//! their evaluator has no limit.

use std::collections::HashMap;

use cel::Program;
use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use prost_reflect::{DynamicMessage, ReflectMessage as _, Value};

use crate::pattern::is_pattern;

/// Steps that the expressions of a schema may take for one message: some tenths of a second.
const STEPS_MAX: u64 = 5_000_000;
/// Loops inside each other in one expression (`all`, `exists`, `exists_one`, `filter`, `map`).
const LOOPS_MAX: usize = 2;
/// Steps of a pattern, which is compiled whenever it is reached.
const PATTERN_STEPS: u64 = 20_000;
/// Bytes that are compared or copied in one step.
const STEP_BYTES: u64 = 64;

/// The expressions of a schema, by the message in which they are rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Costs {
    of: HashMap<String, Vec<Expression>>,
    /// Expressions that may be rules of any.
    of_any: Vec<Expression>,
}

/// Traits that make an expression expensive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Expression {
    /// Its parts.
    parts: u64,
    /// The steps of parts, by the loops around them.
    steps: [u64; LOOPS_MAX + 1],
    /// Parts that copy the message, or a list that grows, by the loops around them.
    copies: [u64; LOOPS_MAX + 1],
    /// Additions: of texts they make longer ones.
    sums: u64,
    /// Additions in what loops go through: of lists they make longer ones.
    list_sums: u64,
    /// Whether it is a rule of elements rather than of the field.
    for_each: bool,
}

/// Size of a message.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    values: u64,
    bytes: u64,
}

impl Costs {
    /// Adds an expression of a message's rules, or of any message's; `for_each` if it is a rule of
    /// elements.
    ///
    /// # Errors
    /// It cannot be compiled, nests too many loops, or takes a pattern from the message.
    pub(crate) fn add(
        &mut self,
        message: Option<&str>,
        text: &str,
        for_each: bool,
    ) -> Result<(), String> {
        let program =
            Program::compile(text).map_err(|why| format!("an expression is none: {why}"))?;
        let mut expression = Expression {
            for_each: for_each || message.is_none(),
            ..Expression::default()
        };
        expression.read(program.expression(), 0)?;
        match message {
            Some(message) => self
                .of
                .entry(message.to_owned())
                .or_default()
                .push(expression),
            None => self.of_any.push(expression),
        }
        Ok(())
    }

    /// Whether the expressions end soon for this message.
    pub(crate) fn allow(&self, message: &DynamicMessage) -> bool {
        let mut steps = 0;
        if !(self.of.is_empty() && self.of_any.is_empty()) {
            self.message(message, &mut steps);
        }
        steps <= STEPS_MAX
    }

    /// The size of a message; adds to `steps` those of its expressions and of the messages in it.
    fn message(&self, message: &DynamicMessage, steps: &mut u64) -> Size {
        let mut size = Size {
            values: 1,
            bytes: 0,
        };
        for (_, value) in message.fields() {
            size.add(self.value(value, steps));
        }
        let own = self.of.get(message.descriptor().full_name());
        for expression in own.into_iter().flatten().chain(&self.of_any) {
            *steps = steps.saturating_add(expression.steps_for(size));
        }
        size
    }

    /// The size of a value; adds to `steps` those of the messages in it.
    fn value(&self, value: &Value, steps: &mut u64) -> Size {
        let mut size = Size {
            values: 1,
            bytes: 0,
        };
        match value {
            Value::Message(inner) => size.add(self.message(inner, steps)),
            Value::List(list) => {
                for inner in list {
                    size.add(self.value(inner, steps));
                }
            }
            Value::Map(map) => {
                for (key, inner) in map {
                    size.bytes += key.as_str().map_or(0, |key| key.len() as u64);
                    size.add(self.value(inner, steps));
                }
            }
            Value::String(text) => size.bytes += text.len() as u64,
            Value::Bytes(bytes) => size.bytes += bytes.len() as u64,
            _ => {}
        }
        size
    }
}

impl Size {
    fn add(&mut self, other: Self) {
        self.values = self.values.saturating_add(other.values);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl Expression {
    /// Reads a part with so many loops around it.
    fn read(&mut self, part: &IdedExpr, loops: usize) -> Result<(), String> {
        let (Some(steps), Some(copies)) = (self.steps.get_mut(loops), self.copies.get_mut(loops))
        else {
            return Err(format!(
                "an expression with more than {LOOPS_MAX} loops inside each other"
            ));
        };
        self.parts += 1;
        *steps += 1;
        let mut inner: Vec<&IdedExpr> = Vec::new();
        match &part.expr {
            Expr::Call(call) => {
                inner.extend(call.target.as_deref());
                inner.extend(&call.args);
                self.sums += u64::from(call.func_name == "_+_");
                if call.func_name == "matches" {
                    *steps += PATTERN_STEPS;
                    // A pattern of the caller's could be any, and as large as the message.
                    if !call.args.last().is_some_and(is_written_pattern) {
                        return Err("a pattern that is invalid, too large, or not written in the expression"
                            .to_owned());
                    }
                }
            }
            Expr::Comprehension(of) => return self.read_loop(of, loops),
            Expr::List(list) => inner.extend(&list.elements),
            Expr::Map(map) => {
                inner.extend(map.entries.iter().flat_map(|entry| values(&entry.expr)))
            }
            Expr::Struct(made) => {
                inner.extend(made.entries.iter().flat_map(|entry| values(&entry.expr)))
            }
            Expr::Select(select) => inner.push(&select.operand),
            Expr::Ident(name) => *copies += u64::from(name == "this"),
            Expr::Literal(_) | Expr::Unspecified => {}
        }
        for part in inner {
            self.read(part, loops)?;
        }
        Ok(())
    }

    /// Reads a loop, with `loops` around it.
    fn read_loop(&mut self, of: &ComprehensionExpr, loops: usize) -> Result<(), String> {
        let before = self.sums;
        self.read(&of.iter_range, loops)?;
        self.list_sums += self.sums - before;
        // The evaluator copies the list of a loop for each element that is added to it.
        if let Some(copies) = self.copies.get_mut(loops + 1) {
            *copies += u64::from(grows(&of.loop_step, &of.accu_var));
        }
        self.read(&of.accu_init, loops)?;
        self.read(&of.result, loops)?;
        self.read(&of.loop_cond, loops + 1)?;
        self.read(&of.loop_step, loops + 1)
    }

    /// Upper bound of the steps that it takes for a message of this size.
    fn steps_for(&self, size: Size) -> u64 {
        let deepest = self
            .steps
            .iter()
            .rposition(|steps| *steps > 0)
            .unwrap_or_default() as u32;
        // Elements that one loop goes through at most: all values, as often as lists are added up,
        // and those that the expression itself lists.
        let items = size
            .values
            .saturating_mul(growth(self.list_sums, deepest))
            .saturating_add(self.parts);
        // Any part may compare or copy all bytes, in each round of the loops around it.
        let mut all = size
            .bytes
            .saturating_mul(growth(self.sums, deepest))
            .saturating_mul(self.parts)
            / STEP_BYTES;
        all = all.saturating_mul(items.saturating_pow(deepest.saturating_sub(1)));
        let mut rounds = 1_u64;
        for (steps, copies) in self.steps.iter().zip(self.copies) {
            let in_one_round = copies.saturating_mul(items).saturating_add(*steps);
            all = all.saturating_add(in_one_round.saturating_mul(rounds));
            rounds = rounds.saturating_mul(items);
        }
        // The library runs such a rule for each element; there are no more of those than values.
        if self.for_each {
            all.saturating_add(self.steps[0].saturating_mul(size.values))
        } else {
            all
        }
    }
}

/// By how much so many additions can lengthen a text or a list, in so many loops.
fn growth(sums: u64, loops: u32) -> u64 {
    (sums + 1).saturating_pow(loops + 1)
}

/// Whether a step of a loop adds to the list that the loop makes, whose variable is `made`.
fn grows(step: &IdedExpr, made: &str) -> bool {
    let Expr::Call(call) = &step.expr else {
        return false;
    };
    let is_addition = call.func_name == "_+_";
    call.args.iter().any(|part| match &part.expr {
        Expr::Ident(name) if is_addition && name == made => true,
        _ => grows(part, made),
    })
}

/// Whether a part of an expression is a pattern that is written in it.
fn is_written_pattern(part: &IdedExpr) -> bool {
    matches!(&part.expr, Expr::Literal(LiteralValue::String(text)) if is_pattern(text.inner()))
}

/// The parts of an entry of a map, or of a field of a message, that an expression makes.
fn values(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    }
}
