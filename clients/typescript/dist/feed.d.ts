import { type Http } from './http.js';
import { type Transport } from './stream.js';
import type { Update } from './types.js';
/** What a queued event is expected to do to a document. It returns the new value and does not change the old one. */
export type Change = (value: any) => unknown;
/** One document that is watched, for all its watchers, with the changes of queued events that have no receipt. */
export declare class Feed {
    private readonly http;
    private readonly transport;
    private readonly space;
    private readonly document;
    private readonly watchers;
    private readonly changes;
    private base;
    private newest;
    private inDoubt;
    private known;
    private connected;
    private current;
    private reason;
    private stop;
    constructor(http: Http, transport: Transport, space: string, document: string);
    /** Calls watcher with each update, and with an error at the end if the worker refuses the watch, until the returned function is called. */
    add(watcher: (u: Update<any>, error?: unknown) => void): () => void;
    private reset;
    /** Whether the document is watched. */
    get watched(): boolean;
    /** Shows a change until settle is called for its event. */
    expect(event: string, change: Change): void;
    /** Holds values back from now on: they may have the effect of the event already, and its change would be in them twice. */
    doubt(event: string): void;
    /** Ends the change of an event: its effect is in the value of the server, or it has none. */
    settle(event: string): void;
    /** Reads the document as it is after the receipt of an event, and ends the change of the event. */
    confirm(event: string, signal: AbortSignal): Promise<void>;
    private read;
    private release;
    private run;
    private refuse;
    private lost;
    private hear;
    private receive;
    private show;
    private update;
}
/** The newest update of a feed, for one loop: a loop that is slow gets the newest, and not each one in between. One that has a value begins behind it. */
export declare function updates(feed: Feed, from: string | undefined, signal: AbortSignal): AsyncGenerator<Update<any>, void, undefined>;
