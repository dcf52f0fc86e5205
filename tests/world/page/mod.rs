//! The page at the admin address, in a headless Chromium.
//!
//! Each test starts a server and plays a case of `cases.py` on its page. What the calls behind the
//! buttons do is tested in `tests/faces`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use latchfs::api::{ApiClient, HoldOptions};
use latchfs::file::rules::ShareMode;
use latchfs::file::rules::create::Disposition;

use crate::common::need;
use crate::common::served::{LATCHFS, Served};

/// The most bytes of a picture of the page.
const PICTURE_MAX: u64 = 100_000;

/// The Python that has Playwright.
fn python() -> PathBuf {
    need::cache("page/bin/python")
}

/// True if there is a browser, and Playwright.
#[track_caller]
fn can_browse() -> bool {
    need::installed(&[&python()]) && need::client("chromium")
}

/// A case that runs.
struct Case {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Case {
    fn start(name: &str, server: &Served) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/world/page");
        let mut child = Command::new(python())
            // No compiled files among the sources.
            .arg("-B")
            .arg(folder.join("drive.py"))
            .arg(name)
            .arg(server.ready_file())
            .arg(LATCHFS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python runs");
        let to = child.stdin.take().expect("its input");
        let from = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, to, from }
    }

    fn tell(&mut self, word: &str) {
        writeln!(self.to, "{word}").expect("the case reads");
    }

    /// The next line that the case prints; empty at its end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("the case prints text");
        line.trim().to_owned()
    }

    /// Waits for the end, and prints what was measured.
    #[track_caller]
    fn end(mut self) {
        let mut last = String::new();
        loop {
            let line = self.line();
            if line.is_empty() {
                break;
            }
            println!("{line}");
            last = line;
        }
        let status = self.child.wait().expect("it ended");
        assert!(status.success() && last == "met", "{status}");
    }
}

#[track_caller]
fn play(name: &str) {
    let server = Served::start(&["--no-mount"]);
    Case::start(name, &server).end();
}

#[test]
fn the_page_shows_a_refusal_and_who_was_in_the_way_as_it_happens() {
    if can_browse() {
        play("conflict");
    }
}

#[test]
fn the_buttons_of_the_clock_turn_it_freeze_it_and_let_it_run() {
    if can_browse() {
        play("clock");
    }
}

#[test]
fn the_page_closes_handles_draws_locks_and_undeletes_files() {
    if can_browse() {
        play("files");
    }
}

#[test]
fn the_page_counts_leases_and_messages_down_by_the_servers_clock_and_breaks_leases() {
    if can_browse() {
        play("leases");
    }
}

#[test]
fn the_page_adds_and_removes_gates_and_lets_requests_go() {
    if can_browse() {
        play("gates");
    }
}

#[test]
fn who_waits_at_a_gate_against_whom_is_in_view_and_idle_clients_are_not() {
    if can_browse() && need::client("curl") {
        play("rivals");
    }
}

#[test]
fn a_refusal_leads_to_the_client_in_the_way() {
    if can_browse() {
        play("holder");
    }
}

#[test]
fn the_page_shows_the_connection_string_and_what_is_stored() {
    if can_browse() {
        play("connect");
    }
}

#[test]
fn the_page_adds_and_removes_faults() {
    if can_browse() {
        play("faults");
    }
}

#[test]
fn the_page_saves_restores_and_resets_only_when_that_is_confirmed() {
    if can_browse() {
        play("states");
    }
}

#[test]
fn the_page_stays_short_while_events_pour_in_and_can_be_paused() {
    if can_browse() {
        play("storm");
    }
}

#[test]
fn names_and_headers_of_clients_are_text_on_the_page() {
    if can_browse() {
        play("injection");
    }
}

#[test]
fn the_page_draws_what_the_report_found_in_lanes() {
    if can_browse() {
        play("report");
    }
}

#[test]
fn the_page_draws_the_order_that_fails_and_what_a_token_replays() {
    if can_browse() {
        play("explore");
    }
}

#[test]
fn the_page_works_by_keys_alone_and_fits_a_narrow_window() {
    if can_browse() {
        play("keyboard");
    }
}

#[test]
fn the_modules_of_the_page_read_streams_keep_bounds_and_order_requests() {
    if can_browse() {
        play("parts");
    }
}

#[test]
fn the_page_draws_ten_thousand_handles() {
    if !can_browse() {
        return;
    }
    let server = Served::start(&["--no-mount"]);
    let client = ApiClient::new(Path::new(server.told("control")));
    for n in 0..10_000 {
        let one = n == 4_500;
        let path = if one { "/only-one.txt".into() } else { format!("/many{}.txt", n % 20) };
        let hold = HoldOptions {
            share_mode: ShareMode::RWD,
            disposition: Disposition::OpenIf,
            for_ms: Some(3_600_000),
            ..HoldOptions::new("share", path)
        };
        client.ask(&hold).expect("a hold");
    }
    Case::start("handles", &server).end();
}

#[test]
fn the_page_comes_back_to_a_server_that_was_restarted() {
    if !can_browse() {
        return;
    }
    let mut server = Served::start(&["--no-mount"]);
    let admin = server.told("admin").trim_start_matches("http://").to_owned();
    let mut case = Case::start("restart", &server);
    assert_eq!(case.line(), "live");
    server.crash();
    case.tell("down");
    assert_eq!(case.line(), "noticed");
    server.restart(&["--no-mount", "--admin", &admin]);
    case.tell("up");
    case.end();
}

/// With `LATCHFS_BLESS` those of `docs/reproduce.md` are replaced.
#[test]
#[ignore = "takes pictures"]
fn the_pictures_of_the_page_can_be_taken_anew() {
    if !can_browse() || !need::fuse() || !need::client("sqlite3") {
        return;
    }
    let (server, root) = (Served::start(&[]), Path::new(env!("CARGO_MANIFEST_DIR")));
    let aside = tempfile::tempdir().expect("a folder");
    let bless = std::env::var_os("LATCHFS_BLESS").is_some();
    let folder = if bless { root.join("docs") } else { aside.path().to_owned() };
    let mut take = Command::new(python());
    take.arg("-B").arg(root.join("tests/world/page/pictures.py"));
    take.arg(server.ready_file()).arg(LATCHFS).arg(&folder);
    assert!(take.status().expect("Python runs").success());
    for name in ["page-light.png", "page-dark.png"] {
        let size = std::fs::metadata(folder.join(name)).expect("a picture").len();
        assert!((10_000..PICTURE_MAX).contains(&size), "{name} has {size} bytes");
    }
}

#[test]
fn a_list_that_the_page_has_not_fetched_yet_is_not_said_to_be_empty() {
    if can_browse() {
        play("unknown");
    }
}
