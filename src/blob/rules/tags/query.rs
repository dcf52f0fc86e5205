//! Expressions over tags: `x-ms-if-tags` and the `where` of Find Blobs by Tags.
//!
//! Decides the syntax and the result for one blob's tags. A comparison is by the order of bytes; a
//! tag that a blob does not have makes any comparison with it false.
//!
//! ```text
//!   expression = term { OR term }
//!   term       = factor { AND factor }
//!   factor     = "(" expression ")" | key operator 'value'
//!   key        = "quoted" | identifier | @container
//!   operator   = "=" | "<>" | ">" | ">=" | "<" | "<="
//! ```

use super::{KEY_MAX, Tags, VALUE_MAX, is_legal};
use crate::rules::comparison::ComparisonOperator;

/// Most tags that an expression of Find Blobs by Tags compares. A condition has no such bound but
/// the length of its header.
const FIND_MAX: usize = 10;
/// Deepest nesting of brackets: the parser calls itself once a level.
const DEPTH_MAX: usize = 16;

/// Which of the two languages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TagLanguage {
    /// `x-ms-if-tags`: all operators, but no `@container`.
    Condition,
    /// Find Blobs by Tags: `@container`, but neither `OR` nor `<>` nor brackets.
    Find,
}

/// Why a text is no expression.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} at character {at}")]
pub struct QueryError {
    /// The mistake, in words.
    pub what: &'static str,
    /// Where, counting bytes from 0.
    pub at: usize,
}

/// An expression over tags.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TagQuery {
    And(Vec<TagQuery>),
    Or(Vec<TagQuery>),
    /// A comparison of one tag, or of the container.
    Compare(TagComparison),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagComparison {
    /// The tag that is compared, or the container.
    pub key: ComparisonKey,
    pub operator: ComparisonOperator,
    pub value: String,
}

/// The left side of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ComparisonKey {
    /// The value of a tag.
    Tag(String),
    /// The name of the blob's container.
    Container,
}

impl TagQuery {
    pub fn parse(text: &str, language: TagLanguage) -> Result<Self, QueryError> {
        let mut parser = TagQueryParser { text, at: 0, language, tags: 0, depth: 0 };
        let query = parser.expression()?;
        parser.skip_blanks();
        if parser.at < text.len() {
            return Err(parser.error("the expression should end"));
        }
        Ok(query)
    }

    /// Whether the expression holds for a blob of this container with these tags.
    pub fn holds(&self, container: &str, tags: &Tags) -> bool {
        match self {
            Self::And(all) => all.iter().all(|query| query.holds(container, tags)),
            Self::Or(any) => any.iter().any(|query| query.holds(container, tags)),
            Self::Compare(comparison) => {
                let value = match &comparison.key {
                    ComparisonKey::Tag(key) => tags.get(key),
                    ComparisonKey::Container => Some(container),
                };
                value.is_some_and(|value| {
                    comparison.operator.holds(Some(value.cmp(comparison.value.as_str())))
                })
            }
        }
    }

    /// The comparisons that must all hold, for an index to start from: those of a conjunction.
    pub fn conjuncts(&self) -> Vec<&TagComparison> {
        match self {
            Self::And(all) => all.iter().flat_map(Self::conjuncts).collect(),
            Self::Compare(comparison) => vec![comparison],
            Self::Or(_) => Vec::new(),
        }
    }
}

struct TagQueryParser<'a> {
    text: &'a str,
    at: usize,
    language: TagLanguage,
    tags: usize,
    depth: usize,
}

impl<'a> TagQueryParser<'a> {
    fn expression(&mut self) -> Result<TagQuery, QueryError> {
        let mut any = vec![self.term()?];
        while self.word("OR") {
            if self.language == TagLanguage::Find {
                return Err(self.error("OR is not supported here"));
            }
            any.push(self.term()?);
        }
        Ok(one_or(any, TagQuery::Or))
    }

    fn term(&mut self) -> Result<TagQuery, QueryError> {
        let mut all = vec![self.factor()?];
        while self.word("AND") {
            all.push(self.factor()?);
        }
        Ok(one_or(all, TagQuery::And))
    }

