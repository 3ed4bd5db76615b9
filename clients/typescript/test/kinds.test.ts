import { test } from 'node:test'
import type { Client, Space } from '../dist/index.js'
import type { Kinds } from './kinds.js'

// The compiler checks what a program takes; nothing is run.
export async function typed(client: Client): Promise<void> {
  const s: Space<Kinds> = client.space<Kinds>('a')
  const all = { s: 'x', i: 1, b: true, a: null, d: {}, l: [{ 'x y': 1 }], '2nd': 'x', s_: 'x' }
  await s.send('all-of-it', all)
  await s.send('all-of-it', { ...all, f: null, o: { 'in-ner': ['x'] } })
  await s.call('number', 1)
  await s.send('total', undefined)
  s.enqueue('list', ['x'], { changes: { total: (n) => n ?? 0 } })
  for await (const u of s.watch('twice')) u.value satisfies Kinds['documents']['twice'] | undefined
  // @ts-expect-error a payload of another type
  await s.call('number', 'x')
  // @ts-expect-error a field that is missing
  await s.send('all-of-it', { ...all, s: undefined })
  // @ts-expect-error no such stream
  await s.send('nosuch', 1)
  // @ts-expect-error no such document
  s.watch('nosuch')
}

test('the types of a generated program are those of its schemas', () => {})
