import { type Http } from './http.js';
/** An event of a watch. */
export type WatchEvent = {
    event: 'value';
    id: string;
    data: unknown;
} | {
    event: 'deleted';
    id: string;
} | {
    event: 'stale';
    data: string;
} | {
    event: 'current';
} | {
    event: 'rewound';
} | {
    event: 'open';
};
/** Opens watches. */
export interface Transport {
    /** Delivers the events of a watch. It resolves when the watch ends, and the error is a SettleError if the worker has refused it. */
    watch(space: string, document: string, from: string | undefined, deliver: (e: WatchEvent) => void, signal: AbortSignal): Promise<void>;
}
/** A worker that has sent nothing for so long, in milliseconds, counts as lost: there is a heartbeat every second. */
export declare const silence = 4000;
/** Calls lost when nothing was heard for too long. */
export declare class Watchdog {
    private readonly lost;
    private timer;
    constructor(lost: () => void);
    heard(): void;
    end(): void;
}
/** Watches by server-sent events, with a connection for each watch. */
export declare class SSE implements Transport {
    private readonly http;
    constructor(http: Http);
    watch(space: string, document: string, from: string | undefined, deliver: (e: WatchEvent) => void, signal: AbortSignal): Promise<void>;
}
/** Reads what package gateway writes of server-sent events. */
export declare class Parser {
    private readonly deliver;
    private fields;
    constructor(deliver: (e: WatchEvent) => void);
    line(line: string): void;
    private event;
}
/** The part of WebSocket that is used. */
export interface SocketLike {
    onopen: ((e: any) => void) | null;
    onmessage: ((e: {
        data: any;
    }) => void) | null;
    onclose: ((e: any) => void) | null;
    onerror: ((e: any) => void) | null;
    send(data: string): void;
    close(): void;
}
export type SocketMaker = new (url: string) => SocketLike;
/** Watches on one WebSocket, which is open while there are any: a browser opens few connections to a server. */
export declare class Sockets implements Transport {
    private readonly http;
    private readonly make;
    private socket;
    private waiting;
    constructor(http: Http, make: SocketMaker);
    watch(space: string, document: string, from: string | undefined, deliver: (e: WatchEvent) => void, signal: AbortSignal): Promise<void>;
    private connect;
}
/** The error of a socket that could not be opened: the gateway may refuse it, or something on the way does not know WebSocket. */
export declare class NoSocket extends Error {
}
/** Uses sockets, and server-sent events where no socket can be opened. */
export declare class Either implements Transport {
    private readonly sockets;
    private readonly sse;
    private opens;
    constructor(sockets: Transport, sse: Transport);
    watch(space: string, document: string, from: string | undefined, deliver: (e: WatchEvent) => void, signal: AbortSignal): Promise<void>;
}
/** Reports whether a watch that has ended with an error is not to be opened again. */
export declare function isRefusal(error: unknown, renewsToken: boolean): boolean;
