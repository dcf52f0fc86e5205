//! The slow and obvious queue that the model test compares with: plain lists, searched from end to
//! end.

use std::collections::BTreeMap;

/// Units of 100 ns.
pub const SECOND: i64 = 10_000_000;
/// The expiry of what does not expire.
const NEVER: i64 = i64::MAX;

/// What a request is refused for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum No {
    Queue,
    Message,
    Receipt,
}

#[derive(Clone, Debug)]
struct Item {
    id: String,
    text: String,
    receipt: String,
    expires: i64,
    visible_at: i64,
    got: u32,
    order: u64,
}

/// What a Get or Peek shows: ID, text, count.
pub type Seen = (String, String, u32);

#[derive(Default)]
pub struct Reference {
    queues: BTreeMap<String, Vec<Item>>,
    /// The last moment of a change.
    last: i64,
    puts: u64,
}

impl Reference {
    fn change(&mut self, clock: i64) -> i64 {
        self.last = clock.max(self.last);
        self.last
    }

    pub fn names(&self) -> Vec<String> {
        self.queues.keys().cloned().collect()
    }

    pub fn create(&mut self, clock: i64, queue: &str) -> bool {
        self.change(clock);
        let fresh = !self.queues.contains_key(queue);
        self.queues.entry(queue.to_owned()).or_default();
        fresh
    }

    pub fn delete_queue(&mut self, clock: i64, queue: &str) -> Result<(), No> {
        self.change(clock);
        self.queues.remove(queue).map(drop).ok_or(No::Queue)
    }

    pub fn clear(&mut self, clock: i64, queue: &str) -> Result<(), No> {
        self.change(clock);
        self.queues.get_mut(queue).map(Vec::clear).ok_or(No::Queue)
    }

    pub fn count(&self, clock: i64, queue: &str) -> Result<usize, No> {
        let now = clock.max(self.last);
        let items = self.queues.get(queue).ok_or(No::Queue)?;
        Ok(items.iter().filter(|item| item.expires > now).count())
    }

    /// Puts a message, and says when it becomes visible. The answer's ID and receipt are set by
    /// [`Self::name_last`].
    pub fn put(
        &mut self,
        clock: i64,
        queue: &str,
        text: &str,
        (hidden, lives): (u32, Option<u64>),
    ) -> Result<i64, No> {
        let now = self.change(clock);
        self.puts += 1;
        let order = self.puts;
        let lives = lives.map(|seconds| now + i64::try_from(seconds).unwrap() * SECOND);
        let visible_at = now + i64::from(hidden) * SECOND;
        let item = Item {
            id: String::new(),
            text: text.to_owned(),
            receipt: String::new(),
            expires: lives.unwrap_or(NEVER),
            visible_at,
            got: 0,
            order,
        };
        self.queues.get_mut(queue).ok_or(No::Queue)?.push(item);
        Ok(visible_at)
    }

    pub fn name_last(&mut self, queue: &str, id: &str, receipt: &str) {
        let item = self.queues.get_mut(queue).unwrap().last_mut().unwrap();
        (item.id, item.receipt) = (id.to_owned(), receipt.to_owned());
    }

    fn visible(&mut self, now: i64, queue: &str, most: usize) -> Result<Vec<&mut Item>, No> {
        let items = self.queues.get_mut(queue).ok_or(No::Queue)?;
        let mut found: Vec<_> =
            items.iter_mut().filter(|item| item.visible_at <= now && now < item.expires).collect();
        found.sort_by_key(|item| (item.visible_at, item.order));
        found.truncate(most);
        Ok(found)
    }

    pub fn peek(&mut self, clock: i64, queue: &str, most: usize) -> Result<Vec<Seen>, No> {
        let found = self.visible(clock.max(self.last), queue, most)?;
        Ok(found.iter().map(|item| (item.id.clone(), item.text.clone(), item.got)).collect())
    }

    /// Gets messages; the new receipts are set by [`Self::renew`].
    pub fn get(
        &mut self,
        clock: i64,
        queue: &str,
        most: usize,
        hidden: u32,
    ) -> Result<Vec<Seen>, No> {
        if self.visible(clock.max(self.last), queue, 1)?.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.change(clock);
        let mut seen = Vec::new();
        for item in self.visible(now, queue, most)? {
            item.got += 1;
            item.visible_at = now + i64::from(hidden) * SECOND;
            item.receipt = String::new();
            seen.push((item.id.clone(), item.text.clone(), item.got));
        }
        Ok(seen)
    }

    pub fn renew(&mut self, queue: &str, id: &str, receipt: &str) {
        let items = self.queues.get_mut(queue).unwrap();
        let item = items.iter_mut().find(|item| item.id == id).unwrap();
        item.receipt = receipt.to_owned();
    }

    fn held(
        &mut self,
        now: i64,
        queue: &str,
        (id, receipt): (&str, &str),
    ) -> Result<(&mut Vec<Item>, usize), No> {
        let items = self.queues.get_mut(queue).ok_or(No::Queue)?;
        let found = items.iter().position(|item| item.id == id && now < item.expires);
        let at = found.ok_or(No::Message)?;
        if items[at].receipt == receipt { Ok((items, at)) } else { Err(No::Receipt) }
    }

    /// Updates a message, and says when it becomes visible.
    pub fn update(
        &mut self,
        clock: i64,
        queue: &str,
        held: (&str, &str),
        (hidden, text): (u32, Option<&str>),
    ) -> Result<i64, No> {
        let now = self.change(clock);
        let (items, at) = self.held(now, queue, held)?;
        items[at].visible_at = now + i64::from(hidden) * SECOND;
        if let Some(text) = text {
            text.clone_into(&mut items[at].text);
        }
        Ok(items[at].visible_at)
    }

    pub fn delete(&mut self, clock: i64, queue: &str, held: (&str, &str)) -> Result<(), No> {
        let now = self.change(clock);
        let (items, at) = self.held(now, queue, held)?;
        items.remove(at);
        Ok(())
    }
}
