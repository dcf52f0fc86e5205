// Server, as a test uses it. The program is the one of this package, or the one of LATCHFS_BINARY.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";

import { LatchfsError, Refused, Server, StartError, WaitTimeout } from "latchfs";

async function withServer(work, options) {
  const server = await Server.start(options);
  try {
    await work(server);
  } finally {
    await server.close();
  }
}

test("a server says where its services are, and ends with close", async () => {
  let pid;
  await withServer(async (server) => {
    pid = server.pid;
    assert.deepEqual(Object.keys(server.endpoints).sort(), ["blob", "file", "queue", "smb", "table"]);
    assert.match(server.connectionString, /AccountName=devstoreaccount1;.*FileEndpoint=http:/);
    assert.ok(server.connectionString.includes(server.key));
    const same = await Server.connect(server.admin);
    assert.equal(same.connectionString, server.connectionString);
    assert.equal(same.pid, undefined);
    assert.equal(same.share, "share");
    await same.close();
    assert.ok(existsSync(`/proc/${pid}`), "who only connects ends nothing");
  });
  assert.ok(!existsSync(`/proc/${pid}`));
});

test("a server with another version of the API is told from one that is broken", async () => {
  for (const [headers, spoken] of [[{ "x-latchfs-api": "999" }, "version 999"], [{}, "no version"]]) {
    const other = createServer((_, answer) => answer.writeHead(200, headers).end("{}"));
    await new Promise((done) => other.listen(0, "127.0.0.1", done));
    try {
      await assert.rejects(Server.connect(`http://127.0.0.1:${other.address().port}`), (error) => {
        assert.ok(error instanceof LatchfsError);
        assert.ok(error.message.includes(`speaks ${spoken} of the API, this package version`));
        return true;
      });
    } finally {
      other.close();
    }
  }
});

test("a held file is refused, with its holder, and is free when the hold is released", async () => {
  await withServer(async (server) => {
    const file = await server.put("dir/a.txt", "x");
    const hold = await server.hold("dir/a.txt", { access: "rw", share: "none" });
    await assert.rejects(file.download(), { code: "SharingViolation" });
    await assert.rejects(server.hold("dir/a.txt"), (error) => {
      assert.ok(error instanceof Refused);
      assert.equal(error.kind, "sharing_violation");
      assert.equal(error.holder.handle, hold.handle);
      return true;
    });
    assert.deepEqual((await server.handles()).map((row) => row.handle), [hold.handle]);
    assert.equal((await server.why("dir/a.txt")).opens.length, 1);
    assert.equal(await hold.release(), true);
    assert.equal(await hold.release(), false, "a second release does nothing");
    assert.equal((await file.downloadToBuffer()).toString(), "x");
    await server.holding("dir/a.txt", { share: "none" }, async () => {
      await assert.rejects(file.download(), { code: "SharingViolation" });
    });
    assert.deepEqual(await server.handles(), []);
  });
});

test("requests stop at a gate and go on when it lets them", async () => {
  await withServer(async (server) => {
    const file = await server.put("a.txt", "x");
    const gate = await server.gate("Get File", "**");
    await assert.rejects(gate.wait(1, { timeout: 50 }), WaitTimeout);
    await assert.rejects(gate.wait({ timeout: 50 }), WaitTimeout);
    await assert.rejects(gate.wait(1, 50), /wait: expected options, as in { timeout: 50 }/);
    await assert.rejects(gate.wait({ count: 1 }), /wait: there is no option 'count'/);
    const read = file.downloadToBuffer();
    assert.equal(await gate.wait(), 1);
    assert.equal((await gate.status()).waiting.length, 1);
    assert.equal(await gate.release(), 1);
    assert.equal((await read).toString(), "x");
    await gate.remove();
    await gate.remove();
    await assert.rejects(server.gate("Gett File"), /no operation is called/);
    const second = await server.gate("Get File", { at: "committed", times: 1 });
    assert.equal((await second.status()).at, "committed");
  });
});

test("a fault befalls requests, so many times", async () => {
  await withServer(async (server) => {
    const file = await server.put("a.txt", "x");
    const answer = { status: 403, code: "InsufficientAccountPermissions" };
    const fault = await server.fault("Get File", "**", { answer, times: 1 });
    await assert.rejects(file.download(), { statusCode: 403 });
    assert.equal((await file.downloadToBuffer()).toString(), "x");
    assert.equal(await fault.met(), 1);
    await fault.remove();
    assert.equal(await fault.met(), 0);
    await assert.rejects(server.fault("Get File", "**", {}), LatchfsError);
    await server.fault("Get File", { answer, times: 1 });
    await assert.rejects(file.download(), { statusCode: 403 });
    await assert.rejects(server.fault("Get File", { drop: "later" }), /expected 'before' or 'after'/);
    await assert.rejects(server.fault("Get File", "**", { answer: 503 }), /expected a status and a code/);
  });
});

