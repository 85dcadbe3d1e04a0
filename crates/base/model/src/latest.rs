//! The latest things of many owners, bounded: the owner that has most loses its oldest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Things in the order in which they came, each with its owner and a weight, such as its bytes.
/// When there are too many, the owner that has most loses its oldest: no owner pushes out what
/// others keep with less.
#[derive(Debug, Clone)]
pub struct Latest<T> {
    things: BTreeMap<u64, Thing<T>>,
    owners: BTreeMap<Arc<str>, Own>,
    by_count: BTreeSet<Rank>,
    by_weight: BTreeSet<Rank>,
    weight: usize,
    /// The number of the next thing.
    next: u64,
}

#[derive(Debug, Clone)]
struct Thing<T> {
    owner: Arc<str>,
    weight: usize,
    value: T,
}

/// The numbers of one owner's things, oldest first, and their weight.
#[derive(Debug, Clone, Default)]
struct Own {
    numbers: VecDeque<u64>,
    weight: usize,
}

/// Rank of an owner by what it has; of two that have as much, the one with the older thing comes
/// last.
type Rank = (usize, Reverse<u64>, Arc<str>);

impl<T> Default for Latest<T> {
    fn default() -> Self {
        let (things, owners, by_count, by_weight) = <_>::default();
        Self {
            things,
            owners,
            by_count,
            by_weight,
            weight: 0,
            next: 0,
        }
    }
}

/// Equality of things, owners and order.
impl<T: PartialEq> PartialEq for Latest<T> {
    fn eq(&self, other: &Self) -> bool {
        let mut pairs = self.things.values().zip(other.things.values());
        self.len() == other.len()
            && pairs.all(|(one, two)| one.owner == two.owner && one.value == two.value)
    }
}

impl<T: Eq> Eq for Latest<T> {}

impl<T> Latest<T> {
    /// The number of things.
    #[must_use]
    pub fn len(&self) -> usize {
        self.things.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.things.is_empty()
    }

