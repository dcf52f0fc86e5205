//! Which pages there are, and the blocks of code on a page in their order, with what stands around
//! them. Those of one language alone are for `common::pages`.

use std::fs;
use std::path::Path;

/// The README and all pages in `docs/`.
pub fn all_pages() -> Vec<String> {
    let docs = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")).unwrap();
    let names = docs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages = names.filter(|name| Path::new(name).extension().is_some_and(|end| end == "md"));
    let mut all: Vec<_> = pages.map(|name| format!("docs/{name}")).collect();
    all.push("README.md".to_owned());
    all.sort();
    all
}

/// A block of code on a page.
#[derive(Debug, PartialEq, Eq)]
pub struct Block<'a> {
    pub language: &'a str,
    /// Ends without a line break.
    pub text: &'a str,
    /// The last line of text before it.
    pub before: &'a str,
    /// The heading of the second level above it, without its marks.
    pub section: &'a str,
    /// Where it starts, from 1.
    pub line: usize,
}

/// All blocks of a page.
pub fn blocks_of(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut parts = page.split("\n```");
    let mut outside = parts.next().unwrap_or_default();
    let mut line = outside.matches('\n').count() + 2;
    let mut section = "";
    while let Some(inside) = parts.next() {
        let (language, text) = inside.split_once('\n').unwrap_or((inside, ""));
        let before = outside.trim_end().lines().next_back().unwrap_or_default();
        let mut headings = outside.lines().filter_map(|line| line.strip_prefix("## "));
        section = headings.next_back().unwrap_or(section);
        blocks.push(Block { language, text, before, section, line });
        outside = parts.next().unwrap_or_default();
        line += inside.matches('\n').count() + outside.matches('\n').count() + 2;
    }
    blocks
}

#[test]
fn blocks_are_found_in_their_order_with_the_line_before() {
    let page = "# Top\nFirst:\n\n```sh\na\nb\n```\n\n## Next\nThen\n```text\nc\n```\n";
    let first = Block { language: "sh", text: "a\nb", before: "First:", section: "", line: 4 };
    let second = Block { language: "text", text: "c", before: "Then", section: "Next", line: 11 };
    assert_eq!(blocks_of(page), [first, second]);
}
