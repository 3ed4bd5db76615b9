/**
 * Returns an id of its own for an event. It carries the time: after the horizon of the deployment such an event is refused, and so takes
 * effect at most once, however long it has waited in a queue.
 */
export declare function newID(now?: number): string;
