/** A client of Settle over HTTP and WebSocket. docs/clients.md of Settle describes it. */
export { type Changes, Client, type Enqueued, type Entry, type Listed, type Options, type SendOptions, Space } from './client.js'
export { NoAnswer, NotHandled, type Problem, Rejected, SettleError } from './errors.js'
export type { Token } from './http.js'
export { newID } from './ids.js'
export type { Outgoing, Store, Stored } from './queue.js'
export type { SocketLike, SocketMaker } from './stream.js'
export type { AnyProgram, DocumentOf, Json, PayloadOf, Program, ResultOf, StreamOf, Update, ValueOf } from './types.js'
