import { test } from 'node:test'
import type { Client, Space } from '../dist/index.js'
import type { Crate, Depot } from './depot.js'

// The compiler checks what a program in Go takes and has; nothing is run.
export async function typed(client: Client): Promise<void> {
  const s: Space<Depot> = client.space<Depot>('a')
  const crate: Crate = { weight: 1.5, notes: [], at: '2026-11-28T09:00:00Z', 'the label': { A: 1 } }
  const id: string = await s.call('pack', { ...crate, count: 2, sizes: { s: 1 }, within: crate, more: [1] })
  await s.send('empty', undefined)
  const crates = await s.get('crates')
  const weight: number | undefined = crates?.[id]?.within?.weight
  for await (const u of s.watch('heavy')) u.value satisfies Crate[] | undefined
  s.enqueue('pack', crate, { changes: { crates: (all) => ({ ...all, [id]: { ...crate, weight: weight ?? 0 } }) } })
  const load = await s.get(`load-${id}`)
  load satisfies Crate | number | undefined
  // @ts-expect-error no collection has such documents
  await s.get(`cargo-${id}`)
  // @ts-expect-error a field of another type
  await s.send('pack', { ...crate, weight: '1' })
  // @ts-expect-error the result is a string
  const wrong: number = await s.call('pack', crate)
  // @ts-expect-error a trigger has no payload
  await s.send('empty', { wrong })
}

test('the types of a program in Go are those of its Go types', () => {})
