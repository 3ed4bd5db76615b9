import { Feed } from './feed.js';
import { Http, type Token } from './http.js';
import { Queue, type Outgoing, type Store, type Stored } from './queue.js';
import { type SocketMaker } from './stream.js';
import type { AnyProgram, DocumentOf, PayloadOf, Program, ResultOf, StreamOf, Update, ValueOf } from './types.js';
/** Configures a client. */
export interface Options {
    /** The address of a gateway, such as http://127.0.0.1:8470. */
    url: string;
    /** The token of a principal, or a function that returns it, which is called for each request. */
    token?: Token;
    /** Keeps queued events over a reload of the page, such as localStorage. Without it they are in memory only. */
    store?: Store;
    /** How watches reach the client: over one WebSocket where possible ("auto"), or over server-sent events only. */
    watch?: 'auto' | 'sse';
    /** Is called when a queued event has ended: with an error unless it was handled. */
    onEnded?: (event: Outgoing, error?: unknown) => void;
    /** Makes requests and sockets; by default fetch and WebSocket, if there is one. */
    fetch?: typeof fetch;
    WebSocket?: SocketMaker;
}
/** A connection to the gateway of a worker. */
export declare class Client {
    private readonly http;
    private readonly queue;
    private readonly transport;
    private readonly feeds;
    private readonly stop;
    constructor(options: Options);
    /** A space that runs a program P. */
    space<P extends Program = AnyProgram>(name: string): Space<P>;
    /** The spaces that match a pattern, such as "lot-*", in order. */
    spaces(pattern?: string, signal?: AbortSignal): AsyncGenerator<string, void, undefined>;
    /** The queued events that have not ended. */
    get pending(): Outgoing[];
    /** Ends watches and the queue, of which the store keeps what has not ended. */
    close(): void;
    private feed;
    private follower;
}
/** How an event is sent. */
export interface SendOptions {
    /** The id of the event: sent again with the same one, it takes effect once. By default it is a new one. */
    id?: string;
    /** The event is handled after this time, such as "90s". */
    after?: string;
    /** The event expires after this time. */
    expires?: string;
    /** How long to try, in milliseconds; by default 30,000. */
    timeout?: number;
    signal?: AbortSignal;
}
/** The changes that a queued event is expected to make to documents. */
export type Changes<P extends Program> = {
    [D in DocumentOf<P>]?: (value: ValueOf<P, D> | undefined) => ValueOf<P, D> | undefined;
};
/** An event in the queue. */
export interface Enqueued<R> {
    id: string;
    /** The result of the handler. It is rejected if the event is not handled. */
    result: Promise<R>;
}
/** An entry of a document: a member of an object, or an element of an array, whose key is its index. */
export interface Entry {
    key: string | number;
    value: any;
}
/** A document in a list. */
export interface Listed {
    document: string;
    revision: number;
    value: any;
    derived?: boolean;
}
/** A space. */
export declare class Space<P extends Program = AnyProgram> {
    readonly name: string;
    private readonly http;
    private readonly queue;
    private readonly feed;
    private readonly stop;
    constructor(name: string, http: Http, queue: Queue, feed: (document: string) => Feed, stop: AbortSignal);
    /** Sends an event, and returns when it is stored. It tries again with the same id until there is an answer. */
    send<S extends StreamOf<P>>(stream: S, payload: PayloadOf<P, S>, options?: SendOptions): Promise<Stored>;
    /** Sends an event, and returns the result of its handler. The error is Rejected or NotHandled if there is none, and NoAnswer if it is not known yet. */
    call<S extends StreamOf<P>>(stream: S, payload: PayloadOf<P, S>, options?: SendOptions): Promise<ResultOf<P, S>>;
    private deliver;
    /**
     * Adds an event to the queue, which sends it when a worker can be reached, behind the earlier ones of its space. Until it has a receipt, watches of
     * this client show the changes; if it is not handled, they are rolled back.
     */
    enqueue<S extends StreamOf<P>>(stream: S, payload: PayloadOf<P, S>, options?: {
        id?: string;
        changes?: Changes<P>;
    }): Enqueued<ResultOf<P, S>>;
    /** Returns a document as of now, or what is at a path in it; undefined if there is nothing. */
    get<D extends DocumentOf<P>>(document: D, options?: {
        timeout?: string;
        signal?: AbortSignal;
    }): Promise<ValueOf<P, D> | undefined>;
    get(document: DocumentOf<P>, options: {
        path: string[];
        timeout?: string;
        signal?: AbortSignal;
    }): Promise<any>;
    /** The entries of a document, or of what is at a path in it, read in pages. Each page is as of when it is read. */
    entries(document: DocumentOf<P>, options?: {
        path?: string[];
        order?: 'asc' | 'desc';
        after?: string | number;
        pageSize?: number;
        signal?: AbortSignal;
    }): AsyncGenerator<Entry, void, undefined>;
    /** The documents of the space as they are in the log, by name, read in pages. Derived ones may be older than their inputs. */
    documents(options?: {
        prefix?: string;
        order?: 'asc' | 'desc';
        after?: string;
        pageSize?: number;
        signal?: AbortSignal;
    }): AsyncGenerator<Listed, void, undefined>;
    private read;
    /**
     * Delivers a document, and its newest value after each change, until the loop is left or the signal aborts. It goes on by itself after an interruption.
     * from is the id of a value that the caller has: the loop begins behind it.
     */
    watch<D extends DocumentOf<P>>(document: D, options?: {
        from?: string;
        signal?: AbortSignal;
    }): AsyncGenerator<Update<ValueOf<P, D>>, void, undefined>;
}
