//! Profiles that callgrind writes: each function's own cost by source file, and its calls. Must not
//! know what was measured.

use std::collections::HashMap;

/// The place of a function in its profile.
pub type FunctionId = usize;

/// One function.
#[derive(Debug, Clone, Default)]
pub struct Function {
    /// Its symbol, mangled.
    pub symbol: String,
    /// The source file in which it begins.
    pub file: String,
    /// Its own instructions, by the source file of the code that was inlined.
    pub own: HashMap<String, u64>,
    /// Its calls: the function called, and the source file of the code that calls.
    pub calls: HashMap<(FunctionId, String), Calls>,
}

/// The calls of one function by another.
#[derive(Debug, Clone, Copy, Default)]
pub struct Calls {
    /// How many.
    pub count: u64,
    /// Instructions until they returned.
    pub inclusive: u64,
}

/// A profile.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// Its functions.
    pub functions: Vec<Function>,
    by_name: HashMap<(String, String), FunctionId>,
}

/// Names that are written once and then stand for their numbers.
#[derive(Default)]
struct Names(HashMap<String, String>);

impl Names {
    /// Reads `(number) name` or `(number)`.
    fn read(&mut self, text: &str) -> String {
        let Some((number, name)) = text.split_once(')') else {
            return text.to_owned();
        };
        let name = name.trim();
        if name.is_empty() {
            return self.0.get(number).cloned().unwrap_or_default();
        }
        self.0.insert(number.to_owned(), name.to_owned());
        name.to_owned()
    }
}

impl Profile {
    /// Reads the text of a profile with the one event `Ir` and positions by line.
    pub fn read(text: &str) -> Self {
        let (mut profile, mut files, mut functions, mut objects) = (
            Self::default(),
            Names::default(),
            Names::default(),
            Names::default(),
        );
        let (mut at, mut home, mut file) = (0, String::new(), String::new());
        let (mut called_file, mut called, mut calls) = (None, String::new(), None);
        for line in text.lines() {
            if let Some((key, value)) = line.split_once('=') {
                match key {
                    "fl" => (home, file) = (files.read(value), files.read(value)),
                    "fi" | "fe" => file = files.read(value),
                    "fn" => {
                        at = profile.function(&functions.read(value), &home);
                        file.clone_from(&home);
                    }
                    "cfi" | "cfl" => called_file = Some(files.read(value)),
                    "cfn" => called = functions.read(value),
                    // The names of objects follow the same rule, and are not needed.
                    "ob" | "cob" => drop(objects.read(value)),
                    "calls" => {
                        calls = value
                            .split(' ')
                            .next()
                            .and_then(|count| count.parse::<u64>().ok())
                    }
                    _ => {}
                }
                continue;
            }
            if !line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
                continue;
            }
            let cost: u64 = line
                .split(' ')
                .nth(1)
                .and_then(|cost| cost.parse().ok())
                .unwrap_or(0);
            match calls.take() {
                Some(count) => {
                    let to =
                        profile.function(&called, called_file.take().as_ref().unwrap_or(&file));
                    let calls = profile.functions[at]
                        .calls
                        .entry((to, file.clone()))
                        .or_default();
                    calls.count += count;
                    calls.inclusive += cost;
                }
                None => *profile.functions[at].own.entry(file.clone()).or_default() += cost,
            }
        }
        profile
    }

    fn function(&mut self, symbol: &str, file: &str) -> FunctionId {
        // Recursion is counted apart.
        let symbol = symbol.split_once('\'').map_or(symbol, |(symbol, _)| symbol);
        let key = (symbol.to_owned(), file.to_owned());
        *self
            .by_name
            .entry(key)
            .or_insert_with_key(|(symbol, file)| {
                let function = Function {
                    symbol: symbol.clone(),
                    file: file.clone(),
                    ..Function::default()
                };
                self.functions.push(function);
                self.functions.len() - 1
            })
    }

    /// What this profile has more than another.
    pub fn minus(mut self, other: &Self) -> Self {
        for gone in &other.functions {
            let Some(&at) = self.by_name.get(&(gone.symbol.clone(), gone.file.clone())) else {
                continue;
            };
            let calls = gone.calls.iter().filter_map(|((to, file), calls)| {
                let to = &other.functions[*to];
                Some((
                    (
                        *self.by_name.get(&(to.symbol.clone(), to.file.clone()))?,
                        file.clone(),
                    ),
                    *calls,
                ))
            });
            for (key, less) in calls.collect::<Vec<_>>() {
                if let Some(calls) = self.functions[at].calls.get_mut(&key) {
                    calls.count = calls.count.saturating_sub(less.count);
                    calls.inclusive = calls.inclusive.saturating_sub(less.inclusive);
                }
            }
            for (file, less) in &gone.own {
                if let Some(cost) = self.functions[at].own.get_mut(file) {
                    *cost = cost.saturating_sub(*less);
                }
            }
        }
        self
    }

    /// How often functions were called whose symbol fits, by the function that called.
    pub fn callers(&self, fits: impl Fn(&str) -> bool) -> HashMap<FunctionId, u64> {
        let mut callers = HashMap::new();
        for (at, function) in self.functions.iter().enumerate() {
            let fitting = function
                .calls
                .iter()
                .filter(|((to, _), _)| fits(&self.functions[*to].symbol));
            let count: u64 = fitting.map(|(_, calls)| calls.count).sum();
            if count > 0 {
                *callers.entry(at).or_default() += count;
            }
        }
        callers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "version: 1\nevents: Ir\nob=(1) /bin/x\nfl=(1) a.rs\nfn=(1) one\n16 100\nfi=(2) b.rs\n+3 20\n\
        cfi=(3) c.rs\ncfn=(2) two\ncalls=5 9\n* 50\nfe=(1)\n20 1\n\nfl=(3)\nfn=(2)\n9 50\n";

    #[test]
    fn costs_lie_with_the_files_of_their_code_and_calls_with_both_functions() {
        let profile = Profile::read(TEXT);
        let [one, two] = &profile.functions[..] else {
            panic!("{profile:?}")
        };
        assert_eq!(
            (&*one.symbol, &*one.file, one.own["a.rs"], one.own["b.rs"]),
            ("one", "a.rs", 101, 20)
        );
        let calls = one.calls[&(1, "b.rs".to_owned())];
        assert_eq!((calls.count, calls.inclusive), (5, 50));
        assert_eq!((&*two.file, two.own["c.rs"]), ("c.rs", 50));
        assert_eq!(
            profile.callers(|symbol| symbol == "two"),
            HashMap::from([(0, 5)])
        );
    }

    #[test]
    fn what_both_profiles_have_is_subtracted() {
        let more = TEXT
            .replace("16 100", "16 160")
            .replace("calls=5 9\n* 50", "calls=7 9\n* 80");
        let profile = Profile::read(&more).minus(&Profile::read(TEXT));
        assert_eq!(
            (
                profile.functions[0].own["a.rs"],
                profile.functions[1].own["c.rs"]
            ),
            (60, 0)
        );
        assert_eq!(
            profile.callers(|symbol| symbol == "two"),
            HashMap::from([(0, 2)])
        );
    }
}
