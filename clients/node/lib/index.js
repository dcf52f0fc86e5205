// Azure Storage on your own machine, built for testing concurrency.

export { binary } from "./binary.js";
export { Clock, Fault, Gate, Hold, States } from "./controls.js";
export { ApiError, LatchfsError, Refused, StartError, WaitTimeout } from "./errors.js";
export { Server } from "./server.js";
