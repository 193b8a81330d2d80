import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { newInstanceId } from '../../src/domain/ids.ts'
import type { InstanceKind } from '../../src/domain/instance.ts'
import { openStore } from '../../src/store/open-store.ts'

const SECRET = `whsec_${Buffer.alloc(32).toString('base64')}`

/** Writes instances that are not linked into the store of a stopped service. */
export async function seedInstances(
  dataDir: string,
  count: number,
  kind: InstanceKind,
  nameOf: (index: number) => string,
): Promise<void> {
  const masterKey = Buffer.from(readFileSync(join(dataDir, 'master.key'), 'utf8').trim(), 'base64')
  const store = await openStore({ dataDir, masterKey, ratePerMinute: 100, logger: pino({ level: 'silent' }) })
  await Promise.all(
    Array.from({ length: count }, (_, index) => {
      const tokenDigest = Buffer.from(String(index).padStart(32, '0'))
      const instance = { id: newInstanceId(), name: nameOf(index), kind, goal: 'idle', webhookSecret: SECRET } as const
      return store.instances.create({ ...instance, tokenDigest }, Date.now())
    }),
  )
  await store.close()
}
