// What `latchfs` offers to tests. All times are milliseconds.

import type { ShareFileClient } from "@azure/storage-file-share" with { "resolution-mode": "import" };

/** The path of the program: LATCHFS_BINARY, the one of this package, or one on the PATH. */
export function binary(): string;

/** The base of all errors of this package. */
export class LatchfsError extends Error {}

/** The server did not start; the message holds what it wrote to standard error. */
export class StartError extends LatchfsError {}

/** The admin API refused a call. */
export class ApiError extends LatchfsError {
  /** The status of the HTTP answer. */
  readonly status: number;
  /** The reason, named as docs/api.md does. */
  readonly kind: string;
}

/** A rule of the service refused, because of somebody else. `kind` names the rule. */
export class Refused extends ApiError {
  /** The open in the way, if it is one, with the fields of `latchfs handles --json`. */
  readonly holder: Record<string, unknown> | undefined;
}

/** What was waited for has not happened in time. */
export class WaitTimeout extends ApiError {}

/** The search cannot be made: the test does not fit it, or the token does not fit the test. */
export class ExploreError extends LatchfsError {}

/** The clients of an explored run wait for each other, or one of them does not end. */
export class Stuck extends LatchfsError {}

/** An explored test fails in an order, which the message shows; `cause` is what the test threw. */
export class RaceFound extends LatchfsError {
  readonly details: RunDetails;
}

/** Options of `Server.start`. */
export interface StartOptions {
  /** The file shares that exist after the start and after each reset; `["share"]` without it. */
  shares?: string[];
  /** Mount the first share; `server.mount` is then the directory. */
  mount?: boolean;
  /** Further options of `latchfs serve`, such as `["--oauth", "basic"]`. */
  args?: string[];
  /** Variables for the server. Other variables that begin with LATCHFS_ are not passed on. */
  env?: Record<string, string>;
  /** How long the start may take. */
  timeout?: number;
}

/** Options of `Server.connect`. */
export interface ConnectOptions {
  /** What the server asks for where it listens beyond this machine. */
  token?: string;
  /** The storage account if it is not the first one. */
  account?: string;
  /**
   * The share that is meant where none is named. Without it, `share` if the server has that one, else
   * the first of the account by name.
   */
  share?: string;
}

/** Options of `server.hold`. */
export interface HoldOptions {
  /** What the open may do: letters of `rwd`, or `none`; `r` without it. */
  access?: string;
  /** What it lets others do meanwhile (its share mode): letters of `rwd`, or `none` (the default). */
  share?: string;
  /** The share; the first one without it. */
  shareName?: string;
  /** `open` without it. */
  disposition?: "open" | "create" | "open-if" | "overwrite" | "overwrite-if" | "supersede";
  /** Mark the file for deletion when the hold ends; needs access `d`. */
  deleteOnClose?: boolean;
  /** Byte ranges to lock. */
  locks?: { start: number; length: number; exclusive?: boolean }[];
  /** When the hold ends by itself, at most an hour. */
  limit?: number;
}

/** Which requests a gate or a fault is about. */
export interface Matching {
  /** The service; all without it. */
  service?: "file" | "blob" | "queue" | "table";
  /** Patterns that the values of these headers fit. */
  headers?: Record<string, string>;
}

/** Options of `server.gate`. */
export interface GateOptions extends Matching {
  /** `received`: nothing was looked at (the default); `committed`: done, not answered. */
  at?: "received" | "committed";
  /** Stop only the next N requests; all without it. */
  times?: number;
  /** When a waiting request is released without a call. */
  limit?: number;
}

/** Options of `server.fault`: one of the first five, and which requests it applies to. */
export interface FaultOptions extends Matching {
  /** The request is refused, and nothing is done. */
  answer?: { status: number; code: string };
  /** The request is carried out after this time. */
  delay?: number;
  /** The connection is closed before anything is done, or after it is done, without the answer. */
  drop?: "before" | "after";
  /** The answer's body ends after this many bytes. */
  cut?: number;
  /** The answer's body is sent at this many bytes a second. */
  slow?: number;
  /** Apply the fault to the next N requests only; to all without it. */
  times?: number;
  /** Probability that the fault applies, 0 to 1; `seed` makes the choice repeatable. */
  probability?: number;
  seed?: number;
}

