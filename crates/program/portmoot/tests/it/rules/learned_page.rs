//! The part of the page on rules about learning, beside what the program prints.

use super::bank::Bank;
use super::past::PastPayment;
use crate::first_use::blocks_of;
use crate::ws::token;

/// The digits that stand in the page in place of those that differ.
const DIGEST: &str = "3f9ac01b22d4";
const NEXT_DIGEST: &str = "9d04b6e7f1a8";
const ID: &str = "learned-1c2d3e4f";
const REJECTED: [&str; 2] = ["5e1f0c32", "00000000"];

/// Payments of three amounts on three days, and one that was rejected.
fn past() -> Vec<PastPayment> {
    let (amounts, days) = ([20, 35, 90], [9, 6, 3]);
    let approved = (0..24).map(|at| PastPayment {
        days_ago: days[at / 8],
        ..PastPayment::of(amounts[at % 3])
    });
    let rejected = PastPayment {
        verdict: "rejected",
        ..PastPayment::of(400)
    };
    approved.chain([rejected]).collect()
}

/// A line up to its first time.
fn timeless(text: &str) -> Vec<String> {
    let marks = ["until ", "ends ", "accepted by ann "];
    let cut = |line: &str| {
        let ends = marks.iter().filter_map(|mark| line.find(mark));
        line[..ends.min().unwrap_or(line.len())].to_owned()
    };
    text.lines().map(cut).collect()
}

#[test]
fn the_page_shows_how_a_rule_is_learned_as_the_program_prints_it() {
    let page = std::fs::read_to_string(harness::repository().join("docs/rules.md")).unwrap();
    let [_, _, _, _, _, _, offers, accept, renewal, _, _] =
        blocks_of(&page, "console").try_into().unwrap();
    let mut bank = Bank::new();
    let showing = bank.proposals()[0]["id"].as_str().unwrap()[..8].to_owned();
    bank.has_decided(&past());
    let run = |bank: &Bank, words: &[&str]| {
        let (url, ann) = (bank.gateway.url(), token("ann"));
        let words = [words, &["--url", &url, "--token", &ann]].concat();
        bank.home.run(&words).expect(0).stdout
    };
    let listed = run(&bank, &["rules", "offers"]);
    let digest = listed[..DIGEST.len()].to_owned();
    let offer = bank.only_offer("ann");
    bank.draws(offer["rule"].as_str().unwrap(), &[1]);
    let accepted = run(&bank, &["rules", "accept", &digest]);
    let id = accepted.split('.').next().unwrap().to_owned();
    bank.is_paid(20);
    let (call, _) = bank.is_left(35);
    bank.is_approved(call, 35);
    for amount in [20, 35, 90, 20, 20] {
        bank.is_paid(amount);
    }
    let renewed = run(&bank, &["rules", "offers"]);
    let next_digest = renewed[..DIGEST.len()].to_owned();
    let plain = |text: &str| {
        let text = text
            .replace(&digest, DIGEST)
            .replace(&next_digest, NEXT_DIGEST)
            .replace(&id, ID)
            .replace(&showing, REJECTED[0]);
        timeless(&text)
    };
    for (shown, printed) in [
        (&offers, &listed),
        (&accept, &accepted),
        (&renewal, &renewed),
    ] {
        let (_, shown) = shown.split_once('\n').unwrap();
        assert_eq!(timeless(shown), plain(printed), "{printed}");
    }
    assert!(accept.starts_with(&format!("$ portmoot rules accept {DIGEST}\n")));
}
