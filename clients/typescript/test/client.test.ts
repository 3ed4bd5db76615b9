import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newID, NoAnswer, NotHandled, type Program, Rejected, SettleError, type Space } from '../dist/index.js'
import { all, Gateway, gate, json, Memory, next, problem, sockets, value } from './fake.js'

interface Counter extends Program {
  streams: { add: { payload: { by: number }; result: number } }
  documents: { count: number; double: number }
}

const stored = (r: { key: string | null }) => ({ event: r.key, duplicate: false })
const handled = (r: { key: string | null }, result: unknown = 1) => json(200, { ...stored(r), outcome: 'handled', result })

test('send tries again with the same id until there is an answer', async () => {
  const g = new Gateway((r, g) => {
    if (g.requests.length === 1) throw new TypeError('fetch failed')
    return g.requests.length === 2 ? problem(503, 'unavailable') : json(202, stored(r))
  })
  const got = await g.client({ token: 'secret' }).space<Counter>('a b').send('add', { by: 2 }, { after: '90s' })
  assert.equal(g.requests.length, 3)
  assert.deepEqual(new Set(g.requests.map((r) => r.key)), new Set([got.event]))
  assert.match(got.event, /^at-[0-9a-f]{12}-[0-9a-f]{20}$/)
  assert.deepEqual(g.requests[0]!.body, { by: 2 })
  assert.equal(g.requests[0]!.path, '/v1/spaces/a%20b/streams/add')
  assert.equal(g.requests[0]!.query.get('after'), '90s')
  assert.equal(g.requests[0]!.token, 'Bearer secret')
})

test('an id carries the time as those of Settle do', () => {
  assert.match(newID(1_790_000_000_000), /^at-01a0c4506c00-/)
})

test('call returns the result, and waits again for a receipt that is late', async () => {
  const g = new Gateway((r, g) => (g.requests.length === 1 ? json(202, { ...stored(r), pending: 'soon' }) : handled(r, 7)))
  assert.equal(await g.client().space<Counter>('a').call('add', { by: 2 }, { id: 'order-17' }), 7)
  assert.deepEqual(g.requests.map((r) => r.key), ['order-17', 'order-17'])
})

test('what is not handled is an error of its kind', async () => {
  const answers = [
    problem(422, 'rejected', { outcome: 'rejected', event: 'e', code: 'full', data: { free: 0 } }), problem(422, 'failed', { outcome: 'failed', event: 'e' }),
    problem(403, 'forbidden'), new Response('<html>', { status: 404 }),
  ]
  const g = new Gateway(() => answers.shift()!)
  const a = g.client().space('a')
  await assert.rejects(a.call('add', 1), (e) => e instanceof Rejected && e.code === 'full' && (e.data as any).free === 0 && e.message === 'it is rejected')
  await assert.rejects(a.call('add', 1), (e) => e instanceof NotHandled && !(e instanceof Rejected) && e.outcome === 'failed' && e.event === 'e')
  await assert.rejects(a.send('add', 1), (e) => e instanceof SettleError && e.kind === 'forbidden' && e.status === 403)
  await assert.rejects(a.send('add', 1), (e) => e instanceof SettleError && e.status === 404)
})

test('call gives up after its timeout, and names the event', async () => {
  const g = new Gateway(() => problem(503, 'unavailable'))
  await assert.rejects(g.client().space('a').call('add', 1, { id: 'e1', timeout: 20 }), (e) => e instanceof NoAnswer && e.event === 'e1')
  const stop = new AbortController()
  const held = new Gateway(() => new Promise(() => {}))
  const call = held.client().space('a').call('add', 1, { signal: stop.signal })
  stop.abort()
  await assert.rejects(call, { name: 'AbortError' })
})

test('get returns a value or a part, and undefined where there is none', async () => {
  const g = new Gateway((r) => (r.path.endsWith('/double') ? problem(404, 'no-document') : json(200, { n: 1 })))
  const a = g.client().space<Counter>('a')
  assert.deepEqual(await a.get('count', { path: ['lines', 'x/y'] }), { n: 1 })
  assert.deepEqual(g.requests[0]!.query.getAll('path'), ['lines', 'x/y'])
  assert.equal(await a.get('double'), undefined)
})

