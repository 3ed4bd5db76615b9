import { isTemporary, NoAnswer, SettleError } from './errors.js';
import { pathOf } from './http.js';
import { anyOf, pause, pauseAfter } from './wait.js';
/** Returns the event as it is sent, which does not change with its payload. The error says why it cannot be sent. */
export function fixed(e) {
    pathOf(['spaces', e.space, 'streams', e.stream]);
    new Headers({ 'Idempotency-Key': e.id });
    return { space: e.space, stream: e.stream, id: e.id, payload: e.payload === undefined ? undefined : JSON.parse(JSON.stringify(e.payload)) };
}
/** Sends an event once. */
export async function post(http, e, query, signal) {
    const init = {
        method: 'POST',
        headers: { 'Idempotency-Key': e.id, ...(e.payload === undefined ? {} : { 'Content-Type': 'application/json' }) },
        ...(e.payload === undefined ? {} : { body: JSON.stringify(e.payload) }),
        signal,
    };
    const answer = await http.request(pathOf(['spaces', e.space, 'streams', e.stream], query), init);
    return (await answer.json());
}
/** Sends an event until it is stored, or has a receipt if query has wait; attempts have no effect beyond the first, since they have one id. */
export async function deliver(http, e, query, timeout, signal) {
    e = fixed(e);
    const late = AbortSignal.timeout(timeout);
    const both = anyOf(signal, late);
    for (let attempts = 0;; attempts++) {
        try {
            const answer = await post(http, e, query, both);
            if (query['wait'] === undefined || answer.outcome !== undefined)
                return answer;
            attempts = 0;
        }
        catch (error) {
            if (late.aborted && !signal?.aborted)
                throw new NoAnswer(e.id, { cause: error });
            if (both.aborted || !isTemporary(error))
                throw error;
        }
        await pause(pauseAfter(attempts), both).catch((reason) => {
            throw late.aborted && !signal?.aborted ? new NoAnswer(e.id) : reason;
        });
    }
}
const prefix = 'settle-queue:';
/** Events that are sent in the order of their space, one at a time, as soon as a worker can be reached. A store has them until they have ended. */
export class Queue {
    http;
    store;
    follower;
    ended;
    spaces = new Map();
    stop = new AbortController();
    last = 0;
    constructor(http, store, follower, ended) {
        this.http = http;
        this.store = store;
        this.follower = follower;
        this.ended = ended;
        for (const [key, e] of this.left())
            this.run({ ...e, key, resolve: () => { }, reject: () => { } });
    }
    /** The events that an earlier page has left behind, in the order in which they were queued. */
    left() {
        const keys = [];
        for (let i = 0; i < (this.store?.length ?? 0); i++) {
            const key = this.store.key(i);
            if (key?.startsWith(this.prefix))
                keys.push(key);
        }
        const found = [];
        for (const key of keys.sort()) {
            const e = parse(this.store.getItem(key));
            if (e)
                found.push([key, e]);
            else
                this.store.removeItem(key);
        }
        return found;
    }
    get prefix() {
        return prefix + this.http.base + ':';
    }
    /** Adds an event, and returns its result. If it cannot be stored or sent, the error is thrown and nothing is sent. */
    add(given) {
        const e = fixed(given);
        const at = Date.now().toString().padStart(14, '0') + '-' + (this.last++).toString().padStart(6, '0');
        const key = this.prefix + at + '-' + e.id;
        this.store?.setItem(key, JSON.stringify(e));
        const result = new Promise((resolve, reject) => this.run({ ...e, key, resolve, reject }));
        result.catch(() => { }); // the page need not look at it
        return result;
    }
    /** The events that have not ended. */
    get pending() {
        return [...this.spaces.values()].flat().map(({ space, stream, id, payload }) => ({ space, stream, id, payload }));
    }
    /** Ends sending. What has not ended stays in the store. */
    close() {
        this.stop.abort();
    }
    run(q) {
        const waiting = this.spaces.get(q.space);
        if (waiting) {
            waiting.push(q);
            return;
        }
        const events = [q];
        this.spaces.set(q.space, events);
        void this.drain(q.space, events);
    }
    async drain(space, events) {
        while (events.length > 0) {
            const q = events[0];
            try {
                await this.send(q);
            }
            catch (error) {
                if (!this.stop.signal.aborted)
                    throw error;
                for (const left of events)
                    left.reject(new Error(`the client was closed before event ${left.id} has ended`));
                break;
            }
            events.shift();
        }
        this.spaces.delete(space);
    }
    /** Sends an event until it has ended. The error is that of a client that was closed. */
    async send(q) {
        const signal = this.stop.signal;
        this.follower.sending(q);
        for (let attempts = 0;; attempts++) {
            try {
                const answer = await post(this.http, q, { wait: 'receipt' }, signal);
                if (answer.outcome !== undefined) {
                    await this.again(() => this.follower.handled(q, signal));
                    this.follower.dropped(q); // a document that could not be read
                    return this.end(q, () => q.resolve(answer.result));
                }
                attempts = 0;
            }
            catch (error) {
                if (signal.aborted)
                    throw error;
                if (!isTemporary(error) && !(error instanceof SettleError && error.status === 401)) {
                    this.follower.dropped(q);
                    return this.end(q, () => q.reject(error), error);
                }
            }
            await pause(pauseAfter(attempts), signal);
        }
    }
    /** Repeats what has failed for the moment. What is refused for good is left. */
    async again(what) {
        for (let attempts = 0;; attempts++) {
            try {
                return await what();
            }
            catch (error) {
                if (this.stop.signal.aborted)
                    throw error;
                if (!isTemporary(error))
                    return;
            }
            await pause(pauseAfter(attempts), this.stop.signal);
        }
    }
    end(q, tell, error) {
        tell();
        try {
            this.store?.removeItem(q.key);
            this.ended({ space: q.space, stream: q.stream, id: q.id, payload: q.payload }, error);
        }
        catch (failure) {
            globalThis.reportError?.(failure); // the next events are sent all the same
        }
    }
}
/** Reads an event of the store, which other programs may have written to. */
function parse(text) {
    try {
        const e = JSON.parse(text ?? '');
        if (typeof e.space !== 'string' || typeof e.stream !== 'string' || typeof e.id !== 'string')
            return undefined;
        return fixed({ space: e.space, stream: e.stream, id: e.id, payload: e.payload });
    }
    catch {
        return undefined;
    }
}
