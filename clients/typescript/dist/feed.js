import { SettleError } from './errors.js';
import { pathOf } from './http.js';
import { isRefusal } from './stream.js';
import { pause, pauseAfter } from './wait.js';
/** One document that is watched, for all its watchers, with the changes of queued events that have no receipt. */
export class Feed {
    http;
    transport;
    space;
    document;
    watchers = new Set();
    changes = new Map(); // by event
    base = { value: undefined, id: undefined };
    newest; // received while an event was in doubt
    inDoubt; // the event that was sent, and may be part of what is received now
    known = false; // whether there is a first value
    connected = false;
    current = false;
    reason = '';
    stop;
    constructor(http, transport, space, document) {
        this.http = http;
        this.transport = transport;
        this.space = space;
        this.document = document;
    }
    /** Calls watcher with each update, and with an error at the end if the worker refuses the watch, until the returned function is called. */
    add(watcher) {
        this.watchers.add(watcher);
        if (this.stop === undefined) {
            this.stop = new AbortController();
            void this.run(this.stop.signal);
        }
        else if (this.known || this.reason) {
            watcher(this.update());
        }
        return () => {
            if (!this.watchers.delete(watcher) || this.watchers.size > 0)
                return;
            this.stop?.abort();
            this.reset();
        };
    }
    reset() {
        this.stop = undefined;
        this.base = { value: undefined, id: undefined };
        this.newest = undefined;
        this.known = this.connected = this.current = false;
        this.reason = '';
    }
    /** Whether the document is watched. */
    get watched() {
        return this.stop !== undefined;
    }
    /** Shows a change until settle is called for its event. */
    expect(event, change) {
        this.changes.set(event, change);
        this.show();
    }
    /** Holds values back from now on: they may have the effect of the event already, and its change would be in them twice. */
    doubt(event) {
        if (this.changes.has(event))
            this.inDoubt = event;
    }
    /** Ends the change of an event: its effect is in the value of the server, or it has none. */
    settle(event) {
        const had = this.changes.delete(event); // unless it has failed
        const doubted = this.inDoubt === event;
        if (doubted)
            this.release();
        if (had || doubted)
            this.show();
    }
    /** Reads the document as it is after the receipt of an event, and ends the change of the event. */
    async confirm(event, signal) {
        if (this.changes.has(event) && this.watched) {
            const before = this.newest;
            const read = await this.read(signal);
            const newest = this.newest;
            const older = newest === undefined || isNewer(read, newest) || (read.id === undefined && newest === before);
            if (older)
                this.newest = read;
        }
        this.settle(event);
    }
    async read(signal) {
        try {
            const answer = await this.http.request(pathOf(['spaces', this.space, 'documents', this.document]), { signal, cache: 'no-store' });
            return { value: await answer.json(), id: answer.headers.get('ETag')?.replaceAll('"', '') };
        }
        catch (error) {
            if (error instanceof SettleError && error.kind === 'no-document')
                return { value: undefined, id: undefined };
            throw error;
        }
    }
    release() {
        this.inDoubt = undefined;
        if (this.newest === undefined)
            return;
        // Without an id, a value may be older than what the watch goes on from.
        this.base = { value: this.newest.value, id: this.newest.id ?? this.base.id };
        this.newest = undefined;
        this.known = true;
    }
    async run(signal) {
        for (let attempts = 0; !signal.aborted; attempts++) {
            try {
                await this.transport.watch(this.space, this.document, (this.newest ?? this.base).id, (e) => {
                    if (signal.aborted)
                        return;
                    attempts = 0;
                    this.hear(e);
                }, signal);
            }
            catch (error) {
                if (signal.aborted)
                    return;
                if (isRefusal(error, this.http.renews))
                    return this.refuse(error);
            }
            if (signal.aborted)
                return;
            this.lost();
            await pause(pauseAfter(attempts), signal).catch(() => { });
        }
    }
    refuse(error) {
        const watchers = [...this.watchers];
        this.watchers.clear();
        this.reset();
        for (const w of watchers)
            w(this.update(), error);
    }
    lost() {
        if (!this.connected && this.reason === 'no worker answers')
            return; // each try would be an update
        this.connected = this.current = false;
        this.reason = 'no worker answers';
        this.show();
    }
    hear(e) {
        switch (e.event) {
            case 'open':
                this.connected = true;
                if (this.reason === 'no worker answers')
                    this.reason = '';
                if (!this.known)
                    return;
                break;
            case 'value':
            case 'deleted':
                this.receive({ value: e.event === 'value' ? e.data : undefined, id: e.id });
                break;
            case 'stale':
                this.current = false;
                this.reason = e.data;
                break;
            case 'current':
                this.current = true;
                this.reason = '';
                break;
            case 'rewound':
                this.base.id = undefined;
                this.newest = undefined;
                return;
        }
        this.show();
    }
    receive(value) {
        if (this.inDoubt !== undefined) {
            this.newest = value;
            return;
        }
        this.base = value;
        this.known = true;
    }
    show() {
        if (!this.known && this.reason === '' && !this.current)
            return;
        const u = this.update();
        for (const w of [...this.watchers])
            w(u);
    }
    update() {
        let value = this.base.value;
        for (const [event, change] of this.known ? [...this.changes] : []) {
            try {
                value = change(value);
            }
            catch (error) {
                this.changes.delete(event); // it is not of this value; the event itself takes effect
                globalThis.reportError?.(error);
            }
        }
        return { value, id: this.base.id, connected: this.connected, current: this.current, reason: this.reason, pending: this.known ? this.changes.size : 0 };
    }
}
/** Reports whether one value has a later revision than another. */
function isNewer(a, b) {
    return a.id !== undefined && b.id !== undefined && Number.parseInt(a.id) > Number.parseInt(b.id);
}
/** The newest update of a feed, for one loop: a loop that is slow gets the newest, and not each one in between. One that has a value begins behind it. */
export async function* updates(feed, from, signal) {
    let newest;
    let ended;
    let begun = false;
    let wake = () => { };
    const end = feed.add((u, error) => {
        const isKnown = from !== undefined && u.id === from && u.pending === 0;
        if (error)
            ended = { error };
        else if (begun || !isKnown) {
            newest = u;
            begun = true;
        }
        wake();
    });
    const abort = () => {
        end(); // the loop may be busy, or never ask again
        wake();
    };
    signal.addEventListener('abort', abort);
    try {
        while (!signal.aborted) {
            if (newest) {
                const u = newest;
                newest = undefined;
                yield u;
            }
            else if (ended)
                throw ended.error;
            else
                await new Promise((resolve) => (wake = resolve));
        }
    }
    finally {
        signal.removeEventListener('abort', abort);
        end();
    }
}
