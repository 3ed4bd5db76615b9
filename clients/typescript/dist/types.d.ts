/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | {
    [key: string]: Json;
};
/** What a program has: `settle generate ts` writes one for a program. */
export interface Program {
    streams: {
        [stream: string]: {
            payload: unknown;
            result: unknown;
        };
    };
    documents: {
        [document: string]: unknown;
    };
}
/** A program of which nothing is known. */
export interface AnyProgram extends Program {
    streams: {
        [stream: string]: {
            payload: any;
            result: any;
        };
    };
    documents: {
        [document: string]: any;
    };
}
/** The names of streams and documents of a program. */
export type StreamOf<P extends Program> = keyof P['streams'] & string;
export type DocumentOf<P extends Program> = keyof P['documents'] & string;
export type PayloadOf<P extends Program, S extends StreamOf<P>> = P['streams'][S]['payload'];
export type ResultOf<P extends Program, S extends StreamOf<P>> = P['streams'][S]['result'];
export type ValueOf<P extends Program, D extends DocumentOf<P>> = P['documents'][D];
/** A document as a watch has it. */
export interface Update<T> {
    /** The value, with the changes of queued events that have no receipt yet; undefined if there is none. */
    value: T | undefined;
    /** Identifies the value of the server: a later watch goes on from it. undefined before the first one. */
    id: string | undefined;
    /** Whether a worker answers. */
    connected: boolean;
    /** Whether the value of the server is what it should be; false until that is known. */
    current: boolean;
    /** Why it is not current, "" if it is or nothing is known. */
    reason: string;
    /** How many queued events without a receipt are in the value. */
    pending: number;
}