/** A file that the server holds open. Ends with `release`, or with the process that asked for it. */
export class Hold implements AsyncDisposable {
  private constructor();
  /** The number of the handle, as `latchfs handles` shows it. */
  readonly handle: number;
  readonly account: string;
  readonly share: string;
  readonly path: string;
  readonly access: string;
  readonly shareMode: string;
  /** Closes the handle, which is then free; false if it had been closed before, as by force. */
  release(): Promise<boolean>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A point where requests stop until the test lets them go. */
export class Gate implements AsyncDisposable {
  private constructor();
  /** The number of the gate. */
  readonly id: number;
  /** Waits until `count` requests have stopped here; throws `WaitTimeout` if they have not in time. */
  wait(count?: number, options?: { timeout?: number }): Promise<number>;
  wait(options: { timeout?: number }): Promise<number>;
  /** Lets the first `count` requests go, or all; returns how many went. */
  release(count?: number): Promise<number>;
  /** The row of `latchfs gate list --json`: the pattern, and who waits. */
  status(): Promise<Record<string, unknown>>;
  /** Removes the gate; requests that wait go on. */
  remove(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A fault that is injected into the requests that match. */
export class Fault implements AsyncDisposable {
  private constructor();
  /** The number of the fault. */
  readonly id: number;
  /** How many requests have met the fault; 0 if it was removed. */
  met(): Promise<number>;
  /** Removes the fault. */
  remove(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The clock of the server: leases, hidden messages and the expiry of SAS follow it. */
export class Clock {
  private constructor();
  /** The time that the server's clock shows. */
  now(): Promise<Date>;
  /** Whether the clock stands. */
  frozen(): Promise<boolean>;
  /** Turns the clock forward by milliseconds; returns what it shows then. */
  advance(milliseconds: number): Promise<Date>;
  /** Turns the clock forward to this moment. */
  set(moment: Date): Promise<Date>;
  /** Stops the clock. */
  freeze(): Promise<Date>;
  /** Lets the clock go again. */
  run(): Promise<Date>;
}

/** Saved states of all services: save once, restore before each test. */
export class States {
  private constructor();
  save(state: string): Promise<void>;
  restore(state: string): Promise<void>;
  delete(state: string): Promise<void>;
  list(): Promise<string[]>;
}

/** A run of an explored test. */
export interface ExploredRun {
  /**
   * Runs the clients at the same time, each with its connection string, in the order that is tried.
   * Returns what each of them returned, and throws what one of them threw.
   */
  clients<T>(works: Record<string, (connectionString: string) => Promise<T>>): Promise<Record<string, T>>;
  /**
   * Waits for its turn, where a client does something that the server does not see by itself, such as
   * a rename on a mount. Without `objects` it concerns all.
   */
  step(client: string, name: string, options?: { objects?: string[]; writes?: boolean }): Promise<void>;
}

/** Options of `server.explore`; their names are those of fast-check. */
export interface ExploreOptions {
  /** The most runs; 200 without it. */
  numRuns?: number;
  /** The seed of the random runs at the end of the budget. */
  seed?: number;
  /** Runs this order alone: the `path` of a failure. */
  path?: string;
  /** The most answers that are lost in a run; none without it. */
  drops?: number;
  /** By how many milliseconds the clock may be advanced, each once in a run. */
  advance?: number | number[];
}

/** What a search found. */
export interface RunDetails {
  /** How many orders were run. */
  numRuns: number;
  /** Whether every order that matters was run. */
  complete: boolean;
  /** Why it is not complete, and what else was noted. */
  notes: string[];
  /** The order in which the test failed. */
  path?: string;
  order?: { client: string; operation: string; object: string; choice: string; status?: number }[];
}

/** The admin API, for calls that have no method here: `server.api.get("/leases")`. */
export interface Api {
  readonly url: string;
  readonly token: string | undefined;
  get(path: string, query?: Record<string, unknown>): Promise<any>;
  post(path: string, body?: Record<string, unknown>): Promise<any>;
  put(path: string, body?: Record<string, unknown>): Promise<any>;
  delete(path: string, query?: Record<string, unknown>): Promise<any>;
}

/** The report, with the fields of docs/api.md. */
export interface Report extends Record<string, unknown> {
  requests: number;
  incomplete: boolean;
  findings: ({ level: string; rule: string; object: string; message: string } & Record<string, unknown>)[];
}

/** An event, with the fields of docs/api.md. */
export interface Event extends Record<string, unknown> {
  seq: number;
}

/** A latchfs server for tests: File, Blob, Queue and Table, and what a test controls. */
export class Server implements AsyncDisposable {
  private constructor();

  /**
   * Starts a server with its data in memory, on free ports of this machine. It ends with `close`, and
   * with this process, however that ends.
   */
  static start(options?: StartOptions): Promise<Server>;
  /** Uses the server whose admin address is `url`, such as http://127.0.0.1:10009. */
  static connect(url: string, options?: ConnectOptions): Promise<Server>;

  /** What an SDK is configured with: account, key and the endpoints of all services. */
  readonly connectionString: string;
  /**
   * The connection string of a client with this name, by which events and refusals name it, whatever
   * connections it shares with others. A second call with the name gives the same string.
   */
  client(name: string): Promise<string>;
  /** The URL of each service: `file`, `blob`, `queue`, `table`. */
  readonly endpoints: Record<string, string>;
  /** The name of the storage account. */
  readonly account: string;
  /** The key of the storage account, in base64. */
  readonly key: string;
  /** The admin address: the page in a browser, the API below /api/v1. */
  readonly admin: string;
  /** The process of the server, if this process has started it. */
  readonly pid: number | undefined;
  /** Where the first share is mounted, if it is. */
  readonly mount: string | undefined;
  /** The share that is meant where none is named. */
  readonly share: string;
  readonly api: Api;
  readonly clock: Clock;
  readonly state: States;

  /** The SDK's client of a file. Needs @azure/storage-file-share. */
  file(path: string, options?: { shareName?: string }): Promise<ShareFileClient>;
  /** Stores a file, with the directories above it, and returns the SDK's client of it. */
  put(
    path: string,
    data: string | Uint8Array,
    options?: { shareName?: string },
  ): Promise<ShareFileClient>;
  /** Opens a file as a second client and holds it; throws `Refused` if somebody is in the way. */
  hold(path: string, options?: HoldOptions): Promise<Hold>;
  /** Holds a file while `work` runs. */
  holding<T>(path: string, options: HoldOptions, work: (hold: Hold) => T | Promise<T>): Promise<T>;
  /** Stops requests of an operation (`Put Blob`) on a path (`container/*`) until they are let go. */
  gate(operation?: string, path?: string, options?: GateOptions): Promise<Gate>;
  gate(operation: string | undefined, options: GateOptions): Promise<Gate>;
  /** Has requests fail, come late or lose their answer. */
  fault(operation: string | undefined, path: string | undefined, options: FaultOptions): Promise<Fault>;
  fault(operation: string | undefined, options: FaultOptions): Promise<Fault>;
  /**
   * Calls `test` once for each order of its clients' requests that matters, and throws `RaceFound`
   * where it fails. Each call finds the data that the server has now, sets up what it needs, runs
   * its clients once with `run.clients`, and checks the outcome.
   */
  explore(test: (run: ExploredRun) => Promise<void>, options?: ExploreOptions): Promise<RunDetails>;
  /**
   * Makes the server as it was at its start: no data, holds, gates, faults; the system's time. Saved
   * states stay.
   */
  reset(): Promise<void>;
  /** Explains what stands in the way of a file or an object, as `latchfs why --json` does. */
  why(target: string): Promise<Record<string, unknown>>;
  /** What has happened at the server, oldest first; with `wait` waits for the first one. */
  events(options?: {
    after?: number;
    wait?: number;
    kind?: string;
    service?: string;
  }): Promise<Event[]>;
  /** Sets a mark: a test begins. Its events are those after the number that is returned. */
  mark(test: string): Promise<number>;
  /** The last requests since a mark in order, a line each: who, what, and what came of it. */
  story(mark: number, options?: { last?: number }): Promise<string[]>;
  /**
   * What went wrong between clients, or was never tried, since a mark, such as the name of a test: as
   * `latchfs report --json` has it, with findings of `level` and above.
   */
  report(options?: { since?: string; level?: "error" | "warn" | "hint" }): Promise<Report>;
  /** The open handles of a file, or of all files below a directory. */
  handles(path?: string, options?: { shareName?: string }): Promise<Record<string, unknown>[]>;
  /** Stops a server that was started here, and waits for its end. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
