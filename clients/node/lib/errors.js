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

/** The search cannot be made: the test does not fit it, or the token does not fit the test. */
class ExploreError extends LatchfsError {}

/** The clients wait for each other, or one of them does not end. */
class Stuck extends LatchfsError {}

/** An explored test fails in an order, which the message shows. */
class RaceFound extends LatchfsError {
  constructor(message, details, options) {
    super(message, options);
    this.details = details;
  }
}

module.exports = {
  ApiError,
  ExploreError,
  LatchfsError,
  RaceFound,
  Refused,
  StartError,
  Stuck,
  WaitTimeout,
};
