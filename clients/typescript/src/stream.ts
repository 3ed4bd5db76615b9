import { errorOf, isAbort, type Problem, SettleError } from './errors.js'
import { type Http, pathOf } from './http.js'
import { anyOf } from './wait.js'

/** An event of a watch. */
export type WatchEvent =
  | { event: 'value'; id: string; data: unknown }
  | { event: 'deleted'; id: string }
  | { event: 'stale'; data: string }
  | { event: 'current' }
  | { event: 'rewound' }
  | { event: 'open' } // the worker answers

/** Opens watches. */
export interface Transport {
  /** Delivers the events of a watch. It resolves when the watch ends, and the error is a SettleError if the worker has refused it. */
  watch(space: string, document: string, from: string | undefined, deliver: (e: WatchEvent) => void, signal: AbortSignal): Promise<void>
}

/** A worker that has sent nothing for so long, in milliseconds, counts as lost: there is a heartbeat every second. */
export const silence = 4_000

/** Calls lost when nothing was heard for too long. */
export class Watchdog {
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(private readonly lost: () => void) {
    this.heard()
  }

  heard(): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(this.lost, silence)
  }

  end(): void {
    clearTimeout(this.timer)
  }
}

/** Watches by server-sent events, with a connection for each watch. */
export class SSE implements Transport {
  constructor(private readonly http: Http) {}

  async watch(space: string, document: string, from: string | undefined, deliver: (e: WatchEvent) => void, signal: AbortSignal): Promise<void> {
    const quiet = new AbortController()
    const watchdog = new Watchdog(() => quiet.abort())
    try {
      const path = pathOf(['spaces', space, 'documents', document, 'watch'], { from })
      const answer = await this.http.request(path, { headers: { Accept: 'text/event-stream' }, signal: anyOf(signal, quiet.signal), cache: 'no-store' })
      deliver({ event: 'open' })
      await readLines(answer, watchdog, new Parser(deliver))
    } catch (error) {
      if (!isAbort(error) || signal.aborted) throw error
    } finally {
      watchdog.end()
    }
  }
}

async function readLines(answer: Response, watchdog: Watchdog, parser: Parser): Promise<void> {
  const decoder = new TextDecoder()
  const reader = answer.body!.getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    watchdog.heard()
    const lines = (rest + decoder.decode(value, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) parser.line(line)
  }
}

/** Reads what package gateway writes of server-sent events. */
export class Parser {
  private fields = new Map<string, string>()

  constructor(private readonly deliver: (e: WatchEvent) => void) {}

  line(line: string): void {
    if (line !== '') {
      const colon = line.indexOf(':')
      if (colon > 0) this.fields.set(line.slice(0, colon), line.slice(colon + 1).replace(/^ /, ''))
      return
    }
    const event = this.fields.get('event')
    const id = this.fields.get('id') ?? ''
    const data = this.fields.get('data')
    this.fields.clear()
    if (event !== undefined && data !== undefined) this.event(event, id, JSON.parse(data))
  }

  private event(event: string, id: string, data: unknown): void {
    if (event === 'value') this.deliver({ event, id, data })
    if (event === 'deleted') this.deliver({ event, id })
    if (event === 'stale') this.deliver({ event, data: String(data) })
    if (event === 'current' || event === 'rewound') this.deliver({ event })
  }
}

/** A watch on a socket. */
interface Opened {
  deliver: (e: WatchEvent) => void
  end: (error?: Error) => void
}

/** The part of WebSocket that is used. */
export interface SocketLike {
  onopen: ((e: any) => void) | null
  onmessage: ((e: { data: any }) => void) | null
  onclose: ((e: any) => void) | null
  onerror: ((e: any) => void) | null
  send(data: string): void
  close(): void
}
export type SocketMaker = new (url: string) => SocketLike

/** Watches on one WebSocket, which is open while there are any: a browser opens few connections to a server. */
export class Sockets implements Transport {
  private socket: Promise<Socket> | undefined
  private waiting = 0 // for the socket to open

  constructor(private readonly http: Http, private readonly make: SocketMaker) {}

  async watch(space: string, document: string, from: string | undefined, deliver: (e: WatchEvent) => void, signal: AbortSignal): Promise<void> {
    this.waiting++
    const socket = await (this.socket ??= this.connect()).finally(() => this.waiting--)
    if (signal.aborted && this.waiting === 0) socket.closeIfIdle()
    signal.throwIfAborted()
    await socket.watch({ space, document, ...(from === undefined ? {} : { from }) }, deliver, signal)
  }

