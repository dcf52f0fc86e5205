//! latchfs under the scripts of a project that starts Azurite: its commands, options and variables.

use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use super::fixture::{Folder, error_text, latchfs, text};
use crate::common::http::{ask, ask_as_it_is};
use crate::common::need;
use crate::common::pages::page;
use crate::common::served::{LATCHFS, PATIENCE};

/// Starts the command line `$1` in a network of its own, where well-known ports are free, waits
/// for the line `$2` of its output, then stores something in each service of `$3`, and reads it.
const SCRIPT: &str = r#"
ip link set lo up || exit 90
PATH="$PWD/bin:$PATH"
$1 > out 2> err &
server=$!
end=$(($(date +%s) + 20))
until grep -q "$2" out; do
    kill -0 $server 2> /dev/null || { cat err >&2; exit 91; }
    [ "$(date +%s)" -lt $end ] || { cat out err >&2; exit 92; }
    sleep 0.02
done
status=0
echo hello > file
for service in $3; do
    case $service in
    blob) latchfs mk blob:photos && latchfs put blob:photos/a file && latchfs get blob:photos/a ;;
    queue) latchfs mk queue:jobs && latchfs put queue:jobs file && latchfs get queue:jobs ;;
    table) latchfs mk table:people && latchfs ls table: ;;
    esac || status=93
done
kill $server && wait $server || status=94
cat out
exit $status
"#;

/// A folder with the commands of Azurite, each a link to latchfs.
fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.join("bin")).unwrap();
    for name in ["latchfs", "azurite", "azurite-blob", "azurite-queue", "azurite-table"] {
        symlink(LATCHFS, folder.join("bin").join(name)).unwrap();
    }
    fs::create_dir(folder.join("runtime")).unwrap();
    folder
}

/// Runs the script; none where this machine cannot.
fn try_line(folder: &Folder, line: &str, wait: &str, services: &str) -> Option<Output> {
    try_with(folder, line, wait, services, &[])
}

fn try_with(
    folder: &Folder,
    line: &str,
    wait: &str,
    services: &str,
    variables: &[(&str, &str)],
) -> Option<Output> {
    if !need::root() || !need::client("unshare") || !need::client("ip") {
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", SCRIPT, "sh", line, wait, services]);
    command.current_dir(folder.path()).env("XDG_RUNTIME_DIR", folder.join("runtime"));
    // As in a container: what is exposed is the container's network.
    command.env("LATCHFS_EXPOSE", "1").envs(variables.iter().copied());
    Some(command.output().unwrap())
}

#[test]
fn the_option_lines_of_public_projects_start_latchfs_in_the_place_of_azurite() {
    let blob = "Azurite Blob service successfully listens on http://127.0.0.1:10000";
    let blob_everywhere = "Azurite Blob service successfully listens on http://0.0.0.0:10000";
    let table = "Azurite Table service is successfully listening at http://127.0.0.1:10002";
    // Libraries that start containers wait for this line as a whole.
    let everywhere = "Azurite Table service is successfully listening at http://0.0.0.0:10002";
    let all = "blob queue table";
    for (line, wait, services) in [
        // A database's tests, in a container.
        (
            "azurite-blob --blobHost 0.0.0.0 --blobPort 10000 --silent --inMemoryPersistence",
            blob_everywhere,
            "blob",
        ),
        // A machine learning library's tests, on the machine.
        ("azurite-blob --loose", blob, "blob"),
        // A web application's start script, for a container.
        (
            "azurite --blobPort 10000 --blobHost 0.0.0.0 --queuePort 10001 --queueHost 0.0.0.0 \
             --tablePort 10002 --tableHost 0.0.0.0 --loose --skipApiVersionCheck \
             --disableProductStyleUrl",
            everywhere,
            all,
        ),
        // A library that starts containers for tests.
        (
            "azurite --blobHost 0.0.0.0 --queueHost 0.0.0.0 --tableHost 0.0.0.0 \
             --inMemoryPersistence --extentMemoryLimit 64 --skipApiVersionCheck",
            everywhere,
            all,
        ),
        // A Procfile beside Azure Functions.
        ("azurite --silent --location .azurite --debug .azurite/debug.log", table, all),
        ("azurite-table", "Azurite Table service successfully started on 127.0.0.1:10002", "table"),
        ("azurite-queue -s", "Azurite Queue service successfully listens on http://127", "queue"),
    ] {
        let folder = folder();
        let Some(output) = try_line(&folder, line, wait, services) else { return };
        let (said, complained) = (text(&output), error_text(&output));
        assert_eq!(output.status.code(), Some(0), "{line}: {said}\n{complained}");
        for service in ["blob", "queue"].iter().filter(|service| services.contains(**service)) {
            assert!(said.contains("hello\n"), "{line}: {service}: {said}");
        }
        let data = if line.contains("--location") { ".azurite" } else { "latchfs-data" };
        assert_eq!(folder.join(data).exists(), !line.contains("inMemory"), "{line}");
        assert!(!folder.join("latchfs-mnt").exists(), "{line}");
    }
}

#[test]
fn accounts_come_from_the_variable_of_azurite() {
    let folder = folder();
    let variables = [("AZURITE_ACCOUNTS", "first:a2V5MQ==:a2V5Mg==;second:key")];
    let wait = "Azurite Blob service is successfully listening at";
    let Some(output) = try_with(&folder, "azurite", wait, "blob", &variables) else { return };
    assert!(output.status.success(), "{}", error_text(&output));
    for account in ["first", "second"] {
        assert!(folder.join("latchfs-data").join(account).exists(), "{account}");
    }
    let output = latchfs(folder.path()).arg("serve").env("AZURITE_ACCOUNTS", "a:b").output();
    let said = error_text(&output.unwrap());
    assert!(said.contains("AZURITE_ACCOUNTS") && said.lines().count() == 1, "{said}");
}

/// The start of a server that fails, and what it says.
#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let folder = Folder::new();
    let output = folder.run(&[&["serve", "--no-mount"], arguments].concat());
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output));
    error_text(&output)
}

