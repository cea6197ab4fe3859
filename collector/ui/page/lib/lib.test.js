// node --test: the parts that need no browser.

import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { ask, stream, turns } from './api.js'
import { columnIndex, completion, patternTerm, splitPipes, term, toggleTerm, toggleValue } from './expr.js'
import { Big, fieldsOf, head, parseLine, parseOffsetLine, severityOf, short, visible } from './line.js'
import { overTime, best } from './pivot.js'
import { sample, Screen, Tail } from './tail.js'
import { duration, justAfter, rangeLabel, resolve } from './time.js'
import { formatPlace, parsePlace } from './url.js'

test('the filter and the pipes of an expression', () => {
  for (const [q, filter, pipes] of [
    ['', '', ''], ['a b', 'a b', ''], ['a | top 5 b | limit 2', 'a', '| top 5 b | limit 2'],
    ['msg="a|b" | limit 1', 'msg="a|b"', '| limit 1'], ['re"a|b\\"|"', 're"a|b\\"|"', ''], ['| patterns', '', '| patterns'],
  ]) assert.deepEqual(splitPipes(q), { filter, pipes }, q)
})

test('terms of values', () => {
  for (const [field, value, want] of [
    ['service', 'payment-api', 'service=payment-api'], ['code', '42', 'code="42"'], ['code', 42, 'code=42'], ['a b', 'x y', '"a b"="x y"'],
    ['not', 'or', '"not"="or"'], ['ok', true, 'ok=true'], ['x', null, 'x!=*'], ['id', new Big('9007199254740993'), 'id=9007199254740993'],
    ['msg', 'a "b"\n', 'msg="a \\"b\\"\\n"'], ['x', '', 'x=""'], ['x', 'a*', 'x="a*"'],
  ]) assert.equal(term(field, value), want)
  assert.equal(term('a', 'b', true), 'a!=b')
  assert.equal(term('a', null, true), 'a=*')
})

test('values are added, excluded and taken away again', () => {
  for (const [q, field, value, exclude, want] of [
    ['', 'a', 'b', false, 'a=b'], ['x', 'a', 'b', false, 'x a=b'], ['x a=b', 'a', 'b', false, 'x'], ['a=b x', 'a', 'b', true, 'x a!=b'],
    ['x or y', 'a', 'b', false, '(x or y) a=b'], ['x | top 5 y', 'a', 'b', false, 'x a=b | top 5 y'], ['x and a=b and y', 'a', 'b', false, 'x and y'],
    ['a = b', 'a', 'b', false, ''], ['(a=b or c)', 'a', 'b', false, '((a=b or c)) a=b'], ['not a=b', 'a', 'b', false, 'not a=b a=b'], ['a=b or c', 'a', 'b', true, '(a=b or c) a!=b'],
  ]) assert.equal(toggleValue(q, field, value, exclude), want, q)
})

test('terms of patterns', () => {
  assert.equal(patternTerm('out of memory'), 'msg="out of memory"')
  assert.equal(patternTerm('took <num> ms (<id>)'), 'msg=~"(?s)^took .+ ms \\(.+\\)$"')
  assert.equal(patternTerm('said "<str>"', true), 'msg!=~"(?s)^said .+$"')
  assert.equal(patternTerm('a'.repeat(200) + '<num>' + 'b'.repeat(100)), `msg~"${'a'.repeat(200)}" msg~"${'b'.repeat(100)}"`)
  assert.equal(toggleTerm(toggleTerm('x', patternTerm('a <num>')), patternTerm('a <num>')), 'x')
})

test('what comes next', () => {
  for (const [q, kind, field, prefix] of [
    ['serv', 'field', '', 'serv'], ['service=', 'value', 'service', ''], ['a service=pa', 'value', 'service', 'pa'], ['a -serv', 'field', '', 'serv'],
    ['a | st', 'pipe', '', 'st'], ['level in (err', 'value', 'level', 'err'], ['level not in (a, b', 'value', 'level', 'b'], ['"a b"="x', 'value', 'a b', '"x'], ['a=b ', 'field', '', ''],
  ]) {
    const got = completion(q, q.length)
    assert.deepEqual([got.kind, got.field, got.prefix], [kind, field, prefix], q)
  }
})

