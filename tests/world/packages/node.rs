//! The npm package: its tarball, the fixtures for `node --test` and vitest, and what they leave
//! behind.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

use super::sandbox::{Sandbox, binary, megabytes, show, succeeded};
use crate::common::need;

/// The five lines for `node --test`, as the page for users has them.
pub const FIVE_LINES: &str = r#"import assert from "node:assert/strict";
import { test } from "node:test";
import { useLatchfs } from "latchfs/node-test";

const latchfs = useLatchfs();

test("busy", async () => {
  const file = await latchfs.put("a.txt", "x");
  await latchfs.holding("a.txt", { access: "rw", share: "none" }, () =>
    assert.rejects(file.download(), { code: "SharingViolation" }));
  assert.equal((await file.downloadToBuffer()).toString(), "x");
});
"#;

/// The same for vitest.
pub const FIVE_LINES_OF_VITEST: &str = r#"import { expect } from "vitest";
import { test } from "latchfs/vitest";

test("busy", async ({ latchfs }) => {
  const file = await latchfs.put("a.txt", "x");
  await latchfs.holding("a.txt", { access: "rw", share: "none" }, () =>
    expect(file.download()).rejects.toMatchObject({ code: "SharingViolation" }));
  expect((await file.downloadToBuffer()).toString()).toBe("x");
});
"#;

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/node")
}

fn modules() -> PathBuf {
    need::cache("packages-node/node_modules")
}

#[track_caller]
pub fn installed() -> bool {
    need::installed(&[&modules().join("vitest")]) && need::client("npm")
}

/// The tarball with the program under test, packed once from a copy of the package.
fn tarball() -> &'static Path {
    static TARBALL: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, tarball) = TARBALL.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("package");
        // The folder of the repository stays as it is: packing puts the binary beside the sources.
        let mut cp = Command::new("cp");
        cp.arg("-r").arg(source()).arg(&copy);
        succeeded(cp);
        for made in ["bin", "node_modules"] {
            let _ = fs::remove_dir_all(copy.join(made));
        }
        let began = Instant::now();
        let mut npm = Command::new("npm");
        npm.args(["pack", "--silent", "--pack-destination"]).arg(folder.path());
        npm.current_dir(&copy).env("LATCHFS_BINARY", binary());
        succeeded(npm);
        let tarball = folder.path().join(format!("latchfs-{}.tgz", env!("CARGO_PKG_VERSION")));
        let (size, took) = (megabytes(&tarball), began.elapsed());
        show(&format!("npm package of the debug build: {size}, packed in {took:.1?}"));
        (folder, tarball)
    });
    tarball
}