    /// The weight of all things.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// The things, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.things.values().map(|thing| &thing.value)
    }

    /// Adds a thing.
    pub fn push(&mut self, owner: &str, weight: usize, value: T) {
        let owner = self
            .owners
            .get_key_value(owner)
            .map_or_else(|| owner.into(), |(known, _)| known.clone());
        let number = self.next;
        self.next += 1;
        self.weight += weight;
        self.things.insert(
            number,
            Thing {
                owner: Arc::clone(&owner),
                weight,
                value,
            },
        );
        self.change(owner, |own| {
            own.numbers.push_back(number);
            own.weight += weight;
        });
    }

    /// Takes out things, until at most so many of at most this weight remain. The newest stays,
    /// however heavy.
    pub fn shrink(&mut self, count_max: usize, weight_max: usize) -> Vec<T> {
        let mut gone = Vec::new();
        while let Some(number) = self.superfluous(count_max, weight_max) {
            gone.extend(self.remove(number));
        }
        gone
    }

    /// Takes out the oldest thing, if it is so.
    pub fn pop_if(&mut self, is_so: impl FnOnce(&T) -> bool) -> Option<T> {
        let (number, _) = self
            .things
            .first_key_value()
            .filter(|(_, oldest)| is_so(&oldest.value))?;
        self.remove(*number)
    }

    /// Takes out the things that are not so.
    pub fn retain(&mut self, is_so: impl Fn(&T) -> bool) {
        let others = self.things.iter().filter(|(_, thing)| !is_so(&thing.value));
        let numbers: Vec<u64> = others.map(|(number, _)| *number).collect();
        for number in numbers {
            self.remove(number);
        }
    }

    /// The oldest thing of the owner that has most, if there is too much.
    fn superfluous(&self, count_max: usize, weight_max: usize) -> Option<u64> {
        let most = if self.things.len() > count_max {
            self.by_count.last()
        } else if self.weight > weight_max {
            self.by_weight.last()
        } else {
            None
        };
        let (_, Reverse(oldest), _) = most?;
        Some(*oldest).filter(|oldest| oldest + 1 < self.next)
    }

    /// Takes out a thing.
    fn remove(&mut self, number: u64) -> Option<T> {
        let Thing {
            owner,
            weight,
            value,
        } = self.things.remove(&number)?;
        self.weight -= weight;
        self.change(owner, |own| {
            // They are in order.
            if let Ok(at) = own.numbers.binary_search(&number) {
                own.numbers.remove(at);
            }
            own.weight -= weight;
        });
        Some(value)
    }

    /// Changes what an owner has, and ranks it anew.
    fn change(&mut self, owner: Arc<str>, change: impl FnOnce(&mut Own)) {
        let mut own = self.owners.remove(&owner).unwrap_or_default();
        if let Some(oldest) = own.numbers.front() {
            self.by_count
                .remove(&(own.numbers.len(), Reverse(*oldest), Arc::clone(&owner)));
            self.by_weight
                .remove(&(own.weight, Reverse(*oldest), Arc::clone(&owner)));
        }
        change(&mut own);
        if let Some(oldest) = own.numbers.front() {
            self.by_count
                .insert((own.numbers.len(), Reverse(*oldest), Arc::clone(&owner)));
            self.by_weight
                .insert((own.weight, Reverse(*oldest), Arc::clone(&owner)));
            self.owners.insert(owner, own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(latest: &Latest<u32>) -> Vec<u32> {
        latest.iter().copied().collect()
    }

    #[test]
    fn the_owner_that_has_most_loses_its_oldest() {
        let mut latest = Latest::default();
        for (owner, value) in [("ann", 1), ("eve", 2), ("eve", 3), ("bob", 4), ("eve", 5)] {
            latest.push(owner, 1, value);
        }
        assert_eq!(
            (latest.shrink(4, 9), all(&latest)),
            (vec![2], vec![1, 3, 4, 5])
        );
        latest.push("ann", 1, 6);
        assert_eq!(
            latest.shrink(4, 9),
            [1],
            "of two that have as much, the one with the oldest"
        );
        (7..1_000).for_each(|value| {
            latest.push("eve", 1, value);
            assert_eq!(latest.shrink(4, 9).len(), 1);
        });
        assert_eq!(all(&latest), [4, 6, 998, 999]);
        assert_eq!((latest.len(), latest.weight()), (4, 4));
    }

    #[test]
    fn weights_are_bounded_and_the_newest_stays() {
        let mut latest = Latest::default();
        latest.push("ann", 3, 1);
        latest.push("eve", 4, 2);
        latest.push("eve", 3, 3);
        assert_eq!(
            (latest.shrink(9, 10), all(&latest)),
            (vec![], vec![1, 2, 3])
        );
        latest.push("eve", 1, 4);
        assert_eq!((latest.shrink(9, 10), latest.weight()), (vec![2], 7));
        latest.push("eve", 100, 5);
        assert_eq!(
            latest.shrink(9, 10),
            [3, 4],
            "it pushes out its owner's, and no other's"
        );
        assert_eq!(all(&latest), [1, 5]);
        latest.push("bob", 1, 6);
        assert_eq!((latest.shrink(9, 10), all(&latest)), (vec![5], vec![1, 6]));
        assert_eq!(latest.shrink(0, 0), [1], "the newest alone");
    }

    #[test]
    fn each_of_many_owners_keeps_what_all_can_have() {
        let mut latest = Latest::default();
        for value in 0..100 {
            for owner in ["ann", "bob", "cid"] {
                latest.push(owner, 1, value);
                latest.push("eve", 1, 1_000 + value);
                latest.shrink(12, usize::MAX);
            }
        }
        let mine = |value: u32| latest.iter().filter(|known| **known == value).count();
        assert_eq!((97..100).map(mine).collect::<Vec<_>>(), [3, 3, 3]);
    }

    #[test]
    fn what_is_not_retained_counts_no_more() {
        let mut latest = Latest::default();
        for (owner, value) in [("ann", 1), ("eve", 2), ("ann", 3), ("ann", 4), ("eve", 5)] {
            latest.push(owner, 1, value);
        }
        latest.retain(|value| ![3, 4, 5].contains(value));
        assert_eq!((all(&latest), latest.weight()), (vec![1, 2], 2));
        latest.push("eve", 1, 6);
        latest.push("bob", 1, 7);
        assert_eq!(latest.shrink(3, 9), [2], "eve has most now");
        latest.retain(|_| false);
        assert!(latest.is_empty() && latest.weight() == 0);
        latest.push("ann", 1, 8);
        assert_eq!((latest.shrink(1, 1), all(&latest)), (vec![], vec![8]));
    }

    #[test]
    fn the_oldest_is_taken_out_and_equal_things_are_equal() {
        let mut one = Latest::default();
        let mut two = Latest::default();
        one.push("ann", 1, 1);
        for latest in [&mut one, &mut two] {
            latest.push("bob", 1, 2);
        }
        assert_ne!(one, two);
        assert_eq!(
            (
                one.pop_if(|oldest| *oldest == 2),
                one.pop_if(|oldest| *oldest == 1)
            ),
            (None, Some(1))
        );
        assert!(one == two && !one.is_empty());
        assert_eq!(
            (one.pop_if(|_| true), one.pop_if(|_| true), one.weight()),
            (Some(2), None, 0)
        );
        two.push("ann", 1, 3);
        one.push("bob", 1, 2);
        one.push("bob", 1, 3);
        assert_ne!(one, two);
    }
}
