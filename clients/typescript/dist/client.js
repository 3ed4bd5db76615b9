import { Feed, updates } from './feed.js';
import { Http, pathOf } from './http.js';
import { newID } from './ids.js';
import { deliver, Queue } from './queue.js';
import { SettleError } from './errors.js';
import { Either, SSE, Sockets } from './stream.js';
import { anyOf } from './wait.js';
/** A connection to the gateway of a worker. */
export class Client {
    http;
    queue;
    transport;
    feeds = new Map();
    stop = new AbortController();
    constructor(options) {
        this.http = new Http(options.url, options.token, options.fetch ?? ((...args) => globalThis.fetch(...args)));
        const sse = new SSE(this.http);
        const socket = options.WebSocket ?? globalThis.WebSocket;
        this.transport = options.watch === 'sse' || socket === undefined ? sse : new Either(new Sockets(this.http, socket), sse);
        this.queue = new Queue(this.http, options.store, this.follower(), options.onEnded ?? (() => { }));
    }
    /** A space that runs a program P. */
    space(name) {
        return new Space(name, this.http, this.queue, (document) => this.feed(name, document), this.stop.signal);
    }
    /** The spaces that match a pattern, such as "lot-*", in order. */
    async *spaces(pattern = '*', signal) {
        yield* pages(async (after) => {
            const page = (await this.http.request(pathOf(['spaces'], { spaces: pattern, after, limit: 1000 }), { signal: anyOf(this.stop.signal, signal) }).then((a) => a.json()));
            return { entries: page.spaces, next: page.next };
        });
    }
    /** The queued events that have not ended. */
    get pending() {
        return this.queue.pending;
    }
    /** Ends watches and the queue, of which the store keeps what has not ended. */
    close() {
        this.stop.abort();
        this.queue.close();
    }
    feed(space, document) {
        const key = space + '/' + document;
        let feed = this.feeds.get(key);
        if (!feed)
            this.feeds.set(key, (feed = new Feed(this.http, this.transport, space, document)));
        return feed;
    }
    follower() {
        const of = (e) => [...this.feeds].filter(([key]) => key.startsWith(e.space + '/')).map(([, feed]) => feed);
        return {
            sending: (e) => of(e).forEach((f) => f.doubt(e.id)),
            handled: async (e, signal) => void (await Promise.all(of(e).map((f) => f.confirm(e.id, signal)))),
            dropped: (e) => of(e).forEach((f) => f.settle(e.id)),
        };
    }
}
const patience = 30_000;
/** A space. */
export class Space {
    name;
    http;
    queue;
    feed;
    stop;
    constructor(name, http, queue, feed, stop) {
        this.name = name;
        this.http = http;
        this.queue = queue;
        this.feed = feed;
        this.stop = stop;
    }
    /** Sends an event, and returns when it is stored. It tries again with the same id until there is an answer. */
    async send(stream, payload, options = {}) {
        const { event, duplicate } = await this.deliver(stream, payload, options, false);
        return { event, duplicate };
    }
    /** Sends an event, and returns the result of its handler. The error is Rejected or NotHandled if there is none, and NoAnswer if it is not known yet. */
    async call(stream, payload, options = {}) {
        return (await this.deliver(stream, payload, options, true)).result;
    }
    deliver(stream, payload, o, wait) {
        const e = { space: this.name, stream, id: o.id ?? newID(), payload };
        return deliver(this.http, e, { after: o.after, expires: o.expires, wait: wait ? 'receipt' : undefined }, o.timeout ?? patience, anyOf(this.stop, o.signal));
    }
    /**
     * Adds an event to the queue, which sends it when a worker can be reached, behind the earlier ones of its space. Until it has a receipt, watches of
     * this client show the changes; if it is not handled, they are rolled back.
     */
    enqueue(stream, payload, options = {}) {
        const e = { space: this.name, stream, id: options.id ?? newID(), payload };
        const changes = Object.entries(options.changes ?? {});
        for (const [document, change] of changes)
            this.feed(document).expect(e.id, change);
        try {
            return { id: e.id, result: this.queue.add(e) };
        }
        catch (error) {
            for (const [document] of changes)
                this.feed(document).settle(e.id);
            throw error;
        }
    }
    async get(document, options = {}) {
        try {
            const path = pathOf(['spaces', this.name, 'documents', document], { path: options.path, timeout: options.timeout });
            return await (await this.http.request(path, { signal: anyOf(this.stop, options.signal) })).json();
        }
        catch (error) {
            if (error instanceof SettleError && error.kind === 'no-document')
                return undefined;
            throw error;
        }
    }
    /** The entries of a document, or of what is at a path in it, read in pages. Each page is as of when it is read. */
    async *entries(document, options = {}) {
        yield* pages(async (after) => {
            const query = { path: options.path, order: options.order, after: after ?? options.after, limit: options.pageSize ?? 1000 };
            return (await this.read(['documents', document], query, options.signal));
        });
    }
    /** The documents of the space as they are in the log, by name, read in pages. Derived ones may be older than their inputs. */
    async *documents(options = {}) {
        yield* pages(async (after) => {
            const query = { prefix: options.prefix, order: options.order, after: after ?? options.after, limit: options.pageSize ?? 1000 };
            const page = (await this.read(['documents'], query, options.signal));
            return { entries: page.documents, next: page.next };
        });
    }
    async read(names, query, signal) {
        return (await this.http.request(pathOf(['spaces', this.name, ...names], query), { signal: anyOf(this.stop, signal) })).json();
    }
    /**
     * Delivers a document, and its newest value after each change, until the loop is left or the signal aborts. It goes on by itself after an interruption.
     * from is the id of a value that the caller has: the loop begins behind it.
     */
    watch(document, options = {}) {
        return updates(this.feed(document), options.from, anyOf(this.stop, options.signal));
    }
}
/** Goes through pages. */
async function* pages(read) {
    let after;
    do {
        const page = await read(after);
        yield* page.entries;
        after = page.next;
    } while (after !== undefined);
}