test('lists are read in pages', async () => {
  const g = new Gateway((r) => {
    const after = r.query.get('after')
    if (r.path === '/v1/spaces') return json(200, after ? { spaces: ['b'] } : { spaces: ['a'], next: 'a' })
    if (r.path.endsWith('/documents')) return json(200, { documents: [{ document: 'd', revision: 1, value: 1 }] })
    return json(200, after === '1' ? { entries: [{ key: 2, value: 'z' }] } : { entries: [{ key: 0, value: 'x' }, { key: 1, value: 'y' }], next: 1 })
  })
  const client = g.client()
  assert.deepEqual(await all(client.spaces('*')), ['a', 'b'])
  assert.deepEqual((await all(client.space('a').entries('list'))).map((e) => e.value), ['x', 'y', 'z'])
  assert.deepEqual((await all(client.space('a').documents({ prefix: 'd' }))).map((d) => d.document), ['d'])
})

test('a watch goes on from the value that it has, and tells whether it is current', async () => {
  const g = new Gateway(() => json(200, null))
  const client = g.client()
  const loop = client.space<Counter>('a').watch('double')
  const first = next(loop)
  await g.until(() => g.streams.length === 1)
  const [one] = g.streams
  one!.write('retry: 1000\n\n: \n\nid: 3-af63af4c8601\neve')
  one!.write('nt: value\ndata: 2\n\n')
  assert.deepEqual(await first, { value: 2, id: '3-af63af4c8601', connected: true, current: false, reason: '', pending: 0 })
  one!.write('event: current\ndata: null\n\n')
  assert.equal((await next(loop)).current, true)
  one!.write('event: stale\ndata: "no light"\n\n')
  const stale = await next(loop)
  assert.deepEqual([stale.current, stale.reason, stale.value], [false, 'no light', 2])
  one!.end()
  const lost = await next(loop)
  assert.deepEqual([lost.connected, lost.current, lost.value], [false, false, 2])
  await g.until(() => g.streams.length === 2)
  assert.equal(g.streams[1]!.request.query.get('from'), '3-af63af4c8601')
  assert.equal((await next(loop)).connected, true)
  g.streams[1]!.write('id: 4-07ee7e07b4b1\nevent: deleted\ndata: null\n\n')
  assert.equal((await next(loop)).value, undefined)
  g.streams[1]!.write('id: 0\nevent: rewound\ndata: null\n\n' + value('2-aaaaaaaaaaaa', 9))
  assert.deepEqual([(await next(loop)).value, g.requests.length], [9, 2])
  client.close()
  assert.equal((await loop.next()).done, true)
})

test('a watch that is refused ends with the error', async () => {
  const g = new Gateway(() => problem(403, 'forbidden'))
  await assert.rejects(next(g.client().space('a').watch('x')), (e) => e instanceof SettleError && e.kind === 'forbidden')
})

test('a client that is closed ends the streams of loops that are busy, too', async () => {
  const g = new Gateway(() => json(200, null))
  const client = g.client()
  const loop = client.space('a').watch('n')
  const first = next(loop)
  await g.until(() => g.streams.length === 1)
  g.streams[0]!.write(value('1-aaaaaaaaaaaa', 1))
  await first
  client.close()
  assert.throws(() => g.streams[0]!.write('x'), 'the stream is still open')
})

test('loops over one document share a stream, which ends with the last of them', async () => {
  const g = new Gateway(() => json(200, null))
  const a = g.client().space('a')
  const loops = [a.watch('n'), a.watch('n')]
  const firsts = loops.map(next)
  await g.until(() => g.streams.length === 1)
  g.streams[0]!.write(value('1-aaaaaaaaaaaa', 1))
  assert.deepEqual((await Promise.all(firsts)).map((u) => u.value), [1, 1])
  const late = a.watch('n')
  assert.equal((await next(late)).value, 1)
  for (const l of [...loops, late]) await l.return()
  assert.throws(() => g.streams[0]!.write('x'), 'the stream is still open')
  assert.equal(g.requests.length, 1)
})

test('the queue sends in order, one event of a space at a time, and keeps what has not ended', async () => {
  const store = new Memory()
  const offline = new Gateway(() => { throw new TypeError('fetch failed') })
  const page = offline.client({ store })
  const ids = [1, 2, 3].map((by) => page.space<Counter>('a').enqueue('add', { by }).id)
  await offline.until(() => offline.requests.length >= 2)
  assert.deepEqual(page.pending.map((e) => e.id), ids)
  page.close()
  assert.equal(store.map.size, 3)
  const ended: string[] = []
  const ends = gate()
  const online = new Gateway((r) => handled(r))
  online.client({ store, onEnded: (e) => ended.push(e.id) === 3 && ends.open() })
  await ends.promise
  assert.deepEqual(ended, ids)
  assert.deepEqual(online.requests.map((r) => [r.key, (r.body as any).by]), ids.map((id, i) => [id, i + 1]))
  assert.equal(store.map.size, 0)
})

