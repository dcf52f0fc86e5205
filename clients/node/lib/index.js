// Azure Storage on your own machine, built for testing concurrency.

const { binary } = require("./binary.js");
const { Clock, Fault, Gate, Hold, States } = require("./controls.js");
const { ApiError, LatchfsError, Refused, StartError, WaitTimeout } = require("./errors.js");
const { Server } = require("./server.js");

module.exports = {
  ApiError,
  binary,
  Clock,
  Fault,
  Gate,
  Hold,
  LatchfsError,
  Refused,
  Server,
  StartError,
  States,
  WaitTimeout,
};
