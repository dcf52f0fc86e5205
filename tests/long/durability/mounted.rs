//! Writes on the mount: bytes, files made, renamed and removed.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::common::served::Served;
use crate::durability::slots::{FILE_BYTES, Slots};

/// A program that writes, and knows which calls returned.
pub struct Writer {
    name: String,
    next: u64,
    slots: Slots,
    /// Names and the number that each file holds.
    there: Vec<(String, u64)>,
    gone: Vec<String>,
    /// A file that was being renamed or removed at the crash: names and number.
    moving: Option<([String; 2], u64)>,
    pub acknowledged: u64,
}

impl Writer {
    pub fn new(served: &Served, number: usize) -> Self {
        let name = format!("mount-{number}");
        fs::write(served.mount().join(&name), vec![0; FILE_BYTES]).unwrap();
        Self {
            name,
            next: 1,
            slots: Slots::default(),
            there: Vec::new(),
            gone: Vec::new(),
            moving: None,
            acknowledged: 0,
        }
    }

    /// Writes until the mount is gone.
    pub fn work(&mut self, mount: &Path) {
        if let Some(number) = self.slots.unsettled()
            && !self.write_slot(mount, number)
        {
            return;
        }
        while self.step(mount) {
            self.acknowledged += 1;
        }
    }

    fn step(&mut self, mount: &Path) -> bool {
        let number = self.next;
        self.next += 1;
        match number % 5 {
            0 => self.make(mount, number),
            1 if !self.there.is_empty() => self.rename(mount, number),
            2 if self.there.len() > 3 => self.remove(mount),
            _ => self.write_slot(mount, number),
        }
    }

    fn write_slot(&mut self, mount: &Path, number: u64) -> bool {
        let path = mount.join(&self.name);
        self.slots.write(number, |at, bytes| {
            let file = OpenOptions::new().write(true).open(path);
            file.and_then(|file| file.write_all_at(bytes, at as u64)).is_ok()
        })
    }

    fn make(&mut self, mount: &Path, number: u64) -> bool {
        let name = format!("{}-{number}", self.name);
        let done = fs::write(mount.join(&name), number.to_string()).is_ok();
        if done {
            self.there.push((name, number));
        }
        done
    }

    fn rename(&mut self, mount: &Path, number: u64) -> bool {
        let (from, held) = self.there.remove(0);
        let to = format!("{}-moved-{number}", self.name);
        let done = fs::rename(mount.join(&from), mount.join(&to)).is_ok();
        if done {
            self.gone.push(from);
            self.there.push((to, held));
        } else {
            self.moving = Some(([from, to], held));
        }
        done
    }

    fn remove(&mut self, mount: &Path) -> bool {
        let (name, held) = self.there.remove(0);
        let done = fs::remove_file(mount.join(&name)).is_ok();
        if done {
            self.gone.push(name);
        } else {
            self.moving = Some(([name.clone(), name], held));
        }
        done
    }

    /// After a crash and a start.
    pub fn check(&mut self, served: &Served) {
        let at = |name: &str| served.mount().join(name);
        self.slots.check(&self.name, &fs::read(at(&self.name)).unwrap());
        for (name, number) in &self.there {
            assert_eq!(fs::read_to_string(at(name)).unwrap(), number.to_string(), "{name}");
        }
        for name in self.gone.drain(..) {
            assert!(!at(&name).exists(), "{name} is back");
        }
        if let Some((names, number)) = self.moving.take() {
            let there: Vec<_> = names.iter().filter(|name| at(name).exists()).collect();
            if names[0] != names[1] {
                assert_eq!(there.len(), 1, "{names:?}: one of two names");
            }
            for name in there {
                assert_eq!(fs::read_to_string(at(name)).unwrap(), number.to_string(), "{name}");
            }
        }
    }
}