test('what others have written to the store is not sent', async () => {
  const store = new Memory()
  store.map.set('settle-queue:http://gateway:1', '{"space":7}')
  store.map.set('settle-queue:http://gateway:2', '{')
  store.map.set('settle-queue:http://other:1', '{"space":"a","stream":"add","id":"x"}')
  const client = new Gateway(() => json(200, null)).client({ store })
  assert.deepEqual(client.pending, [])
  assert.deepEqual([...store.map.keys()], ['settle-queue:http://other:1'])
})

test('an event that cannot be kept is not sent, and its change is not shown', async () => {
  const store = new Memory()
  const g = new Gateway(() => json(200, null))
  const a = g.client({ store }).space<Counter>('a')
  const loop = await counting(g, a)
  store.full = true
  assert.throws(() => a.enqueue('add', { by: 2 }, { changes: { count: (n) => (n ?? 0) + 2 } }), /full/)
  const after = await next(loop)
  assert.deepEqual([after.value, after.pending, g.requests.length], [1, 0, 1])
})

/** Watches a count, which is 1. */
async function counting(g: Gateway, a: Space<Counter>) {
  const loop = a.watch('count')
  const first = next(loop)
  await g.until(() => g.streams.length === 1)
  g.streams[0]!.write(value('1-aaaaaaaaaaaa', 1))
  await first
  return loop
}

test('a loop begins behind the value that the caller has, and others do not', async () => {
  const g = new Gateway(() => json(200, null))
  const a = g.client().space<Counter>('a')
  await counting(g, a)
  const behind = next(a.watch('count', { from: '1-aaaaaaaaaaaa' }))
  assert.equal((await next(a.watch('count'))).value, 1)
  g.streams[0]!.write(value('2-bbbbbbbbbbbb', 2))
  const u = await behind
  assert.deepEqual([u.value, u.id], [2, '2-bbbbbbbbbbbb'])
})

test('a change is shown at once, and is never in a value twice', async () => {
  const receipt = gate<Response>()
  const read = gate<Response>()
  const g = new Gateway((r) => (r.method === 'POST' ? receipt.promise : r.path.endsWith('/count') ? read.promise : json(200, null)))
  const a = g.client().space<Counter>('a')
  const loop = await counting(g, a)
  const { id, result } = a.enqueue('add', { by: 2 }, { changes: { count: (n) => (n ?? 0) + 2 } })
  const expected = await next(loop)
  assert.deepEqual([expected.value, expected.pending], [3, 1])
  g.streams[0]!.write(value('2-bbbbbbbbbbbb', 3)) // the value has the event, and its receipt is not here yet
  g.streams[0]!.write('event: current\ndata: null\n\n')
  const doubtful = await next(loop)
  assert.deepEqual([doubtful.value, doubtful.pending], [3, 1])
  receipt.open(json(200, { event: id, duplicate: false, outcome: 'handled', result: 3 }))
  await g.until(() => g.requests.length === 3)
  g.streams[0]!.write(value('3-cccccccccccc', 10)) // a later event of another client
  read.open(json(200, 3, { ETag: '"2-bbbbbbbbbbbb"' }))
  assert.equal(await result, 3)
  let u = await next(loop)
  while (u.pending > 0) u = await next(loop)
  if (u.value !== 10) u = await next(loop)
  assert.deepEqual([u.value, u.pending, u.id], [10, 0, '3-cccccccccccc'])
})

test('without a value of the watch, the value after the receipt is read', async () => {
  const g = new Gateway((r) => (r.method === 'POST' ? handled(r) : r.path.endsWith('/count') ? json(200, 5, { ETag: '"7-dddddddddddd"' }) : json(200, null)))
  const a = g.client().space<Counter>('a')
  const loop = await counting(g, a)
  const { result } = a.enqueue('add', { by: 2 }, { changes: { count: (n) => (n ?? 0) + 2 } })
  await result
  let u = await next(loop)
  while (u.pending > 0) u = await next(loop)
  assert.deepEqual([u.value, u.id], [5, '7-dddddddddddd'])
})

