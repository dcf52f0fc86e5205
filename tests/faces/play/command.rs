//! What `latchfs play` prints, how it compares, and how it fails.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use serde_json::json;
use tempfile::TempDir;

use super::{Run, assert_left_empty, play, program};

const SCENE: &str = r#"
{"op": "mkfile", "name": "f", "data": "hello"}
{"op": "open", "conn": "A", "h": "a", "name": "f", "access": "RW", "share": ""}
{"op": "open", "conn": "B", "h": "b", "name": "f", "access": "R", "share": "RWD"}
"#;

/// Two scenarios; the second expects what does not happen at its second step of three.
const WRONG: &str = concat!(
    r#"{"id": "s1", "steps": [{"op": "mkdir", "name": "d", "status": "STATUS_SUCCESS"}]}"#,
    "\n",
    r#"{"id": "s2", "steps": [{"op": "mkfile", "name": "f"}, "#,
    r#"{"op": "mkfile", "name": "f", "status": "STATUS_SUCCESS"}, {"op": "list", "conn": "A"}]}"#,
    "\n",
    r#"{"id": "s3", "steps": [{"op": "server_ls"}]}"#,
);

#[test]
fn each_answer_is_a_line_of_json_in_the_order_of_the_steps() {
    let run = play(&["-"], SCENE);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stderr, "");
    let answers = run.answers();
    assert_eq!(answers.len(), 3);
    assert_eq!(json!(answers[0]), json!({"status": "STATUS_SUCCESS"}));
    let opened = json!({"action": "OPENED", "eof": 5});
    assert_eq!(json!(answers[1]), json!({"status": "STATUS_SUCCESS", "out": opened}));
    assert_eq!(answers[2]["status"], "STATUS_SHARING_VIOLATION");
    let why = answers[2]["why"].as_str().unwrap();
    assert!(
        why.contains("connection A") && why.contains(", access rw, share mode none, handle "),
        "{why}"
    );
    assert!(run.lines()[1].starts_with(r#"{"status":"STATUS_SUCCESS","out":{"#), "{run:?}");
}

#[test]
fn answers_name_their_scenario_and_each_scenario_starts_on_an_empty_share() {
    let run = play(&["-"], WRONG);
    let ids: Vec<_> = run.answers().iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, ["s1", "s2", "s2", "s2", "s3"]);
    assert_eq!(run.answers()[4]["out"], json!([]));
    assert_eq!(run.statuses()[4], "-");
}

#[test]
fn the_recorded_traces_pass_the_check() {
    for (trace, lines) in [("sharemode_trace", 3600), ("lock_trace", 2499)] {
        let run = play(&["--check", &format!("tests/oracle/{trace}.jsonl")], "");
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{trace}");
        assert_eq!(run.lines().len(), lines);
    }
}

#[test]
fn a_check_ends_at_the_first_difference_and_names_it() {
    let run = play(&["--check", "-"], WRONG);
    assert_eq!(run.code, Some(1));
    assert_eq!(
        run.stderr,
        "latchfs: standard input: line 2: s2, step 2: expected STATUS_SUCCESS, got \
         STATUS_OBJECT_NAME_COLLISION (the name is taken)\n"
    );
    assert_eq!(
        run.statuses(),
        ["STATUS_SUCCESS", "STATUS_SUCCESS", "STATUS_OBJECT_NAME_COLLISION"]
    );
}

#[test]
fn a_difference_in_a_file_a_trace_or_a_plain_step_is_named_by_its_line() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("s.jsonl");
    for (script, place) in [
        (
            "# one\n\n{\"op\":\"close\",\"h\":\"a\",\"status\":\"X\"}\n",
            "line 3: step 1: expected X",
        ),
        ("{\"seq\":7,\"op\":\"close\",\"h\":\"a\",\"status\":\"X\"}", "line 1: seq 7, step 1: "),
    ] {
        std::fs::write(&file, script).unwrap();
        let file = file.to_str().unwrap();
        let run = play(&["--check", file], "");
        assert_eq!(run.code, Some(1));
        assert!(run.stderr.starts_with(&format!("latchfs: {file}: {place}")), "{run:?}");
    }
}

#[test]
fn what_a_step_gives_back_is_compared_on_request_only() {
    let script = r#"{"op": "list", "conn": "A", "status": "STATUS_SUCCESS", "out": ["f"]}"#;
    assert_eq!(play(&["--check", "-"], script).code, Some(0));
    let run = play(&["--check", "--check-out", "-"], script);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.ends_with("step 1: expected the output [\"f\"], got []\n"), "{run:?}");
}

#[test]
fn a_check_of_a_script_that_expects_nothing_is_refused() {
    for script in ["", SCENE] {
        let run = play(&["--check", "-"], script);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
        assert!(run.stderr.contains("nothing to check"), "{run:?}");
    }
}

#[test]
fn a_broken_script_is_not_played_and_its_line_is_named_in_a_line() {
    for (script, part) in [
        (
            "{\"op\":\"mkdir\",\"name\":\"d\"}\n{\"op\":\"opne\"}\n",
            "line 2: unknown variant `opne`",
        ),
        ("\nnonsense\n", "line 2: not a JSON object"),
        ("{\"op\":\"close\"}", "line 1: missing field `h`"),
        ("{\"op\":\"close\",\"h\":\"a\",\"delete\":true}", "line 1: unknown field `delete`"),
        ("{\"id\":\"s\",\"steps\":[{\"op\":\"close\"}]}", "line 1: step 1: missing field `h`"),
    ] {
        let run = play(&["-"], script);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
        let start = format!("latchfs: standard input: {part}");
        assert!(run.stderr.starts_with(&start), "{run:?}");
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    }
}

