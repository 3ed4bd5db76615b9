/** A token, or a function that returns the one to use now. */
export type Token = string | (() => string | Promise<string>);
/** Makes requests of one gateway. */
export declare class Http {
    private readonly token;
    private readonly fetcher;
    readonly base: string;
    constructor(url: string, token: Token | undefined, fetcher: typeof fetch);
    tokenNow(): Promise<string>;
    /** Whether a token that is refused may be followed by another one. */
    get renews(): boolean;
    /** Makes a request. The error is a SettleError if a worker has answered with one. */
    request(path: string, init?: RequestInit & {
        headers?: Record<string, string>;
    }): Promise<Response>;
}
/** Puts a path together from names, and a query from what is defined. */
export declare function pathOf(names: string[], query?: Record<string, string | number | readonly string[] | undefined>): string;
