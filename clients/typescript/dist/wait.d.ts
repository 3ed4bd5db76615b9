/** The pause before the next attempt: longer each time, and of another length for each client. */
export declare function pauseAfter(attempts: number): number;
/** Waits for a time, until the browser is online again, or until the signal, of which the reason is thrown. */
export declare function pause(ms: number, signal: AbortSignal): Promise<void>;
/** A signal that follows several others; undefined ones are left out. */
export declare function anyOf(...signals: (AbortSignal | undefined)[]): AbortSignal;
