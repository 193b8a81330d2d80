import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DEFAULT_ENDPOINT, type SigningSecrets } from '../../../src/domain/events/endpoint.ts'
import type { FileSource } from '../../../src/domain/media.ts'
import { type RotationOptions, rotateMasterKey } from '../../../src/store/encryption/key-rotation.ts'
import { KeyRotationUnfinished, OtherRotation, WrongMasterKey } from '../../../src/store/errors.ts'
import type { Lease } from '../../../src/store/leases/leases.ts'
import { createOwned, findSecrets, incoming } from '../fixture.ts'
import { type CreateHarness, MASTER_KEY, type StoreHarness } from '../harness.ts'

const OLD = MASTER_KEY
const NEW = new Uint8Array(32).fill(8)
const THIRD = new Uint8Array(32).fill(9)
const CREDENTIALS = 1_100
const NOW = 1_000
const OPERATOR = {
  id: 'operator_1',
  url: 'https://operator.example/hook',
  events: ['instance.*'],
  active: true,
  description: null,
}
const ENDPOINT = {
  id: 'endpoint_1',
  url: 'https://customer.example/hook',
  events: ['*'],
  active: true,
  description: null,
}
const TARGET = { channel: 'ntfy', name: 'Night shift', address: { url: 'https://ntfy.example/pombal' } } as const
const PROXY = 'socks5://a:b@proxy.example:1080'
const MEDIA_FILE = { fileId: 'file_1' }
const MEDIUM = {
  id: 'med_1',
  mimetype: 'image/png',
  size: 1,
  sha256: new Uint8Array(32),
  filename: null,
  expiresAt: 1e15,
  quotaBytes: 1,
}

const FACTS = {
  mimetype: 'image/png',
  size: 1,
  sha256: new Uint8Array(32),
  filename: null,
  seconds: null,
  width: null,
  height: null,
}
const SOURCE: FileSource = {
  form: 'image',
  mediaKey: new Uint8Array(32).fill(1),
  directPath: '/v/a',
  encSha256: new Uint8Array(32).fill(2),
  sha256: new Uint8Array(32),
  key: { id: 'A', remoteJid: '1@s.whatsapp.net', participant: null },
}

