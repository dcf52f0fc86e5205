//! The names of one file that are in use: names with opens, and delete-pending names.
//!
//! Share modes and byte-range locks belong to the file; the delete-pending mark belongs to the
//! *link*, one boolean each, not a counter.

use super::SharePath;

/// A name of the file with live opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Path from the share's root, spelled as on disk.
    pub path: SharePath,
    /// Marked for deletion when the last open through this name closes.
    pub pending: bool,
    /// The name itself was taken away while it was open, as POSIX does: it is no longer this
    /// file's, and another may bear it.
    pub gone: bool,
    opens: u32,
}

impl Link {
    fn is(&self, path: &SharePath) -> bool {
        !self.gone && self.path == *path
    }
}

/// The names in use. Numbers of links stay valid while an open uses them.
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// The common case, one name, costs no allocation of its own.
    first: Option<Link>,
    /// The others, if there ever were any. In a box: a million files in use have no others.
    #[expect(clippy::box_collection, reason = "a pointer instead of three words")]
    more: Option<Box<Vec<Option<Link>>>>,
}

impl Links {
    /// Counts one more open through `path`; returns the link's number.
    pub fn enter(&mut self, path: &SharePath) -> u32 {
        if let Some((number, link)) = self.iter_mut().find(|(_, link)| link.is(path)) {
            link.opens += 1;
            return number;
        }
        let link = Link { path: path.clone(), pending: false, gone: false, opens: 1 };
        if self.first.is_none() {
            self.first = Some(link);
            return 0;
        }
        let more = self.more.get_or_insert_default();
        let free = more.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            more.push(None);
            more.len() - 1
        });
        more[index] = Some(link);
        u32::try_from(index + 1).expect("links of a file are limited by its opens")
    }

    /// Counts one more open through the link of that number.
    pub fn enter_again(&mut self, number: u32) {
        self.get_mut(number).opens += 1;
    }

    /// Counts one open less; the link itself is returned, and forgotten, with its last open.
    pub fn leave(&mut self, number: u32) -> Option<Link> {
        let place = self.place(number);
        let link = place.as_mut().expect("an open leaves the link it entered");
        link.opens -= 1;
        if link.opens == 0 { place.take() } else { None }
    }

    /// The link of that number.
    pub fn get(&self, number: u32) -> &Link {
        match number {
            0 => self.first.as_ref(),
            n => self.more.as_ref().and_then(|more| more.get(n as usize - 1)?.as_ref()),
        }
        .expect("an open's link lives as long as the open")
    }

    /// The link of that number, for changing it.
    pub fn get_mut(&mut self, number: u32) -> &mut Link {
        self.place(number).as_mut().expect("an open's link lives as long as the open")
    }

    fn place(&mut self, number: u32) -> &mut Option<Link> {
        match (number, &mut self.more) {
            (0, _) => &mut self.first,
            (n, Some(more)) => &mut more[n as usize - 1],
            (_, None) => unreachable!("an open's link lives as long as the open"),
        }
    }

    /// The link of that path, if any open uses it.
    pub fn by_path(&self, path: &SharePath) -> Option<(u32, &Link)> {
        self.iter().find(|(_, link)| link.is(path))
    }

    /// All links in use.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Link)> {
        let more = self.more.iter().flat_map(|more| more.iter());
        let more = (1..).zip(more).filter_map(|(n, link)| Some((n, link.as_ref()?)));
        self.first.iter().map(|link| (0, link)).chain(more)
    }

    /// All links in use, to move them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Link)> {
        let more = self.more.iter_mut().flat_map(|more| more.iter_mut());
        let more = (1..).zip(more).filter_map(|(n, link)| Some((n, link.as_mut()?)));
        self.first.iter_mut().map(|link| (0, link)).chain(more)
    }
}