test('columns count characters', () => {
  assert.equal(columnIndex('😀 x', 3), 3)
  assert.equal(columnIndex('abc', 9), 3)
})

test('lines', () => {
  const line = parseOffsetLine('{"offset":7,"line":{"time":"2026-05-28T12:40:00.250000000Z","level":"WARN+1","msg":"m","error":{"type":"T"},"attrs":{"a":{"b":1},"level":"x","id":5}}}')
  assert.equal(line.offset, 7)
  assert.equal(line.severity, 'warn')
  assert.deepEqual(fieldsOf(line).map(([name, value]) => `${name}=${value}`), ['time=2026-05-28T12:40:00.250000000Z', 'level=WARN+1', 'msg=m', 'error.type=T', 'a.b=1', 'attrs.level=x', 'id=5'])
  assert.equal(parseLine('no json').msg, 'no json')
  assert.deepEqual(['INFO+2', 'FATAL', 'ERROR+1', 'NULL'].map(severityOf), ['notice', 'fatal', 'error', 'none'])
  assert.equal(visible('a\u202eb\x1b\tc'), 'a‹202E›b␛\tc')
  assert.equal(head('abcdef', 3), 'abc…')
  assert.deepEqual([999, 12345, 1.5e6, 0.25].map(short), ['999', '12.3 k', '1.5 M', '0.25'])
})

test('times', () => {
  assert.deepEqual([duration('1d12h'), duration('15m'), duration('x')], [1296e5, 9e5, NaN])
  assert.equal(justAfter('2026-05-28T12:40:00.250000000Z'), '2026-05-28T12:40:00.250000001Z')
  assert.equal(justAfter('2026-05-28T12:40:59.999999999Z'), '2026-05-28T12:41:00.000Z')
  const now = Date.parse('2026-05-28T12:00:00Z')
  assert.deepEqual(resolve('1h', '', now).params, { since: '2026-05-28T11:00:00.000Z' })
  assert.deepEqual(resolve('all', '', now).params, {})
  assert.deepEqual(resolve('nonsense', '', now).params, { since: 'nonsense' })
  assert.deepEqual(resolve('2026-05-28T10:00:00Z', '2026-05-28T11:00:00Z', now).params, { since: '2026-05-28T10:00:00Z', until: '2026-05-28T11:00:00Z' })
  assert.equal(rangeLabel('2026-05-28T10:00:00Z', '', true), '2026-05-28 10:00 – now')
})

test('a place survives its URL', () => {
  for (const place of [
    { view: 'search', q: '', since: '1h', until: '', state: {} },
    { view: 'stats', q: 'a="b&c#?=%" | top 5 x', since: 'all', until: '', state: { as: 'bar' } },
    { view: 'search', q: 'ü', since: '2026-05-28T10:00:00Z', until: '2026-05-28T11:00:00Z', state: { line: '7' } },
  ]) assert.deepEqual(parsePlace(formatPlace(place), 'search'), place)
})

test('series over time', () => {
  const table = { matched: 9, columns: ['level', 'time', 'count'], rows: [['INFO', '2026-05-28T12:00:00Z', 5], ['WARN', '2026-05-28T12:00:00Z', 1], ['INFO', '2026-05-28T12:02:00Z', 3], ['INFO', '2026-05-28T12:03:00Z', 3]] }
  const { times, series } = overTime(table)
  assert.equal(times.length, 4) // with the minute without rows
  assert.deepEqual(series, [{ name: 'INFO', values: [5, null, 3, 3], sum: 11 }, { name: 'WARN', values: [1, null, null, null], sum: 1 }])
  assert.equal(best(table), 'bar')
  assert.equal(best({ matched: 1, columns: ['http.status', 'count'], rows: [[200, 5], [500, 2]] }), 'bar')
  assert.equal(best({ matched: 1, columns: ['msg', 'service'], rows: [['a', 'b']] }), 'table')
})

