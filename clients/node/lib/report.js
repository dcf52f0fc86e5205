// The report at the end of a test file: what went wrong between the clients of its tests. Off unless
// LATCHFS_REPORT or LATCHFS_REPORT_JUNIT is set.

const { writeFile } = require("node:fs/promises");
const { parse } = require("node:path");

const { LatchfsError } = require("./errors.js");
const { finding } = require("./story.js");

/** The values of LATCHFS_REPORT: a summary, or the level that fails the tests. */
const LEVELS = ["error", "warn", "hint"];

/** Says what a server found since a mark; throws if that is to fail the tests. */
async function tell(server, since) {
  const { LATCHFS_REPORT: level, LATCHFS_REPORT_JUNIT: file } = process.env;
  if (level && ![...LEVELS, "summary"].includes(level)) {
    throw failed(`LATCHFS_REPORT is '${level}': expected summary, ${LEVELS.join(", ")}`);
  }
  const fatal = LEVELS.slice(0, LEVELS.indexOf(level) + 1);
  if (file) {
    const { dir, name, ext } = parse(file);
    const { junit } = await server.api.get("/report/junit", { since, fail_on: fatal.at(-1) });
    // Each test file is a process of its own.
    await writeFile(`${dir || "."}/${name}-${process.pid}${ext}`, junit);
  }
  if (!level) return;
  const report = await server.report({ since, level: "hint" });
  const count = (...levels) => report.findings.filter((one) => levels.includes(one.level)).length;
  const counts = LEVELS.map((one) => `${count(one)} ${one}`).join(", ");
  const more = report.incomplete ? "; incomplete: there may be more" : "";
  const lines = [...report.findings.map(finding), `${counts} in ${report.requests} requests${more}`];
  console.log(["latchfs report", ...lines].join("\n"));
  if (count(...fatal) > 0 || (fatal.length > 0 && report.incomplete)) {
    throw failed(`the report has findings of level ${level} or above, or is incomplete`);
  }
}

/** The error that fails the tests. Node 20 passes over errors of hooks outside of suites. */
function failed(message) {
  process.exitCode = 1;
  return new LatchfsError(message);
}

module.exports = { tell };