/// A new project that has the package installed, and that sees the SDK and vitest.
pub fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("package.json", r#"{ "private": true, "type": "module" }"#);
    let mut npm = sandbox.command("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "--offline", "--no-save"]);
    npm.args(["--legacy-peer-deps", "--cache"]).arg(sandbox.project().join("cache")).arg(tarball());
    succeeded(npm);
    // What comes from a registry is there already; only the package is installed.
    for name in ["@azure", "@types", "typescript", "vitest"] {
        symlink(modules().join(name), sandbox.project().join("node_modules").join(name)).unwrap();
    }
    sandbox
}

pub fn node_test(sandbox: &Sandbox, files: &[&str]) -> Command {
    let mut node = sandbox.command("node");
    node.arg("--test").args(files);
    node
}

fn vitest(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut vitest = sandbox.command("node");
    vitest.arg(modules().join("vitest/vitest.mjs")).args(["run", "--pool=threads"]).args(arguments);
    // A slow machine is no reason to fail.
    vitest.args(["--testTimeout=120000", "--hookTimeout=120000"]);
    vitest
}

#[test]
fn the_five_lines_pass_in_a_new_project() {
    if !installed() {
        return;
    }
    tarball();
    let began = Instant::now();
    let sandbox = project();
    let install = began.elapsed();
    sandbox.write("busy.test.mjs", FIVE_LINES);
    let passed = succeeded(node_test(&sandbox, &["busy.test.mjs"]));
    assert!(passed.contains("pass 1") && passed.contains("fail 0"), "{passed}");
    let all = began.elapsed();
    show(&format!("node: package installed in {install:.1?}, with its test {all:.1?}"));
    sandbox.write("busy.test.mjs", FIVE_LINES_OF_VITEST);
    let passed = succeeded(vitest(&sandbox, &[]));
    assert!(passed.contains("1 passed"), "{passed}");
    let mut version = sandbox.command("node_modules/.bin/latchfs");
    version.arg("--version");
    assert!(succeeded(version).contains(env!("CARGO_PKG_VERSION")));
    sandbox.assert_clean();
}

#[test]
fn the_version_of_the_package_is_that_of_the_crate() {
    let text = fs::read_to_string(source().join("package.json")).unwrap();
    let package: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(package["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_tests_of_the_package_pass() {
    if !installed() {
        return;
    }
    let sandbox = project();
    let files = ["server.test.mjs", "fixture.test.mjs", "require.test.cjs"];
    for name in files {
        fs::copy(source().join("test").join(name), sandbox.project().join(name)).unwrap();
    }
    let passed = succeeded(node_test(&sandbox, &files));
    assert!(passed.contains("fail 0") && passed.contains("skipped 0"), "{passed}");
    sandbox.assert_clean();
}

/// Uses what the declarations declare, and what they must refuse.
const TYPED: &str = r#"import type { ShareFileClient } from "@azure/storage-file-share";
import { Server, Refused, type GateOptions } from "latchfs";
import { useLatchfs } from "latchfs/node-test";
import { latchfsTest } from "latchfs/vitest";

const options: GateOptions = { at: "committed", times: 1, service: "blob" };
export async function typed(): Promise<ShareFileClient> {
  const server = await Server.start({ shares: ["docs"], mount: false });
  const gate = await server.gate("Put Blob", "c/*", options);
  const waiting: number = await gate.wait(2, { timeout: 1000 });
  const later: Date = await server.clock.advance(waiting);
  await server.fault("Get Blob", undefined, { answer: { status: 503, code: "ServerBusy" } });
  await server.fault("Get Blob", { drop: "after" });
  await (await server.gate("Put Blob", options)).wait({ timeout: 1000 });
  const same: number = await server.holding("a.txt", { share: "r" }, (hold) => hold.handle);
  const found = await server.explore(async (run) => {
    const { A } = await run.clients({ A: async (cs) => cs.length, B: async () => 1 });
    await run.step("A", "rename", { objects: ["file:docs/a"], writes: A > 1 });
  }, { numRuns: 5, advance: [16_000] });
  if (!found.complete) throw new Error(found.notes.join());
  // @ts-expect-error: there is no such point
  await server.gate("Put Blob", "c/*", { at: "nowhere" });
  // @ts-expect-error: Server.start makes one
  new Server();
  if (later.getTime() === same) throw new Error(String(Refused));
  return server.put("a.txt", new Uint8Array([1]));
}
export const fixture: Server = useLatchfs({ args: ["--blob-versioning"] });
latchfsTest({ shares: ["docs"] })("typed", async ({ latchfs }) => {
  const events = await latchfs.events({ kind: "refused" });
  const last: number | undefined = events.at(-1)?.seq;
  await latchfs.events({ after: last });
});
"#;

/// The same where `require` loads modules, as jest does by default.
const TYPED_COMMONJS: &str = r#"import { Server } from "latchfs";
import { useLatchfs } from "latchfs/node-test";

export const started: Promise<Server> = Server.start();
export const name: string = useLatchfs().share;
export const address = started.then(async (server) => (await server.put("a.txt", "x")).url);
"#;

#[test]
fn the_declarations_fit_what_a_strict_compiler_expects() {
    if !installed() {
        return;
    }
    let sandbox = project();
    sandbox.write("typed.ts", TYPED);
    let mut tsc = sandbox.command("node");
    tsc.arg(modules().join("typescript/bin/tsc"));
    tsc.args(["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022"]);
    // The declarations of others are theirs; ours are checked as part of the program.
    tsc.args(["--lib", "es2022,dom,esnext.disposable", "--skipLibCheck", "--types", "node"]);
    sandbox.write("typed.cts", TYPED_COMMONJS);
    tsc.args(["typed.ts", "typed.cts"]);
    succeeded(tsc);
}

const MANY: &str = r#"import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { useLatchfs } from "latchfs/node-test";

const latchfs = useLatchfs();
let seen;

for (let round = 0; round < 200; round += 1) {
  test(`round ${round}`, async () => {
    const file = await latchfs.file("a.txt");
    assert.equal(await file.exists(), false);
    await latchfs.put("a.txt", "x");
    await latchfs.hold("a.txt", { access: "rw", share: "none" });
    await assert.rejects(file.download(), { code: "SharingViolation" });
    await latchfs.gate("Get Blob", "c/*");
    await latchfs.clock.advance(60_000);
    const count = (path) => readdirSync(path).length;
    const now = {
      descriptors: count(`/proc/${latchfs.pid}/fd`),
      threads: count(`/proc/${latchfs.pid}/task`),
      own: count("/proc/self/fd"),
      files: readdirSync(process.env.TMPDIR, { recursive: true }).length,
    };
    if (round === 20) seen = now;
    if (round === 199) {
      for (const name of Object.keys(now)) {
        assert.ok(now[name] <= seen[name] + 10, `${name}: ${JSON.stringify([seen, now])}`);
      }
    }
  });
}
"#;

#[test]
fn two_hundred_tests_in_one_process_start_from_nothing_and_leave_nothing() {
    if !installed() {
        return;
    }
    let sandbox = project();
    sandbox.write("many.test.js", MANY);
    let began = Instant::now();
    let passed = succeeded(node_test(&sandbox, &["many.test.js"]));
    assert!(passed.contains("pass 200") && passed.contains("fail 0"), "{passed}");
    show(&format!("200 tests of node --test with a reset each: {:.1?}", began.elapsed()));
    sandbox.assert_clean();
}

const THREADS: &str = r#"import { appendFileSync } from "node:fs";
import { threadId } from "node:worker_threads";
import { expect } from "vitest";
import { test } from "latchfs/vitest";

for (let round = 0; round < 25; round += 1) {
  test(`round ${round}`, async ({ latchfs }) => {
    appendFileSync("servers", `${threadId} ${import.meta.filename} ${latchfs.pid}\n`);
    const file = await latchfs.file("a.txt");
    expect(await file.exists()).toBe(false);
    await latchfs.put("a.txt", import.meta.filename);
    await latchfs.holding("a.txt", { share: "none" }, () =>
      expect(file.download()).rejects.toMatchObject({ code: "SharingViolation" }));
    expect((await file.downloadToBuffer()).toString()).toBe(import.meta.filename);
  });
}
"#;

#[test]
fn threads_of_vitest_do_not_disturb_each_other() {
    if !installed() {
        return;
    }
    let sandbox = project();
    for name in ["one", "two", "three", "four"] {
        sandbox.write(&format!("{name}.test.js"), THREADS);
    }
    let threads = ["--poolOptions.threads.minThreads=4", "--poolOptions.threads.maxThreads=4"];
    let began = Instant::now();
    let passed = succeeded(vitest(&sandbox, &threads));
    assert!(passed.contains("100 passed"), "{passed}");
    show(&format!("100 tests of vitest in 4 threads: {:.1?}", began.elapsed()));
    let lines = fs::read_to_string(sandbox.project().join("servers")).unwrap();
    let count = |at: usize| {
        let field = |line: &str| line.split(' ').nth(at).unwrap().to_owned();
        lines.lines().map(field).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!((count(0), count(1), count(2)), (4, 4, 4), "threads, files, servers");
    sandbox.assert_clean();
}

const ENDLESS: &str = r#"import { writeFileSync } from "node:fs";
import { Server } from "latchfs";

const server = await Server.start({ mount: process.env.MOUNT === "1" });
const file = await server.put("a.txt", "x");
await server.hold("a.txt", { share: "none" });
const gate = await server.gate("Get File Properties", "**");
file.getProperties().catch(() => {});
await gate.wait();
writeFileSync("started", "");
await new Promise(() => setInterval(() => {}, 1000));
"#;

#[test]
fn a_runner_that_is_killed_leaves_no_server_mount_or_file() {
    if !installed() {
        return;
    }
    let sandbox = project();
    sandbox.write("endless.js", ENDLESS);
    let mount = if Path::new("/dev/fuse").exists() { "1" } else { "0" };
    let mut node = sandbox.command("node");
    node.arg("endless.js").env("MOUNT", mount);
    sandbox.start_and_kill(node);
    sandbox.assert_clean();
    fs::remove_file(sandbox.project().join("started")).unwrap();
    let wrapped = "import { test } from \"vitest\";\n\
                   test(\"endless\", () => import(\"./endless.js\"), 1e6);\n";
    sandbox.write("endless.test.js", wrapped);
    sandbox.start_and_kill(vitest(&sandbox, &[]));
    sandbox.assert_clean();
}

#[test]
fn a_program_that_forgets_its_server_ends_and_the_server_with_it() {
    if !installed() {
        return;
    }
    let sandbox = project();
    let forgets = "import { Server } from 'latchfs';\n\
                   const server = await Server.start();\n\
                   await server.hold('a.txt', { disposition: 'open-if' });\n\
                   console.log(server.pid);\n";
    sandbox.write("forgets.js", forgets);
    let mut node = sandbox.command("node");
    node.arg("forgets.js");
    succeeded(node);
    sandbox.assert_clean();
}