#[test]
fn a_script_that_is_not_there_is_named() {
    let run = play(&["no-such-file.jsonl"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.starts_with("latchfs: reading no-such-file.jsonl: "), "{run:?}");
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
}

#[test]
fn what_a_step_got_wrong_is_said_and_the_script_goes_on() {
    let script = r#"
{"op": "read", "h": "b", "off": 0, "len": 1}
{"op": "open", "conn": "A", "h": "a", "name": "f", "access": "RQ", "share": ""}
{"op": "open", "conn": "A", "h": "a", "name": "f", "access": "R", "share": "RX"}
{"op": "open", "conn": "A", "h": "a", "name": "f", "access": "R", "share": "", "disp": "open"}
{"op": "open", "conn": "A", "h": "a", "name": "f", "access": "R", "share": "", "opts": "DIR"}
{"op": "open", "conn": "A", "h": "a", "name": "../f", "access": "R", "share": ""}
{"op": "await", "tag": "t"}
{"op": "cancel", "tag": "t"}
{"op": "mkfile", "name": "f", "attrs": "SECRET"}
{"op": "mkfile", "name": "f"}
{"op": "open", "conn": "A", "h": "a", "name": "f", "access": "RW", "share": ""}
{"op": "lock", "h": "a", "off": 0}
{"op": "unlock", "h": "a"}
{"op": "lock", "h": "a", "ranges": [[0, 1]]}
{"op": "write", "h": "a", "off": 0, "len": 18446744073709551615}
{"op": "write", "h": "a", "off": 18446744073709551615, "data": "xx"}
"#;
    let expected = [
        ("STATUS_FILE_CLOSED", "no handle b is open"),
        ("STATUS_INVALID_PARAMETER", "an access is made of"),
        ("STATUS_INVALID_PARAMETER", "a share mode is made of"),
        ("STATUS_INVALID_PARAMETER", "no such disposition"),
        ("STATUS_INVALID_PARAMETER", "no such option"),
        ("STATUS_INVALID_PARAMETER", "not a path within the share"),
        ("STATUS_INVALID_PARAMETER", "no lock request of that tag"),
        ("STATUS_INVALID_PARAMETER", "no lock request of that tag"),
        ("STATUS_INVALID_PARAMETER", "no such attribute"),
        ("STATUS_SUCCESS", ""),
        ("STATUS_SUCCESS", ""),
        ("STATUS_INVALID_PARAMETER", "give either ranges"),
        ("STATUS_INVALID_PARAMETER", "give either ranges"),
        ("STATUS_INVALID_PARAMETER", "a lock is EX or SH"),
        ("STATUS_INVALID_PARAMETER", "more than 4 MiB"),
        ("STATUS_INVALID_PARAMETER", "past the largest offset"),
    ];
    let run = play(&["-"], script);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.answers().len(), expected.len());
    for (answer, (status, why)) in run.answers().iter().zip(expected) {
        assert_eq!(answer["status"], status, "{answer:?}");
        let said = answer.get("why").map_or("", |why| why.as_str().unwrap());
        assert!(said.contains(why) && said.is_empty() == why.is_empty(), "{answer:?}");
    }
}

/// Plays `script` for a reader that takes `lines` lines and goes away, as `head` does.
fn play_to_a_reader_of(lines: usize, args: &[&str], script: &str) -> Run {
    let temporary = TempDir::new().unwrap();
    let mut child = program(temporary.path())
        .arg("play")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let reader = BufReader::new(child.stdout.take().unwrap());
    // Who wants no line is gone before the script is there.
    let reader = (lines > 0).then_some(reader);
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let mut stdout = String::new();
    if let Some(mut reader) = reader {
        for _ in 0..lines {
            reader.read_line(&mut stdout).unwrap();
        }
    }
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let code = child.wait().unwrap().code();
    assert_left_empty(temporary.path());
    Run { code, stdout, stderr }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let run = play_to_a_reader_of(1, &["tests/oracle/sharemode_trace.jsonl"], "");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(run.lines().len(), 1);
    let run = play_to_a_reader_of(0, &["-"], SCENE);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_check_whose_output_nobody_reads_is_made_to_its_end() {
    let run = play_to_a_reader_of(0, &["--check", "-"], WRONG);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("s2, step 2"), "{run:?}");
}

#[test]
fn the_help_fits_a_screen_and_its_example_runs() {
    let help = play(&["-h"], "");
    assert_eq!(help.code, Some(0));
    assert!((20..=40).contains(&help.lines().len()), "{}", help.stdout);
    assert!(help.stdout.contains("docs/play.md") && help.stdout.contains("Exit status"));
    let example: Vec<_> =
        help.lines().into_iter().filter(|line| line.trim_start().starts_with('{')).collect();
    let run = play(&["-"], &example.join("\n"));
    assert_eq!(
        run.statuses(),
        ["STATUS_SUCCESS", "STATUS_SUCCESS", "STATUS_SHARING_VIOLATION"],
        "{run:?}"
    );
}
