//! The operations of a run: each on the service and on the reference.

use super::super::reference::{Blob, Class, Demand, Form, Keep, Kept, Lease, Name, No, Pending};
use super::super::*;
use super::{PAGES, Run, answered};
use crate::blob::rules::append::AppendConditions;
use crate::blob::rules::blocks::{BlockId, BlockSearch, ListedBlock};
use crate::blob::rules::deletion::DeleteBlobSnapshots;
use crate::blob::rules::pages::SequenceConditions;
use crate::blob::rules::tags::Tags;

impl Run {
    pub(super) fn put(&mut self, kind: BlobType) {
        let name = self.name();
        let demand = self.demand(name);
        let mut state = self.settled(name);
        let bytes = match kind {
            BlobType::Block => self.bytes(),
            BlobType::Append => Vec::new(),
            BlobType::Page => vec![0; PAGES],
        };
        let expected = state.admit(Form::Create, Class::Write, None, demand, self.now).map(|()| {
            state.replace(Blob::new(kind, bytes.clone()), self.keep(), self.now);
            state
        });
        let body = match kind {
            BlobType::Block => self.bench.body_whole(&bytes),
            _ => Content::default(),
        };
        let page_length = if kind == BlobType::Page { PAGES as u64 } else { 0 };
        let new = NewBlob { page_length, ..NewBlob::default() };
        let (cx, asked) = (self.bench.cx(), self.asked(name, demand));
        let put = within(self.bench.service.put_blob(&cx, &at(name), asked, kind, new, body));
        self.wrote("put", name, put.map(|it| Some(it.etag)), expected);
    }

    pub(super) fn put_block(&mut self) {
        let (name, block) = (self.name_of(BlobType::Block), self.pick(&[1, 2, 3]));
        let demand = self.demand(name);
        let mut state = self.settled(name);
        let bytes = vec![block; self.pick(&[1, 3_000, 30_000])];
        let (form, kind, now) = (Form::Stage, Some(BlobType::Block), self.now);
        let expected = state.admit(form, Class::Write, kind, demand, now).map(|()| {
            state.blocks.insert(block, bytes.clone());
            if let Some(blob) = &mut state.blob {
                blob.lease = blob.lease.after_write(now);
            } else {
                let lease = state.uncommitted.unwrap_or_default();
                state.uncommitted = Some(lease.after_write(now));
            }
            state
        });
        let asked = AccessConditions { lease: demand.lease.map(id), ..AccessConditions::default() };
        let put = put_block(&self.bench, name, &[block], &bytes, asked);
        self.wrote("put block", name, put.map(|()| None), expected);
    }

    pub(super) fn commit(&mut self) {
        let name = self.name_of(BlobType::Block);
        let demand = self.demand(name);
        let mut state = self.settled(name);
        let listed: Vec<u8> = (0..self.below(4)).map(|_| self.pick(&[1, 2, 3])).collect();
        let (form, kind) = (Form::Create, Some(BlobType::Block));
        let admitted = state.admit(form, Class::Write, kind, demand, self.now);
        let expected = admitted.and_then(|()| {
            let before = state.blob.as_ref().map_or(&[][..], |blob| &blob.committed);
            let find = |id: &u8| {
                let committed = || before.iter().find(|(one, _)| one == id).map(|(_, it)| it);
                let found = state.blocks.get(id).or_else(committed);
                found.map(|bytes| (*id, bytes.clone())).ok_or("list")
            };
            let committed: Vec<_> = listed.iter().map(find).collect::<Result<_, No>>()?;
            let bytes = committed.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
            let new = Blob { committed, ..Blob::new(BlobType::Block, bytes) };
            state.replace(new, self.keep(), self.now);
            Ok(state)
        });
        let entry = |block: &u8| ListedBlock {
            search: BlockSearch::Latest,
            id: BlockId::from_bytes(vec![*block]),
        };
        let list = listed.iter().map(entry).collect();
        let (cx, asked, new) = (self.bench.cx(), self.asked(name, demand), NewBlob::default());
        let put = within(self.bench.service.put_block_list(&cx, &at(name), asked, new, list));
        self.wrote("commit", name, put.map(|it| Some(it.etag)), expected);
    }

