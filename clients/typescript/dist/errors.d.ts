/** The body of an error (RFC 9457). docs/problems.md of Settle explains the types. */
export interface Problem {
    type: string;
    title: string;
    status: number;
    detail: string;
    [member: string]: unknown;
}
/** An error that a worker has answered. */
export declare class SettleError extends Error {
    readonly problem: Problem;
    constructor(problem: Problem);
    /** The type of the problem without the address of its page, such as "no-document". */
    get kind(): string;
    get status(): number;
}
/** The event has ended, and was not handled: it has failed, was refused or cancelled, or has expired. */
export declare class NotHandled extends SettleError {
    get event(): string;
    get outcome(): string;
}
/** The handler has rejected the event. */
export declare class Rejected extends NotHandled {
    get code(): string;
    get data(): unknown;
}
/** There was no answer in time. The event may be stored: send it again under its id. */
export declare class NoAnswer extends Error {
    readonly event: string;
    constructor(event: string, options?: ErrorOptions);
}
/** Makes the error of an answer. */
export declare function errorOf(status: number, body: unknown): SettleError;
/** Makes the error of a request that the worker would refuse. */
export declare function badRequest(detail: string): SettleError;
/** Reports whether the same request may succeed later. */
export declare function isTemporary(error: unknown): boolean;
export declare function isAbort(error: unknown): boolean;