test('a client that begins offline shows no value, and an update is not one for each try', async () => {
  let offline = true
  const g = new Gateway((r) => {
    if (offline) throw new TypeError('fetch failed')
    return r.method === 'POST' ? handled(r) : json(200, 5, { ETag: '"4-dddddddddddd"' })
  })
  const a = g.client().space<Counter>('a')
  const loop = a.watch('count')[Symbol.asyncIterator]()
  const first = await next(loop)
  assert.deepEqual([first.value, first.connected, first.pending], [undefined, false, 0])
  const { result } = a.enqueue('add', { by: 2 }, { changes: { count: (n) => (n ?? 0) + 2 } })
  const second = await next(loop)
  assert.deepEqual([second.value, second.pending], [undefined, 0])
  const tries = () => g.requests.filter((r) => r.path.endsWith('/watch')).length
  let shown = 0
  const third = next(loop).finally(() => shown++)
  const before = tries()
  await g.until(() => tries() >= before + 3)
  assert.equal(shown, 0)
  offline = false
  await result
  let u = await third
  while (!u.connected) u = await next(loop)
  assert.deepEqual([u.value, u.pending], [5, 0])
})

test('the change of an event that was rejected is rolled back, and the others stay', async () => {
  const rejection = gate<Response>()
  const g = new Gateway((r) => {
    if (r.method !== 'POST') return json(200, null)
    return r.key === 'one' ? rejection.promise : new Promise(() => {})
  })
  const a = g.client().space<Counter>('a')
  const loop = await counting(g, a)
  const one = a.enqueue('add', { by: 2 }, { id: 'one', changes: { count: (n) => (n ?? 0) + 2 } })
  a.enqueue('add', { by: 4 }, { id: 'two', changes: { count: (n) => (n ?? 0) + 4 } })
  assert.equal((await next(loop)).value, 7)
  rejection.open(problem(422, 'rejected', { outcome: 'rejected', event: 'one', code: 'full' }))
  await assert.rejects(one.result, (e) => e instanceof Rejected && e.code === 'full')
  const after = await next(loop)
  assert.deepEqual([after.value, after.pending], [5, 1])
})

test('watches share one socket, and go on after it was lost', async () => {
  const s = sockets()
  const client = new Gateway(() => json(200, null)).client({ watch: 'auto', WebSocket: s.WebSocket, token: 'a b' })
  const loops = ['n', 'm'].map((d) => client.space('a').watch(d))
  const firsts = loops.map(next)
  const one = await s.until(1)
  await one.until(2)
  assert.equal(one.url, 'ws://gateway/v1/watch?access_token=a%20b')
  assert.deepEqual(one.sent, [{ open: 1, space: 'a', document: 'n' }, { open: 2, space: 'a', document: 'm' }])
  one.say({ event: 'heartbeat' })
  one.say({ watch: 2, event: 'value', id: '5-aaaaaaaaaaaa', data: 'm' })
  one.say({ watch: 1, event: 'value', id: '4-aaaaaaaaaaaa', data: 'n' })
  assert.deepEqual((await Promise.all(firsts)).map((u) => u.value), ['n', 'm'])
  one.close()
  const two = await s.until(2)
  await two.until(2)
  assert.deepEqual(new Set(two.sent.map((m) => m.from)), new Set(['4-aaaaaaaaaaaa', '5-aaaaaaaaaaaa']))
  const n = two.sent.find((m) => m.document === 'n').open
  two.say({ watch: n, event: 'problem', data: { type: '#forbidden', title: 'no', status: 403, detail: 'no more' } })
  await assert.rejects(async () => { for (;;) await next(loops[0]!) }, (e) => e instanceof SettleError && e.kind === 'forbidden')
  assert.equal(two.closed, false)
  await loops[1]!.return()
  assert.equal(two.closed, true)
})

test('where no socket can be opened, server-sent events are used', async () => {
  const s = sockets(() => false)
  const g = new Gateway(() => json(200, null))
  const client = g.client({ watch: 'auto', WebSocket: s.WebSocket })
  const loop = client.space('a').watch('n')
  const first = next(loop)
  await g.until(() => g.streams.length === 1)
  g.streams[0]!.write(value('1-aaaaaaaaaaaa', 1))
  assert.equal((await first).value, 1)
  client.close()
})

test('a name cannot lead to another path', async () => {
  const g = new Gateway((r) => handled(r))
  const client = g.client()
  for (const name of ['', '.', '..']) {
    await assert.rejects(client.space(name).send('add', 1), (e) => e instanceof SettleError && e.kind === 'bad-request')
    await assert.rejects(client.space('a').get(name), (e) => e instanceof SettleError && e.kind === 'bad-request')
    assert.throws(() => client.space('a').enqueue(name, 1), (e) => e instanceof SettleError && e.kind === 'bad-request')
  }
  assert.equal(g.requests.length, 0)
})

