//! Intervals of keys: which part of a table a query has to read.
//!
//! Decides the arithmetic of positions in the order of entities. The intervals of a filter are
//! decided in [`super::filter`]; the store reads them.

use std::cmp::Ordering;

use super::key::EntityKey;

/// A place between texts in their order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Edge {
    /// Right before a text or right after it.
    At(String, Side),
    End,
}

/// The side of a text that an [`Edge`] is on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Side {
    Before,
    After,
}

impl Edge {
    pub const START: Self = Self::At(String::new(), Side::Before);

    pub fn before(text: impl Into<String>) -> Self {
        Self::At(text.into(), Side::Before)
    }

    pub fn after(text: impl Into<String>) -> Self {
        Self::At(text.into(), Side::After)
    }

    /// The order of `text` and this place.
    fn order_of(&self, text: &str) -> Ordering {
        match self {
            Self::End => Ordering::Less,
            Self::At(at, side) => text.cmp(at).then(match side {
                Side::Before => Ordering::Greater,
                Side::After => Ordering::Less,
            }),
        }
    }
}

/// A place between entities in their order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Position {
    /// A place among the rows of a partition.
    In(String, Edge),
    End,
}

impl Position {
    pub const START: Self = Self::In(String::new(), Edge::START);

    /// Right before the entity of that key.
    pub fn before(key: EntityKey) -> Self {
        Self::In(key.partition, Edge::before(key.row))
    }

    /// Right after the entity of that key.
    pub fn after(key: EntityKey) -> Self {
        Self::In(key.partition, Edge::after(key.row))
    }

    /// The place that an edge among partitions stands for.
    pub fn of_partition(edge: Edge) -> Self {
        match edge {
            Edge::At(partition, Side::Before) => Self::In(partition, Edge::START),
            Edge::At(partition, Side::After) => Self::In(partition, Edge::End),
            Edge::End => Self::End,
        }
    }

    /// True if the entity of that key lies before this place.
    pub fn is_after(&self, partition: &str, row: &str) -> bool {
        match self {
            Self::End => true,
            Self::In(at, edge) => {
                partition.cmp(at).then_with(|| edge.order_of(row)) == Ordering::Less
            }
        }
    }
}

/// The entities between two places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Range {
    pub start: Position,
    pub end: Position,
}

impl Range {
    pub const ALL: Self = Self { start: Position::START, end: Position::End };

    /// True if no entity can lie in it.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// True if the entity of that key lies in it.
    pub fn contains(&self, partition: &str, row: &str) -> bool {
        self.end.is_after(partition, row) && !self.start.is_after(partition, row)
    }

    /// The intersection of both ranges.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        Self {
            start: (&self.start).max(&other.start).clone(),
            end: (&self.end).min(&other.end).clone(),
        }
    }
}

/// Sorts ranges and joins those that overlap or touch; empty ones go.
pub fn normalised(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by(|one, two| one.start.cmp(&two.start));
    let mut joined: Vec<Range> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => {
                if range.end > last.end {
                    last.end = range.end;
                }
            }
            _ => joined.push(range),
        }
    }
    joined
}

/// The parts of sorted, separate ranges that lie within `limit`.
pub fn clipped(ranges: &[Range], limit: &Range) -> Vec<Range> {
    let parts = ranges.iter().map(|range| range.within(limit));
    parts.filter(|range| !range.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(partition: &str, edge: Edge) -> Position {
        Position::In(partition.into(), edge)
    }

    #[test]
    fn positions_are_ordered_as_entities_are() {
        let order = [
            Position::START,
            at("", Edge::after("")),
            at("", Edge::End),
            at("a", Edge::START),
            at("a", Edge::before("b")),
            at("a", Edge::after("b")),
            at("a", Edge::before("b\u{1}")),
            at("a", Edge::End),
            at("a\u{1}", Edge::START),
            Position::End,
        ];
        for pair in order.windows(2) {
            assert!(pair[0] < pair[1], "{pair:?}");
        }
    }

    #[test]
    fn a_range_contains_what_lies_between_its_ends() {
        let range = Range { start: at("a", Edge::after("r")), end: at("b", Edge::after("r")) };
        for (partition, row, inside) in [
            ("a", "q", false),
            ("a", "r", false),
            ("a", "r\u{1}", true),
            ("aa", "", true),
            ("b", "r", true),
            ("b", "s", false),
            ("c", "", false),
        ] {
            assert_eq!(range.contains(partition, row), inside, "{partition} {row}");
        }
        assert!(Range::ALL.contains("", "") && Range::ALL.contains("\u{10ffff}", "x"));
        let partition = Range {
            start: Position::of_partition(Edge::before("p")),
            end: Position::of_partition(Edge::after("p")),
        };
        assert!(partition.contains("p", "") && partition.contains("p", "\u{10ffff}"));
        assert!(!partition.contains("p\u{1}", "") && !partition.contains("o", "z"));
    }

    #[test]
    fn ranges_are_sorted_joined_and_clipped() {
        let range = |from: &str, to: &str| Range {
            start: at("p", Edge::before(from)),
            end: at("p", Edge::before(to)),
        };
        let ranges = vec![range("m", "p"), range("a", "c"), range("x", "w"), range("c", "e")];
        let joined = normalised(ranges);
        assert_eq!(joined, [range("a", "e"), range("m", "p")]);
        assert_eq!(clipped(&joined, &range("d", "n")), [range("d", "e"), range("m", "n")]);
        assert_eq!(clipped(&joined, &range("e", "m")), []);
    }
}
