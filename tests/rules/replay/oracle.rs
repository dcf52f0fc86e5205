//! Reads the recordings and brings them on stage. Decides nothing about what is right.

use std::fs;
use std::path::PathBuf;

use super::player::{FreshShare, Group, Op, PlayAnswer, Player, read_script};

/// The text of a recording, or of another file of the repository.
pub fn text(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The scenarios or traces of a recording.
pub fn groups(name: &str) -> Vec<Group> {
    read_script(&text(&format!("tests/oracle/{name}.jsonl")))
}

/// The rows of a table of `columns` columns. Its header must be the one given: a column that moved
/// would be compared with something else. A short row is filled with empty cells.
pub fn rows<const COLUMNS: usize>(name: &str, header: [&str; COLUMNS]) -> Vec<[String; COLUMNS]> {
    let text = text(&format!("tests/oracle/{name}.tsv"));
    let mut lines = text.lines();
    let names: Vec<_> = lines.next().expect("a table has a header").split('\t').collect();
    assert_eq!(names, header, "the columns of {name}.tsv");
    lines
        .map(|line| {
            let mut cells = line.split('\t').map(str::to_owned);
            let row = std::array::from_fn(|_| cells.next().unwrap_or_default());
            assert_eq!(cells.next(), None, "{name}.tsv has a longer row: {line}");
            row
        })
        .collect()
}

/// Plays a group on an empty share and gives what each step answered. Afterwards nothing is left
/// open, or the next group would meet it.
pub fn play(fresh: &FreshShare, group: &Group) -> Vec<PlayAnswer> {
    let mut player = Player::new(fresh.share());
    player.start(group).expect("the scene can be set");
    let answers = group.steps.iter().map(|step| player.step(&step.op)).collect();
    player.finish().expect("what is open can be closed");
    assert_eq!(fresh.share().files_in_use(), 0, "{}: something is left in use", group.id);
    fresh.clear();
    answers
}

/// One of two opens of the same file.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    pub conn: &'a str,
    /// As the tables have it: `-` is the empty set.
    pub access: &'a str,
    pub share: &'a str,
    pub disp: &'a str,
}

/// A share with one file or directory `f`, of which pairs of opens are tried.
pub struct Stage {
    fresh: FreshShare,
    opts: &'static str,
}

impl Stage {
    /// With an empty file.
    pub fn with_file() -> Self {
        let mkfile = Op::Mkfile { name: "f".into(), data: String::new(), attrs: None };
        Self::with(&mkfile, "")
    }

    /// With a directory, opened as one.
    pub fn with_directory() -> Self {
        Self::with(&Op::Mkdir { name: "f".into(), attrs: None }, "DIRECTORY_FILE")
    }

    fn with(make: &Op, opts: &'static str) -> Self {
        let fresh = FreshShare::new();
        assert_eq!(Player::new(fresh.share()).step(make).status, "STATUS_SUCCESS");
        Self { fresh, opts }
    }

    /// Opens twice, and gives the second answer. The first is granted: nobody is there.
    pub fn second(&self, first: Opening<'_>, second: Opening<'_>) -> &'static str {
        let mut player = Player::new(self.fresh.share());
        let granted = player.step(&self.open("a", first));
        assert_eq!(granted.status, "STATUS_SUCCESS", "alone: {first:?}");
        let answer = player.step(&self.open("b", second));
        player.finish().expect("what is open can be closed");
        assert_eq!(self.fresh.share().files_in_use(), 0, "all is closed");
        answer.status
    }

    fn open(&self, h: &str, opening: Opening<'_>) -> Op {
        Op::Open {
            conn: opening.conn.into(),
            h: h.into(),
            name: "f".into(),
            access: opening.access.into(),
            share: opening.share.into(),
            disp: opening.disp.into(),
            opts: self.opts.into(),
            attrs: None,
        }
    }
}
