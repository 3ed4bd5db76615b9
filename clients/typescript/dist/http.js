import { badRequest, errorOf } from './errors.js';
/** Makes requests of one gateway. */
export class Http {
    token;
    fetcher;
    base;
    constructor(url, token, fetcher) {
        this.token = token;
        this.fetcher = fetcher;
        this.base = url.replace(/\/+$/, '');
    }
    async tokenNow() {
        return typeof this.token === 'function' ? this.token() : (this.token ?? '');
    }
    /** Whether a token that is refused may be followed by another one. */
    get renews() {
        return typeof this.token === 'function';
    }
    /** Makes a request. The error is a SettleError if a worker has answered with one. */
    async request(path, init = {}) {
        const token = await this.tokenNow();
        const headers = { ...init.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
        const answer = await this.fetcher(this.base + path, { ...init, headers });
        if (answer.ok)
            return answer;
        const body = await answer.json().catch(() => undefined);
        throw errorOf(answer.status, body);
    }
}
/** Puts a path together from names, and a query from what is defined. */
export function pathOf(names, query = {}) {
    for (const name of names) {
        // fetch would make another path of it
        if (name === '' || name === '.' || name === '..')
            throw badRequest(`"${name}" is no name of a space, a stream or a document`);
    }
    const q = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
        if (value === undefined)
            continue;
        for (const one of Array.isArray(value) ? value : [value])
            q.append(name, String(one));
    }
    const search = q.toString();
    return '/v1/' + names.map(encodeURIComponent).join('/') + (search && '?' + search);
}