test('what cannot be sent is an error at once, and the queue goes on', async () => {
  const g = new Gateway((r) => handled(r))
  const a = g.client().space('a')
  for (const [payload, id] of [[10n, 'e'], [1, 'a\nb']] as const) {
    await assert.rejects(a.call('add', payload, { id }), TypeError)
    assert.throws(() => a.enqueue('add', payload, { id }), TypeError)
  }
  await a.enqueue('add', 1).result
})

test('the payload of a queued event is that of when it was queued', async () => {
  const answers = [() => problem(503, 'unavailable'), handled]
  const g = new Gateway((r) => answers.shift()!(r))
  const payload = { by: 1 }
  const { result } = g.client().space<Counter>('a').enqueue('add', payload)
  payload.by = 2
  await result
  assert.deepEqual(g.requests.map((r) => (r.body as any).by), [1, 1])
})

test('a function of the page that fails does not end the queue', async () => {
  const g = new Gateway((r) => handled(r))
  const a = g.client({ onEnded: () => { throw new Error('of the page') } }).space('a')
  const unhandled: unknown[] = []
  const note = (e: unknown) => unhandled.push(e)
  process.on('unhandledRejection', note)
  await a.enqueue('add', 1).result
  await a.enqueue('add', 2).result
  process.off('unhandledRejection', note)
  assert.deepEqual(unhandled, [])
})

test('a change ends with its event, also if the document cannot be read then', async () => {
  const g = new Gateway((r) => (r.method === 'POST' ? handled(r) : r.path.endsWith('/count') ? problem(403, 'forbidden') : json(200, null)))
  const a = g.client().space<Counter>('a')
  const loop = await counting(g, a)
  await a.enqueue('add', { by: 2 }, { changes: { count: (n) => (n ?? 0) + 2 } }).result
  g.streams[0]!.write(value('2-aaaaaaaaaaaa', 3))
  let u = await next(loop)
  while (u.id !== '2-aaaaaaaaaaaa') u = await next(loop)
  assert.deepEqual([u.value, u.pending], [3, 0])
})

test('a change that fails later does not hold values back', async () => {
  const receipt = gate<Response>()
  const g = new Gateway((r) => (r.method === 'POST' ? receipt.promise : r.path.endsWith('/count') ? json(200, 3, { ETag: '"2-aaaaaaaaaaaa"' }) : json(200, null)))
  const a = g.client().space<Counter>('a')
  const loop = await counting(g, a)
  let calls = 0
  const change = (n: number | undefined) => { if (++calls > 1) throw new Error('of the page'); return (n ?? 0) + 2 }
  const { id, result } = a.enqueue('add', { by: 2 }, { changes: { count: change } })
  g.streams[0]!.write('event: current\ndata: null\n\n')
  while ((await next(loop)).pending > 0);
  receipt.open(json(200, { event: id, duplicate: false, outcome: 'handled', result: 3 }))
  await result
  g.streams[0]!.write(value('2-aaaaaaaaaaaa', 3))
  let u = await next(loop)
  while (u.id !== '2-aaaaaaaaaaaa') u = await next(loop)
  assert.equal(u.value, 3)
})

test('a socket that has ended is not that of later watches', async () => {
  const s = sockets()
  const client = new Gateway(() => json(200, null)).client({ watch: 'auto', WebSocket: s.WebSocket })
  const watch = async (document: string, n: number) => {
    const loop = client.space('a').watch(document)
    const first = next(loop)
    const socket = await s.until(n)
    const opened = socket.sent.length + 1
    await socket.until(opened)
    socket.say({ watch: socket.sent.at(-1).open, event: 'value', id: '1-aaaaaaaaaaaa', data: 1 })
    await first
    return loop
  }
  const one = await watch('n', 1)
  const late = s.all[0]!.onclose
  s.all[0]!.onclose = null // a browser reports the end later
  await one.return()
  await watch('m', 2)
  late!({})
  await watch('o', 2)
  assert.equal(s.all.length, 2)
})

test('a watch that is left before its socket opens leaves no socket', async () => {
  const s = sockets()
  const client = new Gateway(() => json(200, null)).client({ watch: 'auto', WebSocket: s.WebSocket })
  const stop = new AbortController()
  const loop = client.space('a').watch('n', { signal: stop.signal })
  const first = loop.next()
  const socket = await s.until(1)
  stop.abort()
  assert.equal((await first).done, true)
  await new Promise((resolve) => setImmediate(resolve)) // all that was to be done is done
  assert.equal(socket.closed, true)
})
