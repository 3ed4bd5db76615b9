/** A client of Settle over HTTP and WebSocket. docs/clients.md of Settle describes it. */
export { Client, Space } from './client.js';
export { NoAnswer, NotHandled, Rejected, SettleError } from './errors.js';
export { newID } from './ids.js';
