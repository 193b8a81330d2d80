import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { newInstanceId } from '../../src/domain/ids.ts'
import type { InstanceKind } from '../../src/domain/instance.ts'
import { openStore } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/store.ts'

const SECRET = `whsec_${Buffer.alloc(32).toString('base64')}`

function openStoreOf(dataDir: string): Promise<Store> {
  const masterKey = Buffer.from(readFileSync(join(dataDir, 'master.key'), 'utf8').trim(), 'base64')
  return openStore({ dataDir, masterKey, ratePerMinute: 100, logger: pino({ level: 'silent' }) })
}

/** Writes alerts that ended into the store of a stopped service. */
export async function seedSolvedAlerts(dataDir: string, count: number): Promise<void> {
  const store = await openStoreOf(dataDir)
  const now = Date.now()
  const noticed = Array.from({ length: count }, (_, index) => {
    const problem = { rule: 'disk_nearly_full', subject: `solved-${index}`, detail: 'Nearly full.' } as const
    return { ...problem, since: now, beganAt: now }
  })
  const none = { noticed: [], reworded: [], began: [], gone: [], returned: [], ended: [], dropped: [] }
  await store.alerts.apply({ ...none, noticed }, now)
  const seeded = (await store.alerts.listOpen('')).filter(({ subject }) => subject.startsWith('solved-'))
  await store.alerts.apply({ ...none, ended: seeded.map(({ id }) => id) }, now)
  await store.close()
}

/** Writes instances that are not linked into the store of a stopped service. */
export async function seedInstances(
  dataDir: string,
  count: number,
  kind: InstanceKind,
  nameOf: (index: number) => string,
): Promise<void> {
  const store = await openStoreOf(dataDir)
  await Promise.all(
    Array.from({ length: count }, (_, index) => {
      const tokenDigest = Buffer.from(String(index).padStart(32, '0'))
      const instance = { id: newInstanceId(), name: nameOf(index), kind, goal: 'idle', webhookSecret: SECRET } as const
      return store.instances.create({ ...instance, tokenDigest }, Date.now())
    }),
  )
  await store.close()
}
