// What can go wrong between a test and its server.

/** The base of all errors of this package. */
class LatchfsError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The server did not start; the message holds what it wrote to standard error. */
class StartError extends LatchfsError {}

/** The admin API refused a call. */
class ApiError extends LatchfsError {
  constructor(status, kind, message) {
    super(message);
    this.status = status;
    this.kind = kind;
  }
}

/** A rule of the service refused, because of somebody else. */
class Refused extends ApiError {
  constructor(status, kind, message, holder) {
    super(status, kind, message);
    this.holder = holder;
  }
}

/** What was waited for has not happened in time. */
class WaitTimeout extends ApiError {}

module.exports = { ApiError, LatchfsError, Refused, StartError, WaitTimeout };