export function rotationContract(createHarness: CreateHarness): void {
  describe('rotation of the master key', () => {
    let harness: StoreHarness
    let lease: Lease
    const mediaKey = randomBytes(32)
    let secrets: SigningSecrets
    const values = new Map(Array.from({ length: CREDENTIALS }, (_, index) => [`${index}`, randomBytes(index % 70)]))

    beforeEach(async () => {
      harness = await createHarness()
      const store = await harness.open()
      lease = await createOwned(store)
      await store.endpoints.replaceSecret(
        lease.instanceId,
        DEFAULT_ENDPOINT,
        `whsec_${randomBytes(32).toString('base64')}`,
        NOW,
      )
      await store.endpoints.replaceSecret(lease.instanceId, DEFAULT_ENDPOINT, 'whsec_AAE=', NOW)
      await store.endpoints.create({ ...ENDPOINT, instanceId: lease.instanceId, secret: 'whsec_AA==' }, NOW)
      await store.endpoints.replaceSecret(lease.instanceId, ENDPOINT.id, 'whsec_AQ==', NOW)
      await store.alerts.createTarget(TARGET, NOW)
      await store.operatorEndpoints.create({ ...OPERATOR, secret: 'whsec_AA==' }, NOW)
      await store.operatorEndpoints.replaceSecret(OPERATOR.id, 'whsec_AQ==', NOW)
      secrets = (await findSecrets(store, lease.instanceId, NOW))!
      await store.credentials.set(
        lease,
        [...values].map(([id, value]) => ({ type: 'session', id, value })),
      )
      await store.media.begin({ ...MEDIA_FILE, instanceId: lease.instanceId, key: mediaKey, size: 1, quotaBytes: 1 })
      await store.media.finish({ ...MEDIA_FILE, instanceId: lease.instanceId, ...MEDIUM }, NOW)
      const message = incoming({ type: 'image', file: { facts: FACTS, source: SOURCE } })
      await store.events.storeIncoming(lease, message, NOW, { quotaBytes: 1_000, retentionMs: 1 })
      await store.connections.setProxy(lease.instanceId, PROXY)
      await store.leases.release(lease)
      await store.close()
    })
    afterEach(() => harness.dispose())

    function rotate(changes: Partial<RotationOptions> = {}) {
      const { dataDir, databaseUrl } = harness.options
      return rotateMasterKey({
        dataDir,
        databaseUrl,
        currentKey: OLD,
        nextKey: () => NEW,
        adopt: () => undefined,
        ...changes,
      })
    }

    async function expectAllUnder(masterKey: Uint8Array): Promise<void> {
      const store = await harness.open({ masterKey })
      try {
        expect(await findSecrets(store, lease.instanceId, NOW)).toEqual(secrets)
        const replaced = { current: 'whsec_AQ==', previous: ['whsec_AA=='] }
        const endpoint = await store.endpoints.findPosting(lease.instanceId, ENDPOINT.id, NOW)
        expect(endpoint?.secrets).toEqual(replaced)
        expect(await store.operatorEndpoints.findSecrets(OPERATOR.id, NOW)).toEqual(replaced)
        expect((await store.alerts.listTargets()).map(({ address }) => address)).toEqual([TARGET.address])
        const found = await store.credentials.get(lease.instanceId, 'session', [...values.keys()])
        expect(found.size).toBe(CREDENTIALS)
        const medium = await store.media.find(lease.instanceId, MEDIUM.id)
        expect(medium?.kind === 'stored' && Buffer.from(medium.key).equals(mediaKey)).toBe(true)
        const { due } = await store.downloads.listDue(lease.instanceId, NOW, 10)
        expect(due.map(({ source }) => source)).toEqual([SOURCE])
        expect((await store.connections.find(lease.instanceId))?.proxy).toBe(PROXY)
        for (const [id, value] of values) expect(Buffer.from(found.get(id)!).equals(value)).toBe(true)
      } finally {
        await store.close()
      }
    }

    test('re-encrypts secrets and credentials under the new key, so the old one opens nothing', async () => {
      const reported: [number, number][] = []
      const outcome = await rotate({ onProgress: (done, total) => reported.push([done, total]) })
      expect(outcome).toEqual({ kind: 'rotated', values: CREDENTIALS + 7, unreadable: 0 })
      expect(reported[0]).toEqual([0, CREDENTIALS + 7])
      expect(reported.at(-1)).toEqual([CREDENTIALS + 7, CREDENTIALS + 7])
      await expect(harness.open({ masterKey: OLD })).rejects.toThrow(WrongMasterKey)
      await expectAllUnder(NEW)
    })

    test('interrupted between two steps, it blocks a start and resumes where it stopped', async () => {
      for (const brokenAt of [0, 1, 502, 1_002]) {
        const onProgress = (done: number) => {
          if (done === brokenAt) breakOff()
        }
        await expect(rotate({ onProgress })).rejects.toThrow('broken off')
        for (const masterKey of [OLD, NEW])
          await expect(harness.open({ masterKey })).rejects.toThrow(KeyRotationUnfinished)
      }
      await rotate()
      await expectAllUnder(NEW)
    })

    test('interrupted before or after the new key is adopted, it is finished by the next run', async () => {
      await expect(rotate({ adopt: breakOff })).rejects.toThrow('broken off')
      await expect(harness.open({ masterKey: NEW })).rejects.toThrow(KeyRotationUnfinished)
      let adopted = 0
      const adopt = () => {
        adopted += 1
        breakOff()
      }
      await expect(rotate({ adopt })).rejects.toThrow('broken off')
      expect(adopted).toBe(1)
      expect(await rotate({ currentKey: NEW, nextKey: breakOff })).toEqual({ kind: 'already' })
      await expectAllUnder(NEW)
    })

    test('that has finished does nothing if it is run again', async () => {
      await rotate()
      expect(await rotate()).toEqual({ kind: 'already' })
      await expectAllUnder(NEW)
    })

    test('refuses other keys and changes nothing', async () => {
      await expect(rotate({ currentKey: THIRD })).rejects.toThrow(WrongMasterKey)
      await expectAllUnder(OLD)
      await expect(rotate({ onProgress: breakOff })).rejects.toThrow('broken off')
      await expect(rotate({ nextKey: () => THIRD })).rejects.toThrow(OtherRotation)
      // Swapped keys during an unfinished rotation.
      await expect(rotate({ currentKey: NEW, nextKey: () => OLD })).rejects.toThrow(WrongMasterKey)
      await expect(rotate({ currentKey: NEW, nextKey: () => THIRD })).rejects.toThrow(WrongMasterKey)
      await rotate()
      await expectAllUnder(NEW)
    })

    test('leaves a damaged value unchanged and reports it', async () => {
      await harness.execute(
        "update credentials set value = (select value from credentials where id = '7') where id = '8'",
      )
      expect(await rotate()).toMatchObject({ unreadable: 1 })
    })

    test('refuses to run while a node is running, and changes nothing', async () => {
      const store = await harness.open()
      await expect(rotate()).rejects.toMatchObject({ name: harness.kind === 'sqlite' ? 'DataDirInUse' : 'StillInUse' })
      await store.close()
      await expectAllUnder(OLD)
    })
  })
}

function breakOff(): never {
  throw new Error('broken off')
}
