import { type Http } from './http.js';
/** Keeps texts under names: localStorage and sessionStorage do. */
export interface Store {
    readonly length: number;
    key(n: number): string | null;
    getItem(key: string): string | null;
    setItem(key: string, text: string): void;
    removeItem(key: string): void;
}
/** An event to send. */
export interface Outgoing {
    space: string;
    stream: string;
    id: string;
    payload: unknown;
}
/** The answer to an event that is stored. */
export interface Stored {
    event: string;
    /** Whether it was sent before. */
    duplicate: boolean;
}
interface Answer extends Stored {
    outcome?: string;
    result?: unknown;
    pending?: string;
}
/** Returns the event as it is sent, which does not change with its payload. The error says why it cannot be sent. */
export declare function fixed(e: Outgoing): Outgoing;
/** Sends an event once. */
export declare function post(http: Http, e: Outgoing, query: Record<string, string | undefined>, signal: AbortSignal): Promise<Answer>;
/** Sends an event until it is stored, or has a receipt if query has wait; attempts have no effect beyond the first, since they have one id. */
export declare function deliver(http: Http, e: Outgoing, query: Record<string, string | undefined>, timeout: number, signal?: AbortSignal): Promise<Answer>;
/** What follows the events of a queue. */
export interface Follower {
    sending(e: Outgoing): void;
    /** The event was handled. The next one of its space waits for it. */
    handled(e: Outgoing, signal: AbortSignal): Promise<void>;
    dropped(e: Outgoing): void;
}
/** Events that are sent in the order of their space, one at a time, as soon as a worker can be reached. A store has them until they have ended. */
export declare class Queue {
    private readonly http;
    private readonly store;
    private readonly follower;
    private readonly ended;
    private readonly spaces;
    private readonly stop;
    private last;
    constructor(http: Http, store: Store | undefined, follower: Follower, ended: (e: Outgoing, error?: unknown) => void);
    /** The events that an earlier page has left behind, in the order in which they were queued. */
    private left;
    private get prefix();
    /** Adds an event, and returns its result. If it cannot be stored or sent, the error is thrown and nothing is sent. */
    add(given: Outgoing): Promise<unknown>;
    /** The events that have not ended. */
    get pending(): Outgoing[];
    /** Ends sending. What has not ended stays in the store. */
    close(): void;
    private run;
    private drain;
    /** Sends an event until it has ended. The error is that of a client that was closed. */
    private send;
    /** Repeats what has failed for the moment. What is refused for good is left. */
    private again;
    private end;
}
export {};
