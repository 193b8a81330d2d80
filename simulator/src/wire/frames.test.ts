import fc from 'fast-check'
import { expect, it } from 'vitest'
import { FrameReader, frame } from './frames.ts'
import { PROLOGUE } from './noise.ts'

const ROUTING = Buffer.from([0x45, 0x44, 0, 1, 0, 0, 2, 9, 9])

it('frames come out whole and in order, however the bytes are split', () => {
  const data = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 8 })
  fc.assert(
    fc.property(data, fc.boolean(), fc.integer({ min: 1, max: 20 }), (frames, routed, size) => {
      const start = routed ? [ROUTING, PROLOGUE] : [PROLOGUE]
      const stream = Buffer.concat([...start, ...frames.map(frame)])
      const reader = new FrameReader(1000)
      const read: Buffer[] = []
      for (let at = 0; at < stream.length; at += size) read.push(...reader.push(stream.subarray(at, at + size)))
      expect(read.map(one => [...one])).toEqual(frames.map(one => [...one]))
    }),
  )
})

it('data that is not from a client, or announces a frame above the limit, is refused at once', () => {
  expect(() => new FrameReader(1000).push(Buffer.from('GET / HTTP/1.1'))).toThrow('not a WhatsApp client')
  expect(() => new FrameReader(10).push(Buffer.concat([PROLOGUE, Buffer.from([0, 0, 11])]))).toThrow('frame too long')
})
