//! The tokens of a filter as a tree.
//!
//! Decides precedence (`not`, then `and`, then `or`) and what is a syntax error. Keywords are in
//! lower case; `null`, functions and arithmetic do not exist in the service.

use super::lexer::{FilterToken, Spot, tokens};
use super::{FILTER_DEPTH_MAX, Operand, Term};
use crate::rules::comparison::ComparisonOperator;
use crate::table::rules::denial::TableDenial;
use crate::table::rules::value::Value;

/// Words that cannot be properties.
const KEYWORDS: [&str; 10] = ["and", "or", "not", "eq", "ne", "gt", "ge", "lt", "le", "null"];
/// Characters of a filter that an error shows.
const SHOWN_MAX: usize = 256;

pub(super) fn parse(text: &str) -> Result<Term, TableDenial> {
    let tokens = tokens(text).map_err(|at| syntax_error(text, at))?;
    let mut parser = FilterParser { text, tokens, next: 0, depth: 0 };
    let term = parser.any()?;
    let term = parser.checked(term)?;
    if parser.next < parser.tokens.len() { Err(parser.error()) } else { Ok(term) }
}

fn syntax_error(text: &str, at: usize) -> TableDenial {
    let position = text[..at].chars().count();
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    TableDenial::InvalidInput(format!("Syntax error at position {position} in '{shown}'."))
}

struct FilterParser<'a> {
    text: &'a str,
    tokens: Vec<Spot>,
    next: usize,
    depth: usize,
}

impl FilterParser<'_> {
    fn peek(&self) -> Option<&FilterToken> {
        self.tokens.get(self.next).map(|spot| &spot.token)
    }

    fn error(&self) -> TableDenial {
        let at = self.tokens.get(self.next).map_or(self.text.len(), |spot| spot.at);
        syntax_error(self.text, at)
    }

    fn skip_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(FilterToken::Word(given)) if given == word);
        self.next += usize::from(found);
        found
    }

    /// Counts one more level while `read` reads it.
    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, TableDenial>,
    ) -> Result<T, TableDenial> {
        if self.depth == FILTER_DEPTH_MAX {
            let why = format!("$filter is nested more than {FILTER_DEPTH_MAX} levels deep");
            return Err(TableDenial::invalid(why));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn any(&mut self) -> Result<Term, TableDenial> {
        self.chain("or", Self::all, Term::Any)
    }

    fn all(&mut self) -> Result<Term, TableDenial> {
        self.chain("and", Self::unary, Term::All)
    }

    /// Reads terms with `word` between them. One that stands alone is taken as it is.
    fn chain(
        &mut self,
        word: &str,
        read: fn(&mut Self) -> Result<Term, TableDenial>,
        joined: fn(Vec<Term>) -> Term,
    ) -> Result<Term, TableDenial> {
        let first = read(self)?;
        if !self.skip_word(word) {
            return Ok(first);
        }
        let mut terms = vec![self.checked(first)?];
        loop {
            let next = read(self)?;
            terms.push(self.checked(next)?);
            if !self.skip_word(word) {
                return Ok(joined(terms));
            }
        }
    }

    fn unary(&mut self) -> Result<Term, TableDenial> {
        if self.skip_word("not") {
            let term = self.deeper(Self::unary)?;
            return Ok(Term::Not(Box::new(self.checked(term)?)));
        }
        self.primary()
    }

    fn primary(&mut self) -> Result<Term, TableDenial> {
        let term = if matches!(self.peek(), Some(FilterToken::Open)) {
            self.next += 1;
            let term = self.deeper(Self::any)?;
            self.close()?;
            term
        } else {
            Term::Lone(self.operand()?)
        };
        let Some(comparison) = self.comparison() else { return Ok(term) };
        // `(a) eq 1`: what looked like a term was an operand in parentheses.
        let Term::Lone(left) = term else { return Err(self.error()) };
        self.next += 1;
        let right = self.right_operand()?;
        Ok(Term::Compare(left, comparison, right))
    }

    /// Refuses a literal that is no Boolean where a term has to stand.
    fn checked(&self, term: Term) -> Result<Term, TableDenial> {
        match &term {
            Term::Lone(Operand::Literal(value)) if !matches!(value, Value::Boolean(_)) => {
                Err(self.error())
            }
            _ => Ok(term),
        }
    }

    fn close(&mut self) -> Result<(), TableDenial> {
        if !matches!(self.peek(), Some(FilterToken::Close)) {
            return Err(self.error());
        }
        self.next += 1;
        Ok(())
    }

    fn right_operand(&mut self) -> Result<Operand, TableDenial> {
        if !matches!(self.peek(), Some(FilterToken::Open)) {
            return self.operand();
        }
        self.next += 1;
        let operand = self.deeper(Self::right_operand)?;
        self.close()?;
        Ok(operand)
    }

    fn operand(&mut self) -> Result<Operand, TableDenial> {
        let operand = match self.peek() {
            Some(FilterToken::Word(word)) if !KEYWORDS.contains(&word.as_str()) => {
                Operand::Property(word.clone())
            }
            Some(FilterToken::Literal(value)) => Operand::Literal(value.clone()),
            _ => return Err(self.error()),
        };
        self.next += 1;
        Ok(operand)
    }

    fn comparison(&self) -> Option<ComparisonOperator> {
        let Some(FilterToken::Word(word)) = self.peek() else { return None };
        Some(match word.as_str() {
            "eq" => ComparisonOperator::Equal,
            "ne" => ComparisonOperator::NotEqual,
            "gt" => ComparisonOperator::Greater,
            "ge" => ComparisonOperator::GreaterOrEqual,
            "lt" => ComparisonOperator::Less,
            "le" => ComparisonOperator::LessOrEqual,
            _ => return None,
        })
    }
}