    fn factor(&mut self) -> Result<TagQuery, QueryError> {
        self.skip_blanks();
        if self.language == TagLanguage::Find || !self.take("(") {
            return self.comparison();
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error("too many brackets"));
        }
        let inner = self.expression()?;
        self.skip_blanks();
        if !self.take(")") {
            return Err(self.error("a bracket should close"));
        }
        self.depth -= 1;
        Ok(inner)
    }

    fn comparison(&mut self) -> Result<TagQuery, QueryError> {
        let key = self.key()?;
        let operator = self.operator()?;
        self.skip_blanks();
        let value = self.quoted('\'')?.ok_or_else(|| self.error("a 'value' should follow"))?;
        if let ComparisonKey::Tag(key) = &key {
            if key.is_empty() || !is_legal(key, KEY_MAX) || !is_legal(&value, VALUE_MAX) {
                return Err(self.error("no tag can have this key or value"));
            }
            self.tags += 1;
            if self.language == TagLanguage::Find && self.tags > FIND_MAX {
                return Err(self.error("too many comparisons"));
            }
        }
        Ok(TagQuery::Compare(TagComparison { key, operator, value }))
    }

    fn key(&mut self) -> Result<ComparisonKey, QueryError> {
        self.skip_blanks();
        if self.language == TagLanguage::Find && self.take("@container") {
            return Ok(ComparisonKey::Container);
        }
        if let Some(key) = self.quoted('"')? {
            return Ok(ComparisonKey::Tag(key));
        }
        let rest = self.rest();
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let length = rest.find(|letter| !plain(letter)).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.error("a key should follow"));
        }
        self.at += length;
        Ok(ComparisonKey::Tag(rest[..length].to_owned()))
    }

    fn operator(&mut self) -> Result<ComparisonOperator, QueryError> {
        self.skip_blanks();
        let known = [
            ("<>", ComparisonOperator::NotEqual),
            (">=", ComparisonOperator::GreaterOrEqual),
            ("<=", ComparisonOperator::LessOrEqual),
            ("=", ComparisonOperator::Equal),
            (">", ComparisonOperator::Greater),
            ("<", ComparisonOperator::Less),
        ];
        let found = known.into_iter().find(|(sign, _)| self.rest().starts_with(sign));
        match found {
            Some((_, ComparisonOperator::NotEqual)) if self.language == TagLanguage::Find => {
                Err(self.error("<> is not supported here"))
            }
            Some((sign, operator)) => {
                self.at += sign.len();
                Ok(operator)
            }
            None => Err(self.error("an operator should follow")),
        }
    }

    /// A text within quotes, none if the next letter is no quote. Tags have no quotes, so there is
    /// no way to write one.
    fn quoted(&mut self, quote: char) -> Result<Option<String>, QueryError> {
        let Some(inner) = self.rest().strip_prefix(quote) else { return Ok(None) };
        let length = inner.find(quote).ok_or_else(|| self.error("a quote should close"))?;
        self.at += length + 2;
        Ok(Some(inner[..length].to_owned()))
    }

    /// Takes a keyword in any case. A keyword ends where its letters do.
    fn word(&mut self, word: &str) -> bool {
        self.skip_blanks();
        let rest = self.rest();
        let Some(found) = rest.get(..word.len()) else { return false };
        let ends = !rest[word.len()..].starts_with(|letter: char| letter.is_ascii_alphanumeric());
        let taken = found.eq_ignore_ascii_case(word) && ends;
        if taken {
            self.at += word.len();
        }
        taken
    }

    fn take(&mut self, sign: &str) -> bool {
        let taken = self.rest().starts_with(sign);
        if taken {
            self.at += sign.len();
        }
        taken
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    const fn error(&self, what: &'static str) -> QueryError {
        QueryError { what, at: self.at }
    }
}

/// A list of one is that one.
fn one_or(mut list: Vec<TagQuery>, many: impl FnOnce(Vec<TagQuery>) -> TagQuery) -> TagQuery {
    if list.len() == 1 { list.remove(0) } else { many(list) }
}
