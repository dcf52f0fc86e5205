//! The key ranges that a filter can match.
//!
//! Decides which part of a table has to be read: a superset of the matches, because the whole
//! filter is evaluated on each row. Comparisons with `PartitionKey` and `RowKey` narrow the
//! ranges; all other comparisons, and `not`, do not.

use super::{Operand, Term};
use crate::rules::comparison::ComparisonOperator;
use crate::table::rules::key::{PARTITION_KEY, ROW_KEY};
use crate::table::rules::range::{Edge, Position, Range, normalised};
use crate::table::rules::value::Value;

/// Boxes that are kept apart. Beyond it a coarser answer is given.
const BOXES_MAX: usize = 256;

/// The texts between two edges.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Interval {
    low: Edge,
    high: Edge,
}

/// An interval of partition keys and one of row keys: entities with both keys inside.
#[derive(Clone, PartialEq, Eq, Debug)]
struct KeyBox {
    partitions: Interval,
    rows: Interval,
}

pub(super) fn of(term: &Term) -> Vec<Range> {
    normalised(boxes(term).into_iter().map(KeyBox::range).collect())
}

/// Boxes that together hold every match.
fn boxes(term: &Term) -> Vec<KeyBox> {
    match term {
        Term::Any(terms) => {
            let all: Vec<_> = terms.iter().flat_map(boxes).take(BOXES_MAX + 1).collect();
            if all.len() > BOXES_MAX { vec![KeyBox::EVERYTHING] } else { all }
        }
        Term::All(terms) => terms.iter().map(boxes).fold(vec![KeyBox::EVERYTHING], meet),
        Term::Compare(Operand::Property(name), comparison, Operand::Literal(value)) => {
            compared(name, *comparison, value)
        }
        Term::Compare(Operand::Literal(value), comparison, Operand::Property(name)) => {
            compared(name, comparison.mirrored(), value)
        }
        Term::Not(_) | Term::Compare(..) | Term::Lone(_) => vec![KeyBox::EVERYTHING],
    }
}

fn meet(one: Vec<KeyBox>, two: Vec<KeyBox>) -> Vec<KeyBox> {
    if two == [KeyBox::EVERYTHING] {
        return one;
    }
    if one.len() * two.len() > BOXES_MAX {
        return if one.len() < two.len() { one } else { two };
    }
    let pairs = one.iter().flat_map(|one| two.iter().map(|two| one.meet(two)));
    pairs.filter(|both| !both.is_empty()).collect()
}

fn compared(name: &str, comparison: ComparisonOperator, value: &Value) -> Vec<KeyBox> {
    let is_partition = match name {
        PARTITION_KEY => true,
        ROW_KEY => false,
        _ => return vec![KeyBox::EVERYTHING],
    };
    let interval = match (comparison, value) {
        (ComparisonOperator::NotEqual, _) => Interval::EVERYTHING,
        // Keys are strings: nothing else compares with them.
        (_, Value::String(text)) => Interval::compared(comparison, text),
        _ => return Vec::new(),
    };
    vec![if is_partition {
        KeyBox { partitions: interval, rows: Interval::EVERYTHING }
    } else {
        KeyBox { partitions: Interval::EVERYTHING, rows: interval }
    }]
}

impl Interval {
    const EVERYTHING: Self = Self { low: Edge::START, high: Edge::End };

    fn compared(comparison: ComparisonOperator, text: &str) -> Self {
        let (before, after) = (Edge::before(text), Edge::after(text));
        match comparison {
            ComparisonOperator::Equal => Self { low: before, high: after },
            ComparisonOperator::NotEqual => Self::EVERYTHING,
            ComparisonOperator::Greater => Self { low: after, high: Edge::End },
            ComparisonOperator::GreaterOrEqual => Self { low: before, high: Edge::End },
            ComparisonOperator::Less => Self { low: Edge::START, high: before },
            ComparisonOperator::LessOrEqual => Self { low: Edge::START, high: after },
        }
    }

    fn meet(&self, other: &Self) -> Self {
        Self {
            low: (&self.low).max(&other.low).clone(),
            high: (&self.high).min(&other.high).clone(),
        }
    }

    fn is_empty(&self) -> bool {
        self.low >= self.high
    }

    /// The only text in it, if there is only one.
    fn point(&self) -> Option<&str> {
        match (&self.low, &self.high) {
            (Edge::At(low, _), Edge::At(high, _)) if low == high && !self.is_empty() => Some(low),
            _ => None,
        }
    }
}

impl KeyBox {
    const EVERYTHING: Self = Self { partitions: Interval::EVERYTHING, rows: Interval::EVERYTHING };

    fn meet(&self, other: &Self) -> Self {
        Self {
            partitions: self.partitions.meet(&other.partitions),
            rows: self.rows.meet(&other.rows),
        }
    }

    fn is_empty(&self) -> bool {
        self.partitions.is_empty() || self.rows.is_empty()
    }

    /// The smallest range around it. Rows narrow it only where the partition is one.
    fn range(self) -> Range {
        match self.partitions.point().map(str::to_owned) {
            Some(partition) => Range {
                start: Position::In(partition.clone(), self.rows.low),
                end: Position::In(partition, self.rows.high),
            },
            None => Range {
                start: Position::of_partition(self.partitions.low),
                end: Position::of_partition(self.partitions.high),
            },
        }
    }
}
