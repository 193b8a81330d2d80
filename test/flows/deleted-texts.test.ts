import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { newInstanceId, newMessageId } from '../../src/domain/ids.ts'
import { backUp } from '../../src/store/engine/sqlite/backup.ts'
import type { Lease } from '../../src/store/leases/leases.ts'
import { openStore } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/store.ts'
import { createReceiver } from '../receiver.ts'
import { startService } from '../service.ts'
import { until } from '../until.ts'

/** No file in the data folder contains a deleted text. */

const LONG_AGO = Date.now() - 100 * 24 * 60 * 60_000

function filesWith(folder: string, text: string): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  return files.map(({ parentPath, name }) => join(parentPath, name)).filter(path => read(path).includes(text))
}

/** Empty if the file was removed meanwhile. */
function read(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

async function openFolder(): Promise<{ folder: string; store: Store }> {
  const folder = await mkdtemp(join(tmpdir(), 'pombal-traces-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const store = await openStore({ dataDir: folder, masterKey: randomBytes(32), ratePerMinute: 100 })
  onTestFinished(() => store.close())
  return { folder, store }
}

async function addInstance(store: Store): Promise<Lease> {
  const id = newInstanceId()
  const [tokenDigest, webhookSecret] = [randomBytes(32), 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw']
  const instance = { id, name: 'test', kind: 'whatsapp' as const, tokenDigest, webhookSecret, goal: 'idle' as const }
  await store.instances.create(instance, LONG_AGO)
  const lease = (await store.leases.acquire('test', 10)).find(({ instanceId }) => instanceId === id)!
  await store.connections.record(lease, { state: 'connected', reason: 'test' }, LONG_AGO)
  return lease
}

/** Records texts of many lengths in both directions. Only these texts contain `word`; IDs of messages do not. */
async function fill(store: Store, lease: Lease, word: string, count: number, from = '351912345678'): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const text = `${word} ${'x'.repeat((n * 97) % 5_000)} ${word}`
    const sender = { from, chat: from, lid: null, username: null }
    const whatsappId = `3EB0${lease.instanceId.slice(5)}${from}${n}`
    const message = { id: `IN${whatsappId}`, ...sender, type: 'text' as const, text, sentAt: LONG_AGO }
    await store.events.storeIncoming(lease, message, LONG_AGO)
    const id = newMessageId(LONG_AGO)
    const { instanceId } = lease
    await store.messages.accept({ id, instanceId, to: from, text, whatsappId }, LONG_AGO)
    await store.messages.recordPrepared(lease, id, {
      address: `${from}@s.whatsapp.net`,
      content: Buffer.from(text),
    })
    await store.messages.recordProgress(lease, whatsappId, 'sent', LONG_AGO)
  }
}

test('no file contains a text of a deleted instance, and the texts of other instances are kept', async () => {
  const { folder, store } = await openFolder()
  const [gone, stays] = [await addInstance(store), await addInstance(store)]
  await Promise.all([fill(store, gone, 'GONE-WORD', 150), fill(store, stays, 'KEPT-WORD', 150)])
  expect(filesWith(folder, 'GONE-WORD')).not.toEqual([])
  await store.instances.delete(gone.instanceId, Date.now())
  await store.leases.release(gone)
  const [lease] = await store.leases.acquire('test', 10)
  expect(await store.instances.erase(lease!)).toBe(true)
  expect(filesWith(folder, 'GONE-WORD')).toEqual([])
  expect(filesWith(folder, 'KEPT-WORD')).not.toEqual([])
  await backUp(folder, new Date(), () => join(folder, 'backup.db'))
  expect(filesWith(folder, 'GONE-WORD')).toEqual([])
})

test('no file contains a text of an erased contact, and the texts of other contacts are kept', async () => {
  const { folder, store } = await openFolder()
  const lease = await addInstance(store)
  await Promise.all([
    fill(store, lease, 'GONE-WORD', 150, '351911111111'),
    fill(store, lease, 'KEPT-WORD', 150, '351922222222'),
  ])
  const files = filesWith(folder, 'GONE-WORD')
  // The write-ahead log contains the former pages, so the erasure has to clear it as well.
  expect(files).toContain(join(folder, 'pombal.db-wal'))
  const erased = await store.retention.eraseContact(lease.instanceId, '351911111111', Date.now())
  expect(erased).toMatchObject({ messages: 300, kept: 0 })
  expect(filesWith(folder, 'GONE-WORD')).toEqual([])
  expect(filesWith(folder, '351911111111')).toEqual([])
  expect(filesWith(folder, 'KEPT-WORD')).not.toEqual([])
})

test('texts past their retention remain in no file', async () => {
  const { folder, store } = await openFolder()
  const lease = await addInstance(store)
  await fill(store, lease, 'OLD-WORD', 150)
  expect(filesWith(folder, 'OLD-WORD')).not.toEqual([])
  while ((await store.retention.step(Date.now() - 1_000, Date.now())) > 0);
  expect(filesWith(folder, 'OLD-WORD')).toEqual([])
})

test('a running service leaves nothing of a deleted instance in its data folder', async () => {
  const receiver = await createReceiver()
  onTestFinished(() => receiver.close())
  const service = await startService()
  onTestFinished(() => service.dispose())
  const { id, token } = await service.admin.createConnected()
  await service.instance(id, token).setWebhook(receiver.url)
  await service.instance(id, token).send('5511987654321', 'SENT-WORD')
  await service.admin.writeAsContact(id, { from: '5511987654321', text: 'HEARD-WORD' })
  // Sent, delivered, read and received.
  await receiver.waitFor(4)
  const left = () => [...filesWith(service.dataDir, 'SENT-WORD'), ...filesWith(service.dataDir, 'HEARD-WORD')]
  expect(left()).not.toEqual([])
  await service.admin.deleteInstance(id)
  await until('nothing to be left', () => left().length === 0)
})
