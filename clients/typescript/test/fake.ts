import { afterEach } from 'node:test'
import { Client, type Options, type SocketLike } from '../dist/index.js'

/** A request that the fake gateway has got. */
export interface Request {
  method: string
  path: string
  query: URLSearchParams
  key: string | null
  token: string | null
  body: unknown
}

/** An open stream of server-sent events. */
export interface Stream {
  request: Request
  write(text: string): void
  end(): void
}

/** The clients of a test, which ends them. */
const clients: Client[] = []
afterEach(() => clients.splice(0).forEach((c) => c.close()))

type Answer = Response | Promise<Response>

/** A gateway that a test answers for. */
export class Gateway {
  readonly requests: Request[] = []
  readonly streams: Stream[] = []
  private waiting: (() => void)[] = []

  constructor(private readonly answer: (r: Request, g: Gateway) => Answer) {}

  readonly fetch = async (input: any, init: any = {}): Promise<Response> => {
    const url = new URL(String(input))
    const headers = new Headers(init.headers)
    const r: Request = {
      method: init.method ?? 'GET', path: url.pathname, query: url.searchParams, key: headers.get('Idempotency-Key'), token: headers.get('Authorization'),
      body: init.body === undefined ? undefined : JSON.parse(init.body),
    }
    this.requests.push(r)
    this.wake()
    const signal = init.signal as AbortSignal | undefined
    signal?.throwIfAborted()
    if (r.path.endsWith('/watch')) return this.stream(r, signal)
    return Promise.race([this.answer(r, this), new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))])
  }

  private async stream(r: Request, signal: AbortSignal | undefined): Promise<Response> {
    const refused = await this.answer(r, this)
    if (!refused.ok) return refused
    const encoder = new TextEncoder()
    const body = new ReadableStream({
      start: (c) => {
        this.streams.push({ request: r, write: (text) => c.enqueue(encoder.encode(text)), end: () => c.close() })
        signal?.addEventListener('abort', () => c.error(signal.reason))
      },
    })
    this.wake()
    return new Response(body, { headers: { 'Content-Type': 'text/event-stream' } })
  }

  wake(): void {
    for (const w of this.waiting.splice(0)) w()
  }

  /** Waits until a condition holds, which it checks after each request. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.waiting.push(resolve))
  }

  client(options: Partial<Options> = {}): Client {
    const client = new Client({ url: 'http://gateway', fetch: this.fetch as typeof fetch, watch: 'sse', ...options })
    clients.push(client)
    return client
  }
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json', ...headers } })
}

export function problem(status: number, kind: string, more: object = {}): Response {
  return json(status, { type: 'https://example/problems.md#' + kind, title: kind, status, detail: 'it is ' + kind, ...more })
}

export function value(id: string, data: unknown): string {
  return `id: ${id}\nevent: value\ndata: ${JSON.stringify(data)}\n\n`
}

/** A store like localStorage. */
export class Memory {
  readonly map = new Map<string, string>()
  full = false
  get length(): number { return this.map.size }
  key(n: number): string | null { return [...this.map.keys()][n] ?? null }
  getItem(key: string): string | null { return this.map.get(key) ?? null }
  removeItem(key: string): void { this.map.delete(key) }
  setItem(key: string, text: string): void {
    if (this.full) throw new Error('the store is full')
    this.map.set(key, text)
  }
}

/** A promise with its functions. */
export function gate<T = void>(): { promise: Promise<T>; open: (v: T) => void } {
  let open!: (v: T) => void
  const promise = new Promise<T>((resolve) => (open = resolve))
  return { promise, open }
}

/** The next value of a loop. */
export async function next<T>(loop: AsyncGenerator<T>): Promise<T> {
  const { value: v, done } = await loop.next()
  if (done) throw new Error('the loop has ended')
  return v as T
}

/** Sockets that a test answers for. */
export function sockets(opens: (n: number) => boolean = () => true) {
  const all: FakeSocket[] = []
  let made = () => {}
  class FakeSocket implements SocketLike {
    onopen: ((e: any) => void) | null = null
    onmessage: ((e: { data: any }) => void) | null = null
    onclose: ((e: any) => void) | null = null
    onerror: ((e: any) => void) | null = null
    readonly sent: any[] = []
    closed = false
    private heard = () => {}
    constructor(readonly url: string) {
      all.push(this)
      made()
      queueMicrotask(() => (opens(all.length) ? this.onopen?.({}) : this.close()))
    }
    send(data: string): void {
      this.sent.push(JSON.parse(data))
      this.heard()
    }
    close(): void {
      this.closed = true
      this.onclose?.({})
    }
    say(m: object): void {
      this.onmessage?.({ data: JSON.stringify(m) })
    }
    async until(n: number): Promise<void> {
      while (this.sent.length < n) await new Promise<void>((resolve) => (this.heard = resolve))
    }
  }
  const until = async (n: number): Promise<FakeSocket> => {
    while (all.length < n) await new Promise<void>((resolve) => (made = resolve))
    return all[n - 1]!
  }
  return { all, until, WebSocket: FakeSocket as unknown as new (url: string) => SocketLike }
}

/** All values of a loop. */
export async function all<T>(loop: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const v of loop) list.push(v)
  return list
}
