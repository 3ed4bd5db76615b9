// A performer of actions: docs/performers.md has the protocol. It needs a connection, and the permissions of the role performer.
import type { Msg, NatsConnection } from "@nats-io/transport-node";

/** A task, as the worker offers it. */
export interface Work {
  action: string;
  /** The same for each attempt, and unique within the space and the action. */
  key: string;
  /** For the service that performs the work: the same for each attempt, and unique over all spaces and deployments. */
  idempotency_key: string;
  /** The id of the event whose handler has started the task. */
  event?: string;
  space: string;
  /** Counts from 1. */
  attempt: number;
  in: unknown;
  queue?: string;
  run?: string;
  /** What an earlier attempt has reported last. */
  progress?: unknown;
  timeout_ms?: number;
  heartbeat_ms: number;
  answer: string;
  cancel: string;
}

/** An error with a type, which a workflow can confirm from others. */
export class WorkError extends Error {
  constructor(
    readonly type: string,
    message: string,
    readonly more: { ancestors?: string[]; detail?: unknown; permanent?: boolean } = {},
  ) {
    super(message);
  }
}

export interface Options {
  action: string;
  /** Takes the tasks of a queue, instead of those that are in none. */
  queue?: string;
  /** How many tasks are performed at a time; default 1. Others are declined. */
  slots?: number;
  /** The prefix of the deployment; default settle. */
  prefix?: string;
  /** Performs a task, and returns its result. It must return when the signal is aborted. */
  perform(work: Work, signal: AbortSignal, progress: (value: unknown) => void): Promise<unknown>;
}

/** The worker does not wait for the task any more. */
class Over extends Error {}

/** Takes work until stop is called, which resolves when the last task has ended. */
export function serve(nc: NatsConnection, options: Options): { stop(): Promise<void> } {
  const prefix = options.prefix ?? "settle";
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();
  const subject = `${prefix}.work.${options.action}` + (options.queue ? `.${options.queue}` : "");
  const sub = nc.subscribe(subject, {
    queue: "performers",
    callback: (err, offer) => {
      if (err || !offer.reply) return;
      if (stopping.signal.aborted || running.size >= (options.slots ?? 1)) {
        nc.publish(offer.reply, JSON.stringify({ busy: true }));
        return;
      }
      const task = take(nc, prefix, offer, options, stopping.signal)
        .catch((e) => console.error(`a task was given up: ${e}`))
        .finally(() => running.delete(task));
      running.add(task);
    },
  });
  return {
    async stop() {
      sub.unsubscribe();
      stopping.abort();
      await Promise.all(running);
    },
  };
}

async function take(nc: NatsConnection, prefix: string, offer: Msg, options: Options, stopping: AbortSignal): Promise<void> {
  const work = offer.json<Work>();
  // The permissions of a performer allow no more either.
  if (!offer.reply?.startsWith(`${prefix}.answer.`) || !work.cancel.startsWith(`${prefix}.cancel.`)) return;
  work.answer = offer.reply;

  const unwanted = new AbortController(); // cancelled, given to another performer, or timed out
  const cancelled = nc.subscribe(work.cancel, { callback: () => unwanted.abort() });
  const timeout = work.timeout_ms ? setTimeout(() => unwanted.abort(), work.timeout_ms) : undefined;
  let beating: NodeJS.Timeout | undefined;
  try {
    await confirm(nc, work, { claim: true }); // do nothing before the worker has accepted the claim
    let progress: unknown;
    let silent = 0;
    beating = setInterval(() => {
      const beat = progress === undefined ? { heartbeat: true } : { heartbeat: true, progress };
      progress = undefined;
      confirm(nc, work, beat).then(
        () => (silent = 0),
        (e) => {
          if (e instanceof Over || ++silent === 3) unwanted.abort();
        },
      );
    }, work.heartbeat_ms);

    let answer: object;
    try {
      const out = await options.perform(work, AbortSignal.any([stopping, unwanted.signal]), (value) => (progress = value));
      answer = { out: out ?? null };
    } catch (e) {
      if (stopping.aborted) answer = { busy: true }; // handed back: another performer gets it, and no attempt is counted
      else answer = { error: e instanceof WorkError ? { type: e.type, message: e.message, ...e.more } : { message: String(e) } };
    }
    clearInterval(beating);
    if (!unwanted.signal.aborted) await report(nc, work, answer);
  } catch (e) {
    if (!(e instanceof Over)) throw e;
  } finally {
    clearInterval(beating);
    clearTimeout(timeout);
    cancelled.unsubscribe();
  }
}

/** Sends an answer, and returns when the worker has accepted it. */
async function confirm(nc: NatsConnection, work: Work, answer: object): Promise<void> {
  const said = (await nc.request(work.answer, JSON.stringify(answer), { timeout: 5000 })).json<{ ok?: boolean; over?: boolean; refused?: string }>();
  if (said.over || said.refused) throw new Over(said.refused ?? "the worker does not wait for the task any more");
}

/** Sends the end of a task until the worker has it: a connection may be interrupted. */
async function report(nc: NatsConnection, work: Work, answer: object): Promise<void> {
  for (let n = 1; ; n++) {
    try {
      return await confirm(nc, work, answer);
    } catch (e) {
      if (e instanceof Over || n === 6 || nc.isClosed()) throw e;
      await new Promise((resolve) => setTimeout(resolve, n * 1000));
    }
  }
}
