import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { quietLibsignal } from './quiet-libsignal.ts'
import { SignalDevice } from './signal-device.ts'

const GROUP = '120363000000000042@g.us'
const HELLO = Buffer.from('hello')

beforeAll(quietLibsignal)

function createDevice(secret = randomBytes(32), stored = new Map<string, string>()) {
  const store = { get: (key: string) => stored.get(key), put: (key: string, value: string) => stored.set(key, value) }
  return { device: new SignalDevice(secret, store), again: () => createDevice(secret, new Map(stored)).device }
}

async function createPair() {
  const [a, b] = [createDevice(), createDevice()]
  await a.device.openSession('2.0', b.device.bundle())
  const { type, ciphertext } = await a.device.encrypt('2.0', HELLO)
  expect(type).toBe('pkmsg')
  expect(await b.device.decrypt('1.0', type, ciphertext)).toEqual(HELLO)
  return { a, b }
}

describe('a device', () => {
  it('that is restored from its secret and its store reads messages sent before and after', async () => {
    const { a, b } = await createPair()
    const before = await a.device.encrypt('2.0', Buffer.from('before'))
    const answer = await b.device.encrypt('1.0', Buffer.from('answer'))
    const again = b.again()
    expect(await again.decrypt('1.0', before.type, before.ciphertext)).toEqual(Buffer.from('before'))
    expect(await a.device.decrypt('2.0', answer.type, answer.ciphertext)).toEqual(Buffer.from('answer'))
    const after = await a.device.encrypt('2.0', Buffer.from('after'))
    expect(after.type).toBe('msg')
    expect(await again.decrypt('1.0', after.type, after.ciphertext)).toEqual(Buffer.from('after'))
  })

  it('keeps its newer session unchanged when a message uses an older one', async () => {
    const { a, b } = await createPair()
    const answer = await b.device.encrypt('1.0', HELLO)
    await a.device.openSession('2.0', b.device.bundle())
    // Both sessions of `a` work. The answer uses the older one.
    expect(await a.device.decrypt('2.0', answer.type, answer.ciphertext)).toEqual(HELLO)
    const next = await a.device.encrypt('2.0', Buffer.from('next'))
    expect(await b.device.decrypt('1.0', next.type, next.ciphertext)).toEqual(Buffer.from('next'))
  })

  it('is not affected by a message that it cannot read', async () => {
    const { a, b } = await createPair()
    const { ciphertext, type } = await a.device.encrypt('2.0', HELLO)
    const forged = Buffer.from(ciphertext)
    forged[forged.length - 12]! ^= 1
    for (const garbage of [forged, Buffer.alloc(0), Buffer.alloc(80, 0x33)]) {
      await expect(b.device.decrypt('1.0', type, garbage)).rejects.toBeDefined()
      await expect(b.device.decrypt('1.0', 'msg', garbage)).rejects.toBeDefined()
    }
    expect(await b.device.decrypt('1.0', type, ciphertext)).toEqual(HELLO)
    await expect(b.device.decrypt('1.0', type, ciphertext)).rejects.toBeDefined()
  })

  it('reads a late group message even after the same sender key has arrived several times', async () => {
    const [a, b] = [createDevice().device, createDevice().device]
    const late = await a.encryptForGroup(GROUP, Buffer.from('late'))
    await b.acceptSenderKey(GROUP, '1.0', late.distribution)
    for (let n = 0; n < 6; n++) {
      const { ciphertext, distribution } = await a.encryptForGroup(GROUP, HELLO)
      await b.acceptSenderKey(GROUP, '1.0', distribution)
      expect(await b.decryptFromGroup(GROUP, '1.0', ciphertext)).toEqual(HELLO)
    }
    expect(await b.decryptFromGroup(GROUP, '1.0', late.ciphertext)).toEqual(Buffer.from('late'))
  })

  it('reads group messages in any order, each once, and refuses a forged one', async () => {
    const [a, b] = [createDevice().device, createDevice().device]
    const sent = []
    for (let n = 0; n < 4; n++) sent.push(await a.encryptForGroup(GROUP, Buffer.from(`number ${n}`)))
    await b.acceptSenderKey(GROUP, '1.0', sent[0]!.distribution)
    const forged = Buffer.from(sent[0]!.ciphertext)
    forged[4]! ^= 1
    await expect(b.decryptFromGroup(GROUP, '1.0', forged)).rejects.toBeDefined()
    for (const n of [2, 0, 3, 1]) {
      expect(await b.decryptFromGroup(GROUP, '1.0', sent[n]!.ciphertext)).toEqual(Buffer.from(`number ${n}`))
    }
    await expect(b.decryptFromGroup(GROUP, '1.0', sent[1]!.ciphertext)).rejects.toThrow('the key was already used')
    await expect(b.decryptFromGroup(GROUP, '9.0', sent[1]!.ciphertext)).rejects.toThrow('unknown sender key')
  })
})
