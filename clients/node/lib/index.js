// Azure Storage on your own machine, built for testing concurrency.

const { binary } = require("./binary.js");
const { Clock, Fault, Gate, Hold, States } = require("./controls.js");
const {
  ApiError,
  ExploreError,
  LatchfsError,
  RaceFound,
  Refused,
  StartError,
  Stuck,
  WaitTimeout,
} = require("./errors.js");
const { Server } = require("./server.js");


module.exports = {
  ApiError,
  binary,
  Clock,
  ExploreError,
  Fault,
  Gate,
  Hold,
  LatchfsError,
  RaceFound,
  Refused,
  Server,
  StartError,
  States,
  Stuck,
  WaitTimeout,
};
