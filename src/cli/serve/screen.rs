//! The start screen: mounts, endpoints, and a first conflict to paste.

use std::path::Path;
use std::{env, fs};

use crate::api::MountRow;
use crate::cli::out::Paint;
use crate::http::auth::Credential;
use crate::rules::service::ServiceKind;
use crate::server::Server;

/// The content of the screen.
pub struct Screen<'a> {
    pub mounts: &'a [MountRow],
    /// A share, for a first try without a mount.
    pub share: &'a str,
    pub control: &'a Path,
    /// Where the data is.
    pub data: &'a str,
    /// The URL of each service that listens.
    pub endpoints: &'a [(ServiceKind, String)],
    /// A command that connects to a share over SMB.
    pub smb: Option<String>,
    /// The accounts, the first one's connection string shown.
    pub accounts: &'a [String],
    /// The connection string, or how to get it.
    pub connection_string: String,
    /// The file that clients must trust.
    pub ca_file: Option<&'a Path>,
    /// The address of the page.
    pub admin: Option<String>,
    /// Whether programs can get tokens.
    pub gives_tokens: bool,
    /// How a command is run in this container, from outside; where there is a shell, nothing.
    pub outside: Option<String>,
    /// Notes for the user.
    pub notes: &'a [String],
    /// How it ends.
    pub end: &'a str,
}

impl Screen<'_> {
    /// The text of it.
    pub fn text(&self, paint: Paint) -> String {
        let mut lines = vec![paint.bold(&format!("latchfs {}", env!("CARGO_PKG_VERSION")))];
        lines.push(String::new());
        for MountRow { account, share, path } in self.mounts {
            let path = path.display().to_string();
            let share = match self.accounts {
                [_, _, ..] => format!("{account}/{share}"),
                _ => share.clone(),
            };
            lines.push(row(paint, "Mount", &format!("{} (share '{share}')", paint.place(&path))));
        }
        lines.push(row(paint, "Data", self.data));
        for (kind, endpoint) in self.endpoints {
            lines.push(row(paint, kind.title(), &paint.place(endpoint)));
        }
        lines.extend(self.smb.iter().map(|command| row(paint, "SMB", command)));
        if !self.endpoints.is_empty() {
            if let [_, _, ..] = self.accounts {
                lines.push(row(paint, "Accounts", &self.accounts.join(", ")));
            }
            lines.push(row(paint, "Connection string", ""));
            lines.push(format!("    {}", self.connection_string));
        }
        if let Some(admin) = &self.admin {
            lines.push(row(paint, "Page", &paint.place(admin)));
        }
        if self.gives_tokens {
            let how = "`latchfs token --env` prints what DefaultAzureCredential needs";
            lines.push(row(paint, "Tokens", how));
        }
        lines.extend(self.notes.iter().map(|note| row(paint, "Note", &paint.poor(note))));
        lines.push(String::new());
        let first_try = self.first_try();
        if !first_try.is_empty() {
            lines.push("  Try a conflict, in another terminal:".to_owned());
            let said = first_try.iter().filter(|(_, says)| !says.is_empty());
            let width = said.map(|(line, _)| line.chars().count()).max().unwrap_or_default();
            lines.extend(first_try.iter().map(|(line, says)| match *says {
                "" => format!("    {line}"),
                says => format!("    {line:width$}  {}", paint.dim(&format!("# {says}"))),
            }));
            lines.push(String::new());
        }
        lines.push(format!("  {}", self.end));
        lines.join("\n") + "\n"
    }

    fn listens_for_files(&self) -> bool {
        self.endpoints.iter().any(|(kind, _)| *kind == ServiceKind::File)
    }

    /// Commands, and what they will say.
    fn first_try(&self) -> Vec<(String, &'static str)> {
        let latchfs = program();
        let curl =
            self.ca_file.map_or("curl".to_owned(), |ca| format!("curl --cacert {}", quoted(ca)));
        let mut lines = Vec::new();
        if let Some(outside) = &self.outside {
            if self.listens_for_files() {
                let (latchfs, file) =
                    (format!("{outside} latchfs"), format!("{}:/a.txt", self.share));
                let hold = "--disposition open-if --share none --for 60s & sleep 1";
                lines.push((format!("{latchfs} hold {file} {hold}"), ""));
                lines.push((format!("{curl} \"$({latchfs} sas {file})\""), "SharingViolation"));
                lines.push((format!("{latchfs} why {file}"), "who holds it"));
            }
        } else if let Some(MountRow { path: mount, .. }) = self.mounts.first() {
            let here = env::current_dir().unwrap_or_default();
            let file = match mount.strip_prefix(&here) {
                Ok(below) => {
                    lines.push((format!("cd {}", quoted(&here)), ""));
                    quoted(&below.join("a.txt"))
                }
                Err(_) => quoted(&mount.join("a.txt")),
            };
            lines.push((format!("echo hello > {file}"), ""));
            // A moment, so that a pasted `cat` does not come before the hold.
            lines.push((format!("{latchfs} hold {file} --share none --for 60s & sleep 1"), ""));
            lines.push((format!("cat {file}"), "Device or resource busy"));
            if self.listens_for_files() {
                lines.push((format!("{curl} \"$({latchfs} sas {file})\""), "SharingViolation"));
            }
            lines.push((format!("{latchfs} why {file}"), "who holds it"));
        } else if self.listens_for_files() {
            // No mount leads to the server.
            let file = format!("{}:/a.txt", self.share);
            lines.push((format!("export LATCHFS_CONTROL={}", quoted(self.control)), ""));
            let hold = "--disposition open-if --share none --for 60s & sleep 1";
            lines.push((format!("{latchfs} hold {file} {hold}"), ""));
            lines.push((format!("{curl} \"$({latchfs} sas {file})\""), "SharingViolation"));
            lines.push((format!("{latchfs} why {file}"), "who holds it"));
        }
        lines
    }
}

