import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { CONDITION_WITHIN_MS } from '../../../test/deadlines.ts'
import { EventStream } from './event-stream.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

function open(closing = new AbortController().signal): EventStream {
  return new EventStream(closing)
}

test('an event has its name and its data on one line each, even if the data contains line breaks', () => {
  const stream = open()
  stream.send('connection', { reason: 'a\nb' })
  expect(stream.body.read().toString()).toBe('event: connection\ndata: {"reason":"a\\nb"}\n\n')
})

test('a comment every 15 s keeps proxies from closing an idle stream', () => {
  const stream = open()
  vi.advanceTimersByTime(45_000)
  expect(stream.body.read().toString()).toBe(':\n\n'.repeat(3))
})

test('the buffer for a reader that does not read is limited', () => {
  const stream = open()
  let sent = 0
  while (stream.send('e', 'x'.repeat(1_000))) sent += 1
  expect(sent).toBeLessThan(100)
  vi.advanceTimersByTime(3_600_000)
  expect(stream.body.readableLength).toBeLessThan(100_000)
  stream.body.read()
  expect(stream.send('e', 'x')).toBe(true)
})

test('a stream ends once, with the reader or with the server, and leaves no timer', async () => {
  const closing = new AbortController()
  const [left, closed] = [open(closing.signal), open(closing.signal)]
  const ended: string[] = []
  left.onEnd(() => ended.push('left'))
  closed.onEnd(() => ended.push('closed'))
  left.body.destroy()
  await vi.waitFor(() => expect(ended).toEqual(['left']), CONDITION_WITHIN_MS)
  closing.abort()
  closed.body.resume()
  await vi.waitFor(() => expect(ended).toEqual(['left', 'closed']), CONDITION_WITHIN_MS)
  expect(left.send('e', 1)).toBe(false)
  left.end()
  expect(vi.getTimerCount()).toBe(0)
})

test('a stream that is opened while the server closes ends at once', async () => {
  const stream = open(AbortSignal.abort())
  stream.body.resume()
  await vi.waitFor(() => expect(stream.ended).toBe(true), CONDITION_WITHIN_MS)
  expect(stream.send('e', 1)).toBe(false)
})

test('nothing is added to a stream that has ended, even before its reader has seen the end', async () => {
  const stream = open(new AbortController().signal)
  stream.send('e', 1)
  stream.end()
  stream.end()
  expect([stream.ended, stream.send('e', 2)]).toEqual([true, false])
  expect(Buffer.concat(await stream.body.toArray()).toString()).toBe('event: e\ndata: 1\n\n')
})
