//! Put Block, Put Block List, Get Block List.

use hyper::body::Incoming;
use quick_xml::Reader;
use quick_xml::events::Event;

use super::BlobCall;
use super::body::{DOCUMENT_MAX, ReceivedPart, SentSums, not_empty};
use crate::blob::rules::BlobOperation;
use crate::blob::rules::blocks::{BlockId, BlockIdError, BlockSearch, COMMITTED_MAX, ListedBlock};
use crate::blob::service::BodyRole;
use crate::http::checksum::{crc64, crc64_text};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;
use crate::http::xml::{Xml, invalid};

/// Longest document of a block list that is read on the event loop.
const AT_ONCE_MAX: usize = 64 << 10;
pub(super) const BLOCK_MAX: u64 = 4_000 << 20;

impl BlobCall<'_> {
    pub(super) async fn put_block(self, body: Incoming) -> Answer {
        let operation = BlobOperation::BlockBlobStageBlock;
        let parameters = || {
            let id = self.block_id()?;
            self.check_announced("a block has at least one byte")?;
            Ok(id)
        };
        let part = self
            .receive_part(operation, Some(body), (BodyRole::Part, BLOCK_MAX), parameters)
            .await?;
        let ReceivedPart { engine, at, asked, parameters: id, body } = part;
        let reply = body.checksum(Reply::created());
        let content = not_empty(body.content)?;
        let put = engine.put_block(&self.cx_now(), operation, &at, asked, id, content).await;
        self.told(put)?;
        Ok(reply
            .header("x-ms-request-server-encrypted", "true")
            .encryption(&self.encryption_sent()?))
    }

    pub(super) fn block_id(&self) -> Result<BlockId, Refusal> {
        const NAME: &str = "blockid";
        let missing = || {
            Refusal::bad(
                "MissingRequiredQueryParameter",
                "The query parameter blockid is required.",
            )
        };
        let text = self.query.get(NAME).ok_or_else(missing)?;
        // A client that forgets to escape a plus sends a blank.
        BlockId::parse(&text.replace(' ', "+")).map_err(|error| match error {
            BlockIdError::NotBase64 => Refusal::query(NAME, text, "it must be base64"),
            BlockIdError::TooLong => {
                Refusal::bad("OutOfRangeInput", "The block ID has at most 64 bytes.")
            }
        })
    }

    pub(super) async fn put_block_list(self, body: Incoming) -> Answer {
        let document = self.collect_up_to(DOCUMENT_MAX, body).await?;
        let at_once = document.len() <= AT_ONCE_MAX;
        let operation = BlobOperation::BlockBlobCommitBlockList;
        let (at, asked) = (self.blob_to_change()?, self.asked(operation)?);
        let sent = self.sums_sent()?;
        let new = self.new_blob(false)?;
        let read = move || read_document(&document, &sent);
        let (list, crc) = if at_once {
            read()?
        } else {
            let read = tokio::task::spawn_blocking(read).await;
            read.unwrap_or_else(|panicked| Err(Refusal::internal(panicked)))?
        };
        let put = self.engine()?.put_block_list(&self.cx_now(), &at, asked, new, list).await;
        Ok(Reply::created()
            .blob_written(&self.told(put)?)
            .header("x-ms-content-crc64", crc64_text(crc)))
    }

    pub(super) fn block_list(self) -> Answer {
        let operation = BlobOperation::BlockBlobGetBlockList;
        let (at, asked) = (self.blob_at()?, self.asked(operation)?);
        let wanted = self.query.get("blocklisttype").unwrap_or("committed").to_ascii_lowercase();
        let (committed, uncommitted) = match wanted.as_str() {
            "committed" => (true, false),
            "uncommitted" => (false, true),
            "all" => (true, true),
            other => {
                let why = "it must be committed, uncommitted or all";
                return Err(Refusal::query("blocklisttype", other, why));
            }
        };
        if uncommitted {
            self.check_not_anonymous()?;
        }
        let lists = self.told(self.engine()?.block_lists(self.cx(), &at, &asked))?;
        let mut xml = Xml::default();
        xml.open("BlockList");
        for (shown, name, blocks) in [
            (committed, "CommittedBlocks", &lists.committed),
            (uncommitted, "UncommittedBlocks", &lists.uncommitted),
        ] {
            if !shown {
                continue;
            }
            xml.open(name);
            for (id, size) in blocks {
                xml.open("Block");
                xml.text("Name", &id.to_string());
                xml.text("Size", &size.to_string());
                xml.close("Block");
            }
            xml.close(name);
        }
        xml.close("BlockList");
        let reply = Reply::ok().xml(xml);
        Ok(match &lists.blob {
            Some(blob) => {
                reply.etag(blob.etag, blob.modified).header("x-ms-blob-content-length", blob.length)
            }
            None => reply.header("x-ms-blob-content-length", 0),
        })
    }
}

/// Reads the document of a block list, and computes its CRC64.
fn read_document(document: &[u8], sent: &SentSums) -> Result<(Vec<ListedBlock>, u64), Refusal> {
    sent.check(document)?;
    Ok((read_list(document)?, crc64(document)))
}

/// Reads a block list: up to 50,000 elements, so it is not built as a tree.
pub(crate) fn read_list(document: &[u8]) -> Result<Vec<ListedBlock>, Refusal> {
    let text = std::str::from_utf8(document).map_err(|_| invalid("it is not UTF-8"))?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{FEFF}'));
    let mut list = Vec::new();
    let mut depth = 0_usize;
    // Without a list there is nothing to commit: no document must be taken for an empty list.
    let mut seen = false;
    let mut search = None;
    let mut id = String::new();
    loop {
        let event = reader.read_event().map_err(|error| invalid(&error.to_string()))?;
        match event {
            Event::Start(start) => {
                depth += 1;
                let element = start.name();
                match (depth, element.as_ref()) {
                    (1, "BlockList") if !seen => seen = true,
                    (2, name) => search = Some(search_of(name)?),
                    _ => return Err(invalid("it is not a BlockList")),
                }
                id.clear();
            }
            Event::Text(part) if depth == 2 => id.push_str(&part.xml10_content()),
            Event::Text(part) if part.xml10_content().trim().is_empty() => {}
            Event::Text(_) => return Err(invalid("it has text outside of its elements")),
            Event::End(_) => {
                if let Some(search) = search.take() {
                    if list.len() == COMMITTED_MAX {
                        let message = "The block list may not contain more than 50,000 blocks.";
                        return Err(Refusal::bad("BlockListTooLong", message));
                    }
                    let bad = |_| {
                        let message = "The specified block list is invalid.";
                        Refusal::bad("InvalidBlockList", message)
                    };
                    list.push(ListedBlock { search, id: BlockId::parse(id.trim()).map_err(bad)? });
                }
                depth = depth.checked_sub(1).ok_or_else(|| invalid("an element ends twice"))?;
            }
            Event::Empty(start) if depth == 0 && !seen && start.name().as_ref() == "BlockList" => {
                seen = true;
            }
            Event::Empty(_) | Event::DocType(_) | Event::CData(_) | Event::GeneralRef(_) => {
                return Err(invalid("it is not a BlockList"));
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof if depth == 0 && seen => return Ok(list),
            Event::Eof => return Err(invalid("it breaks off")),
        }
    }
}

fn search_of(name: &str) -> Result<BlockSearch, Refusal> {
    match name {
        "Latest" => Ok(BlockSearch::Latest),
        "Committed" => Ok(BlockSearch::Committed),
        "Uncommitted" => Ok(BlockSearch::Uncommitted),
        other => Err(invalid(&format!("the element {other} is not known"))),
    }
}
