//! The text of a filter as tokens.
//!
//! Decides the spelling and the value of literals. [`super::parser`] decides the order of tokens.

use crate::table::rules::datetime::Ticks;
use crate::table::rules::number;
use crate::table::rules::value::{Value, parse_guid};

#[derive(Clone, PartialEq, Debug)]
pub(super) enum FilterToken {
    Open,
    Close,
    /// A property, an operator or a keyword.
    Word(String),
    Literal(Value),
}

/// A token and the byte it begins at.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Spot {
    pub token: FilterToken,
    pub at: usize,
}

/// Reads all tokens. The error is the position of what is none.
pub(super) fn tokens(text: &str) -> Result<Vec<Spot>, usize> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        let Some(first) = text[at..].chars().next() else { return Ok(tokens) };
        let rest = &text[at..];
        let (token, length) = match first {
            '(' => Some((FilterToken::Open, 1)),
            ')' => Some((FilterToken::Close, 1)),
            '\'' => quoted(rest)
                .map(|(text, length)| (FilterToken::Literal(Value::String(text)), length)),
            '-' | '0'..='9' => number(rest),
            _ if is_first(first) => word_or_typed(rest),
            _ => None,
        }
        .ok_or(at)?;
        tokens.push(Spot { token, at });
        at += length;
    }
}

fn is_first(letter: char) -> bool {
    letter == '_' || letter.is_alphabetic()
}

fn is_word(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

/// A quoted text, in which a quote is doubled, and the bytes it takes.
fn quoted(text: &str) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut at = 1;
    loop {
        let end = at + text.get(at..)?.find('\'')?;
        value.push_str(&text[at..end]);
        if !text[end + 1..].starts_with('\'') {
            return Some((value, end + 1));
        }
        value.push('\'');
        at = end + 2;
    }
}

/// A word; a quote right after it makes it the type of a literal.
fn word_or_typed(text: &str) -> Option<(FilterToken, usize)> {
    let length = text.find(|letter| !is_word(letter)).unwrap_or(text.len());
    let (word, rest) = text.split_at(length);
    if !rest.starts_with('\'') {
        // In any case: C# writes a Boolean as `True`.
        let is = |literal: &str| word.eq_ignore_ascii_case(literal);
        let token = if is("true") || is("false") {
            FilterToken::Literal(Value::Boolean(is("true")))
        } else {
            FilterToken::Word(word.to_owned())
        };
        return Some((token, length));
    }
    let (inner, quoted_length) = quoted(rest)?;
    let value = match word {
        "datetime" => Value::DateTime(Ticks::parse(&inner)?),
        "guid" => Value::Guid(parse_guid(&inner)?),
        "X" | "x" | "binary" => Value::Binary(hex(&inner)?),
        _ => return None,
    };
    Some((FilterToken::Literal(value), length + quoted_length))
}

fn hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16));
    pairs.collect::<Result<_, _>>().ok()
}

/// An integer, with `L` behind it or not, or a Double. An integer that no Int64 can hold is a
/// Double unless it says `L`.
fn number(text: &str) -> Option<(FilterToken, usize)> {
    let mut length = usize::from(text.starts_with('-'));
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(length);
    length += whole;
    let mut double = false;
    if text[length..].starts_with('.') {
        let fraction = digits(length + 1);
        if fraction == 0 {
            return None;
        }
        length += 1 + fraction;
        double = true;
    }
    if whole == 0 {
        return None;
    }
    if text[length..].starts_with(['e', 'E']) {
        let sign = usize::from(text[length + 1..].starts_with(['+', '-']));
        let exponent = digits(length + 1 + sign);
        if exponent == 0 {
            return None;
        }
        length += 1 + sign + exponent;
        double = true;
    }
    let (digits, rest) = text.split_at(length);
    let (value, suffix) = match rest.chars().next() {
        Some('L' | 'l') if !double => (Value::Int64(digits.parse().ok()?), 1),
        Some('d' | 'D') => (Value::Double(number::parse(digits)?), 1),
        _ if double => (Value::Double(number::parse(digits)?), 0),
        _ => match digits.parse() {
            Ok(integer) => (Value::Int64(integer), 0),
            Err(_) => (Value::Double(number::parse(digits)?), 0),
        },
    };
    let ends = rest[suffix..].chars().next().is_none_or(|next| !is_word(next) && next != '.');
    ends.then_some((FilterToken::Literal(value), length + suffix))
}
