// The story of a test: its last requests in order, and findings of the report, a line each.

/** Fields of an event that say on what a request depends, and their names in a line. */
const CONDITIONS = {
  if_match: "if-match",
  if_none_match: "if-none-match",
  if_unmodified_since: "if-unmodified-since",
  lease_sent: "lease",
  receipt_used: "receipt",
};

/** A request in one line, for people: who, what, on which condition, and what came of it. */
function line(event) {
  const conditions = Object.entries(CONDITIONS)
    .filter(([field]) => event[field] !== undefined)
    .map(([field, name]) => `${name} ${event[field]}`);
  const asked = [event.operation, event.object, ...conditions].filter(Boolean).join(" ");
  const came = [event.status ?? "no answer", event.code].filter(Boolean).join(" ");
  let message = event.refusal?.message;
  if (event.status === null) {
    message = event.answer === "client-gone" ? "the client closed the connection" : "a fault closed the connection";
  }
  return `${event.client}: ${asked} -> ${came}${message ? `: ${message}` : ""}`;
}

/** A finding of the report in one line. */
function finding({ level, rule, object, count, mark, message }) {
  const times = count > 1 ? `, ${count} times` : "";
  return `${level}: ${rule} of ${object}${times}${mark ? `, in ${mark}` : ""}: ${message}`;
}

/** The mark of the last run of a test that was explored: its requests are the story to tell. */
function lastRun(marks) {
  return marks.filter(({ detail }) => detail.startsWith("exploration ")).at(-1);
}

module.exports = { finding, lastRun, line };
