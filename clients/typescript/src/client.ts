import { Feed, type Change, updates } from './feed.js'
import { Http, pathOf, type Token } from './http.js'
import { newID } from './ids.js'
import { deliver, Queue, type Outgoing, type Store, type Stored } from './queue.js'
import { SettleError } from './errors.js'
import { Either, SSE, type SocketMaker, Sockets, type Transport } from './stream.js'
import type { AnyProgram, DocumentOf, PayloadOf, Program, ResultOf, StreamOf, Update, ValueOf } from './types.js'
import { anyOf } from './wait.js'

/** Configures a client. */
export interface Options {
  /** The address of a gateway, such as http://127.0.0.1:8470. */
  url: string
  /** The token of a principal, or a function that returns it, which is called for each request. */
  token?: Token
  /** Keeps queued events over a reload of the page, such as localStorage. Without it they are in memory only. */
  store?: Store
  /** How watches reach the client: over one WebSocket where possible ("auto"), or over server-sent events only. */
  watch?: 'auto' | 'sse'
  /** Is called when a queued event has ended: with an error unless it was handled. */
  onEnded?: (event: Outgoing, error?: unknown) => void
  /** Makes requests and sockets; by default fetch and WebSocket, if there is one. */
  fetch?: typeof fetch
  WebSocket?: SocketMaker
}

/** A connection to the gateway of a worker. */
export class Client {
  private readonly http: Http
  private readonly queue: Queue
  private readonly transport: Transport
  private readonly feeds = new Map<string, Feed>()
  private readonly stop = new AbortController()

  constructor(options: Options) {
    this.http = new Http(options.url, options.token, options.fetch ?? ((...args) => globalThis.fetch(...args)))
    const sse = new SSE(this.http)
    const socket = options.WebSocket ?? (globalThis.WebSocket as SocketMaker | undefined)
    this.transport = options.watch === 'sse' || socket === undefined ? sse : new Either(new Sockets(this.http, socket), sse)
    this.queue = new Queue(this.http, options.store, this.follower(), options.onEnded ?? (() => {}))
  }

  /** A space that runs a program P. */
  space<P extends Program = AnyProgram>(name: string): Space<P> {
    return new Space<P>(name, this.http, this.queue, (document) => this.feed(name, document), this.stop.signal)
  }

  /** The spaces that match a pattern, such as "lot-*", in order. */
  async *spaces(pattern = '*', signal?: AbortSignal): AsyncGenerator<string, void, undefined> {
    yield* pages(async (after) => {
      const page = (await this.http.request(pathOf(['spaces'], { spaces: pattern, after, limit: 1000 }), { signal: anyOf(this.stop.signal, signal) }).then((a) => a.json())) as { spaces: string[]; next?: string }
      return { entries: page.spaces, next: page.next }
    })
  }

  /** The queued events that have not ended. */
  get pending(): Outgoing[] {
    return this.queue.pending
  }

  /** Ends watches and the queue, of which the store keeps what has not ended. */
  close(): void {
    this.stop.abort()
    this.queue.close()
  }

  private feed(space: string, document: string): Feed {
    const key = space + '/' + document
    let feed = this.feeds.get(key)
    if (!feed) this.feeds.set(key, (feed = new Feed(this.http, this.transport, space, document)))
    return feed
  }

  private follower() {
    const of = (e: Outgoing) => [...this.feeds].filter(([key]) => key.startsWith(e.space + '/')).map(([, feed]) => feed)
    return {
      sending: (e: Outgoing) => of(e).forEach((f) => f.doubt(e.id)),
      handled: async (e: Outgoing, signal: AbortSignal) => void (await Promise.all(of(e).map((f) => f.confirm(e.id, signal)))),
      dropped: (e: Outgoing) => of(e).forEach((f) => f.settle(e.id)),
    }
  }
}

/** How an event is sent. */
export interface SendOptions {
  /** The id of the event: sent again with the same one, it takes effect once. By default it is a new one. */
  id?: string
  /** The event is handled after this time, such as "90s". */
  after?: string
  /** The event expires after this time. */
  expires?: string
  /** How long to try, in milliseconds; by default 30,000. */
  timeout?: number
  signal?: AbortSignal
}

/** The changes that a queued event is expected to make to documents. */
export type Changes<P extends Program> = { [D in DocumentOf<P>]?: (value: ValueOf<P, D> | undefined) => ValueOf<P, D> | undefined }

/** An event in the queue. */
export interface Enqueued<R> {
  id: string
  /** The result of the handler. It is rejected if the event is not handled. */
  result: Promise<R>
}

/** An entry of a document: a member of an object, or an element of an array, whose key is its index. */
export interface Entry {
  key: string | number
  value: any
}

/** A document in a list. */
export interface Listed {
  document: string
  revision: number
  value: any
  derived?: boolean
}

const patience = 30_000

/** A space. */
export class Space<P extends Program = AnyProgram> {
  constructor(readonly name: string, private readonly http: Http, private readonly queue: Queue, private readonly feed: (document: string) => Feed, private readonly stop: AbortSignal) {}

