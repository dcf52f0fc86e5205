//! `$filter`: reading it, evaluating it on an entity, and the key ranges it can match.
//!
//! Decides the limits of the grammar and the meaning of comparisons. The engine reads the rows of
//! the ranges that [`Filter::ranges`] returns.
//!
//! ```text
//!   lexer    text to tokens
//!   parser   tokens to a tree
//!   ranges   a tree to intervals of keys
//! ```

mod lexer;
mod parser;
mod ranges;
#[cfg(test)]
mod tests;

use super::denial::TableDenial;
use super::entity::EntityFields;
use super::range::Range;
use super::value::{Value, ValueRef};
use crate::rules::comparison::ComparisonOperator;

/// Bytes of a filter's text.
pub const FILTER_BYTES_MAX: usize = 32 << 10;
/// Levels of parentheses and `not` within each other.
pub const FILTER_DEPTH_MAX: usize = 100;

/// A filter. The tree is at most [`FILTER_DEPTH_MAX`] levels deep, so that recursion over it is
/// bounded: a chain of `and` or `or` is one level.
#[derive(Clone, PartialEq, Debug)]
pub struct Filter(Term);

#[derive(Clone, PartialEq, Debug)]
enum Term {
    Any(Vec<Term>),
    All(Vec<Term>),
    Not(Box<Term>),
    Compare(Operand, ComparisonOperator, Operand),
    /// An operand that stands alone: a Boolean.
    Lone(Operand),
}

#[derive(Clone, PartialEq, Debug)]
enum Operand {
    Property(String),
    Literal(Value),
}

impl Filter {
    /// Reads the text of a filter.
    pub fn parse(text: &str) -> Result<Self, TableDenial> {
        if text.len() > FILTER_BYTES_MAX {
            return Err(TableDenial::invalid(format!(
                "$filter has {} bytes; {FILTER_BYTES_MAX} are allowed",
                text.len()
            )));
        }
        parser::parse(text).map(Self)
    }

    /// True if the entity matches.
    pub fn matches(&self, entity: &impl EntityFields) -> bool {
        self.0.holds(&|name| entity.field(name))
    }

    /// True if a thing with these fields matches.
    pub fn holds<'a>(&self, field: impl Fn(&str) -> Option<ValueRef<'a>>) -> bool {
        self.0.holds(&field)
    }

    /// The key ranges outside which nothing can match: sorted and separate. Within them the
    /// filter still has to be asked.
    pub fn ranges(&self) -> Vec<Range> {
        ranges::of(&self.0)
    }
}

impl Term {
    fn holds<'a>(&self, field: &impl Fn(&str) -> Option<ValueRef<'a>>) -> bool {
        match self {
            Self::Any(terms) => terms.iter().any(|term| term.holds(field)),
            Self::All(terms) => terms.iter().all(|term| term.holds(field)),
            Self::Not(term) => !term.holds(field),
            Self::Compare(left, comparison, right) => left
                .with(field, |left| right.with(field, |right| comparison.holds(left.order(right)))),
            Self::Lone(operand) => operand.with(field, |value| value == ValueRef::Boolean(true)),
        }
    }
}

impl Operand {
    /// Asks `test` about the value. A missing property fails every test, `ne` among them.
    fn with<'a>(
        &self,
        field: &impl Fn(&str) -> Option<ValueRef<'a>>,
        test: impl FnOnce(ValueRef<'_>) -> bool,
    ) -> bool {
        match self {
            Self::Property(name) => field(name).is_some_and(test),
            Self::Literal(value) => test(value.as_ref()),
        }
    }
}
