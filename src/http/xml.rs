//! XML, written and read by hand: the order of elements and which are empty matter to clients.
//!
//! Decides how names that XML 1.0 cannot carry are written, and what a request's document may look
//! like: a bounded depth and number of elements, no document type, no entities but the five.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use quick_xml::escape::partial_escape;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use quick_xml::{Reader, Writer};

use crate::http::frame::refusal::Refusal;

/// How deep the elements of a request may nest; the deepest documented document has five.
const DEPTH_MAX: usize = 16;
/// How many elements a request may have.
const ELEMENTS_MAX: usize = 1_000;

const IN_MEMORY: &str = "writing to memory does not fail";

/// A document being written.
pub struct Xml(Writer<Vec<u8>>);

impl Default for Xml {
    fn default() -> Self {
        let mut writer = Writer::new(Vec::new());
        let declaration = BytesDecl::new("1.0", Some("utf-8"), None);
        writer.write_event(Event::Decl(declaration)).expect(IN_MEMORY);
        Self(writer)
    }
}

impl Xml {
    pub fn open(&mut self, name: &str) {
        self.open_with(name, &[]);
    }

    /// Starts an element with attributes.
    pub fn open_with(&mut self, name: &str, attributes: &[(&str, &str)]) {
        let start = BytesStart::new(name).with_attributes(attributes.iter().copied());
        self.0.write_event(Event::Start(start)).expect(IN_MEMORY);
    }

    pub fn close(&mut self, name: &str) {
        self.0.write_event(Event::End(BytesEnd::new(name))).expect(IN_MEMORY);
    }

    /// An element with text. What XML cannot carry is left out.
    pub fn text(&mut self, name: &str, text: &str) {
        self.text_with(name, &[], text);
    }

    /// Text in the element that is open. What XML cannot carry is left out.
    pub fn content(&mut self, text: &str) {
        // Most texts are written as they are: times, IDs, numbers.
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !b"<>&".contains(&byte)) {
            return self.0.get_mut().extend_from_slice(text.as_bytes());
        }
        let text: String = text.chars().filter(|&letter| is_xml(letter)).collect();
        // Quotes stand as they are in text: people read messages with curl.
        let text = BytesText::from_escaped(partial_escape(&text));
        self.0.write_event(Event::Text(text)).expect(IN_MEMORY);
    }

    /// An element with text, if there is one.
    pub fn maybe(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// An element with nothing in it.
    pub fn empty(&mut self, name: &str) {
        self.0.write_event(Event::Empty(BytesStart::new(name))).expect(IN_MEMORY);
    }

    /// An element with the name of a file: percent-encoded and marked so, only if XML cannot
    /// carry it, since a client decodes what is marked.
    pub fn file_name(&mut self, element: &str, name: &str) {
        if name.chars().all(is_xml) {
            self.text(element, name);
        } else {
            self.text_with(element, &[("Encoded", "true")], &encoded(name));
        }
    }

    fn text_with(&mut self, name: &str, attributes: &[(&str, &str)], text: &str) {
        self.open_with(name, attributes);
        self.content(text);
        self.close(name);
    }

    pub fn finish(self) -> Vec<u8> {
        self.0.into_inner()
    }
}

/// A name percent-encoded, as `Encoded="true"` has it.
pub fn encoded(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}

/// True if XML 1.0 has the character.
pub fn is_xml(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}')
        || letter >= '\u{10000}'
}

/// An element of a request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Element {
    pub name: String,
    /// Its text, blanks at the ends left out.
    pub text: String,
    /// The elements in it.
    pub children: Vec<Self>,
}

impl Element {
    /// Reads a document whose root is called `root`.
    pub fn read(document: &[u8], root: &str) -> Result<Self, Refusal> {
        Self::read_with(document, root, Blanks::Trimmed)
    }

    /// Reads a document whose root is called `root`, with the blanks at the ends of texts.
    pub fn read_exact(document: &[u8], root: &str) -> Result<Self, Refusal> {
        Self::read_with(document, root, Blanks::Kept)
    }

    fn read_with(document: &[u8], root: &str, blanks: Blanks) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(document).map_err(|_| invalid("it is no UTF-8"))?;
        let found = parse(text.trim_start_matches('\u{FEFF}'), blanks)?;
        if found.name != root {
            return Err(invalid(&format!("its root is {}, not {root}", found.name)));
        }
        Ok(found)
    }

    /// The first element of that name in it.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// It alone, as a document.
    pub fn document(&self) -> String {
        let mut xml = Xml::default();
        self.write(&mut xml);
        String::from_utf8(xml.finish()).expect("what is written is text")
    }

    /// Writes it as it was read.
    pub fn write(&self, xml: &mut Xml) {
        if self.children.is_empty() {
            return xml.text(&self.name, &self.text);
        }
        xml.open(&self.name);
        for child in &self.children {
            child.write(xml);
        }
        xml.close(&self.name);
    }
}

/// The treatment of blanks at the ends of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blanks {
    Trimmed,
    Kept,
}