test('what is too much is sampled evenly, and what waits is bounded', () => {
  assert.deepEqual(sample([1, 2, 3, 4, 5, 6], 3), [2, 4, 6])
  assert.deepEqual(sample([1, 2], 3), [1, 2])
  const screen = new Screen(5, 1000)
  const lines = (/** @type {number} */ from, /** @type {number} */ n) => Array.from({ length: n }, (_, i) => parseLine('{"msg":"x"}', from + i))
  screen.add(lines(0, 4), false)
  screen.add(lines(4, 8), true)
  assert.deepEqual([screen.shown.length, screen.waiting.length, screen.held], [4, 5, 8])
  screen.release()
  assert.deepEqual([screen.shown.map((l) => l.offset), screen.held], [[7, 8, 9, 10, 11], 0])
  screen.add([parseLine(`{"msg":"${'x'.repeat(2000)}"}`, 12)], false)
  assert.deepEqual(screen.shown.map((l) => l.offset), [12]) // one is shown, however long
})

test('a filter of a screen leaves what it hides', () => {
  const screen = new Screen()
  screen.add(['a 1', 'b', 'A 2'].map((msg, i) => parseLine(JSON.stringify({ msg }), i)), false)
  screen.add([parseLine('{"msg":"a 3"}', 3)], true)
  const some = screen.having('a ')
  assert.deepEqual([some.shown.map((l) => l.msg), some.held, screen.shown.length], [['a 1', 'A 2'], 1, 3])
})

test('parts of figures that come before a frame are drawn once, and none after the whole', async () => {
  /** @type {(() => void)[]} */
  const frames = []
  /** @type {ReadableStreamDefaultController} */
  let to
  const global = /** @type {any} */ (globalThis)
  global.location = { href: 'data:/ui/' }
  global.requestAnimationFrame = (/** @type {() => void} */ f) => frames.push(f)
  global.cancelAnimationFrame = (/** @type {number} */ n) => delete frames[n - 1]
  global.fetch = async () => new Response(new ReadableStream({ start: (c) => { to = c } }))
  /** @type {number[]} */
  const drawn = []
  const answer = stream('/api/hits', {}, { onPartial: (n) => drawn.push(n) })
  const send = async (/** @type {string} */ event, /** @type {number} */ n) => {
    to.enqueue(new TextEncoder().encode(`event: ${event}\ndata: ${n}\n\n`))
    for (let i = 0; i < 20; i++) await new Promise(setImmediate)
  }
  await new Promise(setImmediate)
  for (const n of [1, 2, 3]) await send('partial', n)
  assert.deepEqual([drawn, frames.length], [[], 1])
  frames[0]?.()
  for (const n of [4, 5]) await send('partial', n)
  await send('done', 6)
  to.close()
  assert.equal(await answer, 6)
  frames.forEach((draw, i) => i > 0 && draw())
  assert.deepEqual(drawn, [3])
})

/** Calls f while a millisecond is a second of the timers that it sees. @param {() => Promise<void>} f */
async function quickly(f) {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const turn = setInterval(() => mock.timers.tick(1000), 1)
  try {
    await f()
  } finally {
    clearInterval(turn)
    mock.timers.reset()
  }
}

for (const { name, after, refused, asked, patient = true, stop = 0, status = 0 } of [
  { name: 'waits for its turn', after: '2', refused: 3, asked: 4 },
  { name: 'gives up', after: '1', refused: 99, asked: 5, status: 429 },
  { name: 'does not wait for long', after: '11', refused: 99, asked: 1, status: 429 },
  { name: 'is not asked again without a time', after: '', refused: 99, asked: 1, status: 429 },
  { name: 'is not asked again if nobody has patience', after: '1', refused: 99, asked: 1, patient: false, status: 429 },
  { name: 'ends with its search', after: '10', refused: 99, asked: 2, stop: 2 },
]) {
  test('a request that is refused ' + name, () => quickly(async () => {
    globalThis.location = /** @type {any} */ ({ href: 'data:/ui/' })
    const control = new AbortController()
    let n = 0, most = 0
    turns.listener = (waiting) => {
      most = Math.max(most, waiting)
      if (n === stop && waiting) queueMicrotask(() => control.abort())
    }
    globalThis.fetch = async () => n++ < refused ? new Response('{"error":"busy"}', { status: 429, headers: after ? { 'Retry-After': after } : {} }) : new Response('')
    const error = await ask('/api/query', {}, { signal: control.signal, patient }).then(() => null, (error) => error)
    assert.equal(Date.now() >= 1000 * Number(after) * (stop || asked - 1), !stop, `after ${Date.now()} ms`)
    assert.deepEqual([n, most, turns.waiting], [asked, Number(asked > 1), 0])
    assert.equal(stop ? error.name : error?.status ?? 0, stop ? 'AbortError' : status)
  }))
}

