//! What one run of the load tells, and medians over rounds. Must not know what was measured.

use std::collections::BTreeMap;

/// The figures of one run, `name=value` each.
#[derive(Debug, Default, Clone)]
pub struct Figures(BTreeMap<String, String>);

impl Figures {
    /// Reads a line of the load.
    pub fn read(line: &str) -> Self {
        let (line, wrong) = line.split_once(" first_wrong=").unwrap_or((line, ""));
        let pairs = line
            .split_whitespace()
            .filter_map(|word| word.split_once('='));
        let mut figures: BTreeMap<_, _> = pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        figures.insert("first_wrong".to_owned(), wrong.trim().to_owned());
        Self(figures)
    }

    /// One figure; 0 if it is not there.
    pub fn get(&self, name: &str) -> f64 {
        self.0
            .get(name)
            .and_then(|value| value.parse().ok())
            .unwrap_or(0.0)
    }

    /// Sets one figure.
    pub fn set(&mut self, name: &str, value: f64) {
        self.0.insert(name.to_owned(), value.to_string());
    }

    /// What the first wrong answer was.
    pub fn first_wrong(&self) -> &str {
        self.0.get("first_wrong").map_or("", String::as_str)
    }
}

/// The median of one figure over the rounds.
pub fn median(rounds: &[Figures], name: &str) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(|figures| figures.get(name)).collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}