  private async connect(): Promise<Socket> {
    const forget = () => (this.socket = undefined)
    try {
      const token = await this.http.tokenNow()
      const url = this.http.base.replace(/^http/, 'ws') + '/v1/watch' + (token && '?access_token=' + encodeURIComponent(token))
      const socket = new Socket(new this.make(url), forget)
      await socket.opened
      return socket
    } catch (error) {
      forget()
      throw error
    }
  }
}

/** The error of a socket that could not be opened: the gateway may refuse it, or something on the way does not know WebSocket. */
export class NoSocket extends Error {}

class Socket {
  readonly opened: Promise<void>
  private readonly watches = new Map<number, Opened>()
  private last = 0
  private dead = false
  private readonly watchdog: Watchdog

  constructor(private readonly socket: SocketLike, private readonly closed: () => void) {
    const watchdog = (this.watchdog = new Watchdog(() => this.close()))
    this.opened = new Promise((resolve, reject) => {
      socket.onopen = () => resolve()
      socket.onclose = () => {
        reject(new NoSocket('the socket could not be opened'))
        this.lose()
      }
      socket.onerror = () => {} // onclose follows
      socket.onmessage = (e) => {
        if (this.dead) return
        watchdog.heard()
        this.hear(JSON.parse(String(e.data)))
      }
    })
  }

  watch(about: { space: string; document: string; from?: string }, deliver: (e: WatchEvent) => void, signal: AbortSignal): Promise<void> {
    if (this.dead) return Promise.resolve() // closed since it was asked for
    const n = ++this.last
    return new Promise((resolve, reject) => {
      const end = (error?: Error) => {
        if (!this.watches.delete(n)) return
        signal.removeEventListener('abort', stop)
        if (error) reject(error)
        else resolve()
        this.closeIfIdle()
      }
      const stop = () => {
        if (this.watches.size > 1) this.socket.send(JSON.stringify({ close: n }))
        end(signal.reason)
      }
      this.watches.set(n, { deliver, end })
      signal.addEventListener('abort', stop)
      this.socket.send(JSON.stringify({ open: n, ...about }))
      deliver({ event: 'open' })
    })
  }

  private hear(m: { watch?: number; event: string; id?: string; data?: unknown }): void {
    const w = this.watches.get(m.watch ?? 0)
    if (!w) return
    if (m.event === 'problem') w.end(errorOf((m.data as Problem).status, m.data))
    else if (m.event === 'value') w.deliver({ event: 'value', id: m.id!, data: m.data })
    else if (m.event === 'deleted') w.deliver({ event: 'deleted', id: m.id! })
    else if (m.event === 'stale') w.deliver({ event: 'stale', data: String(m.data) })
    else if (m.event === 'current' || m.event === 'rewound') w.deliver({ event: m.event })
  }

  /** Closes the socket if it has no watch. */
  closeIfIdle(): void {
    if (this.watches.size === 0) this.close()
  }

  private close(): void {
    this.lose()
    this.socket.close()
  }

  private lose(): void {
    if (this.dead) return // another socket may have taken its place
    this.dead = true
    this.watchdog.end()
    this.closed()
    for (const w of [...this.watches.values()]) w.end()
  }
}

/** Uses sockets, and server-sent events where no socket can be opened. */
export class Either implements Transport {
  private opens = false

  constructor(private readonly sockets: Transport, private readonly sse: Transport) {}

  async watch(space: string, document: string, from: string | undefined, deliver: (e: WatchEvent) => void, signal: AbortSignal): Promise<void> {
    try {
      await this.sockets.watch(space, document, from, (e) => ((this.opens = true), deliver(e)), signal)
    } catch (error) {
      if (!(error instanceof NoSocket) || this.opens) throw error
      await this.sse.watch(space, document, from, deliver, signal)
    }
  }
}

/** Reports whether a watch that has ended with an error is not to be opened again. */
export function isRefusal(error: unknown, renewsToken: boolean): boolean {
  if (!(error instanceof SettleError) || error.status === 429) return false
  return error.status < 500 && !(error.status === 401 && renewsToken)
}