/**
 * A tail of a collector that answers each request by one of answers; what it asked and told.
 * @param {{headers?: Record<string, string>, text?: string, open?: boolean}[]} answers
 */
async function tailOf(answers) {
  globalThis.location = /** @type {any} */ ({ href: 'data:/ui/' })
  /** @type {string[]} */
  const asked = [], told = [], shown = []
  const tail = await new Promise((done) => {
    const left = [...answers]
    globalThis.fetch = /** @type {any} */ (async (/** @type {string} */ href, /** @type {any} */ { signal }) => {
      const url = new URL(href), answer = left.shift()
      if (!answer) return new Promise(() => done(t))
      asked.push(`${url.pathname.slice(5)} ${url.searchParams.get('from') ?? url.searchParams.get('since') ?? ''}`)
      const { headers = {}, text = '', open } = answer
      return new Response(new ReadableStream({ start(c) {
        c.enqueue(new TextEncoder().encode(text))
        if (!open) return c.close()
        signal.addEventListener('abort', () => c.error(signal.reason))
      } }), { headers })
    })
    const t = new Tail('', { onBatch: ({ lines }) => shown.push(...lines.map((l) => l.msg)), onStatus: (word) => told.push(word), onGap: (text) => told.push(text) })
  })
  tail.close()
  return { asked, told, shown }
}

const tails = [
  { name: 'goes on where the answer before it ended', want: { asked: ['query 1h', 'tail 7', 'query 1h', 'tail 7'], shown: ['a'] },
    answers: [{ headers: { 'Rollway-End': '7' }, text: '{"offset":2,"line":{"msg":"a"}}\n' }, {}, { headers: { 'Rollway-End': '7' }, text: '{"offset":2,"line":{"msg":"a"}}\n' }, {}] },
  { name: 'goes on after its lines, and after one that says nothing any more', want: { asked: ['query 1h', 'tail 7', 'query 1h', 'tail 10'], told: ['live', 'away', 'live', 'away'] },
    answers: [{ headers: { 'Rollway-End': '7' } }, { text: 'id: 8\ndata: {"msg":"b"}\n\n: heartbeat\nid: 9\n\n', open: true }, { headers: { 'Rollway-End': '12' } }, {}] },
  { name: 'that is not told the end goes on after the last line, and shows it once', want: { asked: ['query 1h', 'tail 1h', 'query 1h', 'tail 3', 'query 1h', 'tail 3'], shown: ['a'] },
    answers: [{}, {}, { text: '{"offset":2,"line":{"msg":"a"}}\n' }, {}, { text: '{"offset":2,"line":{"msg":"a"}}\n' }, {}] },
  { name: 'that is too far behind says so', want: { asked: ['query 1h', 'tail 7', 'query 1h', 'tail 30007'], told: ['live', 'away', '30,000 lines were stored while this page was away. Search has them; here are the newest.', 'live', 'away'] },
    answers: [{ headers: { 'Rollway-End': '7' } }, {}, { headers: { 'Rollway-End': '30007' } }, {}] },
  { name: 'of another journal says so', want: { asked: ['query 1h', 'tail 7', 'query 1h', 'tail 2'], told: ['live', 'away', 'The journal is not the one of before: here are its newest lines.', 'live', 'away'] },
    answers: [{ headers: { 'Rollway-End': '7' } }, {}, { headers: { 'Rollway-End': '2' } }, {}] },
]
for (const { name, answers, want } of tails) {
  test('a tail ' + name, () => quickly(async () => {
    const got = /** @type {Record<string, string[]>} */ (await tailOf(answers))
    for (const [what, list] of Object.entries(want)) assert.deepEqual(got[what], list, what)
  }))
}