test("an option that is misspelt is refused", async () => {
  await assert.rejects(Server.start({ share: ["docs"] }), /start: there is no option 'share', only shares,/);
  await withServer(async (server) => {
    await assert.rejects(server.hold("a.txt", { acess: "rw" }), /hold: there is no option 'acess', only access,/);
    await assert.rejects(server.holding("a.txt", { acess: "rw" }, () => {}), /'acess'/);
    await assert.rejects(server.gate("Get File", "**", { time: 1 }), /gate: there is no option 'time'/);
    await assert.rejects(server.fault("Get File", "**", { drop: "after", time: 1 }), /'time'/);
    await assert.rejects(server.events({ kinds: "refused" }), /events: there is no option 'kinds'/);
    await assert.rejects(server.events({ kind: "nonsense" }), /there is no kind 'nonsense'/);
    await assert.rejects(server.hold("none.txt"), /file:share\/none.txt: no such file or directory/);
    await assert.rejects(server.why("none.txt"), /^ApiError: file:share\/none.txt: no such file/);
    await assert.rejects(Server.connect(server.admin, { shares: [] }), /connect: there is no option 'shares'/);
    await assert.rejects(server.clock.advance("61s"), /expected milliseconds, a number, not '61s'/);
    for (const moment of ["yesterday", new Date("nonsense"), undefined]) {
      await assert.rejects(server.clock.set(moment), /clock.set: expected a Date/);
    }
    assert.deepEqual(await server.api.get("leases"), await server.api.get("/leases"));
    await assert.rejects(server.clock.advance(-5000), /'advance_ms' is -5000: expected 0 or more/);
  });
});

test("the clock goes as the test says", async () => {
  await withServer(async (server) => {
    const stood = await server.clock.freeze();
    assert.ok(await server.clock.frozen());
    const later = await server.clock.advance(61_000);
    assert.equal(later - stood, 61_000);
    assert.deepEqual(await server.clock.now(), later);
    const set = new Date(later.getTime() + 3_600_000);
    assert.equal((await server.clock.set(set)).getTime(), set.getTime());
    await server.clock.run();
    assert.ok(!(await server.clock.frozen()));
  });
});

test("a state is saved and restored, and a reset leaves nothing but the shares", async () => {
  await withServer(
    async (server) => {
      const file = await server.put("a.txt", "one");
      await server.state.save("base");
      await server.put("a.txt", "two");
      await server.state.restore("base");
      assert.equal((await file.downloadToBuffer()).toString(), "one");
      assert.deepEqual(await server.state.list(), ["base"]);
      await server.state.delete("base");
      assert.deepEqual(await server.state.list(), []);
      const hold = await server.hold("a.txt", { share: "none" });
      await server.gate("Get File", "**");
      await server.clock.advance(3_600_000);
      await server.reset();
      assert.equal(await hold.release(), false, "the reset has ended it");
      await assert.rejects(file.download(), { statusCode: 404 });
      assert.equal((await (await server.put("b.txt", "x")).downloadToBuffer()).toString(), "x");
      assert.ok(Math.abs((await server.clock.now()) - Date.now()) < 600_000);
    },
    { shares: ["docs", "other"] },
  );
});

test("a client that names no share means one that is there", async () => {
  await withServer(
    async (server) => {
      assert.equal((await Server.connect(server.admin)).share, "docs");
      assert.equal((await Server.connect(server.admin, { share: "other" })).share, "other");
    },
    { shares: ["docs", "other"] },
  );
});

test("what happened can be read, and waited for", async () => {
  await withServer(async (server) => {
    const file = await server.put("a.txt", "x");
    const hold = await server.hold("a.txt", { share: "none" });
    await assert.rejects(file.download(), { code: "SharingViolation" });
    const refused = await server.events({ kind: "refused", wait: 20_000 });
    assert.equal(refused.at(-1).rule, "sharing_violation");
    assert.deepEqual(await server.events({ after: (await server.events()).at(-1).seq }), []);
    await hold.release();
  });
});

test("a server that cannot start says why, and a server that is not there too", async () => {
  await assert.rejects(Server.start({ args: ["--no-such-option"] }), (error) => {
    assert.ok(error instanceof StartError);
    assert.match(error.message, /--no-such-option/);
    return true;
  });
  await assert.rejects(Server.start({ shares: [] }), LatchfsError);
  await assert.rejects(Server.start({ shares: ["A_b"] }), {
    message: /^latchfs ended with status 2: share name 'A_b': expected/,
  });
  await assert.rejects(Server.connect("http://127.0.0.1:1"), /does the server run/);
  for (const wrong of ["nonsense", "localhost:10009", "http://"]) {
    await assert.rejects(Server.connect(wrong), /is not the URL of a server, such as http/);
  }
});
