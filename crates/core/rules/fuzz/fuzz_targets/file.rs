//! Any text as a file of rules.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rules::parse_rules;

fuzz_target!(|text: &str| {
    let Ok(rules) = parse_rules(text) else {
        return;
    };
    for rule in rules {
        let printed = rule.text();
        let again = parse_rules(&printed).expect("what is printed can be read");
        assert_eq!(again.len(), 1);
        assert_eq!(again[0], rule, "{printed}");
        assert!(!rule.sentence().is_empty());
    }
});