fn parse(text: &str, blanks: Blanks) -> Result<Element, Refusal> {
    let mut reader = Reader::from_str(text);
    // The first is the document itself.
    let mut open = vec![Element::default()];
    let mut count = 0;
    loop {
        let event = reader.read_event().map_err(|error| invalid(&error.to_string()))?;
        match event {
            Event::Start(start) => {
                count += 1;
                if open.len() > DEPTH_MAX || count > ELEMENTS_MAX {
                    return Err(invalid("it has too many elements"));
                }
                open.push(named(&start)?);
            }
            Event::Empty(start) => {
                count += 1;
                if count > ELEMENTS_MAX {
                    return Err(invalid("it has too many elements"));
                }
                last(&mut open)?.children.push(named(&start)?);
            }
            Event::End(_) => {
                let mut done = open.pop().ok_or_else(|| invalid("an element ends twice"))?;
                if blanks == Blanks::Trimmed {
                    done.text = String::from(done.text.trim());
                }
                last(&mut open)?.children.push(done);
            }
            Event::Text(text) => last(&mut open)?.text.push_str(&text.xml10_content()),
            Event::CData(data) => last(&mut open)?.text.push_str(&data.xml10_content()),
            Event::GeneralRef(entity) => last(&mut open)?.text.push(character(&entity)?),
            Event::DocType(_) => return Err(invalid("it has a document type")),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => break,
        }
    }
    match (open.pop(), open.is_empty()) {
        (Some(mut document), true) if document.children.len() == 1 => {
            document.children.pop().ok_or_else(|| invalid("it has no root"))
        }
        _ => Err(invalid("it has not one root")),
    }
}

fn last(open: &mut [Element]) -> Result<&mut Element, Refusal> {
    open.last_mut().ok_or_else(|| invalid("an element ends twice"))
}

fn named(start: &BytesStart<'_>) -> Result<Element, Refusal> {
    let name = start.name();
    let name: &str = name.as_ref();
    if !is_name(name) {
        return Err(invalid("the name of an element is not one of XML"));
    }
    Ok(Element { name: name.to_owned(), ..Element::default() })
}

/// True for names as every document of the services has them. XML allows more letters.
fn is_name(name: &str) -> bool {
    let start = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    let inner = |letter: char| start(letter) || letter.is_ascii_digit() || "-.:".contains(letter);
    name.starts_with(start) && name.chars().all(inner)
}

fn character(entity: &quick_xml::events::BytesRef<'_>) -> Result<char, Refusal> {
    if let Some(letter) = entity.resolve_char_ref().map_err(|error| invalid(&error.to_string()))? {
        return Ok(letter);
    }
    match entity.xml10_content().as_ref() {
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "amp" => Ok('&'),
        "apos" => Ok('\''),
        "quot" => Ok('"'),
        other => Err(invalid(&format!("the entity {other} is not known"))),
    }
}

/// A document that cannot be read.
pub fn invalid(why: &str) -> Refusal {
    Refusal::bad_because("InvalidXmlDocument", why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_with_entities_and_blanks() {
        let text = "\u{FEFF}<?xml version='1.0'?><A>\n <B>x &amp; &#x79;</B><C/> </A>";
        let root = Element::read(text.as_bytes(), "A").unwrap();
        assert_eq!(root.child("B").unwrap().text, "x & y");
        assert_eq!(root.child("C").unwrap().text, "");
        assert_eq!(root.child("D"), None);
    }

    #[test]
    fn a_text_comes_back_to_the_letter() {
        let text = "  <&>\"' a\r\nb\rc\n ";
        let mut xml = Xml::default();
        xml.open("A");
        xml.text("B", text);
        xml.close("A");
        let root = Element::read_exact(&xml.finish(), "A").unwrap();
        assert_eq!(root.child("B").unwrap().text, text);
    }

    #[test]
    fn what_is_no_document_is_refused() {
        let deep = format!("{}{}", "<a>".repeat(40), "</a>".repeat(40));
        let wide = format!("<a>{}</a>", "<b/>".repeat(ELEMENTS_MAX));
        let bad_names = ["<a><x&y/></a>", "<a><1/></a>", "<a><\"/></a>", "<a><x\u{7}/></a>"];
        let bad = ["", "<a>", "<a></b>", "<b/>", "<a/><a/>", "<!DOCTYPE a><a/>", "<a>&x;</a>"];
        for bad in bad.into_iter().chain(bad_names) {
            assert!(Element::read(bad.as_bytes(), "a").is_err(), "{bad}");
        }
        assert!(Element::read(deep.as_bytes(), "a").is_err());
        assert!(Element::read(wide.as_bytes(), "a").is_err());
        assert!(Element::read(b"\xFF<a/>", "a").is_err());
    }

    #[test]
    fn only_names_that_xml_cannot_carry_are_encoded() {
        let mut xml = Xml::default();
        xml.file_name("Name", "a%41 <b>");
        xml.file_name("Name", "x\u{FFFE}");
        let text = String::from_utf8(xml.finish()).unwrap();
        assert!(text.contains("<Name>a%41 &lt;b&gt;</Name>"), "{text}");
        assert!(text.contains("<Name Encoded=\"true\">x%EF%BF%BE</Name>"), "{text}");
    }
}
