import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { ProtocolAddress, SessionBuilder, SessionCipher, SessionRecord, type SignalStorage } from 'libsignal'
import * as curve from 'libsignal/src/curve.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { patchLibraries } from './library-patches.ts'
import { silenceSignalConsole } from './quiet-libsignal.ts'

let restoreConsole: () => void
beforeAll(() => {
  restoreConsole = silenceSignalConsole()
  patchLibraries()
})
afterAll(() => restoreConsole())

/** One side of a conversation, with its keys. */
class Side {
  readonly #identity = curve.generateKeyPair()
  readonly #signed = curve.generateKeyPair()
  readonly #registrationId = randomInt(1, 16_380)
  readonly #sessions = new Map<string, string>()
  readonly #peer: ProtocolAddress

  constructor(peer: string) {
    this.#peer = new ProtocolAddress(peer, 0)
  }

  readonly #storage: SignalStorage = {
    loadSession: async id => {
      const kept = this.#sessions.get(id)
      return kept === undefined ? undefined : SessionRecord.deserialize(JSON.parse(kept))
    },
    storeSession: async (id, record) => void this.#sessions.set(id, JSON.stringify(record.serialize())),
    isTrustedIdentity: () => true,
    loadPreKey: async () => undefined,
    removePreKey: () => undefined,
    loadSignedPreKey: () => bytesOf(this.#signed),
    getOurRegistrationId: () => this.#registrationId,
    getOurIdentity: () => bytesOf(this.#identity),
  }

  async openTo(other: Side): Promise<void> {
    const signature = curve.calculateSignature(other.#identity.privKey, other.#signed.pubKey)
    await new SessionBuilder(this.#storage, this.#peer).initOutgoing({
      registrationId: other.#registrationId,
      identityKey: other.#identity.pubKey,
      signedPreKey: { keyId: 1, publicKey: other.#signed.pubKey, signature },
    } as Parameters<SessionBuilder['initOutgoing']>[0])
  }

  async write(text: string): Promise<{ type: number; body: Buffer }> {
    const { type, body } = await new SessionCipher(this.#storage, this.#peer).encrypt(Buffer.from(text))
    return { type, body: Buffer.from(body, 'binary') }
  }

  async read({ type, body }: { type: number; body: Buffer }): Promise<string> {
    const cipher = new SessionCipher(this.#storage, this.#peer)
    const first = type === 3
    return (await (first ? cipher.decryptPreKeyWhisperMessage(body) : cipher.decryptWhisperMessage(body))).toString()
  }
}

function bytesOf({ privKey, pubKey }: { privKey: Uint8Array; pubKey: Uint8Array }) {
  return { privKey: Buffer.from(privKey), pubKey: Buffer.from(pubKey) }
}

type Does = 'write' | 'read' | 'renew'

/** A message, a new session by one side, then an answer over the earlier session. */
const ANSWER_OVER_THE_OLD: { by: 0 | 1; does: Does; ahead: number }[] = (
  [
    [0, 'write'],
    [1, 'read'],
    [0, 'renew'],
    [1, 'write'],
    [0, 'read'],
    [0, 'write'],
  ] as const
).map(([by, does]) => ({ by, does, ahead: 0 }))

test('when two sides open sessions to each other, every message is decrypted in any order', async () => {
  const step = fc.record({
    by: fc.constantFrom<(0 | 1)[]>(0, 1),
    does: fc.constantFrom<Does[]>('write', 'write', 'read', 'read', 'renew'),
    // Messages overtake one another.
    ahead: fc.nat(2),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async steps => {
      const sides = [new Side('b'), new Side('a')] as const
      const underWay: { text: string; sent: { type: number; body: Buffer } }[][] = [[], []]
      await sides[0].openTo(sides[1])
      await sides[1].openTo(sides[0])
      const read = async (by: 0 | 1, ahead: number) => {
        const waiting = underWay[by] ?? []
        const [next] = waiting.splice(Math.min(ahead, waiting.length - 1), 1)
        if (next) expect(await sides[by].read(next.sent)).toBe(next.text)
      }
      for (const [n, { by, does, ahead }] of steps.entries()) {
        const other = by === 0 ? 1 : 0
        if (does === 'renew') await sides[by].openTo(sides[other])
        else if (does === 'read') await read(by, ahead)
        else underWay[other]?.push({ text: `${n}`, sent: await sides[by].write(`${n}`) })
      }
      for (const by of [0, 1] as const) while ((underWay[by]?.length ?? 0) > 0) await read(by, 0)
    }),
    { numRuns: 40, examples: [[ANSWER_OVER_THE_OLD]] },
  )
})
