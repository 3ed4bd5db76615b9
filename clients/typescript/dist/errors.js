/** An error that a worker has answered. */
export class SettleError extends Error {
    problem;
    constructor(problem) {
        super(problem.detail || problem.title);
        this.problem = problem;
        this.name = new.target.name;
    }
    /** The type of the problem without the address of its page, such as "no-document". */
    get kind() {
        return this.problem.type.slice(this.problem.type.lastIndexOf('#') + 1);
    }
    get status() {
        return this.problem.status;
    }
}
/** The event has ended, and was not handled: it has failed, was refused or cancelled, or has expired. */
export class NotHandled extends SettleError {
    get event() {
        return String(this.problem['event']);
    }
    get outcome() {
        return String(this.problem['outcome']);
    }
}
/** The handler has rejected the event. */
export class Rejected extends NotHandled {
    get code() {
        return String(this.problem['code']);
    }
    get data() {
        return this.problem['data'];
    }
}
/** There was no answer in time. The event may be stored: send it again under its id. */
export class NoAnswer extends Error {
    event;
    constructor(event, options) {
        super(event ? `no answer in time; event ${event} may be stored: send it again under this id` : 'no answer in time', options);
        this.event = event;
        this.name = 'NoAnswer';
    }
}
/** Makes the error of an answer. */
export function errorOf(status, body) {
    const given = typeof body === 'object' && body !== null ? body : {};
    const problem = { ...given, type: String(given.type ?? 'about:blank'), title: String(given.title ?? `status ${status}`), status, detail: String(given.detail ?? '') };
    if (problem['outcome'] === 'rejected')
        return new Rejected(problem);
    return problem['outcome'] === undefined ? new SettleError(problem) : new NotHandled(problem);
}
/** Makes the error of a request that the worker would refuse. */
export function badRequest(detail) {
    return errorOf(400, { type: '#bad-request', title: 'The request is not valid', detail });
}
/** Reports whether the same request may succeed later. */
export function isTemporary(error) {
    if (error instanceof SettleError)
        return error.status === 429 || error.status >= 500;
    return !isAbort(error);
}
export function isAbort(error) {
    return error instanceof Error && error.name === 'AbortError';
}