    pub(super) fn append(&mut self) {
        let name = self.name_of(BlobType::Append);
        let demand = self.demand(name);
        let mut state = self.settled(name);
        let (bytes, right) = (vec![7; self.pick(&[1, 4_000, 30_000])], self.below(4) > 0);
        let length = state.blob.as_ref().map_or(0, |blob| blob.bytes.len());
        let position = if right { length } else { length + 1 };
        let (form, kind, now) = (Form::Existing, Some(BlobType::Append), self.now);
        let admitted = state.admit(form, Class::Write, kind, demand, now);
        let expected = admitted.and_then(|()| {
            let blob = state.blob.as_mut().ok_or("not found")?;
            match (right, blob.sealed) {
                (false, _) => return Err("position"),
                (true, true) => return Err("sealed"),
                (true, false) => {}
            }
            blob.bytes.extend(&bytes);
            blob.lease = blob.lease.after_write(now);
            Ok(state)
        });
        let conditions = AppendConditions { position: Some(position as u64), max_size: None };
        let (cx, asked) = (self.bench.cx(), self.asked(name, demand));
        let (to, body) = (at(name), self.bench.body(&bytes, true));
        let operation = BlobOperation::AppendBlobAppendBlock;
        let append = self.bench.service.append_block(&cx, operation, &to, asked, conditions, body);
        let answer = within(append).map(|it| Some(it.written.etag));
        self.wrote("append", name, answer, expected);
    }

    pub(super) fn seal(&mut self) {
        let name = self.name_of(BlobType::Append);
        let demand = self.demand(name);
        let mut state = self.settled(name);
        let (form, kind, now) = (Form::Existing, Some(BlobType::Append), self.now);
        let expected = state.admit(form, Class::Write, kind, demand, now).map(|()| {
            let blob = state.blob.as_mut().expect("it was admitted");
            blob.sealed = true;
            blob.lease = blob.lease.after_write(now);
            state
        });
        let (cx, asked) = (self.bench.cx(), self.asked(name, demand));
        let none = AppendConditions::default();
        let seal = within(self.bench.service.seal_blob(&cx, &at(name), asked, none));
        self.wrote("seal", name, seal.map(|it| Some(it.etag)), expected);
    }

    pub(super) fn put_page(&mut self) {
        let name = self.name_of(BlobType::Page);
        let demand = self.demand(name);
        let mut state = self.settled(name);
        let (first, clear) = (self.below(3) as usize, self.below(3) == 0);
        let (start, end) = (first * 512, (first + 1 + self.below(2) as usize) * 512);
        let (form, kind, now) = (Form::Existing, Some(BlobType::Page), self.now);
        let value = if clear { 0 } else { 8 };
        let admitted = state.admit(form, Class::Write, kind, demand, now);
        let expected = admitted.and_then(|()| {
            let blob = state.blob.as_mut().expect("it was admitted");
            // A copy that was aborted leaves an empty blob.
            blob.bytes.get_mut(start..end).ok_or("range")?.fill(value);
            blob.lease = blob.lease.after_write(now);
            Ok(state)
        });
        let (operation, change) = if clear {
            (BlobOperation::PageBlobClearPages, PageChange::Clear)
        } else {
            let body = self.bench.body(&vec![value; end - start], true);
            (BlobOperation::PageBlobUploadPages, PageChange::Update(body))
        };
        let conditions = SequenceConditions::default();
        let put = PutPages { first: start as u64, last: end as u64 - 1, change, conditions };
        let (cx, asked) = (self.bench.cx(), self.asked(name, demand));
        let put = within(self.bench.service.put_pages(&cx, operation, &at(name), asked, put));
        self.wrote("put page", name, put.map(|it| Some(it.etag)), expected);
    }

    pub(super) fn set_metadata(&mut self) {
        let (name, value) = (self.name(), u64::from(self.below(9)));
        let demand = self.demand(name);
        let mut state = self.settled(name);
        let (versioning, now) = (self.options.versioning, self.now);
        let expected = state.admit(Form::Update, Class::Write, None, demand, now).map(|()| {
            let blob = state.blob.as_mut().expect("it was admitted");
            if versioning {
                state.versions.push(blob.bytes.clone());
            }
            blob.metadata = value;
            blob.lease = blob.lease.after_write(now);
            state
        });
        let metadata = vec![("k".to_owned(), value.to_string())];
        let (cx, asked) = (self.bench.cx(), self.asked(name, demand));
        let set = within(self.bench.service.set_metadata(&cx, &at(name), asked, metadata));
        self.wrote("set metadata", name, set.map(|it| Some(it.etag)), expected);
    }