#[test]
fn options_of_azurite_without_the_same_meaning_are_refused_with_what_to_do() {
    let secret = refused(&["--cert", "a.pfx", "--pwd", "s3cret"]);
    assert!(secret.contains("openssl pkcs12") && !secret.contains("s3cret"), "{secret}");
    assert!(refused(&["--cert", "a.pem"]).contains("--cert needs --key"));
    assert!(refused(&["--extentMemoryLimit", "64"]).contains("--in-memory"));
    assert!(refused(&["--location", "a", "--inMemoryPersistence"]).contains("choose one"));
    assert!(refused(&["--blobHost", "0.0.0.0", "--blobPort", "0"]).contains("--expose"));
    assert!(refused(&["--blob", "off", "--blobPort", "0"]).contains("--blob off"));
    assert!(refused(&["--blobKeepAliveTimeout", "0"]).contains("1..=86400"));
}

#[test]
fn the_options_of_azurite_have_their_meaning_beside_those_of_latchfs() {
    let folder = Folder::new();
    let file = folder.join("logs/debug.log");
    let mut server = folder.start(&[
        "serve",
        "--no-mount",
        "--no-auth",
        "--blobHost",
        "localhost",
        "--blobPort",
        "0",
        "--skipApiVersionCheck",
        "--disableProductStyleUrl",
        "--blobKeepAliveTimeout",
        "1",
        "--debug",
        file.to_str().unwrap(),
    ]);
    let address = folder.service("blob");
    assert!(address.ip().is_loopback());
    let (service, photos) = ("/?comp=list", "/photos?restype=container");
    ask(address, "PUT", photos, &[], b"").is(201);
    // A version that lies centuries ahead, and a host that names the account on other servers.
    ask(address, "GET", service, &[("x-ms-version", "3025-01-01")], b"").is(200);
    let host = "devstoreaccount1.blob.localhost";
    let path = format!("/devstoreaccount1{photos}");
    ask_as_it_is(address, host, "GET", &path, &[], b"").is(200);
    // Without the option a connection may be idle for minutes.
    let mut idle = TcpStream::connect(address).unwrap();
    idle.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(idle.read(&mut [0; 16]).unwrap(), 0);
    assert!(server.stop().success());
    assert!(file.exists());
}

/// The options of Azurite 3.37, as its help lists them.
const OPTIONS: &str = "--blobHost --blobKeepAliveTimeout --blobPort --cert --debug \
    --disableProductStyleUrl --disableTelemetry --extentMemoryLimit --inMemoryPersistence --key \
    --location --loose --oauth --pwd --queueHost --queueKeepAliveTimeout --queuePort --silent \
    --skipApiVersionCheck --tableHost --tableKeepAliveTimeout --tablePort -d -l -L -s";

#[test]
fn every_option_of_azurite_is_one_of_latchfs_and_on_the_page() {
    let help = text(&Folder::new().run(&["serve", "--help"]));
    let words: Vec<_> = help.split([' ', ',', ']', '\n']).collect();
    let page = page("docs/running.md");
    for option in OPTIONS.split_whitespace() {
        assert!(words.contains(&option), "{option} is not in the help");
        assert!(page.contains(&format!("`{option}`")), "{option} is not on the page");
    }
}

#[test]
fn data_of_azurite_is_not_read_and_the_start_says_so() {
    let folder = Folder::new();
    let data = folder.join("data");
    fs::create_dir(&data).unwrap();
    let theirs = data.join("__azurite_db_blob__.json");
    fs::write(&theirs, "{}").unwrap();
    let mut server = folder.start(&["serve", "--no-mount"]);
    let line = server.log().lines().find(|line| line.contains("Azurite")).unwrap().to_owned();
    assert!(line.contains("__azurite_db_blob__.json") && line.contains("does not read"), "{line}");
    assert!(server.stop().success());
    assert_eq!(fs::read_to_string(theirs).unwrap(), "{}");
    assert!(Path::new(&data).join(".latchfs").exists());
}
