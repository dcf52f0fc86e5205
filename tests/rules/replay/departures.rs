//! Where latchfs answers otherwise than the recording: every such step, by the rule behind it.
//!
//! The table is complete in both directions: a departure that is not listed fails the replay, and
//! so does a listed one that does not occur. People read the same list, with the reasons at
//! length, in `docs/semantics.md`; `document.rs` holds the two together.

use Out::{Is, Nothing, Same};

/// A rule of ours, and where the recording goes against it.
pub struct Rule {
    /// Its name, as in the document.
    pub id: &'static str,
    /// Why latchfs does not follow the recording.
    pub why: &'static str,
    /// Where the rule is from.
    pub source: &'static str,
    /// The steps of scenarios that depart, each with all that follows from it.
    pub steps: &'static [Departure],
    /// How many rows of `disposition_matrix.tsv` depart, by disposition.
    pub matrix_rows: &'static [(&'static str, usize)],
}

/// One step: scenario, number from 1, our status, our output.
pub struct Departure(pub &'static str, pub usize, pub &'static str, pub Out);

/// What the step gives back here.
pub enum Out {
    /// The same as in the recording.
    Same,
    /// Nothing, unlike the recording.
    Nothing,
    Is(&'static str),
}

const ACCESS_DENIED: &str = "STATUS_ACCESS_DENIED";
const CANNOT_DELETE: &str = "STATUS_CANNOT_DELETE";
const DELETE_PENDING: &str = "STATUS_DELETE_PENDING";
const FILE_CLOSED: &str = "STATUS_FILE_CLOSED";
const FILE_LOCK_CONFLICT: &str = "STATUS_FILE_LOCK_CONFLICT";
const OBJECT_NAME_NOT_FOUND: &str = "STATUS_OBJECT_NAME_NOT_FOUND";
const SHARING_VIOLATION: &str = "STATUS_SHARING_VIOLATION";
const SUCCESS: &str = "STATUS_SUCCESS";

/// An untouched file of ten bytes, as `query_standard` shows it.
const TEN_BYTES: &str = r#"{"delete_pending": false, "dir": false, "eof": 10, "nlink": 1}"#;

pub const RULES: &[Rule] = &[
    Rule {
        id: "overwrite-is-write",
        why: "Emptying a file writes to it, and superseding deletes it too: an open that does \
              so is checked with that access added, even if it asks for less. Access that is \
              implied is access, also against the read-only attribute.",
        source: "docs/semantics.md",
        steps: &[
            Departure("di03", 3, SHARING_VIOLATION, Nothing),
            Departure("di03", 4, SUCCESS, Is(TEN_BYTES)),
            Departure("di04", 3, SHARING_VIOLATION, Nothing),
            Departure("di04", 4, SUCCESS, Is(TEN_BYTES)),
            Departure("di06", 3, SHARING_VIOLATION, Nothing),
            Departure("di06", 4, SUCCESS, Is(TEN_BYTES)),
            Departure("di07", 3, SHARING_VIOLATION, Nothing),
            Departure("di07", 4, SUCCESS, Is(TEN_BYTES)),
            Departure("di12", 2, ACCESS_DENIED, Nothing),
            Departure("di12", 3, ACCESS_DENIED, Nothing),
            Departure("di12", 4, ACCESS_DENIED, Nothing),
            Departure("di12", 5, SUCCESS, Is(r#"{"action": "OPENED", "eof": 10}"#)),
            Departure("di12", 6, SUCCESS, Is(r#"{"action": "OPENED", "eof": 10}"#)),
            Departure("di12", 7, ACCESS_DENIED, Nothing),
            Departure("di44", 3, ACCESS_DENIED, Nothing),
        ],
        matrix_rows: &[("OVERWRITE", 224), ("OVERWRITE_IF", 224), ("SUPERSEDE", 289)],
    },
    Rule {
        id: "replaced-target-is-closed",
        why: "A rename does not replace a file that anybody has open. The server looks at its \
              own connection only (di23 and dp60 have it right), and loses the new file in \
              dp21.",
        source: "MS-FSCC FileRenameInformation; docs/semantics.md",
        steps: &[
            Departure("di22", 5, ACCESS_DENIED, Same),
            Departure("di22", 7, SUCCESS, Is(r#"["f", "g"]"#)),
            Departure("di24", 5, ACCESS_DENIED, Same),
            Departure("di24", 6, SUCCESS, Is(r#"["f", "g"]"#)),
            Departure("dp21", 9, ACCESS_DENIED, Same),
            Departure("dp21", 12, SUCCESS, Is(r#"["f"]"#)),
        ],
        matrix_rows: &[],
    },
    Rule {
        id: "replaced-target-is-writable",
        why: "Replacing a file deletes it, which its read-only attribute forbids.",
        source: "docs/semantics.md",
        steps: &[
            Departure("di26", 4, ACCESS_DENIED, Same),
            Departure("di26", 5, SUCCESS, Is(r#"["f", "g"]"#)),
        ],
        matrix_rows: &[],
    },
    Rule {
        id: "rename-opens-the-directory",
        why: "A rename opens the directory of the new name for a moment, for W, sharing R and W. \
              The server looks at its own connection only, and at D alone.",
        source: "smbtorture smb2.rename, which has Windows's answers; docs/semantics.md",
        steps: &[
            Departure("di32", 6, SHARING_VIOLATION, Same),
            Departure("di32", 8, OBJECT_NAME_NOT_FOUND, Nothing),
            Departure("di32", 9, FILE_CLOSED, Same),
            Departure("di32", 10, FILE_CLOSED, Same),
            Departure("di32", 11, SUCCESS, Is(r#"["d"]"#)),
            Departure("di33", 5, SHARING_VIOLATION, Same),
            Departure("di34", 5, SHARING_VIOLATION, Same),
        ],
        matrix_rows: &[],
    },
    Rule {
        id: "pending-is-not-renamed",
        why: "A delete that was acknowledged is not undone by accident: a pending file keeps \
              its name and its mark.",
        source: "docs/semantics.md",
        steps: &[
            Departure("dp19", 4, DELETE_PENDING, Same),
            Departure(
                "dp19",
                5,
                SUCCESS,
                Is(r#"{"delete_pending": true, "dir": false, "eof": 10, "nlink": 0}"#),
            ),
            Departure("dp19", 6, SUCCESS, Is(r#"["f"]"#)),
            Departure("dp19", 8, SUCCESS, Is("[]")),
            Departure("dp20", 5, DELETE_PENDING, Same),
            Departure("dp20", 6, SUCCESS, Is(r#"["f"]"#)),
            Departure("dp20", 8, SUCCESS, Is(r#"["f"]"#)),
            Departure("dp20", 10, SUCCESS, Is("[]")),
        ],
        matrix_rows: &[],
    },
    Rule {
        id: "pending-directory-takes-nothing",
        why: "A pending directory takes no new entry, as the server answers when told to check \
              the parent (dp58). So it is empty at its last close, and goes.",
        source: "docs/semantics.md",
        steps: &[
            Departure("dp32", 5, DELETE_PENDING, Nothing),
            Departure("dp32", 6, DELETE_PENDING, Nothing),
            Departure("dp32", 8, DELETE_PENDING, Same),
            Departure("dp32", 9, SUCCESS, Same),
            Departure("dp32", 10, SUCCESS, Is("[]")),
            Departure("dr05", 4, DELETE_PENDING, Nothing),
            Departure("dr05", 5, FILE_CLOSED, Same),
            Departure("dr05", 6, SUCCESS, Same),
            Departure("dr05", 7, SUCCESS, Is("[]")),
            Departure("dr05", 8, OBJECT_NAME_NOT_FOUND, Nothing),
        ],
        matrix_rows: &[],
    },
    Rule {
        id: "kept-directory-closes-well",
        why: "A directory with delete-on-close that was filled meanwhile stays; closing the \
              handle succeeds all the same, since the handle is closed.",
        source: "MS-FSA 2.1.5.5, phase 1; docs/semantics.md",
        steps: &[Departure("dp33", 5, SUCCESS, Same), Departure("dp59", 5, SUCCESS, Same)],
        matrix_rows: &[],
    },
    Rule {
        id: "directory-with-opens-stays",
        why: "A directory is not renamed while something below it is open, as the server \
              answers with strict renames (dr08).",
        source: "docs/semantics.md",
        steps: &[
            Departure("dr06", 5, ACCESS_DENIED, Same),
            Departure("dr06", 6, SUCCESS, Is(r#"["d"]"#)),
            Departure("dp52", 8, ACCESS_DENIED, Same),
            Departure("dp52", 9, SUCCESS, Is(r#"["d"]"#)),
            Departure("dp52", 10, SUCCESS, Same),
            Departure("dp52", 12, "-", Is(r#"["d"]"#)),
        ],
        matrix_rows: &[],
    },
    Rule {
        id: "read-only-is-not-deleted",
        why: "The server ran with `delete readonly` on. latchfs has no such setting; dp23 is \
              the default.",
        source: "MS-FSA 2.1.5.15.3; docs/semantics.md",
        steps: &[
            Departure("dp28", 3, CANNOT_DELETE, Same),
            Departure("dp28", 5, SUCCESS, Is(r#"["f"]"#)),
        ],
        matrix_rows: &[],
    },
    Rule {
        id: "names-as-created",
        why: "A new file is listed as it was created. The old spelling came from a cache in \
              the server, and is gone with the cache off.",
        source: "docs/semantics.md",
        steps: &[Departure("dp57", 10, SUCCESS, Is(r#"["FOO"]"#))],
        matrix_rows: &[],
    },
    Rule {
        id: "append-only-appends",
        why: "A handle that may only append writes at the end of the file, wherever it asks \
              to.",
        source: "docs/semantics.md",
        steps: &[
            Departure("di39", 5, SUCCESS, Is(r#"{"action": "OPENED", "eof": 18}"#)),
            Departure("di39", 6, SUCCESS, Is(r#""0123456789tail""#)),
        ],
        matrix_rows: &[],
    },
    Rule {
        id: "lock-needs-data-access",
        why: "A lock is about bytes, so the handle needs access to them: R or W. The server \
              answers by its `posix locking` setting, and looks for conflicts first (br46).",
        source: "MS-FSA 2.1.5.8; docs/semantics.md",
        steps: &[
            Departure("br22", 3, ACCESS_DENIED, Same),
            Departure("br22", 4, ACCESS_DENIED, Same),
            Departure("br22", 6, ACCESS_DENIED, Same),
            Departure("br22", 7, ACCESS_DENIED, Same),
            Departure("br46", 6, ACCESS_DENIED, Same),
            Departure("br47", 3, ACCESS_DENIED, Same),
            Departure("br47", 4, ACCESS_DENIED, Same),
            Departure("br47", 6, ACCESS_DENIED, Same),
            Departure("br47", 7, ACCESS_DENIED, Same),
        ],
        matrix_rows: &[],
    },
    Rule {
        id: "either-access-locks",
        why: "R or W is enough for a lock of either kind. The server maps it to a POSIX lock, \
              and such a shared lock wants a descriptor that can read.",
        source: "docs/semantics.md",
        steps: &[Departure("br23", 6, SUCCESS, Same), Departure("br23", 7, SUCCESS, Same)],
        matrix_rows: &[],
    },
    Rule {
        id: "locks-bind-everyone",
        why: "The server ran with `strict locking` off, which makes locks advisory. SMB locks \
              are mandatory; br02 is the default.",
        source: "MS-FSA 2.1.4.10; docs/semantics.md",
        steps: &[
            Departure("br49", 5, FILE_LOCK_CONFLICT, Nothing),
            Departure("br49", 6, FILE_LOCK_CONFLICT, Same),
        ],
        matrix_rows: &[],
    },
];