    pub(super) fn set_tags(&mut self) {
        let (name, value) = (self.name(), u64::from(self.below(3)));
        let demand = Demand { matches: None, star: false, ..self.demand(name) };
        let mut state = self.settled(name);
        let now = self.now;
        let expected = state.admit(Form::Existing, Class::Write, None, demand, now).map(|()| {
            let blob = state.blob.as_mut().expect("it was admitted");
            blob.tag = Some(value);
            blob.lease = blob.lease.after_write(now);
            state
        });
        let tags = Tags::new([("k".to_owned(), value.to_string())]).unwrap();
        let (cx, asked) = (self.bench.cx(), self.asked(name, demand));
        let set = within(self.bench.service.set_tags(&cx, &at(name), asked, tags));
        self.wrote("set tags", name, set.map(|()| None), expected);
    }

    pub(super) fn snapshot(&mut self) {
        let name = self.name();
        let demand = self.demand(name);
        let mut state = self.settled(name);
        let versioning = self.options.versioning;
        let expected = state.admit(Form::Update, Class::Read, None, demand, self.now).map(|()| {
            let bytes = state.blob.as_ref().expect("it was admitted").bytes.clone();
            if versioning {
                state.versions.push(bytes.clone());
            }
            state.snapshots.push(bytes);
            state
        });
        let (cx, asked) = (self.bench.cx(), self.asked(name, demand));
        let taken = within(self.bench.service.snapshot(&cx, &at(name), asked, Vec::new()));
        self.wrote("snapshot", name, taken.map(|_| None), expected);
    }

    pub(super) fn delete(&mut self) {
        let name = self.name();
        let demand = self.demand(name);
        let mut state = self.settled(name);
        let some = [None, Some(DeleteBlobSnapshots::Include), Some(DeleteBlobSnapshots::Only)];
        let snapshots = self.pick(&some);
        let keep = self.keep();
        let admitted = match (&state.blob, state.uncommitted) {
            // Blocks alone are a blob for deletion.
            (None, Some(lease)) => lease
                .check(Class::Write, demand.lease, self.now)
                .and_then(|()| if demand.matches.is_some() { Err("condition") } else { Ok(()) }),
            _ => state.admit(Form::Update, Class::Write, None, demand, self.now),
        };
        let expected = admitted.and_then(|()| {
            if snapshots.is_none() && !state.snapshots.is_empty() {
                return Err("snapshots");
            }
            if snapshots.is_some() {
                for bytes in std::mem::take(&mut state.snapshots) {
                    if let Keep::Until(until) = keep {
                        let blob = Blob::new(BlobType::Block, bytes);
                        state.kept.push(Kept { until, blob, base: false });
                    }
                }
            }
            if snapshots != Some(DeleteBlobSnapshots::Only) {
                state.blocks.clear();
                state.uncommitted = None;
                if let Some(mut blob) = state.blob.take() {
                    blob.lease = Lease::Available;
                    match keep {
                        Keep::Nothing => {}
                        Keep::Versions => state.versions.push(blob.bytes),
                        Keep::Until(until) => state.kept.push(Kept { until, blob, base: true }),
                    }
                }
            }
            Ok(state)
        });
        let (cx, asked) = (self.bench.cx(), self.asked(name, demand));
        let delete = DeleteBlob { snapshots, ..DeleteBlob::default() };
        let deleted = within(self.bench.service.delete_blob(&cx, &at(name), asked, delete));
        self.wrote("delete", name, deleted.map(|_| None), expected);
    }

    pub(super) fn undelete(&mut self) {
        let name = self.name();
        let mut state = self.settled(name);
        let now = self.now;
        for kept in std::mem::take(&mut state.kept) {
            if kept.until <= now {
                continue;
            }
            if kept.base {
                // Blocks that were put since are blocks of the blob that comes back.
                let lease = state.uncommitted.take().unwrap_or_default();
                state.blob = Some(Blob { lease, ..kept.blob });
            } else {
                state.snapshots.push(kept.blob.bytes);
            }
        }
        let undeleted = within(self.bench.service.undelete_blob(&self.bench.cx(), &at(name)));
        self.wrote("undelete", name, undeleted.map(|()| None), Ok(state));
    }

