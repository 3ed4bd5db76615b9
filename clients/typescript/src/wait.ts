const shortest = 250
const longest = 10_000

/** The pause before the next attempt: longer each time, and of another length for each client. */
export function pauseAfter(attempts: number): number {
  return Math.min(longest, shortest * 2 ** Math.min(attempts, 10)) * (0.5 + Math.random() / 2)
}

/** Waits for a time, until the browser is online again, or until the signal, of which the reason is thrown. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (finish: () => void) => () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      globalThis.removeEventListener?.('online', go)
      finish()
    }
    const go = end(resolve)
    const stop = end(() => reject(signal.reason))
    const timer = setTimeout(go, ms)
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop)
    globalThis.addEventListener?.('online', go)
  })
}

/** A signal that follows several others; undefined ones are left out. */
export function anyOf(...signals: (AbortSignal | undefined)[]): AbortSignal {
  return AbortSignal.any(signals.filter((s) => s !== undefined))
}
