import { EventEmitter } from 'node:events'
import { Writable } from 'node:stream'
import type { WASocket } from 'baileys'
import { expect, test } from 'vitest'
import { AcknowledgementReader, sendDurably } from './frames.ts'

const tick = () => new Promise(resolve => setImmediate(resolve))

function setUp() {
  const left: number[] = []
  const failed: string[] = []
  const gates: PromiseWithResolvers<void>[] = []
  let refusals = 0
  let mayAct = true
  const raw = {
    send(data: Uint8Array, done: (error?: Error) => void) {
      left.push(data[0]!)
      done()
    },
    once: () => undefined,
  }
  const durable = () => {
    const gate = Promise.withResolvers<void>()
    gates.push(gate)
    return gate.promise
  }
  const onRefused = () => {
    refusals += 1
  }
  sendDurably({ ws: { socket: raw } } as unknown as WASocket, durable, () => mayAct, onRefused)
  const send = (frame: number) => raw.send(Uint8Array.of(frame), error => error && failed.push(error.message))
  const mayActNoMore = () => {
    mayAct = false
  }
  return { left, failed, gates, send, mayActNoMore, refusals: () => refusals }
}

test('a frame leaves when its changes are durable, and never before an earlier frame', async () => {
  const { left, gates, send } = setUp()
  for (const frame of [1, 2, 3]) send(frame)
  gates[2]?.resolve()
  gates[1]?.resolve()
  await tick()
  expect(left).toEqual([])
  gates[0]?.resolve()
  await tick()
  expect(left).toEqual([1, 2, 3])
})

test('after a refused frame no other leaves, and the refusal is reported once', async () => {
  const { left, failed, gates, send, refusals } = setUp()
  for (const frame of [1, 2, 3]) send(frame)
  gates[0]?.resolve()
  gates[1]?.reject(new Error('not recorded'))
  gates[2]?.resolve()
  await tick()
  send(4)
  gates[3]?.resolve()
  await tick()
  expect(left).toEqual([1])
  expect(failed).toEqual(['not recorded', 'not recorded', 'not recorded'])
  expect(refusals()).toBe(1)
})

test('no frame leaves once another node may own the account, even if its changes are durable', async () => {
  const { left, gates, send, mayActNoMore, refusals } = setUp()
  for (const frame of [1, 2]) send(frame)
  gates[0]?.resolve()
  await tick()
  mayActNoMore()
  gates[1]?.resolve()
  await tick()
  expect(left).toEqual([1])
  expect(refusals()).toBe(1)
})

test('frames that become durable in one turn are written together', async () => {
  const writes: number[][] = []
  const socket = new Writable({
    writev(chunks, done) {
      writes.push(chunks.flatMap(({ chunk }) => [...chunk]))
      done()
    },
  })
  const raw = {
    send: (data: Uint8Array, done: () => void) => void socket.write(data, done),
    once: (_event: 'upgrade', listener: (response: { socket: Writable }) => void) => listener({ socket }),
  }
  let commit = Promise.withResolvers<void>()
  sendDurably(
    { ws: { socket: raw } } as unknown as WASocket,
    () => commit.promise,
    () => true,
    () => expect.unreachable(),
  )
  const answers = [1, 2, 3].map(frame => new Promise<void>(done => raw.send(Uint8Array.of(frame), done)))
  commit.resolve()
  await Promise.all(answers)
  commit = Promise.withResolvers()
  const last = new Promise<void>(done => raw.send(Uint8Array.of(4), done))
  commit.resolve()
  await last
  expect(writes).toEqual([[1, 2, 3], [4]])
})

test('a refusal counts for each copy that the service wrote, and not for those that a device requested', () => {
  const reader = new AcknowledgementReader()
  const ws = new EventEmitter()
  const reported: unknown[] = []
  const events = { acknowledged: (ack: object) => void reported.push(ack) }
  reader.listen({ ws } as unknown as WASocket, events, () => expect.unreachable())
  const answer = (id: string, error?: string) =>
    ws.emit('CB:ack', { attrs: { id, class: 'message', ...(error && { error }) } })
  for (const id of ['A', 'B', 'C', 'C']) reader.expect(id, '5511987654321@s.whatsapp.net')
  answer('A')
  answer('A', '479')
  answer('B', '479')
  answer('C')
  answer('C', '500')
  answer('C', '500')
  expect(reported).toMatchObject([
    { whatsappId: 'A', error: undefined },
    { whatsappId: 'B', error: 479 },
    { whatsappId: 'C', error: undefined },
    { whatsappId: 'C', error: 500 },
  ])
})
