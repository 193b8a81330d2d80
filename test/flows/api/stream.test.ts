import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { onThisMachine } from '../../deadlines.ts'
import { until } from '../../until.ts'
import { ADMIN_KEY, ApiHarness } from './harness.ts'

/** After this time, a server that closes cuts the remaining connections. */
const DRAIN_MS = 4_000

/** Reads server-sent events as they come. */
class Stream {
  readonly events: { event: string; data: { state?: string; qr?: string | null } & Record<string, unknown> }[] = []
  readonly response: Response
  ended = false
  readonly #abort: AbortController

  private constructor(response: Response, abort: AbortController) {
    this.response = response
    this.#abort = abort
    void this.#read()
      .catch(() => undefined)
      .finally(() => {
        this.ended = true
      })
  }

  static async open(api: ApiHarness, id: string): Promise<Stream> {
    const abort = new AbortController()
    const response = await fetch(`${api.url}/admin/v1/instances/${id}/connection/stream`, {
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
      signal: abort.signal,
    })
    return new Stream(response, abort)
  }

  async #read(): Promise<void> {
    let rest = ''
    for await (const chunk of this.response.body!.pipeThrough(new TextDecoderStream())) {
      rest += chunk
      const blocks = rest.split('\n\n')
      rest = blocks.pop()!
      for (const block of blocks) {
        const [, event, data] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? []
        if (event && data) this.events.push({ event, data: JSON.parse(data).data })
      }
    }
  }

  states(): (string | undefined)[] {
    return this.events.map(({ data }) => data.state)
  }

  leave(): void {
    this.#abort.abort()
  }
}

test('a stream reports the connection immediately and after every change, and ends when the instance is deleted', async () => {
  await using api = await ApiHarness.start()
  const { id } = await api.createInstance()
  const stream = await Stream.open(api, id)
  expect(stream.response.status).toBe(200)
  expect(stream.response.headers.get('content-type')).toMatch(/^text\/event-stream/)
  await until('the first event', () => stream.events.length === 1)
  expect(stream.events[0]).toMatchObject({ event: 'connection', data: { instanceId: id, state: 'unlinked' } })

  await api.record(id, { state: 'linking', reason: 'Scan.', qr: '2@a', qrExpiresAt: Date.now() + 60_000 })
  await until('the QR code', () => stream.events.at(-1)?.data.qr === '2@a')
  await api.record(id, { state: 'linking', reason: 'Scan.', qr: '2@b', qrExpiresAt: Date.now() + 60_000 })
  await until('the next QR code', () => stream.events.at(-1)?.data.qr === '2@b')
  await api.record(id, { state: 'connected', reason: 'Connected.', qr: null, qrExpiresAt: null })
  await until('connected', () => stream.states().at(-1) === 'connected')

  await api.admin('DELETE', `/instances/${id}`)
  await until('the end', () => stream.ended)
  expect(stream.events.at(-1)).toEqual({ event: 'deleted', data: { instanceId: id } })
})

test('a change is reported even without a hint, and an unchanged connection is not reported', async () => {
  const deaf = { shared: false, on: () => () => undefined }
  await using api = await ApiHarness.start({ store: () => ({ hints: deaf }) })
  const { id } = await api.createInstance()
  const stream = await Stream.open(api, id)
  await until('the first event', () => stream.events.length === 1)
  await api.record(id, { state: 'stopped', reason: 'Banned.' })
  await until('the change', () => stream.states().at(-1) === 'stopped')
  await api.record(id, { state: 'logged_out', reason: 'Unlinked.' })
  await until('the next change', () => stream.states().at(-1) === 'logged_out')
  expect(stream.states()).toEqual(['unlinked', 'stopped', 'logged_out'])
  stream.leave()
})

test('nothing is left behind when a reader disconnects', async () => {
  let listeners = 0
  const counting =
    (on: ApiHarness['store']['hints']['on']): typeof on =>
    (...heard) => {
      listeners += 1
      const off = on(...heard)
      return () => {
        listeners -= 1
        off()
      }
    }
  await using api = await ApiHarness.start({
    store: store => ({ hints: { shared: false, on: counting(store.hints.on.bind(store.hints)) } }),
  })
  const { id } = await api.createInstance()
  const streams = await Promise.all(Array.from({ length: 5 }, () => Stream.open(api, id)))
  expect(listeners).toBe(5)
  for (const stream of streams) stream.leave()
  await until('the listeners to go', () => listeners === 0)
})

test('open streams end when the server closes, and do not delay it', async () => {
  const api = await ApiHarness.start()
  const { id } = await api.createInstance()
  const streams = await Promise.all(Array.from({ length: 3 }, () => Stream.open(api, id)))
  const drained = sleep(onThisMachine(DRAIN_MS), 'connections are cut')
  const closed = api[Symbol.asyncDispose]().then(() => 'the server is closed')
  expect(await Promise.race([closed, drained])).toBe('the server is closed')
  await until('the streams to end', () => streams.every(({ ended }) => ended))
})

test('HEAD of a stream does not open one', async () => {
  await using api = await ApiHarness.start()
  const { id } = await api.createInstance()
  const answer = await api.admin('HEAD', `/instances/${id}/connection/stream`)
  expect(answer.status).toBe(405)
})