/// The connection string as the screen shows it.
pub fn shown_string(server: &Server, terminal: bool) -> String {
    if shows_key(server, terminal) {
        return server.connection_string();
    }
    "`latchfs connection-string` prints it; it holds a private key".to_owned()
}

/// The command that connects to a share over SMB, with the key where the screen may show it;
/// without, the command asks for it.
pub fn shown_smb(server: &Server, terminal: bool) -> Option<String> {
    let (host, port) = server.smb()?.strip_prefix("smb://")?.rsplit_once(':')?;
    let share = server.shares().first().map_or("SHARE", String::as_str);
    let account = server.credentials().first()?;
    let user = if shows_key(server, terminal) {
        format!("'{}%{}'", account.name(), account.key().text())
    } else {
        account.name().to_owned()
    };
    Some(format!("smbclient //{host}/{share} -p {port} -U {user}"))
}

/// A private key is shown only to a person at a terminal, since everything else may be a log that
/// others read.
fn shows_key(server: &Server, terminal: bool) -> bool {
    terminal || server.credentials().first().is_some_and(Credential::has_development_key)
}

/// The address of the page as the screen shows it.
pub fn shown_page(server: &Server, terminal: bool) -> Option<String> {
    Some(page_with_token(server.admin()?, server.admin_token(), terminal))
}

/// The address that a browser opens, with its token only for a person at a terminal.
pub fn page_with_token(page: &str, token: Option<&str>, terminal: bool) -> String {
    match token {
        None => format!("{page}/"),
        Some(token) if terminal => format!("{page}/?token={token}"),
        Some(_) => format!("{page}/?token=TOKEN (`latchfs status --json` prints its token)"),
    }
}

fn row(paint: Paint, label: &str, value: &str) -> String {
    // Padded before it is painted: colours have no width.
    format!("  {} {value}", paint.bold(&format!("{label:9}"))).trim_end().to_owned()
}

/// How a command is run in the container that this process is in, where that has no shell.
pub fn outside() -> Option<String> {
    if Path::new("/bin/sh").exists() {
        return None;
    }
    // podman says what it is in the variable `container`.
    let engine = env::var("container").is_ok_and(|name| name == "podman" || name == "oci");
    let engine = if engine { "podman" } else { "docker" };
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(format!("{engine} exec {}", name.trim_end()))
}