    pub(super) fn copy(&mut self) {
        let (from, to) = (self.name(), self.name());
        let demand = self.demand(to);
        let source = self.settled(from);
        let mut state = self.settled(to);
        let now = self.now;
        let delay = self.options.copy_delay.as_secs();
        let expected = match &source.blob {
            None => Err("not found"),
            Some(blob) if blob.pending.is_some() => Err("pending"),
            Some(blob) => Ok(blob.clone()),
        };
        let expected = expected.and_then(|source| {
            state.admit(Form::Create, Class::CopyTarget, None, demand, now)?;
            if state.blob.as_ref().is_some_and(|blob| blob.kind != source.kind) {
                return Err("type");
            }
            let mut new = Blob::new(source.kind, source.bytes.clone());
            (new.metadata, new.sealed) = (source.metadata, source.sealed);
            new.committed.clone_from(&source.committed);
            if delay > 0 {
                if source.kind == BlobType::Page {
                    new.bytes.fill(0);
                } else {
                    new.bytes.clear();
                }
                let (bytes, committed) = (source.bytes, std::mem::take(&mut new.committed));
                new.pending = Some(Pending { due: now + delay, bytes, committed });
            }
            state.replace(new, self.keep(), now);
            Ok(state)
        });
        self.copies += 1;
        let request = CopyRequest { id: self.copies.to_string(), ..CopyRequest::default() };
        let asked = self.asked(to, demand);
        let source = CopyFrom::Here { at: at(from), asked: SourceAsked::default() };
        let (cx, operation) = (self.bench.cx(), BlobOperation::BlobStartCopyFromURL);
        let place = at(to);
        let copy = self.bench.service.copy_blob(&cx, operation, &place, asked, source, request);
        let copied = within(copy).map(|it| Some(it.written.etag));
        self.wrote("copy", to, copied, expected);
    }

    pub(super) fn abort(&mut self) {
        let name = self.name();
        let demand = Demand { matches: None, star: false, ..self.demand(name) };
        let mut state = self.settled(name);
        let now = self.now;
        let admitted = state.admit(Form::Existing, Class::AbortCopy, None, demand, now);
        let expected = admitted.and_then(|()| {
            let blob = state.blob.as_mut().expect("it was admitted");
            blob.pending.take().ok_or("no copy")?;
            blob.bytes.clear();
            // Which ETag it has is read from the service.
            blob.etag = None;
            Ok(state)
        });
        let copy = self.bench.head(name).ok().and_then(|blob| blob.state.copy.clone());
        let copy = copy.map_or(String::new(), |copy| copy.id);
        let (cx, asked) = (self.bench.cx(), self.asked(name, demand));
        let abort = within(self.bench.service.abort_copy(&cx, &at(name), asked, copy));
        self.wrote("abort", name, abort.map(|()| None), expected);
    }

    pub(super) fn lease(&mut self) {
        let name = self.name();
        let mut state = self.settled(name);
        let (one, two, now) = (self.pick(&[1, 2, 9]), self.pick(&[1, 2]), self.now);
        let (kind, seconds) = (self.below(5), self.pick(&[None, Some(15), Some(60)]));
        let proposed = self.pick(&[None, Some(1), Some(2)]);
        let period = self.pick(&[None, Some(0), Some(5), Some(60)]);
        let pending = state.blob.as_ref().is_some_and(|blob| blob.pending.is_some());
        let Name { blob, uncommitted, .. } = &mut state;
        let lease = blob.as_mut().map(|blob| &mut blob.lease).or(uncommitted.as_mut());
        let expected = match lease {
            None => Err("not found"),
            Some(_) if pending => Err("pending"),
            Some(lease) => match kind {
                0 => lease.acquire(seconds, proposed, now).map(|()| None),
                1 => lease.renew(one, now).map(|()| None),
                2 => lease.change(one, two, now).map(|()| None),
                3 => lease.release(one, now).map(|()| None),
                _ => lease.break_it(period, now).map(Some),
            },
        };
        let action = match kind {
            0 => LeaseAction::Acquire {
                duration: Some(seconds.map_or(-1, u64::cast_signed)),
                proposed: proposed.map(id),
                fresh: id(9),
            },
            1 => LeaseAction::Renew(id(one)),
            2 => LeaseAction::Change { current: id(one), proposed: id(two) },
            3 => LeaseAction::Release(id(one)),
            _ => LeaseAction::Break(period.map(u64::cast_signed)),
        };
        let (cx, none) = (self.bench.cx(), Conditions::default());
        let leased = within(self.bench.service.lease_blob(&cx, &at(name), none, None, action));
        let leased = answered(leased);
        assert_eq!(leased.map(|leased| leased.seconds), expected, "lease {name} {action:?}");
        if expected.is_ok() {
            self.names.insert(name, state);
        }
    }

    pub(super) fn read(&mut self) {
        let name = self.name();
        let demand = Demand { star: false, ..self.demand(name) };
        let state = self.settled(name);
        let expected = state.admit(Form::Read, Class::Read, None, demand, self.now);
        let (cx, asked) = (self.bench.cx(), self.asked(name, demand));
        let opened = within(self.bench.service.open_blob(&cx, &at(name), asked, None));
        assert_eq!(answered(opened).map(drop), expected, "read {name}");
    }
}
