import { errorOf, isAbort, SettleError } from './errors.js';
import { pathOf } from './http.js';
import { anyOf } from './wait.js';
/** A worker that has sent nothing for so long, in milliseconds, counts as lost: there is a heartbeat every second. */
export const silence = 4_000;
/** Calls lost when nothing was heard for too long. */
export class Watchdog {
    lost;
    timer;
    constructor(lost) {
        this.lost = lost;
        this.heard();
    }
    heard() {
        clearTimeout(this.timer);
        this.timer = setTimeout(this.lost, silence);
    }
    end() {
        clearTimeout(this.timer);
    }
}
/** Watches by server-sent events, with a connection for each watch. */
export class SSE {
    http;
    constructor(http) {
        this.http = http;
    }
    async watch(space, document, from, deliver, signal) {
        const quiet = new AbortController();
        const watchdog = new Watchdog(() => quiet.abort());
        try {
            const path = pathOf(['spaces', space, 'documents', document, 'watch'], { from });
            const answer = await this.http.request(path, { headers: { Accept: 'text/event-stream' }, signal: anyOf(signal, quiet.signal), cache: 'no-store' });
            deliver({ event: 'open' });
            await readLines(answer, watchdog, new Parser(deliver));
        }
        catch (error) {
            if (!isAbort(error) || signal.aborted)
                throw error;
        }
        finally {
            watchdog.end();
        }
    }
}
async function readLines(answer, watchdog, parser) {
    const decoder = new TextDecoder();
    const reader = answer.body.getReader();
    let rest = '';
    for (;;) {
        const { done, value } = await reader.read();
        if (done)
            return;
        watchdog.heard();
        const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
        rest = lines.pop();
        for (const line of lines)
            parser.line(line);
    }
}
/** Reads what package gateway writes of server-sent events. */
export class Parser {
    deliver;
    fields = new Map();
    constructor(deliver) {
        this.deliver = deliver;
    }
    line(line) {
        if (line !== '') {
            const colon = line.indexOf(':');
            if (colon > 0)
                this.fields.set(line.slice(0, colon), line.slice(colon + 1).replace(/^ /, ''));
            return;
        }
        const event = this.fields.get('event');
        const id = this.fields.get('id') ?? '';
        const data = this.fields.get('data');
        this.fields.clear();
        if (event !== undefined && data !== undefined)
            this.event(event, id, JSON.parse(data));
    }
    event(event, id, data) {
        if (event === 'value')
            this.deliver({ event, id, data });
        if (event === 'deleted')
            this.deliver({ event, id });
        if (event === 'stale')
            this.deliver({ event, data: String(data) });
        if (event === 'current' || event === 'rewound')
            this.deliver({ event });
    }
}
/** Watches on one WebSocket, which is open while there are any: a browser opens few connections to a server. */
export class Sockets {
    http;
    make;
    socket;
    waiting = 0; // for the socket to open
    constructor(http, make) {
        this.http = http;
        this.make = make;
    }
    async watch(space, document, from, deliver, signal) {
        this.waiting++;
        const socket = await (this.socket ??= this.connect()).finally(() => this.waiting--);
        if (signal.aborted && this.waiting === 0)
            socket.closeIfIdle();
        signal.throwIfAborted();
        await socket.watch({ space, document, ...(from === undefined ? {} : { from }) }, deliver, signal);
    }
    async connect() {
        const forget = () => (this.socket = undefined);
        try {
            const token = await this.http.tokenNow();
            const url = this.http.base.replace(/^http/, 'ws') + '/v1/watch' + (token && '?access_token=' + encodeURIComponent(token));
            const socket = new Socket(new this.make(url), forget);
            await socket.opened;
            return socket;
        }
        catch (error) {
            forget();
            throw error;
        }
    }
}
/** The error of a socket that could not be opened: the gateway may refuse it, or something on the way does not know WebSocket. */
export class NoSocket extends Error {
}
class Socket {
    socket;
    closed;
    opened;
    watches = new Map();
    last = 0;
    dead = false;
    watchdog;
    constructor(socket, closed) {
        this.socket = socket;
        this.closed = closed;
        const watchdog = (this.watchdog = new Watchdog(() => this.close()));
        this.opened = new Promise((resolve, reject) => {
            socket.onopen = () => resolve();
            socket.onclose = () => {
                reject(new NoSocket('the socket could not be opened'));
                this.lose();
            };
            socket.onerror = () => { }; // onclose follows
            socket.onmessage = (e) => {
                if (this.dead)
                    return;
                watchdog.heard();
                this.hear(JSON.parse(String(e.data)));
            };
        });
    }
    watch(about, deliver, signal) {
        if (this.dead)
            return Promise.resolve(); // closed since it was asked for
        const n = ++this.last;
        return new Promise((resolve, reject) => {
            const end = (error) => {
                if (!this.watches.delete(n))
                    return;
                signal.removeEventListener('abort', stop);
                if (error)
                    reject(error);
                else
                    resolve();
                this.closeIfIdle();
            };
            const stop = () => {
                if (this.watches.size > 1)
                    this.socket.send(JSON.stringify({ close: n }));
                end(signal.reason);
            };
            this.watches.set(n, { deliver, end });
            signal.addEventListener('abort', stop);
            this.socket.send(JSON.stringify({ open: n, ...about }));
            deliver({ event: 'open' });
        });
    }
    hear(m) {
        const w = this.watches.get(m.watch ?? 0);
        if (!w)
            return;
        if (m.event === 'problem')
            w.end(errorOf(m.data.status, m.data));
        else if (m.event === 'value')
            w.deliver({ event: 'value', id: m.id, data: m.data });
        else if (m.event === 'deleted')
            w.deliver({ event: 'deleted', id: m.id });
        else if (m.event === 'stale')
            w.deliver({ event: 'stale', data: String(m.data) });
        else if (m.event === 'current' || m.event === 'rewound')
            w.deliver({ event: m.event });
    }
    /** Closes the socket if it has no watch. */
    closeIfIdle() {
        if (this.watches.size === 0)
            this.close();
    }
    close() {
        this.lose();
        this.socket.close();
    }
    lose() {
        if (this.dead)
            return; // another socket may have taken its place
        this.dead = true;
        this.watchdog.end();
        this.closed();
        for (const w of [...this.watches.values()])
            w.end();
    }
}
/** Uses sockets, and server-sent events where no socket can be opened. */
export class Either {
    sockets;
    sse;
    opens = false;
    constructor(sockets, sse) {
        this.sockets = sockets;
        this.sse = sse;
    }
    async watch(space, document, from, deliver, signal) {
        try {
            await this.sockets.watch(space, document, from, (e) => ((this.opens = true), deliver(e)), signal);
        }
        catch (error) {
            if (!(error instanceof NoSocket) || this.opens)
                throw error;
            await this.sse.watch(space, document, from, deliver, signal);
        }
    }
}
/** Reports whether a watch that has ended with an error is not to be opened again. */
export function isRefusal(error, renewsToken) {
    if (!(error instanceof SettleError) || error.status === 429)
        return false;
    return error.status < 500 && !(error.status === 401 && renewsToken);
}