  /** Sends an event, and returns when it is stored. It tries again with the same id until there is an answer. */
  async send<S extends StreamOf<P>>(stream: S, payload: PayloadOf<P, S>, options: SendOptions = {}): Promise<Stored> {
    const { event, duplicate } = await this.deliver(stream, payload, options, false)
    return { event, duplicate }
  }

  /** Sends an event, and returns the result of its handler. The error is Rejected or NotHandled if there is none, and NoAnswer if it is not known yet. */
  async call<S extends StreamOf<P>>(stream: S, payload: PayloadOf<P, S>, options: SendOptions = {}): Promise<ResultOf<P, S>> {
    return (await this.deliver(stream, payload, options, true)).result as ResultOf<P, S>
  }

  private deliver(stream: string, payload: unknown, o: SendOptions, wait: boolean) {
    const e = { space: this.name, stream, id: o.id ?? newID(), payload }
    return deliver(this.http, e, { after: o.after, expires: o.expires, wait: wait ? 'receipt' : undefined }, o.timeout ?? patience, anyOf(this.stop, o.signal))
  }

  /**
   * Adds an event to the queue, which sends it when a worker can be reached, behind the earlier ones of its space. Until it has a receipt, watches of
   * this client show the changes; if it is not handled, they are rolled back.
   */
  enqueue<S extends StreamOf<P>>(stream: S, payload: PayloadOf<P, S>, options: { id?: string; changes?: Changes<P> } = {}): Enqueued<ResultOf<P, S>> {
    const e = { space: this.name, stream, id: options.id ?? newID(), payload }
    const changes = Object.entries(options.changes ?? {}) as [string, Change][]
    for (const [document, change] of changes) this.feed(document).expect(e.id, change)
    try {
      return { id: e.id, result: this.queue.add(e) as Promise<ResultOf<P, S>> }
    } catch (error) {
      for (const [document] of changes) this.feed(document).settle(e.id)
      throw error
    }
  }

  /** Returns a document as of now, or what is at a path in it; undefined if there is nothing. */
  async get<D extends DocumentOf<P>>(document: D, options?: { timeout?: string; signal?: AbortSignal }): Promise<ValueOf<P, D> | undefined>
  async get(document: DocumentOf<P>, options: { path: string[]; timeout?: string; signal?: AbortSignal }): Promise<any>
  async get(document: string, options: { path?: string[]; timeout?: string; signal?: AbortSignal } = {}): Promise<unknown> {
    try {
      const path = pathOf(['spaces', this.name, 'documents', document], { path: options.path, timeout: options.timeout })
      return await (await this.http.request(path, { signal: anyOf(this.stop, options.signal) })).json()
    } catch (error) {
      if (error instanceof SettleError && error.kind === 'no-document') return undefined
      throw error
    }
  }

  /** The entries of a document, or of what is at a path in it, read in pages. Each page is as of when it is read. */
  async *entries(document: DocumentOf<P>, options: { path?: string[]; order?: 'asc' | 'desc'; after?: string | number; pageSize?: number; signal?: AbortSignal } = {}): AsyncGenerator<Entry, void, undefined> {
    yield* pages(async (after) => {
      const query = { path: options.path, order: options.order, after: after ?? options.after, limit: options.pageSize ?? 1000 }
      return (await this.read(['documents', document], query, options.signal)) as Page<Entry>
    })
  }

  /** The documents of the space as they are in the log, by name, read in pages. Derived ones may be older than their inputs. */
  async *documents(options: { prefix?: string; order?: 'asc' | 'desc'; after?: string; pageSize?: number; signal?: AbortSignal } = {}): AsyncGenerator<Listed, void, undefined> {
    yield* pages(async (after) => {
      const query = { prefix: options.prefix, order: options.order, after: after ?? options.after, limit: options.pageSize ?? 1000 }
      const page = (await this.read(['documents'], query, options.signal)) as { documents: Listed[]; next?: string }
      return { entries: page.documents, next: page.next }
    })
  }

  private async read(names: string[], query: Record<string, string | number | readonly string[] | undefined>, signal: AbortSignal | undefined): Promise<unknown> {
    return (await this.http.request(pathOf(['spaces', this.name, ...names], query), { signal: anyOf(this.stop, signal) })).json()
  }

  /**
   * Delivers a document, and its newest value after each change, until the loop is left or the signal aborts. It goes on by itself after an interruption.
   * from is the id of a value that the caller has: the loop begins behind it.
   */
  watch<D extends DocumentOf<P>>(document: D, options: { from?: string; signal?: AbortSignal } = {}): AsyncGenerator<Update<ValueOf<P, D>>, void, undefined> {
    return updates(this.feed(document), options.from, anyOf(this.stop, options.signal))
  }
}

interface Page<T> {
  entries: T[]
  next?: string | number | undefined
}

/** Goes through pages. */
async function* pages<T>(read: (after: string | number | undefined) => Promise<Page<T>>): AsyncGenerator<T, void, undefined> {
  let after: string | number | undefined
  do {
    const page = await read(after)
    yield* page.entries
    after = page.next
  } while (after !== undefined)
}

