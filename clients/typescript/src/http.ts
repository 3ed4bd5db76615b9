import { badRequest, errorOf } from './errors.js'

/** A token, or a function that returns the one to use now. */
export type Token = string | (() => string | Promise<string>)

/** Makes requests of one gateway. */
export class Http {
  readonly base: string

  constructor(url: string, private readonly token: Token | undefined, private readonly fetcher: typeof fetch) {
    this.base = url.replace(/\/+$/, '')
  }

  async tokenNow(): Promise<string> {
    return typeof this.token === 'function' ? this.token() : (this.token ?? '')
  }

  /** Whether a token that is refused may be followed by another one. */
  get renews(): boolean {
    return typeof this.token === 'function'
  }

  /** Makes a request. The error is a SettleError if a worker has answered with one. */
  async request(path: string, init: RequestInit & { headers?: Record<string, string> } = {}): Promise<Response> {
    const token = await this.tokenNow()
    const headers = { ...init.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) }
    const answer = await this.fetcher(this.base + path, { ...init, headers })
    if (answer.ok) return answer
    const body: unknown = await answer.json().catch(() => undefined)
    throw errorOf(answer.status, body)
  }
}

/** Puts a path together from names, and a query from what is defined. */
export function pathOf(names: string[], query: Record<string, string | number | readonly string[] | undefined> = {}): string {
  for (const name of names) {
    // fetch would make another path of it
    if (name === '' || name === '.' || name === '..') throw badRequest(`"${name}" is no name of a space, a stream or a document`)
  }
  const q = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    for (const one of Array.isArray(value) ? value : [value]) q.append(name, String(one))
  }
  const search = q.toString()
  return '/v1/' + names.map(encodeURIComponent).join('/') + (search && '?' + search)
}