/// How this program is called in another terminal: by its name, if that leads to it.
fn program() -> String {
    let name = env!("CARGO_PKG_NAME");
    let Ok(own) = env::current_exe() else { return name.to_owned() };
    let path = env::var_os("PATH").unwrap_or_default();
    let first = env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.is_file());
    let same = first.and_then(|first| first.canonicalize().ok()) == own.canonicalize().ok();
    if same { name.to_owned() } else { quoted(&own) }
}

/// A path as a shell wants it.
fn quoted(path: &Path) -> String {
    shell_quoted(&path.display().to_string())
}

/// A word as a shell wants it.
pub fn shell_quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+:@%,=".contains(letter);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_shown_as_a_browser_opens_it_and_its_token_to_a_person_alone() {
        let page = "http://127.0.0.1:1";
        assert_eq!(page_with_token(page, None, true), "http://127.0.0.1:1/");
        assert_eq!(page_with_token(page, Some("t"), true), "http://127.0.0.1:1/?token=t");
        let hidden = page_with_token(page, Some("secret"), false);
        assert!(hidden.contains("/?token=TOKEN (") && !hidden.contains("secret"), "{hidden}");
    }

    fn screen(paint: Paint, mounts: &[MountRow]) -> String {
        let notes = ["one thing".to_owned()];
        let (control, data) = (Path::new("/data/.latchfs/control.sock"), "/data");
        let (share, end) = ("docs", "The end.");
        let screen = Screen {
            mounts,
            share,
            control,
            data,
            endpoints: &[],
            smb: None,
            accounts: &[],
            connection_string: String::new(),
            ca_file: None,
            admin: None,
            gives_tokens: false,
            outside: None,
            notes: &notes,
            end,
        };
        screen.text(paint)
    }

    #[test]
    fn the_screen_is_plain_without_colours_and_has_something_to_paste() {
        let (account, share) = ("devstoreaccount1".to_owned(), "docs".to_owned());
        let mounts = [MountRow { account, share, path: "/mnt/my docs".into() }];
        let text = screen(Paint::NONE, &mounts);
        assert!(!text.contains('\x1b'));
        assert!(text.contains("  Mount     /mnt/my docs (share 'docs')\n"), "{text}");
        assert!(text.contains("    echo hello > '/mnt/my docs/a.txt'\n"), "{text}");
        assert!(text.contains("hold '/mnt/my docs/a.txt' --share none"), "{text}");
        assert!(text.ends_with("\n\n  The end.\n"), "{text}");
        assert!(screen(Paint::always(), &mounts).contains("\x1b[1mMount    \x1b[0m"));
    }

    #[test]
    fn in_a_container_without_a_shell_commands_are_run_from_outside() {
        let endpoints = [(ServiceKind::File, "http://127.0.0.1:10004/a".to_owned())];
        let control = Path::new("/data/control.sock");
        let screen = Screen {
            mounts: &[],
            share: "docs",
            control,
            data: "/data",
            endpoints: &endpoints,
            smb: None,
            accounts: &[],
            connection_string: String::new(),
            ca_file: None,
            admin: None,
            gives_tokens: false,
            outside: Some("docker exec 4f2a".to_owned()),
            notes: &[],
            end: "",
        };
        let text = screen.text(Paint::NONE);
        assert!(text.contains("    docker exec 4f2a latchfs hold docs:/a.txt --disp"), "{text}");
        assert!(text.contains("curl \"$(docker exec 4f2a latchfs sas docs:/a.txt)\""), "{text}");
        assert!(!text.contains("export"), "{text}");
    }

    #[test]
    fn without_a_mount_and_a_listener_there_is_nothing_to_try() {
        assert!(!screen(Paint::NONE, &[]).contains("Try"));
    }

    #[test]
    fn paths_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(quoted(Path::new("/a/b-c.txt")), "/a/b-c.txt");
        assert_eq!(quoted(Path::new("/a b")), "'/a b'");
        assert_eq!(quoted(Path::new("/it's")), r"'/it'\''s'");
    }
}
