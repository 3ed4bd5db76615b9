/**
 * Returns an id of its own for an event. It carries the time: after the horizon of the deployment such an event is refused, and so takes
 * effect at most once, however long it has waited in a queue.
 */
export function newID(now: number = Date.now()): string {
  const random = crypto.getRandomValues(new Uint8Array(10))
  const name = Array.from(random, (b) => b.toString(16).padStart(2, '0')).join('')
  return `at-${now.toString(16).padStart(12, '0')}-${name}`
}
